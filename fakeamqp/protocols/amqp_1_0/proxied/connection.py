"""The client's leg of a connection of 1.0 through a proxy; see `amqp_0_9_1.proxied.connection`.

Frames of either side are shown to the tap, looked at, and passed to the other side. Their bytes stay what
they are, unless a fault has changed something: then numbers are translated (`session`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fakeamqp.model.messages.message import Message
from fakeamqp.protocols.amqp_1_0.addresses import Destination
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import AMQP, FRAME_HEADER, HEADER_SIZE, SASL, frame
from fakeamqp.protocols.amqp_1_0.dialect import DIALECT
from fakeamqp.protocols.amqp_1_0.dialect.frames import decode
from fakeamqp.protocols.amqp_1_0.dialect.groups import destination
from fakeamqp.protocols.amqp_1_0.messages import SectionProperties, read_message
from fakeamqp.protocols.amqp_1_0.proxied.session import HeldDelivery, ProxiedLink, ProxiedSession
from fakeamqp.protocols.amqp_1_0.replies import Reply, error
from fakeamqp.protocols.amqp_1_0.serial import MASK
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.protocols.base.proxied.client_leg import ClientLeg, log
from fakeamqp.protocols.base.proxied.cutter import LARGEST_FRAME, FrameCutter

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_1_0.proxied.port import ProxiedAmqp10FaultPort
    from fakeamqp.protocols.base.proxied.legs import BrokerLeg

_CLOSE_TIMEOUT = 30.0
_VIRTUAL_HOST = "vhost:"
_CLIENT, _BROKER = range(2)


class Amqp10FrameCutter(FrameCutter):
    """See `FrameCutter`."""

    HEADER_SIZE: ClassVar[int] = HEADER_SIZE

    def _measure(self, data: bytes, position: int) -> tuple[int, str]:
        if data[position : position + 4] == b"AMQP":
            return HEADER_SIZE, ""
        size, offset, kind, _ = FRAME_HEADER.unpack_from(data, position)
        fits = HEADER_SIZE <= offset * 4 <= size <= LARGEST_FRAME
        return size, "" if fits else f"a frame of type {kind} with {size} bytes"

    def _read(self, octets: bytes) -> tuple[int, int, bytes]:
        return DIALECT.cut(octets)[0][:3]


class ProxiedAmqp10Connection(ClientLeg):
    """The leg to a client that has sent the protocol header of 1.0; it takes the place of `before`."""

    protocol: str = "1-0"

    def __init__(self, before: ClientLeg) -> None:
        before.state.connections.pop(before)
        super().__init__(before.state, before.name, before.use)
        self.container_id: str = ""
        self.sessions: dict[int, ProxiedSession] = {}
        """By the client's channel."""
        self.by_broker_channel: dict[int, ProxiedSession] = {}
        self.rest_passes: bool = False
        """True while the rest of a delivery passes whose beginning has passed."""
        self.broker: BrokerLeg = before.broker
        self.broker.serve(self)
        self.report("connected", "AMQP 3-1-0-0")
        self.await_broker()
        self.use(self)

    def new_cutter(self) -> Amqp10FrameCutter:
        return Amqp10FrameCutter()

    # --- for the model, faults and views ----------------------------------------------------------------

    @cached_property
    def fault_port(self) -> ProxiedAmqp10FaultPort:
        """The fault port of this connection."""
        from fakeamqp.protocols.amqp_1_0.proxied.port import ProxiedAmqp10FaultPort

        return ProxiedAmqp10FaultPort(self)

    @property
    def open_channels(self) -> tuple[ProxiedSession, ...]:
        return tuple(self.sessions[number] for number in sorted(self.sessions) if self.sessions[number].open)

    def close_by_operator(self, code: int, text: str) -> None:
        self.close(Reply.INTERNAL_ERROR, text)

    def set_blocked(self, reason: str | None) -> None:
        """Close the windows of the sessions for publishers, or open them again."""
        if reason == self.blocked_reason or not self.opened:
            return
        self.blocked_reason = reason
        self.report("unblocked" if reason is None else "blocked", reason or "")
        for session in self.open_channels:
            self.stop(session, reason is not None)

    def stop(self, session: ProxiedSession, stopped: bool) -> None:
        """Close the window of a session for publishers, or open it again."""
        session.stopped = stopped
        self.send(session.number, session.flow())

    # --- the client's bytes -----------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        self.heard_at: float = self.state.clock.now()
        self.take_frames(data)

    def take(self, frames: bytes, *, counted: bool = True) -> None:
        """Forward whole frames of the client that a fault had kept. A duplicate is not `counted`."""
        duplicate: int | None = None
        parts: list[bytes] = []
        cut = list(Amqp10FrameCutter().cut(frames))
        for kind, number, payload, octets in cut:
            body, rest = _decoded(kind, payload)
            if not counted and isinstance(body, c.Transfer):
                session = self.sessions.get(number)
                link = None if session is None else session.by_handle.get(body.handle)
                if session is None or link is None:
                    return
                if duplicate is None:
                    duplicate = session.duplicate(link, body.delivery_id or 0, len(cut))
                body.delivery_id = duplicate
                self.broker.write(frame(AMQP, number, body.encode() + rest))
                parts.append(rest)
                if not body.more:
                    self.published(link, b"".join(parts))
            else:
                self.forward(kind, number, payload, octets)

    def forward(self, kind: int, number: int, payload: bytes, octets: bytes) -> None:
        """Pass a frame of the client to the broker, unless it concerns the proxy alone."""
        body, rest = _decoded(kind, payload)
        session = self.sessions.get(number)
        if self.closing:
            if isinstance(body, c.Close):
                self.finish("close confirmed")
            return
        if session is not None and session.closing and not isinstance(body, (c.Open, c.Close)):
            self._while_session_ends(session, body, octets)
            return
        made = self._looked_at(_CLIENT, session, number, body, rest, octets)
        if made:
            self.broker.write(made)

    def _looked_at(
        self, side: int, session: ProxiedSession | None, number: int, body: Any, rest: bytes, octets: bytes
    ) -> bytes:
        """What passes in the place of a frame; b"" for nothing."""
        of_connection = _OF_CONNECTION[side].get(type(body))
        if of_connection is not None:
            return octets if of_connection(self, number, body) else b""
        handler = _IN_SESSION[side].get(type(body))
        if handler is None or session is None:
            return octets
        handles = session.by_handle if side == _CLIENT else session.by_broker_handle
        handle: Any = getattr(body, "handle", None)
        passes = handler(self, Frame(session, handles.get(handle), body, rest, octets))
        if isinstance(passes, bool):
            return octets if passes else b""
        return b"".join(_framed(number, each) for each in passes)

    def _while_session_ends(self, session: ProxiedSession, body: Any, octets: bytes) -> None:
        """The proxy has ended a session: until the client has confirmed that, its frames are dropped."""
        if "client" not in session.closing:
            session.waiting.append(octets)
        elif isinstance(body, c.End):
            self._ended_at(session, "client")

    def _ended_at(self, session: ProxiedSession, side: str) -> None:
        session.closing.discard(side)
        if not session.closing:
            self.forget(session)
            self.take(b"".join(session.waiting))

    def published(self, link: ProxiedLink, octets: bytes) -> None:
        """The client has sent the last transfer of a message."""
        properties, body = _message(octets)
        place = link.destination or destination(properties.fields.to) or Destination("", "")
        key = place.key_for(properties.fields.subject)
        self.passed_on(Message(place.exchange, key, properties, body, publisher=self.identity))

    # --- the broker's bytes -----------------------------------------------------------------------------

    def receive_from_broker(self, kind: int, number: int, payload: bytes, octets: bytes) -> None:
        if self.over or self.closing:
            return
        if octets == DIALECT.answer:  # Not a frame of the trace: it follows from the client's header.
            self.write(octets)
            return
        body, rest = _decoded(kind, payload)
        session = self.by_broker_channel.get(number)
        if session is not None and session.closing and not isinstance(body, (c.Open, c.Close)):
            if isinstance(body, c.End):
                self._ended_at(session, "broker")
            return
        made = self._looked_at(_BROKER, session, number, body, rest, octets)
        if made:
            self.pass_to_client(made)
        if isinstance(body, c.Begin) and (session := self.by_broker_channel.get(number)) is not None:
            self.send_all(session, session.deferred)

    def pass_parts(self) -> None:
        for session in self.sessions.values():
            for link in session.links:
                self.write(b"".join(link.frames))
                link.frames.clear()

    def pass_to_client(self, octets: bytes) -> None:
        """Send whole frames to the client, or those that the tap returns for them."""
        tap = self.state.tap
        self.write(octets if tap is None else tap.sending(self, octets))

    def delivered(
        self, session: ProxiedSession, link: ProxiedLink, settled: bool, octets: bytes, count: int
    ) -> None:
        """The broker has sent the last transfer of a delivery."""
        properties, content = _message(octets)
        said = properties.annotations
        exchange, key = (str(said.get(name, "")) for name in ("x-exchange", "x-routing-key"))
        message = Message(exchange, key, properties, content)
        message.published_at = self.state.clock.time()
        held = HeldDelivery(link.broker_id, link, message, settled)
        number = session.delivered(held, count)
        tap = self.state.tap
        if tap is not None:
            message.number = next(self.state.message_numbers)
            tap.event("delivered", self, *_delivery(held, session.number, number), False)

    def broker_refused(self, why: str) -> None:
        """As RabbitMQ does before open, the proxy ends the transport without a word."""
        log.warning("%s: no connection to the broker: %s", self.name, why)
        self.report("refused", why)
        self.finish(why)

    # --- what the proxy says ----------------------------------------------------------------------------

    def send(self, number: int, body: c.Composite) -> None:
        """Send a performative of the proxy to the client."""
        self.pass_to_client(_framed(number, body))

    def tell_broker(self, number: int, body: c.Composite) -> None:
        """Send a performative of the proxy to the broker."""
        self.broker.write(_framed(number, body))

    def close(self, condition: str, text: str) -> None:
        """Close the connection on both sides: the client gets this condition and text."""
        if self.closing or self.over:
            return
        if not self.opened:
            self.finish(text)
            return
        self.send(0, c.Close(error=error(condition, text)))
        self.closing = True
        self.tell_broker(0, c.Close())
        self.broker.end()
        self.call_in(_CLOSE_TIMEOUT, lambda: self.finish("no close has come"), "ends without close")

    def refuse_login(self, why: str) -> None:
        """Tell the client that its login is refused, and end the transports."""
        self.pass_to_client(frame(SASL, 0, c.SaslOutcome(code=1).encode()))
        self.finish(why)

    def end_session(self, session: ProxiedSession, condition: str, text: str) -> None:
        """End a session on both sides: the client gets this condition and text."""
        if session.closing:
            return
        self.send(session.number, c.End(error=error(condition, text)))
        self.settle_all(session)
        session.open = False
        session.closing = {"client", "broker"}
        self.tell_broker(session.number, c.End())

    def detach(self, session: ProxiedSession, body: Any, condition: str, text: str) -> None:
        """Detach a link on both sides, or refuse an attach that the broker has not got."""
        handle: Any = getattr(body, "handle", None)
        link = session.by_handle.get(handle) if handle is not None else None
        said: list[c.Composite] = []
        if link is None and isinstance(body, c.Attach):
            sends = body.role is False
            link = session.by_handle[handle] = ProxiedLink(body)
            link.closing = {"client"}
            answer = c.Attach(name=body.name, handle=handle, role=sends)
            if sends:
                answer.source = c.composite_or_value(body.source)
            else:
                answer.target, answer.initial_delivery_count = c.composite_or_value(body.target), 0
            said.append(answer)
        elif link is None or link.closing:
            return
        else:
            link.closing = {"client", "broker"}
        said.append(c.Detach(handle=handle, closed=True, error=error(condition, text)))
        if session.open:
            self.send_all(session, said)
        else:
            session.deferred += said
        if "broker" in link.closing:
            self.tell_broker(session.number, c.Detach(handle=handle, closed=True))

    def send_all(self, session: ProxiedSession, said: list[c.Composite]) -> None:
        """Send performatives of the proxy to the client, and forget them."""
        while said:
            self.send(session.number, said.pop(0))

    def regrant(self, session: ProxiedSession, link: ProxiedLink | None) -> None:
        """Grant credit again that messages have used up which the broker does not get."""
        flow = None if link is None else session.regrant(link)
        if flow is not None:
            self.send(session.number, flow)

    # --- events -----------------------------------------------------------------------------------------

    def settle_everything(self) -> None:
        for session in self.sessions.values():
            self.settle_all(session)

    def settle_all(self, session: ProxiedSession) -> None:
        """What the client holds returns to the broker."""
        self.settled(session, "requeued", list(session.held.items()))
        session.held.clear()

    def settled(self, session: ProxiedSession, event: str, held: list[tuple[int, HeldDelivery]]) -> None:
        """Report that the client settles these deliveries."""
        tap = self.state.tap
        if tap is not None:
            for number, each in held:
                tap.event(event, self, *_delivery(each, session.number, number))

    def link_event(self, session: ProxiedSession, event: str, link: ProxiedLink) -> None:
        """Report a consumer that begins or ends."""
        if self.state.tap is not None and link.role == "receiver":
            place = (link.source_queue or "", str(link.handle), self.name, session.number)
            self.state.tap.event(event, None, None, *place, False, 0, False, True, self.virtual_host_name)

    def forget(self, session: ProxiedSession) -> None:
        """The session has ended."""
        self.settle_all(session)
        self.sessions.pop(session.number, None)
        for number in [number for number, each in self.by_broker_channel.items() if each is session]:
            del self.by_broker_channel[number]

    def __repr__(self) -> str:
        return f"<ProxiedAmqp10Connection {self.name} {self.stage} sessions={len(self.sessions)}>"


