"""The tap: one interface through which every frame and every event of the broker passes.

An observer (trace) or an interceptor (faults) implements `Tap` and is installed as `BrokerState.tap`. Without
one, each call site costs one attribute test: measured against a broker without these tests, less than 2 % of
throughput; see "Tap" in docs/benchmarks-internal.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakeamqp.model.deliveries.delivery import Delivery

Settlement: TypeAlias = Literal["acked", "rejected", "requeued"]
"""How a delivery was settled: by the client, or because its channel, session or connection closed."""


class Tapped(Protocol):
    """A connection whose frames pass the tap."""

    name: str
    protocol: str
    """The version it speaks, such as "0-9-1" or "0-10"; see `fakeamqp.dialects`."""
    heard_at: float
    """The instant of its latest input, on the broker's clock."""

    @property
    def fault_port(self) -> object:
        """What faults may read of the connection and do to it."""


class Tap(Protocol):
    """Receives the frames of both directions, the events of connections and the events of the model.

    The calls come in the order of the events.
    """

    confirms_singly: bool
    """True if every publish must be confirmed by a frame of its own."""
    intercepts: bool
    """True if `received` may keep frames; otherwise a connection may process several frames at once."""

    def received(self, connection: Tapped, frame_type: int, channel: int, payload: bytes) -> bool | None:
        """A whole frame was received. True means that the tap keeps it and the connection must ignore it.

        `frame_type` is the type of a 0-9-x frame. For a 0-10 frame it is `flags << 8 | segment type`, both as
        in the frame's header: `0x0F01` is a whole command without header and body. Bit 16 is set if the track
        is not the usual one (0 for a control, 1 for all else).
        """

    def sending(self, connection: Tapped, octets: bytes) -> bytes:
        """Whole frames are about to be sent. Returns the bytes to send instead.

        In 0-10 the frames make up whole assemblies: a control, or a command with all of its header and body.
        """

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection was opened, closed, blocked, ...

        The first event is "connected"; its detail gives the numbers of the protocol header, such as
        "AMQP 0-0-9-1" or "AMQP 1-1-0-10".
        """

    def event(self, event: str, connection: Tapped | None, message: object, *values: object) -> None:
        """Something happened in the model.

        Args:
            event: its name in `fakeamqp.model.events.EVENTS`, which declares when it happens.
            connection: of the client that takes the message, for deliveries and their settlement.
            message: None for an event that is not about a message. For "dropped" the sequence of all messages
                that are dropped for this reason; the caller empties it afterwards.
            values: of the other fields, in the order of their declaration.
        """


def report_settled(
    tap: Tap, event: Settlement, deliveries: Iterable[Delivery], connection: Tapped, channel: int
) -> None:
    """Report that these deliveries are about to be settled in that way."""
    for delivery in deliveries:
        consumer = None if delivery.holder is None else delivery.holder.tag
        message, queue = delivery.queued.message, delivery.queue.name
        tap.event(event, connection, message, queue, consumer, channel, delivery.tag)
