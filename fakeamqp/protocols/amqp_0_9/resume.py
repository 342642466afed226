"""channel.resume: a channel whose connection was lost goes on, on another connection of the same user.

What comes back is what the client had set up: its current queue, its window and flow, whether it is
transactional, its consumers, and what the class_states of the classes keep. What it held has gone back to the
queues, and access tickets have ended, as with every channel that ends.

What was closed is not interrupted, neither channels nor connections. Nor is a channel in the midst of a
transaction: that is undone, and the client has to learn of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from fakeamqp.model.credit import Credit
from fakeamqp.model.errors import ModelError, NotAllowed, NotFound
from fakeamqp.model.transactions import Transaction
from fakeamqp.protocols.amqp_0_9 import access, out_of_band
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.dispatch import HANDLERS
from fakeamqp.protocols.amqp_0_9.file.channel_state import FileConsumer
from fakeamqp.protocols.amqp_0_9.interrupted_channels import InterruptedChannels
from fakeamqp.protocols.amqp_0_9.message import consuming
from fakeamqp.protocols.amqp_0_9.stream import StreamConsumer
from fakeamqp.protocols.framed.replies import ProtocolError

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.model.subscription import Subscription
    from fakeamqp.protocols.amqp_0_9.registrations import OutOfBandTransport
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection

    Consume: TypeAlias = m.BasicConsume | m.FileConsume | m.StreamConsume | m.MessageConsume

__all__ = ["Interrupted", "Resumable", "keep", "resume"]


@runtime_checkable
class Resumable(Protocol):
    """The state of a class on a channel, kept when the channel is interrupted."""

    def interrupted(self) -> object | None:
        """What to keep, or None for nothing; called before the channel is released."""

    def resumed(self, kept: Any) -> None:
        """Go on with what was kept, in the state of the channel that resumes this one."""


@dataclass(frozen=True)
class Interrupted:
    """What is kept of a channel. `consumers` are the methods that would begin them again."""

    current_queue: str | None
    window: tuple[int, int]
    flowing: bool
    mode: Literal["confirm", "tx", "dtx"] | None
    has_worked: bool
    transport: OutOfBandTransport | None
    consumers: tuple[tuple[str, Consume], ...]
    class_states: tuple[tuple[type[Any], object], ...]


def keep(connection: Amqp09Connection) -> None:
    """The transport is about to be lost: keep the open channels, of which a closed connection has none."""
    if m.ChannelResume.INDEX not in connection.vocabulary.METHODS:
        return  # In 0-8 nobody could resume them.
    for channel in connection.open_channels:
        if not _in_transaction(channel):
            _store(channel).keep(channel.user.name, channel.channel_id, _snapshot(channel))


def _in_transaction(channel: Amqp09Channel) -> bool:
    """Whether there is work that is undone when the channel ends; to have a branch is enough."""
    transaction = channel.transaction
    if transaction is None:
        return False
    return channel.mode == "dtx" or bool(transaction.publishes or transaction.deliveries)


def _store(channel: Amqp09Channel) -> InterruptedChannels:
    return channel.virtual_host.extensions[InterruptedChannels]


def _snapshot(channel: Amqp09Channel) -> Interrupted:
    credit = channel.credit or Credit()
    class_states = (
        (kind, state.interrupted()) for kind, state in channel.class_states if isinstance(state, Resumable)
    )
    return Interrupted(
        channel.current_queue,
        (credit.message_limit, credit.byte_limit),
        channel.gate.open,
        channel.mode,
        channel.has_worked,
        channel.transport,
        tuple((tag, _consume_method(each)) for tag, each in channel.consumers.items()),
        tuple((kind, kept) for kind, kept in class_states if kept is not None),
    )


def _consume_method(subscription: Subscription) -> Consume:
    """The method that begins a consumer like this one, without an answer where it has the choice."""
    queue, no_ack, filter_ = subscription.queue.name, subscription.no_ack, dict(subscription.arguments)
    no_local, exclusive, tag = subscription.no_local, subscription.exclusive, subscription.tag
    subscriber = subscription.subscriber
    if isinstance(subscriber, consuming.Destination):
        return m.MessageConsume(0, queue, tag, no_local, no_ack, exclusive, filter_)
    if isinstance(subscriber, FileConsumer):
        return m.FileConsume(0, queue, tag, no_local, subscriber.no_ack, exclusive, True, filter_)
    if isinstance(subscriber, StreamConsumer):
        return m.StreamConsume(0, queue, tag, no_local, exclusive, True, filter_)
    return m.BasicConsume(0, queue, tag, no_local, no_ack, exclusive, True, filter_)


def resume(channel: Amqp09Channel, channel_id: bytes) -> None:
    """Have a new channel go on as the one with this id, and say so (channel.resume/resumes).

    A consumer whose queue has gone does not come back, nor one on what the user may not read any more, or
    what others have taken for themselves.

    Raises:
        NotFound: no such channel of this user was interrupted (channel.resume/unknown-id).
        NotAllowed: a consumer of the connection has the tag of one that would come back.
    """
    user = channel.user.name
    kept = _store(channel).take(user, channel_id)
    if kept is None:
        raise NotFound(f"no channel '{channel_id.decode('utf-8', 'replace')}' was interrupted")
    for tag, _ in kept.consumers:
        if channel.connection.uses_tag(tag):
            _store(channel).keep(user, channel_id, kept)
            raise NotAllowed(f"a consumer '{tag}' is on the connection and on the channel to be resumed")
    channel.channel_id = channel_id
    channel.current_queue = kept.current_queue
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
    # The client is to hear of the channel first.
    channel.gate.shut()
    with access.waive_tickets(channel):
        for _, method in kept.consumers:
            _start_consumer(channel, method)
    channel.send(m.ChannelOk())
    if kept.flowing:
        channel.gate.reopen()


def _start_consumer(channel: Amqp09Channel, method: Consume) -> None:
    try:
        if isinstance(method, m.MessageConsume):
            consuming.subscribe(channel, method)
        else:
            HANDLERS[method.INDEX](channel, method)
    except (ModelError, ProtocolError):
        return  # As when a queue goes: there is no way to say so.
