"""A server-side 1.0 connection: splits the input into frames, keeps the state, turns errors into close.

`opening` handles SASL and open, `session` the frames of a session. Only this module turns errors of a
connection into close.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from fakeamqp.errors import printable
from fakeamqp.model.erlang import Atom, pretty
from fakeamqp.model.errors import ModelError, NotAllowed
from fakeamqp.protocols.amqp_1_0 import opening
from fakeamqp.protocols.amqp_1_0.choices import Amqp10Choices
from fakeamqp.protocols.amqp_1_0.codec import composites as c, frames
from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError, FieldError, FramingError
from fakeamqp.protocols.amqp_1_0.codec.frames import AMQP, HEADER_SIZE, SASL, SASL_HEADER, frame
from fakeamqp.protocols.amqp_1_0.replies import CloseFault, Fault, Reply, SessionCrash, condition_of, error
from fakeamqp.protocols.amqp_1_0.session import Amqp10Session
from fakeamqp.protocols.amqp_1_0.states import BEFORE_OPEN, CONNECTION_TRANSITIONS, ENDED, LOGGING_IN
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.protocols.base.connection_states import ConnectionState
from fakeamqp.protocols.base.server_connection import ServerConnection

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.access import User
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.tap import Tap
    from fakeamqp.protocols.amqp_1_0.port import Amqp10FaultPort
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions
    from fakeamqp.protocols.base.login import Mechanism

_log = logging.getLogger("fakeamqp")

_CLOSE_TIMEOUT: Final = 30.0
_FORCED: Final = "CONNECTION_FORCED - "
_LARGEST_BEFORE_OPEN: Final = 8192
_OF_CONNECTIONS: Final = ("open", "begin", "close")
"""Frames that the connection takes where there is no session."""
_unpack_header = frames.FRAME_HEADER.unpack_from


class Amqp10Connection(ServerConnection):
    """A server-side connection, without its transport. See `fakeamqp.connection.Connection`."""

    protocol = "1-0"
    paced: ClassVar[bool] = True

    CLOSE_ANSWER: ClassVar[bytes] = b"\0\x53\x18"
    TRANSITIONS: ClassVar[ConnectionTransitions] = CONNECTION_TRANSITIONS
    MECHANISMS: ClassVar[Mapping[str, type[Mechanism]]] = opening.ALL_MECHANISMS

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        protocol_header: bytes = SASL_HEADER,
    ) -> None:
        self.choices: Amqp10Choices = state.personality.extension(Amqp10Choices)
        super().__init__(
            state,
            peer,
            notify,
            mechanisms=self._ordered(state.personality.mechanisms),
            heartbeat=frames.EMPTY_FRAME,
            version="AMQP {}-{}-{}-{}".format(*SASL_HEADER[4:]),
        )
        self.container_id: str = ""
        self.channel_max: int = self.choices.channel_max
        self.max_frame_size: int = state.personality.frame_max
        self.largest_sent: int = self.max_frame_size
        """The largest frame that the client takes."""
        self.sessions: dict[int, Amqp10Session] = {}
        """By channel."""
        self.outbox.put(SASL_HEADER)
        opening.start(self)

    def _ordered(self, mechanisms: tuple[str, ...]) -> tuple[str, ...]:
        order = self.choices.mechanisms_order
        known = [name for name in order if name in mechanisms]
        return (*known, *(name for name in mechanisms if name not in order))

    def __repr__(self) -> str:
        return f"<Amqp10Connection {self.name} {self.state.name.lower()} sessions={len(self.sessions)}>"

    # --- for the model and inspection -----------------------------------------------------------------

    @property
    def open_channels(self) -> tuple[Amqp10Session, ...]:
        return tuple(self.sessions[number] for number in sorted(self.sessions))

    @property
    def frame_max(self) -> int:
        """The largest frame that the client takes, as the HTTP API shows it."""
        return self.largest_sent

    def session_facts(self) -> list[dict[str, Any]]:
        """The sessions and links, as the HTTP API shows them."""
        from fakeamqp.protocols.amqp_1_0.operators import session_facts

        return [session_facts(each) for each in self.open_channels]

    def close_by_operator(self, code: int, text: str) -> None:
        """Close with a close handshake, on behalf of an operator."""
        if self.state not in ENDED:
            # RabbitMQ's own words are a list, those of an operator are binary (measured on 4.0.5 and 4.3.6).
            own = text.startswith(_FORCED)
            shown = f'"{text.removeprefix(_FORCED)}"' if own else f'<<"{text}">>'
            self.close(Reply.INTERNAL_ERROR, f"Connection forced: {shown}")

    @cached_property
    def fault_port(self) -> Amqp10FaultPort:
        from fakeamqp.protocols.amqp_1_0.port import Amqp10FaultPort

        return Amqp10FaultPort(self)

    def renew_credential(self) -> None:
        """Check permissions again. The credential itself never expires here (1-0/management/tokens)."""
        assert self.user is not None and self.virtual_host is not None
        access, host = self.broker.access, self.virtual_host.name
        user = access.users.get(self.user.name, self.user)
        self.user: User | None = user
        try:
            access.check_virtual_host(user, host)
        except NotAllowed as problem:
            before = f"access to vhost {host} failed for new credential: "
            reason = (Atom("amqp_error"), Atom("not_allowed"), Atom(f'"{problem.text}"'), Atom("none"))
            self.close(Reply.UNAUTHORIZED, before + pretty(reason, before))
            return
        for session in self.open_channels:
            session.check_links(user)

    def set_blocked(self, reason: str | None) -> None:
        """Close the windows of the sessions for publishers, or open them again (1-0/flow/alarm)."""
        if reason == self.blocked_reason or self.state is not ConnectionState.OPEN:
            return
        changes = (reason is None) != (self.blocked_reason is None)
        self.blocked_reason = reason
        if changes:
            for session in self.open_channels:
                session.alarm(reason is not None)
        self._report("unblocked" if reason is None else "blocked", reason or "")

    def note(self, event: str, text: str) -> None:
        """Record what the client is not told."""
        self._report(event, text)

    def send(self, channel: int, body: c.Composite, payload: bytes = b"") -> None:
        self.outbox.write(frame(AMQP, channel, body.encode() + payload))

    def send_sasl(self, body: c.Composite) -> None:
        self.outbox.write(frame(SASL, 0, body.encode()))

    # --- bytes in -----------------------------------------------------------------------------------

    def end_turn(self) -> None:
        for session in list(self.sessions.values()):
            session.end_turn()

    def _cut_frames(self, data: bytes, tap: Tap | None, *, kept: bool = False) -> None:
        position = 0
        end = len(data)
        outbox = self.outbox
        needed = HEADER_SIZE
        while True:
            channel = 0
            framed = False
            try:
                while end - position >= HEADER_SIZE:
                    framed = False
                    size, offset, kind, channel = _unpack_header(data, position)
                    if size == frames.BEGINS_HEADER:
                        payload = data[position + 4 : position + HEADER_SIZE]
                        position += HEADER_SIZE
                        kind, channel = frames.HEADER_KIND, 0
                    else:
                        self._check_frame(size, offset)
                        stop = position + size
                        if stop > end:
                            needed = size
                            break
                        payload = data[position + HEADER_SIZE : stop]
                        position = stop
                        if offset != frames.DATA_OFFSET:
                            kind |= offset << frames.DATA_OFFSET_SHIFT
                    framed = True
                    needed = HEADER_SIZE
                    if tap is None or not tap.received(self, kind, channel, payload):
                        self._receive_frame(kind, channel, payload)
                    if self.state is not ConnectionState.OPEN and self._ignores_input():
                        return
                    if (self._held_back or self.busy or outbox.backlogged) and not kept:
                        break
                break
            except (Fault, ModelError, WireError) as problem:
                self._unframed = not framed
                self._fail(problem)
            if self._ignores_input():
                return
            if self._unframed:
                self._receive_unframed(data[position + HEADER_SIZE :])
                return
        self._keep(data, position, needed)

    def _check_frame(self, size: int, offset: int) -> None:
        if size < HEADER_SIZE:
            raise FramingError(f"frame size ({size} bytes) < minimum frame size ({HEADER_SIZE} bytes)")
        if offset < frames.DATA_OFFSET:
            raise FramingError(f"data offset ({offset}) < minimum data offset ({frames.DATA_OFFSET})")
        if offset * 4 > size:
            raise FramingError(f"data offset ({offset * 4} bytes) > frame size ({size} bytes)")
        limit = self.max_frame_size
        if self.state in BEFORE_OPEN:
            limit = min(limit, _LARGEST_BEFORE_OPEN)
        if size > limit:
            text = f"frame size ({size} bytes) > maximum frame size ({limit} bytes)"
            raise CloseFault(Reply.FRAMING_ERROR, text)

    def _receive_frame(self, kind: int, channel: int, payload: bytes) -> None:
        payload = frames.frame_body(kind, payload)
        kind &= 0x1FF
        if kind == frames.HEADER_KIND:
            self.enter("protocol-header")
            if payload != frames.PROTOCOL_HEADER[4:]:
                raise FramingError(f"{payload!r} is not the protocol header of AMQP 1.0")
            self.outbox.write(frames.PROTOCOL_HEADER)
            return
        if not payload:
            self.note_idle(HEADER_SIZE)
            return
        logs_in = self.state in LOGGING_IN
        expected, mode = (SASL, "sasl") if logs_in else (AMQP, "amqp")
        if kind != expected:
            raise FramingError(f"unexpected frame type {kind} in {mode} mode (expected {expected})")
        if logs_in:
            body, _ = c.read_body(payload)
            if not isinstance(body, c.SASL_FRAMES):
                raise FramingError(f"{body.NAME} is no SASL frame")
            opening.receive_sasl(self, body)
            return
        if self.state is ConnectionState.CLOSING:
            if c.name_of(payload) == "close":
                self.close_confirmed()
            return
        try:
            body, behind = c.read_body(payload)
            if body.CODE > c.Close.CODE:
                raise FieldError(f"{body.NAME} came after the login")
        except FieldError as problem:
            if not self._fails_session(channel, str(problem)) and c.name_of(payload) in _OF_CONNECTIONS:
                raise
            return
        if behind < len(payload) and not isinstance(body, c.Transfer):
            text = f"{len(payload) - behind} bytes follow {body.NAME}"
            if not self._fails_session(channel, text) and self.state in BEFORE_OPEN:
                raise FramingError(text)
            return
        if channel and isinstance(body, c.Open):
            raise FramingError(f"open came on channel {channel}")
        self.enter(body.NAME)
        if isinstance(body, c.Open):
            opening.open_connection(self, body)
        elif isinstance(body, c.Close):
            self.closed_by_client()
        else:
            self._receive_in_session(channel, body, payload[behind:])

    def _fails_session(self, channel: int, text: str) -> bool:
        """End the session that a frame is for, at which RabbitMQ's crashes; False if there is none."""
        session = self.sessions.get(channel)
        if session is not None:
            session.fail(SessionCrash(text))
        return session is not None

    def _receive_in_session(self, channel: int, body: c.Composite, payload: bytes) -> None:
        """Hand a frame to its session. What has none is ignored, as RabbitMQ does (measured)."""
        if channel > self.channel_max:
            text = f"channel number ({channel}) exceeds maximum channel number ({self.channel_max})"
            raise CloseFault(Reply.FRAMING_ERROR, text)
        session = self.sessions.get(channel)
        if session is not None:
            session.receive(body, payload)
        elif isinstance(body, c.Begin):
            if body.remote_channel is not None:
                raise CloseFault(
                    Reply.INTERNAL_ERROR, f"Reader error: {{remote_channel,{body.remote_channel}}}"
                )
            self.sessions[channel] = session = Amqp10Session(self, channel, body)
            session.begin()

    # --- errors --------------------------------------------------------------------------------------

    def _fail(self, problem: Fault | ModelError | WireError) -> None:
        """Close the connection because of an error; all errors of connections lead here."""
        if self.state in ENDED:
            return
        if self.state in BEFORE_OPEN:
            self.refuse(str(problem))
        elif isinstance(problem, Fault):
            self.close(problem.condition, problem.text)
        elif isinstance(problem, ModelError):
            self.close(condition_of(problem), problem.text)
        elif isinstance(problem, DecodeError):
            self.close(Reply.INTERNAL_ERROR, f"Reader error: {problem}")
        elif not self.choices.tells_malformed_frames:
            self.abort(str(problem))
        else:
            self.close(Reply.FRAMING_ERROR, str(problem))

    def close(self, condition: str, text: str) -> None:
        """Send close with an error; from then on the broker ignores all input but the client's close."""
        self._enter("CLOSE")
        self.send(0, c.Close(error=error(condition, text)))
        _log.info("%s: closing with %s: %s", self.name, condition, printable(text))
        self._release()
        self._cancel_timeouts()
        self._end_transport_after(
            _CLOSE_TIMEOUT, lambda: self.abort("no close arrived"), "aborts without close"
        )

    def crash(self, text: str) -> None:
        """Close the connection for what crashes in RabbitMQ, unless it has been closed meanwhile."""
        if self.state is ConnectionState.OPEN:
            self.close(Reply.INTERNAL_ERROR, text)

    def silent_too_long(self, text: str) -> None:
        """No frame has come for as long as the broker's idle-time-out allows (1-0/open/idle-time-out)."""
        if self.state is ConnectionState.OPEN:
            self.close(Reply.LIMIT_EXCEEDED, "no frame received from client within idle timeout threshold")
        else:
            super().silent_too_long(text)

    # --- state ---------------------------------------------------------------------------------------

    def enter(self, event: str) -> None:
        """Change the state for a frame of the client, if the table allows it."""
        following = CONNECTION_TRANSITIONS[self.state].get(event)
        if following is None:
            raise CloseFault(
                Reply.INTERNAL_ERROR,
                f"Reader error: {event} is not allowed in state {self.state.name.lower()}",
            )
        self.state = following

    def agree(self, *, channel_max: int, largest_sent: int, idle_time_out: float | None) -> None:
        """Use the limits of open. Empty frames are sent at half of the client's idle-time-out."""
        self.channel_max = channel_max
        self.largest_sent = largest_sent
        self.heartbeat: int = self.personality.heartbeat
        self.heartbeats.start(self.heartbeat // 2, sends=idle_time_out or 0.0)

    def closed_by_client(self) -> None:
        """Answer close, and end the transport."""
        self.end_turn()
        self._mark_closed("closed by the client")
        self.send(0, c.Close())
        self._end_transport()

    def _release_channels(self) -> None:
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            session.release()
