"""One subscription of a session: its queue, its modes, its credit, and its transfers.

A message that was received by 0-10 is forwarded unchanged, except for the delivery-properties: they have its
exchange, its remaining time to live and its redelivered flag, and come first. A header segment is made once,
when a message is received or first sent; each delivery overwrites the parts that differ, which have a fixed
size.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Final

from fakeamqp.model.deliveries.subscription import ConsumerTerms, Grant, Subscription
from fakeamqp.model.errors import ResourceDeleted
from fakeamqp.protocols.amqp_0_10.codec import commands
from fakeamqp.protocols.amqp_0_10.codec.constants import AcceptMode, AcquireMode
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    BODY,
    COMMAND,
    FRAME_HEADER,
    HEADER,
    HEADER_SIZE,
    WHOLE_BODY,
    WHOLE_COMMAND,
    WHOLE_HEADER,
)
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties, encode_header
from fakeamqp.protocols.amqp_0_10.entities import plain
from fakeamqp.protocols.amqp_0_10.properties import ENCODING, TransferProperties

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Limit, Receipt
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession

_pack_frame = FRAME_HEADER.pack
_MOST_SHOWN = 1000
"""Below this number of shown messages the subscription does not check whether they still exist."""


class ServerSubscription:
    """One subscription. It is also its own subscriber: see `model.subscription.Subscriber`."""

    def __init__(self, session: ServerSession, command: commands.MessageSubscribe, queue: Queue) -> None:
        self.session = session
        self.destination: str = command.destination or ""
        self.accept_mode: AcceptMode = AcceptMode(command.accept_mode or 0)
        self.acquire_mode: AcquireMode = AcquireMode(command.acquire_mode or 0)
        self.resume_id: str | None = command.resume_id
        self.resume_ttl: int | None = command.resume_ttl
        self.grant: Grant = Grant(self._cost)
        """Nothing at first, in window mode (message.subscribe/initial-credit, default-flow-mode)."""
        self._extra = 0
        """How many bytes longer the header segments of its transfers are than those of others."""
        if self.resume_id is not None:
            empty = DeliveryProperties().encode()
            self._extra = len(resumable(empty, self.resume_id, self.resume_ttl)) - len(empty)
        self._shown = 0
        """How many messages it was shown, at most, that the session may still acquire."""
        self._most_shown = _MOST_SHOWN
        self._gone: str | None = None
        """The name of the queue, once that is gone and the client was not told."""
        arguments = plain(command.arguments)
        acquires = self.acquire_mode is AcquireMode.PRE_ACQUIRED
        # By personality, browsed messages that need no accept can still be acquired.
        no_ack = self.accept_mode is AcceptMode.NONE and (
            acquires or not session.choices.browsers_acquire_without_accepting
        )
        self.subscription: Subscription = Subscription(
            self.destination,
            queue,
            self,
            owner=session,
            group=session,
            terms=ConsumerTerms(
                no_ack=no_ack,
                acquires=acquires,
                exclusive=command.exclusive,
                arguments=arguments,
                options=queue.consumer_options(arguments),
            ),
        )
        self._transfer = commands.MessageTransfer(
            destination=self.destination, accept_mode=self.accept_mode, acquire_mode=self.acquire_mode
        ).encode()
        self._prefix = b""
        """The frame of the command, which is the same for all transfers on one transport."""
        self._channel = 0
        self._largest = 0
        """How many bytes a segment has at most that is one frame."""
        self.attached()

    def __repr__(self) -> str:
        return f"<ServerSubscription {self.destination!r} on queue {self.subscription.queue.name!r}>"

    def attached(self) -> None:
        """The session has another transport, or none; deliveries depend on the gates of that."""
        session = self.session
        connection = session.connection
        if connection is None:
            self._largest = -1
            self._depend_on((self.grant, session.gate))
            return
        self._channel = session.channel
        self._largest = connection.max_frame_size - HEADER_SIZE
        size = HEADER_SIZE + len(self._transfer)
        self._prefix = _pack_frame(WHOLE_COMMAND, COMMAND, size, 0, 1, self._channel, 0) + self._transfer
        self._depend_on((self.grant, session.gate, connection.gate))

    def _depend_on(self, limits: tuple[Limit, ...]) -> None:
        if self.subscription.active:
            self.subscription.depend_on(limits, ())

    def end(self) -> None:
        """End it at its queue; its transfers stay unsettled (message.cancel/post-cancel-*)."""
        if self._gone is None:
            self.session.note_consumer("consumer ended", self.subscription)
            self.subscription.queue.unsubscribe(self.subscription)

    # --- credit ---------------------------------------------------------------------------------------

    def _cost(self, message: Message) -> int:
        """The bytes that a message takes of the credit (message.set-flow-mode/byte-accounting)."""
        header = header_of(message, redelivered=False, time=0.0, stamps=self.session.choices.stamps_arrival)
        return len(header) + self._extra + len(message.body)

    def go_on(self) -> None:
        """Note that there is more credit than before; it cannot come from a deleted queue
        (message.subscribe/queue-deletion).
        """
        if self.grant.open:
            if self._gone is not None:
                raise self._deleted(self._gone)
            self.grant.resume()

    def flush(self) -> None:
        """Send ready messages as far as credit goes, even to a full transport; then stop."""
        if self.grant.open and self._gone is None:
            self._depend_on((self.grant,))
            self.subscription.queue.dispatch()
            self.attached()
        self.grant.stop()

    # --- deliveries -----------------------------------------------------------------------------------

    def deliver(
        self, subscription: Subscription, message: Message, redelivered: bool, delivery: Delivery | None
    ) -> None:
        session = self.session
        outgoing = session.outgoing
        grant = self.grant
        receipt = grant.take(message)
        if delivery is not None:
            session.ledger.enter(outgoing.next_id, delivery)
            if not delivery.acquired:
                self._shown += 1
                if self._shown > self._most_shown:
                    self._forget_gone()
        tap = session.broker.tap
        if tap is not None and session.connection is not None:
            name, tag = subscription.queue.name, outgoing.next_id
            tap.event(
                "delivered",
                session.connection,
                message,
                name,
                self.destination,
                session.channel,
                tag,
                redelivered,
            )
        firehose = session.virtual_host.firehose
        if firehose is not None:
            firehose.delivered(session.source, subscription.queue.name, message, redelivered)
        if message.encoding is ENCODING and not redelivered and message.expiry is None and not self._extra:
            header = message.properties_bytes
        else:
            header = self._header(message, redelivered)
        body = message.body
        done = partial(self._completed, receipt) if grant.gives_back else None
        largest = self._largest
        if len(body) > largest or len(header) > largest or body is NO_BODY or not outgoing.keeps_nothing:
            content = ((HEADER, header),) if body is NO_BODY else ((HEADER, header), (BODY, body))
            outgoing.send(((COMMAND, self._transfer), *content), done, message)
            return
        # Three frames at once. Measured against cutting each segment: 1.2 times the transfers per second.
        channel = self._channel
        outgoing.send_frames(
            b"".join(
                (
                    self._prefix,
                    _pack_frame(WHOLE_HEADER, HEADER, HEADER_SIZE + len(header), 0, 1, channel, 0),
                    header,
                    _pack_frame(WHOLE_BODY, BODY, HEADER_SIZE + len(body), 0, 1, channel, 0),
                    body,
                )
            ),
            done,
        )

    def _header(self, message: Message, redelivered: bool) -> bytes:
        session = self.session
        time, stamps = session.broker.clock.time(), session.choices.stamps_arrival
        header = header_of(message, redelivered=redelivered, time=time, stamps=stamps)
        if self.resume_id is None:
            return header
        return resumable(header, self.resume_id, self.resume_ttl)

    def _forget_gone(self) -> None:
        """Forget browsed messages that have left the queue: they cannot be acquired.

        Runs when their number has doubled, so the cost for each message is constant.
        """
        queue = self.subscription.queue
        there = {*queue.ready, *(each.queued for each in queue.unacked)}
        outstanding = self.session.ledger.outstanding
        mine = self.subscription
        shown = [tag for tag, each in outstanding.items() if each.holder is mine and not each.acquired]
        for tag in shown:
            if outstanding[tag].queued not in there:
                del outstanding[tag]
        self._shown = sum(tag in outstanding for tag in shown)
        self._most_shown = max(_MOST_SHOWN, 2 * self._shown)

    def _completed(self, receipt: Receipt) -> Grant | None:
        """The client has completed a transfer: return its credit (message.set-flow-mode/window-mode)."""
        return self.grant if self.grant.give_back(receipt) else None

    def cancelled(self, subscription: Subscription) -> None:
        """The queue has gone (message.subscribe/queue-deletion)."""
        session = self.session
        if session.subscriptions.get(self.destination) is not self:
            return
        session.note_consumer("consumer ended", subscription)
        self._gone = subscription.queue.name
        if self.grant.open or session.choices.deleted_queues_end_sessions:
            session.incoming.fail_by_itself(self._deleted(self._gone))

    def _deleted(self, queue: str) -> ResourceDeleted:
        return ResourceDeleted(f"queue '{queue}', which '{self.destination}' takes from, was deleted")

    def held_too_long(self, subscription: Subscription | None) -> None:
        """0-10 has no such timeout; the message is another's now."""


