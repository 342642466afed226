"""The base class of server-side channels: state, consumers, unacknowledged deliveries."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from fakeamqp.model.deliveries.delivery import Delivery, Ledger, releasing
from fakeamqp.model.deliveries.subscription import Credit, Gate
from fakeamqp.model.errors import AccessRefused, ChannelCrash, NotFound, PreconditionFailed
from fakeamqp.model.memory import Charge
from fakeamqp.model.operations import STEP, in_steps
from fakeamqp.protocols.amqp_0_9_1 import delivering
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_METHOD,
    FRAME_OVERHEAD,
)
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError
from fakeamqp.protocols.amqp_0_9_1.states import CHANNEL_TRANSITIONS, ChannelState
from fakeamqp.protocols.base.channel import ReportingChannel

if TYPE_CHECKING:
    from fakeamqp.model.access import AccessControl, Action, User
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.personality.choices import Personality
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.routing import ReplyAddress
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.replies import CloseReply
    from fakeamqp.protocols.amqp_0_9_1.server_connection import Amqp091Connection

NO_QUEUE = "no previously declared queue"

_OPEN = 20 << 16 | 10
_CLOSE = 20 << 16 | 40
_CLOSE_OK = 20 << 16 | 41
_TAKING_A_QUEUE = frozenset(
    ("basic.consume", "basic.get", "queue.bind", "queue.delete", "queue.purge", "queue.unbind")
)


def lacks_queue(method: Method) -> bool:
    """Whether a method leaves out the queue, for which the one that the channel declared last is taken.

    RabbitMQ looks for that queue before it looks whether the channel is open or closing (measured).
    """
    return method.NAME in _TAKING_A_QUEUE and not getattr(method, "queue", "")


def not_a_method() -> ProtocolError:
    """The error for a header or body frame where a method is due."""
    return ProtocolError("unexpected-frame", "expected method frame, got non method frame instead")


def not_a_header() -> ProtocolError:
    """The error for another frame where a content header is due."""
    return ProtocolError(
        "unexpected-frame", "expected content header for class 60, got non content header frame instead"
    )


def not_a_body() -> ProtocolError:
    """The error for another frame where a body is due."""
    return ProtocolError("unexpected-frame", "expected content body, got non content body frame instead")


def check_content_header(personality: Personality, class_id: int, weight: int, size: int) -> None:
    """Check what precedes the properties in a content header.

    Raises:
        ProtocolError: it is for another class, or announces too large a body.
    """
    if weight:
        raise not_a_header()
    if class_id != 60:
        raise ProtocolError(
            personality.content_class_mismatch,
            f"expected content header for class 60, got one for class {class_id} instead",
        )
    largest = personality.largest_content
    if largest and size > largest:
        raise ProtocolError("frame-error", f"content body size {size} exceeds maximum allowed size {largest}")


class ContentAssembly:
    """Puts the frames of one channel together to methods, and discards their contents.

    RabbitMQ does so for every channel that the connection knows, also before it is open and while it is
    closing, and its errors close the connection (measured). The content of `method` is incomplete: so much of
    the body is `missing`, or with None the header.
    """

    def __init__(
        self, connection: Amqp091Connection[Any], method: Method | None = None, missing: int | None = None
    ) -> None:
        self._connection = connection
        self._method = method
        self._missing = missing

    def receive(self, frame_type: int, payload: bytes) -> Method | None:
        """Add a method, header or body frame; return the method that is complete now.

        Raises:
            ProtocolError: another frame is due, or the frame cannot be read.
        """
        method = self._method
        if frame_type == FRAME_METHOD:
            self._connection.method_class(payload)
        else:
            self._connection.check_payload(frame_type, payload)
        if method is None:
            return self._begin(frame_type, payload)
        self._connection.method_index = method.INDEX
        if self._missing is None:
            return self._add_header(method, frame_type, payload)
        if frame_type != FRAME_BODY:
            raise not_a_body()
        return self._add_body(method, len(payload))

    def _begin(self, frame_type: int, payload: bytes) -> Method | None:
        if frame_type != FRAME_METHOD:
            self._connection.method_index = 0
            raise not_a_method()
        method = self._connection.decode(payload)
        if not method.HAS_CONTENT:
            return method
        self._method = method
        return None

    def _add_header(self, method: Method, frame_type: int, payload: bytes) -> Method | None:
        if frame_type != FRAME_CONTENT_HEADER:
            raise not_a_header()
        class_id, weight, size = CONTENT_HEADER.unpack_from(payload)
        check_content_header(self._connection.personality, class_id, weight, size)
        self._missing = size
        return self._complete(method)

    def _add_body(self, method: Method, size: int) -> Method | None:
        assert self._missing is not None
        overrun = self._connection.personality.body_overrun
        if size > self._missing and overrun:
            raise ProtocolError(overrun, "content body frame exceeds remaining content size")
        self._missing -= size
        return self._complete(method)

    def _complete(self, method: Method) -> Method | None:
        if self._missing:
            return None
        self._method = self._missing = None
        return method


class FrameWriter(Protocol):
    """Accepts frames for the client."""

    def write(self, octets: bytes) -> None:
        """Add whole frames."""

    def write_pieces(self, pieces: list[bytes | memoryview], message: Message | None = None) -> None:
        """Add whole frames in pieces, of which views share the body of the message."""


class BaseChannel(ReportingChannel):
    """One open channel. It is also the subscriber of its consumers: see `model.subscription.Subscriber`."""

    PAUSES: ClassVar[bool] = False
    """True if the gate stops deliveries also in personalities without channel.flow, as for channel.resume."""
    CONTENT_CLASS: ClassVar[str | None] = None
    """The class of the messages that consumers of class basic receive; None: those of every class."""

    def __init__(self, connection: Amqp091Connection[Any], number: int) -> None:
        self.connection: Amqp091Connection[Any] = connection
        self.number: int = number
        self.state: ChannelState = ChannelState.OPEN
        assert connection.virtual_host is not None
        assert connection.user is not None
        self.virtual_host: VirtualHost = connection.virtual_host
        self.user: User = connection.user
        self.personality: Personality = connection.personality
        self.access: AccessControl = connection.broker.access
        self.outbox: FrameWriter = connection.outbox
        """The destination of contents for the client."""
        self.ledger: Ledger = Ledger()
        if connection.personality.channels_time_out:
            name = f"channel {number} of {connection.name}"
            self.ledger.watch(connection.broker.timers, self._held_beyond_timeout, name)
        self.consumers: dict[str, Subscription] = {}
        self.current_queue: str | None = None
        self.mode: Literal["confirm", "tx", "dtx"] | None = None
        self.transaction: Transaction | None = None
        self.gate: Gate = Gate()
        """Shut while channel.flow from the client stops deliveries."""
        self.prefetch: tuple[int, int] = (0, 0)
        """The prefetch limits of each new consumer: messages and bytes."""
        self.credit: Credit | None = None
        """The prefetch window that all consumers of the channel share, if one is set."""
        self.awaited_flow_oks = 0
        """How many channel.flow methods sent by a fault the client has not answered."""
        self.reply_address: ReplyAddress | None = None
        """The address of replies to the channel's requests (RabbitMQ: documented direct reply-to)."""
        self.deliver_prefixes: dict[tuple[str, str, str], tuple[bytes, bytes]] = {}
        self._charge: Charge | None = None
        """What the incomplete content counts of the broker's memory."""
        self._discarded: ContentAssembly | None = None
        """Checks what arrives while the channel is closing, where the personality does."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number} of {self.connection.name} {self.state.name.lower()}>"

    # --- frames in ------------------------------------------------------------------------------------

    @abstractmethod
    def receive_method(self, payload: bytes) -> bool:
        """Process a method frame. Returns True if its content is due, and may be taken as a whole."""

    def receive_while_closing(self, frame_type: int, payload: bytes) -> None:
        """Ignore all but close and close-ok; answer a crossing close (channel.close/stability)."""
        if self._discarded is not None:
            method = self._discarded.receive(frame_type, payload)
            index = 0 if method is None else method.INDEX
        elif frame_type == FRAME_METHOD:
            index = int.from_bytes(payload[:4], "big")
            method = None
        else:
            return
        if index == _CLOSE:
            self.send(m.ChannelCloseOk())
        elif method is not None and self.current_queue is None and lacks_queue(method):
            self._send_close(self.connection.REPLIES.reply_for(NotFound(NO_QUEUE)), index)
        elif index == _CLOSE_OK:
            self.follow("channel.close-ok")
            self.connection.channels.pop(self.number, None)
        elif index == _OPEN and self.personality.refuses_open_before_close_ok:
            self.connection.method_index = index
            raise ProtocolError("channel-error", "second 'channel.open' seen")

    @abstractmethod
    def receive_header(self, payload: bytes) -> None:
        """Process a content header frame."""

    @abstractmethod
    def receive_body(self, payload: bytes) -> None:
        """Process a body frame."""

    def assembly(self) -> ContentAssembly:
        """The content that the channel is receiving, to be continued without it."""
        return ContentAssembly(self.connection)

    @abstractmethod
    def drop_content(self) -> None:
        """Discard the incomplete content."""

    # --- methods out ----------------------------------------------------------------------------------

    def send(self, method: Method) -> None:
        """Send a method on this channel."""
        self.connection.send(self.number, method)

    deliver: ClassVar[Callable[[BaseChannel, Subscription, Message, bool, Delivery | None], None]] = (
        delivering.deliver
    )

    def send_message(self, method: Method, message: Message) -> None:
        """Send a method with a message as its content on this channel."""
        delivering.send_message(self, method, message)

    def fits(self, size: int, what: str) -> bool:
        """Whether a method or a content header of this size fits into a frame to the client; else close.

        Neither can be split, and the publisher's frame_max may be larger (frame/oversized-send; 0-9:
        frame/undeliverable-size). The close is deferred, since the caller may be delivering to other
        connections as well.
        """
        connection = self.connection
        if size <= connection.body_limit:
            return True
        error = ProtocolError(
            "frame-error",
            f"{what} of {size} bytes cannot be sent: it exceeds frame_max {connection.frame_max}",
        )
        self._close_later(error, "closes because of its frame_max")
        return False

    def crash(self, crash: ChannelCrash) -> None:
        """A message for a consumer at which RabbitMQ crashes: close, when the current turn is over."""
        self.connection.gate.shut()
        self._close_later(crash, "closes because of a message")

    def _close_later(self, error: ProtocolError | ChannelCrash, what: str) -> None:
        connection = self.connection
        connection.after(0, lambda: connection.fail(self.number, error), what, housekeeping=True)

    def cancelled(self, subscription: Subscription) -> None:
        """The queue was deleted."""
        if self.consumers.get(subscription.tag) is subscription:
            del self.consumers[subscription.tag]
            self.note_consumer("consumer ended", subscription)

    @property
    def unfinished(self) -> int:
        """Bytes of the body of the incomplete content."""
        return 0 if self._charge is None else self._charge.octets

    def grow(self, octets: int) -> None:
        """Charge the memory with a part of a body; hold its sender back if publishers are blocked."""
        connection = self.connection
        if not octets:
            connection.note_idle(FRAME_OVERHEAD)
        if self._charge is None:
            self._charge = Charge(connection.broker.memory.unfinished, octets)
        else:
            self._charge.change(self._charge.octets + octets)
        if connection.blocked_reason is not None:
            connection.publish_received()

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """The ledgers of unacknowledged deliveries."""
        return (self.ledger,)

    def put_back(self, deliveries: Sequence[Delivery]) -> None:
        """Make settled deliveries unacknowledged again (tx.rollback/undoes-acks)."""
        self.ledger.put_back(deliveries)

    def take_consumer(self, tag: str) -> Subscription | None:
        """Remove the consumer of class basic with this tag, and return it for the caller to end."""
        return self.consumers.pop(tag, None)

    # --- for handlers ---------------------------------------------------------------------------------

    def authorise_passive(self, kind: str, name: str) -> None:
        """Check that the connection's user may declare this passively; any permission on the name is enough.

        Raises:
            AccessRefused: the user has none, and the personality requires one.
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
        """Check that the connection's user may bind to this exchange with this key.

        Raises:
            AccessRefused: the user lacks the permission.
        """
        if not source:
            return  # The personality, not the user, decides if the default exchange accepts bindings.
        self.authorise("read", "exchange", source)
        exchange = self.virtual_host.exchanges.get(source)
        if exchange is not None and exchange.type_name == "topic":
            self.access.check_topic(self.user, self.virtual_host.name, "read", source, routing_key)

    def queue_name(self, name: str) -> str:
        """Return `name`, or if it is blank the current queue, which the channel declared last.

        Source: domain.queue-name/current-queue.

        Raises:
            NotFound: the channel has no current queue (see docs/decisions-0-9-1.md for the code).
        """
        if name:
            return name
        if self.current_queue is None:
            raise NotFound(NO_QUEUE)
        return self.current_queue

    def check_get(self, queue: Queue) -> None:
        """Check that basic.get is allowed on the queue.

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
        """Count active consumers, and by personality paused ones (channel.flow/paused-consumer-count)."""
        if not queue.reports_consumers:
            return 0
        if self.personality.paused_consumers_count:
            return queue.consumer_count
        return sum(not subscription.stopped for subscription in queue.subscriptions)

    def purge(self, name: str) -> int:
        """Drop all ready messages of a queue, and return their number.

        Raises:
            NotFound, ResourceLocked: see `QueueRegister.require`.
        """
        count = self.virtual_host.queues.require(name, self.connection).purge()
        self.virtual_host.report(
            "queue purged",
            queue=name,
            messages=count,
            connection=self.connection.name,
            channel=self.number,
        )
        return count

    # --- closing --------------------------------------------------------------------------------------

    def follow(self, event: str) -> None:
        """Follow the transition table; an event without an entry changes nothing."""
        self.state = CHANNEL_TRANSITIONS[self.state].get(event, self.state)

    def close(self, reply: CloseReply, method: int) -> None:
        """Close the channel because of an error; all input until close-ok is discarded."""
        self.follow("CLOSE")
        if self.connection.tracks_contents:
            self._discarded = self.assembly()
        self._send_close(reply, method)
        self.release()

    def _send_close(self, reply: CloseReply, method: int) -> None:
        self.send(
            m.ChannelClose(
                reply_code=reply.code,
                reply_text=reply.text,
                class_id=method >> 16,
                method_id=method & 0xFFFF,
            )
        )

    def closed_by_client(self) -> None:
        """Handle channel.close: release everything, and answer (channel.close-ok/number-free).

        What little is released goes to other channels after the answer (RabbitMQ: measured on 4.0.5 and
        4.3.6).
        """
        self.follow("channel.close")
        if len(self.ledger.outstanding) <= STEP:
            self._confirm_close()
            self.release()
        else:
            self.release()
            self.connection.broker.operations.then(self._confirm_close, self.connection)

    def _confirm_close(self) -> None:
        # The connection may have closed meanwhile.
        if self.connection.channels.pop(self.number, None) is self:
            self.send(m.ChannelCloseOk())

    def lost(self) -> None:
        """Release the channel, because its connection has closed."""
        self.follow("LOST")
        self.release()

    def release(self) -> None:
        """Cancel consumers, requeue unacknowledged messages, roll back an open transaction.

        Sources: channel.close/cancels-consumers, channel.close/rolls-back, server-model/closure-requeues.
        """
        self.drop_content()
        if self.ledger.timeouts is not None:
            self.ledger.timeouts.stop()
        consumers = self._stop_consumers()
        outstanding = self.ledger.take_all()
        if self.transaction is not None:
            outstanding = [*outstanding, *self.transaction.rollback()]
        self.note_settled("requeued", outstanding)
        steps = self.returning(outstanding, consumers)
        del outstanding
        self.connection.broker.operations.run(steps, self.connection)

    def returning(self, outstanding: Sequence[Delivery], consumers: list[Subscription]) -> Iterator[None]:
        """The steps of requeueing messages and cancelling consumers.

        Requeued before consumers are cancelled: a cancel can activate another consumer, which must get these
        messages first.
        """
        steps = releasing(outstanding, ending="lost")
        del outstanding
        yield from steps

        def end(part: Sequence[Subscription]) -> None:
            for subscription in part:
                self.end_consumer(subscription)

        yield from in_steps(consumers, end)

    def held_too_long(self, subscription: Subscription | None) -> None:
        """Closes the channel (RabbitMQ: documented, since 4.3)."""
        self._acknowledgement_timed_out(-1)

    def _held_beyond_timeout(self, _late: list[Delivery], timeout: float) -> None:
        """Close the channel on a delivery acknowledgement timeout (RabbitMQ: documented)."""
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
        """Stop deliveries to all consumers, and return them to be cancelled."""
        consumers = list(self.consumers.values())
        self.consumers.clear()
        shut = Gate()
        shut.shut()
        for subscription in consumers:
            subscription.depend_on((shut,), subscription.credits)
            subscription.queue.withdraw(subscription)
        return consumers

    def end_consumer(self, subscription: Subscription) -> None:
        """Cancel one consumer at its queue."""
        self.note_consumer("consumer ended", subscription)
        subscription.queue.unsubscribe(subscription)
