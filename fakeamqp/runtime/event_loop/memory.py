"""Two connected asyncio transports in memory: streams that behave like TCP over loopback.

Theory of operation. A connection is two pipes, one for each way. A pipe has the bytes that one side has
written and the other has not been given yet, and the end of the stream. Only the callback `Pipe.arrive` hands
them over, at most one call of it is under way at a time, and `carry` says when it runs. So bytes and the end
keep their order however long a call is under way, and like a socket the receiver gets all that has come by
then.

What the peer of a closed transport sees is what the kernel would tell it:

    closed, aborted                        the rest of the bytes, then the end of the stream
    ... with input that was not read       the rest of the bytes, then a reset
    ... after SO_LINGER with a time of 0   the rest of the bytes, then a reset
    a write to a closed peer               a reset

The first `WINDOW` bytes of a pipe are in the kernel, and no longer in the write buffer of the transport.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import logging
import socket
import struct
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from fakeamqp.runtime.event_loop.turns import Arrivals

if TYPE_CHECKING:
    from contextvars import Context

#: The bytes of a pipe that count as sent: a socket's buffers.
WINDOW = 256 * 1024
#: The maximum number of bytes that a protocol is given at once.
MAX_READ = 256 * 1024

_HIGH_WATER = 64 * 1024
# Writes to a lost connection are logged from this one on, as asyncio does.
_LOGGED_WRITES = 5

_logger = logging.getLogger("asyncio")

#: Called with a function, such as the method `arrive` of a `Pipe`, and with `context=...`, the context to run
#: it in. Runs it later, never before it returns.
Carry = Callable[..., object]
#: Called with a `Pipe` whose bytes have come: returns how many of them the receiver gets at once, at
#: least 1.
Cut = Callable[["Pipe"], int]


def connect(
    loop: asyncio.AbstractEventLoop,
    client_protocol: asyncio.BaseProtocol,
    server_protocol: asyncio.BaseProtocol,
    *,
    client_address: tuple[Any, ...],
    server_address: tuple[Any, ...],
    carry: Carry | None = None,
    poll: Carry | None = None,
    cut: Cut | None = None,
    on_server_lost: Callable[[LoopMemoryTransport], object] | None = None,
) -> tuple[LoopMemoryTransport, LoopMemoryTransport]:
    """Connect two protocols of one event loop; return the client's and the server's transport.

    The client's `connection_made` has been called when this returns. The server's is called later, carried
    like bytes.

    `carry` says when bytes and ends arrive: by default as soon as a socket of the loop may be readable.
    `poll`, by default like `carry`, says when a side that reads on gets what had come already, and when it
    notices that its write buffer has drained. `cut` says how many bytes arrive at once: all by default.
    """
    if carry is None:
        carry = Arrivals(loop).call
    if poll is None:
        poll = carry
    client = LoopMemoryTransport(loop, client_protocol, client_address, server_address)
    server = LoopMemoryTransport(loop, server_protocol, server_address, client_address)
    server.on_lost = on_server_lost
    client.join(server, Pipe(client, server, carry, poll, cut), Pipe(server, client, carry, poll, cut))
    client.made = True
    client_protocol.connection_made(client)
    client.outgoing.travel()
    return client, server


class Pipe:
    """What one side of a connection has written and the other has not been given yet."""

    def __init__(
        self,
        sender: LoopMemoryTransport,
        receiver: LoopMemoryTransport,
        carry: Carry,
        poll: Carry,
        cut: Cut | None = None,
    ) -> None:
        self._carry = carry
        self._poll = poll
        self._cut = cut
        #: Both addresses, in the order of the bytes' way.
        self.name: str = f"{_text(sender.address)} -> {_text(receiver.address)}"
        self.sender: LoopMemoryTransport = sender
        self.receiver: LoopMemoryTransport = receiver
        #: The pipe of the other way.
        self.back: Pipe
        self.chunks: list[bytes] = []
        self.size: int = 0
        #: How the stream ends behind the bytes: None while it goes on, `b""` for its end, or a reset.
        self.end: bytes | ConnectionResetError | None = None
        #: Whether a call of `arrive` is under way.
        self.travelling: bool = False

    @property
    def reset(self) -> ConnectionResetError | None:
        return self.end if isinstance(self.end, ConnectionResetError) else None

    def write(self, data: bytes) -> None:
        self.chunks.append(data)
        self.size += len(data)
        self.travel()

    def finish(self, end: bytes | ConnectionResetError) -> None:
        """End the stream behind the bytes that are under way. A reset is final."""
        if self.reset is None:
            self.end = end
            self.travel()

    def travel(self) -> None:
        """See that the receiver is given what there is."""
        if not self.travelling:
            self.travelling = True
            self._carry(self.arrive, context=self.receiver.context)

    def read_on(self) -> None:
        """Give the receiver, which reads again, what has come in the meantime."""
        if not self.travelling and (self.size or self.end is not None):
            self.travelling = True
            self._poll(self.arrive, context=self.receiver.context)

    def truncate(self) -> None:
        """Lose the bytes that are still in the sender's write buffer."""
        if self.size > WINDOW:
            self.chunks = [b"".join(self.chunks)[:WINDOW]]
            self.size = WINDOW

    def arrive(self) -> None:
        """Hand the receiver all bytes that have come, or the end."""
        self.travelling = False
        receiver = self.receiver
        if receiver.gone:
            if self.size:
                self._discard()
                self.back.finish(_reset())
            return
        if not receiver.made:
            # A server reads from a connection after the iteration in which it has accepted it.
            receiver.made = True
            receiver.begin()
            if self.size or self.end is not None:
                self.travel()
            return
        if receiver.deaf:
            return
        if self.size:
            data = self._take()
            receiver.feed(data)
            if (self.size or self.end is not None) and not self.travelling:
                self.travel()
        elif self.end is not None:
            receiver.feed_end(self.end)

    def _take(self) -> bytes:
        chunks, was = self.chunks, self.size
        data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        most = MAX_READ if self._cut is None else min(MAX_READ, self._cut(self))
        self.chunks = []
        self.size = 0
        if was > most:
            self.chunks = [data[most:]]
            self.size = was - most
            data = data[:most]
        if was > WINDOW:
            self._sent()
        return data

    def _discard(self) -> None:
        was, self.size = self.size, 0
        self.chunks = []
        if was > WINDOW:
            self._sent()

    def _sent(self) -> None:
        # The sender notices in an iteration of its own that its buffer has drained.
        sender = self.sender
        self._poll(sender.drained, context=sender.context)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}, {self.size} bytes under way>"


