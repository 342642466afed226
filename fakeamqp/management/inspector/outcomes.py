"""Messages that were published, returned, dead-lettered or dropped, from the histories of the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.inspect.messages import DeadLettered, Dropped, Published, Returned
from fakeamqp.management.control.schemas import BadRequest
from fakeamqp.management.inspector.details import content
from fakeamqp.trace.html.rows import bounded, fields_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.inspect.messages import Recorded
    from fakeamqp.management.inspector.inspector import Inspector
    from fakeamqp.model.history import History
    from fakeamqp.model.state import BrokerState

_KINDS: Mapping[str, type[Recorded[Any, Any]]] = {
    kind.word: kind for kind in (Published, Returned, DeadLettered, Dropped)
}
_ABOUT: Mapping[str, tuple[str, ...]] = {
    "published": ("outcome", "virtual_host", "connection"),
    "returned": ("reason", "virtual_host", "connection", "channel", "when"),
    "dead-lettered": (
        "reason",
        "queue",
        "dead_letter_exchange",
        "dead_letter_routing_key",
        "queues",
        "virtual_host",
        "connection",
        "when",
    ),
    "dropped": ("reason", "queue", "detail", "virtual_host", "connection", "when"),
}
"""The fields of the views that are told beside the message; the first says what became of it."""
_MOST = 200
_PREVIEW = 2048


def histories(state: BrokerState) -> dict[str, History[Any]]:
    """The histories of the broker by kind; {} if it keeps none."""
    if state.published is None or state.outcome_histories is None:
        return {}
    return {
        word: state.published if word == "published" else state.outcome_histories.of(word) for word in _KINDS
    }


def outcomes(
    inspector: Inspector, kind: str, text: str, before: int | None, start: int, count: int
) -> dict[str, Any]:
    """Messages of one kind, the latest first.

    Args:
        inspector: the inspector.
        kind: "published", "returned", "dead-lettered" or "dropped".
        text: which messages have it anywhere, in any case; "" for all.
        before: the number of records of which the messages are; None for all until now.
        start: how many messages are left out.
        count: the number of messages at most.

    Returns:
        `kept` and `total`, the numbers of messages that the history has and that `text` leaves; `start`; and
        `messages`: each with a `key`, the number `message` of the message, `told` about it, `facts`, and the
        first 2 KiB of its body.

    Raises:
        BadRequest: there is no such kind.
    """
    if kind not in _KINDS:
        raise BadRequest(f"kind must be one of {', '.join(_KINDS)}, not {kind!r}")
    with inspector.engine.look():
        history = histories(inspector.state).get(kind)
        records = [] if history is None else list(history)
        end = 0 if history is None else history.count
    if before is not None:
        records, end = records[: max(0, len(records) - (end - before))], min(end, before)
    first = end - len(records)
    numbered = list(enumerate(records, first))[::-1]
    wanted = text.casefold()
    if wanted:
        numbered = [(at, record) for at, record in numbered if wanted in _searched(record)]
    view = _KINDS[kind].view
    return {
        "kept": len(records),
        "total": len(numbered),
        "start": start,
        "messages": [
            {"key": str(at), "message": record.message.number, **_told(kind, view(record))}
            for at, record in numbered[start : start + min(count, _MOST)]
        ],
    }


def _told(kind: str, view: Any) -> dict[str, Any]:
    facts = {name.replace("_", " "): getattr(view, name) for name in _ABOUT[kind]}
    if (when := facts.get("when")) is not None:
        facts["when"] = when.isoformat(" ", "milliseconds")
    shown = {name: value for name, value in facts.items() if value not in (None, ())}
    queue = getattr(view, "queue", None)
    told = str(next(iter(facts.values())))
    return {
        **content(view, _PREVIEW),
        "told": f"{told} in queue {queue}" if queue else told,
        "facts": bounded(fields_of(shown.items())),
    }


def _searched(record: Any) -> str:
    """All text of a record: its message with properties and body, and what became of it."""
    message = record.message
    octets = b"\n".join((message.properties_bytes, message.body)).decode(errors="replace")
    others = (str(value) for value in record if value is not message)
    name = getattr(message.publisher, "name", "")
    return "\n".join((message.exchange, message.routing_key, octets, *others, name)).casefold()
