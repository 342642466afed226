"""The state of class message on one channel: unacknowledged transfers, windows, references.

Transfers to the client are requests, whose response is the acknowledgement. A body that does not fit into a
frame is sent by reference: message.open, message.append for each piece, the transfer that names the
reference, message.close. The broker does not wait for the responses to these requests, and only the response
to the transfer has an effect.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from math import ceil
from typing import TYPE_CHECKING

from fakeamqp.model.deliveries.delivery import Ledger, accept_all, reject_all, release_all
from fakeamqp.model.deliveries.subscription import Credit
from fakeamqp.model.errors import ContentTooLarge, NotFound, PreconditionFailed, ResourceError
from fakeamqp.model.extensions import Extension
from fakeamqp.model.messages.message import UnfinishedMessage, UnfinishedMessages
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.property_mapping import encode_transfer, to_transfer
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9_1.basic import send_again

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.tap import Settlement
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

_BESIDES_PIECE = 12
"""Bytes of a message.append without the name of the reference and the piece."""
_MOST = 1000
"""References that may be open."""


class Messages:
    """Class message on one channel: a class state, and the subscriber of the channel's destinations."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self.channel = channel
        self.ledger: Ledger = Ledger()
        """The unacknowledged transfers, by the number of the request."""
        self.credit: Credit | None = None
        """The prefetch window that all destinations of the channel share, if one is set."""
        self.references: References = References(channel)
        self._names = count(1)
        """The names of the broker's references."""
        self._undecided: dict[Delivery, None] = {}
        """The deliveries settled in the open transaction."""

    @property
    def credits(self) -> tuple[Credit, ...]:
        """The prefetch windows of the channel's destinations: the channel's and the connection's."""
        shared = self.channel.connection.message_credit
        return tuple(each for each in (self.credit, shared) if each is not None)

    def share(self, credit: Credit) -> None:
        """Apply a new window to all destinations, and count their unacknowledged messages in it."""
        for subscription in self.channel.consumers.values():
            if subscription.subscriber is self and not subscription.no_ack:
                credits = (*subscription.credits, credit)
                subscription.depend_on((*subscription.limits, credit), credits)
                subscription.shares_window = subscription.queue.shares_windows
        for delivery in self.ledger.outstanding.values():
            if delivery.holder is not None:
                delivery.credits = (*delivery.credits, credit)
                credit.take(delivery.queued.message)

    # --- delivery -------------------------------------------------------------------------------------

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """See `model.subscription.Subscriber`."""
        self.transfer(subscription.tag, subscription.queue.name, message, redelivered, delivery)

    def cancelled(self, subscription: Subscription) -> None:
        """The queue was deleted; 0-9 has no method to report it."""
        self.channel.cancelled(subscription)

    def held_too_long(self, subscription: Subscription | None) -> None:
        self.channel.held_too_long(subscription)

    def transfer(
        self,
        destination: str,
        queue: str,
        message: Message,
        redelivered: bool,
        delivery: Delivery | None,
        *,
        consumer: bool = True,
    ) -> None:
        """Send one message of a queue to a destination, which is that of a consumer or of a message.get.

        The response settles the delivery, if there is one.
        """
        channel = self.channel
        connection = channel.connection
        requests = channel.class_state(Requests)
        values, table = to_transfer(message.properties)
        method = m.MessageTransfer(
            destination=destination,
            redelivered=redelivered,
            expiration=_expiration(message),
            exchange=message.exchange,
            routing_key=message.routing_key,
            **values,
        )
        octets = encode_transfer(method, table, Body(message.body))
        limit = connection.body_limit - requests.overhead
        by_reference = len(octets) > limit
        reference = b""
        if by_reference:
            reference = b"%d" % next(self._names)
            octets = encode_transfer(method, table, Body(reference, by_reference=True))
            if not channel.fits(len(octets) + requests.overhead, "a transfer"):
                if delivery is not None:
                    self.ledger.enter(requests.state.outgoing.send(()), delivery)
                return
            requests.request(m.MessageOpen(reference=reference))
            size = limit - _BESIDES_PIECE - len(reference)
            for start in range(0, len(message.body), size):
                piece = message.body[start : start + size]
                requests.request(m.MessageAppend(reference=reference, octets=piece))
        number = requests.state.outgoing.last + 1
        if delivery is not None:
            self.ledger.enter(number, delivery)
        channel.note_delivered(message, queue, destination if consumer else None, number, redelivered)
        requests.transfer(octets, self)
        if by_reference:
            requests.request(m.MessageClose(reference=reference))

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
        if self.channel.transaction is not None:
            self._undecided.update(dict.fromkeys(deliveries))
        self.channel.settle(partial(self._decided, act), event, deliveries)

    def _decided(self, act: Callable[[Sequence[Delivery]], None], deliveries: Sequence[Delivery]) -> None:
        for each in deliveries:
            self._undecided.pop(each, None)
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
        send_again(own, requeue=False)
        return others

    # --- interruption and closing ---------------------------------------------------------------------

    def interrupted(self) -> tuple[int, int] | None:
        """Return the limits of the channel's window."""
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


