"""Pytest plugin: `--through-proxy` runs tests of 0-9-1 on brokers behind a proxy, all without sockets.

A proxy without faults changes nothing, so the tests are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.scripted.fault_context import FaultContext
from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.faults import Faults
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.proxied.connection import BrokerLeg, ProxiedConnection
from fakeamqp.proxy import IMPOSSIBLE


class ThroughProxy:
    """A connection to a broker through a proxy, both without sockets."""

    def __init__(self, state: BrokerState, peer: PeerAddress, connect: Callable[..., Connection]) -> None:
        self._moving = True
        self._told_leg = self._told_broker = False
        self._broker = connect(peer, self._use)
        self._proxied = ProxiedConnection(state, peer, lambda _: self._move(), self._dial)
        self._moving = False

    def _use(self, connection: Connection) -> None:
        self._broker = connection

    def _dial(self, leg: BrokerLeg) -> None:
        self._leg = leg
        leg.connected(self._move)

    def _move(self) -> None:
        """Move bytes until there are none left."""
        if self._moving:
            return
        self._moving = True
        try:
            self._move_all()
        finally:
            self._moving = False

    def _move_all(self) -> None:
        leg = self._leg
        moved = True
        while moved:
            there = b"".join(leg.pending())
            leg.sent(len(there))
            if there:
                self._broker.receive(there)
            back = b"".join(self._broker.pending())
            self._broker.sent(len(back))
            if back:
                leg.receive(back)
            moved = bool(there or back)
        if (self._broker.finished or self._broker.aborted) and not self._told_leg:
            self._told_leg = True
            leg.receive_eof()
        if (leg.finished or leg.aborted) and not self._told_broker:
            self._told_broker = True
            self._broker.receive_eof()

    def receive(self, data: bytes) -> None:
        self._proxied.receive(data)
        self._move()

    def receive_eof(self) -> None:
        self._proxied.receive_eof()
        self._move()

    def pending(self) -> list[bytes | memoryview]:
        self._move()
        return self._proxied.pending()

    def sent(self, count: int) -> None:
        self._proxied.sent(count)

    @property
    def finished(self) -> bool:
        self._move()
        return self._proxied.finished

    @property
    def aborted(self) -> bool:
        self._move()
        return self._proxied.aborted

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)


class _Front:
    """What stands for the broker where faults are those of the proxy: see `fault_context.FaultContext`."""

    def __init__(self, server: Any, books: BrokerState) -> None:
        self.state = books
        self.clock = server.clock
        self.next_tap = server.next_tap


class _ProxyFaultContext(FaultContext):
    impossible = IMPOSSIBLE


def _books_of(server: Server) -> BrokerState:
    """The books of the proxy in front of a broker, with the timers that the test moves."""
    books: BrokerState | None = getattr(server, "books", None)
    if books is None:
        books = BrokerState(server.clock)
        books.timers = server.state.timers
        server.books = books  # type: ignore[attr-defined]
    return books


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--through-proxy", action="store_true", help="run the protocol tests of 0-9-1 behind a proxy"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Put a proxy between all clients of 0-9-1 and their brokers, and let faults be those of the proxy."""
    if not config.getoption("--through-proxy"):
        return
    from compat_tests.unit.faults.server import FaultServer

    accept = Server.accept
    make = FaultServer.__init__

    def accept_through_proxy(self: Server, peer: PeerAddress, use: Callable[[Connection], None]) -> Any:
        if self.protocol != "0-9-1":
            return accept(self, peer, use)
        return ThroughProxy(_books_of(self), peer, lambda *arguments: accept(self, *arguments))

    def make_with_proxy(self: FaultServer, *arguments: Any, **settings: Any) -> None:
        make(self, *arguments, **settings)
        if self.protocol == "0-9-1":
            books = _books_of(self)
            books.tap, self.state.tap = self.state.tap, None
            self.faults = Faults(_ProxyFaultContext(_Front(self, books)))

    Server.accept = accept_through_proxy  # type: ignore[method-assign]
    FaultServer.__init__ = make_with_proxy  # type: ignore[method-assign]
