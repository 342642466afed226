"""A link: one transport and the sans-I/O connection that speaks over it.

The life of a link is a short walk:

    OPENING     the transport shakes hands (TLS); there is no connection yet
    OPEN        bytes go to the connection and come from it
    FINISHING   the last bytes are on their way; what the peer still sends is thrown away
    LINGERING   our side is shut down; the peer may read in peace and close when it has
    CLOSED

Lingering matters: to close a socket whose input has not been read resets the stream, and a reset may
destroy the last bytes (say, a connection.close that explains everything) before the peer has read them.

All methods need the engine's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Protocol

from fakeamqp.connection import Connection, PeerAddress

if TYPE_CHECKING:
    from fakeamqp.runtime.clock import Timer
    from fakeamqp.runtime.loop import Loop
    from fakeamqp.runtime.transport import Transport

    #: Makes the connection for a new peer; the second argument is what the connection calls when it has news.
    Accept = Callable[[PeerAddress, Callable[[Connection], None]], Connection]

__all__ = ["HANDSHAKE_SECONDS", "LINGER_SECONDS", "Link", "LinkState", "Wrap", "Wrapping"]

#: How long a TLS handshake may take, in real seconds.
HANDSHAKE_SECONDS = 10.0
#: How long a peer may take to read its last bytes and close, in real seconds, as long as nothing moves.
LINGER_SECONDS = 5.0
# How much a peer that goes on sending may delay the end of the engine.
_LAST_READS = 64
# How often the end of the engine lets a connection that goes out in pieces go on.
_LAST_WRITES = 4096


class Wrapping(Connection, Protocol):
    """Something around a connection that stands in its place, such as a slow network."""

    def stirred(self) -> None:
        """The connection inside may have something to send or may have changed."""

    def unwrap(self) -> Connection | None:
        """Come off, if nothing is held: the connection inside; otherwise None."""


Wrap = Callable[[Connection, Callable[[], None]], Wrapping]
"""Puts something around a connection; the second argument is what that calls when it has news."""


class LinkState(Enum):
    """Where a link is in its life."""

    OPENING = "opening"
    OPEN = "open"
    FINISHING = "finishing"
    LINGERING = "lingering"
    CLOSED = "closed"


OPENING, OPEN, FINISHING, LINGERING, CLOSED = LinkState


class Link:
    """Moves bytes between a transport and its connection."""

    __slots__ = (
        "_accept",
        "_address",
        "_eof_told",
        "_input_ended",
        "_loop",
        "_lost",
        "_moved",
        "_timer",
        "_watched",
        "connection",
        "dirty",
        "rest",
        "state",
        "transport",
        "wrapping",
    )

    def __init__(
        self, loop: Loop, transport: Transport, accept: Accept, address: tuple[str, int, str, int]
    ) -> None:
        self._loop = loop
        self._accept = accept
        self._address = address
        self._timer: Timer | None = None
        self._watched = 0
        self._input_ended = False
        self._eof_told = False
        self._lost = False
        self._moved = False
        self.transport = transport
        #: What speaks over the transport: the protocol's connection, or what is around it.
        self.connection: Connection | None = None
        self.wrapping: Wrapping | None = None
        self.state = OPENING
        #: Bytes taken from the connection that the transport has not taken yet.
        self.rest: bytes | memoryview = b""
        #: Whether the link is on the loop's list of links to flush.
        self.dirty = False

    @property
    def name(self) -> str:
        """Who is linked to whom."""
        if self.connection is not None:
            return self.connection.name
        return "{}:{} -> {}:{}".format(*self._address)

    def start(self) -> None:
        """Begin: shake hands where needed, then accept the connection."""
        self._loop.links[self] = None
        self._arm(HANDSHAKE_SECONDS, "handshake")
        self._open()
        self.notify()

    def notify(self, _connection: object = None) -> None:
        """Note that there is something to send or to change; handled when the turn ends."""
        if self.wrapping is not None:
            self.wrapping.stirred()
        if not self.dirty and self.state is not CLOSED:
            self.dirty = True
            self._loop.dirty.append(self)

    # -- what may be around the connection

    def wrap(self, wrap: Wrap) -> None:
        """Put something around the connection, unless there is something."""
        if self.state is OPEN and self.wrapping is None and self.connection is not None:
            self.connection = self.wrapping = wrap(self.connection, self.notify)
            self.notify()

    def _unwrap(self, wrapping: Wrapping) -> None:
        inner = wrapping.unwrap()
        if inner is not None:
            self.connection, self.wrapping = inner, None

    # -- what the selector reports

    def ready(self, mask: int) -> None:
        """The transport can be read or written, or is broken."""
        if self.state is CLOSED:  # by something earlier in this turn
            return
        if mask & EVENT_READ:
            if self.state is OPEN:
                self._read()
            elif self.state is OPENING:
                self._open()
                if self.state is OPEN:  # the end of the handshake may have brought the first bytes with it
                    self._read()
            else:
                self._discard()
        if mask & EVENT_WRITE:
            self.notify()

    def _open(self) -> None:
        transport = self.transport
        try:
            opened = transport.open()
        except OSError as error:
            self._loop.log.info("%s: handshake failed: %s", self.name, error)
            self._finish()
            self.notify()
            return
        if transport.backlog:
            self.notify()
        if not opened:
            return
        self._disarm()
        self.connection = self._accept(self._peer_address(), self.notify)
        self.state = OPEN
        if self._loop.wrap is not None:
            self.wrap(self._loop.wrap)

    def _peer_address(self) -> PeerAddress:
        host, port, server_host, server_port = self._address
        transport = self.transport
        return PeerAddress(
            host=host,
            port=port,
            server_host=server_host,
            server_port=server_port,
            tls=transport.secure,
            certificate_subject=transport.certificate_subject,
        )

    def _read(self) -> None:
        connection = self.connection
        assert connection is not None
        if not connection.reading:  # since something earlier in this turn
            return
        try:
            data = self.transport.recv()
        except OSError:
            self._lost = True
            self.notify()
            return
        if data:
            connection.receive(data)
        elif data is not None:
            # The peer ended its side, but may still read: what the connection has to say is sent first.
            self._input_ended = True
            self._finish()
            self.notify()
        if self.transport.backlog or self.transport.input_left:
            self.notify()

    def _discard(self) -> None:
        try:
            data = self.transport.recv()
        except OSError:
            self._lost = True
            self.notify()
            return
        if data is not None and not data:
            self._input_ended = True
            self.notify()

    # -- writing

    def write(self) -> None:
        """Send what there is with one gathered write; keep what the transport does not take."""
        if self.state is CLOSED or self.state is LINGERING:
            return
        transport = self.transport
        connection = self.connection
        try:
            if transport.backlog:
                transport.send(b"")
            if connection is None or connection.aborted:
                return
            if self.rest and not self._send(self.rest):
                return
            pieces = connection.pending()
            if pieces:
                # Joined: for 3000 pieces of 140 bytes that took a third of the time of sendmsg.
                self._send(b"".join(pieces) if len(pieces) > 1 else pieces[0])
        except OSError:
            self._lost = True

    def _send(self, data: bytes | memoryview) -> bool:
        count = self.transport.send(data)
        whole = count == len(data)
        self.rest = b"" if whole else memoryview(data)[count:]
        if count:
            self._moved = True
            assert self.connection is not None
            self.connection.sent(count)
        return whole

    def settle(self) -> None:
        """Bring the state, and what the selector watches, in line with connection and transport."""
        if self.state is CLOSED:
            return
        if self.wrapping is not None and self._loop.wrap is None:
            self._unwrap(self.wrapping)
        connection = self.connection
        transport = self.transport
        if self._lost or (connection is not None and connection.aborted):
            self.close()
            return
        if self.state is OPEN and connection is not None and connection.finished:
            self._finish()
        if self.state is OPEN and transport.input_left:
            self._read()
        if self.state is FINISHING and not self.dirty and connection is not None and connection.resets:
            self.close()  # What the peer has not taken by now is lost.
            return
        if self.state is FINISHING and not self.rest and not self.dirty:
            try:
                if transport.shutdown():
                    self.state = LINGERING
            except OSError:
                self.close()
                return
        if self.state is LINGERING and self._input_ended:
            self.close()
            return
        self._watch()

    def _watch(self) -> None:
        mask = 0
        if self.state is OPEN:
            if self.connection is not None and self.connection.reading:
                mask = EVENT_READ
        elif not self._input_ended:
            mask = EVENT_READ
        if self.rest or self.transport.backlog:
            mask |= EVENT_WRITE
        if mask != self._watched:
            self._loop.watch(self, self.transport.fileno(), self._watched, mask)
            self._watched = mask

    # -- the end

    def _finish(self) -> None:
        self.state = FINISHING
        if self._input_ended or self.connection is None:
            self._tell_eof()
        self._arm(LINGER_SECONDS, "linger")

    def close(self) -> None:
        """Close the transport at once and let the connection clean up. Idempotent."""
        if self.state is CLOSED:
            return
        self.state = CLOSED
        self._disarm()
        if self._watched:
            self._loop.watch(self, self.transport.fileno(), self._watched, 0)
            self._watched = 0
        self._loop.links.pop(self, None)
        self.rest = b""
        try:
            if self.connection is not None and self.connection.resets:
                self.transport.reset()
            else:
                self.transport.close()
        finally:
            self._tell_eof()

    def close_gently(self) -> None:
        """Close now, but so that bytes already sent still reach the peer: nothing is left unread."""
        try:
            self._write_last()
            if self.state is not CLOSED and not self._lost and self.transport.shutdown():
                for _ in range(_LAST_READS):
                    if not self.transport.recv():
                        break
        except OSError:
            pass
        finally:
            self.close()

    def _write_last(self) -> None:
        self.write()
        if self.wrapping is None:
            return
        for _ in range(_LAST_WRITES):
            if not self.dirty:
                return
            self.dirty = False  # on the loop's list it may stay: to be looked at once more does no harm
            self.write()

    def abandon(self) -> None:
        """Drop the descriptor and nothing else: for a forked child, whose parent goes on using the stream."""
        self.state = CLOSED
        self._timer = None
        self.transport.close()

    def failed(self) -> None:
        """A bug surfaced in this link's connection: give up on this one peer."""
        self.close()

    def _tell_eof(self) -> None:
        if not self._eof_told:
            self._eof_told = True
            if self.connection is not None:
                self.connection.receive_eof()

    # -- the timer that bounds a handshake and the end

    def _arm(self, seconds: float, label: str) -> None:
        self._disarm()
        self._moved = False
        timers = self._loop.transport_timers
        due = self._loop.transport_clock.now() + seconds
        self._timer = timers.call_at(due, self._expired, f"{label} {self.name}")

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._timer = None
        if self.state is FINISHING and self._moved:
            self._arm(LINGER_SECONDS, "linger")  # a slow reader is still a reader
            return
        if self.state is OPENING:
            self._loop.log.info("%s: no TLS handshake within %g s", self.name, HANDSHAKE_SECONDS)
        self._lost = True
        self.notify()

    def __repr__(self) -> str:
        return f"<Link {self.name} {self.state.value}>"
