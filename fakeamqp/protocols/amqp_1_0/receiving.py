"""Links on which a client sends: to an exchange, to a queue, or to what each message names.

A message comes in one or more transfers. Its outcome is accepted, released (it was routed to no queue) or
rejected (a queue refused it), and is sent when every queue has decided.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from fakeamqp.model.erlang import Atom, pretty
from fakeamqp.model.memory import Charge
from fakeamqp.model.messages.message import Message
from fakeamqp.model.routing import UNROUTABLE, Copies, is_reply_address
from fakeamqp.protocols.amqp_1_0.addresses import BadAddress, Destination, VersionOne, destination_of
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol
from fakeamqp.protocols.amqp_1_0.filters import offered_capabilities
from fakeamqp.protocols.amqp_1_0.links import SECOND, SETTLED, UNSETTLED, LinkFromClient, too_large
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties, UnreadableMessage, read_message
from fakeamqp.protocols.amqp_1_0.replies import Detached, EndFault, LinkFault, Reply, SessionCrash, error
from fakeamqp.protocols.amqp_1_0.termini import check_publishable, target_of
from fakeamqp.protocols.amqp_1_0.values import term
from fakeamqp.protocols.base.codec import encoded

if TYPE_CHECKING:
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.routing import Outcome
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session
    from fakeamqp.protocols.amqp_1_0.termini import Resolved

_ACCEPTED, _RELEASED = c.Accepted(), c.Released()
_MODES: Final = {UNSETTLED: "unsettled", SETTLED: "settled"}
_X_CC: Final = Symbol("x-cc")
_MOST_KEYS: Final = 1000


class _Parts:
    """A message as far as it has come."""

    __slots__ = ("charge", "delivery_id", "octets", "settled", "tag")

    def __init__(self, delivery_id: int, tag: bytes, settled: bool) -> None:
        self.delivery_id: int = delivery_id
        self.tag: bytes = tag
        self.settled: bool = settled
        self.octets: bytearray = bytearray()
        self.charge: Charge | None = None


class ReceivingLink(LinkFromClient):
    """One link from a client; without a `destination` each message names its own."""

    role: Literal["sender"] = "sender"
    source_queue: None = None

    def __init__(self, session: Amqp10Session, body: c.Attach, found: Resolved) -> None:
        super().__init__(session, body, found.answer.address, session.choices.link_credit)
        self.destination: Destination | None = found.destination
        self._own: Queue | None = found.queue
        """The queue that goes with the link."""
        self._parts: _Parts | None = None
        self._watched: Queue | None = None
        self._checked: dict[tuple[str, str], int] = {}
        """Exchange and key -> the version of the access rules in which the user could publish there."""

    def __repr__(self) -> str:
        return f"<ReceivingLink {self.link_name!r} to {self.destination}>"

    @property
    def credit_left(self) -> int:
        """How many messages the client may still send."""
        return self.credit

    @property
    def begun(self) -> bool:
        """Whether a message has come in part."""
        return self._parts is not None

    @property
    def unfinished(self) -> int:
        return 0 if self._parts is None else len(self._parts.octets)

    # --- attach -----------------------------------------------------------------------------------------

    @classmethod
    def attach(cls, session: Amqp10Session, body: c.Attach, source: Any, target: Any) -> None:
        """Check the target, answer, and grant credit.

        Raises:
            LinkFault: a field is illegal or not implemented.
            NotFound, AccessRefused: of the queue or exchange.
            EndFault: there is no target, at which RabbitMQ crashes.
        """
        if isinstance(target, c.Coordinator):
            raise LinkFault(Reply.NOT_IMPLEMENTED, "Transactions not supported")
        if not isinstance(target, c.Target):
            raise SessionCrash("the link has no target")
        if body.initial_delivery_count is None:
            raise SessionCrash("a sender has no initial-delivery-count")
        found = target_of(session, body, target)
        link = cls(session, body, found)
        session.receiving[body.handle] = link
        session.answer_attach(
            body,
            snd_settle_mode=body.snd_settle_mode,
            rcv_settle_mode=0,
            source=source,
            target=found.answer,
            max_message_size=session.choices.largest_message,
            offered_capabilities=_offered(session, found.destination),
        )
        link.grant()

    def flow(self, body: c.Flow) -> None:
        """The sender tells its state. RabbitMQ does not answer it, not even with echo (measured)."""
        if body.delivery_count is not None:
            self.delivery_count: int = body.delivery_count

    def end(self) -> None:
        """The link is detached: a message that is not complete is forgotten."""
        self._parts = None
        if self._own is not None:
            self.session.delete_own(self._own)
        if self._watched is not None:
            self._watched.watchers.pop(self, None)

    # --- transfers ------------------------------------------------------------------------------------

    def transfer(self, body: c.Transfer, payload: bytes) -> None:
        parts = self._parts
        if parts is None:
            if body.delivery_id is None:
                raise SessionCrash("the first transfer of a delivery has no id")
            settled = self._settled(body)
            if body.rcv_settle_mode == SECOND and not settled:
                raise LinkFault(Reply.NOT_IMPLEMENTED, "rcv-settle-mode second not supported")
            parts = _Parts(body.delivery_id, body.delivery_tag or b"", settled)
        elif body.delivery_id is not None and body.delivery_id != parts.delivery_id:
            raise self._illegal(
                f"delivery-id of continuation transfer ({{uint,{body.delivery_id}}}) differs from "
                f"delivery-id on first transfer ({parts.delivery_id})"
            )
        elif body.settled is not None and body.settled is not parts.settled:
            raise self._illegal(
                f"field 'settled' of continuation transfer ({str(body.settled).lower()}) differs from "
                f"(interpreted) field 'settled' on first transfer ({str(parts.settled).lower()})"
            )
        largest = self.session.choices.largest_message
        size = len(parts.octets) + len(payload)
        if size > largest:
            raise too_large(size, largest)
        if body.more and not body.aborted:
            parts.octets += payload
            memory = self.session.broker.memory.unfinished
            if parts.charge is None:
                parts.charge = Charge(memory, size)
            else:
                parts.charge.change(size)
            self._parts = parts
            return
        self._parts = None
        if self.credit <= 0:
            raise Detached(Reply.TRANSFER_LIMIT)
        self.count()
        octets = bytes(parts.octets + payload) if parts.octets else payload
        self._receive(parts, octets)
        self.replenish()

    def replenish(self) -> None:
        """Grant credit again when half of it is used, after the outcomes that are due."""
        if self.credit <= self.session.choices.link_credit // 2 and self.session.open:
            self.session.end_turn()
            if self.session.receiving.get(self.handle) is self:
                self.grant()

    def _settled(self, body: c.Transfer) -> bool:
        """Whether the message comes settled; LinkFault where that is not the mode of the link."""
        settled = bool(body.settled)
        mode = _MODES.get(-1 if self.mode is None else self.mode)
        if mode is not None and settled is not (self.mode == SETTLED):
            raise self._illegal(
                f"sender settle mode is '{mode}' but transfer settled flag is interpreted as being "
                f"'{str(settled).lower()}'"
            )
        return settled

    def _illegal(self, text: str) -> LinkFault:
        old = self.session.choices.link_errors_end_sessions
        return LinkFault(Reply.FRAMING_ERROR if old else Reply.INVALID_FIELD, text)

    def _receive(self, parts: _Parts, octets: bytes) -> None:
        session = self.session
        try:
            properties, body = read_message(octets, session.choices)
        except UnreadableMessage as problem:
            raise self._unreadable(problem) from None
        destination = self.destination
        user_id = properties.fields.user_id
        if user_id is not None:
            self._check_user(user_id)
        if destination is None:
            found = self._destination_of(parts, properties)
            if found is None:
                return
            destination = found
        message = Message(
            destination.exchange,
            destination.key_for(properties.fields.subject),
            properties,
            body,
            publisher=session.connection.identity,
            published_at=session.broker.clock.time(),
        )
        if properties.ttl is not None:
            message.expiry = properties.ttl / 1000
        message.secured = not parts.settled
        message.further_bytes = properties.further_bytes(octets, body)
        copies = properties.annotations.get(_X_CC) if session.choices.copies_by_annotation else None
        if copies is not None:
            if not isinstance(copies, list) or not all(isinstance(each, str) for each in copies):
                text = f"bad value for 'x-cc' message-annotation: {term(copies)}"
                self._refuse(parts, destination, LinkFault(Reply.INVALID_FIELD, text))
                return
            message.copies = Copies(tuple(copies), ())
        self._publish(parts, message)

    def _unreadable(self, problem: UnreadableMessage) -> EndFault | LinkFault:
        if self.session.choices.unreadable_messages_end_sessions:
            return SessionCrash(str(problem))
        before = "failed to parse message: "
        terms = tuple(map(Atom, problem.terms))
        return LinkFault(
            Reply.DECODE_ERROR, before + (terms[0] if len(terms) == 1 else pretty(terms, before))
        )

    def _check_user(self, user_id: Any) -> None:
        name = self.session.user.name
        if not isinstance(user_id, bytes):
            raise SessionCrash(f"user-id {user_id!r} is no binary")
        if user_id != encoded(name) and "impersonator" not in self.session.user.tags:
            said = user_id.decode("utf-8", "replace")
            text = f"user_id property set to '{said}' but authenticated user was '{name}'"
            raise LinkFault(Reply.UNAUTHORIZED, text)

    def _destination_of(self, parts: _Parts, properties: SectionProperties) -> Destination | None:
        """Where a message on the anonymous terminus goes; None if it was refused."""
        to = properties.fields.to
        text = "anonymous terminus requires 'to' address to be set"
        if isinstance(to, str):
            try:
                return destination_of(to)
            except (BadAddress, VersionOne):
                text = f"bad 'to' address string: {to}"
        self._refuse(parts, None, LinkFault(Reply.PRECONDITION_FAILED, text))
        return None

    def _publish(self, parts: _Parts, message: Message) -> None:
        session = self.session
        host = session.virtual_host
        place = (message.exchange, message.routing_key)
        if self._checked.get(place) != session.access.version:
            session.authorise("write", "exchange", message.exchange)
            try:
                check_publishable(session, message.exchange)
            except LinkFault as fault:
                if fault.condition == Reply.UNAUTHORIZED:
                    raise
                self._refuse(parts, Destination(*place), fault)
                return
            session.authorise_topic("write", *place)
            if len(self._checked) >= _MOST_KEYS:
                self._checked.clear()
            self._checked[place] = session.access.version
        elif message.exchange not in host.exchanges:
            missing = host.missing("exchange", message.exchange)
            self._refuse(parts, Destination(*place), LinkFault(Reply.NOT_FOUND, missing.text))
            return
        self._watch()
        outcome = host.routing.route(message)
        late = False
        if not outcome.routed and not message.exchange and is_reply_address(message.routing_key):
            late = session.choices.replies_directly
        elif not session.choices.replies_directly and message.routing_key in host.reply_addresses:
            outcome = UNROUTABLE
        if host.firehose is not None:
            host.firehose.publisher = session.source
            host.firehose.published(message, outcome)
        outcome = host.offer(message, outcome, sliced=True)
        if not parts.settled:
            session.broker.operations.then(partial(self._answer, parts.delivery_id, outcome, late))

    def _watch(self) -> None:
        """The link ends with its queue, which the session knows since the first publish (measured)."""
        if self._watched is None and self.destination is not None and not self.destination.exchange:
            queue = self.session.virtual_host.queues.get(self.destination.routing_key or "")
            if queue is not None:
                self._watched = queue
                queue.watchers[self] = partial(self.session.queue_deleted, queue.name)

    # --- outcomes ---------------------------------------------------------------------------------------

    def _answer(self, delivery_id: int, outcome: Outcome, late: bool) -> None:
        """Send the outcome; a `late` reply, whose requester has gone, is accepted too."""
        if outcome.refused:
            state: c.Composite = c.Rejected(error=self._refusal(outcome))
        elif outcome.routed or outcome.delays or late:
            state = _ACCEPTED
        else:
            state = _RELEASED
        self.session.outcome(delivery_id, state)

    def _refusal(self, outcome: Outcome) -> c.Error | None:
        """Names the queue that refused a message, by personality (1-0/rejected/error)."""
        if not self.session.choices.rejections_name_queues:
            return None
        name = outcome.refused[0].name
        info = {"queue": name, "reason": Symbol("maxlen")}
        return error(Reply.LIMIT_EXCEEDED, f"queue '{name}' exceeded maximum length", info)

    def _refuse(self, parts: _Parts, destination: Destination | None, fault: LinkFault) -> None:
        """Refuse a message: on the anonymous terminus with an outcome, otherwise the link is detached."""
        if self.destination is None:
            if parts.settled:
                raise Detached(fault.condition, fault.text, {"delivery-tag": parts.tag})
            self.session.outcome(parts.delivery_id, c.Rejected(error=fault.error))
            return
        if not parts.settled:
            self.session.outcome(parts.delivery_id, c.Released())
        raise Detached(fault.condition, fault.text)


def _offered(session: Amqp10Session, destination: Destination | None) -> tuple[Symbol, ...] | None:
    """What a link to a queue offers."""
    if not session.choices.targets_offer_filters or destination is None or destination.exchange:
        return None
    return offered_capabilities(session, session.virtual_host.queues.get(destination.routing_key or ""))
