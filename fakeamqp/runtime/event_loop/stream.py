"""An asyncio transport as a transport of the runtime."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE
from socket import SO_LINGER, SOL_SOCKET
from typing import TYPE_CHECKING, cast

from fakeamqp.runtime.transport import NO_LINGER, Transport

if TYPE_CHECKING:
    from asyncio import Event
    from collections.abc import Callable

    from fakeamqp.runtime.connection_driver import ConnectionDriver

_LARGEST_WRITE = 256 * 1024


class StreamTransport(asyncio.Protocol, Transport):
    """A stream of bytes that the event loop reads and writes, whatever it is made of.

    It calls `opened` when it is connected, `closed` when the event loop has closed it, and `ready`, with a
    mask of `selectors` events, when there is input or room for output.
    """

    def __init__(
        self,
        opened: Callable[[StreamTransport], object],
        ready: Callable[[StreamTransport, int], object],
        closed: Callable[[StreamTransport], object],
    ) -> None:
        self._opened = opened
        self._ready = ready
        self._when_closed = closed
        self._stream: asyncio.Transport | None = None
        self._received: list[bytes] = []
        self._ended = False
        self._end_told = False
        self._error: Exception | None = None
        self._full = False
        self._reading = True
        self._closed = False
        #: Reads and writes the stream, until it is lost.
        self.driver: ConnectionDriver | None = None
        #: Set when the event loop has closed the stream.
        self.lost: Event = asyncio.Event()

    # -- what the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._stream = cast("asyncio.Transport", transport)
        # So that the event loop tells whenever the peer takes less than was written.
        self._stream.set_write_buffer_limits(high=0)
        self._opened(self)

    def data_received(self, data: bytes) -> None:
        self._received.append(bytes(data))  # Proactor loops give a bytearray, before Python 3.13.
        if self._reading:
            self._ready(self, EVENT_READ)

    def eof_received(self) -> bool:
        self._ended = True
        self._ready(self, EVENT_READ)
        return True  # Our side stays open.

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._ready(self, EVENT_WRITE)

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.set()
        self._when_closed(self)
        self._ended = True
        self._full = False
        if not self._closed:
            self._error = error
            self._closed = True
            self._ready(self, EVENT_READ)

    # -- what the runtime calls

    @property
    def backlog(self) -> bool:
        return self._full

    @property
    def input_left(self) -> bool:
        return bool(self._received) or (self._ended and not self._end_told)

    def address(self, name: str) -> tuple[str, int]:
        assert self._stream is not None
        found = self._stream.get_extra_info(name)
        return (found[0], found[1]) if isinstance(found, (tuple, list)) and len(found) > 1 else ("", 0)

    def recv(self) -> bytes | None:
        received = self._received
        if received:
            data = received[0] if len(received) == 1 else b"".join(received)
            received.clear()
            return data
        self._end_told = self._ended
        if self._error is not None:
            raise ConnectionResetError(f"the connection was lost: {self._error}") from self._error
        return b"" if self._ended else None

    def send(self, data: bytes | memoryview) -> int:
        stream = self._stream
        if stream is None or self._closed:
            raise ConnectionResetError("the connection was lost")
        sent = 0
        while sent < len(data) and not self._full:
            piece = data if len(data) <= _LARGEST_WRITE else memoryview(data)[sent : sent + _LARGEST_WRITE]
            # A memory view may be of a buffer that is used again; the event loop may keep what it is given.
            stream.write(bytes(piece))
            sent += len(piece)
        return sent

    def shutdown(self) -> bool:
        assert self._stream is not None
        if not self._closed:
            self._stream.write_eof()
        return True

    def close(self) -> None:
        self._closed = True
        if self._stream is not None:
            self._stream.close()

    def reset(self) -> None:
        self._closed = True
        if self._stream is None:
            return
        sock = self._stream.get_extra_info("socket")
        if sock is not None:
            # A linger time of 0 makes close() send a reset. A simulated socket may warn that it has no such
            # option, and tests make errors of warnings.
            with suppress(OSError, Warning):
                sock.setsockopt(SOL_SOCKET, SO_LINGER, NO_LINGER)
        self._stream.abort()

    def abort(self) -> None:
        """Close the stream immediately, without what was written and not sent."""
        self._closed = True
        if self._stream is not None:
            self._stream.abort()

    def read(self, wanted: bool) -> None:
        """Have bytes read, or (False) left where they are, so that the peer cannot send without end."""
        if wanted == self._reading or self._closed or self._stream is None:
            return
        self._reading = wanted
        if wanted:
            self._stream.resume_reading()
        else:
            self._stream.pause_reading()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} over {self._stream!r}>"
