"""The broker's end of one channel: its state, its consumers, and what is unsettled.

Each protocol's `FramedChannel` is one of these, and puts the contents together that its client sends.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from fakeamqp.model.acknowledgement_timeout import AcknowledgementTimeouts
from fakeamqp.model.credit import Credit, Gate
from fakeamqp.model.delivery import Delivery, Ledger, release_all
from fakeamqp.model.errors import AccessRefused, NotFound, PreconditionFailed
from fakeamqp.protocols.framed import delivering
from fakeamqp.protocols.framed.replies import ProtocolError
from fakeamqp.protocols.framed.states import CHANNEL_TRANSITIONS, ChannelState

if TYPE_CHECKING:
    from fakeamqp.model.access import Action
    from fakeamqp.model.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.reply_to import ReplyAddress
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.tap import Settlement
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.framed.codec.method import Method
    from fakeamqp.protocols.framed.replies import Reply
    from fakeamqp.protocols.framed.server_connection import FramedConnection

__all__ = ["FrameWriter", "FramedChannel"]

_OPEN = 20 << 16 | 10
_CLOSE = 20 << 16 | 40
_CLOSE_OK = 20 << 16 | 41


class FrameWriter(Protocol):
    """What takes bytes for the client."""

    def write(self, octets: bytes) -> None:
        """Add whole frames."""


class FramedChannel:
    """One open channel. It is also the subscriber of its consumers: see `model.subscription.Subscriber`."""

    def __init__(self, connection: FramedConnection[Any], number: int) -> None:
        self.connection = connection
        self.number = number
        self.state = ChannelState.OPEN
        assert connection.virtual_host is not None
        assert connection.user is not None
        self.virtual_host: VirtualHost = connection.virtual_host
        self.user = connection.user
        self.personality = connection.personality
        self.access = connection.broker.access
        self.outbox: FrameWriter = connection.outbox
        """Where contents for the client go."""
        self.ledger = Ledger()
        if connection.personality.channels_time_out:
            name = f"channel {number} of {connection.name}"
            self.ledger.timeouts = AcknowledgementTimeouts(
                self.ledger, connection.broker.timers, self._held_beyond_timeout, name
            )
        self.consumers: dict[str, Subscription] = {}
        self.current_queue: str | None = None
        self.mode: Literal["confirm", "tx", "dtx"] | None = None
        self.transaction: Transaction | None = None
        self.gate = Gate()
        """Shut while the client has stopped deliveries with channel.flow."""
        self.prefetch = (0, 0)
        """Messages and bytes that each new consumer may have in advance."""
        self.credit: Credit | None = None
        """The window all consumers of the channel share, where one was asked for."""
        self.awaited_flow_oks = 0
        """How often a fault has told the client to stop or go on, and it has not answered yet."""
        self.reply_address: ReplyAddress | None = None
        """Where answers to the channel's requests go (RabbitMQ: documented direct reply-to)."""
        self.deliver_prefixes: dict[tuple[str, str, str], tuple[bytes, bytes]] = {}

    def __repr__(self) -> str:
        return f"<FramedChannel {self.number} of {self.connection.name} {self.state.name.lower()}>"

    # --- frames in ------------------------------------------------------------------------------------

    @abstractmethod
    def receive_method(self, payload: bytes) -> None:
        """A method frame."""

    def receive_while_closing(self, payload: bytes) -> None:
        """Only close and close-ok count; a crossed close is answered (channel.close/stability)."""
        index = int.from_bytes(payload[:4], "big")
        if index == _CLOSE:
            self.send(self.connection.vocabulary.ChannelCloseOk())
        elif index == _CLOSE_OK:
            self.follow("channel.close-ok")
            self.connection.channels.pop(self.number, None)
        elif index == _OPEN and self.personality.refuses_open_before_close_ok:
            self.connection.note_method(index)
            raise ProtocolError("channel-error", "second 'channel.open' seen")

    @abstractmethod
    def receive_header(self, payload: bytes) -> None:
        """A content header frame."""

    @abstractmethod
    def receive_body(self, payload: bytes) -> None:
        """A body frame."""

    @abstractmethod
    def drop_content(self) -> None:
        """Forget the content under way: nobody will see it."""

    # --- methods out ----------------------------------------------------------------------------------

    def send(self, method: Method) -> None:
        """Send a method on this channel."""
        self.connection.send(self.number, method)

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        """See `model.subscription.Subscriber`."""
        delivering.deliver(self, subscription, message, redelivered, delivery)

    def send_message(self, method: Method, message: Message) -> None:
        """Send a method on this channel that carries a message."""
        delivering.send_message(self, method, message)

    def cancelled(self, subscription: Subscription) -> None:
        """See `model.subscription.Subscriber`: the queue has gone."""
        if self.consumers.pop(subscription.tag, None) is not None:
            self.note_consumer("consumer ended", subscription)

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """All that the client has not settled."""
        return (self.ledger,)

    # --- what the tap is told --------------------------------------------------------------------------

    def note_consumer(
        self, event: Literal["consumer added", "consumer ended"], which: Subscription, **facts: object
    ) -> None:
        """A consumer of this channel has come, or goes."""
        self.virtual_host.note(
            event,
            queue=which.queue.name,
            consumer=which.tag,
            connection=self.connection.name,
            channel=self.number,
            **facts,
        )

    def note_settled(self, event: Settlement, deliveries: Sequence[Delivery]) -> None:
        """Deliveries of this channel are about to end in that way."""
        tap = self.connection.broker.tap
        if tap is not None and deliveries:
            tap.settled(event, deliveries, self.connection, self.number)

    # --- what handlers need ---------------------------------------------------------------------------

    def authorise(self, action: Action, kind: str, name: str) -> None:
        """May the connection's user do this here?

        Raises:
            AccessRefused: no.
        """
        self.access.check(self.user, self.virtual_host.name, action, kind, name)

    def authorise_passive(self, kind: str, name: str) -> None:
        """May the connection's user learn whether this exists? Any one permission on the name is enough.

        Raises:
            AccessRefused: no, where the personality asks for a permission at all.
        """
        if not self.personality.passive_declare_needs_permission:
            return
        others: tuple[Action, ...] = ("read", "write")
        for action in others:
            try:
                self.authorise(action, kind, name)
            except AccessRefused:
                continue
            return
        self.authorise("configure", kind, name)

    def authorise_binding(self, source: str, routing_key: str) -> None:
        """May the connection's user bind something to this exchange, by this key?

        Raises:
            AccessRefused: no.
        """
        if not source:
            return  # Whether the default exchange can be bound to is the personality's, not the user's.
        self.authorise("read", "exchange", source)
        exchange = self.virtual_host.exchanges.get(source)
        if exchange is not None and exchange.type_name == "topic":
            self.access.check_topic(self.user, self.virtual_host.name, "read", source, routing_key)

    def queue_name(self, name: str) -> str:
        """The name given, or for a blank one the queue last declared here (domain.queue-name/current-queue).

        Raises:
            NotFound: none was declared (see docs/decisions.md for the code).
        """
        if name:
            return name
        if self.current_queue is None:
            raise NotFound("no previously declared queue")
        return self.current_queue

    def check_get(self, queue: Queue) -> None:
        """May a single message be got from the queue?

        Raises:
            AccessRefused: another connection consumes exclusively (basic.get/exclusive-consumer).
        """
        exclusive = queue.exclusive_subscription
        if (
            self.personality.exclusive_consumer_blocks_get
            and exclusive is not None
            and exclusive.owner is not self.connection
        ):
            raise AccessRefused(f"queue '{queue.name}' in vhost '{self.virtual_host.name}' in exclusive use")

    def consumer_count(self, queue: Queue) -> int:
        """Active consumers; paused ones count by personality (channel.flow/paused-consumer-count)."""
        if not queue.reports_consumers:
            return 0
        if self.personality.paused_consumers_count:
            return queue.consumer_count
        return sum(not subscription.stopped for subscription in queue.subscriptions)

    def purge(self, name: str) -> int:
        """Drop all messages of a queue that await delivery; answers with how many.

        Raises:
            NotFound, ResourceLocked: see `VirtualHost.queue`.
        """
        count = self.virtual_host.queue(name, self.connection).purge()
        self.virtual_host.note(
            "queue purged",
            queue=name,
            messages=count,
            connection=self.connection.name,
            channel=self.number,
        )
        return count

    # --- end ------------------------------------------------------------------------------------------

    def follow(self, event: str) -> None:
        """Move to the state the table names; an event it does not know changes nothing."""
        self.state = CHANNEL_TRANSITIONS[self.state].get(event, self.state)

    def close(self, reply: Reply, method: int) -> None:
        """Close the channel for an error; until close-ok comes everything else is discarded."""
        self.follow("CLOSE")
        self.send(
            self.connection.vocabulary.ChannelClose(
                reply_code=reply.code,
                reply_text=reply.text,
                class_id=method >> 16,
                method_id=method & 0xFFFF,
            )
        )
        self.release()

    def closed_by_client(self) -> None:
        """channel.close came: everything goes back, then comes the answer (channel.close-ok/number-free)."""
        self.follow("channel.close")
        self.release()
        self.connection.channels.pop(self.number, None)
        self.send(self.connection.vocabulary.ChannelCloseOk())

    def lost(self) -> None:
        """The connection is gone."""
        self.follow("LOST")
        self.release()

    def release(self) -> None:
        """Consumers end, unsettled messages return, an open transaction is discarded.

        Sources: channel.close/cancels-consumers, channel.close/rolls-back, server-model/closure-requeues.
        """
        self.drop_content()
        if self.ledger.timeouts is not None:
            self.ledger.timeouts.stop()
        consumers = self._stop_consumers()
        outstanding = self.ledger.take_all()
        if self.transaction is not None:
            outstanding += self.transaction.rollback()
        self.note_settled("requeued", outstanding)
        # Before the consumers end: the end of one may make it another's turn, which gets these first.
        release_all(outstanding, ending="lost")
        for subscription in consumers:
            self.end_consumer(subscription)

    def held_too_long(self, subscription: Subscription | None) -> None:
        """See `model.subscription.Subscriber`: the channel is lost (RabbitMQ: documented, since 4.3)."""
        self._acknowledgement_timed_out(-1)

    def _held_beyond_timeout(self, _delivery: Delivery, timeout: float) -> None:
        """A delivery was not settled in time (RabbitMQ: documented delivery acknowledgement timeout)."""
        self._acknowledgement_timed_out(round(timeout * 1000))

    def _acknowledgement_timed_out(self, milliseconds: int) -> None:
        self.connection.fail(
            self.number,
            PreconditionFailed(
                f"delivery acknowledgement on channel {self.number} timed out. Timeout value used: "
                f"{milliseconds} ms. This timeout value can be configured, see consumers doc guide "
                "to learn more"
            ),
        )

    def _stop_consumers(self) -> list[Subscription]:
        """Have the consumers, which are to end, take nothing more."""
        consumers = list(self.consumers.values())
        self.consumers.clear()
        shut = Gate()
        shut.shut()
        for subscription in consumers:
            subscription.depend_on((*subscription.limits, shut), subscription.credits)
        return consumers

    def end_consumer(self, subscription: Subscription) -> None:
        """End one consumer at its queue."""
        self.note_consumer("consumer ended", subscription)
        subscription.queue.unsubscribe(subscription)