def _expiration(message: Message) -> int:
    """When the message expires, as a POSIX timestamp in seconds; 0 is never (message.transfer/expiration)."""
    if message.expiry is None or not message.published_at:
        return 0
    return int(message.published_at) + ceil(message.expiry)


# --- references --------------------------------------------------------------------------------------


class Checkpoints(Extension):
    """The checkpoints in one virtual host, by user and identifier, until the broker restarts."""

    def __init__(self, virtual_host: VirtualHost) -> None:
        super().__init__(virtual_host)
        self.messages: UnfinishedMessages[UnfinishedMessage] = UnfinishedMessages(virtual_host)

    def restarted(self) -> None:
        self.messages.clear()


@dataclass(eq=False)
class Reference:
    """An open reference: its current body, what to call with it when the reference is closed, and the
    identifiers of its checkpoints.
    """

    octets: bytearray = field(default_factory=bytearray)
    waiting: list[Callable[[bytes], None]] = field(default_factory=list)
    identifiers: dict[str, None] = field(default_factory=dict)


class References:
    """The client's open references on one channel: bodies that arrive in pieces, under names that it chooses.

    A reference exists from open or resume to close (message.open/scope). Its transfers are published and
    answered when it is closed, with all pieces appended by then (message.close/01). A checkpoint keeps the
    current body after the channel has closed, so that the same user can resume it.
    """

    __slots__ = ("_checkpoints", "_largest", "_open", "_size", "_user")

    def __init__(self, channel: Amqp09Channel) -> None:
        self._user = channel.user.name
        self._checkpoints = channel.virtual_host.extensions[Checkpoints].messages
        self._largest = channel.personality.largest_message
        self._open: dict[bytes, Reference] = {}
        self._size = 0

    def open(self, name: bytes) -> Reference:
        """Open a reference, which must not be open (message.open/reference-01), unless too many are open."""
        if name in self._open:
            raise PreconditionFailed(f"reference {_shown(name)} is open")
        if len(self._open) >= _MOST:
            raise ResourceError(f"more than {_MOST} references are open", ends_connection=False)
        reference = self._open[name] = Reference()
        return reference

    def find(self, name: bytes) -> Reference:
        """Return a reference, which must be open (message.append/reference-01 and similar rules)."""
        reference = self._open.get(name)
        if reference is None:
            raise NotFound(f"reference {_shown(name)} is not open")
        return reference

    def append(self, name: bytes, octets: bytes) -> None:
        """Append to a body (message.append/appends), unless all references together exceed the limit."""
        reference = self.find(name)
        size = self._size + len(octets)
        if self._largest and size > self._largest:
            text = f"open references of {size} bytes exceed configured max size {self._largest}"
            raise ContentTooLarge(text)
        reference.octets += octets
        self._size = size

    def close(self, name: bytes) -> Reference:
        """Close a reference, drop its checkpoints, and return it (message.close/reference-01)."""
        reference = self.find(name)
        del self._open[name]
        self._size -= len(reference.octets)
        for identifier in reference.identifiers:
            self._checkpoints.take(self._user, identifier)
        return reference

    def checkpoint(self, name: bytes, identifier: str) -> None:
        """Keep the current body (message.checkpoint/saves, message.checkpoint/reference-01)."""
        reference = self.find(name)
        reference.identifiers[identifier] = None
        self._checkpoints.keep(self._user, identifier, UnfinishedMessage(None, bytes(reference.octets)))

    def resume(self, name: bytes, identifier: str) -> int:
        """Open a reference with the body of the last checkpoint with this identifier, and return its size.

        Without a checkpoint it is empty (message.resume/offset). The checkpoint is kept until the reference
        is closed. Raises the errors of `open` and `append` (message.resume/reference-01).
        """
        reference = self.open(name)
        kept = self._checkpoints.take(self._user, identifier)
        reference.identifiers[identifier] = None
        if kept is not None:
            self._checkpoints.keep(self._user, identifier, kept)
            self.append(name, bytes(kept.octets))
        return len(reference.octets)


def _shown(name: bytes) -> str:
    return repr(name[:40].decode("utf-8", "replace"))
