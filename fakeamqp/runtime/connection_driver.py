"""A driver runs one sans-I/O connection over one transport.

Its states, in order:

    OPENING     the transport does its handshake (TLS); there is no connection yet
    OPEN        bytes are read into the connection and written from it; either direction may have ended, if
                the connection passes ends on
    FINISHING   the last bytes are written; further input is discarded
    LINGERING   our side of the stream is shut down; the peer can read the rest and close
    CLOSED

Lingering is necessary: closing a socket with unread input resets the stream, and a reset can destroy the last
bytes, such as a connection.close, before the peer has read them.

All methods require the engine's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from math import inf
from selectors import EVENT_READ, EVENT_WRITE
from typing import TYPE_CHECKING, Protocol

from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.runtime.turns import SelectorSource

if TYPE_CHECKING:
    from fakeamqp.model.timers import Timer
    from fakeamqp.runtime.transport import Transport
    from fakeamqp.runtime.turns import Turns

    #: Creates the connection for a new peer, which calls the second argument when it has output or changes,
    #: with itself or with the connection that takes its place.
    Accept = Callable[[PeerAddress, Callable[[Connection], None]], Connection]

#: The maximum duration of a TLS handshake, in real seconds.
HANDSHAKE_SECONDS = 10.0
#: How long a peer may read none of its last bytes before the driver closes, in real seconds.
LINGER_SECONDS = 5.0
# Input is processed in slices: the first of a read is small, each next one up to twice as large, as long as
# it fits into the connection's turn. The turn ends after the slice that uses it up, and the rest of the input
# waits for the next. So expensive input, such as publishes to a thousand queues, does not stall the others.
_SMALLEST_SLICE = 64
_FIRST_SLICE = 512
_LARGEST_SLICE = 8192
# After a slice of this size the output of a paced connection is written. With proton on a core of its own,
# 1.4 times as many publishes are confirmed in a second.
_PACED_SLICE = 4096
# The first slice of a read shrinks as long as one like it takes longer than this, in seconds.
_LONG_SLICE = 0.003
_SHORTEST = 1e-6
# The maximum number of bytes that are joined for one write. Larger output, which refers to the bodies of
# messages that other connections send as well, is joined and written part by part.
_LARGEST_WRITE = 1024 * 1024
# The maximum number of reads from a peer that keeps sending while the engine stops.
_LAST_READS = 64
# The maximum number of writes to a connection with throttled output while the engine stops.
_LAST_WRITES = 4096


class Wrapping(Connection, Protocol):
    """A connection that wraps another one, such as a simulated network."""

    def notified(self, connection: Connection | None = None) -> None:
        """The wrapped connection may have output or may have changed; `connection` takes its place."""

    def unwrap(self) -> Connection | None:
        """The wrapped connection, if the wrapper holds nothing back; otherwise None."""


Wrap = Callable[[Connection, Callable[[], None]], Wrapping]
"""Wraps a connection. The wrapper calls the second argument when it has output or has changed."""


class DriverState(Enum):
    """The state of a driver."""

    OPENING = "opening"
    OPEN = "open"
    FINISHING = "finishing"
    LINGERING = "lingering"
    CLOSED = "closed"


OPENING, OPEN, FINISHING, LINGERING, CLOSED = DriverState


class ConnectionDriver(SelectorSource):
    """Moves bytes between a transport and its connection."""

    def __init__(
        self, loop: Turns, transport: Transport, accept: Accept, address: tuple[str, int, str, int]
    ) -> None:
        self._loop = loop
        self._accept = accept
        self._address = address
        self._timer: Timer | None = None
        self._watched = 0
        self._input_ended = False
        # Whether our side of the stream is shut down.
        self._shut = False
        self._eof_told = False
        self._lost = False
        self._moved = False
        # Input that waits for the next turn.
        self._unread = b""
        self._slice = _FIRST_SLICE
        # Whether the last input took long, or more than its share of a turn.
        self._costly = False
        # The time in which the broker was busy, when the timer was set.
        self._busy = 0.0
        self.transport: Transport = transport
        #: The protocol's connection, or its wrapper.
        self.connection: Connection | None = None
        self.wrapping: Wrapping | None = None
        self.state: DriverState = OPENING
        #: Bytes taken from the connection that the transport has not taken yet.
        self.rest: bytes | memoryview = b""
        # What is to be written behind `rest`; there is none if that is empty.
        self._batches: Iterator[bytes | memoryview] = iter(())
        #: Whether the loop's list of drivers to flush contains this one.
        self.dirty: bool = False
        # For a loop that leaves clients alone for a moment.
        self._alone = False
        #: How many reads there were since the last output that the client may have waited for.
        self.unanswered: int = 0
        #: How many of them it takes until the client seems to stream, if that was learned.
        self.reads_needed: int = 0
        #: Bytes of the smallest read, and of all reads.
        self.smallest_read: int = _FIRST_SLICE
        self.octets_read: int = 0

    @property
    def name(self) -> str:
        if self.connection is not None:
            return self.connection.name
        return "{}:{} -> {}:{}".format(*self._address)

    def start(self) -> None:
        self._loop.drivers[self] = None
        self._arm(HANDSHAKE_SECONDS, "handshake")
        self._open()
        self.notify()

    def notify(self, connection: Connection | None = None) -> None:
        """Note that there is output or a change of state; it is handled when the turn ends.

        `connection` has it, and takes the place of the connection that read the protocol header.
        """
        if self.wrapping is not None:
            self.wrapping.notified(connection)
        elif connection is not None:
            self.connection = connection
        if not self.dirty and self.state is not CLOSED:
            self.dirty = True
            self._loop.dirty.append(self)

    # -- wrapping

    def wrap(self, wrap: Wrap) -> None:
        if self.state is OPEN and self.wrapping is None and self.connection is not None:
            self.connection = self.wrapping = wrap(self.connection, self.notify)
            self.notify()

    # -- events of the selector

    def ready(self, mask: int) -> None:
        if self.state is CLOSED:  # earlier in this turn
            return
        if mask & EVENT_READ:
            if self.state is OPEN:
                if self._unread:
                    self.notify()  # `settle` goes on with it in this turn.
                elif not self._put_off():
                    self._read()
            elif self.state is OPENING:
                self._open()
                # The last bytes of the handshake may carry the first ones of the stream.
                if self.state is OPEN:
                    self._read()
            else:
                self._discard()
        if mask & EVENT_WRITE:
            if self.state is OPENING:
                self._open()
            self.notify()

    def _open(self) -> None:
        transport = self.transport
        try:
            opened = transport.open()
        except OSError as error:
            self._not_opened(error)
            return
        if transport.backlog:
            self.notify()
        if not opened:
            return
        self._disarm()
        peer = PeerAddress(*self._address, transport.secure, transport.certificate_subject)
        self.connection = self._accept(peer, self.notify)
        self.state = OPEN
        if self._loop.wrap is not None:
            self.wrap(self._loop.wrap)

    def _not_opened(self, error: OSError) -> None:
        self._loop.log.info("%s: handshake failed: %s", self.name, error)
        self._finish()
        self.notify()

    def _put_off(self) -> bool:
        """Whether input has to wait for its share of a turn, because it is probably expensive."""
        loop = self._loop
        if not self._costly or loop.turn_seconds == inf:
            return False
        loop.costly[self] = None
        return True

    def go_on(self) -> None:
        if self.state is OPEN and not self._input_ended:
            self._read()

    def _read(self) -> None:
        connection = self.connection
        assert connection is not None
        if not connection.reading:
            self.notify()  # Its socket stays readable: without a new mask every turn would come here.
            return
        try:
            data = self._unread or self.transport.recv()
        except OSError:
            self._lose()
            self.notify()
            return
        if data:
            count = len(data)
            self._moved = True
            self.octets_read += count
            if count < self.smallest_read:
                self.smallest_read = count
            self.unanswered += 1
            self._process(data)
            self._loop.input_came(self, count)
        elif data is not None:
            # The peer ended its side, but may still read: the output of the connection is written first.
            self._input_ended = True
            if connection.on_reset is None or connection.finished:
                self._finish()
            else:
                self._tell_eof()
            self.notify()
        if self.transport.backlog or self.transport.input_left or self._unread:
            self.notify()

    def _process(self, data: bytes) -> None:
        """Process input until a turn is used up; keep the rest."""
        self._unread = b""
        loop = self._loop
        now = loop.transport_clock.now
        before = now()
        end = before + loop.turn_seconds
        start = 0
        size = min(self._slice, _SMALLEST_SLICE) if loop.costly else self._slice
        while True:
            connection = self.connection  # The first slice may put another one in its place.
            assert connection is not None
            connection.receive(data[start : start + size] if start or len(data) > size else data)
            start += size
            after = now()
            if start >= len(data):
                break
            if after >= end or not connection.reading:
                self._unread = data[start:]
                break
            if connection.paced and size >= _PACED_SLICE:
                self.write()
            # What fits into the rest of the turn, if it costs as much as the last slice did.
            fitting = size * (end - after) / max(after - before, _SHORTEST)
            size = int(max(_SMALLEST_SLICE, min(2 * size, _LARGEST_SLICE, fitting)))
            before = after
        self._costly = bool(self._unread) or after - before > _LONG_SLICE
        if self._costly:
            fitting = size * _LONG_SLICE / max(after - before, _SHORTEST)
            self._slice = int(max(_SMALLEST_SLICE, min(_FIRST_SLICE, fitting)))

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
        """Write all output with one gathered write; keep what the transport does not accept."""
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
            for batch in self._batches:
                if not self._send(batch):
                    return
            pieces = connection.pending()
            if not pieces:
                return
            if len(pieces) == 1:
                self._send(pieces[0])
            elif not isinstance(pieces[0], memoryview):
                # Joined: with 3000 pieces of 140 bytes this takes a third of the time of sendmsg.
                self._send(b"".join(pieces))
            else:
                self._batches = _batches(pieces)
                for batch in self._batches:
                    if not self._send(batch):
                        return
        except OSError:
            self._lose()

    def _lose(self) -> None:
        self._lost = True
        if self.connection is not None and self.connection.on_reset is not None:
            self.connection.on_reset()

    def _send(self, data: bytes | memoryview) -> bool:
        count = self.transport.send(data)
        whole = count == len(data)
        self.rest = b"" if whole else memoryview(data)[count:]
        if count:
            self._moved = True
            connection = self.connection
            assert connection is not None
            if self.unanswered and not connection.occupied:
                self.unanswered = 0
            connection.sent(count)
        return whole

    def settle(self) -> None:
        """Update the state and the watched events from the connection and the transport."""
        if self.state is CLOSED:
            return
        if self.wrapping is not None and self._loop.wrap is None:
            inner = self.wrapping.unwrap()
            if inner is not None:
                self.connection, self.wrapping = inner, None
        connection = self.connection
        transport = self.transport
        if self._lost or (connection is not None and connection.aborted):
            self.close()
            return
        if self.state is OPEN and connection is not None and connection.finished:
            if connection.on_reset is None or connection.resets or self._input_ended:
                self._finish()
            elif not self._shut and not self.rest and not self.dirty:
                self._shut_down()
                self._arm(LINGER_SECONDS, "linger")
        left = (bool(self._unread) or transport.input_left) and not self._input_ended
        if (
            self.state is OPEN
            and left
            and connection is not None
            and connection.reading
            and not self._put_off()
        ):
            self._read()  # What one turn left for the next one, or what the transport has read ahead.
        if self.state is FINISHING and not self.dirty and connection is not None and connection.resets:
            self.close()  # Output that the peer has not read yet is lost.
            return
        if self.state is FINISHING and not self.rest and not self.dirty:
            self._shut_down()
            if self._shut:
                self.state = LINGERING
        if self._lost:
            self.close()
            return
        if self.state is LINGERING and self._input_ended:
            self.close()
            return
        self._watch()

    def _shut_down(self) -> None:
        try:
            self._shut = self._shut or self.transport.shutdown()
        except OSError:
            self._lost = True

    def _watch(self) -> None:
        mask = 0
        connection = self.connection
        taking = connection is not None and connection.reading and not self._alone
        if not self._input_ended and (taking or self.state is not OPEN):
            mask = EVENT_READ
        if self.rest or self.transport.backlog:
            mask |= EVENT_WRITE
        if mask != self._watched:
            before, self._watched = self._watched, 0  # An exception of a signal handler may come between.
            self._loop.watch(self, self.transport.fileno(), before, mask)
            self._watched = mask

    @property
    def takes_input(self) -> bool:
        """Whether all input was processed, cheaply, and the connection takes more."""
        connection = self.connection
        taking = self.state is OPEN and not (self._input_ended or self._unread or self._costly)
        return taking and connection is not None and connection.reading

    def leave_alone(self, alone: bool) -> None:
        """Do not watch for input for a while, or watch for it again."""
        self._alone = alone
        self.unanswered = 0
        if self.state is not CLOSED:
            self._watch()

    # -- closing

    def _finish(self) -> None:
        self.state = FINISHING
        if self._input_ended or self.connection is None:
            self._tell_eof()
        self._arm(LINGER_SECONDS, "linger")

    def close(self) -> None:
        """Close the transport immediately and let the connection clean up. Idempotent."""
        # An exception of a signal handler may have ended an earlier call in its midst.
        if self.state is CLOSED and self not in self._loop.drivers:
            return
        self.state = CLOSED
        self._disarm()
        if self._watched:
            self._loop.watch(self, self.transport.fileno(), self._watched, 0)
            self._watched = 0
        self._loop.costly.pop(self, None)
        self.rest = self._unread = b""
        self._batches = iter(())
        try:
            if self.connection is not None and self.connection.resets:
                self.transport.reset()
            else:
                self.transport.close()
        finally:
            try:
                self._tell_eof()
            finally:
                self._loop.drivers.pop(self, None)

    def close_gently(self) -> None:
        """Close now. Input is read first, so that output already written still reaches the peer."""
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
            self.dirty = False  # it may stay on the loop's list: a further flush is harmless
            self.write()

    def abandon(self) -> None:
        """Close the descriptor only: for a forked child, whose parent still uses the stream."""
        self.state = CLOSED
        self._timer = None
        self.transport.close()

    def failed(self) -> None:
        self.close()

    def _tell_eof(self) -> None:
        if not self._eof_told:
            self._eof_told = True
            if self.connection is not None:
                self.connection.receive_eof()

    # -- the timer that limits a handshake and lingering

    def _arm(self, seconds: float, label: str) -> None:
        self._disarm()
        self._moved = False
        self._busy = self._loop.operations.busy_seconds
        timers = self._loop.transport_timers
        due = self._loop.transport_clock.now() + seconds
        self._timer = timers.call_at(due, self._expired, f"{label} {self.name}")

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expired(self) -> None:
        self._timer = None
        if self.state in (OPEN, FINISHING) and self._moved:
            self._arm(LINGER_SECONDS, "linger")  # The peer reads slowly, or still sends.
            return
        if self.state is OPENING and (busy := self._loop.operations.busy_seconds - self._busy):
            self._arm(busy, "handshake")
            return
        if self.state is OPENING:
            self._loop.log.info("%s: no TLS handshake within %g s", self.name, HANDSHAKE_SECONDS)
        self._lost = True
        self.notify()

    def __repr__(self) -> str:
        return f"<ConnectionDriver {self.name} {self.state.value}>"


def _batches(pieces: list[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Join pieces to batches of at most `_LARGEST_WRITE` bytes; a larger piece is a batch of its own."""
    batch: list[bytes | memoryview] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > _LARGEST_WRITE and batch:
            yield b"".join(batch) if len(batch) > 1 else batch[0]
            batch.clear()
            size = len(piece)
        batch.append(piece)
    yield b"".join(batch) if len(batch) > 1 else batch[0]
