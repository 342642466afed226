"""The network of a simulation: servers and connections in memory."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from asyncio import Handle, sslproto
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from fakeamqp.runtime.event_loop.memory import LoopMemoryTransport, Pipe, connect
from fakeamqp.simulation.errors import NotSimulated, UnknownHost
from fakeamqp.simulation.schedule import DELAYS, LATENCIES

if TYPE_CHECKING:
    from fakeamqp.simulation.loop import SimulatedLoop

_LOCALHOST = "127.0.0.1"
_ANY = "0.0.0.0"
# The first port that the network chooses for clients, and for servers with port 0.
_CLIENT_PORT = 40_000
_SERVER_PORT = 30_000


class SimulatedNetwork:
    """Names, listening servers and connections.

    Args:
        loop: the loop that all protocols run in.
    """

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        #: Addresses of host names. Add names to it that the code under test connects to.
        self.names: dict[str, str] = {"localhost": _LOCALHOST, "ip6-localhost": _LOCALHOST, "::1": _LOCALHOST}
        self._servers: dict[tuple[str, int], SimulatedServer] = {}
        self._client_port = _CLIENT_PORT
        self._server_port = _SERVER_PORT
        self._latencies: dict[str, float] = {}
        self._transports: WeakSet[LoopMemoryTransport] = WeakSet()

    # -- names

    def address_of(self, host: Any) -> str:
        """The address of a host name.

        Raises:
            UnknownHost: no such name in the simulated network.
        """
        if host is None or host in ("", b""):
            return _LOCALHOST
        name = host.decode() if isinstance(host, bytes) else str(host)
        known = self.names.get(name.lower())
        if known is not None:
            return known
        if _is_number(name):
            return name
        raise UnknownHost(
            socket.EAI_NONAME,
            f"no host {name!r} in the simulated network, which asks no name server; "
            f"add it: loop.network.names[{name!r}] = '127.0.0.1'",
        )

    def resolve(self, host: Any, port: Any, type: int = 0) -> list[Any]:
        """What `getaddrinfo` returns."""
        address = self.address_of(host)
        kind = socket.SOCK_STREAM if type in (0, socket.SOCK_STREAM) else type
        return [(socket.AF_INET, kind, socket.IPPROTO_TCP, "", (address, int(port or 0)))]

    # -- servers

    def listen(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: Any = None,
        port: int | None = None,
        *,
        sock: Any = None,
        ssl: Any = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        start_serving: bool = True,
        **_ignored: Any,
    ) -> SimulatedServer:
        """A server for the addresses of a host or of several."""
        if sock is not None:
            raise NotSimulated(
                "a simulated server has no socket of its own: call create_server with host and port"
            )
        hosts = [host] if host is None or isinstance(host, (str, bytes)) else list(host)
        addresses = [_ANY if name in (None, "", b"", _ANY, "::") else self.address_of(name) for name in hosts]
        if not port:
            port = self._server_port
            while any(taken == port for _, taken in self._servers):
                port += 1
            self._server_port = port + 1
        tls = None if ssl is None else _TLS(ssl, True, None, ssl_handshake_timeout, ssl_shutdown_timeout)
        server = SimulatedServer(
            self, protocol_factory, [(address, port) for address in dict.fromkeys(addresses)], tls
        )
        if start_serving:
            server._start()
        return server

    def _server_at(self, address: str, port: int) -> SimulatedServer | None:
        return self._servers.get((address, port)) or self._servers.get((_ANY, port))

    # -- connections

    async def connect(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: Any = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        local_addr: tuple[str, int] | None = None,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        ssl_shutdown_timeout: float | None = None,
        **_ignored: Any,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        """Connect to a listening server.

        Raises:
            ConnectionRefusedError: no server listens there.
            UnknownHost: no such name in the simulated network.
        """
        if sock is not None:
            raise NotSimulated(
                "a simulated connection has no socket of its own: connect to a host and a port"
            )
        if port is None:
            raise ValueError("host and port was not specified and no sock specified")
        if server_hostname is not None and not ssl:
            raise ValueError("server_hostname is only meaningful with ssl")
        address = self.address_of(host)
        if local_addr is None or not local_addr[1]:
            self._client_port += 1
            client_address = (_LOCALHOST, self._client_port)
        else:
            client_address = (self.address_of(local_addr[0]), int(local_addr[1]))
        port = int(port)
        await self._way(f"{client_address[0]}:{client_address[1]} -> {address}:{port}")
        server = self._server_at(address, port)
        if server is None:
            raise ConnectionRefusedError(
                errno.ECONNREFUSED,
                f"Connect call failed {(address, port)!r}: nothing listens there in this simulation "
                f"(a Broker in it needs runtime='asyncio')",
            )
        protocol = protocol_factory()
        accepted = server._protocol_factory()
        tls = (
            _TLS(ssl, False, server_hostname or host, ssl_handshake_timeout, ssl_shutdown_timeout)
            if ssl
            else None
        )
        return await self._join(server, protocol, accepted, client_address, (address, port), tls)

    async def _join(
        self,
        server: SimulatedServer,
        protocol: asyncio.BaseProtocol,
        accepted: asyncio.BaseProtocol,
        client_address: tuple[str, int],
        server_address: tuple[str, int],
        tls: _TLS | None,
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        loop = self._loop
        waiter = loop.create_future() if tls else None
        client_side: Any = tls.wrap(loop, protocol, waiter) if tls else protocol
        server_side: Any = server._tls.wrap(loop, accepted, None) if server._tls else accepted
        draws = loop.schedule is not None
        client, accepted_transport = connect(
            loop,
            client_side,
            server_side,
            client_address=client_address,
            server_address=server_address,
            carry=self._carry if draws else self._carry_at_once,
            poll=self._carry_at_once,
            cut=self._cut if draws and loop.schedule.deviates("cut") else None,  # type: ignore[union-attr]
            on_server_lost=server._lose,
        )
        server._connections.append(accepted_transport)
        self._transports.update((client, accepted_transport))
        if waiter is None:
            return client, protocol
        try:
            await waiter
        except BaseException:
            client.close()
            raise
        return client_side._app_transport, protocol

    async def _way(self, name: str) -> None:
        """Take as long as the first packet."""
        loop = self._loop
        arrived = loop.create_future()
        handle = Handle(_arrived, (arrived,), loop, None)
        schedule = loop.schedule
        if schedule is None:
            loop._arrive(handle, 0, 0.0)
        else:
            iterations, seconds = DELAYS[schedule.choose("delay", name, len(DELAYS), loop.time())]
            loop._arrive(handle, iterations, seconds)
        await arrived

    def _carry_at_once(self, callback: Callable[[], object], *, context: Context) -> None:
        self._loop._arriving.append(Handle(callback, (), self._loop, context))

    def _carry(self, callback: Callable[[], object], *, context: Context) -> None:
        loop = self._loop
        schedule = loop.schedule
        assert schedule is not None
        pipe: Pipe = callback.__self__  # type: ignore[attr-defined]
        name, now = pipe.name, loop._now
        latency = self._latencies.get(name)
        if latency is None:
            chosen = schedule.choose("latency", name, len(LATENCIES), now)
            latency = self._latencies[name] = LATENCIES[chosen]
        iterations, seconds = DELAYS[schedule.choose("delay", name, len(DELAYS), now)]
        loop._arrive(Handle(callback, (), loop, context), iterations, seconds + latency)

    def _cut(self, pipe: Pipe) -> int:
        size = pipe.size
        schedule = self._loop.schedule
        if size < 2 or schedule is None:
            return size
        chosen = schedule.choose("cut", pipe.name, 4, self._loop._now)
        return (size, (size + 1) // 2, 1, size - 1)[chosen]

    def close(self) -> None:
        """Forget all servers, and close what is open."""
        self._servers.clear()
        for transport in self._transports:
            transport.drop()


class SimulatedServer(asyncio.AbstractServer):
    """A server in the simulated network; it has the methods of `asyncio.Server`."""

    def __init__(
        self,
        network: SimulatedNetwork,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        addresses: Sequence[tuple[str, int]],
        tls: _TLS | None,
    ) -> None:
        self._network = network
        self._protocol_factory = protocol_factory
        self._addresses = list(addresses)
        self._tls = tls
        self._serving = False
        self._closed = False
        self._connections: list[LoopMemoryTransport] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._forever: asyncio.Future[None] | None = None

    @property
    def sockets(self) -> tuple[_ListeningSocket, ...]:
        """What tells the addresses that the server listens at; () once it is closed."""
        return () if self._closed else tuple(_ListeningSocket(address) for address in self._addresses)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop."""
        return self._network._loop

    def is_serving(self) -> bool:
        """Whether connections are accepted."""
        return self._serving

    def _start(self) -> None:
        if self._serving or self._closed:
            return
        servers = self._network._servers
        for address in self._addresses:
            if address in servers:
                reason = os.strerror(errno.EADDRINUSE).lower()
                raise OSError(
                    errno.EADDRINUSE, f"error while attempting to bind on address {address!r}: {reason}"
                )
        servers.update(dict.fromkeys(self._addresses, self))
        self._serving = True

    async def start_serving(self) -> None:
        """Accept connections."""
        self._start()

    async def serve_forever(self) -> None:
        """Accept connections until this is cancelled; then close."""
        if self._closed:
            raise RuntimeError(f"server {self!r} is closed")
        if self._forever is not None:
            raise RuntimeError(f"server {self!r} is already being awaited on serve_forever()")
        self._start()
        self._forever = self._network._loop.create_future()
        try:
            await self._forever
        finally:
            self._forever = None
            self.close()

    def close(self) -> None:
        """Accept no more connections. Open ones stay open."""
        if self._closed:
            return
        self._closed = True
        self._serving = False
        servers = self._network._servers
        for address in self._addresses:
            if servers.get(address) is self:
                del servers[address]
        if self._forever is not None and not self._forever.done():
            self._forever.cancel()
        self._wake()

    def close_clients(self) -> None:
        """Close all connections of the server."""
        for transport in list(self._connections):
            transport.close()

    def abort_clients(self) -> None:
        """Abort all connections of the server."""
        for transport in list(self._connections):
            transport.abort()

    async def wait_closed(self) -> None:
        """Wait until the server is closed and its connections have ended."""
        if self._closed and not self._connections:
            return
        waiter = self._network._loop.create_future()
        self._waiters.append(waiter)
        await waiter

    def _lose(self, transport: LoopMemoryTransport) -> None:
        self._connections.remove(transport)
        self._wake()

    def _wake(self) -> None:
        if self._closed and not self._connections:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(f'{host}:{port}' for host, port in self._addresses)}>"


