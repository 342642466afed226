"""The one place where everything that happens can be seen, and bent.

Whoever watches (trace) or interferes (faults) implements `Tap` and is installed as `BrokerState.tap`.
With nobody there the cost is one attribute test at each point: measured against a broker without any of
these tests, less than 2 % of throughput; see "Tap" in docs/benchmarks.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.message import Message
    from fakeamqp.model.outcome import Outcome
    from fakeamqp.model.queues.queue import DeathReason

__all__ = ["Settlement", "Tap", "Tapped"]

Settlement: TypeAlias = Literal["acked", "rejected", "requeued"]
"""What a client did with a message it was sent, or what its going away did."""


class Tapped(Protocol):
    """A connection whose frames pass the tap."""

    name: str
    protocol: str
    """What it speaks: "0-9-1" or "0-10"; see `fakeamqp.adapters`."""
    heard_at: float
    """When its latest bytes came, on the broker's clock."""

    @property
    def fault_port(self) -> object:
        """What faults may read of the connection and do to it."""


class Tap(Protocol):
    """Sees frames in both directions, what happens to connections, and what happens in the model.

    The calls come in the order in which things happen. What happens to every message has a method of its
    own, with positions instead of names, because that is told several times for each of them; all else goes
    to `model`.
    """

    confirms_singly: bool
    """Whether every publish is to be confirmed by a frame of its own."""

    def received(self, connection: Tapped, frame_type: int, channel: int, payload: bytes) -> bool | None:
        """One whole frame has come. True: the tap keeps it, and the connection goes on without it.

        `frame_type` is the type of a 0-9-x frame. Of a 0-10 frame it is `flags << 8 | segment type`, both as
        they stand in the frame's header: `0x0F01` is a whole command without header and body. Where the track
        is not 0 for a control and 1 for all else, bit 16 is set.
        """

    def sending(self, connection: Tapped, octets: bytes) -> bytes:
        """Whole frames are about to be sent; returns what is to be sent in their place.

        In 0-10 they make whole assemblies: a control, or a command with all of its header and body.
        """

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """A connection was opened, closed, blocked, ...

        First of all it is "connected", with the numbers of the protocol header for the detail, such as
        "AMQP 0-0-9-1" or "AMQP 1-1-0-10".
        """

    def published(self, message: Message, outcome: Outcome, virtual_host: str) -> None:
        """A message was published and routed; the queues in `outcome` get it next."""

    def refused(self, message: Message, outcome: Outcome, virtual_host: str) -> None:
        """Full queues have not taken what was published last: `outcome` takes the place of what was told."""

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

        `tag` is the delivery tag; in 0-10 the command id of the transfer, and `consumer` the destination of
        the subscription. The frames come behind.
        """

    def settled(
        self, event: Settlement, deliveries: Sequence[Delivery], connection: Tapped, channel: int
    ) -> None:
        """These deliveries are about to end in that way; the sequence is not changed afterwards."""

    def expired(self, message: Message, queue: str, virtual_host: str) -> None:
        """The time to live of a message is over. What becomes of it is told next."""

    def dead_lettered(
        self,
        message: Message,
        queue: str,
        reason: DeathReason,
        exchange: str,
        outcome: Outcome,
        virtual_host: str,
    ) -> None:
        """A message died in a queue, and that exchange passed it on to what `outcome` names."""

    def dropped(
        self,
        messages: Sequence[Message],
        queue: str | None,
        reason: DropReason,
        detail: str,
        virtual_host: str,
    ) -> None:
        """These are gone, all for one reason: `detail` says it in words. The sequence does not change.

        `queue` is the one that had them or did not take them, None where there was none.
        """

    def model(self, event: str, **facts: object) -> None:
        """Anything else: a message was returned, a delay is over, a queue was declared, ..."""
