"""message.transfer from the client: from a complete assembly to the model, and the publisher's answer.

A message may come in several transfers, and continue one of an earlier session. Its fragments go to one
destination, one after the other; whole messages and all other commands may come between them. The first
fragment has the properties of the message. The message is complete with the last one, and belongs to the
transaction of that moment.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from fakeamqp.errors import FakeAMQPError
from fakeamqp.model.errors import ContentTooLarge, IllegalArgument, IllegalState, ResourceError
from fakeamqp.model.messages.message import Message, UnfinishedMessage
from fakeamqp.model.routing import UNROUTABLE
from fakeamqp.model.transactions import PlannedPublish
from fakeamqp.protocols.amqp_0_10.codec import commands, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, CreditUnit, RejectCode
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties, MessageProperties
from fakeamqp.protocols.amqp_0_10.properties import ENCODING, TransferProperties
from fakeamqp.protocols.amqp_0_10.replies import SessionFault, short_text
from fakeamqp.protocols.amqp_0_10.server_subscription import NO_BODY, forwarded_header
from fakeamqp.protocols.amqp_0_10.states import SessionState

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.routing import Outcome
    from fakeamqp.protocols.amqp_0_10.codec.structs import FragmentProperties
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

_MOST_KEPT = 1000
"""So many commands, and so many of each kind for each target, are kept."""
_LONGEST_KEPT = 1024
"""Header segments of more bytes are not kept: they hardly repeat."""
_DELIVERY = DeliveryProperties.INDEX.to_bytes(2, "big")
_MESSAGE = MessageProperties.INDEX.to_bytes(2, "big")

_K = TypeVar("_K")
_V = TypeVar("_V")


class Heading:
    """A decoded header segment. `octets` is what subscribers of 0-10 get in its place."""

    __slots__ = (
        "content_length",
        "discards",
        "fragment",
        "immediate",
        "key",
        "octets",
        "properties",
        "resume_id",
        "resume_ttl",
        "ttl",
    )

    def __init__(self, properties: TransferProperties, octets: bytes) -> None:
        self.properties: TransferProperties = properties
        self.octets: bytes = octets
        delivery, message = properties.delivery, properties.message
        self.key: str = ""
        self.discards: bool = False
        self.immediate: bool = False
        self.ttl: int | None = None
        self.resume_id: str | None = None
        self.resume_ttl: int | None = None
        if delivery is not None:
            self.key = delivery.routing_key or ""
            self.discards, self.immediate = delivery.discard_unroutable, delivery.immediate
            self.ttl = delivery.ttl
            self.resume_id, self.resume_ttl = delivery.resume_id, delivery.resume_ttl
        self.content_length: int | None = None if message is None else message.content_length
        self.fragment: FragmentProperties | None = properties.fragment


class TransferTarget:
    """An exchange that a session publishes to, with its header segments.

    Programs publish to the same few exchanges, with the same few header segments, again and again. So decoded
    header segments are kept by their octets: that gives twice the transfers per second. A segment is kept
    when it comes a second time, because many programs give each message an id. Such programs mostly repeat
    the delivery-properties, which are kept apart.
    """

    __slots__ = ("_deliveries", "_seen", "checked", "exchange", "headings", "keys", "name", "throttled")

    def __init__(self, exchange: Exchange) -> None:
        self.name: str = exchange.name
        self.exchange: Exchange = exchange
        self.checked: int = -1
        """The state of access control in which the user's rights were checked."""
        self.keys: set[str] = set()
        """The keys that the user may publish with, where that depends on them."""
        self.headings: dict[bytes | None, Heading] = {}
        self.throttled: bool = False
        """Whether the client was told to publish nothing here for now."""
        self._deliveries: dict[bytes, tuple[DeliveryProperties, bytes]] = {}
        """Bytes of delivery-properties -> what they say, and what is forwarded of them."""
        self._seen: dict[int, None] = {}
        """The hashes of header segments that came once."""

    def keep(self, header: bytes | None, heading: Heading) -> None:
        """Keep a decoded header segment, once it comes a second time."""
        if header is not None and len(header) > _LONGEST_KEPT:
            return
        known = hash(header)
        if known in self._seen:
            _put(self.headings, header, heading)
        else:
            _put(self._seen, known, None)

    def read(self, header: bytes | None) -> Heading:
        """Read a header segment; SegmentError if it is wrong, or has a struct twice or an illegal value."""
        octets = header or b""
        # Nearly all are delivery-properties alone, or with message-properties behind them. Measured with an
        # id for each message, against taking struct by struct: 1.5 times the transfers per second.
        size = 4 + int.from_bytes(octets[:4], "big")
        rest = octets[size:]
        usual = octets[4:6] == _DELIVERY and rest[4:6] == _MESSAGE
        if usual and 4 + int.from_bytes(rest[:4], "big") == len(rest):
            delivery, forwarded = self._read_delivery(octets[:size])
            message = MessageProperties.decode(rest)
            return Heading(TransferProperties.of_structs(delivery, message, rest), forwarded + rest)
        properties = TransferProperties.decode(header)
        return Heading(properties, forwarded_header(properties, self.name))

    def _read_delivery(self, octets: bytes) -> tuple[DeliveryProperties, bytes]:
        known = self._deliveries.get(octets)
        if known is None:
            properties = TransferProperties.decode(octets)
            assert properties.delivery is not None
            known = properties.delivery, forwarded_header(properties, self.name)
            _put(self._deliveries, octets, known)
        return known


