"""The tap: one interface through which every frame and every event of the broker passes.

An observer (trace) or an interceptor (faults) implements `Tap` and is installed as `BrokerState.tap`. Without
one, each call site costs one attribute test: measured against a broker without these tests, less than 2 % of
throughput; see "Tap" in docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.message_outcomes import DropReason
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.model.queues.queue import DeathReason

__all__ = ["Settlement", "Tap", "Tapped"]

Settlement: TypeAlias = Literal["acked", "rejected", "requeued"]
"""How a delivery was settled: by the client, or because its channel, session or connection closed."""


class Tapped(Protocol):
    """A connection whose frames pass the tap."""

    name: str
    protocol: str
    """The version it speaks, such as "0-9-1" or "0-10"; see `fakeamqp.adapters`."""
    heard_at: float
    """The instant of its latest input, on the broker's clock."""

    @property
    def fault_port(self) -> object:
        """What faults may read of the connection and do to it."""


class Tap(Protocol):
    """Receives the frames of both directions, the events of connections and the events of the model.

    The calls come in the order of the events. Events that occur several times for each message have methods
    of their own, with positional arguments for speed; all other events go to `model`.
    """

    confirms_singly: bool
    """True if every publish must be confirmed by a frame of its own."""

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

    def published(self, message: Message, outcome: Outcome, virtual_host: str) -> None:
        """A message was published and routed; the queues in `outcome` get it next."""

    def refused(self, message: Message, outcome: Outcome, virtual_host: str) -> None:
        """Full queues refused the message: `outcome` replaces the one passed to `published`."""

    def delivered(
        self,
        message: Message,
        queue: str,
        consumer: str | None,
        connection: Tapped,
        channel: int,
        tag: int,
        redelivered: bool,
    ) -> None:
        """A message goes from a queue to a client: to the consumer with that tag, or (None) to a get.

        `tag` is the delivery tag; in 0-10 it is the command id of the transfer, and `consumer` is the
        destination of the subscription. The frames follow.
        """

    def settled(
        self, event: Settlement, deliveries: Sequence[Delivery], connection: Tapped, channel: int
    ) -> None:
        """These deliveries are about to be settled in that way. The sequence may be emptied later."""

    def expired(self, message: Message, queue: str, virtual_host: str) -> None:
        """The time to live of a message is over. `dead_lettered` or `dropped` is called next."""

    def dead_lettered(
        self,
        message: Message,
        queue: str,
        reason: DeathReason,
        exchange: str,
        outcome: Outcome,
        virtual_host: str,
    ) -> None:
        """A message was dead-lettered from a queue; the exchange routed it as `outcome` says."""

    def dropped(
        self,
        messages: Sequence[Message],
        queue: str | None,
        reason: DropReason,
        detail: str,
        virtual_host: str,
    ) -> None:
        """These messages were dropped, all for one reason, which `detail` explains.

        `queue` is the one that held or refused them, None where there was none. The caller empties the
        sequence afterwards; an implementation keeps only what it takes out.
        """

    def model(self, event: str, **facts: object) -> None:
        """Any other event: a message was returned, a delay is over, a queue was declared, ..."""
