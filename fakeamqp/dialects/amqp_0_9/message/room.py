"""What class message keeps of one channel: what is unacknowledged, windows, and references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from fakeamqp.dialects.amqp_0_9.message.references import References
from fakeamqp.model.delivery import Ledger, accept_all, reject_all, release_all
from fakeamqp.wire.amqp_0_9 import methods as m

if TYPE_CHECKING:
    from fakeamqp.dialects.amqp_0_9.channel_end import ChannelEnd
    from fakeamqp.model.credit import Credit
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.tap import Settlement
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["Messages"]


class Messages:
    """Class message in one channel. It is a room of the channel's, and sends the requests with transfers."""

    def __init__(self, channel: ChannelEnd) -> None:
        self.channel = channel
        self.ledger = Ledger()
        """What was transferred and is not acknowledged, by the number of the request."""
        self.credit: Credit | None = None
        """The window that all destinations of the channel share, where one was asked for."""
        self.references = References(
            channel.user.name, channel.virtual_host.checkpoints, channel.personality.largest_message
        )
        self._names = count(1)

    def next_reference(self) -> bytes:
        """A name for a reference of the broker's."""
        return b"%d" % next(self._names)

    @property
    def credits(self) -> tuple[Credit, ...]:
        """The windows that hold for the destinations of the channel: its own, and that of the connection."""
        shared = self.channel.endpoint.message_credit
        return tuple(each for each in (self.credit, shared) if each is not None)

    # --- settling -------------------------------------------------------------------------------------

    def answered(self, requests: Sequence[int], reply: Method) -> None:
        """The client has answered transfers: that acknowledges them (message.transfer/ack-by-response).

        Those that nobody is to acknowledge, or that went back by message.recover, are not there any more.
        """
        outstanding = self.ledger.outstanding
        deliveries = [outstanding.pop(each) for each in requests if each in outstanding]
        if not deliveries:
            return
        if isinstance(reply, m.MessageReject):
            self._settle(reject_all, "rejected", deliveries)
        else:
            self._settle(accept_all, "acked", deliveries)

    def _settle(
        self, act: Callable[[Sequence[Delivery]], None], event: Settlement, deliveries: Sequence[Delivery]
    ) -> None:
        """Now, or when the channel's transaction is committed."""
        carry_out = partial(self._carry_out, act, event)
        transaction = self.channel.transaction
        if transaction is not None:
            transaction.settle(carry_out, deliveries)
        else:
            carry_out(deliveries)

    def _carry_out(
        self,
        act: Callable[[Sequence[Delivery]], None],
        event: Settlement,
        deliveries: Sequence[Delivery],
    ) -> None:
        self.channel.note_settled(event, deliveries)
        act(deliveries)

    # --- the end --------------------------------------------------------------------------------------

    def released(self) -> None:
        """The channel is over: what was not acknowledged returns (channel.close/cancels-consumers).

        What was appended to references is dropped, but for what was checkpointed (message.open/channel-close).
        """
        outstanding = self.ledger.take_all()
        self.channel.note_settled("requeued", outstanding)
        release_all(outstanding, ending="lost")
