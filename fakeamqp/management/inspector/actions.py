"""What the page can do to a broker. Each action returns a sentence for the page to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.errors import FakeAMQPError
from fakeamqp.management.inspector import fault_form
from fakeamqp.management.inspector.details import (
    connection_details,
    exchange_details,
    message,
    messages,
    queue_details,
)

if TYPE_CHECKING:
    from fakeamqp.management.inspector.inspector import Inspector

Asked: TypeAlias = "Mapping[str, Any]"
Answer: TypeAlias = "Callable[[Inspector, Asked], Any]"


class BadRequest(FakeAMQPError):
    """A request of the page lacks something, or a value is of another type than it has to be."""


# --- messages and queues ----------------------------------------------------------------------------------


def _publish(inspector: Inspector, asked: Asked) -> str:
    exchange, key, body, headers, properties = _message_of(asked)
    published = inspector.broker.publish(
        body,
        exchange=exchange,
        routing_key=key,
        virtual_host=_text(asked, "virtual_host"),
        headers=headers,
        **properties,
    )
    return f"Published {_counted(len(published.body), 'byte')}: {published.outcome}."


def _explain(inspector: Inspector, asked: Asked) -> str:
    exchange, key, body, headers, properties = _message_of(asked)
    return str(
        inspector.broker.explain(
            exchange,
            key,
            headers,
            body=body,
            virtual_host=_text(asked, "virtual_host"),
            **properties,
        )
    )


def _message_of(asked: Asked) -> tuple[str, str, str, dict[str, Any] | None, dict[str, Any]]:
    headers = asked.get("headers") or None
    properties = asked.get("properties") or {}
    for name, value in (("headers", headers), ("properties", properties)):
        if value is not None and not isinstance(value, dict):
            raise BadRequest(f"{name} must be a JSON object, such as {{}}, not {value!r}")
    if "headers" in properties:
        raise BadRequest("give the headers in their own field, not among the properties")
    return _text(asked, "exchange"), _text(asked, "routing_key"), _text(asked, "body"), headers, properties


def _purge(inspector: Inspector, asked: Asked) -> str:
    name = _text(asked, "queue")
    count = inspector.broker.queue(name, _text(asked, "virtual_host")).purge()
    return f"Dropped {_counted(count, 'ready message')} of queue {name!r}."


def _close(inspector: Inspector, asked: Asked) -> str:
    name = _text(asked, "connection")
    for connection in inspector.broker.connections:
        if connection.name == name:
            text = _text(asked, "text") or "CONNECTION_FORCED - closed in the inspector"
            connection.close(320, text)
            return f"Closed connection {name!r} with 320."
    raise BadRequest(f"connection {name!r} is closed already")


# --- time and faults --------------------------------------------------------------------------------------


def _advance(inspector: Inspector, asked: Asked) -> str:
    seconds = asked.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise BadRequest(f"seconds must be a number, not {seconds!r}")
    inspector.broker.clock.advance(seconds)
    return f"Advanced {_counted(seconds, 'second')}."


def _advance_to_next(inspector: Inspector, asked: Asked) -> str:
    passed = inspector.broker.clock.advance_to_next()
    return f"Advanced {_counted(passed, 'second')} to the next timer."


def _add_fault(inspector: Inspector, asked: Asked) -> str:
    return f"Added: {fault_form.add(inspector.broker, asked)}."


def _remove_fault(inspector: Inspector, asked: Asked) -> str:
    return f"Removed: {fault_form.remove(inspector.broker, _text(asked, 'fault'))}."


def _release_fault(inspector: Inspector, asked: Asked) -> str:
    count = fault_form.release(inspector.broker, _text(asked, "fault"))
    return f"Released {_counted(count, 'method')}."


def _end_hold(inspector: Inspector, asked: Asked) -> str:
    if inspector.held is None:
        raise BadRequest("no test is held open")
    inspector.held.set()
    return "The test goes on, and its broker stops."


# --- questions --------------------------------------------------------------------------------------------


def _messages(inspector: Inspector, asked: Asked) -> Any:
    return messages(
        inspector,
        _text(asked, "virtual_host"),
        _text(asked, "queue"),
        _number(asked, "start"),
        _number(asked, "count", 100),
    )


def _one_message(inspector: Inspector, asked: Asked) -> Any:
    place, key = _number(asked, "at"), _text(asked, "key")
    return message(inspector, _text(asked, "virtual_host"), _text(asked, "queue"), place, key)


def _event(inspector: Inspector, asked: Asked) -> Any:
    return inspector.timeline.detail(_number(asked, "serial"), _number(asked, "place"))


def _trace(inspector: Inspector, asked: Asked) -> Any:
    return inspector.broker.trace.html(title=inspector.title)


ACTIONS: Mapping[str, Answer] = {
    "publish": _publish,
    "purge": _purge,
    "close": _close,
    "advance": _advance,
    "advance-to-next": _advance_to_next,
    "add-fault": _add_fault,
    "remove-fault": _remove_fault,
    "release-fault": _release_fault,
    "end-hold": _end_hold,
}
"""By the last part of their path: what changes something, and returns a sentence."""

QUESTIONS: Mapping[str, Answer] = {
    "messages": _messages,
    "message": _one_message,
    "event": _event,
    "explain": _explain,
    "trace": _trace,
    "fault-offers": lambda inspector, asked: fault_form.offers(),
    "queue": lambda inspector, asked: queue_details(
        inspector, _text(asked, "virtual_host"), _text(asked, "name")
    ),
    "exchange": lambda inspector, asked: exchange_details(
        inspector, _text(asked, "virtual_host"), _text(asked, "name")
    ),
    "connection": lambda inspector, asked: connection_details(inspector, _text(asked, "name")),
}
"""By the last part of their path: what only looks, and returns JSON values."""


def _text(asked: Asked, name: str) -> str:
    value = asked.get(name, "")
    if not isinstance(value, str):
        raise BadRequest(f"{name} must be text, not {value!r}")
    return value


def _number(asked: Asked, name: str, default: int = 0) -> int:
    value = asked.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadRequest(f"{name} must be a whole number, 0 or more, not {value!r}")
    return value


def _counted(count: float, what: str) -> str:
    return f"{count:g} {what}" if count == 1 else f"{count:,g} {what}s" if count < 1e6 else f"{count} {what}s"
