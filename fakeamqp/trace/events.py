"""What can happen, as typed records. Bytes are decoded when somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from fakeamqp.trace import model_events
from fakeamqp.trace.parts import full_size

if TYPE_CHECKING:
    from fakeamqp.adapters import Part
    from fakeamqp.trace.reading import Reader

__all__ = ["ConnectionEvent", "Event", "FrameEvent", "ModelEvent", "protocol_header"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class Event:
    """Something that happened.

    Args:
        time: seconds on the broker's clock since the trace began.
        connection: the name of the connection it happened on, or None where no connection had to do with it.
        alias: a short name for that connection, the same through the whole trace; "" without one.
    """

    time: float
    connection: str | None
    alias: str

    @property
    def name(self) -> str:
        """What happened, in a word or two."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """What happened, in one line."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{self.time:.3f} {self.alias} {self.text}"


@dataclass(frozen=True)
class FrameEvent(Event):
    """A frame went over the wire.

    Args:
        direction: "received" by the broker, or "sent" by it.
        type: in 0-9-1 1 method, 2 content header, 3 content body, 8 heartbeat, in 0-9 also 9 request, 10
            response and others; in 0-10 the flags and the type of the segment, `flags << 8 | type`: see
            `fakeamqp.adapters`.
        channel: its number.
        payload: what it held; of a long one only the beginning.
        protocol: "0-8", "0-9", "0-9-1" or "0-10".
    """

    direction: Literal["received", "sent"]
    type: int
    channel: int
    payload: bytes
    protocol: str = "0-9-1"

    @property
    def size(self) -> int:
        """How many bytes the payload had."""
        return full_size(self.payload)

    @property
    def part(self) -> Part:
        """What it holds: "method" (in 0-10 a command or a control), "header", "body", "heartbeat", or "".

        A request or a response of 0-9 holds a method.
        """
        return self._reader.part(self.type, self.payload)

    @property
    def name(self) -> str:
        """The method's name, such as "basic.publish" or "message.transfer"; or what kind of frame it is."""
        return self._reader.name(self.type, self.payload)

    @property
    def method(self) -> Any:
        """The method, decoded: `protocols.framed.codec.method.Method`, in 0-10 `protocols.amqp_0_10.codec.packed.Packed`.

        None for other frames and for one that cannot be read.
        """
        return self._reader.method(self.type, self.payload)

    @property
    def properties(self) -> Any:
        """The properties in a content header: `BasicProperties`, in 0-9 also those of other classes, in 0-10
        `TransferProperties`.

        None for other frames and for one that cannot be read.
        """
        return self._reader.properties(self.type, self.payload)

    @property
    def text(self) -> str:
        """The frame with its arguments, in one line."""
        return self._reader.describe(self.type, self.redacted.payload)

    @property
    def redacted(self) -> FrameEvent:
        """The same without passwords: this is what is shown. `method` and `payload` have them."""
        payload = self._reader.redacted(self.type, self.payload, self.channel)
        return self if payload is self.payload else replace(self, payload=payload)

    @property
    def _reader(self) -> Reader:
        from fakeamqp.trace.reading import reader_of

        return reader_of(self.protocol)


@dataclass(frozen=True)
class ConnectionEvent(Event):
    """Something happened to a connection: `event` is "connected", "opened", "closed", "blocked", ...

    "connected" means that the client has sent its protocol header; `detail` says which, as "AMQP 0-0-9-1",
    and `protocol_header` what that is in bytes. One that sent something else was "refused".
    """

    event: str
    detail: str

    @property
    def name(self) -> str:
        """What happened."""
        return self.event

    @property
    def text(self) -> str:
        """What happened, and why or where."""
        return model_events.connection_text(self.event, self.connection or "", self.detail)

    @property
    def protocol_header(self) -> bytes:
        """The eight bytes that the client began with, of the event "connected"; else none."""
        return protocol_header(self.detail) if self.event == "connected" else b""


@dataclass(frozen=True)
class ModelEvent(Event):
    """Something became of a message or an entity. `facts` is what the broker said about it, by name.

    Of a message `event` is "published", "enqueued" (in one queue), "delivered" (to a consumer or a get),
    "acked", "rejected", "requeued", "expired", "dead-lettered", "delay over", "dropped" or "returned". Of
    other things it is "queue declared", "queue deleted", "queue purged", "exchange declared", "exchange
    deleted", "bound", "unbound", "consumer added" or "consumer ended"; of a 0-10 session "session attached",
    "session detached" or "session failed".

    `connection` is that of the client it happens through: of a delivery and what becomes of it, that of the
    consumer; of a message otherwise, that of its publisher.
    """

    event: str
    facts: Mapping[str, object]

    @property
    def name(self) -> str:
        """What happened."""
        return self.event

    @property
    def text(self) -> str:
        """What happened, in words."""
        return model_events.model_text(self.event, self.facts, self.alias)

    @property
    def queue(self) -> str | None:
        """The name of the one queue that it is about; None where there is none, or more than one."""
        return self._fact("queue", str)

    @property
    def consumer(self) -> str | None:
        """The tag of the consumer that it is about; None where there is none, as with a get."""
        return self._fact("consumer", str)

    @property
    def channel(self) -> int | None:
        """The number of the channel it happens on; None where that is not said."""
        return self._fact("channel", int)

    def _fact(self, name: str, kind: type[_T]) -> _T | None:
        value = self.facts.get(name)
        return value if isinstance(value, kind) else None


def protocol_header(detail: str) -> bytes:
    """The protocol header that a detail such as "AMQP 0-0-9-1" stands for; of any other text none."""
    letters, _, numbers = detail.partition(" ")
    parts = numbers.split("-")
    if (
        letters != "AMQP"
        or len(parts) != 4
        or not all(part.isdecimal() and int(part) < 256 for part in parts)
    ):
        return b""
    return b"AMQP" + bytes(int(part) for part in parts)
