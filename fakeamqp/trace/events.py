"""The events of a trace, as typed records, and their text. Frames are decoded when an attribute needs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from fakeamqp.dialects import default_protocol, dialect_named, protocol_header
from fakeamqp.trace.truncation import full_size, one_line, short

if TYPE_CHECKING:
    from fakeamqp.dialects import Dialect, Part

_T = TypeVar("_T")


@dataclass(frozen=True)
class Event:
    """Base class of all events.

    Args:
        time: seconds on the broker's clock since the trace began.
        connection: the name of the connection, or None for an event without one.
        alias: the short name of that connection, unique in the trace; "" without a connection.
        real_time: real seconds since the trace began, if the broker's clock is virtual or a wall clock;
            otherwise None. Events that differ in it alone are equal.
    """

    time: float
    connection: str | None
    alias: str
    real_time: float | None = field(default=None, kw_only=True, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The kind of event, such as "basic.publish" or "queue declared"."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The event in one line."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{self.time:.3f} {self.alias} {self.text}"


@dataclass(frozen=True)
class FrameEvent(Event):
    """A frame that the broker received or sent.

    Args:
        direction: "received" by the broker, or "sent" by it.
        type: in 0-9-1 1 method, 2 content header, 3 content body, 8 heartbeat, in 0-9 also 9 request, 10
            response and others; in 0-10 the flags and the type of the segment, `flags << 8 | type`: see
            `fakeamqp.dialects`.
        channel: its number.
        payload: of the frame; a long one is truncated.
        protocol: "0-8", "0-9", "0-9-1" or "0-10".
    """

    direction: Literal["received", "sent"]
    type: int
    channel: int
    payload: bytes
    protocol: str = field(default_factory=lambda: default_protocol().name)

    def __repr__(self) -> str:
        """Without passwords: see `redacted`."""
        shown = self.redacted
        values = ", ".join(f"{each.name}={getattr(shown, each.name)!r}" for each in fields(self) if each.repr)
        return f"{type(self).__name__}({values})"

    @property
    def size(self) -> int:
        """The size of the whole payload in bytes."""
        return full_size(self.payload)

    @property
    def part(self) -> Part:
        """The part that the frame is: "method", "header", "body", "heartbeat", or "" for any other.

        Commands and controls of 0-10 are methods, as are requests and responses of 0-9.
        """
        return self._reader.part(self.type, self.payload)

    @property
    def name(self) -> str:
        """The name of the method, such as "basic.publish" or "message.transfer", or of the kind of frame."""
        return self._reader.frame_name(self.type, self.payload)

    @property
    def method(self) -> Any:
        """The decoded method: a `Method` of the protocol's codec, in 0-10 a `Command` or `Control`.

        None for other frames, and for a frame that cannot be decoded.
        """
        return self._reader.method(self.type, self.payload)

    @property
    def properties(self) -> Any:
        """The decoded properties of a content header: `BasicProperties`, in 0-9 also the properties of other
        classes, in 0-10 `TransferProperties`.

        None for other frames, and for a frame that cannot be decoded.
        """
        return self._reader.properties(self.type, self.payload)

    @property
    def text(self) -> str:
        """The frame with its arguments, in one line."""
        return self._reader.describe(self.type, self.redacted.payload)

    @property
    def redacted(self) -> FrameEvent:
        """The event without passwords.

        `text`, `repr` and exports use it. `method` and `payload` have the passwords.
        """
        payload = self._reader.redacted(self.type, self.payload, self.channel)
        return self if payload is self.payload else replace(self, payload=payload)

    @property
    def _reader(self) -> Dialect:
        return dialect_named(self.protocol)


@dataclass(frozen=True)
class ConnectionEvent(Event):
    """A change of a connection: `event` is "connected", "opened", "closed", "blocked", ...

    "connected" means that the client has sent its protocol header. `detail` has its numbers, as
    "AMQP 0-0-9-1", and `protocol_header` its bytes. A client that sent anything else was "refused".
    """

    event: str
    detail: str

    @property
    def name(self) -> str:
        """The same as `event`."""
        return self.event

    @property
    def text(self) -> str:
        """The event and its detail."""
        detail = self.detail
        if self.event == "connected":
            detail = f"{self.connection or ''} {detail}".rstrip()
        return one_line(f"{self.event}: {detail}" if detail else self.event)

    @property
    def protocol_header(self) -> bytes:
        """The eight bytes of the client's protocol header for the event "connected", otherwise b""."""
        return protocol_header(self.detail) if self.event == "connected" else b""


