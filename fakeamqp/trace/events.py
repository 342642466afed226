"""What can happen, as typed records. Octets are decoded when somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from fakeamqp.trace import model_events
from fakeamqp.trace.parts import full_size

if TYPE_CHECKING:
    from fakeamqp.wire.amqp_0_9_1.properties import BasicProperties
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["ConnectionEvent", "Event", "FrameEvent", "ModelEvent"]

_T = TypeVar("_T")

_METHOD = 1
_CONTENT_HEADER = 2


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
        type: 1 method, 2 content header, 3 content body, 8 heartbeat.
        channel: its number.
        payload: what it held; of a long one only the beginning.
    """

    direction: Literal["received", "sent"]
    type: int
    channel: int
    payload: bytes

    @property
    def size(self) -> int:
        """How many octets the payload had."""
        return full_size(self.payload)

    @property
    def name(self) -> str:
        """The method's name, or "content header", "content body", "heartbeat"."""
        from fakeamqp.trace.amqp_0_9_1 import frame_name

        return frame_name(self.type, self.payload)

    @property
    def method(self) -> Method | None:
        """The method, decoded; None for other frames and for one that cannot be read."""
        from fakeamqp.trace.amqp_0_9_1 import decode_method

        return decode_method(self.payload) if self.type == _METHOD else None

    @property
    def properties(self) -> BasicProperties | None:
        """The properties in a content header; None for other frames and for one that cannot be read."""
        from fakeamqp.trace.amqp_0_9_1 import decode_header

        header = decode_header(self.payload) if self.type == _CONTENT_HEADER else None
        return None if header is None else header[1]

    @property
    def text(self) -> str:
        """The frame with its arguments, in one line."""
        from fakeamqp.trace.amqp_0_9_1 import describe

        return describe(self.type, self.redacted.payload)

    @property
    def redacted(self) -> FrameEvent:
        """The same without passwords: this is what is shown. `method` and `payload` have them."""
        from fakeamqp.trace.secrets import redacted

        payload = redacted(self.type, self.payload, self.channel)
        return self if payload is self.payload else replace(self, payload=payload)


@dataclass(frozen=True)
class ConnectionEvent(Event):
    """Something happened to a connection: `event` is "connected", "opened", "closed", "blocked", ...

    "connected" means that the client has sent its protocol header; `detail` says which, as "AMQP 0-0-9-1",
    and `protocol_header` what that is in octets. One that sent something else was "refused".
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
        """The eight octets that the client began with, of the event "connected"; else none."""
        letters, _, numbers = self.detail.partition(" ")
        parts = numbers.split("-")
        if self.event != "connected" or letters != "AMQP" or len(parts) != 4:
            return b""
        return b"AMQP" + bytes(int(part) for part in parts)


@dataclass(frozen=True)
class ModelEvent(Event):
    """Something became of a message or an entity. `facts` is what the broker said about it, by name.

    Of a message `event` is "published", "enqueued" (in one queue), "delivered" (to a consumer or a get),
    "acked", "rejected", "requeued", "expired", "dead-lettered", "delay over", "dropped" or "returned". Of
    other things it is "queue declared", "queue deleted", "queue purged", "exchange declared", "exchange
    deleted", "bound", "unbound", "consumer added" or "consumer ended".

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
