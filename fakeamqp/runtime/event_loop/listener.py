"""Addresses at which a broker in an event loop accepts peers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from fakeamqp.runtime.addresses import cannot_listen, check_room
from fakeamqp.runtime.errors import CannotListen, EngineError, PortInUse, SelectorFull
from fakeamqp.runtime.event_loop.memory import LoopMemoryTransport, connect
from fakeamqp.runtime.event_loop.turns import Arrivals
from fakeamqp.runtime.listener import Listener, PortListener

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle
    from collections.abc import Coroutine
    from selectors import BaseSelector

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


class SocketListener(PortListener):
    """Accepts peers at a socket, and those of the same loop in memory, where it is one of asyncio's.

    The socket is not left to a server of asyncio, which loses peers that it has accepted when it is closed.
    `factory` is for peers in memory; `run` is called in loops that do not watch descriptors.
    """

    def __init__(
        self,
        loop: AbstractEventLoop,
        factory: Callable[[], asyncio.Protocol],
        adopt: Callable[[socket.socket], object],
        run: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        host: str,
        port: int,
        *,
        refusing: bool,
    ) -> None:
        self._loop = loop
        self._factory = factory
        self._adopt = adopt
        self._run = run
        self._routes = routes_of(loop)
        self._accepting: asyncio.Task[None] | None = None
        """Accepts peers, if the loop does not watch descriptors."""
        super().__init__(host, port, refusing)

    def _check_room(self, sock: socket.socket) -> None:
        check_room(selector_of(self._loop), sock)

    def _begin(self) -> None:
        super()._begin()
        if self._routes is not None:
            self._routes.add(*self.address, self._factory)

    def _end(self) -> None:
        if self._routes is not None:
            self._routes.remove(*self.address)
        super()._end()

    def drop_waiting(self) -> None:
        if self._accepting is not None:  # It may have accepted one already.
            self._unwatch()
            self._watch()
        super().drop_waiting()

    def _call_later(self, seconds: float, callback: Callable[[], None]) -> TimerHandle:
        return self._loop.call_later(seconds, callback)

    def _watch(self) -> None:
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
        accepting, self._accepting = self._accepting, None
        if accepting is not None and not self._loop.is_closed():
            _close_accepted(accepting)
            accepting.cancel()
        # Also for the task: its call of the loop may have a reader, which would outlive the socket.
        with suppress(NotImplementedError):
            self._loop.remove_reader(self._socket)

    async def _accept_each(self, sock: socket.socket) -> None:
        while self._accepting is asyncio.current_task():
            try:
                peer, _ = await self._loop.sock_accept(sock)
            except OSError:
                self._accept()  # Peers for which there is no descriptor.
                await asyncio.sleep(0)
            else:
                self._welcome(peer)

    def _welcome(self, sock: socket.socket, _address: object = None) -> None:
        sock.setblocking(False)
        try:
            self._adopt(sock)
        except SelectorFull as error:
            sock.close()
            self._reserve.log("refuses", error)


def _close_accepted(accepting: asyncio.Task[None]) -> None:
    """Close the peer that the loop has accepted for a task in this iteration, before the task has seen it."""
    awaited = getattr(accepting, "_fut_waiter", None)
    if awaited is not None and awaited.done() and not awaited.cancelled() and not awaited.exception():
        accepted = awaited.result()
        if isinstance(accepted, tuple):
            accepted[0].close()


class NetworkListener(Listener):
    """Accepts peers in the network that the loop simulates; in memory, if the loop has no network either."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        factory: Callable[[], asyncio.Protocol],
        host: str,
        port: int,
        *,
        refusing: bool,
    ) -> None:
        super().__init__(refusing)
        self._loop = loop
        self._factory = factory
        self._address = ("127.0.0.1" if host == "localhost" else host, port)
        self._server: asyncio.AbstractServer | None = None
        self._routes: Routes | None = None
        """In memory, where the loop refuses servers."""
        self._starting: asyncio.Task[None] | None = None
        if not refusing:
            self._begin()

    async def serving(self) -> None:
        """Return when peers can connect, or are refused. Raises CannotListen or EngineError."""
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
        for name in (host, "localhost") if host == "127.0.0.1" else (host,):
            self._factories[name, port] = factory

    def serves(self, host: str, port: int) -> bool:
        return (host, port) in self._factories

    def remove(self, host: str, port: int) -> None:
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
