"""A server-side channel of 0-9: assembles contents, and keeps the state of each AMQP class.

A content follows its method: a header, as many child contents as the header announces, and body frames until
the announced size is reached (content/follows-method, content/child-contents). No other frame is legal on the
channel until the content is complete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from fakeamqp.model.deliveries.subscription import ConsumerTerms, DeliveryLimits, Subscription
from fakeamqp.model.errors import NotAllowed
from fakeamqp.model.limits import check_consumer_bound
from fakeamqp.model.messages.message import Child
from fakeamqp.protocols.amqp_0_9.access import use_ticket
from fakeamqp.protocols.amqp_0_9.codec import contents, methods as m
from fakeamqp.protocols.amqp_0_9.dispatch import HANDLERS, handlers
from fakeamqp.protocols.amqp_0_9.dtx import WORK
from fakeamqp.protocols.amqp_0_9.requests import Requests
from fakeamqp.protocols.amqp_0_9_1 import delivering
from fakeamqp.protocols.amqp_0_9_1.basic import carry_out
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_METHOD, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.publishing import authorise_keys
from fakeamqp.protocols.amqp_0_9_1.replies import ProtocolError
from fakeamqp.protocols.amqp_0_9_1.server_channel import BoundedChannel
from fakeamqp.protocols.amqp_0_9_1.states import ChannelState

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery, Ledger
    from fakeamqp.model.deliveries.subscription import Credit, Subscriber
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.tap import Settlement
    from fakeamqp.protocols.amqp_0_9.choices import Amqp09Choices
    from fakeamqp.protocols.amqp_0_9.registrations import OutOfBandTransport
    from fakeamqp.protocols.amqp_0_9.server_connection import Amqp09Connection
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties

P = TypeVar("P", bound="Properties")


@dataclass(frozen=True)
class CompleteContent(Generic[P]):
    """A complete content; `octets` are the bytes of its property flags and list."""

    properties: P
    octets: bytes
    body: bytes
    children: tuple[Child, ...]


R = TypeVar("R")

_MAX_REMEMBERED = 1000
_LONGEST_REMEMBERED = 128


class ExpectedContent(NamedTuple):
    """The content that follows a method, and the function to call with it."""

    method: type[Method]
    properties: type[Properties]
    complete: Callable[[CompleteContent[Any]], None]


class Amqp09Channel(BoundedChannel):
    """One channel. See the base class."""

    connection: Amqp09Connection

    def __init__(self, connection: Amqp09Connection, number: int) -> None:
        super().__init__(connection, number)
        self.choices: Amqp09Choices = connection.choices
        self.channel_id = b""
        """The id with which the client can resume the channel (channel.open-ok/channel-id)."""
        self.transport: OutOfBandTransport | None = None
        """The transport of out-of-band frames, if channel.open named one."""
        self.has_worked: bool = False
        """True once the client has published or consumed on the channel."""
        self._letter_handlers = handlers(self.personality.not_implemented)
        self.class_states: dict[type[Any], Any] = {}
        """Type -> state of an AMQP class, in order of creation."""
        self.expected: ExpectedContent | None = None
        """The incomplete content, whose frames are in `assembler`."""
        self.assembler: contents.ContentAssembler = contents.ContentAssembler()
        self._publishes: dict[bytes, ExpectedContent] = {}
        """The bytes of basic.publish -> its expected content, for publishes received before."""

    def class_state(self, kind: type[R]) -> R:
        """Return the class state of type `kind`; the first call creates it, as `kind(channel)`.

        A class state has a method `released`, called when the channel closes. One with unacknowledged
        deliveries has a `ledger`, and `put_back`, which makes those of its class unacknowledged again, and
        returns the others. One that outlives an interruption has `interrupted`, which returns what to keep or
        None, and `resumed`, which restores it.
        """
        kept: R | None = self.class_states.get(kind)
        if kept is None:
            kept = self.class_states[kind] = kind(self)  # type: ignore[call-arg]
        return kept

    def end_turn(self) -> None:
        """Send the queued confirms and the collected responses; called when all input is processed."""
        if self.unconfirmed:
            self.confirm_now()
        requests = self.class_states.get(Requests)
        if requests is not None:
            requests.end_turn()

    # --- methods in -----------------------------------------------------------------------------------

    def receive_method(self, payload: bytes) -> bool:
        expected = self._publishes.get(payload)
        if expected is not None and self.expected is None and self.state is ChannelState.OPEN:
            self.expected = expected
            self.assembler = contents.ContentAssembler()
            return False
        if self.state is not ChannelState.OPEN:
            self.receive_while_closing(FRAME_METHOD, payload)
            return False
        if self.expected is not None:
            self.connection.method_index = self.expected.method.INDEX
            awaited = "content body" if self.assembler.header else "content header"
            raise ProtocolError("frame-error", f"expected {awaited}, got a method instead")
        method = self.connection.decode(payload)
        if method.INDEX not in HANDLERS:
            # Methods of class connection, and methods that only brokers send (frame/channel-zero-connection).
            if method.NAME in self.connection.OPENING:
                raise ProtocolError("channel-error", f"{method.NAME} is for a channel that is not open")
            raise ProtocolError("command-invalid", f"{method.NAME} is not for an open channel")
        if method.INDEX in WORK:
            self.has_worked = True
        self.carry_out(method)
        expected = self.expected
        if expected is not None and expected.method is m.BasicPublish and not self.choices.checks_tickets:
            # Publishers repeat the same bytes. Caching these and the properties gives 1.5 times the messages
            # per second (measured). With tickets it is impossible, since each ticket must be checked.
            if len(self._publishes) >= _MAX_REMEMBERED:
                self._publishes.clear()
            self._publishes[payload] = expected
        return False

    def carry_out(self, method: Method) -> None:
        """Call the handler of a method, which refuses it if the broker is made without it."""
        self._letter_handlers[method.INDEX](self, method)

    # --- contents in ----------------------------------------------------------------------------------

    def expect_content(
        self, method: type[Method], properties: type[P], complete: Callable[[CompleteContent[P]], None]
    ) -> None:
        """Call `complete` once the content of the current method is complete."""
        self.expected = ExpectedContent(method, properties, complete)
        self.assembler = contents.ContentAssembler()

    def receive_header(self, payload: bytes) -> None:
        expected = self._content_for("header")
        if expected is None:
            return
        assembler = self.assembler
        first = assembler.header is None
        content = assembler.add_header(payload)
        class_id = int.from_bytes(payload[:2], "big")
        if first and class_id != expected.method.CLASS_ID:
            wanted = expected.method.CLASS_ID
            raise ProtocolError(
                "frame-error",
                f"expected content header for class {wanted}, got one for class {class_id} instead",
            )
        size = int.from_bytes(payload[4:12], "big")
        largest = self.personality.largest_content
        if largest and size > largest:
            raise ProtocolError(
                "frame-error", f"content body size {size} exceeds maximum allowed size {largest}"
            )
        if content is not None:
            self._complete(expected, content)
        if first:
            self.connection.publish_received()

    def receive_body(self, payload: bytes) -> None:
        expected = self._content_for("body")
        if expected is not None:
            content = self.assembler.add_body(payload)
            if content is not None:
                self._complete(expected, content)
            else:
                self.grow(len(payload))

    def _content_for(self, what: str) -> ExpectedContent | None:
        """Return the content that a frame is part of; None on a closing channel."""
        if self.state is not ChannelState.OPEN:
            return None
        expected = self.expected
        self.connection.method_index = expected.method.INDEX if expected else 0
        if expected is None:
            raise ProtocolError("frame-error", f"expected a method, got a content {what} instead")
        return expected

    def _complete(self, expected: ExpectedContent, content: contents.Content) -> None:
        self.expected = self._charge = None
        properties = self._decode(expected.properties, content.properties)
        children = tuple(_child(each) for each in content.children)
        expected.complete(CompleteContent(properties, content.properties, content.body, children))

    def _decode(self, kind: type[Properties], octets: bytes) -> Properties:
        """Decode properties; short property lists of class basic are cached."""
        if kind is not BasicProperties or len(octets) > _LONGEST_REMEMBERED:
            return kind.decode(octets, 0, self.connection.grammar)
        known = self.connection.known_properties
        found = known.get(octets)
        if found is None:
            found = BasicProperties.decode(octets, 0, self.connection.grammar), octets
            if len(known) >= _MAX_REMEMBERED:
                known.clear()
            known[octets] = found
        return found[0]

    @property
    def awaits_content(self) -> bool:
        """True while a content is incomplete."""
        return self.expected is not None

    def drop_content(self) -> None:
        super().drop_content()
        self.expected = None
        self.assembler = contents.ContentAssembler()

    # --- methods out ----------------------------------------------------------------------------------

    def send(self, method: Method) -> None:
        """Send a method on this channel; the answer to a request is sent in a response frame."""
        requests = self.class_states.get(Requests)
        if requests is None or not requests.answers(method):
            super().send(method)

    # --- contents out ---------------------------------------------------------------------------------

    def send_content(
        self,
        method: Method,
        class_id: int,
        properties: bytes,
        body: bytes,
        children: Sequence[Child] = (),
    ) -> None:
        """Send a method with its content; `properties` are flags and list."""
        if not self._can_be_sent(properties):
            return
        limit = self.connection.body_limit
        frames = contents.content_frames(self.number, class_id, properties, body, limit, children)
        requests = self.class_states.get(Requests)
        first = None if requests is None else requests.content_frame(method)
        self.outbox.write_pieces([first or method_frame(self.number, method.encode()), *frames])

    def send_message(self, method: Method, message: Message) -> None:
        requests = self.class_states.get(Requests)
        octets = delivering.encoded_properties(message)
        if message.children or (requests is not None and requests.current is not None):
            self.send_content(method, method.CLASS_ID, octets, message.body, message.children)
        else:
            super().send_message(method, message)

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        if not message.children:
            super().deliver(subscription, message, redelivered, delivery)
            return
        tag = self.ledger.next_tag() if delivery is None else self.ledger.add(delivery)
        self.note_delivered(message, subscription.queue.name, subscription.tag, tag, redelivered)
        self.send_message(
            m.BasicDeliver(
                consumer_tag=subscription.tag,
                delivery_tag=tag,
                redelivered=redelivered,
                exchange=message.exchange,
                routing_key=message.routing_key,
            ),
            message,
        )

    # --- for handlers ---------------------------------------------------------------------------------

    def authorise_publish(self, ticket: int, exchange: str, routing_key: str) -> None:
        """Check that the client may publish; a blank name is the default exchange (file.publish/exchange-01).

        Raises:
            NotFound: the exchange does not exist.
            AccessRefused: ticket or permissions do not allow it, or the exchange is internal.
            NotAllowed: the ticket belongs to another channel.
        """
        use_ticket(self, ticket, "write", "exchange", exchange)
        self.authorise("write", "exchange", exchange)
        self.virtual_host.routing.check_publishable(exchange)
        authorise_keys(self, exchange, (routing_key,))

    def readable_queue(self, ticket: int, name: str) -> Queue:
        """Return a queue after checking that the client may read it; a blank name is the current queue.

        Raises:
            ProtocolError: the name is blank, and the channel has no current queue.
            AccessRefused: ticket or permissions do not allow it (message.consume/ticket-01).
            NotFound, ResourceLocked: see `QueueRegister.require`.
        """
        name = self.named_queue(name)
        use_ticket(self, ticket, "read", "queue", name)
        self.authorise("read", "queue", name)
        return self.virtual_host.queues.require(name, self.connection)

    def named_queue(self, name: str) -> str:
        """As `queue_name`, with the error of 0-9 (queue.purge/queue-01 and similar rules)."""
        if not name and self.current_queue is None:
            raise ProtocolError("not-allowed", "no queue is named, and none was declared on the channel")
        return self.queue_name(name)

    def new_tag(self, tag: str) -> str:
        """The tag of a new consumer, generated if blank; it is not in use (basic.consume/consumer-tag-01)."""
        check_consumer_bound(self.connection.broker, len(self.consumers))
        if not tag:
            return self.connection.broker.names.consumer_tag()
        if self.connection.uses_tag(tag):
            raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
        return tag

    def subscribe(
        self,
        queue: Queue,
        tag: str,
        subscriber: Subscriber,
        method: m.BasicConsume | m.MessageConsume,
        windows: tuple[Credit, ...],
    ) -> None:
        """Start a consumer of messages of class basic; the caller answers, then dispatches the queue."""
        subscription = Subscription(
            tag,
            queue,
            subscriber,
            owner=self.connection,
            group=self,
            terms=ConsumerTerms(
                no_ack=method.no_ack,
                no_local=method.no_local,
                exclusive=method.exclusive,
                arguments=method.filter,
                options=queue.consumer_options(method.filter),
                content_class="basic",
            ),
            limits=DeliveryLimits(
                shared=queue.shares_windows and any(each.limits for each in windows),
                limits=(self.connection.gate, self.gate, *windows),
                credits=windows,
            ),
        )
        self.enter_consumer(subscription, no_ack=method.no_ack)

    def enter_consumer(self, subscription: Subscription, *, no_ack: bool) -> None:
        """Subscribe a new consumer of this channel at its queue."""
        subscription.queue.subscribe(subscription)
        self.consumers[subscription.tag] = subscription
        self.note_consumer(
            "consumer added",
            subscription,
            no_ack=no_ack,
            prefetch=0,
            shares_prefetch=subscription.shares_window,
        )

    def note_delivered(
        self, message: Message, queue: str, consumer: str | None, tag: int, redelivered: bool
    ) -> None:
        """Report that a message is sent to the client, with this delivery tag or request number."""
        tap = self.connection.broker.tap
        if tap is not None:
            tap.event("delivered", self.connection, message, queue, consumer, self.number, tag, redelivered)

    def settle(
        self,
        act: Callable[[Sequence[Delivery]], None],
        event: Settlement,
        deliveries: Sequence[Delivery],
    ) -> None:
        """Settle deliveries, now or when the channel's transaction is committed (file/transactional)."""
        settlement = partial(carry_out, self, act, event)
        if self.transaction is not None:
            self.transaction.settle(settlement, deliveries)
        else:
            settlement(deliveries)

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """The ledgers of all AMQP classes."""
        class_states = (kept for kept in self.class_states.values() if hasattr(kept, "ledger"))
        return (self.ledger, *(kept.ledger for kept in class_states))

    def put_back(self, deliveries: Sequence[Delivery]) -> None:
        """Each delivery returns to its own ledger."""
        for kept in self.class_states.values():
            if hasattr(kept, "ledger"):
                deliveries = kept.put_back(deliveries)
        self.ledger.put_back(deliveries)

    # --- closing --------------------------------------------------------------------------------------

    def release(self) -> None:
        """First releases the class states, without redelivery on this channel."""
        self.gate.shut()
        for kept in list(self.class_states.values()):
            kept.released()
        super().release()


def _child(content: contents.Content) -> Child:
    children = tuple(_child(each) for each in content.children)
    return Child(content.class_id, content.properties, content.body, children)
