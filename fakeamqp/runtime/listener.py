"""Listeners: addresses at which peers are accepted."""

from __future__ import annotations

import socket
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from fakeamqp.runtime.addresses import (
    BACKLOG,
    Reserve,
    bound_socket,
    cannot_listen,
    resolve,
    warn_if_exposed,
)
from fakeamqp.runtime.errors import CannotListen, SelectorFull
from fakeamqp.runtime.transport import TcpTransport

if TYPE_CHECKING:
    from asyncio import TimerHandle
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from fakeamqp.model.timers import Timer
    from fakeamqp.runtime.addresses import SocketAddress

# The pause, in seconds, before accepting again after the process has run out of descriptors.
_EXHAUSTED_SECONDS = 0.5


class Listener:
    """Accepts peers at one address; if `refusing`, after `refuse(False)`."""

    _address: SocketAddress
    _lock: AbstractContextManager[object] = nullcontext()

    def __init__(self, refusing: bool) -> None:
        self._refusing = refusing
        self._open = False
        self._closed = False

    @property
    def address(self) -> tuple[str, int]:
        return self._address[0], self._address[1]

    @property
    def port(self) -> int:
        """The port, also if 0 was asked for."""
        return self._address[1]

    def refuse(self, refusing: bool) -> None:
        """Refuse connections, and drop those not accepted yet, or (False) accept them again; keep the port.

        Raises PortInUse if another socket has taken the port meanwhile.
        """
        with self._lock:
            self._refusing = refusing
            if self._closed or self._open is not refusing:
                return
            if refusing:
                self._open = False  # First: the next call mends what an exception of a signal handler leaves.
                self._end()
                self._keep()
            else:
                self._begin()

    def drop_waiting(self) -> None:
        """Disconnect the peers that were not accepted yet."""

    def close(self) -> None:
        """Release the port. Idempotent."""
        with self._lock:
            if not self._closed:
                self._open = False
                self._end()
                self._closed = True

    def _begin(self) -> None:
        """Accept peers, and set `_open`."""
        raise NotImplementedError

    def _end(self) -> None:
        """Accept no more peers. Idempotent."""
        raise NotImplementedError

    def _keep(self) -> None:
        """Keep the port."""

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._open else "refusing"
        return "<{} {}:{} {}>".format(type(self).__name__, *self.address, state)


class PortListener(Listener):
    """Accepts peers at a TCP port of this machine; 0 takes a free one. Raises PortInUse or CannotListen."""

    _resting: Timer | TimerHandle | None = None
    """Ends the pause in which no peer is accepted."""

    def __init__(self, host: str, port: int, refusing: bool) -> None:
        super().__init__(refusing)
        self._family, address = resolve(host, port)
        self._socket = bound_socket(self._family, address)
        self._address = (address[0], self._socket.getsockname()[1], *address[2:])
        warn_if_exposed(host, self._address)
        self._host = host
        self._reserve = Reserve(self.name)
        if refusing:
            return
        try:
            self._begin()
        except BaseException:
            self._end()
            raise

    @property
    def name(self) -> str:
        return f"listener {self._host}:{self.port}"

    # -- the interface of subclasses

    def _check_room(self, sock: socket.socket) -> None:
        """Check that one more socket can be watched; raises SelectorFull."""
        raise NotImplementedError

    def _watch(self) -> None:
        """Have `_accept` called when a peer waits."""
        raise NotImplementedError

    def _unwatch(self) -> None:
        raise NotImplementedError

    def _call_later(self, seconds: float, callback: Callable[[], None]) -> Timer | TimerHandle:
        raise NotImplementedError

    def _welcome(self, sock: socket.socket, address: tuple[str, int]) -> None:
        raise NotImplementedError

    # -- what is the same

    def _begin(self) -> None:
        self._reserve.take()
        if self._socket.fileno() == -1:
            self._socket = bound_socket(self._family, self._address)
        try:
            self._check_room(self._socket)
            self._socket.listen(BACKLOG)
        except OSError as error:
            raise cannot_listen(error, self._address) from error
        except SelectorFull as error:
            raise CannotListen(f"cannot listen on {self.address}: {error}") from None
        self._watch()
        self._open = True

    def _end(self) -> None:
        if self._socket.fileno() != -1:
            self._wake_up()
            self._unwatch()
            self._socket.close()
        self._reserve.give_up()

    def _keep(self) -> None:
        # A bound socket that does not listen keeps the port and refuses connections. If another process
        # takes the port in between, `_begin` raises.
        with suppress(CannotListen):
            self._socket = bound_socket(self._family, self._address)

    def drop_waiting(self) -> None:
        waiting: list[socket.socket] = []
        with self._lock:
            try:
                for _ in range(BACKLOG if self._open else 0):
                    accepted = self._reserve.accept(self._socket)
                    if accepted is not None:
                        waiting.append(accepted[0])
            except OSError:
                pass  # No more, or no descriptor for them.
            finally:
                for sock in waiting:
                    TcpTransport(sock).reset()

    def _accept(self) -> None:
        """Accept every waiting peer."""
        while self._open:
            try:
                accepted = self._reserve.accept(self._socket)
            except BlockingIOError:
                return
            except OSError:
                # The waiting peer keeps the socket readable, so without a pause the loop would spin.
                self._unwatch()
                self._resting = self._call_later(_EXHAUSTED_SECONDS, self._go_on)
                return
            if accepted is not None:
                self._welcome(*accepted)

    def _go_on(self) -> None:
        self._wake_up()
        self._watch()

    def _wake_up(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
