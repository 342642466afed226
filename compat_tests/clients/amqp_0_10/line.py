"""A socket, as frames: what is written goes out whole, what comes is cut where frames end."""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Iterator
from typing import NamedTuple

from compat_tests.clients.amqp_0_10.errors import ConnectionLost, TimedOut
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, HEADER_SIZE, check_header

__all__ = ["Frame", "Line"]


class Frame(NamedTuple):
    """A frame without its size."""

    flags: int
    kind: int
    track: int
    channel: int
    payload: bytes


class Line:
    """One transport. Nothing here blocks but `_wait`, which knows until when."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        if sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self._octets = bytearray()
        self._ended = False

    def close(self) -> None:
        """End it without a word."""
        self._ended = True
        self._socket.close()

    def write(self, octets: bytes, deadline: float) -> None:
        """Send it all; where the broker does not read because we do not, read meanwhile.

        Raises:
            ConnectionLost: the transport is no more.
            TimedOut: the broker takes nothing.
        """
        view = memoryview(octets)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait(select.POLLIN | select.POLLOUT, deadline)
                self._read()
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, deadline)
            except OSError as problem:
                self._ended = True
                raise ConnectionLost(f"the connection has ended: {problem}") from None

    def read(self, deadline: float) -> None:
        """Wait until something comes, and take all of it.

        Raises:
            ConnectionLost: the transport has ended.
            TimedOut: nothing comes.
        """
        while not self._read():
            if self._ended:
                raise ConnectionLost("the connection has ended")
            self._wait(select.POLLIN, deadline)

    def take(self, size: int) -> bytes | None:
        """So many bytes that are no frame, once they have come."""
        if len(self._octets) < size:
            return None
        taken = bytes(self._octets[:size])
        del self._octets[:size]
        return taken

    def frames(self) -> Iterator[Frame]:
        """The frames that have come whole."""
        while len(self._octets) >= HEADER_SIZE:
            flags, kind, size, reserved, track, channel, reserved_2 = FRAME_HEADER.unpack_from(self._octets)
            check_header(flags, kind, size, reserved, track, reserved_2)
            octets = self.take(size)
            if octets is None:
                return
            yield Frame(flags, kind, track, channel, octets[HEADER_SIZE:])

    def _read(self) -> bool:
        """Take what is there; whether there was any."""
        found = False
        while not self._ended:
            try:
                octets = self._socket.recv(1 << 16)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                return found
            except OSError:
                octets = b""
            self._octets += octets
            self._ended = not octets
            found = found or bool(octets)
        return found

    def _wait(self, events: int, deadline: float) -> None:
        """Wait until the socket can be read from, or written to."""
        poll = select.poll()
        poll.register(self._socket, events)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise TimedOut("what was waited for has not come")