def _put(kept: dict[_K, _V], key: _K, value: _V) -> None:
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = value


_HIGHEST_PRIORITY = 9
_UNLIMITED: Final = 0xFFFFFFFF
_UNCONSUMED: Final = replace(UNROUTABLE, unconsumed=True)


def transfer(
    session: ServerSession, command: commands.MessageTransfer, header: bytes | None, body: bytes | None
) -> None:
    """Publish a message to the exchange that the destination names; a blank one is the default exchange.

    Raises:
        NotFound: there is no such exchange (message.transfer/destination-nonexistent-exchange).
        AccessRefused: it is internal, or the user may not write to it.
        SessionFault: the user-id is not the user's own (message.message-properties/user-id-authentication).
        IllegalArgument: the priority is not one (message/priority-values), or the size of a fragment is not
            what is said of it.
        IllegalState: a fragment has come that does not go on where the one before it ended.
        ContentTooLarge: the message is larger than the broker takes.
        ResourceError: a queue is full and refuses it, and there is no other way to tell.
    """
    session.publisher.transfer(command, header, body)


class Publisher:
    """The publishing side of a session."""

    __slots__ = ("_session", "fragments", "targets", "transfers")

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self.targets: dict[str, TransferTarget] = {}
        self.fragments: Fragments = Fragments(session)
        self.transfers: dict[bytes, commands.MessageTransfer] = {}
        """Commands by their bytes. Measured against decoding each: 1.2 times the transfers per second."""

    def remember(self, octets: bytes, command: commands.MessageTransfer) -> None:
        _put(self.transfers, octets, command)

    def aim(self, destination: str | None) -> TransferTarget:
        """Where a transfer with this destination goes; NotFound or AccessRefused as in `transfer`."""
        session = self._session
        name = destination or ""
        target = self.targets.get(name)
        exchange = session.virtual_host.exchanges.get(name)
        if target is not None and target.checked == session.access.version and target.exchange is exchange:
            return target
        session.authorise("write", "exchange", name)
        session.virtual_host.routing.check_publishable(name)
        known = target
        target = self.targets[name] = TransferTarget(session.virtual_host.exchanges.require(name))
        target.throttled = known is not None and known.throttled
        target.checked = session.access.version
        return target

    def transfer(self, command: commands.MessageTransfer, header: bytes | None, body: bytes | None) -> None:
        session = self._session
        connection = session.connection
        assert connection is not None
        target = self.aim(command.destination)
        if connection.blocked_reason is not None:
            connection.publish_received()
            if session.choices.throttles_with_flow and not target.throttled:
                self._throttle(target, throttled=True)
        heading = target.headings.get(header)
        if heading is None:
            heading = self.read(target, header)
        octets = NO_BODY if body is None else body
        ids: SequenceSet | None = None
        if heading.fragment is not None and not (heading.fragment.first and heading.fragment.last):
            whole = self.fragments.add(target, heading, header, octets)
            if whole is None:
                return
            heading, octets, ids = whole
        self._check(target, heading, octets)
        message = Message(
            target.name,
            heading.key,
            heading.properties,
            octets,
            ENCODING,
            heading.octets,
            connection.identity,
        )
        message.secured = True  # Completion tells the publisher that the broker has it.
        choices = session.choices
        if choices.stamps_arrival or heading.ttl is not None:
            message.published_at = session.broker.clock.time()
            if heading.ttl is not None:
                message.expiry = heading.ttl / 1000
            if choices.stamps_arrival:
                message.encoding = ""  # The header is another for each message.
        virtual_host = session.virtual_host
        # Header fields with further keys are RabbitMQ's: they do not concern publishers of 0-10.
        outcome = virtual_host.routing.route(message)
        if virtual_host.firehose is not None:
            virtual_host.firehose.publisher = session.source
            virtual_host.firehose.published(message, outcome)
        if not choices.answers_publishers and not (heading.immediate and choices.honours_immediate):
            if session.transaction is None:
                outcome = virtual_host.offer(message, outcome, sliced=True)
                session.incoming.after_operations(self._check_taken, outcome)
            else:
                session.transaction.publish(PlannedPublish(virtual_host, message, outcome))
            return
        self._decide(
            command, target, heading, message, outcome, ids or SequenceSet.of(session.incoming.current)
        )

    # --- what comes back ------------------------------------------------------------------------------

    def _check_taken(self, outcome: Outcome) -> None:
        if outcome.refused:
            raise ResourceError(f"the message was {outcome}")

    def _decide(
        self,
        command: commands.MessageTransfer,
        target: TransferTarget,
        heading: Heading,
        message: Message,
        outcome: Outcome,
        ids: SequenceSet,
    ) -> None:
        """Publish as the specification says: an unroutable message is discarded, rejected or passed on.

        Sources: message.delivery-properties/discard-unroutable, message.delivery-properties/immediate,
        message.transfer/accepts-explicit.
        """
        session = self._session
        answers = session.choices.answers_publishers and command.accept_mode != AcceptMode.NONE
        code: RejectCode | None = None
        passes_on = not (answers or heading.discards)
        if target.exchange.alternate_exchange and not passes_on:
            outcome = session.virtual_host.routing.route(message, alternates=False)
        if not outcome.queues and not outcome.delays:
            code = RejectCode.UNROUTABLE
        elif (
            heading.immediate
            and session.choices.honours_immediate
            and not all(queue.could_take(message) for queue in outcome.queues)
        ):
            code = RejectCode.IMMEDIATE
            outcome = self._past_queues(target, message) if passes_on else _UNCONSUMED
        rejects = answers and code is not None and not heading.discards
        told = partial(self._answer, message, ids, code if rejects else None) if answers else None
        if session.transaction is not None:
            planned = PlannedPublish(
                session.virtual_host, message, outcome, mandatory=rejects, on_outcome=told
            )
            session.transaction.publish(planned)
            return
        outcome = session.virtual_host.offer(message, outcome, mandatory=rejects, sliced=True)
        session.incoming.after_operations(told or self._check_taken, outcome)

    def _past_queues(self, target: TransferTarget, message: Message) -> Outcome:
        """Route a message that its queues do not get to the alternate exchange."""
        host = self._session.virtual_host
        alternate = host.exchanges.get(target.exchange.alternate_exchange or "")
        if not target.exchange.alternate_exchange or alternate is None:
            return _UNCONSUMED
        return host.routing.route(message, first=alternate)

    def _answer(self, message: Message, ids: SequenceSet, code: RejectCode | None, outcome: Outcome) -> None:
        """Tell the publisher the outcome of a message (message.reject/by-server)."""
        session = self._session
        if session.state not in (SessionState.ATTACHED, SessionState.DETACHED):
            return
        if code is None and outcome.accepted:
            session.send(commands.MessageAccept(transfers=ids))
            return
        text = short_text(str(outcome))
        if code is None:
            code = RejectCode.UNSPECIFIED
        else:
            session.virtual_host.message_outcomes.returned(message, code, text, session.channel)
        session.send(commands.MessageReject(transfers=ids, code=code, text=text))

    # --- what may be published ------------------------------------------------------------------------

    def read(self, target: TransferTarget, header: bytes | None) -> Heading:
        """Decode a header segment, and refuse an invalid one."""
        heading = target.read(header)
        delivery = heading.properties.delivery
        session = self._session
        checks = session.choices.checks_priorities
        if checks and delivery is not None and (delivery.priority or 0) > _HIGHEST_PRIORITY:
            raise IllegalArgument(f"priority {delivery.priority} is not one of 0 to {_HIGHEST_PRIORITY}")
        message = heading.properties.message
        if message is not None and message.user_id is not None and session.choices.checks_user_id:
            name = session.user.name
            if message.user_id != name.encode("utf-8", "surrogateescape"):
                text = f"user-id {message.user_id!r} is not that of the authenticated user '{name}'"
                raise SessionFault("unauthorized-access", text)
        target.keep(header, heading)
        return heading

    def _check(self, target: TransferTarget, heading: Heading, body: bytes) -> None:
        session = self._session
        largest = session.personality.largest_message
        if largest and len(body) > largest:
            raise ContentTooLarge(f"message size {len(body)} is larger than configured max size {largest}")
        stated = heading.content_length
        if stated is not None and session.choices.checks_content_length and stated != len(body):
            text = f"content-length {stated} is not the size of the body, {len(body)} bytes"
            raise IllegalArgument(text)
        key = heading.key
        if target.exchange.type_name == "topic" and key not in target.keys:
            session.access.check_topic(session.user, session.virtual_host.name, "write", target.name, key)
            if len(target.keys) >= _MOST_KEPT:
                target.keys.clear()
            target.keys.add(key)

    # --- throttling -----------------------------------------------------------------------------------

    def throttle(self, throttled: bool) -> None:
        """Ask the client to stop publishing or to continue, by personality (message/throttling)."""
        if self._session.choices.throttles_with_flow:
            for target in self.targets.values():
                if target.throttled != throttled:
                    self._throttle(target, throttled=throttled)

    def _throttle(self, target: TransferTarget, *, throttled: bool) -> None:
        target.throttled = throttled
        self.regulate(target.name, active=not throttled)

    def regulate(self, destination: str, *, active: bool) -> None:
        if not active:
            self._session.send(commands.MessageStop(destination=destination))
            return
        for unit in CreditUnit:
            self._session.send(commands.MessageFlow(destination=destination, unit=unit, value=_UNLIMITED))