# --- header segments ----------------------------------------------------------------------------------------


class _NoBody(bytes):
    """No bytes, and no segment for them."""


NO_BODY: Final = _NoBody()
"""The body of a message that came without a body segment, and leaves without one (assembly/empty-body)."""

_FLAGS: Final = 6
"""Where the flags of a struct of four bytes size and two bytes code begin."""
_FIELDS: Final = 8
_REDELIVERED: Final = 0x04
_PRIORITY: Final = 0x08
_DELIVERY_MODE: Final = 0x10
_TTL: Final = 0x20
_pack_ttl = Struct(">Q").pack
_LONGEST_TTL = (1 << 64) - 1


def forwarded_header(properties: TransferProperties, exchange: str) -> bytes:
    """The header segment for subscribers of a message with these properties, as far as it is known.

    The name of the exchange is added (message.delivery-properties/exchange). A resume-id names the transfer
    to the broker and not those from it, and what has come in fragments is whole now.
    """
    came = properties.delivery or DeliveryProperties()
    return _forwarded(properties, came.ttl, came.timestamp, came.expiration, exchange, came.routing_key)


def _forwarded(
    properties: TransferProperties,
    ttl: int | None,
    timestamp: int | None,
    expiration: int | None,
    exchange: str,
    key: str | None,
) -> bytes:
    came = properties.delivery or DeliveryProperties()
    delivery = DeliveryProperties(
        came.discard_unroutable,
        came.immediate,
        came.redelivered,  # message.delivery-properties/redelivered-sticky
        came.priority,
        came.delivery_mode,
        ttl,
        timestamp,
        expiration,
        exchange,
        key,
    )
    if properties.fragment is None:
        return delivery.encode() + properties.rest_bytes
    message = () if properties.message is None else (properties.message,)
    return delivery.encode() + encode_header((*message, *properties.others))