@dataclass(frozen=True)
class ModelEvent(Event):
    """A change of a message or an entity of the broker. `facts` has the details by name.

    The events of messages are "published", "enqueued" (in one queue), "delivered" (to a consumer or a get),
    "acked", "rejected", "requeued", "expired", "dead-lettered", "delay over", "dropped" and "returned". The
    other events are "queue declared", "queue deleted", "queue purged", "exchange declared", "exchange
    deleted", "bound", "unbound", "consumer added" and "consumer ended"; of a 0-10 session "session attached",
    "session detached" and "session failed".

    `connection` is the connection of the consumer for deliveries and their settlement. For other events of a
    message it is the connection of the publisher.
    """

    event: str
    facts: Mapping[str, object]

    @property
    def name(self) -> str:
        """The same as `event`."""
        return self.event

    @property
    def text(self) -> str:
        """The event as a sentence."""
        return model_text(self.event, self.facts, self.alias)

    @property
    def queue(self) -> str | None:
        """The name of the queue; None if the event has none, or several."""
        return self._fact("queue", str)

    @property
    def consumer(self) -> str | None:
        """The tag of the consumer; None if there is none, as for a get."""
        return self._fact("consumer", str)

    @property
    def channel(self) -> int | None:
        """The number of the channel, or None."""
        return self._fact("channel", int)

    def _fact(self, name: str, kind: type[_T]) -> _T | None:
        value = self.facts.get(name)
        return value if isinstance(value, kind) else None


# --- text: facts are read by their names and attributes only -------------------------------------------

Facts: TypeAlias = Mapping[str, object]

_REASONS = {
    "rejected": "it was rejected",
    "expired": "it had expired",
    "maxlen": "the queue was full",
    "delivery_limit": "it was delivered too often",
    "deleted": "the queue was deleted",
    "unroutable": "no queue was there for it",
    "cycle": "it had died there before",
    "purged": "the queue was purged",
    "restart": "the broker restarted",
    "crash": "the broker crashed",
    "retention": "the stream had become too large or the message too old",
    "unstorable": "the stream cannot store it",
    "local": "it came over the connection that the queue is exclusive to",
    "replaced": "a newer message with the same value came",
}
_DEATHS = frozenset(("rejected", "expired", "maxlen", "delivery_limit"))


def model_text(event: str, facts: Facts, alias: str = "") -> str:
    """The line of a model event, by its name, its facts and the short name of the client's connection.

    An unknown event is shown with all of its facts.
    """
    try:
        text = _TEXTS.get(event)
        if text is not None:
            return one_line(text.format_map(_Words(facts, alias)))
        words = [event, *(f"{name}={_said(value)}" for name, value in facts.items())]
        return one_line(" ".join(words))
    except Exception as error:  # One broken fact must not prevent the timeline.
        return f"{one_line(event)} (its facts cannot be shown: {type(error).__name__})"


def publisher_name(facts: Facts) -> str | None:
    """The name of the connection that published the message an event is about."""
    name = getattr(getattr(facts.get("message"), "publisher", None), "name", None)
    return name if isinstance(name, str) else None


def reason_text(reason: str) -> str:
    """Why a message was dropped or dead-lettered, as the end of a sentence with "because"."""
    return _REASONS.get(reason, f"of {reason}")


class _Words(dict[str, str]):
    """What the texts of events are made of: the parts below, and facts as source code."""

    def __init__(self, facts: Facts, alias: str) -> None:
        self._facts = facts
        self._alias = alias

    def __missing__(self, name: str) -> str:
        part = _PARTS.get(name)
        return short(self._facts[name]) if part is None else part(self._facts, self._alias)


def _address(facts: Facts, _alias: str) -> str:
    message = facts["message"]
    exchange, key = getattr(message, "exchange", None), getattr(message, "routing_key", None)
    return f"exchange={short(exchange)} routing_key={short(key)}"


def _source(facts: Facts, _alias: str) -> str:
    queue = facts.get("queue")
    return "" if queue is None and facts.get("reason") is not None else f" from queue {short(queue)}"


