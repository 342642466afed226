"""Transports: streams of bytes, in an interface small enough to fake."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Protocol

__all__ = ["RECEIVE_SIZE", "TcpTransport", "Transport"]

# The maximum number of bytes per read, so that one busy peer cannot monopolize the loop.
RECEIVE_SIZE = 256 * 1024


class Transport(Protocol):
    """One peer's stream of bytes. No call blocks.

    A call on a broken stream raises OSError; after that only `close` may be called.
    """

    @property
    def secure(self) -> bool:
        """Whether the stream is encrypted."""
        ...

    @property
    def certificate_subject(self) -> str | None:
        """Common name in the peer's verified certificate, or None."""
        ...

    @property
    def backlog(self) -> bool:
        """Whether bytes that `send` accepted are still to be written to the socket."""
        ...

    @property
    def input_left(self) -> bool:
        """Whether `recv` returns more although the socket may never become readable again."""
        ...

    def fileno(self) -> int:
        """The descriptor to poll; -1 once closed."""
        ...

    def open(self) -> bool:
        """Continue the handshake. True once it is complete, False if it needs more input."""
        ...

    def recv(self) -> bytes | None:
        """Received bytes; `b""` if the peer has ended its side; None if there are none now."""
        ...

    def send(self, data: bytes | memoryview) -> int:
        """Send the backlog, then the beginning of `data`; return the number of bytes accepted, 0 if full."""
        ...

    def shutdown(self) -> bool:
        """End our side. False while there is a backlog: call again when writable.

        After that `recv` still reports input and the end of the peer's side; the input is to be discarded.
        """
        ...

    def close(self) -> None:
        """Close the descriptor immediately. Idempotent."""
        ...

    def reset(self) -> None:
        """Close the descriptor immediately with a reset, or like `close` if the transport has no resets."""
        ...


class TcpTransport:
    """Plain bytes over a connected stream socket (TCP or a socketpair), which becomes non-blocking."""

    __slots__ = ("_socket",)

    secure = False
    certificate_subject: str | None = None
    backlog = False
    input_left = False

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._socket = sock

    def fileno(self) -> int:
        """The socket's descriptor; -1 once closed."""
        return self._socket.fileno()

    def open(self) -> bool:
        """A plain stream is open from the start."""
        return True

    def recv(self) -> bytes | None:
        """Received bytes; `b""` if the peer has ended its side; None if there are none now."""
        try:
            return self._socket.recv(RECEIVE_SIZE)
        except (BlockingIOError, InterruptedError):
            return None

    def send(self, data: bytes | memoryview) -> int:
        """Send the beginning of `data`; return the number of bytes that the kernel accepted."""
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    def shutdown(self) -> bool:
        """End our side."""
        self._socket.shutdown(socket.SHUT_WR)
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def reset(self) -> None:
        """Close the socket with a TCP reset; unsent bytes are lost."""
        # A linger time of 0 makes close() send a reset. A socketpair may not support it.
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} fd={self.fileno()}>"