def header_of(message: Message, *, redelivered: bool, time: float, stamps: bool) -> bytes:
    """The header segment of a transfer of this message.

    `time` is in seconds since 1970, and matters for messages with a time to live. `stamps` adds the time of
    the message's arrival.
    """
    octets = message.properties_bytes if message.encoding is ENCODING else _encode(message, stamps)
    flags = octets[_FLAGS]
    if redelivered and not flags & _REDELIVERED:
        octets = b"".join((octets[:_FLAGS], bytes((flags | _REDELIVERED,)), octets[_FLAGS + 1 :]))
    if flags & _TTL and message.expiry is not None:
        at = _FIELDS + bool(flags & _PRIORITY) + bool(flags & _DELIVERY_MODE)
        # What is left of the message's own time to live (message.delivery-properties/ttl).
        gone = time - message.published_at if message.published_at else 0.0
        left = min(max(0, round((message.expiry - gone) * 1000)), _LONGEST_TTL)
        octets = b"".join((octets[:at], _pack_ttl(left), octets[at + 8 :]))
    return octets


def _encode(message: Message, stamps: bool) -> bytes:
    """Make the header segment of a message that has none, and keep it."""
    properties = TransferProperties.of(message.properties)
    came = properties.delivery or DeliveryProperties()
    timestamp, expiration = came.timestamp, came.expiration
    if stamps and message.published_at and properties is message.properties:
        # message.delivery-properties/timestamp, message.delivery-properties/expiration; what came by another
        # version of AMQP says itself when that was.
        timestamp = int(message.published_at)
        if message.expiry is not None:
            expiration = int(message.published_at + message.expiry)
    ttl = None if message.expiry is None else 0
    key = message.routing_key or came.routing_key
    octets = _forwarded(properties, ttl, timestamp, expiration, message.exchange, key)
    message.properties_bytes, message.encoding = octets, ENCODING
    return octets


def resumable(header: bytes, resume_id: str, resume_ttl: int | None) -> bytes:
    """The header segment with the resume fields of a subscription (message.subscribe/resume-fields)."""
    size = 4 + int.from_bytes(header[:4], "big")
    delivery = DeliveryProperties.decode(header[:size])
    delivery.resume_id, delivery.resume_ttl = resume_id, resume_ttl
    return delivery.encode() + header[size:]
