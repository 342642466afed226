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

    from fakeamqp.runtime.connection_driver import Wrap
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


def dial(loop: Turns, targets: Sequence[Target], connection: DialedConnection) -> None:
    """Connect to the first of the targets that can be reached, in their order."""
    problems: list[str] = []
    left = iter(targets)

    def try_next() -> None:
        target = next(left, None)
        if target is None:
            connection.refused("; ".join(problems))
            return

        def decided(why: str | None) -> None:
            if why is not None:
                problems.append(f"{target}: {why}")
                try_next()

        try:
            family, *_, address = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)[0]
            transport = DialingTransport(family, address)  # type: ignore[arg-type]
        except OSError as error:
            decided(str(error))
            return
        DialingDriver(loop, transport, connection, target, decided).start()

    try_next()
