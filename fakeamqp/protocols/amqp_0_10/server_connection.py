"""A server-side 0-10 connection: splits the input into frames, keeps the state, turns errors into closes.

Controls of class connection concern the connection on any channel (frame/connection-any-channel); `session`
handles those of class session, and the session that is attached to a channel its commands. Only this module
turns errors of a connection into connection.close; errors of a command end its session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from struct import Struct
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.errors import printable
from fakeamqp.model.errors import ModelError
from fakeamqp.protocols.amqp_0_10 import connection as connection_class, session as session_class
from fakeamqp.protocols.amqp_0_10.choices import Amqp010Choices
from fakeamqp.protocols.amqp_0_10.codec import controls
from fakeamqp.protocols.amqp_0_10.codec.constants import MIN_MAX_FRAME_SIZE, PROTOCOL_HEADER, CloseCode
from fakeamqp.protocols.amqp_0_10.codec.errors import FramingError
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    BODY,
    COMMAND,
    CONTROL,
    FRAME_HEADER,
    HEADER,
    HEADER_SIZE,
    WHOLE,
    WHOLE_BODY,
    WHOLE_COMMAND,
    WHOLE_HEADER,
    Assembler,
    Assembly,
    check_header,
    control_frame,
    encode_frames,
)
from fakeamqp.protocols.amqp_0_10.replies import ConnectionFault, close_code, short_text
from fakeamqp.protocols.amqp_0_10.states import CONNECTION_TRANSITIONS
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.protocols.base.connection_states import ConnectionState
from fakeamqp.protocols.base.server_connection import ServerConnection

if TYPE_CHECKING:
    from fakeamqp.connection import Connection, PeerAddress
    from fakeamqp.model.deliveries.subscription import Window
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.tap import Tap
    from fakeamqp.protocols.amqp_0_10.codec.structs import Control
    from fakeamqp.protocols.amqp_0_10.port import Amqp010FaultPort
    from fakeamqp.protocols.amqp_0_10.server_session import ServerSession
    from fakeamqp.protocols.base.connection_states import ConnectionTransitions

_log = logging.getLogger("fakeamqp")

_CLOSE_TIMEOUT = 30.0
_LARGEST_CONTROLS = 1024 * 1024
"""Bytes of controls that are not complete, on all channels of a connection together."""
SILENT_STATES = frozenset(
    (ConnectionState.STARTING, ConnectionState.SECURING, ConnectionState.TUNING, ConnectionState.TUNED)
)
_CLOSE_OK = control_frame(0, controls.ConnectionCloseOk().encode())
_HEARTBEAT_FRAME = control_frame(0, controls.ConnectionHeartbeat().encode())
_unpack_header = FRAME_HEADER.unpack_from
_pack_header = FRAME_HEADER.pack
_unpack_short = Struct(">HHQ").unpack_from
_HEADER_KIND = WHOLE_HEADER << 8 | HEADER
_BODY_KIND = WHOLE_BODY << 8 | BODY


class Amqp010Connection(ServerConnection):
    """A server-side connection, without its transport. See `fakeamqp.connection.Connection`."""

    protocol = "0-10"

    CLOSE_ANSWER: ClassVar[bytes] = _CLOSE_OK
    TRANSITIONS: ClassVar[ConnectionTransitions] = CONNECTION_TRANSITIONS

    def __init__(
        self,
        state: BrokerState,
        peer: PeerAddress,
        notify: Callable[[Connection], None],
        protocol_header: bytes = PROTOCOL_HEADER,
    ) -> None:
        self.choices: Amqp010Choices = state.personality.extension(Amqp010Choices)
        super().__init__(
            state,
            peer,
            notify,
            mechanisms=self.choices.mechanisms,
            heartbeat=_HEARTBEAT_FRAME,
            version="AMQP {}-{}-{}-{}".format(*PROTOCOL_HEADER[4:]),
        )
        self.channel_max: int = self.choices.channel_max
        self.max_frame_size: int = MIN_MAX_FRAME_SIZE
        self.sessions: dict[int, ServerSession] = {}
        """The attached sessions by channel, including sessions that an exception has ended."""
        self.windows: dict[str, Window] = {}
        """Class name -> prefetch window of all consumers of class file or stream (file.qos/global)."""

        self._assemblers: dict[int, Assembler] = {}
        """The controls that are not complete, by channel."""
        self._unfinished = 0
        """The bytes of these controls."""
        # A server that accepts the version answers with the same header (protocol-header/server-echo).
        self.outbox.put(PROTOCOL_HEADER)
        connection_class.start(self)

    def __repr__(self) -> str:
        return f"<Amqp010Connection {self.name} {self.state.name.lower()} sessions={len(self.sessions)}>"

    # --- for the model and inspection -----------------------------------------------------------------

    @property
    def open_channels(self) -> tuple[ServerSession, ...]:
        return tuple(self.sessions[number] for number in sorted(self.sessions) if self.sessions[number].alive)

    def close_by_operator(self, code: int, text: str) -> None:
        """Close with a close handshake, on behalf of an operator (connection/close-code-forced).

        A code that 0-10 does not define becomes connection-forced.
        """
        if self.state not in (ConnectionState.CLOSING, ConnectionState.CLOSED):
            known = code in tuple(CloseCode)
            self.close(CloseCode(code) if known else CloseCode.CONNECTION_FORCED, text)

    @cached_property
    def fault_port(self) -> Amqp010FaultPort:
        from fakeamqp.protocols.amqp_0_10.port import Amqp010FaultPort

        return Amqp010FaultPort(self)

    def set_blocked(self, reason: str | None) -> None:
        """Stop reading from the client as soon as it publishes; None unblocks it.

        0-10 has no control for it. With some personalities the broker also sends message.stop and
        message.flow (message/throttling).
        """
        if reason == self.blocked_reason or self.state is not ConnectionState.OPEN:
            return
        self.blocked_reason = reason
        for session in self.open_channels:
            session.publisher.throttle(reason is not None)
        self._report("unblocked" if reason is None else "blocked", reason or "")
        if reason is None and self._held_back:
            self._held_back = False
            self.outbox.notify()
            self.receive(b"")

    def publish_received(self) -> None:
        """Handle a transfer: the broker stops reading from a blocked client."""
        if self.blocked_reason is not None and not self._held_back:
            self._held_back = True
            self.outbox.notify()

    def send(self, channel: int, control: Control) -> None:
        octets = control.encode()
        size = HEADER_SIZE + len(octets)
        if size <= self.max_frame_size:
            self.outbox.write(_pack_header(WHOLE, CONTROL, size, 0, 0, channel, 0) + octets)
        else:
            self.outbox.write(encode_frames(channel, ((CONTROL, octets),), self.max_frame_size))

    # --- bytes in -----------------------------------------------------------------------------------

    def end_turn(self) -> None:
        for session in list(self.sessions.values()):
            session.incoming.end_turn()

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
                    flags, kind, size, reserved, track, channel, reserved_2 = _unpack_header(data, position)
                    if flags > WHOLE or reserved or reserved_2 or track > 1 or size < HEADER_SIZE:
                        check_header(flags, kind, size, reserved, track, reserved_2)
                    if size > self.max_frame_size:
                        limit = self.max_frame_size
                        raise FramingError(
                            f"a frame of {size} bytes is larger than the agreed max-frame-size ({limit})"
                        )
                    stop = position + size
                    if stop > end:
                        needed = size
                        break
                    payload = data[position + HEADER_SIZE : stop]
                    position = stop
                    framed = True
                    needed = HEADER_SIZE
                    if tap is not None and tap.received(
                        self, flags << 8 | kind | (track != (kind != CONTROL)) << 16, channel, payload
                    ):
                        if self._ignores_input():
                            return
                    elif flags == WHOLE_COMMAND and kind == COMMAND and track:
                        position = self._receive_command(data, position, channel, payload, tap)
                    else:
                        self._receive_frame(flags, kind, track, channel, payload)
                    if (self._held_back or self.busy or outbox.backlogged) and not kept:
                        break
                break
            except (ConnectionFault, ModelError, WireError) as problem:
                self._unframed = not framed
                self._fail(channel, problem)
            if self._ignores_input():
                return
            if self._unframed:
                self._receive_unframed(data[position + HEADER_SIZE :])
                return
        self._keep(data, position, needed)

    def _receive_command(
        self, data: bytes, position: int, channel: int, payload: bytes, tap: Tap | None
    ) -> int:
        """Handle the first segment of a command, with its content if that has come and the tap keeps none.

        A transfer is nearly always three frames; one check covers them. Returns the offset behind all that is
        handled; the frame of the command ends at `position`.
        """
        session = self.sessions.get(channel)
        content = None
        if session is not None and session.incoming.takes_whole:
            content = content_behind(data, position, len(data), channel, self.max_frame_size)
        if session is None or content is None:
            self._receive_frame(WHOLE_COMMAND, COMMAND, 1, channel, payload)
            return position
        header, body, stop = content
        if tap is not None:
            if tap.received(self, _HEADER_KIND, channel, header):
                session.incoming.receive_frame(WHOLE_COMMAND, COMMAND, payload)
                return position + HEADER_SIZE + len(header)
            if tap.received(self, _BODY_KIND, channel, body):
                session.incoming.receive_frame(WHOLE_COMMAND, COMMAND, payload)
                session.incoming.receive_frame(WHOLE_HEADER, HEADER, header)
                return stop
        session.incoming.receive_whole(Assembly(payload, header, body, True))
        return stop

    def _receive_frame(self, flags: int, kind: int, track: int, channel: int, payload: bytes) -> None:
        if track:
            if kind == CONTROL:
                raise FramingError("a control arrived on track 1, which carries commands")
            session = self.sessions.get(channel)
            if session is not None:
                session.incoming.receive_frame(flags, kind, payload)
            elif self._heeds(channel, "a command"):
                session_class.not_attached(self, channel)
            return
        if kind != CONTROL:
            raise FramingError(f"a segment of type {kind} has come on track 0, where controls belong")
        if flags == WHOLE and channel not in self._assemblers:
            control = controls.decode(payload)
        else:
            if self._unfinished + len(payload) > _LARGEST_CONTROLS:
                self._assemblers.clear()
                self._unfinished = 0
                raise FramingError(f"controls in several frames have more than {_LARGEST_CONTROLS} bytes")
            assembler = self._assemblers.setdefault(channel, Assembler())
            before = assembler.received
            assembly = assembler.add(flags, kind, payload)
            if assembly is None:
                self._unfinished += len(payload)
                if not payload:
                    self.note_idle(HEADER_SIZE)
                return
            self._unfinished -= before
            del self._assemblers[channel]
            control = controls.decode(assembly.first)
        if control.CLASS == connection_class.CLASS:
            connection_class.receive(self, control)
        elif self._heeds(channel, control.NAME):
            session_class.receive(self, channel, control)

    def _heeds(self, channel: int, what: str) -> bool:
        """Whether the connection is open, and not closing.

        Channel numbers are below the maximum (connection.tune-ok/channel-max-available-channels).
        """
        if self.state is not ConnectionState.OPEN:
            if self.state is ConnectionState.CLOSING:
                return False
            raise ConnectionFault("connection-forced", f"{what} arrived before connection.open", silent=True)
        if channel >= self.channel_max:
            raise ConnectionFault(
                "framing-error", f"channel {channel} is not below the agreed channel-max ({self.channel_max})"
            )
        return True

    # --- errors --------------------------------------------------------------------------------------

    def _fail(self, channel: int, problem: ConnectionFault | ModelError | WireError) -> None:
        """Close the connection because of an error; all errors of connections lead here."""
        if self.state in (ConnectionState.REFUSED, ConnectionState.CLOSING, ConnectionState.CLOSED):
            return
        silent = isinstance(problem, ConnectionFault) and problem.silent
        if silent and not self.choices.speaks_of_failed_handshakes:
            self.refuse(str(problem))
        else:
            self.close(close_code(problem), str(problem), channel=channel)

    def close(self, code: CloseCode, text: str, *, channel: int = 0) -> None:
        """Send connection.close; from then on the broker ignores all input but close and close-ok.

        The close is sent on the channel of the error (connection.close/culprit-channel).
        """
        self._enter("CLOSE")
        self._held_back = False
        self.send(channel, controls.ConnectionClose(reply_code=code, reply_text=short_text(text)))
        _log.info("%s: closing with %d: %s", self.name, code, printable(text))
        self._await_close("no close-ok arrived", "aborts without close-ok")

    def _await_close(self, why: str, label: str) -> None:
        self._release()
        self._cancel_timeouts()
        self._end_transport_after(_CLOSE_TIMEOUT, lambda: self.abort(why), label)

    def refuse(self, text: str, why: str = "") -> None:
        """With some personalities, connection.close states the reason."""
        if self.choices.speaks_of_failed_handshakes:
            code = CloseCode.CONNECTION_FORCED
            self.send(0, controls.ConnectionClose(reply_code=code, reply_text=short_text(text)))
        super().refuse(text, why)

    # --- state ---------------------------------------------------------------------------------------

    def enter(self, control_name: str) -> None:
        """Change the state for a control of the client, if the table allows it (connection/out-of-order)."""
        following = CONNECTION_TRANSITIONS[self.state].get(control_name)
        if following is None:
            raise ConnectionFault(
                "connection-forced",
                f"{control_name} is not allowed while the connection is {self.state.name.lower()}",
                silent=self.state in SILENT_STATES,
            )
        self.state = following

    def agree(self, channel_max: int, max_frame_size: int, heartbeat: int) -> None:
        """Use the limits of tune-ok, and start heartbeats; a heartbeat of 0 means none."""
        self.channel_max = channel_max
        self.max_frame_size = max_frame_size
        self.heartbeat = heartbeat
        self._enter("AGREED")
        self.heartbeats.start(heartbeat)

    def redirected(self, redirect: controls.ConnectionRedirect) -> None:
        """Redirect the client to another broker, and wait for its connection.close."""
        self._enter("REDIRECT")
        self.send(0, redirect)
        self._await_close("the redirected client did not close", "aborts after a redirect")

    def closed_by_client(self) -> None:
        """Answer connection.close, and close the transport (connection.close-ok/release)."""
        self.end_turn()
        self._mark_closed("closed by the client")
        self.send(0, controls.ConnectionCloseOk())
        self._end_transport()

    def _release_channels(self) -> None:
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            session.transport_lost()

    def _forget(self) -> None:
        self._assemblers.clear()


def content_behind(
    octets: bytes, offset: int, end: int, channel: int, max_frame_size: int
) -> tuple[bytes, bytes, int] | None:
    """Header and body of the command whose frame ends at `offset`, and the offset behind them.

    None unless each is one valid frame that is fully received; then the caller takes frames one by one.
    """
    start = offset + HEADER_SIZE
    if start + HEADER_SIZE > end:
        return None
    usual = 1 << 48 | channel << 32  # Track and channel; the rest of it is reserved.
    kind, size, rest = _unpack_short(octets, offset)
    behind = offset + size
    if (
        kind != _HEADER_KIND
        or rest != usual
        or size > max_frame_size
        or behind + HEADER_SIZE > end
        or behind < start
    ):
        return None
    header = octets[start:behind]
    kind, size, rest = _unpack_short(octets, behind)
    start = behind + HEADER_SIZE
    behind += size
    if kind != _BODY_KIND or rest != usual or size > max_frame_size or behind > end or behind < start:
        return None
    return header, octets[start:behind], behind
