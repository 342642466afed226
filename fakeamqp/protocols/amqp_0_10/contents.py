"""What classes file and stream share: the publishing of contents, consumers, and the windows of these.

A consumer gets a content and its properties as its own protocol and class encode them. Unlike subscriptions
of class message, consumers have no credit of their own: a window limits what is sent in advance to all
consumers of a class in a session, and another one to all of them in a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from fakeamqp.model.deliveries.subscription import ConsumerTerms, Subscription, Window
from fakeamqp.model.errors import NotFound, ResourceDeleted, ResourceLocked
from fakeamqp.model.limits import check_consumer_bound
from fakeamqp.model.messages.staging import publish_content
from fakeamqp.protocols.amqp_0_10.codec.constants import ReturnCode, SegmentType
from fakeamqp.protocols.amqp_0_10.properties import ContentProperties
from fakeamqp.protocols.amqp_0_10.replies import SessionFault
from fakeamqp.protocols.amqp_0_10.states import SessionState

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Limit
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.transactions import Transaction
    from fakeamqp.protocols.amqp_0_10.codec import commands
    from fakeamqp.protocols.amqp_0_10.codec.frames import Assembly
    from fakeamqp.protocols.amqp_0_10.codec.structs import Command
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession


class ContentClass(NamedTuple):
    """The differences between the two classes."""

    name: str
    encoding: str
    returns: type[commands.FileReturn | commands.StreamReturn]
    qos_ok: type[commands.FileQosOk | commands.StreamQosOk]
    consume_ok: type[commands.FileConsumeOk | commands.StreamConsumeOk]


class ContentTarget(NamedTuple):
    """The destination of a content, and the conditions of its return."""

    exchange: str
    routing_key: str
    mandatory: bool
    immediate: bool

    @classmethod
    def of(
        cls, session: ServerSession, command: commands.FilePublish | commands.StreamPublish
    ) -> ContentTarget:
        """The fields of a publish; a blank exchange is the default one (file.publish/exchange-default)."""
        exchange, key = command.exchange or "", command.routing_key or ""
        host = session.virtual_host
        session.authorise("write", "exchange", exchange)
        host.routing.check_publishable(exchange)
        if host.exchanges.require(exchange).type_name == "topic":
            session.access.check_topic(session.user, host.name, "write", exchange, key)
        return cls(exchange, key, command.mandatory, command.immediate)


def send(
    session: ServerSession,
    kind: ContentClass,
    command: Command,
    message: Message,
    done: Callable[[], Limit | None] | None = None,
    offset: int = 0,
) -> None:
    """Send a command with a content, its body from `offset` on.

    The header segment is as received, or converted from another protocol or class. `done` is as in
    `Outgoing.send`.
    """
    if message.encoding != kind.encoding:
        properties = ContentProperties.of(kind.encoding, message.properties)
        message.properties_bytes, message.encoding = properties.encode(), kind.encoding
    session.outgoing.send(
        (
            (SegmentType.COMMAND, command.encode()),
            (SegmentType.HEADER, message.properties_bytes),
            (SegmentType.BODY, message.body[offset:]),
        ),
        done,
    )


# --- publishing --------------------------------------------------------------------------------------


def publish(
    session: ServerSession,
    kind: ContentClass,
    target: ContentTarget,
    message: Message,
    transaction: Transaction | None,
) -> None:
    """Route a message, now or at commit, and return it if necessary (file/transactions)."""
    message.published_at = session.broker.clock.time()
    message.secured = True  # Completion tells the publisher that the broker has it.
    size, largest = len(message.body), session.personality.largest_message
    if largest and size > largest:
        text = f"message size {size} is larger than configured max size {largest}"
        _send_back(session, kind, message, ReturnCode.CONTENT_TOO_LARGE, text)
        return
    publish_content(
        session.virtual_host,
        message,
        mandatory=target.mandatory,
        immediate=target.immediate,
        on_outcome=partial(_return_if_needed, session, kind, target, message),
        transaction=transaction,
    )


def _return_if_needed(
    session: ServerSession,
    kind: ContentClass,
    target: ContentTarget,
    message: Message,
    outcome: Outcome,
) -> None:
    """Return a message if its flags ask for it, and a message that a full queue refused."""
    if outcome.unconsumed:
        text = "no consumer can take the message immediately"
        _send_back(session, kind, message, ReturnCode.NO_CONSUMERS, text)
    elif target.mandatory and not outcome.routed:
        text = "the message is not routed to any queue"
        _send_back(session, kind, message, ReturnCode.NO_ROUTE, text)
    elif outcome.refused:
        _send_back(session, kind, message, ReturnCode.CONTENT_TOO_LARGE, str(outcome))


def _send_back(
    session: ServerSession, kind: ContentClass, message: Message, code: ReturnCode, text: str
) -> None:
    """Return a message to its publisher, if the session still exists (file.return/content)."""
    if session.state in (SessionState.ATTACHED, SessionState.DETACHED):
        session.virtual_host.message_outcomes.returned(message, code, text, session.channel)
        command = kind.returns(
            reply_code=code,
            reply_text=text[:200],
            exchange=message.exchange,
            routing_key=message.routing_key,
        )
        send(session, kind, command, message)


# --- consumers ----------------------------------------------------------------------------------------------


class ContentConsumers:
    """The consumers of one class in one session; subclasses add the other state of the class."""

    KIND: ClassVar[ContentClass]

    def __init__(self, session: ServerSession) -> None:
        self.session = session
        self.by_tag: dict[str, ServerConsumer] = {}
        self.window: Window | None = None
        """That of the session, once one was asked for."""
        self.shared_window: Window | None = None
        """That of the connection."""
        self.last_delivery_tag: int = 0
        self.attached()

    @classmethod
    def of(cls, session: ServerSession) -> Self:
        found = session.consuming.get(cls.KIND.name)
        if found is None:
            found = session.consuming[cls.KIND.name] = cls(session)
        assert isinstance(found, cls)
        return found

    @property
    def windows(self) -> tuple[Window, ...]:
        """The gates of deliveries, without those of the attachment."""
        return tuple(each for each in (self.window, self.shared_window) if each is not None)

    def next_delivery_tag(self) -> int:
        """Tags count from 1, since 0 is none (file.deliver/delivery-tag-non-zero)."""
        self.last_delivery_tag += 1
        return self.last_delivery_tag

    def attached(self) -> None:
        """The session is attached, perhaps to another transport than before."""
        connection = self.session.connection
        if connection is not None:
            self.shared_window = connection.windows.get(self.KIND.name)
        for each in self.by_tag.values():
            each.attached()

    def count(self, window: Window) -> None:
        """Charge a new window for what its consumers were sent in advance."""

    def given_up(self, assembly: Assembly) -> None:
        """The client does not send the rest of this command."""

    def let_go(self) -> None:
        """The session is about to end and to return its messages."""

    def end(self) -> None:
        """The session has ended."""
        consumers, self.by_tag = self.by_tag, {}
        for each in consumers.values():
            each.end()
        if self.window is not None:
            self.window.rate.stop()
        if self.shared_window is not None and not self.shared_window.rate.subscriptions:
            self.shared_window.rate.stop()


class ServerConsumer:
    """One consumer. It is also its own subscriber, see `model.subscription.Subscriber`.

    If it `acknowledges`, messages stay at the queue until they are settled; windows hold if it is `windowed`.
    """

    def __init__(
        self,
        consumers: ContentConsumers,
        command: commands.FileConsume | commands.StreamConsume,
        *,
        acknowledges: bool,
        windowed: bool,
    ) -> None:
        queue = _consumable(consumers, command)
        self.consumers = consumers
        session = consumers.session
        self.session: ServerSession = session
        self.tag: str = command.consumer_tag or ""
        self.windowed = windowed
        self.no_ack: bool = getattr(command, "no_ack", True)
        arguments = command.arguments or {}
        self.subscription: Subscription = Subscription(
            self.tag,
            queue,
            self,
            owner=session.connection,
            group=session,
            terms=ConsumerTerms(
                no_ack=not acknowledges,
                no_local=command.no_local,
                exclusive=command.exclusive,
                arguments=arguments,
                options=queue.consumer_options(arguments),
            ),
        )
        self.attached()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.tag!r} on queue {self.subscription.queue.name!r}>"

    def attached(self) -> None:
        """Depend on the gates of the session's present attachment, and on the windows that hold there."""
        session, subscription = self.session, self.subscription
        connection = session.connection
        gates = (session.gate,) if connection is None else (session.gate, connection.gate)
        windows = self.consumers.windows if self.windowed else ()
        credits = tuple(window.credit for window in windows)
        rates = tuple(window.rate for window in windows)
        subscription.depend_on((*gates, *credits, *rates), () if subscription.no_ack else credits)
        if connection is not None:
            # A client's own messages are those that its connection publishes (file.consume/no-local).
            subscription.owner = connection

    def end(self) -> None:
        """End it at its queue; its deliveries can still be settled."""
        self.session.note_consumer("consumer ended", self.subscription)
        self.subscription.queue.unsubscribe(self.subscription)

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        raise NotImplementedError

    def note_delivered(self, message: Message, tag: int, redelivered: bool) -> None:
        session, tap = self.session, self.session.broker.tap
        if tap is not None and session.connection is not None:
            queue = self.subscription.queue.name
            tap.event(
                "delivered", session.connection, message, queue, self.tag, session.channel, tag, redelivered
            )

    def cancelled(self, subscription: Subscription) -> None:
        """The deletion of the queue ends the session as well."""
        if self.consumers.by_tag.get(self.tag) is self:
            del self.consumers.by_tag[self.tag]
            session, queue = self.session, subscription.queue.name
            session.note_consumer("consumer ended", subscription)
            session.fail(
                ResourceDeleted(f"queue '{queue}', which consumer '{self.tag}' takes from, was deleted")
            )

    def held_too_long(self, subscription: Subscription | None) -> None:
        """0-10 has no such timeout; another consumer has it."""


