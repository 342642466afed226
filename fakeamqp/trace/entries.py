"""What a recorder stores, and the events that it stands for.

An entry is a tuple, because nothing is made and kept faster; its length says what it is. A peer is (name,
short name, protocol), instants are on the broker's clock.

| Length | Entry |
|---|---|
| 3 | bytes sent in one piece: instant, peer, bytes |
| 4 | of a connection: instant, peer, event, detail; of the model: instant, None, event, facts |
| 5 | a publish: instant, None, message, outcome, name of the virtual host |
| 6 | one frame: instant, peer, direction, type, channel, payload |
| 8 | a settlement: instant, peer, event, message, queue, consumer, channel, delivery tag |
| 9 | a delivery: the same, with "delivered" for the event, and whether it is redelivered |
| 6, 8, 9 | without a peer, a message's end: instant, None, event, and the facts that `_ENDS` names |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from fakeamqp.adapters import protocol_named
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.model_events import publisher_name
from fakeamqp.trace.parts import Cut

__all__ = ["Entry", "frames_in", "typed"]

Entry: TypeAlias = "tuple[Any, ...]"
"""One of the above."""

_ENDS = {
    "expired": ("message", "queue", "virtual_host"),
    "dropped": ("message", "queue", "reason", "detail", "virtual_host"),
    "dead-lettered": ("message", "queue", "reason", "exchange", "outcome", "virtual_host"),
}
_ROUTED = ("published", "dead-lettered", "delay over")
"""Events that tell which queues a message went to."""


def typed(entries: Iterable[Entry], began: float, known: Mapping[str, str]) -> Iterator[Event]:
    """The events that the entries stand for; times are counted from `began`.

    Short names that no entry tells are among the `known`, by the names of their connections.

    What happens to a delivery is the client's whose it is. Other events of the model are of the connection
    they name, or that of the publisher.

    Time does not run back: of frames that came together the first has the instant at which they came, the
    others that at which the broker turned to them.
    """
    aliases = dict(known)
    latest = began
    for instant, peer, *rest in entries:
        latest = max(latest, instant)
        time = latest - began
        if peer is None:
            event, facts = _happened(*rest)
            client = _client(facts)
            alias = aliases.get(client or "", "")
            yield ModelEvent(time, client, alias, event, facts)
            if event in _ROUTED:
                yield from _enqueued(time, client, alias, facts)
            continue
        name, alias, protocol = peer
        aliases[name] = alias
        if len(rest) == 1:
            for kind, channel, payload in frames_in(rest[0], protocol):
                yield FrameEvent(time, name, alias, "sent", kind, channel, payload, protocol)
        elif len(rest) == 2:
            yield ConnectionEvent(time, name, alias, *rest)
        elif len(rest) == 4:
            direction, kind, channel, payload = rest
            yield FrameEvent(time, name, alias, direction, kind, channel, payload, protocol)
        else:
            yield ModelEvent(time, name, alias, rest[0], _delivery(name, *rest[1:]))


def _client(facts: Mapping[str, object]) -> str | None:
    """The name of the connection that an event of the model has to do with."""
    name = facts.get("connection")
    return name if isinstance(name, str) else publisher_name(facts)


def _happened(first: Any, *rest: Any) -> tuple[str, dict[str, object]]:
    """An event of the model, and its facts."""
    if len(rest) == 1:
        return first, rest[0]
    if len(rest) == 2:
        outcome, virtual_host = rest
        return "published", {"message": first, "outcome": outcome, "virtual_host": virtual_host}
    return first, dict(zip(_ENDS[first], rest, strict=True))


def _delivery(
    connection: str,
    message: object,
    queue: str,
    consumer: str | None,
    channel: int,
    tag: int,
    redelivered: bool | None = None,
) -> dict[str, object]:
    facts: dict[str, object] = {
        "message": message,
        "queue": queue,
        "consumer": consumer,
        "connection": connection,
        "channel": channel,
        "delivery_tag": tag,
    }
    if redelivered is not None:
        facts["redelivered"] = bool(redelivered)
    return facts


def _enqueued(time: float, name: str | None, alias: str, facts: dict[str, Any]) -> Iterator[Event]:
    """One event for each queue that has taken the message."""
    outcome = facts.get("outcome")
    if getattr(outcome, "unconsumed", False):
        return
    refused = getattr(outcome, "refused", ())
    for queue in getattr(outcome, "queues", ()):
        if queue not in refused:
            about = {"message": facts.get("message"), "queue": queue.name}
            if "virtual_host" in facts:
                about["virtual_host"] = facts["virtual_host"]
            yield ModelEvent(time, name, alias, "enqueued", about)


def frames_in(octets: bytes, protocol: str = "0-9-1") -> Iterator[tuple[int, int, bytes]]:
    """Kind, channel and payload of each frame. Of one that is not all there, what there is of it."""
    for kind, channel, payload, size in protocol_named(protocol).framing.cut(octets):
        yield kind, channel, payload if len(payload) == size else Cut.of(payload, size)
