"""Transports: how bytes travel, in an interface small enough to fake."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Protocol

__all__ = ["RECEIVE_SIZE", "TcpTransport", "Transport"]

# One read takes at most this many bytes, so that one busy peer cannot keep the loop to itself.
RECEIVE_SIZE = 256 * 1024


class Transport(Protocol):
    """One peer's stream of bytes. No call ever blocks.

    A call that finds the stream broken raises OSError; the transport is then good for `close` only.
    """

    @property
    def secure(self) -> bool:
        """Whether the stream is encrypted."""
        ...

    @property
    def certificate_subject(self) -> str | None:
        """Common name in the peer's verified certificate, if it showed one."""
        ...

    @property
    def backlog(self) -> bool:
        """Whether bytes that `send` accepted still wait for the socket to become writable."""
        ...

    @property
    def input_left(self) -> bool:
        """Whether `recv` has more to tell although the socket may never become readable again."""
        ...

    def fileno(self) -> int:
        """The descriptor to wait on; -1 once closed."""
        ...

    def open(self) -> bool:
        """Advance the opening handshake. True once bytes can flow, False when more must arrive first."""
        ...

    def recv(self) -> bytes | None:
        """Bytes that have arrived; `b""` when the peer has ended its side; None when there are none now."""
        ...

    def send(self, data: bytes | memoryview) -> int:
        """Send the beginning of `data`, or an earlier backlog; how many bytes were taken, 0 when full."""
        ...

    def shutdown(self) -> bool:
        """End our side. False when a backlog goes first: call again when writable.

        After it `recv` still shows that the peer sends and when it ends; what it returns is to be discarded.
        """
        ...

    def close(self) -> None:
        """Let go of the descriptor at once. Idempotent."""
        ...

    def reset(self) -> None:
        """Let go of the descriptor at once, and have the peer see a reset. Where there is none, `close`."""
        ...


class TcpTransport:
    """Plain bytes over a connected stream socket (TCP or a socketpair), which it makes non-blocking."""

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
        """Bytes that have arrived; `b""` at the peer's end; None when there are none now."""
        try:
            return self._socket.recv(RECEIVE_SIZE)
        except (BlockingIOError, InterruptedError):
            return None

    def send(self, data: bytes | memoryview) -> int:
        """Hand the beginning of `data` to the kernel; how many bytes it took."""
        try:
            return self._socket.send(data)
        except (BlockingIOError, InterruptedError):
            return 0

    def shutdown(self) -> bool:
        """Send the end of our side."""
        self._socket.shutdown(socket.SHUT_WR)
        return True

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def reset(self) -> None:
        """Close the socket with a TCP reset; what was not sent yet is lost."""
        # To linger for no time at all is how TCP is told so. A socketpair may not know of it.
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} fd={self.fileno()}>"