def _consumable(consumers: ContentConsumers, command: commands.FileConsume | commands.StreamConsume) -> Queue:
    """The queue that a consume command names, unless the command is refused."""
    session, name, tag = consumers.session, command.queue, command.consumer_tag
    if not name:
        raise SessionFault("not-allowed", "a consumer needs the name of a queue", "queue")
    if not tag:
        raise SessionFault("not-allowed", "a consumer needs a tag", "consumer_tag")
    check_consumer_bound(session.broker, session.consumer_count)
    if tag in consumers.by_tag:
        text = f"consumer tag '{tag}' is in use in session '{session.display_name}'"
        raise SessionFault("not-allowed", text, "consumer_tag")
    session.authorise("read", "queue", name)
    queue = session.virtual_host.queues.require(name, session)
    if queue.exclusive_subscription is not None or (command.exclusive and queue.subscriptions):
        raise ResourceLocked(f"queue '{name}' has a consumer that shuts out others, or would be shut out")
    return queue


def start(consumer: ServerConsumer, command: commands.FileConsume | commands.StreamConsume) -> None:
    """Add a new consumer; consume-ok precedes the first delivery, unless the client wants none."""
    consumers, subscription = consumer.consumers, consumer.subscription
    subscription.queue.subscribe(subscription)
    consumers.by_tag[consumer.tag] = consumer
    consumer.session.note_consumer(
        "consumer added",
        subscription,
        no_ack=consumer.no_ack,
        prefetch=0,
        shares_prefetch=consumer.windowed and any(each.credit.limits for each in consumers.windows),
    )
    if not command.nowait:
        consumer.session.send(consumers.KIND.consume_ok(consumer_tag=consumer.tag))
    subscription.queue.dispatch()


