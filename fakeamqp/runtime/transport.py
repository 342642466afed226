"""Transports: streams of bytes."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

# The maximum number of bytes per read, so that one busy peer cannot monopolize the loop.
RECEIVE_SIZE = 256 * 1024

NO_LINGER = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which `close` sends a reset."""


class Transport:
    """One peer's stream of bytes. No call blocks.

    A call on a broken stream raises OSError; after that only `close` may be called.
    """

    __slots__ = ()

    secure: bool = False
    """Whether the stream is encrypted."""
    certificate_subject: str | None = None
    """Common name in the peer's verified certificate, known once the stream is open."""

    @property
    def backlog(self) -> bool:
        """Whether bytes that `send` accepted are still to be written to the socket."""
        return False

    @property
    def input_left(self) -> bool:
        """Whether `recv` returns more although the socket may never become readable again."""
        return False

    def fileno(self) -> int:
        """The descriptor to poll; -1 once closed, or if there is none."""
        return -1

    def open(self) -> bool:
        """Continue the handshake. True once it is complete, False if it needs more input."""
        return True

    def recv(self) -> bytes | None:
        """Received bytes; `b""` if the peer has ended its side; None if there are none now."""
        raise NotImplementedError

    def send(self, data: bytes | memoryview) -> int:
        """Send the backlog, then the beginning of `data`; return the number of bytes accepted, 0 if full."""
        raise NotImplementedError

    def shutdown(self) -> bool:
        """End our side. False while there is a backlog: call again when writable.

        After that `recv` still reports input and the end of the peer's side; the input is to be discarded.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Close the stream immediately. Idempotent."""
        raise NotImplementedError

    def reset(self) -> None:
        """Close the stream immediately with a reset, or like `close` if the transport has no resets."""
        raise NotImplementedError


class TcpTransport(Transport):
    """Plain bytes over a connected stream socket (TCP or a socketpair), which becomes non-blocking."""

    __slots__ = ("_socket",)

    backlog = False
    input_left = False

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    def fileno(self) -> int:
        return self._socket.fileno()

    def recv(self) -> bytes | None:
        try:
            return self._socket.recv(RECEIVE_SIZE)
        except (BlockingIOError, InterruptedError):
            return None

    def send(self, data: bytes | memoryview) -> int:
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    def shutdown(self) -> bool:
        self._socket.shutdown(socket.SHUT_WR)
        return True

    def close(self) -> None:
        self._socket.close()

    def reset(self) -> None:
        # A linger time of 0 makes close() send a reset. A socketpair may not support it.
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self._socket.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} fd={self.fileno()}>"