def _decoded(kind: int, payload: bytes) -> tuple[Any, bytes]:
    """A performative and what follows it; None for a frame that has none or cannot be read."""
    return decode(kind, payload) or (None, b"")


def _framed(number: int, body: c.Composite) -> bytes:
    return frame(AMQP, number, body.encode())


def _message(octets: bytes) -> tuple[SectionProperties, bytes]:
    try:
        return read_message(octets)
    except WireError:
        return SectionProperties(), octets


def _delivery(held: HeldDelivery, number: int, delivery_id: int) -> tuple[Any, ...]:
    """The values of an event about a delivery, its message first."""
    queue = held.link.source_queue or ""
    return held.message, queue, str(held.link.handle), number, delivery_id


class Frame(NamedTuple):
    """A frame of a session with a performative, what follows it, and all of its bytes."""

    session: ProxiedSession
    link: ProxiedLink | None
    body: Any
    rest: bytes
    octets: bytes


Passes = bool | list[Any]
"""True to pass a frame, False to drop it, or performatives in its place."""

# --- frames of the connection ------------------------------------------------------------------------------


def _sasl_init(connection: ProxiedAmqp10Connection, number: int, body: Any) -> bool:
    parts = (body.initial_response or b"").split(b"\0")
    if body.mechanism == "PLAIN" and len(parts) == 3:
        connection.user_name = parts[1].decode("utf-8", "replace")
    return True


