"""Addresses at which a broker in an event loop accepts peers."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from fakeamqp.runtime.addresses import (
    BACKLOG,
    bound_socket,
    cannot_listen,
    is_exhausted,
    resolve,
    warn_if_exposed,
)
from fakeamqp.runtime.errors import CannotListen
from fakeamqp.runtime.event_loop.routes import routes_of

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

__all__ = ["LoopListener", "has_sockets"]

_log = logging.getLogger("fakeamqp.runtime")
# The pause, in seconds, before accepting again after the process has run out of descriptors.
_EXHAUSTED_SECONDS = 0.5


def has_sockets(loop: AbstractEventLoop) -> bool:
    """Whether servers of this loop have sockets. Loops that simulate a network say that they have not."""
    return bool(getattr(loop, "has_sockets", True))


class LoopListener:
    """Accepts peers in an event loop: at a socket, or in the network that the loop simulates.

    The socket is not left to a server of asyncio, which loses peers that it has accepted when it is closed.

    Args:
        loop: the event loop.
        factory: makes the protocol of a new peer.
        welcome: serves an accepted socket.
        host: address or name of this machine.
        port: 0 takes a free one.
        refusing: refuse connections until `refuse(False)`.

    Raises:
        PortInUse: another socket uses the port.
        CannotListen: the address is not one of this machine, or not usable.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        factory: Callable[[], asyncio.Protocol],
        welcome: Callable[[socket.socket], object],
        host: str,
        port: int,
        *,
        refusing: bool = False,
    ) -> None:
        self._loop = loop
        self._factory = factory
        self._welcome = welcome
        self._routes = routes_of(loop)
        self._server: asyncio.AbstractServer | None = None
        self._starting: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None
        self._pausing: asyncio.TimerHandle | None = None
        self._open = False
        self._wanted = True
        self._refusing = refusing
        self._closed = False
        if has_sockets(loop):
            self._family, self._address = resolve(host, port)
            self._socket = bound_socket(self._family, self._address)
            self._address = (self._address[0], self._socket.getsockname()[1], *self._address[2:])
            warn_if_exposed(host, self._address)
        else:
            self._address = ("127.0.0.1" if host == "localhost" else host, port)
        if not refusing:
            self.resume()

    @property
    def address(self) -> tuple[str, int]:
        """Numeric host and port."""
        return self._address[0], self._address[1]

    @property
    def port(self) -> int:
        """The port, also if 0 was asked for."""
        return self._address[1]

    async def serving(self) -> None:
        """Return when peers can connect; at once if they are refused."""
        if self._starting is not None:
            await self._starting

    def resume(self) -> None:
        """Accept peers (again) on the same port. Raises `PortInUse` if another socket has taken it."""
        self._wanted = True
        if self._closed or self._refusing or self._open:
            return
        if self._socket is None:
            self._open = True
            self._starting = self._loop.create_task(self._serve())
            return
        if self._socket.fileno() == -1:
            self._socket = bound_socket(self._family, self._address)
        try:
            self._socket.listen(BACKLOG)
        except OSError as error:
            raise cannot_listen(error, self._address) from error
        self._open = True
        self._loop.add_reader(self._socket, self._accept)
        if self._routes is not None:
            self._routes.add(*self.address, self._factory)

    async def _serve(self) -> None:
        try:
            server = await self._loop.create_server(self._factory, *self.address)
        except OSError as error:
            raise cannot_listen(error, self._address) from error
        self._address = server.sockets[0].getsockname()[:2]
        self._server = server

    def _accept(self) -> None:
        sock = self._socket
        while self._open and sock is not None:
            try:
                peer, _ = sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if is_exhausted(error):
                    self._rest(sock, error)
                    return
                continue  # This peer has already disconnected.
            peer.setblocking(False)
            self._welcome(peer)

    def _rest(self, sock: socket.socket, error: OSError) -> None:
        # The waiting peer keeps the socket readable, so without a pause the loop would spin.
        _log.warning("%r: cannot accept a connection for now: %s", self, error)
        self._loop.remove_reader(sock)
        self._pausing = self._loop.call_later(_EXHAUSTED_SECONDS, self._loop.add_reader, sock, self._accept)

    def pause(self) -> None:
        """Refuse connections, and drop those not accepted yet, but keep the port for `resume`."""
        self._wanted = False
        self._shut()

    def refuse(self, refusing: bool) -> None:
        """Refuse connections in spite of `resume`, or (False) return to the state of `pause` and `resume`."""
        self._refusing = refusing
        if refusing:
            self._shut()
        elif self._wanted:
            self.resume()

    def _shut(self) -> None:
        if self._closed or not self._open:
            return
        self._release()
        if self._socket is not None:
            # A bound socket that does not listen keeps the port and refuses connections. If another process
            # takes the port in between, `resume` raises.
            with suppress(CannotListen):
                self._socket = bound_socket(self._family, self._address)

    def _release(self) -> None:
        self._open = False
        if self._routes is not None:
            self._routes.remove(*self.address)
        if self._pausing is not None:
            self._pausing.cancel()
            self._pausing = None
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()

    def close(self) -> None:
        """Release the port. Idempotent."""
        if not self._closed:
            self._release()
            self._closed = True

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._open else "paused"
        return "<LoopListener {}:{} {}>".format(*self.address, state)