class _ListeningSocket:
    """What `server.sockets` has: an address, and no descriptor."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def fileno(self) -> int:
        return -1

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._address[0]}:{self._address[1]}>"


class _TLS:
    """TLS on one side of a connection, by asyncio's own protocol."""

    def __init__(
        self,
        context: Any,
        server_side: bool,
        server_hostname: str | None,
        handshake_timeout: float | None,
        shutdown_timeout: float | None,
    ) -> None:
        import ssl

        self._context = ssl.create_default_context() if context is True else context
        if not isinstance(self._context, ssl.SSLContext):
            raise TypeError(f"ssl must be an SSLContext, not {type(context).__name__!r}")
        self._server_side = server_side
        self._server_hostname = None if server_side else server_hostname
        self._timeouts: dict[str, Any] = {}
        if handshake_timeout is not None:
            self._timeouts["ssl_handshake_timeout"] = handshake_timeout
        if shutdown_timeout is not None:
            self._timeouts["ssl_shutdown_timeout"] = shutdown_timeout

    def wrap(
        self, loop: SimulatedLoop, protocol: asyncio.BaseProtocol, waiter: asyncio.Future[None] | None
    ) -> asyncio.BaseProtocol:
        """The protocol that speaks TLS for `protocol`."""
        make: Any = sslproto.SSLProtocol
        wrapped: asyncio.BaseProtocol = make(
            loop, protocol, self._context, waiter, self._server_side, self._server_hostname, **self._timeouts
        )
        return wrapped


def _arrived(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _is_number(host: str) -> bool:
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host.split("%", 1)[0])
        except OSError:
            continue
        return True
    return False
