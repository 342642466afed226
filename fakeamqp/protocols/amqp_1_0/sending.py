"""Links on which a client receives: they subscribe to a queue.

The client grants credit as a number beyond what it has received (1-0/flow/link-credit); settling gives none
back. With drain, credit that messages do not use up is given back at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fakeamqp.model.deliveries.delivery import release_all
from fakeamqp.model.deliveries.subscription import ConsumerTerms, DeliveryLimits, Grant, Subscription
from fakeamqp.model.erlang import Atom, pretty
from fakeamqp.model.limits import check_consumer_bound
from fakeamqp.protocols.amqp_1_0.addresses import QUEUES, BadAddress, VersionOne, queue_of_source
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import AMQP, HEADER_SIZE, frame
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Symbol,
    UByte,
    UInt,
    encode_binary,
    encode_items,
    encode_uint,
)
from fakeamqp.protocols.amqp_1_0.conversion import encoded_message
from fakeamqp.protocols.amqp_1_0.filters import consumer_arguments
from fakeamqp.protocols.amqp_1_0.replies import (
    INTERNAL_ERROR,
    INVALID_FIELD,
    MESSAGE_SIZE,
    NOT_IMPLEMENTED,
    RESOURCE_DELETED,
    EndFault,
    LinkFault,
    error,
)
from fakeamqp.protocols.amqp_1_0.values import Unconvertible

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery, Ending
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

_MASK: Final = 0xFFFFFFFF
_OUTCOMES: Final = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
_ACTIVE: Final = "rabbitmq:active"
_SETTLED: Final = 1
_UNSETTLED: Final = 0
_TRANSFER: Final = b"\0\x53\x14"
_NULL, _TRUE, _FALSE, _ZERO = b"\x40", b"\x41", b"\x42", b"\x43"
_FIELDS_BEHIND_MORE: Final = 5


class SendingLink:
    """One link to a client. It is also its own subscriber: see `model.subscription.Subscriber`."""

    def __init__(
        self,
        session: Amqp10Session,
        attach: c.Attach,
        address: str,
        queue: Queue,
        arguments: Mapping[str, Any],
    ) -> None:
        self.session: Amqp10Session = session
        self.address: str = address
        self.handle: int = attach.handle
        self.link_name: str = attach.name
        self.settled: bool = attach.snd_settle_mode == _SETTLED
        self.largest_message: int | None = attach.max_message_size or None
        self.delivery_count: int = session.choices.first_delivery_count
        self.grant: Grant = Grant(window=False)
        self.grant.set_messages(0)
        self._limits = (self.grant, session.connection.gate)
        self._tags = 0
        """How many tags were given, where the queue's numbers do not make them."""
        self._prefix: bytes = encode_uint(self.handle)
        self.ended: bool = False
        self._tells_activity = session.choices.tells_activity and queue.type_name == "quorum"
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
                options=queue.consumer_options(arguments),
            ),
            limits=DeliveryLimits(self._limits),
        )

    def __repr__(self) -> str:
        return f"<SendingLink {self.link_name!r} from queue {self.subscription.queue.name!r}>"

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
            raise EndFault(INTERNAL_ERROR, "the link has no source")
        if not isinstance(source, c.Source):
            raise LinkFault(INVALID_FIELD, choices.attach_refusal.format("source_required"))
        if source.dynamic:
            raise LinkFault(NOT_IMPLEMENTED, f"Dynamic source not supported: {source.capabilities or ''}")
        unknown = [each for each in source.outcomes or () if each not in _OUTCOMES]
        if unknown:
            shown = ",".join(f'{{symbol,<<"{each}">>}}' for each in unknown)
            raise LinkFault(NOT_IMPLEMENTED, f"Outcomes not supported: [{shown}]")
        queue = session.virtual_host.queues.require(_queue_name(session, source.address), session.connection)
        session.authorise("read", "queue", queue.name)
        check_consumer_bound(session.broker, len(session.sending))
        arguments, effective = consumer_arguments(session, queue, source.filter or {}, body.properties or {})
        link = cls(session, body, source.address, queue, arguments)
        queue.subscribe(link.subscription)
        session.sending[body.handle] = link
        session.note_consumer(
            "consumer added",
            link.subscription,
            no_ack=link.subscription.no_ack,
            prefetch=0,
            shares_prefetch=False,
        )
        stream = queue.keeps_delivered
        answer = c.Source(**vars(source))
        answer.default_outcome = c.Released()
        answer.outcomes = tuple(map(Symbol, _OUTCOMES)) if source.outcomes is None else source.outcomes
        if choices.names_distribution_mode:
            answer.distribution_mode = Symbol("copy" if stream else "move")
        if source.filter is not None and choices.echoes_filters:
            answer.filter = effective
        session.send(
            c.Attach(
                name=body.name,
                handle=body.handle,
                role=False,
                snd_settle_mode=UByte(_SETTLED if link.settled else _UNSETTLED),
                rcv_settle_mode=body.rcv_settle_mode,
                source=answer,
                initial_delivery_count=UInt(link.delivery_count),
                max_message_size=body.max_message_size,
            )
        )

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

    def cancelled(self, subscription: Subscription) -> None:
        """The queue has gone: detach (1-0/detach/queue-deleted)."""
        if self.ended:
            return
        self.ended = True
        session = self.session
        session.note_consumer("consumer ended", subscription)
        session.detach_for(self.handle, error(RESOURCE_DELETED))
        session.queue_deleted(subscription.queue.name)

    def held_too_long(self, subscription: Subscription | None) -> None:
        """The queue has taken messages back, which the client still has to settle."""

    # --- credit ---------------------------------------------------------------------------------------

    def flow(self, body: c.Flow) -> None:
        """Take the credit of the client; answer if it asks for that, or when the link is drained."""
        if body.link_credit is None:
            raise EndFault(INTERNAL_ERROR, "a flow to a receiver without credit")
        seen = (
            self.session.choices.first_delivery_count if body.delivery_count is None else body.delivery_count
        )
        beyond = ((seen + body.link_credit - self.delivery_count + 0x80000000) & _MASK) - 0x80000000
        queue = self.subscription.queue
        if beyond > 0 and not self.grant.open:
            queue.granted(self.subscription)
        self.grant.set_messages(max(0, beyond))
        if body.drain:
            # Also to a full transport: what is left of the credit would be lost.
            self.subscription.depend_on((self.grant,), ())
            queue.dispatch()
            if self.ended:
                return
            self.subscription.depend_on(self._limits, ())
            left = self.grant.messages or 0
            self.grant.set_messages(0)
            self.delivery_count = (self.delivery_count + left) & _MASK
        else:
            self.grant.resume()
        tells = self._tells_activity
        if (body.drain or body.echo or tells) and not (self.ended or self.session.crashed):
            writes = False if self.session.choices.writes_more else None
            alone = not queue.options.single_active_consumer or queue.single_active is self.subscription
            self.session.send_flow(
                handle=self.handle,
                delivery_count=UInt(self.delivery_count),
                link_credit=UInt(self.grant.messages or 0),
                available=UInt(min(len(queue.ready), _MASK)),
                drain=True if body.drain else writes,
                echo=writes,
                properties={Symbol(_ACTIVE): alone} if tells else None,
            )
            self._tells_activity = self._tells_activity and not tells

    # --- deliveries -----------------------------------------------------------------------------------

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        session = self.session
        number = session.next_delivery_id
        session.next_delivery_id = (number + 1) & _MASK
        self.grant.take(message)
        self.delivery_count = (self.delivery_count + 1) & _MASK
        queue = subscription.queue
        failures = message.failures
        if delivery is not None:
            failures = getattr(delivery.queued, "failures", 0) or failures
        if delivery is not None:
            if self.settled:
                delivery.accept()
            else:
                session.ledger.enter(number, delivery)
        tap = session.broker.tap
        if tap is not None:
            tap.event(
                "delivered",
                session.connection,
                message,
                queue.name,
                subscription.tag,
                session.channel,
                number,
                redelivered,
            )
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
            session.fail(
                EndFault(
                    MESSAGE_SIZE,
                    f"message size ({len(payload)} bytes) > maximum message size "
                    f"({self.largest_message} bytes)",
                )
            )
            return
        session.send_transfers(self._frames(number, self._tag(delivery), payload))

    def _tag(self, delivery: Delivery | None) -> bytes:
        """Four bytes: the queue's number of the message, or one that counts the link's deliveries."""
        if delivery is None or self.settled:
            return b""
        if delivery.queue.keeps_delivered:
            number = delivery.queued.position
        elif delivery.queue.replicated:
            number = self._tags
            self._tags += 1
        else:
            number = delivery.queued.position - 1
        return (number & _MASK).to_bytes(4, "big")

    def _frames(self, number: int, tag: bytes, payload: bytes) -> list[bytes]:
        """The transfers of one message; all but the last say that more follow (1-0/transfer/more)."""
        channel = self.session.channel
        items = [self._prefix, encode_uint(number), encode_binary(tag), _ZERO]
        items.append(_TRUE if self.settled else _FALSE)
        writes_more = self.session.choices.writes_more
        nulls = [_NULL] * _FIELDS_BEHIND_MORE if self.session.choices.writes_trailing_nulls else []
        last = _TRANSFER + encode_items([*items, _FALSE if writes_more else _NULL, *nulls])
        largest = self.session.connection.largest_sent - HEADER_SIZE
        if len(last) + len(payload) <= largest:
            return [frame(AMQP, channel, last + payload)]
        more = _TRANSFER + encode_items([*items, _TRUE, *nulls])
        room = largest - len(more)
        frames = []
        offset = 0
        while len(payload) - offset > room:
            frames.append(frame(AMQP, channel, more + payload[offset : offset + room]))
            offset += room
        frames.append(frame(AMQP, channel, last + payload[offset:]))
        return frames