# --- fragments ----------------------------------------------------------------------------------------------


class _Parts:
    """A message as far as it is received. `heading` is that of its first fragment."""

    __slots__ = ("body", "header", "heading", "ids")

    def __init__(self, heading: Heading, header: bytes | None) -> None:
        self.heading = heading
        self.header = header
        self.body = bytearray()
        self.ids = SequenceSet()


class Fragments:
    """The incomplete messages of a session, by destination."""

    __slots__ = ("_parts", "_session")

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._parts: dict[str, _Parts] = {}

    def add(
        self, target: TransferTarget, heading: Heading, header: bytes | None, body: bytes
    ) -> tuple[Heading, bytes, SequenceSet] | None:
        """Take a fragment. Returns first heading, body and ids of the message that it completes, or None."""
        fragment = heading.fragment
        assert fragment is not None
        name = target.name
        parts = self._parts.get(name)
        if fragment.first and parts is not None:
            raise IllegalState(f"a message to '{name}' begins before the last fragment of the one before it")
        if not fragment.first and parts is None:
            raise IllegalState(f"a further fragment has come of a message to '{name}' whose first never came")
        if fragment.fragment_size is not None and fragment.fragment_size != len(body):
            raise IllegalArgument(f"a fragment of {fragment.fragment_size} bytes has {len(body)}")
        if parts is None:
            parts = self._parts[name] = _Parts(heading, header)
        # All incomplete messages count: a session may begin one to each of many exchanges.
        largest = self._session.personality.largest_message
        size = len(body) + sum(len(each.body) for each in self._parts.values())
        if largest and size > largest:
            raise ContentTooLarge(f"fragments of {size} bytes are more than configured max size {largest}")
        parts.body += body
        parts.ids.add(self._session.incoming.current)
        if not fragment.last:
            return None
        del self._parts[name]
        return parts.heading, bytes(parts.body), parts.ids

    def resume(self, target: TransferTarget, resume_id: str) -> int:
        """Continue the message of this id. Returns how many bytes of it are received."""
        session = self._session
        name = target.name
        for destination, parts in self._parts.items():
            if parts.heading.resume_id == resume_id and destination == name:
                return len(parts.body)
        if name in self._parts:
            raise IllegalState(f"another message to '{name}' is under way")
        message = session.virtual_host.unfinished.take(session.user.name, resume_id)
        if message is None:
            return 0  # message.resume/resume-id-unknown-resume-id
        parts = self._parts[name] = _Parts(session.publisher.read(target, message.header), message.header)
        parts.body += message.octets
        return len(parts.body)

    def keep(self) -> None:
        """Keep what the sender of an ended session may resume (message.delivery-properties/resume-id)."""
        session = self._session
        broken_off = self._broken_off()
        for parts in (*self._parts.values(), *broken_off):
            heading = parts.heading
            if heading.resume_id is not None:
                ttl = None if heading.resume_ttl is None else heading.resume_ttl / 1000
                message = UnfinishedMessage(parts.header, bytes(parts.body))
                session.virtual_host.unfinished.keep(session.user.name, heading.resume_id, message, ttl)
        self._parts.clear()

    def _broken_off(self) -> list[_Parts]:
        """The received part of an incomplete transfer, unless it continues a kept message."""
        assembly = self._session.incoming.broken_off
        if assembly is None or assembly.body is None:
            return []
        publisher = self._session.publisher
        try:
            command, _ = commands.decode(assembly.first)
            if not isinstance(command, commands.MessageTransfer):
                return []
            target = publisher.aim(command.destination)
            heading = publisher.read(target, assembly.header)
        except FakeAMQPError:
            return []  # It could not have been published either.
        further = heading.fragment is not None and not heading.fragment.first
        parts = self._parts.get(target.name) if further else _Parts(heading, assembly.header)
        if parts is not None:
            parts.body += assembly.body
        return [] if parts is None or further else [parts]


def resume(session: ServerSession, command: commands.MessageResume) -> structs.MessageResumeResult:
    """Tell how much of an interrupted message the broker has (message.resume/offset); fragments follow. There
    must be such a destination (message.resume/destination-destination-not-found).
    """
    target = session.publisher.aim(command.destination)
    return structs.MessageResumeResult(
        offset=session.publisher.fragments.resume(target, command.resume_id or "")
    )
