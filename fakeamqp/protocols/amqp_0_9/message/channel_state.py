"""What class message keeps of one channel: what is unacknowledged, windows, and references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from fakeamqp.model.credit import Credit
from fakeamqp.model.delivery import Ledger, accept_all, reject_all, release_all
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.message import delivering
from fakeamqp.protocols.amqp_0_9.message.references import Checkpoints, References

if TYPE_CHECKING:
    from fakeamqp.model.delivery import Delivery
    from fakeamqp.model.message import Message
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.tap import Settlement
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.framed.codec.method import Method

__all__ = ["Destination", "Messages"]


class Messages:
    """Class message in one channel. It is a class state of the channel, and sends the requests with transfers."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self.channel = channel
        self.ledger = Ledger()
        """What was transferred and is not acknowledged, by the number of the request."""
        self.credit: Credit | None = None
        """The window that all destinations of the channel share, where one was asked for."""
        self.references = References(
            channel.user.name,
            channel.virtual_host.extensions[Checkpoints].messages,
            channel.personality.largest_message,
        )
        self._names = count(1)
        self._undecided: dict[Delivery, None] = {}
        """What was acknowledged in a transaction that is under way."""

    def next_reference(self) -> bytes:
        """A name for a reference of the broker's."""
        return b"%d" % next(self._names)

    @property
    def credits(self) -> tuple[Credit, ...]:
        """The windows that hold for the destinations of the channel: its own, and that of the connection."""
        shared = self.channel.connection.message_credit
        return tuple(each for each in (self.credit, shared) if each is not None)

    @property
    def subscriptions(self) -> list[Subscription]:
        """Those of the destinations of the channel."""
        consumers = self.channel.consumers.values()
        return [each for each in consumers if isinstance(each.subscriber, Destination)]

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
            self._undecided.update(dict.fromkeys(deliveries))
            transaction.settle(carry_out, deliveries)
        else:
            carry_out(deliveries)

    def _carry_out(
        self,
        act: Callable[[Sequence[Delivery]], None],
        event: Settlement,
        deliveries: Sequence[Delivery],
    ) -> None:
        for each in deliveries:
            self._undecided.pop(each, None)
        self.channel.note_settled(event, deliveries)
        act(deliveries)

    def put_back(self, deliveries: Iterable[Delivery]) -> list[Delivery]:
        """A transaction is rolled back that would have settled these; returns what is not of here.

        An answer cannot be given twice. So what was answered comes again, to where it was sent if it can, and
        not when somebody asks for it as in other classes.
        """
        own: list[Delivery] = []
        others: list[Delivery] = []
        for each in deliveries:
            (own if each in self._undecided else others).append(each)
        self._undecided.clear()
        self.channel.note_settled("requeued", own)
        release_all([each for each in own if not each.queue.redeliver(each)])
        return others

    # --- the end --------------------------------------------------------------------------------------

    def interrupted(self) -> tuple[int, int] | None:
        """The limits of the channel's window. See `resume.Resumable`, here and below."""
        return None if self.credit is None else (self.credit.message_limit, self.credit.byte_limit)

    def resumed(self, kept: tuple[int, int]) -> None:
        """Have a window with these limits."""
        self.credit = Credit(*kept)

    def released(self) -> None:
        """The channel is over: what was not acknowledged returns (channel.close/cancels-consumers).

        What was appended to references is dropped, but for what was checkpointed
        (message.open/channel-close).
        """
        outstanding = self.ledger.take_all()
        self.channel.note_settled("requeued", outstanding)
        release_all(outstanding, ending="lost")


class Destination:
    """Where a consumer has its messages sent. See `model.subscription.Subscriber`."""

    __slots__ = ("_messages", "name")

    def __init__(self, messages: Messages, name: str) -> None:
        self._messages = messages
        self.name = name

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """Send the message there."""
        delivering.transfer(
            self._messages, self.name, subscription.queue.name, message, redelivered, delivery
        )

    def cancelled(self, subscription: Subscription) -> None:
        """The queue has gone; 0-9 has no way to say so."""
        self._messages.channel.cancelled(subscription)

    def held_too_long(self, subscription: Subscription | None) -> None:
        """A message was not acknowledged in time."""
        self._messages.channel.held_too_long(subscription)