def _open(connection: ProxiedAmqp10Connection, number: int, body: Any) -> bool:
    connection.client_properties = {str(name): each for name, each in (body.properties or {}).items()}
    connection.container_id = body.container_id
    name = body.hostname or ""
    connection.virtual_host_name = name[len(_VIRTUAL_HOST) :] if name.startswith(_VIRTUAL_HOST) else "/"
    connection.frame_max = min(body.or_default("max_frame_size"), 1 << 24)
    return True


def _begin(connection: ProxiedAmqp10Connection, number: int, body: Any) -> bool:
    connection.sessions[number] = ProxiedSession(number, body)
    return True


def _opened(connection: ProxiedAmqp10Connection, number: int, body: Any) -> bool:
    connection.opened = True
    connection.report("opened", f"virtual host {connection.virtual_host_name!r}")
    connection.set_blocked(connection.state.blocked_reason)
    return True


def _begun(connection: ProxiedAmqp10Connection, number: int, body: Any) -> bool:
    session = connection.sessions.get(number if body.remote_channel is None else body.remote_channel)
    if session is None:
        return True
    session.next_out = body.next_outgoing_id
    session.granted(session.next_in, body.incoming_window)
    session.stopped = connection.blocked_reason is not None
    connection.by_broker_channel[number] = session
    session.open = not session.closing
    return session.open


