"""Connections of an event loop to brokers in the same loop, without sockets.

`asyncio.open_connection` and all that is made of it ask the loop for connections. The loops of the standard
library are told here which addresses are those of brokers: a connection to one of them is made in memory,
and every other one as before. Loops of another kind, such as uvloop's, use sockets, or the network that they
simulate. Those that have neither are told, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from fakeamqp.runtime.event_loop.arrivals import Arrivals
from fakeamqp.runtime.event_loop.memory import LoopMemoryTransport, connect

__all__ = ["Routes", "routes_of"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_FIRST_PORT = 49152


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
            client_address=("127.0.0.1", _FIRST_PORT + self._count % 16384),
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
