"""Pytest plugin: `--through-proxy` runs the protocol tests of 0-9-1 on brokers behind a proxy without sockets.

A proxy without faults changes nothing, so the tests are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.proxied.connection import BrokerLeg, ProxiedConnection

_TESTS = Path(__file__).parents[1] / "protocol" / "amqp_0_9_1"


class ThroughProxy:
    """A connection to a broker through a proxy, both without sockets."""

    def __init__(self, state: BrokerState, peer: PeerAddress, connect: Callable[..., Connection]) -> None:
        self._broker = connect(peer, self._use)
        self._proxied = ProxiedConnection(state, peer, lambda _: None, self._dial)
        self._told_leg = self._told_broker = False

    def _use(self, connection: Connection) -> None:
        self._broker = connection

    def _dial(self, leg: BrokerLeg) -> None:
        self._leg = leg
        leg.connected(lambda: None)

    def _move(self) -> None:
        """Move bytes until there are none left."""
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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--through-proxy", action="store_true", help="run the protocol tests of 0-9-1 behind a proxy"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Put a proxy between all clients of 0-9-1 and their brokers."""
    if not config.getoption("--through-proxy"):
        return
    accept = Server.accept

    def accept_through_proxy(self: Server, peer: PeerAddress, use: Callable[[Connection], None]) -> Any:
        if self.protocol != "0-9-1":
            return accept(self, peer, use)
        books = BrokerState(self.clock)
        return ThroughProxy(books, peer, lambda *arguments: accept(self, *arguments))

    Server.accept = accept_through_proxy  # type: ignore[method-assign]
