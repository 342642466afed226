"""Links on which a client receives: they subscribe to a queue.

The client grants credit as a number beyond what it has received (1-0/flow/link-credit); settling gives none
back. With drain, credit that messages do not use up is given back at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from fakeamqp.model.deliveries.delivery import release_all
from fakeamqp.model.deliveries.subscription import ConsumerTerms, DeliveryLimits, Gate, Grant, Subscription
from fakeamqp.model.limits import check_consumer_bound
from fakeamqp.model.virtual_host.queues import check_owner
from fakeamqp.protocols.amqp_1_0.codec import composites as c, types as t
from fakeamqp.protocols.amqp_1_0.conversion import encoded_message
from fakeamqp.protocols.amqp_1_0.filters import link_arguments, offered_capabilities, read_filters
from fakeamqp.protocols.amqp_1_0.links import SETTLED, UNSETTLED, LinkToClient, too_large
from fakeamqp.protocols.amqp_1_0.replies import LinkFault, Reply, SessionCrash
from fakeamqp.protocols.amqp_1_0.serial import MASK
from fakeamqp.protocols.amqp_1_0.termini import OUTCOMES, source_of
from fakeamqp.protocols.amqp_1_0.values import Unconvertible

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery, Ending
    from fakeamqp.model.deliveries.subscription import Limit
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_1_0.filters import Filters
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

_ACTIVE: Final = t.Symbol("rabbitmq:active")
_BATCH: Final = 256
"""So many messages a link takes from its queue before those that wait are sent (RabbitMQ: measured)."""


class SendingLink(LinkToClient):
    """One link to a client. It is also its own subscriber: see `model.subscription.Subscriber`."""

    role: Literal["receiver"] = "receiver"

    def __init__(
        self, session: Amqp10Session, body: c.Attach, address: str, queue: Queue, filters: Filters
    ) -> None:
        super().__init__(session, body, address)
        self.grant: Grant = Grant(window=False)
        self.grant.set_messages(0)
        self._batch = Gate()
        """Shut while messages that the client's window does not admit wait, after a batch of them."""
        self._taken = 0
        """How many messages of the batch have been taken."""
        self._limits: tuple[Limit, ...] = (self.grant, session.connection.gate, self._batch)
        self._tags = 0
        """How many tags were given, where the queue's numbers do not make them."""
        self.ended: bool = False
        self.dynamic: bool = False
        """Whether its queue goes with it."""
        self._tells_activity = session.choices.tells_activity and queue.type_name == "quorum"
        self.filters: Mapping[Any, Any] = filters.in_force
        known = link_arguments(session, queue, body.properties or {})
        arguments = {**filters.arguments, **known}
        self._told: bool | None = None
        """Which activity the client was told last."""
        self._late: set[int] = set()
        """The deliveries that the queue has taken back, and that the client has not settled since."""
        self.subscription: Subscription = Subscription(
            str(self.handle),
            queue,
            self,
            owner=session.connection,
            group=session,
            terms=ConsumerTerms(
                # A stream keeps what it delivers; a link whose messages come settled settles them itself.
                no_ack=self.settled and not queue.keeps_delivered,
                arguments=arguments,
                options=queue.consumer_options(arguments if queue.keeps_delivered else known),
                passes=filters.passes,
            ),
            limits=DeliveryLimits(self._limits),
        )
        self._alone = not queue.options.single_active_consumer

    def __repr__(self) -> str:
        return f"<SendingLink {self.link_name!r} from queue {self.subscription.queue.name!r}>"

    @property
    def credit_left(self) -> int:
        """How many messages the client still takes."""
        return self.grant.messages or 0

    @property
    def source_queue(self) -> str:
        """The name of its queue."""
        return self.subscription.queue.name

    # --- attach and detach ----------------------------------------------------------------------------

    @classmethod
    def attach(cls, session: Amqp10Session, body: c.Attach, source: Any, target: Any) -> None:
        """Subscribe to the queue of the source, and answer.

        Raises:
            LinkFault: a field is illegal or not implemented.
            NotFound, ResourceLocked, AccessRefused: of the queue.
        """
        choices = session.choices
        if not isinstance(source, c.Source) and not choices.needs_source:
            raise SessionCrash("the link has no source")
        if not isinstance(source, c.Source):
            raise LinkFault(Reply.INVALID_FIELD, choices.attach_refusal.format("source_required"))
        check_consumer_bound(session.broker, len(session.sending))
        found = source_of(session, body, source)
        queue, answer = found.queue, c.Source(**vars(found.answer))
        assert queue is not None
        session.authorise("read", "queue", queue.name)
        check_owner(queue, session.connection)
        filters = read_filters(session, queue, answer.filter or {})
        kind = ReplyLink if found.dynamic == "replies" else cls
        link = kind(session, body, answer.address, queue, filters)
        link.dynamic = found.dynamic is not None
        link.subscribe()
        session.sending[body.handle] = link
        subscription = link.subscription
        session.note_consumer(
            "consumer added", subscription, no_ack=subscription.no_ack, prefetch=0, shares_prefetch=False
        )
        if found.dynamic != "replies":
            answer.default_outcome = c.Released()
            answer.outcomes = tuple(map(t.Symbol, OUTCOMES)) if source.outcomes is None else source.outcomes
        if choices.names_distribution_mode:
            answer.distribution_mode = t.Symbol("copy" if queue.keeps_delivered else "move")
        if not choices.echoes_source_capabilities:
            answer.capabilities = None
        if answer.filter is not None and choices.echoes_filters:
            answer.filter = filters.in_force
        session.answer_attach(
            body,
            snd_settle_mode=SETTLED if link.settled else UNSETTLED,
            rcv_settle_mode=body.rcv_settle_mode,
            source=answer,
            initial_delivery_count=link.delivery_count,
            max_message_size=body.max_message_size,
            offered_capabilities=offered_capabilities(session, queue),
        )
        if not link._alone and link._tells_activity:
            link.subscription.on_activity = link._activity_changed
            link._activity_changed()

    def subscribe(self) -> None:
        self.subscription.queue.subscribe(self.subscription)

    def stop(self) -> None:
        """Get nothing more, not even what is given back now."""
        self.grant.set_messages(0)
        self.subscription.queue.withdraw(self.subscription)

    def end(self) -> None:
        """End the subscription; what the client holds of it returns to the queue."""
        if self.ended:
            return
        self.ended = True
        session = self.session
        session.note_consumer("consumer ended", self.subscription)
        outstanding = session.ledger.outstanding
        mine = [tag for tag, each in outstanding.items() if each.holder is self.subscription]
        held = [outstanding.pop(tag) for tag in mine]
        self.stop()
        session.note_settled("requeued", held)
        # A quorum queue takes a detach as a release (RabbitMQ: measured on 4.3.6).
        ending: Ending = "released" if self.subscription.queue.type_name == "quorum" else "lost"
        release_all([each for each in held if each.acquired], ending=ending)
        self.subscription.queue.unsubscribe(self.subscription)
        if self.dynamic:
            session.delete_own(self.subscription.queue)

    def cancelled(self, subscription: Subscription) -> None:
        """The queue has gone: detach (1-0/detach/queue-deleted)."""
        if self.ended:
            return
        self.ended = True
        session = self.session
        session.note_consumer("consumer ended", subscription)
        session.queue_gone(self.handle)
        session.queue_deleted(subscription.queue.name)

    def held_too_long(self, subscription: Subscription | None) -> None:
        """The queue has taken messages back: tell the client, which still has to settle them.

        RabbitMQ: measured on 4.3.6 (1-0/disposition/consumer-timeout).
        """
        held = subscription.queue.unacked if subscription is not None else {}
        outstanding = self.session.ledger.outstanding.items()
        late = {number for number, each in outstanding if each.holder is subscription and each not in held}
        self.session.take_back([number for number in sorted(late - self._late) if number <= MASK])
        self._late = late
        self.timed_out = True

    # --- activity -------------------------------------------------------------------------------------

    @property
    def _active(self) -> bool:
        return self._alone or self.subscription.queue.single_active is self.subscription

    def _activity_changed(self) -> None:
        """Tell the client whether it is active now; at attach only if it is (1-0/flow/active)."""
        if not self.ended and self._told is not self._active and (self._active or self._told):
            self.session.in_order(partial(self._send_state, False))

    # --- credit ---------------------------------------------------------------------------------------

    def flow(self, body: c.Flow) -> None:
        """Take the credit of the client; answer if it asks for that, or when the link is drained."""
        if body.link_credit is None:  # RabbitMQ's session crashes (measured on 4.0.5 and 4.3.6).
            raise SessionCrash("a flow without link-credit")
        queue = self.subscription.queue
        credit = self.granted(body)
        if credit and not self.grant.open:
            queue.granted(self.subscription)
        self.grant.set_messages(credit)
        if body.drain:
            # Also to a full transport: what is left of the credit would be lost.
            self.subscription.depend_on((self.grant,), ())
            queue.dispatch()
            self.session.broker.operations.then(partial(self._drained, body))
        else:
            self.grant.resume()
            self._answer(body)

    def _drained(self, body: c.Flow) -> None:
        """Give back the credit that is left when the queue has been gone through."""
        if not self.ended:
            self.subscription.depend_on(self._limits, ())
            left = self.grant.messages or 0
            self.grant.set_messages(0)
            self.delivery_count = (self.delivery_count + left) & MASK
            self._answer(body)

    def _answer(self, body: c.Flow) -> None:
        tells = self._tells_activity and self._told is not self._active
        if (body.drain or body.echo or tells) and not (self.ended or self.session.crashed):
            self.session.in_order(partial(self._send_state, bool(body.drain)))

    def _send_state(self, drain: bool) -> None:
        """Send the state of the link, and its activity if the client does not know that."""
        if self.ended:
            return
        writes = False if self.session.choices.writes_more else None
        queue, active = self.subscription.queue, self._active
        ready = 0 if queue.type_name == "quorum" and not active else queue.count_for(self.subscription)
        tells = self._tells_activity and self._told is not active
        self.send_flow(
            self.credit_left,
            available=min(ready, MASK),
            drain=True if drain else writes,
            echo=writes,
            properties={_ACTIVE: active} if tells else None,
        )
        if tells:
            self._told = active

    # --- deliveries -----------------------------------------------------------------------------------

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        session = self.session
        number = session.next_delivery_id
        session.next_delivery_id = (number + 1) & MASK
        self.grant.take(message)
        self.delivery_count: int = (self.delivery_count + 1) & MASK
        queue = subscription.queue
        failures = message.failures
        if delivery is not None:
            failures = getattr(delivery.queued, "failures", 0) or failures
            if self.settled:
                delivery.accept()
            else:
                session.ledger.enter(number, delivery)
        tap = session.broker.tap
        if tap is not None:
            place = (queue.name, subscription.tag, session.channel, number)
            tap.event("delivered", session.connection, message, *place, redelivered)
        firehose = session.virtual_host.firehose
        if firehose is not None:
            firehose.delivered(session.source, queue.name, message, redelivered)
        choices = session.choices
        try:
            payload = encoded_message(message, choices, redelivered=redelivered, failures=failures)
        except Unconvertible as problem:
            # RabbitMQ's sessions read streams themselves (RabbitMQ: measured on 4.3.6).
            session.crash(str(problem), alone=queue.keeps_delivered)
            return
        if self.largest_message is not None and len(payload) > self.largest_message:
            session.fail(too_large(len(payload), self.largest_message))
            return
        session.send_transfers(self.frames(number, self._tag(delivery), payload))
        self._taken += 1
        if self._taken >= _BATCH:
            self._taken = 0
            if session.waiting_transfers:
                self._batch.shut()
                session.pausing.append(self)

    def go_on(self) -> None:
        """Take the next batch."""
        if not self.ended:
            self._batch.reopen()

    def _tag(self, delivery: Delivery | None) -> bytes:
        """Four bytes: the queue's number of the message, or one that counts the link's deliveries.

        What a classic queue delivers settled has no tag (RabbitMQ: measured on 4.0.5 and 4.3.6).
        """
        queue = self.subscription.queue
        if queue.keeps_delivered and delivery is not None:
            number = delivery.queued.position
        elif queue.replicated:
            number = self._tags
            self._tags += 1
        elif delivery is None:
            return b""
        else:
            number = delivery.queued.position - 1
        return (number & MASK).to_bytes(4, "big")


class ReplyLink(SendingLink):
    """A link for direct replies: it has an address, and no queue. Replies come settled.

    What finds no credit is lost (RabbitMQ: measured on 4.3.6).
    """

    def __init__(self, *fields: Any) -> None:
        super().__init__(*fields)
        self._limits = (self.grant,)
        self.subscription.depend_on(self._limits, ())

    def subscribe(self) -> None:
        host = self.session.virtual_host
        self._reply_address = host.open_reply_address(self.subscription, name=self.subscription.queue.name)

    def end(self) -> None:
        """Close the address: what comes later is lost."""
        if not self.ended:
            self.ended = True
            self.session.note_consumer("consumer ended", self.subscription)
            self.session.virtual_host.close_reply_address(self._reply_address)