def _queue_name(session: Amqp10Session, address: Any) -> str:
    refusal = session.choices.attach_refusal
    if not isinstance(address, str):
        raise LinkFault(INVALID_FIELD, refusal.format("{bad_address,undefined}"))
    if address == QUEUES:
        return ""
    try:
        return queue_of_source(address)
    except BadAddress:
        raise refused_address(session, "bad_address", address) from None
    except VersionOne:
        raise version_one(session, address) from None


def version_one(session: Amqp10Session, address: str) -> LinkFault:
    """The error about an address of version 1, which is not spoken here even where RabbitMQ permits it."""
    if session.broker.features.permitted("amqp_address_v1"):
        return LinkFault(
            NOT_IMPLEMENTED,
            f"address '{address}' is of version 1, which fakeamqp does not speak: write '/queues/NAME' or "
            "'/exchanges/NAME/KEY', percent-encoded",
        )
    return refused_address(session, "amqp_address_v1_not_permitted", address)


def refused_address(session: Amqp10Session, why: str, address: str) -> LinkFault:
    """The error about an address, with RabbitMQ's text."""
    before = session.choices.attach_refusal.format("")
    text = pretty((Atom(why), Atom(f'{{utf8,<<"{address}">>}}')), before)
    return LinkFault(INVALID_FIELD, before + text)
