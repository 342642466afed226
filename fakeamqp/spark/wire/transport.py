"""The socket of a connection: bytes in both directions, TLS, heartbeats and waits.

A `WireTransport` does nothing by itself: `turn` reads, writes and sends heartbeats, and every wait calls it.
So code reads from top to bottom, and the end of a connection is an error where the code notices it.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from ssl import SSLWantReadError, SSLWantWriteError
from struct import error as StructError
from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec.frames import HEARTBEAT_FRAME
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.spark.errors import ConnectionLost, UnreadableAnswer

if TYPE_CHECKING:
    from fakeamqp.spark.wire.login import BrokerLogin

# More than TLS has in a record: what is left is in the socket, so that the selector sees it.
_READ = 64 << 10
_BUSY = BlockingIOError, SSLWantReadError, SSLWantWriteError


class WireTransport:
    """A socket to a broker. Only its own thread uses it, except `wake`.

    Attributes:
        lost: why the connection has ended, if this side did not end it; otherwise None.
        received_at: when the broker's last bytes came, in microseconds since 1970.
    """

    def __init__(self) -> None:
        self.lost: str | None = None
        self.received_at: int = 0
        self._socket: socket.socket | None = None
        self._selector: selectors.BaseSelector
        self._watched: int
        self._unsent = bytearray()
        self._broken: str | None  # Why nothing can be sent any more.
        self._unreadable = False
        self._heartbeat = 0
        self._sent_at: float
        self._heard_at: float
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._waker_lock = threading.Lock()

    def connect(self, login: BrokerLogin, timeout: float) -> None:
        """Open the socket.

        Raises:
            OSError, UnicodeError: the broker cannot be reached, or is not trusted.
        """
        self.lost = self._broken = None
        opened = socket.create_connection((login.host, login.port), timeout)
        if login.tls is not None:
            opened = login.tls.wrap_socket(opened, server_hostname=login.host)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.setblocking(False)
        self._socket = opened
        self._selector = selectors.DefaultSelector()
        self._watched = selectors.EVENT_READ
        self._selector.register(opened, self._watched)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._sent_at = self._heard_at = time.monotonic()

    def disconnect(self) -> None:
        """Close the socket, if it is open, without a word to the broker."""
        opened, self._socket = self._socket, None
        if opened is not None:
            self._selector.close()
            opened.close()
        self._unsent.clear()
        self._heartbeat = 0

    def abandon(self) -> None:
        """Disconnect for good."""
        self.disconnect()
        with self._waker_lock:  # `wake` must not write to a number that another socket has by then.
            self._waker.close()
        self._woken.close()

    def check(self) -> None:
        """Raise the error that has ended the connection.

        Raises:
            UnreadableAnswer: the broker sent something that cannot be read.
            ConnectionLost: the connection has ended for another reason.
        """
        if self.lost is not None:
            raise (UnreadableAnswer if self._unreadable else ConnectionLost)(self.lost)

    def send(self, octets: bytes) -> None:
        """Send whole frames, as far as the network takes them; `turn` sends the rest."""
        if self.lost is None:
            self._unsent += octets
            self._write()

    @property
    def unsent(self) -> int:
        """The number of bytes that wait to be sent."""
        return len(self._unsent)

    def wait_for(
        self,
        done: Callable[[], object],
        timeout: float,
        what: str,
        check: Callable[[], None] | None = None,
        since: float | None = None,
    ) -> None:
        """Let time pass until a condition holds.

        Args:
            done: the condition.
            timeout: in seconds.
            what: what the broker has to do, for the error.
            check: raises what ends the wait, instead of `self.check`.
            since: when the time began, by the monotonic clock.

        Raises:
            ConnectionLost: the connection has ended, or the time is over.
        """
        deadline = (time.monotonic() if since is None else since) + timeout
        while not done():
            (check or self.check)()
            left = deadline - time.monotonic()
            if left <= 0:
                raise ConnectionLost(f"the broker did not {what} within {timeout:g} s")
            self.turn(left)

    def turn(self, timeout: float | None = None) -> None:
        """Read, write and send heartbeats once; wait at most `timeout` seconds for something to happen."""
        if self._socket is None or self.lost is not None:
            return
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)
        if wanted != self._watched:
            self._watched = wanted
            self._selector.modify(self._socket, wanted)
        for key, events in self._selector.select(self._pause(timeout)):
            if key.fileobj is self._woken:
                self._woken.recv(4096)
                continue
            if events & selectors.EVENT_WRITE:
                self._write()
            if events & selectors.EVENT_READ:
                self._read(self._socket)
        if self._broken is not None:
            while self._read(self._socket):
                """The broker may have said why it has closed."""
            self._end(self._broken)
        elif self._heartbeat:
            self._beat()

    def wake(self) -> None:
        """Wake a waiting `turn`. Any thread may call it."""
        with self._waker_lock, suppress(OSError):  # It has many wakes already, or is closed.
            self._waker.send(b"\0")

    def _pause(self, timeout: float | None) -> float | None:
        """The seconds to wait: not longer than to the next heartbeat of a side."""
        if timeout is not None:
            timeout = max(timeout, 0.0)
        if not self._heartbeat:
            return timeout
        due = self._heard_at + 2 * self._heartbeat
        if not self._unsent:  # Otherwise the broker does not read: a heartbeat would wait, too.
            due = min(due, self._sent_at + self._heartbeat / 2)
        left = max(due - time.monotonic(), 0.0)
        return left if timeout is None else min(left, timeout)

    def _beat(self) -> None:
        now = time.monotonic()
        silent = now - self._heard_at
        if silent >= 2 * self._heartbeat:
            self._end(f"the broker sent nothing for {silent:.0f} s, not even a heartbeat")
        elif not self._unsent and now - self._sent_at >= self._heartbeat / 2:
            self.send(HEARTBEAT_FRAME)

    def _write(self) -> None:
        if self._socket is None:
            return
        try:
            with memoryview(self._unsent) as view:
                sent = self._socket.send(view)
        except _BUSY:
            return
        except OSError as error:
            # The next turn reads, and ends the connection. Here a frame may be in the middle of being read.
            self._broken = in_words(error)
            self._unsent.clear()
            return
        del self._unsent[:sent]
        self._sent_at = time.monotonic()

    def _read(self, opened: socket.socket) -> bool:
        """Read what is there, and tell whether there was something."""
        if self.lost is not None:
            return False
        try:
            octets = opened.recv(_READ)
        except _BUSY:
            return False
        except OSError as error:
            self._end(in_words(error))
            return False
        if not octets:
            self._end("the broker closed the socket")
            return False
        self._heard_at = time.monotonic()
        self.received_at = time.time_ns() // 1000
        try:
            self._receive(octets)
        except (WireError, IndexError, StructError) as error:
            self._unreadable = True
            self._end(f"cannot read what the broker sent: {type(error).__name__}: {error}", "")
        except BaseException:
            self._end("what it sent was not received completely")
            raise
        return True

    def _receive(self, octets: bytes) -> None:
        """Take what the broker sent.

        Raises:
            WireError, IndexError, StructError: it does not follow the protocol.
        """
        raise NotImplementedError

    def _end(self, why: str, what: str = "the connection to the broker ended: ") -> None:
        if self.lost is None:
            self.lost = f"{what}{why}"


def in_words(error: Exception) -> str:
    """The text of an error of a socket; without its number, unless it has nothing else."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
