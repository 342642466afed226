"""Addresses at which a broker in an event loop accepts peers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from fakeamqp.runtime.addresses import (
    BACKLOG,
    Reserve,
    bound_socket,
    cannot_listen,
    check_room,
    resolve,
    warn_if_exposed,
)
from fakeamqp.runtime.errors import CannotListen, EngineError, PortInUse, SelectorFull
from fakeamqp.runtime.event_loop.memory import LoopMemoryTransport, connect
from fakeamqp.runtime.event_loop.turns import Arrivals

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Coroutine
    from selectors import BaseSelector
    from typing import Any

__all__ = [
    "LoopListener",
    "NetworkListener",
    "Routes",
    "SocketListener",
    "has_sockets",
    "routes_of",
    "selector_of",
]

# The pause, in seconds, before accepting again after the process has run out of descriptors.
_EXHAUSTED_SECONDS = 0.5
# No process has so many descriptors.
_UNUSED_DESCRIPTOR = 1 << 30
# Ports for brokers that take any, in networks that choose none.
_FIRST_PORT, _LAST_PORT = 30_000, 65_535


def has_sockets(loop: AbstractEventLoop) -> bool:
    """Whether servers of this loop have sockets. Loops that simulate a network have none.

    A loop can say it by an attribute of this name. Others refuse to wait for a descriptor, by some error. So
    does Windows' Proactor loop, but it has calls for sockets.
    """
    said: bool | None = getattr(loop, "has_sockets", None)
    if said is not None:
        return said
    try:
        loop.remove_reader(_UNUSED_DESCRIPTOR)
    except NotImplementedError:
        own = type(loop).sock_accept is not asyncio.AbstractEventLoop.sock_accept
        return own and isinstance(loop, asyncio.BaseEventLoop)
    except Exception:
        return False
    return True


def selector_of(loop: AbstractEventLoop) -> BaseSelector | None:
    """What watches the sockets of a loop; None if that is not one of Python's selectors."""
    return getattr(loop, "_selector", None)


class LoopListener:
    """Accepts peers in an event loop.

    Args:
        loop: the event loop.
        factory: makes the protocol of a new peer.
        refusing: refuse connections until `refuse(False)`.
    """

    _address: tuple[str, int] | tuple[str, int, int, int]

    def __init__(
        self, loop: AbstractEventLoop, factory: Callable[[], asyncio.Protocol], *, refusing: bool = False
    ) -> None:
        self._loop = loop
        self._factory = factory
        self._open = False
        self._wanted = True
        self._refusing = refusing
        self._closed = False

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

    def resume(self) -> None:
        """Accept peers (again) on the same port. Raises `PortInUse` if another socket has taken it."""
        self._wanted = True
        if not (self._closed or self._refusing or self._open):
            self._begin()

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

    def close(self) -> None:
        """Release the port. Idempotent."""
        if not self._closed:
            self._open = False
            self._end()
            self._closed = True

    def _shut(self) -> None:
        if not self._closed and self._open:
            self._open = False
            self._end()
            self._keep()

    def _begin(self) -> None:
        """Accept peers, and set `_open`."""
        raise NotImplementedError

    def _end(self) -> None:
        """Accept no more peers."""
        raise NotImplementedError

    def _keep(self) -> None:
        """Keep the port."""

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open" if self._open else "paused"
        return "<{} {}:{} {}>".format(type(self).__name__, *self.address, state)