def _closed(connection: ProxiedAmqp10Connection, number: int, body: Any) -> bool:
    connection.close_confirmed()
    return True


_OF_CONNECTION: tuple[dict[type[Any], Callable[[ProxiedAmqp10Connection, int, Any], bool]], ...] = (
    {c.SaslInit: _sasl_init, c.Open: _open, c.Begin: _begin},
    {c.Open: _opened, c.Begin: _begun, c.Close: _closed},
)
"""Of the client, and of the broker."""

# --- the client's frames in a session --------------------------------------------------------------------


def _attach(connection: ProxiedAmqp10Connection, given: Frame) -> bool:
    given.session.by_handle[given.body.handle] = ProxiedLink(given.body)
    return True


def _client_flow(connection: ProxiedAmqp10Connection, given: Frame) -> Passes:
    session, link, body, *_ = given
    session.window = body.incoming_window
    if link is not None and link.closing:
        return False
    if link is not None and link.role == "receiver" and body.link_credit is not None:
        link.credit = body.link_credit
    return _shifted(body, -session.shift_out, -session.shift_in, 0 if link is None else -link.shift)


def _shifted(body: c.Flow, incoming: int, outgoing: int, count: int) -> Passes:
    """A flow with the numbers of the other side."""
    if not (incoming or outgoing or count):
        return True
    if body.next_incoming_id is not None:
        body.next_incoming_id = (body.next_incoming_id + incoming) & MASK
    body.next_outgoing_id = (body.next_outgoing_id + outgoing) & MASK
    if body.delivery_count is not None:
        body.delivery_count = (body.delivery_count + count) & MASK
    return [body]


