"""A connection: from the protocol header to the close, and sessions by channel in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import TypeVar

from typing_extensions import Self

from compat_tests.clients.amqp_0_10 import sasl
from compat_tests.clients.amqp_0_10.errors import (
    ConnectionClosed,
    ConnectionLost,
    LoginFailed,
    Redirected,
)
from compat_tests.clients.amqp_0_10.line import Frame, Line
from compat_tests.clients.amqp_0_10.session import Session
from fakeamqp.protocols.amqp_0_10.codec import controls as c
from fakeamqp.protocols.amqp_0_10.codec.constants import PROTOCOL_HEADER, CloseCode
from fakeamqp.protocols.amqp_0_10.codec.frames import Assembler, control_frame, encode_frames
from fakeamqp.protocols.amqp_0_10.codec.structs import Control

__all__ = ["SECONDS", "Connection"]

C = TypeVar("C", bound=Control)

SECONDS = 20.0
"""How long to wait for what must come."""


class Connection:
    """An open connection. As a context manager it closes at the end, or hangs up if the block fails.

    Args:
        line: the transport.
        user: who we are.
        password: what proves it.
        virtual_host: what to open; None is the broker's default.
        mechanism: PLAIN, CRAM-MD5, ANONYMOUS or EXTERNAL.
        heartbeat: seconds between signs of life of the broker, which we answer; 0 = none.
        max_frame_size: bytes of the largest frame either side may send; None is what the broker offers.
        properties: the client's properties.
        insist: whether to be redirected is refused.

    Raises:
        LoginFailed, ConnectionClosed, ConnectionLost, Redirected: see `connect`.
    """

    def __init__(
        self,
        line: Line,
        *,
        user: str = "guest",
        password: str = "guest",
        virtual_host: str | None = "/",
        mechanism: str = "PLAIN",
        heartbeat: int = 0,
        max_frame_size: int | None = None,
        properties: dict[str, object] | None = None,
        insist: bool = False,
    ) -> None:
        self.sessions: dict[int, Session] = {}
        """By channel."""
        self.heartbeats = 0
        """How many signs of life have come."""
        self._line = line
        self._assemblers: dict[tuple[int, int], Assembler] = {}
        self._controls: list[Control] = []
        self._closed: Exception | None = None
        self.max_frame_size = 4096

        self._write(PROTOCOL_HEADER)
        self.start = self._begin()
        self._login(mechanism, user, password, properties or {})
        tune = self._expect(c.ConnectionTune)
        offered = tune.max_frame_size or 0xFFFF
        self.max_frame_size = min(max_frame_size or offered, offered)
        self.send(
            c.ConnectionTuneOk(
                channel_max=tune.channel_max, max_frame_size=self.max_frame_size, heartbeat=heartbeat
            )
        )
        self.send(c.ConnectionOpen(virtual_host=virtual_host, insist=insist))
        self._expect(c.ConnectionOpenOk)

    # --- the handshake --------------------------------------------------------------------------------

    def _begin(self) -> c.ConnectionStart:
        """The broker confirms the protocol, and says how one can log in."""
        deadline = time.monotonic() + SECONDS
        while (header := self._line.take(len(PROTOCOL_HEADER))) is None:
            self._line.read(deadline)
        if header != PROTOCOL_HEADER:
            raise ConnectionLost(f"the broker does not speak AMQP 0-10: its header is {header!r}")
        return self._expect(c.ConnectionStart)

    def _login(self, mechanism: str, user: str, password: str, properties: dict[str, object]) -> None:
        if mechanism not in (self.start.mechanisms or ()):
            raise LoginFailed(f"the broker offers {self.start.mechanisms}, not {mechanism}")
        self.send(
            c.ConnectionStartOk(
                client_properties=properties,
                mechanism=mechanism,
                response=sasl.begin(mechanism, user, password),
                locale="en_US",
            )
        )
        try:
            self.wait(lambda: self._controls)
            while isinstance(self._controls[0], c.ConnectionSecure):
                challenge = self._expect(c.ConnectionSecure).challenge or b""
                answer = sasl.answer(mechanism, challenge, user, password)
                self.send(c.ConnectionSecureOk(response=answer))
                self.wait(lambda: self._controls)
        except (ConnectionClosed, ConnectionLost) as problem:
            raise LoginFailed(f"{mechanism} was refused: {problem}") from None

    def _expect(self, kind: type[C]) -> C:
        self.wait(lambda: self._controls)
        control = self._controls.pop(0)
        assert isinstance(control, kind), f"expected {kind.NAME}, got {control}"
        return control

    # --- in and out -----------------------------------------------------------------------------------

    def wait(self, until: Callable[[], object], timeout: float = SECONDS) -> None:
        """Read until that is so.

        Raises:
            TimedOut: it is not so in time.
            ConnectionClosed: the broker closes the connection.
            Redirected: the broker sends us elsewhere.
            ConnectionLost: the transport ends.
        """
        deadline = time.monotonic() + timeout
        while True:
            for frame in self._line.frames():
                self._take(frame)
            if until():
                return
            if self._closed is not None:
                raise self._closed
            try:
                self._line.read(deadline)
            except ConnectionLost as lost:
                self._end(lost)

    def send(self, control: Control, channel: int = 0) -> None:
        """Send a control."""
        self._write(control_frame(channel, control.encode(), self.max_frame_size))

    def send_command(self, segments: list[tuple[int, bytes]], channel: int) -> None:
        """Send a command, as segments."""
        self._write(encode_frames(channel, segments, self.max_frame_size))

    def _write(self, octets: bytes) -> None:
        if self._closed is not None:
            raise self._closed
        try:
            self._line.write(octets, time.monotonic() + SECONDS)
        except ConnectionLost as lost:
            self._end(lost)
            raise

    def _take(self, frame: Frame) -> None:
        """A frame has come."""
        assembler = self._assemblers.setdefault((frame.channel, frame.track), Assembler())
        assembly = assembler.add(frame.flags, frame.kind, frame.payload)
        if assembly is None:
            return
        session = self.sessions.get(frame.channel)
        if assembly.is_command:
            if session is not None:
                session.receive_command(assembly)
            return
        control = c.decode(assembly.first)
        if control.CLASS == c.ConnectionStart.CLASS:
            self._receive(control)
        elif session is not None:
            session.receive_control(control)

    def _receive(self, control: Control) -> None:
        """A control of the connection itself."""
        if isinstance(control, c.ConnectionHeartbeat):
            self.heartbeats += 1
            self.send(c.ConnectionHeartbeat())
        elif isinstance(control, c.ConnectionClose):
            answer = control_frame(0, c.ConnectionCloseOk().encode())
            with suppress(ConnectionLost):  # It may have gone already; what it said counts.
                self._line.write(answer, time.monotonic() + SECONDS)
            self._end(ConnectionClosed(control.reply_code or 0, control.reply_text or ""))
        elif isinstance(control, c.ConnectionRedirect):
            self._end(Redirected(control.host or ""))
        else:
            self._controls.append(control)

    def _end(self, why: Exception) -> None:
        """It is over; sessions have no transport any more."""
        self._closed = why
        self._line.close()
        sessions, self.sessions = self.sessions, {}
        for session in sessions.values():
            session.detached(why)

    # --- sessions -------------------------------------------------------------------------------------

    def session(self, name: bytes, *, timeout: int | None = 0, force: bool = False) -> Session:
        """Attach a session of this name, to a channel that is free.

        Args:
            name: its name.
            timeout: seconds that the broker is to keep it without a transport; None = for ever.
            force: take it away from the transport that has it.

        Raises:
            SessionDetached: the broker does not attach it; its code says why.
        """
        session = Session(name, timeout)
        session.attach(self, force=force)
        return session

    def free_channel(self) -> int:
        """The first that has no session."""
        return next(channel for channel in count() if channel not in self.sessions)

    # --- the end --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close it in order, unless it has ended; twice is once."""
        with suppress(ConnectionLost):
            self.send(c.ConnectionClose(reply_code=CloseCode.NORMAL))
            self._expect(c.ConnectionCloseOk)
        self.drop()

    def drop(self) -> None:
        """Hang up without a word."""
        self._end(self._closed or ConnectionLost("we hung up"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self.drop()
