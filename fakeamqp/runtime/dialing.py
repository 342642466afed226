"""Connections that this process opens: the leg of a proxy to a broker."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from fakeamqp.connection import Connection
from fakeamqp.runtime.connection_driver import CLOSED, ConnectionDriver
from fakeamqp.runtime.transport import DialingTransport

if TYPE_CHECKING:
    import ssl

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


class _DialingDriver(ConnectionDriver):
    def __init__(
        self,
        loop: Turns,
        transport: Transport,
        connection: DialedConnection,
        target: Target,
        next_: Callable[[str], object],
    ) -> None:
        def accept(_peer: object, notify: Callable[[Connection], None]) -> Connection:
            connection.connected(lambda: notify(connection))
            return connection

        super().__init__(loop, transport, accept, (target.host, target.port, "", 0))
        self._next = next_
        self._told = False

    def _not_opened(self, error: OSError) -> None:
        self._tell(str(error))
        self.close()

    def close(self) -> None:
        waits = self.state is not CLOSED and self.connection is None
        super().close()
        if waits:
            self._tell("no answer in time")

    def _tell(self, why: str) -> None:
        if not self._told:
            self._told = True
            self._next(why)


def dial(loop: Turns, targets: Sequence[Target], connection: DialedConnection) -> None:
    """Connect to the first of the targets that can be reached, in their order."""
    problems: list[str] = []
    left = iter(targets)

    def try_next(problem: str = "") -> None:
        if problem:
            problems.append(problem)
        target = next(left, None)
        if target is None:
            connection.refused("; ".join(problems))
            return
        try:
            family, *_, address = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)[0]
            transport: Transport = DialingTransport(family, address)  # type: ignore[arg-type]
            if target.context is not None:
                from fakeamqp.runtime.tls import TlsTransport

                transport = TlsTransport(transport, target.context, target.host)
            driver = _DialingDriver(
                loop, transport, connection, target, lambda why: try_next(f"{target}: {why}")
            )
            driver.start()
        except OSError as error:
            try_next(f"{target}: {error}")

    try_next()
