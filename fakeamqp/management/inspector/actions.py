"""What the page asks that is no route of the control interface: parts of a large broker, and forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.management.control.schemas import BadRequest
from fakeamqp.management.inspector import fault_form
from fakeamqp.management.inspector.details import (
    connection_details,
    exchange_details,
    message,
    messages,
    queue_details,
)
from fakeamqp.management.inspector.outcomes import outcomes

if TYPE_CHECKING:
    from fakeamqp.management.inspector.inspector import Inspector

Asked: TypeAlias = "Mapping[str, Any]"
Answer: TypeAlias = "Callable[[Inspector, Asked], Any]"


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


def _outcomes(inspector: Inspector, asked: Asked) -> Any:
    return outcomes(
        inspector,
        _text(asked, "kind"),
        _text(asked, "text"),
        _end(asked, "before"),
        _number(asked, "start"),
        _number(asked, "count", 100),
    )


def _end_hold(inspector: Inspector, asked: Asked) -> None:
    if inspector.held is None:
        raise BadRequest("no test is held open")
    inspector.held.set()


QUESTIONS: Mapping[str, Answer] = {
    "messages": _messages,
    "message": _one_message,
    "event": _event,
    "outcomes": _outcomes,
    "search": lambda inspector, asked: inspector.timeline.search(
        _text(asked, "text"), _number(asked, "serial"), _end(asked, "until")
    ),
    "story": lambda inspector, asked: inspector.timeline.story(
        _number(asked, "message"), _end(asked, "until")
    ),
    "fault-offers": lambda inspector, asked: fault_form.offers(),
    "queue": lambda inspector, asked: queue_details(
        inspector, _text(asked, "virtual_host"), _text(asked, "name")
    ),
    "exchange": lambda inspector, asked: exchange_details(
        inspector, _text(asked, "virtual_host"), _text(asked, "name")
    ),
    "connection": lambda inspector, asked: connection_details(inspector, _text(asked, "name")),
    "end-hold": _end_hold,
}
"""By the last part of their path; each returns JSON values."""


def _text(asked: Asked, name: str) -> str:
    value = asked.get(name, "")
    if not isinstance(value, str):
        raise BadRequest(f"{name} must be text, not {value!r}")
    return value


def _end(asked: Asked, name: str) -> int | None:
    return None if asked.get(name) is None else _number(asked, name)


def _number(asked: Asked, name: str, default: int = 0) -> int:
    value = asked.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadRequest(f"{name} must be a whole number, 0 or more, not {value!r}")
    return value
