"""Connections that this process opens: the leg of a proxy to a broker."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fakeamqp.connection import Connection
from fakeamqp.runtime.connection_driver import CLOSED, ConnectionDriver
from fakeamqp.runtime.transport import TcpTransport

if TYPE_CHECKING:
    import ssl

    from fakeamqp.runtime.connection_driver import Wrap
    from fakeamqp.runtime.thread.loop import Loop
    from fakeamqp.runtime.transport import Transport
    from fakeamqp.runtime.turns import Turns


class Target(NamedTuple):
    """An address to connect to; with a context, by TLS."""

    host: str
    port: int
    context: ssl.SSLContext | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}" + (" (TLS)" if self.context is not None else "")


class DialedConnection(Connection, Protocol):
    """A connection whose transport this process opens."""

    def connected(self, notify: Callable[[], object]) -> None:
        """The transport is open; `notify` has the runtime look at the connection."""

    def refused(self, why: str) -> None:
        """No transport could be opened."""


_UNDER_WAY = frozenset((errno.EINPROGRESS, errno.EALREADY, errno.EWOULDBLOCK))


class DialingTransport(TcpTransport):
    """A TCP stream that this process opens. `open` continues the connect, which a timeout must limit."""

    __slots__ = ("_address", "backlog")

    def __init__(self, family: int, address: Any) -> None:
        super().__init__(socket.socket(family, socket.SOCK_STREAM))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._address = address
        self.backlog: bool = True
        """True until the stream is open: the socket becomes writable then."""

    def open(self) -> bool:
        if self.backlog:
            error = self._socket.connect_ex(self._address)
            if error in _UNDER_WAY:
                return False
            if error not in (0, errno.EISCONN):
                raise OSError(error, os.strerror(error))
            self.backlog = False
        return True

    def send(self, data: bytes | memoryview) -> int:
        return 0 if self.backlog else super().send(data)


class DialingDriver(ConnectionDriver):
    """Opens a transport for a connection. `decided` is told why that is not possible; None that it is."""

    def __init__(
        self,
        loop: Turns,
        transport: Transport,
        connection: DialedConnection,
        target: Target,
        decided: Callable[[str | None], object],
    ) -> None:
        if target.context is not None:
            from fakeamqp.runtime.tls import TlsTransport

            transport = TlsTransport(transport, target.context, target.host)

        def accept(_peer: object, notify: Callable[[Connection], None]) -> Connection:
            connection.connected(lambda: notify(connection))
            self._tell(None)
            return connection

        super().__init__(loop, transport, accept, (target.host, target.port, "", 0))
        self._decided = decided
        self._told = False

    def wrap(self, wrap: Wrap) -> None:
        """Simulated networks are between a client and this process."""

    def _not_opened(self, error: OSError) -> None:
        self._tell(str(error))
        self.close()

    def close(self) -> None:
        opening = self.state is not CLOSED and self.connection is None
        super().close()
        if opening:
            self._tell("no answer in time")

    def _tell(self, why: str | None) -> None:
        if not self._told:
            self._told = True
            self._decided(why)


class Dialing:
    """Connects to the first of the targets, and of their addresses, that can be reached, in their order.

    A name is resolved in a thread of its own: that may take seconds.
    """

    def __init__(self, loop: Loop, targets: Sequence[Target], connection: DialedConnection) -> None:
        self._loop = loop
        self._targets = iter(targets)
        self._connection = connection
        self._problems: list[str] = []
        self._next_target()

    def _next_target(self) -> None:
        target = next(self._targets, None)
        if target is None:
            self._connection.refused("; ".join(self._problems))
            return
        try:
            addresses = _addresses(target, socket.AI_NUMERICHOST)
        except (OSError, UnicodeError):
            Thread(target=self._resolve, args=(target,), name="fakeamqp resolver", daemon=True).start()
        else:
            self._try(target, iter(addresses))

    def _resolve(self, target: Target) -> None:
        problem, addresses = "", []
        try:
            addresses = _addresses(target)
        except (OSError, UnicodeError) as error:  # A name that cannot be encoded is none.
            problem = str(error)
        self._loop.post(lambda: self._try(target, iter(addresses), problem))

    def _try(self, target: Target, addresses: Iterator[tuple[int, Any]], problem: str = "") -> None:
        """Try the next of the addresses; `problem` is that of the one before."""
        if self._loop.stopping:
            return
        found = next(addresses, None)
        if found is None:
            self._problems.append(f"{target}: {problem}")
            self._next_target()
            return

        def decided(why: str | None) -> None:
            if why is not None:
                self._try(target, addresses, why)

        try:
            transport = DialingTransport(*found)
        except OSError as error:
            decided(str(error))
            return
        DialingDriver(self._loop, transport, self._connection, target, decided).start()


def _addresses(target: Target, flags: int = 0) -> list[tuple[int, Any]]:
    found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, *_, address in found]
