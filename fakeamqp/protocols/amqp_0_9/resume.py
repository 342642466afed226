"""channel.resume: a channel whose connection was lost continues on another connection of the same user.

The resumed channel has the settings of the interrupted one: current queue, prefetch window, flow, transaction
mode, consumers, and the class states. Its unacknowledged messages were requeued and its access tickets have
expired, as for every channel that closes.

A channel that was closed, or whose connection was closed, cannot be resumed. Neither can a channel with work
in a transaction: the transaction was rolled back, and the client must notice that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fakeamqp.model.deliveries.subscription import Credit
from fakeamqp.model.errors import ModelError, NotAllowed, NotFound
from fakeamqp.model.extensions import Extension
from fakeamqp.model.transactions import Transaction
from fakeamqp.protocols.amqp_0_9 import message, out_of_band
from fakeamqp.protocols.amqp_0_9.access import Tickets
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.file import FileConsumer
from fakeamqp.protocols.amqp_0_9.message_state import Messages
from fakeamqp.protocols.amqp_0_9.stream import StreamConsumer
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.amqp_0_9.registrations import OutOfBandTransport
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection

    Consume: TypeAlias = m.BasicConsume | m.FileConsume | m.StreamConsume | m.MessageConsume

_MAX_CHANNELS = 100


@dataclass(frozen=True)
class InterruptedChannel:
    """The kept state of a channel. `consumers` are pairs of tag and the method that restarts the consumer."""

    current_queue: str | None
    window: tuple[int, int]
    prefetch: tuple[int, int]
    flowing: bool
    mode: Literal["confirm", "tx", "dtx"] | None
    has_worked: bool
    transport: OutOfBandTransport | None
    consumers: tuple[tuple[str, Consume], ...]
    class_states: tuple[tuple[type[Any], object], ...]


class InterruptedChannels(Extension):
    """The interrupted channels of one virtual host, by user and channel-id.

    The latest hundred are kept, until the broker restarts.
    """

    def __init__(self, virtual_host: VirtualHost) -> None:
        super().__init__(virtual_host)
        self._kept: dict[tuple[str, bytes], InterruptedChannel] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, user: str, channel_id: bytes, channel: InterruptedChannel) -> None:
        """Add a channel."""
        self._kept[user, channel_id] = channel
        if len(self._kept) > _MAX_CHANNELS:
            del self._kept[next(iter(self._kept))]

    def take(self, user: str, channel_id: bytes) -> InterruptedChannel | None:
        """Remove and return a channel; None if it is unknown."""
        return self._kept.pop((user, channel_id), None)

    def restarted(self) -> None:
        self._kept.clear()


def keep(connection: Amqp09Connection) -> None:
    """Keep the open channels of a connection whose transport is lost; a closed connection has none."""
    if m.ChannelResume.INDEX not in connection.METHODS:
        return  # 0-8 has no channel.resume.
    for channel in connection.open_channels:
        if not _in_transaction(channel):
            _store(channel).keep(channel.user.name, channel.channel_id, _snapshot(channel))


def _in_transaction(channel: Amqp09Channel) -> bool:
    """True if closing the channel rolls work back; in dtx mode an open branch is enough."""
    transaction = channel.transaction
    if transaction is None:
        return False
    return channel.mode == "dtx" or bool(transaction.publishes or transaction.deliveries)


def _store(channel: Amqp09Channel) -> InterruptedChannels:
    return channel.virtual_host.extensions[InterruptedChannels]


def _snapshot(channel: Amqp09Channel) -> InterruptedChannel:
    credit = channel.credit or Credit()
    class_states = (
        (kind, state.interrupted())
        for kind, state in channel.class_states.items()
        if hasattr(state, "interrupted")
    )
    return InterruptedChannel(
        channel.current_queue,
        (credit.message_limit, credit.byte_limit),
        channel.prefetch,
        channel.gate.open,
        channel.mode,
        channel.has_worked,
        channel.transport,
        tuple((tag, _consume_method(each)) for tag, each in channel.consumers.items()),
        tuple((kind, kept) for kind, kept in class_states if kept is not None),
    )


def _consume_method(subscription: Subscription) -> Consume:
    """Return the method that starts the same consumer, with no_wait if the method has it."""
    queue, no_ack, filter_ = subscription.queue.name, subscription.no_ack, dict(subscription.arguments)
    no_local, exclusive, tag = subscription.no_local, subscription.exclusive, subscription.tag
    subscriber = subscription.subscriber
    if isinstance(subscriber, Messages):
        return m.MessageConsume(0, queue, tag, no_local, no_ack, exclusive, filter_)
    if isinstance(subscriber, FileConsumer):
        return m.FileConsume(0, queue, tag, no_local, not subscriber.windowed, exclusive, True, filter_)
    if isinstance(subscriber, StreamConsumer):
        return m.StreamConsume(0, queue, tag, no_local, exclusive, True, filter_)
    return m.BasicConsume(0, queue, tag, no_local, no_ack, exclusive, True, filter_)


def resume(channel: Amqp09Channel, channel_id: bytes) -> None:
    """Restore the interrupted channel with this id on a new channel, and answer (channel.resume/resumes).

    A consumer is not restored if its queue was deleted, if the user may not read it any more, or if another
    consumer has exclusive access.

    Raises:
        NotFound: the user has no interrupted channel with this id (channel.resume/unknown-id).
        NotAllowed: a consumer of the connection has the tag of a consumer to restore.
    """
    user = channel.user.name
    kept = _store(channel).take(user, channel_id)
    if kept is None:
        raise NotFound(f"no channel '{channel_id.decode('utf-8', 'replace')}' was interrupted")
    for tag, _ in kept.consumers:
        if channel.connection.uses_tag(tag):
            _store(channel).keep(user, channel_id, kept)
            raise NotAllowed(f"consumer tag '{tag}' of the channel to resume is in use on the connection")
    channel.channel_id = channel_id
    channel.current_queue = kept.current_queue
    channel.prefetch = kept.prefetch
    channel.mode = kept.mode
    channel.has_worked = kept.has_worked
    if kept.mode == "tx":
        channel.transaction = Transaction()
    if any(kept.window):
        channel.credit = Credit(*kept.window)
    if kept.transport is not None:
        out_of_band.use(channel, kept.transport)
    for kind, what in kept.class_states:
        channel.class_state(kind).resumed(what)
    # The client gets channel.ok before the first delivery.
    channel.gate.shut()
    tickets = channel.class_state(Tickets)
    tickets.waived = True
    for _, method in kept.consumers:
        _start_consumer(channel, method)
    tickets.waived = False
    channel.send(m.ChannelOk())
    if kept.flowing:
        channel.gate.reopen()


def _start_consumer(channel: Amqp09Channel, method: Consume) -> None:
    try:
        if isinstance(method, m.MessageConsume):
            message.subscribe(channel, method)
        else:
            channel.carry_out(method)
    except (ModelError, ProtocolError):
        return  # As for a deleted queue, 0-9 has no method to report it.
