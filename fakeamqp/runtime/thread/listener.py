"""Listeners: TCP ports that accept peers."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from selectors import EVENT_READ
from typing import TYPE_CHECKING

from fakeamqp.runtime.addresses import (
    BACKLOG,
    Reserve,
    bound_socket,
    cannot_listen,
    resolve,
    warn_if_exposed,
)
from fakeamqp.runtime.connection_driver import ConnectionDriver
from fakeamqp.runtime.errors import CannotListen, SelectorFull
from fakeamqp.runtime.transport import TcpTransport

if TYPE_CHECKING:
    from fakeamqp.runtime.clock import ClockTimer
    from fakeamqp.runtime.connection_driver import Accept
    from fakeamqp.runtime.thread.lock import FairLock
    from fakeamqp.runtime.thread.loop import Loop
    from fakeamqp.runtime.transport import Transport

__all__ = ["Listener"]

_log = logging.getLogger("fakeamqp.runtime")
# The pause, in real seconds, before accepting again after the process has run out of descriptors.
_EXHAUSTED_SECONDS = 0.5


class Listener:
    """One listening TCP socket, created by `Engine.listen`."""

    def __init__(
        self,
        loop: Loop,
        lock: FairLock,
        accept: Accept,
        host: str,
        port: int,
        wrap: Callable[[socket.socket], Transport] | None = None,
        *,
        refusing: bool = False,
    ) -> None:
        self._loop = loop
        self._lock = lock
        self._accept = accept
        self._wrap = TcpTransport if wrap is None else wrap
        self._resume_timer: ClockTimer | None = None
        self._watched = False
        self._family, self._sockaddr = resolve(host, port)
        self._socket = bound_socket(self._family, self._sockaddr)
        #: The address, as given.
        self.host = host
        #: The port, also if 0 was asked for.
        self.port: int = self._socket.getsockname()[1]
        self._sockaddr = (self._sockaddr[0], self.port, *self._sockaddr[2:])
        warn_if_exposed(host, self._sockaddr)
        #: Whether connections are refused at the moment.
        self.paused: bool = True
        self._wanted = False
        self._reserve = Reserve(self.name)
        self._refusing = refusing
        #: Whether the listener is closed.
        self.closed: bool = False
        try:
            self.resume()
        except BaseException:
            self._socket.close()
            self._reserve.give_up()
            raise

    @property
    def name(self) -> str:
        """For logs."""
        return f"listener {self.host}:{self.port}"

    @property
    def address(self) -> tuple[str, int]:
        """Numeric host and port."""
        return self._sockaddr[0], self.port

    def resume(self) -> None:
        """Accept peers (again) on the same port. Raises `PortInUse` if another socket has taken it."""
        self._lock.acquire()
        try:
            self._wanted = True
            if self.closed or not self.paused or self._refusing:
                return
            if self._socket.fileno() == -1:
                self._socket = bound_socket(self._family, self._sockaddr)
            try:
                self._loop.check_room(self._socket)
                self._socket.listen(BACKLOG)
            except OSError as error:
                raise cannot_listen(error, self._sockaddr) from error
            except SelectorFull as error:
                raise CannotListen(f"cannot listen on {self.address}: {error}") from None
            self._watch(True)
            self.paused = False
        finally:
            self._lock.release()

    def pause(self) -> None:
        """Refuse connections, and drop those not accepted yet, but keep the port for `resume`."""
        self._lock.acquire()
        try:
            self._wanted = False
            if self.closed or self.paused:
                return
            self.paused = True  # First: `resume` mends what an exception of a signal handler leaves.
            self._watch(False)
            self._socket.close()
            # A bound socket that does not listen keeps the port and refuses connections. If another process
            # takes the port in between, `resume` raises.
            with suppress(CannotListen):
                self._socket = bound_socket(self._family, self._sockaddr)
        finally:
            self._lock.release()

    def refuse(self, refusing: bool) -> None:
        """Refuse connections in spite of `resume`, or (False) return to the state of `pause` and `resume`."""
        self._lock.acquire()
        try:
            self._refusing = refusing
            wanted = self._wanted
            if refusing:
                self.pause()
                self._wanted = wanted
            elif wanted:
                self.resume()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Release the port. Idempotent."""
        self._lock.acquire()
        try:
            if not self.closed:
                self.closed = True
                self._watch(False)
                self._socket.close()
                self._reserve.give_up()
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """Close the descriptor and do nothing else: for a forked child."""
        self.closed = True
        self._watched = False
        self._resume_timer = None
        self._socket.close()
        self._reserve.give_up()

    # -- events of the selector

    def ready(self, _mask: int) -> None:
        """Accept every waiting peer."""
        while not self.paused and not self.closed:
            try:
                accepted = self._reserve.accept(self._socket)
            except BlockingIOError:
                return
            except OSError:
                self._rest()
                return
            if accepted is not None:
                self._welcome(*accepted)

    def failed(self) -> None:
        """Accepting raised an exception: the peer is dropped, the port stays open."""

    def _welcome(self, sock: socket.socket, address: tuple[str, int]) -> None:
        try:
            self._loop.check_room(sock)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = sock.getsockname()
            transport = self._wrap(sock)
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
            self._loop, transport, self._accept, (address[0], address[1], server[0], server[1])
        )
        try:
            driver.start()
        except Exception as error:
            self._loop.give_up_on(driver, "accepting", error)

    def _rest(self) -> None:
        # The waiting peer keeps the socket readable, so without a pause the loop would spin.
        self._watch(False)
        due = self._loop.transport_clock.now() + _EXHAUSTED_SECONDS
        timers = self._loop.transport_timers
        self._resume_timer = timers.call_at(due, lambda: self._watch(True), f"accept again on {self.name}")

    def _watch(self, wanted: bool) -> None:
        if self._resume_timer is not None:
            self._resume_timer.cancel()
            self._resume_timer = None
        if wanted != self._watched:
            before, after = (0, EVENT_READ) if wanted else (EVENT_READ, 0)
            self._watched = False  # Until it is: an exception of a signal handler may come between.
            self._loop.watch(self, self._socket.fileno(), before, after)
            self._watched = wanted

    def __repr__(self) -> str:
        state = "closed" if self.closed else "paused" if self.paused else "open"
        return f"<Listener {self.host}:{self.port} {state}>"