def _client_transfer(connection: ProxiedAmqp10Connection, given: Frame) -> bool:
    session, link, body, rest, _ = given
    session.next_in = (session.next_in + 1) & MASK
    if link is not None and link.closing:
        session.shift_in += 1
        return False
    if link is not None:
        link.parts.append(rest)
        if not body.more:
            octets = b"".join(link.parts)
            link.parts.clear()
            link.delivery_count = (link.delivery_count + 1) & MASK
            connection.published(link, octets)
    return True


def _client_disposition(connection: ProxiedAmqp10Connection, given: Frame) -> Passes:
    session, _, body, *_ = given
    if not body.role:
        return True
    state = c.composite_or_value(body.state)
    held, told = session.settle(body)
    dead = isinstance(state, c.Rejected) or (isinstance(state, c.Modified) and state.undeliverable_here)
    event = "acked" if isinstance(state, c.Accepted) else "rejected" if dead else "requeued"
    connection.settled(session, event, held)
    return True if told is None else told


def _client_detach(connection: ProxiedAmqp10Connection, given: Frame) -> bool:
    if given.link is not None:
        given.link.parts.clear()
    return not _detached(connection, given, "client")


def _detached(connection: ProxiedAmqp10Connection, given: Frame, side: str) -> bool:
    """Note that one side has detached a link; returns whether that answers a detach of the proxy."""
    link = given.link
    if link is None or side not in link.closing:
        return False
    link.closing.discard(side)
    if not link.closing:
        _forget_link(connection, given.session, link)
    return True