class SocketListener(LoopListener):
    """Accepts peers at a socket, and those of the same loop in memory, where it is one of asyncio's.

    The socket is not left to a server of asyncio, which loses peers that it has accepted when it is closed.

    Args:
        loop: the event loop.
        factory: makes the protocol of a new peer.
        welcome: serves an accepted socket, or raises `SelectorFull`.
        run: runs a coroutine, in loops that do not watch descriptors.
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
        run: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        host: str,
        port: int,
        *,
        refusing: bool = False,
    ) -> None:
        super().__init__(loop, factory, refusing=refusing)
        self._welcome = welcome
        self._run = run
        self._routes = routes_of(loop)
        self._pausing: asyncio.TimerHandle | None = None
        self._accepting: asyncio.Task[None] | None = None
        """Accepts peers, if the loop does not watch descriptors."""
        self._family, self._address = resolve(host, port)
        self._socket = bound_socket(self._family, self._address)
        self._address = (self._address[0], self._socket.getsockname()[1], *self._address[2:])
        warn_if_exposed(host, self._address)
        self._reserve = Reserve(self)
        if refusing:
            return
        try:
            self.resume()
        except BaseException:
            self._end()
            raise

    def _begin(self) -> None:
        self._reserve.take()
        if self._socket.fileno() == -1:
            self._socket = bound_socket(self._family, self._address)
        try:
            check_room(selector_of(self._loop), self._socket)
            self._socket.listen(BACKLOG)
        except OSError as error:
            raise cannot_listen(error, self._address) from error
        except SelectorFull as error:
            raise CannotListen(f"cannot listen on {self.address}: {error}") from None
        self._open = True
        self._watch()
        if self._routes is not None:
            self._routes.add(*self.address, self._factory)

    def _watch(self) -> None:
        self._pausing = None
        try:
            self._loop.add_reader(self._socket, self._accept)
        except NotImplementedError:  # As in Windows' Proactor loop.
            self._accepting = self._run(self._accept_each(self._socket))
            self._accepting.add_done_callback(self._accept_again)

    def _accept_again(self, accepted: asyncio.Task[None]) -> None:
        # An app that shuts down may cancel every task of its loop.
        if self._accepting is accepted and accepted.cancelled() and not self._loop.is_closed():
            self._watch()

    def _unwatch(self) -> None:
        if self._pausing is not None:
            self._pausing.cancel()
            self._pausing = None
        accepting, self._accepting = self._accepting, None
        if accepting is not None and not self._loop.is_closed():
            _close_accepted(accepting)
            accepting.cancel()
        # Also for the task: its call of the loop may have a reader, which would outlive the socket.
        with suppress(NotImplementedError):
            self._loop.remove_reader(self._socket)

    def _accept(self) -> None:
        sock = self._socket
        while self._open:
            try:
                accepted = self._reserve.accept(sock)
            except BlockingIOError:
                return
            except OSError:
                self._rest()
                return
            if accepted is not None:
                self._take(accepted[0])

    async def _accept_each(self, sock: socket.socket) -> None:
        while self._accepting is asyncio.current_task():
            try:
                peer, _ = await self._loop.sock_accept(sock)
            except OSError:
                self._accept()  # Peers for which there is no descriptor.
                await asyncio.sleep(0)
            else:
                self._take(peer)

    def _take(self, peer: socket.socket) -> None:
        peer.setblocking(False)
        try:
            self._welcome(peer)
        except SelectorFull as error:
            peer.close()
            self._reserve.log("refuses", error)

    def _rest(self) -> None:
        # The waiting peer keeps the socket readable, so without a pause the loop would spin.
        self._unwatch()
        self._pausing = self._loop.call_later(_EXHAUSTED_SECONDS, self._watch)

    def _end(self) -> None:
        if self._routes is not None:
            self._routes.remove(*self.address)
        if self._socket.fileno() != -1:
            self._unwatch()
            self._socket.close()
        self._reserve.give_up()

    def _keep(self) -> None:
        # A bound socket that does not listen keeps the port and refuses connections. If another process
        # takes the port in between, `resume` raises.
        with suppress(CannotListen):
            self._socket = bound_socket(self._family, self._address)


def _close_accepted(accepting: asyncio.Task[None]) -> None:
    """Close the peer that the loop has accepted for a task in this iteration, before the task has seen it."""
    awaited = getattr(accepting, "_fut_waiter", None)
    if awaited is not None and awaited.done() and not awaited.cancelled() and not awaited.exception():
        accepted = awaited.result()
        if isinstance(accepted, tuple):
            accepted[0].close()


class NetworkListener(LoopListener):
    """Accepts peers in the network that the loop simulates; in memory, if the loop has no network either.

    Args:
        loop: the event loop.
        factory: makes the protocol of a new peer.
        host: an address that the loop knows.
        port: 0 takes a free one.
        refusing: refuse connections until `refuse(False)`.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        factory: Callable[[], asyncio.Protocol],
        host: str,
        port: int,
        *,
        refusing: bool = False,
    ) -> None:
        super().__init__(loop, factory, refusing=refusing)
        self._address = ("127.0.0.1" if host == "localhost" else host, port)
        self._server: asyncio.AbstractServer | None = None
        self._routes: Routes | None = None
        """In memory, where the loop refuses servers."""
        self._starting: asyncio.Task[None] | None = None
        if not refusing:
            self.resume()

    async def serving(self) -> None:
        """Return when peers can connect; at once if they are refused.

        Raises:
            PortInUse: another server has the port.
            CannotListen: the loop has no such address.
            EngineError: the loop has neither servers nor room for connections in memory.
        """
        if self._starting is not None:
            await self._starting

    def _begin(self) -> None:
        self._open = True
        if self._routes is not None:
            self._routes.add(*self.address, self._factory)
        else:
            self._starting = self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        try:
            self._server = await self._create_server()
        except OSError as error:
            raise cannot_listen(error, self._address) from error
        except EngineError:
            raise
        except Exception as refusal:  # Each of these loops has errors of its own.
            if self._address[1] and await self._has_servers():
                raise CannotListen(f"cannot listen on {self.address}: {refusal}") from refusal
            self._routes = self._memory(refusal)
            self._routes.add(*self.address, self._factory)

    async def _create_server(self) -> asyncio.AbstractServer:
        host, port = self.address
        server = await self._loop.create_server(self._factory, host, port)
        try:
            self._address = await self._address_of(server)
            if self._address[1]:
                return server
        except BaseException:
            server.close()
            raise
        # This network takes 0 for a port like any other.
        server.close()
        for port in range(_FIRST_PORT, _LAST_PORT):
            with suppress(OSError):
                server = await self._loop.create_server(self._factory, host, port)
                self._address = (self._address[0], port)
                return server
        raise CannotListen(f"cannot listen on {host}: no port is free")

    async def _has_servers(self) -> bool:
        """Whether the loop has servers on other ports."""
        try:
            server = await self._loop.create_server(self._factory, self._address[0], 0)
        except Exception:
            return False
        server.close()
        return True

    async def _address_of(self, server: asyncio.AbstractServer) -> tuple[str, int]:
        for sock in getattr(server, "sockets", ()):
            host, port = sock.getsockname()[:2]
            return host, port
        # Clients may need another address than the one that this machine has for itself.
        infos = await self._loop.getaddrinfo(*self.address, type=socket.SOCK_STREAM)
        host, port = infos[0][4][:2]
        return str(host), int(port)

    def _memory(self, refusal: Exception) -> Routes:
        routes = routes_in_spite_of(self._loop)
        if routes is None:
            raise EngineError(
                f"a broker cannot run in this event loop: {type(self._loop).__name__} has no servers "
                f"({refusal}), and its connections cannot be made in memory; run the test in another loop, "
                "such as that of fakeamqp.simulation.run"
            ) from refusal
        host, port = self.address
        if routes.serves(host, port):
            raise PortInUse(host, port) from refusal
        self._address = (
            host,
            port or next(p for p in range(_FIRST_PORT, _LAST_PORT) if not routes.serves(host, p)),
        )
        return routes

    def _end(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._routes is not None:
            self._routes.remove(*self.address)


# --- connections without sockets --------------------------------------------------------------------------
#
# `asyncio.open_connection` and all that is made of it ask the loop for connections. `Routes` tells the loops
# of the standard library which addresses are those of brokers: a connection to one of them is made in memory,
# and every other one as before. Other loops, such as those of uvloop, use sockets, or the network that they
# simulate. Loops that have neither have routes, too.


_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_FIRST_CLIENT_PORT = 49152


class Routes:
    """The addresses of brokers in one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._factories: dict[tuple[str, int], Callable[[], asyncio.Protocol]] = {}
        self._arrivals = Arrivals(loop)
        self._count = 0

    def add(self, host: str, port: int, factory: Callable[[], asyncio.Protocol]) -> None:
        """Serve connections to an address by the protocols that `factory` makes."""
        if not self._factories:
            self._loop.create_connection = self._create_connection  # type: ignore[method-assign, assignment]
        for name in _LOOPBACK if host == "127.0.0.1" else (host,):
            if name != "::1":
                self._factories[name, port] = factory

    def serves(self, host: str, port: int) -> bool:
        """Whether connections to this address are made in memory."""
        return (host, port) in self._factories

    def remove(self, host: str, port: int) -> None:
        """Make connections to this address as before."""
        for name in (host, "localhost"):
            self._factories.pop((name, port), None)
        if not self._factories:
            vars(self._loop).pop("create_connection", None)

    async def _create_connection(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        **options: Any,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        address = _address(host, port, options)
        if address in self._factories:
            await self._arrival()
        factory = None if address is None else self._factories.get(address)
        if address is None or factory is None:
            return await type(self._loop).create_connection(
                self._loop,
                protocol_factory,
                host,  # type: ignore[arg-type]
                port,  # type: ignore[arg-type]
                **options,
            )
        self._count += 1
        protocol = protocol_factory()
        transport: LoopMemoryTransport
        transport, _ = connect(
            self._loop,
            protocol,
            factory(),
            client_address=("127.0.0.1", _FIRST_CLIENT_PORT + self._count % 16384),
            server_address=("127.0.0.1", address[1]),
            carry=self._arrivals.call,
        )
        return transport, protocol

    async def _arrival(self) -> None:
        """Take as long as a socket to be connected."""
        arrived = self._loop.create_future()

        def arrive() -> None:
            if not arrived.done():
                arrived.set_result(None)

        self._arrivals.call(arrive, context=copy_context())
        await arrived


# The loop itself keeps its routes, which know it: a table of all loops would keep every loop for ever.
_ATTRIBUTE = "_fakeamqp_routes"


def _address(host: object, port: object, options: dict[str, Any]) -> tuple[str, int] | None:
    """Where a plain connection goes; None if it is of another kind, or the port is the name of a service."""
    if not isinstance(host, str) or options.get("ssl") or options.get("sock"):
        return None
    return (host, int(str(port))) if str(port).isdecimal() else None


def routes_of(loop: asyncio.AbstractEventLoop) -> Routes | None:
    """The routes of a loop with sockets; None if it makes connections in a way of its own."""
    if (
        not isinstance(loop, asyncio.BaseEventLoop)
        or type(loop).create_connection is not asyncio.BaseEventLoop.create_connection
    ):
        return None
    return _of(loop)


def routes_in_spite_of(loop: asyncio.AbstractEventLoop) -> Routes | None:
    """The routes of a loop that refuses all connections; None if it cannot be told of any."""
    if not hasattr(loop, _ATTRIBUTE):
        try:
            loop.create_connection = loop.create_connection  # type: ignore[method-assign]
            del loop.create_connection
        except (AttributeError, TypeError):
            return None
    return _of(loop)


def _of(loop: asyncio.AbstractEventLoop) -> Routes:
    found: Routes | None = getattr(loop, _ATTRIBUTE, None)
    if found is None:
        found = Routes(loop)
        setattr(loop, _ATTRIBUTE, found)
    return found