def cancel(consumers: ContentConsumers, tag: str) -> ServerConsumer:
    """Remove a consumer, which the caller ends; NotFound if there is none with this tag."""
    consumer = consumers.by_tag.pop(tag, None)
    if consumer is None:
        session = consumers.session
        raise NotFound(f"no {consumers.KIND.name} consumer '{tag}' in session '{session.display_name}'")
    return consumer


def set_window(consumers: ContentConsumers, command: commands.FileQos | commands.StreamQos) -> None:
    """Limit what is sent in advance to a session's consumers, or to those of all sessions of its connection.

    The limit includes consumers that exist, and what they were sent before. 0 means no limit.
    """
    session, class_name = consumers.session, consumers.KIND.name
    connection = session.connection
    window: Window | None
    if command.global_ and connection is not None:
        window = connection.windows.get(class_name)
        sharing: Iterable[ContentConsumers] = [
            each.consuming[class_name]
            for each in connection.sessions.values()
            if class_name in each.consuming
        ]
        if window is None:
            connection.windows[class_name] = window = Window(session.broker.timers, class_name)
            _share(window, sharing)
    else:
        window = consumers.window
        if window is None:
            consumers.window = window = Window(session.broker.timers, class_name)
            _share(window, (consumers,))
    rate: int | None = getattr(command, "consume_rate", None)
    window.resize(count=command.prefetch_count or 0, size=command.prefetch_size or 0, rate=rate or 0)
    session.send(consumers.KIND.qos_ok())
    window.resume()


def _share(window: Window, sharing: Iterable[ContentConsumers]) -> None:
    """Put these consumers under a new window."""
    for each in sharing:
        each.attached()
        each.count(window)