def _forget_link(connection: ProxiedAmqp10Connection, session: ProxiedSession, link: ProxiedLink) -> None:
    for handles in (session.by_handle, session.by_broker_handle):
        for handle in [handle for handle, each in handles.items() if each is link]:
            del handles[handle]
    mine = [(number, each) for number, each in session.held.items() if each.link is link]
    for number, _ in mine:
        del session.held[number]
    connection.settled(session, "requeued", mine)
    connection.link_event(session, "consumer ended", link)


# --- the broker's frames in a session --------------------------------------------------------------------


def _attached(connection: ProxiedAmqp10Connection, given: Frame) -> bool:
    session, _, body, *_ = given
    role = "sender" if body.role else "receiver"
    links = [each for each in session.links if (each.link_name, each.role) == (body.name, role)]
    if not links:
        return True
    session.by_broker_handle[body.handle] = links[-1]
    connection.link_event(session, "consumer added", links[-1])
    return not links[-1].closing


def _broker_flow(connection: ProxiedAmqp10Connection, given: Frame) -> Passes:
    session, link, body, *_ = given
    if link is not None and link.closing:
        return False
    if body.next_incoming_id is not None:
        session.granted(body.next_incoming_id, body.incoming_window)
    shift = 0 if link is None else link.shift
    if link is not None and link.role == "sender" and body.link_credit is not None:
        link.limit = (body.delivery_count or 0) + body.link_credit
        link.seen_limit, link.credit = link.limit + shift, body.link_credit
    passes = _shifted(body, session.shift_in, session.shift_out, shift)
    if session.stopped:
        body.incoming_window = 0
        return [body]
    return passes


def _broker_transfer(connection: ProxiedAmqp10Connection, given: Frame) -> bool:
    """Pass the transfers of a delivery together; those that fill the client's window, as they are."""
    session, link, body, rest, octets = given
    if link is None:
        return True
    if link.closing:
        session.drop_transfer(bool(body.more))
        return False
    if body.delivery_id is not None:
        link.broker_id = int(body.delivery_id)
        if session.client_id(link.broker_id) != link.broker_id:
            body.delivery_id = session.client_id(link.broker_id)
            octets = frame(AMQP, FRAME_HEADER.unpack_from(octets)[3], body.encode() + rest)
    link.frames.append(octets)
    link.parts.append(rest)
    if body.more and len(link.frames) < session.window:
        return False
    frames, link.frames = link.frames, []
    connection.rest_passes = bool(body.more or link.passed)
    link.passed += len(frames)
    if not body.more:
        message, link.parts = b"".join(link.parts), []
        connection.delivered(session, link, bool(body.settled), message, link.passed)
        link.passed = 0
    connection.pass_to_client(b"".join(frames))
    connection.rest_passes = False
    return False


def _broker_disposition(connection: ProxiedAmqp10Connection, given: Frame) -> Passes:
    if given.body.role:
        return not given.session.concerns_duplicates(given.body)
    told = given.session.settled(given.body)
    return True if told is None else told


def _broker_detach(connection: ProxiedAmqp10Connection, given: Frame) -> bool:
    if _detached(connection, given, "broker"):
        return False
    if given.link is not None:
        _forget_link(connection, given.session, given.link)
    return True


def _broker_end(connection: ProxiedAmqp10Connection, given: Frame) -> bool:
    connection.forget(given.session)
    return True


_IN_SESSION: tuple[dict[type[Any], Callable[[ProxiedAmqp10Connection, Frame], Passes]], ...] = (
    {
        c.Attach: _attach,
        c.Flow: _client_flow,
        c.Transfer: _client_transfer,
        c.Disposition: _client_disposition,
        c.Detach: _client_detach,
    },
    {
        c.Attach: _attached,
        c.Flow: _broker_flow,
        c.Transfer: _broker_transfer,
        c.Disposition: _broker_disposition,
        c.Detach: _broker_detach,
        c.End: _broker_end,
    },
)
"""Of the client, and of the broker."""
