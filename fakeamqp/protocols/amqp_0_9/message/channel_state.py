"""The state of class message on one channel: unacknowledged transfers, windows, references."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.credit import Credit
from fakeamqp.model.deliveries.delivery import Ledger, accept_all, reject_all, release_all
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.message import delivering
from fakeamqp.protocols.amqp_0_9.message.references import Checkpoints, References

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.tap import Settlement
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["Destination", "Messages"]


class Messages:
    """Class message on one channel: a class state, and the requester of transfers."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self.channel = channel
        self.ledger: Ledger = Ledger()
        """The unacknowledged transfers, by the number of the request."""
        self.credit: Credit | None = None
        """The prefetch window that all destinations of the channel share, if one is set."""
        self.references: References = References(
            channel.user.name,
            channel.virtual_host.extensions[Checkpoints].messages,
            channel.personality.largest_message,
        )
        self._names = count(1)
        self._undecided: dict[Delivery, None] = {}
        """The deliveries settled in the open transaction."""

    def next_reference(self) -> bytes:
        """Return a new name for a reference of the broker."""
        return b"%d" % next(self._names)

    @property
    def credits(self) -> tuple[Credit, ...]:
        """The prefetch windows of the channel's destinations: the channel's and the connection's."""
        shared = self.channel.connection.message_credit
        return tuple(each for each in (self.credit, shared) if each is not None)

    @property
    def subscriptions(self) -> list[Subscription]:
        """The subscriptions of the channel's destinations."""
        consumers = self.channel.consumers.values()
        return [each for each in consumers if isinstance(each.subscriber, Destination)]

    # --- settlement -----------------------------------------------------------------------------------

    def answered(self, requests: Sequence[int], reply: Method) -> None:
        """Settle the transfers that the client has answered (message.transfer/ack-by-response).

        Answers to transfers without acknowledgement, or requeued by message.recover, have no effect.
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
        """Settle deliveries, now or when the channel's transaction is committed."""
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
        """Redeliver this class's deliveries after a rollback; return those of other classes.

        The client cannot answer a request twice. So the messages are redelivered in new requests, if possible
        to the same destination. In other classes they only count as unacknowledged again.
        """
        own: list[Delivery] = []
        others: list[Delivery] = []
        for each in deliveries:
            (own if each in self._undecided else others).append(each)
        self._undecided.clear()
        self.channel.note_settled("requeued", own)
        release_all([each for each in own if not each.queue.redeliver(each)])
        return others

    # --- interruption and closing ---------------------------------------------------------------------

    def interrupted(self) -> tuple[int, int] | None:
        """Return the limits of the channel's window. See `resume.Resumable`, also for `resumed`."""
        return None if self.credit is None else (self.credit.message_limit, self.credit.byte_limit)

    def resumed(self, kept: tuple[int, int]) -> None:
        """Set a window with these limits."""
        self.credit = Credit(*kept)

    def released(self) -> None:
        """Requeue unacknowledged messages, because the channel is closing (channel.close/cancels-consumers).

        The bodies of references are dropped, except for their checkpoints (message.open/channel-close).
        """
        outstanding = self.ledger.take_all()
        self.channel.note_settled("requeued", outstanding)
        release_all(outstanding, ending="lost")


class Destination:
    """The destination of a consumer's messages. See `model.subscription.Subscriber`."""

    __slots__ = ("_messages", "name")

    def __init__(self, messages: Messages, name: str) -> None:
        self._messages = messages
        self.name: str = name

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """Send the message to the destination."""
        delivering.transfer(
            self._messages, self.name, subscription.queue.name, message, redelivered, delivery
        )

    def cancelled(self, subscription: Subscription) -> None:
        """The queue was deleted; 0-9 has no method to report it."""
        self._messages.channel.cancelled(subscription)

    def held_too_long(self, subscription: Subscription | None) -> None:
        """An acknowledgement timed out."""
        self._messages.channel.held_too_long(subscription)