class LoopMemoryTransport(asyncio.Transport):
    """One side of a connection in memory. Write it and close it like any transport of asyncio."""

    # Read by `loop.start_tls`.
    _start_tls_compatible = True

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.BaseProtocol,
        address: tuple[Any, ...],
        peer: tuple[Any, ...],
    ) -> None:
        super().__init__({"socket": MemorySocket(address, peer), "sockname": address, "peername": peer})
        self.loop = loop
        #: The context of callbacks of this side: that of the call that connected it.
        self.context: Context = contextvars.copy_context()
        self.address = address
        self.incoming: Pipe
        self.outgoing: Pipe
        self.on_lost: Callable[[LoopMemoryTransport], object] | None = None
        #: Whether `connection_made` has been called.
        self.made = False
        #: Whether `connection_lost` has been called.
        self.gone: bool = False
        #: Whether input is not read: paused, at its end, or closing.
        self.deaf: bool = False
        self._paused = False
        self._closing = False
        self._eof_written = False
        self._eof_received = False
        # Writes since the call of connection_lost was scheduled, plus one.
        self._lost = 0
        self._writing_paused = False
        self._high_water, self._low_water = _HIGH_WATER, _HIGH_WATER // 4
        self.set_protocol(protocol)

    def join(self, peer: LoopMemoryTransport, outgoing: Pipe, incoming: Pipe) -> None:
        self.outgoing = peer.incoming = outgoing
        self.incoming = peer.outgoing = incoming
        outgoing.back, incoming.back = incoming, outgoing

    # -- protocols

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        #: An `asyncio.BaseProtocol`; None once the connection is lost.
        self._protocol: Any = protocol
        self._buffered = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        found: asyncio.BaseProtocol = self._protocol
        return found

    # -- reading

    def is_reading(self) -> bool:
        return not self._closing and not self._paused

    def pause_reading(self) -> None:
        if self.is_reading():
            self._paused = self.deaf = True

    def resume_reading(self) -> None:
        if self._closing or not self._paused:
            return
        self._paused = False
        self.deaf = self._eof_received
        if not self.deaf:
            self.incoming.read_on()

    def begin(self) -> None:
        self._call("connection_made()", self._protocol.connection_made, self)

    def feed(self, data: bytes) -> None:
        protocol = self._protocol
        if self._buffered:
            self._call("get_buffer() or buffer_updated()", self._feed_buffers, protocol, data)
        else:
            self._call("data_received()", protocol.data_received, data)

    def _call(self, name: str, method: Callable[..., Any], *args: object) -> Any:
        try:
            return method(*args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            # OSError is what becomes of connections; anything else is a defect of the protocol.
            if not isinstance(error, OSError):
                self._report(error, f"Fatal error: protocol.{name} call failed.")
            self._force_close(error)

    def _feed_buffers(self, protocol: asyncio.BufferedProtocol, data: bytes) -> None:
        left = memoryview(data)
        while left:
            if self.deaf or protocol is not self._protocol:
                # The rest is read later, by another protocol perhaps.
                incoming = self.incoming
                incoming.chunks.insert(0, bytes(left))
                incoming.size += len(left)
                return
            buffer = memoryview(protocol.get_buffer(-1)).cast("B")
            if not len(buffer):
                raise RuntimeError("get_buffer() returned an empty buffer")
            size = min(len(buffer), len(left))
            buffer[:size] = left[:size]
            left = left[size:]
            protocol.buffer_updated(size)

    def feed_end(self, end: bytes | ConnectionResetError) -> None:
        if isinstance(end, ConnectionResetError):
            self._force_close(end)
            return
        self._eof_received = self.deaf = True
        if not self._call("eof_received()", self._protocol.eof_received):
            self.close()

    # -- writing

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data argument must be a bytes-like object, not {type(data).__name__!r}")
        if self._eof_written:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data:
            return
        if self._lost:
            if self._lost >= _LOGGED_WRITES:
                _logger.warning("socket.send() raised exception.")
            self._lost += 1
            return
        incoming = self.incoming
        if incoming.reset is not None and not incoming.travelling:
            # The reset has come, but this side does not read.
            self._force_close(incoming.reset)
            return
        outgoing = self.outgoing
        outgoing.write(bytes(data))
        if outgoing.size > WINDOW:
            self._maybe_pause()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if self._closing or self._eof_written:
            return
        self._eof_written = True
        self.outgoing.finish(b"")

    def get_write_buffer_size(self) -> int:
        return max(0, self.outgoing.size - WINDOW)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low_water, self._high_water

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = _HIGH_WATER if low is None else 4 * low
        if low is None:
            low = high // 4
        if not high >= low >= 0:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high_water, self._low_water = high, low
        self._maybe_pause()

    def _maybe_pause(self) -> None:
        if not self._writing_paused and not self.gone and self.get_write_buffer_size() > self._high_water:
            self._writing_paused = True
            self._tell("pause_writing")

    def drained(self) -> None:
        if self._lost:
            return
        size = self.get_write_buffer_size()
        if self._writing_paused and size <= self._low_water:
            self._writing_paused = False
            self._tell("resume_writing")
        if self._closing and not size:
            self._schedule_lost(None)

    def _tell(self, method: str) -> None:
        try:
            getattr(self._protocol, method)()
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._report(error, f"protocol.{method}() failed")

    # -- closing

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if self._closing:
            return
        self._closing = self.deaf = True
        if not self.get_write_buffer_size():
            self._schedule_lost(None)

    def abort(self) -> None:
        self._force_close(None)

    def drop(self) -> None:
        """Close without a word to the protocol or the peer: the event loop is closed."""
        self._closing = self.deaf = self.gone = True
        self._lost += 1

    def _force_close(self, error: BaseException | None) -> None:
        # The name is asyncio's: its TLS calls it.
        if self._lost:
            return
        self._closing = self.deaf = True
        self.outgoing.truncate()
        self._schedule_lost(error)

    def _schedule_lost(self, error: BaseException | None) -> None:
        self._lost += 1
        self.loop.call_soon(self._close_socket, error)

    def _close_socket(self, error: BaseException | None) -> None:
        try:
            self._protocol.connection_lost(error if error is None or isinstance(error, Exception) else None)
        finally:
            self.gone = True
            # The other side holds this one for some more iterations, but not the client's objects.
            self._protocol = None
            unread, outgoing = self.incoming.size, self.outgoing
            self.incoming.chunks, self.incoming.size = [], 0
            if unread or self.get_extra_info("socket").resets:
                outgoing.finish(_reset())
            elif outgoing.end is None:
                outgoing.finish(b"")
            if self.on_lost is not None:
                self.on_lost(self)

    def _report(self, error: BaseException, message: str) -> None:
        self.loop.call_exception_handler(
            {"message": message, "exception": error, "transport": self, "protocol": self._protocol}
        )

    def __repr__(self) -> str:
        state = "closed" if self.gone else "closing" if self._closing else "open"
        return f"<{type(self).__name__} {self.outgoing.name} {state}>"


class MemorySocket:
    """What `get_extra_info("socket")` gives: addresses and options, and no descriptor."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto: int = socket.IPPROTO_TCP

    __slots__ = ("_address", "_options", "_peer")

    def __init__(self, address: tuple[Any, ...], peer: tuple[Any, ...]) -> None:
        self._address = address
        self._peer = peer
        self._options: dict[tuple[int, int], Any] = {}

    def fileno(self) -> int:
        return -1

    def getsockname(self) -> tuple[Any, ...]:
        return self._address

    def getpeername(self) -> tuple[Any, ...]:
        return self._peer

    def setsockopt(self, level: int, option: int, *value: Any) -> None:
        """Set an option. Only SO_LINGER does something: with a time of 0 the close is a reset."""
        self._options[level, option] = value[0]

    def getsockopt(self, level: int, option: int, buflen: int = 0) -> Any:
        return self._options.get((level, option), bytes(buflen) if buflen else 0)

    @property
    def resets(self) -> bool:
        linger = self._options.get((socket.SOL_SOCKET, socket.SO_LINGER))
        if linger is None:
            return False
        on, seconds = struct.unpack("ii", linger)
        return bool(on) and not seconds

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {_text(self._address)} -> {_text(self._peer)}>"


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


def _text(address: tuple[Any, ...]) -> str:
    return ":".join(map(str, address[:2]))
