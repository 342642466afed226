"""The entries that a recorder keeps, and the events that they stand for.

Each kind of entry is a named tuple. The recorder keeps a *packed* entry, a plain tuple of the name of the
kind and its values: `("Frame", instant, peer, "sent", 1, 0, payload)`. A plain tuple takes a fifth of the
time that a named tuple takes (0.1 and 0.5 microseconds on CPython 3.11), and most entries are dropped
before a trace is read. The garbage collector also stops tracking plain tuples of text, numbers and bytes,
so entries refer to kinds by name, and peers are plain tuples. `unpack` makes the named tuple.

Instants are on the broker's clock, in seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from fakeamqp.trace.cutting import frames_in
from fakeamqp.trace.event_text import publisher_name
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.peers import Peer

__all__ = [
    "ConnectionChange",
    "DeadLettered",
    "Delivered",
    "Dropped",
    "Entry",
    "Expired",
    "Frame",
    "ModelChange",
    "Packed",
    "Published",
    "SentFrames",
    "Settled",
    "events_of",
    "unpack",
]

Packed: TypeAlias = "tuple[Any, ...]"
"""The name of the kind of an entry, and its values."""
Aliases: TypeAlias = MutableMapping[str, str]
"""Short names of connections, by their names."""
Facts: TypeAlias = "dict[str, Any]"


class Entry(Protocol):
    """What all kinds of entries have."""

    @property
    def instant(self) -> float:
        """When it happened."""

    def events(self, time: float, aliases: Aliases) -> Iterable[Event]:
        """The events that the entry stands for.

        Args:
            time: of these events, in seconds since the trace began.
            aliases: the short names known so far. An entry of a connection adds its own.
        """


# --- frames and connections -----------------------------------------------------------------------------


class Frame(NamedTuple):
    """One frame."""

    instant: float
    peer: Peer
    direction: Literal["received", "sent"]
    type: int
    channel: int
    payload: bytes

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        name, alias, protocol = _introduced(self.peer, aliases)
        yield FrameEvent(time, name, alias, self.direction, self.type, self.channel, self.payload, protocol)


class SentFrames(NamedTuple):
    """Whole frames that the broker sent in one piece."""

    instant: float
    peer: Peer
    octets: bytes

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        name, alias, protocol = _introduced(self.peer, aliases)
        for kind, channel, payload in frames_in(self.octets, protocol):
            yield FrameEvent(time, name, alias, "sent", kind, channel, payload, protocol)


class ConnectionChange(NamedTuple):
    """A connection was opened, closed, blocked, ..."""

    instant: float
    peer: Peer
    event: str
    detail: str

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        name, alias, _ = _introduced(self.peer, aliases)
        yield ConnectionEvent(time, name, alias, self.event, self.detail)


# --- deliveries -----------------------------------------------------------------------------------------


class Delivered(NamedTuple):
    """A message went from a queue to a client; `consumer` is None for a get."""

    instant: float
    peer: Peer
    message: Any
    queue: str
    consumer: str | None
    channel: int
    delivery_tag: int
    redelivered: bool

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        facts = {**_delivery_facts(self), "redelivered": bool(self.redelivered)}
        yield _delivery_event(time, self.peer, aliases, "delivered", facts)


class Settled(NamedTuple):
    """A delivery was settled: `event` is "acked", "rejected" or "requeued"."""

    instant: float
    peer: Peer
    event: str
    message: Any
    queue: str
    consumer: str | None
    channel: int
    delivery_tag: int

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        yield _delivery_event(time, self.peer, aliases, self.event, _delivery_facts(self))


# --- messages and all else of the model -----------------------------------------------------------------


class Published(NamedTuple):
    """A message was published and routed."""

    instant: float
    message: Any
    outcome: Any
    virtual_host: str

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        return _routed_events(time, aliases, "published", _facts(self))


class Expired(NamedTuple):
    """The time to live of a message ended in a queue."""

    instant: float
    message: Any
    queue: str
    virtual_host: str

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        yield _model_event(time, aliases, "expired", _facts(self))


class DeadLettered(NamedTuple):
    """A message left a queue as a dead letter, and an exchange routed it."""

    instant: float
    message: Any
    queue: str
    reason: str
    exchange: str
    outcome: Any
    virtual_host: str

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        return _routed_events(time, aliases, "dead-lettered", _facts(self))


class Dropped(NamedTuple):
    """A message was discarded; `queue` is None if it was in no queue."""

    instant: float
    message: Any
    queue: str | None
    reason: str
    detail: str
    virtual_host: str

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        yield _model_event(time, aliases, "dropped", _facts(self))


class ModelChange(NamedTuple):
    """Any other event of the model."""

    instant: float
    event: str
    facts: Facts

    def events(self, time: float, aliases: Aliases) -> Iterator[Event]:
        if self.event == "delay over":
            return _routed_events(time, aliases, self.event, self.facts)
        return iter((_model_event(time, aliases, self.event, self.facts),))


_KINDS: dict[str, Callable[..., Entry]] = {
    kind.__name__: kind
    for kind in (
        Frame,
        SentFrames,
        ConnectionChange,
        Delivered,
        Settled,
        Published,
        Expired,
        DeadLettered,
        Dropped,
        ModelChange,
    )
}


# --- from entries to events -----------------------------------------------------------------------------


def unpack(packed: Packed) -> Entry:
    """The entry as a named tuple."""
    kind, *values = packed
    return _KINDS[kind](*values)


def events_of(
    entries: Iterable[Packed],
    began: float,
    aliases: Mapping[str, str],
    real_times: Iterable[float] = (),
) -> Iterator[Event]:
    """The events that packed entries stand for.

    Time never runs backwards. Of frames that arrived together, the first has the instant of their arrival,
    the others have the instants at which the broker handled them.

    Args:
        entries: in order.
        began: the instant that times are counted from.
        aliases: short names of connections, for those that no entry introduces.
        real_times: of the entries, since the same instant; none if time is real.
    """
    times = iter(real_times)
    known = dict(aliases)
    latest = began
    for packed in entries:
        entry = unpack(packed)
        latest = max(latest, entry.instant)
        real = next(times, None)
        events = entry.events(latest - began, known)
        yield from events if real is None else (replace(event, real_time=real) for event in events)


def _introduced(peer: Peer, aliases: Aliases) -> Peer:
    """The peer, whose short name is known from here on."""
    name, alias, _ = peer
    aliases[name] = alias
    return peer


def _facts(entry: Published | Expired | DeadLettered | Dropped) -> Facts:
    """The values of an entry by their names, without the instant."""
    facts = entry._asdict()
    del facts["instant"]
    return facts


def _delivery_facts(entry: Delivered | Settled) -> Facts:
    return {
        "message": entry.message,
        "queue": entry.queue,
        "consumer": entry.consumer,
        "connection": entry.peer[0],
        "channel": entry.channel,
        "delivery_tag": entry.delivery_tag,
    }


def _delivery_event(time: float, peer: Peer, aliases: Aliases, event: str, facts: Facts) -> ModelEvent:
    """An event of the connection of the consumer."""
    name, alias, _ = _introduced(peer, aliases)
    return ModelEvent(time, name, alias, event, facts)


def _model_event(time: float, aliases: Aliases, event: str, facts: Facts) -> ModelEvent:
    """An event of the connection that the facts name, or else of the publisher's."""
    name = facts.get("connection")
    connection = name if isinstance(name, str) else publisher_name(facts)
    return ModelEvent(time, connection, aliases.get(connection or "", ""), event, facts)


def _routed_events(time: float, aliases: Aliases, event: str, facts: Facts) -> Iterator[Event]:
    """An event about a message that was routed, and "enqueued" for each queue that accepted it."""
    routed = _model_event(time, aliases, event, facts)
    yield routed
    outcome = facts.get("outcome")
    if getattr(outcome, "unconsumed", False):
        return
    # Queues that it reaches late have an event of their own.
    others = (*getattr(outcome, "refused", ()), *getattr(outcome, "late", ()))
    for queue in getattr(outcome, "queues", ()):
        if queue not in others:
            enqueued = {"message": facts.get("message"), "queue": queue.name}
            if "virtual_host" in facts:
                enqueued["virtual_host"] = facts["virtual_host"]
            yield ModelEvent(time, routed.connection, routed.alias, "enqueued", enqueued)
