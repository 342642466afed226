"""Listeners of a broker in a thread of its own."""

from __future__ import annotations

import socket
from selectors import EVENT_READ
from typing import TYPE_CHECKING

from fakeamqp.runtime.connection_driver import ConnectionDriver
from fakeamqp.runtime.errors import SelectorFull
from fakeamqp.runtime.listener import PortListener
from fakeamqp.runtime.transport import TcpTransport
from fakeamqp.runtime.turns import SelectorSource

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakeamqp.model.timers import Timer
    from fakeamqp.runtime.connection_driver import Accept
    from fakeamqp.runtime.thread.lock import FairLock
    from fakeamqp.runtime.thread.loop import Loop
    from fakeamqp.runtime.tls import ServerTLS


class ThreadListener(PortListener, SelectorSource):
    """A TCP port that the selector of a loop watches."""

    def __init__(
        self,
        loop: Loop,
        lock: FairLock,
        accept: Accept,
        host: str,
        port: int,
        tls: ServerTLS | None,
        *,
        refusing: bool,
    ) -> None:
        self._loop = loop
        self._lock = lock
        self._accept_connection = accept
        self._tls = tls
        self._watched = False
        with lock:
            super().__init__(host, port, refusing)

    def abandon(self) -> None:
        """Close the descriptor and do nothing else: for a forked child."""
        self._closed = True
        self._open = self._watched = False
        self._resting = None
        self._socket.close()
        self._reserve.give_up()

    def ready(self, _mask: int) -> None:
        self._accept()

    def _check_room(self, sock: socket.socket) -> None:
        self._loop.check_room(sock)

    def _welcome(self, sock: socket.socket, address: tuple[str, int]) -> None:
        try:
            self._loop.check_room(sock)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = sock.getsockname()
            transport = TcpTransport(sock) if self._tls is None else self._tls.wrap(sock)
        except OSError:
            sock.close()
            return
        except SelectorFull as error:
            sock.close()
            self._reserve.log("refuses", error)
            return
        except BaseException:
            sock.close()
            raise
        driver = ConnectionDriver(
            self._loop, transport, self._accept_connection, (address[0], address[1], server[0], server[1])
        )
        try:
            driver.start()
        except Exception as error:
            self._loop.give_up_on(driver, "accepting", error)

    def _call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        due = self._loop.transport_clock.now() + seconds
        return self._loop.transport_timers.call_at(due, callback, f"accept again on {self.name}")

    def _watch(self) -> None:
        if not self._watched:
            # The flag is set last: an exception of a signal handler may come between.
            self._loop.watch(self, self._socket.fileno(), 0, EVENT_READ)
            self._watched = True

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._loop.watch(self, self._socket.fileno(), EVENT_READ, 0)