def _why(facts: Facts, _alias: str) -> str:
    reason = str(facts.get("reason"))
    why = reason_text(reason)
    detail = str(facts.get("detail") or why)
    # `detail` tells why the message was not dead-lettered.
    return f"{why}, and {detail}" if reason in _DEATHS and not detail.startswith(why) else detail


def _end(facts: Facts, _alias: str) -> str:
    detail = facts.get("detail")
    return f": {detail}" if detail and detail != "the queue was deleted" else ""


def _on(facts: Facts, alias: str) -> str:
    """The connection and the channel, if known."""
    channel = facts.get("channel")
    words = [alias] if alias else []
    if channel is not None:
        words.append(f"channel {channel}")
    return f" on {' '.join(words)}" if words else ""


def _said(value: object) -> str:
    """Strings, numbers and collections as source code, any other value by its `str`."""
    return (
        short(value) if isinstance(value, (str, bytes, int, float, list, dict)) else one_line(str(value), 120)
    )


_PARTS: dict[str, Callable[[Facts, str], str]] = {
    "address": _address,
    "again": lambda facts, _: ", redelivered" if facts["redelivered"] else "",
    "because": lambda facts, _: f" because {facts['detail']}" if facts.get("detail") else "",
    "by": lambda facts, _: (
        "" if facts.get("consumer") is None else f" by consumer {short(facts['consumer'])}"
    ),
    "code": lambda facts, _: str(facts["code"]),
    "count": lambda facts, _: f"{facts['messages']} message{'' if facts['messages'] == 1 else 's'}",
    "delayer": lambda facts, _: f"exchange {short(facts.get('exchange'))}",
    "destination": lambda facts, _: (
        f"queue {short(facts['queue'])}" if "queue" in facts else f"exchange {short(facts['to'])}"
    ),
    "elsewhere": lambda facts, _: (
        "" if facts.get("virtual_host", "/") == "/" else f" in virtual host {short(facts['virtual_host'])}"
    ),
    "end": _end,
    "message": lambda facts, _: f"message {short(getattr(facts.get('message'), 'body', None))}",
    "on": _on,
    "outcome": lambda facts, _: str(facts["outcome"]),
    "source": _source,
    "taker": lambda facts, _: (
        "a get" if facts["consumer"] is None else f"consumer {short(facts['consumer'])}"
    ),
    "target": lambda facts, _: f" to exchange {short(facts['exchange'])}" if "exchange" in facts else "",
    "text": lambda facts, _: str(facts["text"]),
    "type": lambda facts, _: str(facts["type"]),
    "why": _why,
}
_TEXTS = {
    "published": "message with {address}{elsewhere}: {outcome}",
    "enqueued": "{message} enqueued in queue {queue}{elsewhere}",
    "delivered": "{message} delivered from queue {queue} to {taker}{on}{again}",
    "acked": "{message} of queue {queue} acked{by}{on}{because}",
    "rejected": "{message} of queue {queue} rejected{by}{on}{because}",
    "requeued": "{message} of queue {queue} requeued{by}{on}{because}",
    "delay over": "{message} published by {delayer}{elsewhere} after its delay: {outcome}",
    "expired": "{message} expired in queue {queue}{elsewhere}",
    "dead-lettered": "{message} dead-lettered{source}{target}{elsewhere} because {why}",
    "dropped": "{message} dropped{source}{elsewhere} because {why}",
    "returned": "{message} returned to its publisher: {code} {text}",
    "queue declared": "queue {queue} of type {type} declared{elsewhere}",
    "queue deleted": "queue {queue} deleted{elsewhere}{end}",
    "queue purged": "queue {queue} purged of {count}{elsewhere}",
    "exchange declared": "exchange {exchange} of type {type} declared{elsewhere}",
    "exchange deleted": "exchange {exchange} deleted{elsewhere}{end}",
    "bound": "{destination} bound to exchange {exchange} by routing key {routing_key}{elsewhere}",
    "unbound": "{destination} unbound from exchange {exchange} by routing key {routing_key}{elsewhere}",
    "consumer added": "consumer {consumer} added to queue {queue}{on}{elsewhere}",
    "consumer ended": "consumer {consumer} of queue {queue} ended{on}{elsewhere}",
    "session attached": "session {session} attached{on}{elsewhere}{end}",
    "session detached": "session {session} detached{on}{elsewhere}{end}",
    "session failed": "session {session} failed{on}{elsewhere}{end}",
}
