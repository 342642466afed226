"""The events of a trace, as typed records. Frames are decoded when an attribute needs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fakeamqp.dialects import default_protocol
from fakeamqp.trace import event_text
from fakeamqp.trace.peers import protocol_header
from fakeamqp.trace.truncation import full_size

if TYPE_CHECKING:
    from fakeamqp.dialects import Dialect, Part

__all__ = ["ConnectionEvent", "Event", "FrameEvent", "ModelEvent"]

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
        from fakeamqp.dialects import dialect_named

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
        return event_text.connection_text(self.event, self.connection or "", self.detail)

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
        return event_text.model_text(self.event, self.facts, self.alias)

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
