"""Connections of an event loop to brokers in the same loop, without sockets.

`asyncio.open_connection` and all that is made of it ask the loop for connections. The loops of the standard
library are told here which addresses are those of brokers: a connection to one of them is made in memory,
and every other one as before. Loops of another kind, such as uvloop's, use sockets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from fakeamqp.runtime.event_loop.memory import MemoryTransport, connect

__all__ = ["Routes", "routes_of"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_FIRST_PORT = 49152


class Routes:
    """The addresses of brokers in one event loop."""

    def __init__(self, loop: asyncio.BaseEventLoop) -> None:
        self._loop = loop
        self._factories: dict[tuple[str, int], Callable[[], asyncio.Protocol]] = {}
        self._count = 0

    def add(self, host: str, port: int, factory: Callable[[], asyncio.Protocol]) -> None:
        """Serve connections to an address by the protocols that `factory` makes."""
        if not self._factories:
            self._loop.create_connection = self._create_connection  # type: ignore[method-assign, assignment]
        for name in _LOOPBACK if host == "127.0.0.1" else (host,):
            if name != "::1":
                self._factories[name, port] = factory

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
        factory = None
        if host is not None and port is not None and not options.get("ssl") and not options.get("sock"):
            factory = self._factories.get((host, int(port)))
        if factory is None:
            return await type(self._loop).create_connection(
                self._loop,
                protocol_factory,
                host,  # type: ignore[arg-type]
                port,  # type: ignore[arg-type]
                **options,
            )
        self._count += 1
        protocol = protocol_factory()
        transport: MemoryTransport
        transport, _ = connect(
            self._loop,
            protocol,
            factory(),
            client_address=("127.0.0.1", _FIRST_PORT + self._count % 16384),
            server_address=("127.0.0.1", port),
        )
        return transport, protocol


_routes: WeakKeyDictionary[asyncio.AbstractEventLoop, Routes] = WeakKeyDictionary()


def routes_of(loop: asyncio.AbstractEventLoop) -> Routes | None:
    """The routes of a loop; None if it makes connections in a way of its own."""
    if (
        not isinstance(loop, asyncio.BaseEventLoop)
        or type(loop).create_connection is not asyncio.BaseEventLoop.create_connection
    ):
        return None
    found = _routes.get(loop)
    if found is None:
        found = _routes[loop] = Routes(loop)
    return found
