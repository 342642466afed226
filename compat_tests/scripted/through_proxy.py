"""Pytest plugin: `--through-proxy` runs tests of 0-9-1 and 1.0 on brokers behind a proxy, without sockets.

A proxy without faults changes nothing, so the tests are the same: those of `protocol/amqp_0_9_1`, of
`protocol/amqp_1_0` and of `unit/faults`. `through_proxy.toml` lists the few about what a proxy has not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compat_tests.scripted import amqp_1_0
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.scripted.fault_context import FaultContext
from compat_tests.scripted.known_differences import id_of
from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.faults import Faults
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols import registry
from fakeamqp.protocols.amqp_0_9_1.proxied.connection import ProxiedConnection
from fakeamqp.protocols.base.proxied.client_leg import ClientLeg
from fakeamqp.protocols.base.proxied.legs import BrokerLeg
from fakeamqp.proxy import IMPOSSIBLE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class ThroughProxy:
    """A connection to a broker through a proxy, both without sockets."""

    def __init__(self, state: BrokerState, peer: PeerAddress, connect: Callable[..., Connection]) -> None:
        self._moving = True
        self._told_leg = self._told_broker = False
        self._broker = connect(peer, self._use)
        self._proxied: ClientLeg = ProxiedConnection(
            state, peer, self._notified, self._dial, registry.proxied_by_header
        )
        self._moving = False

    def _notified(self, connection: Any) -> None:
        """The leg of another protocol may have taken the place of the first one."""
        self._proxied = connection
        self._move()

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
            there = b"".join(leg.pending()) if self._broker.reading else b""
            leg.sent(len(there))
            if there:
                self._broker.receive(there)
            back = b"".join(self._broker.pending()) if leg.reading else b""
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
        # What comes of all of it moves on together, as at the end of a turn of the runtime.
        moving, self._moving = self._moving, True
        try:
            self._proxied.receive(data)
        finally:
            self._moving = moving
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
    def reading(self) -> bool:
        return self._proxied.reading and self._broker.reading

    @property
    def finished(self) -> bool:
        self._move()
        return self._proxied.finished

    @property
    def aborted(self) -> bool:
        self._move()
        return self._proxied.aborted

    @property
    def resets(self) -> bool:
        return self._proxied.resets

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
        books = BrokerState(server.clock, seed=server.state.seed)
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
        plain = type(self) is FaultServer and self.protocol == "0-9-1"  # Other protocols build on it.
        if plain or isinstance(self, amqp_1_0.Server):
            self.tapped = books = _books_of(self)
            books.tap, self.state.tap = self.state.tap, None
            self.faults = Faults(_ProxyFaultContext(_Front(self, books)))

    Server.accept = accept_through_proxy  # type: ignore[method-assign]
    FaultServer.__init__ = make_with_proxy  # type: ignore[method-assign]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests that are listed. Raises UsageError for an entry without a test."""
    if not config.getoption("--through-proxy"):
        return
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["exempt"]
    reasons = {test: entry["reason"] for entry in listed for test in entry["tests"]}
    unused = dict(reasons)
    for item in items:
        parts = id_of(item).partition("[")[0].split("::")
        for entry in ("::".join(parts[:count]) for count in range(1, len(parts) + 1)):
            if entry in reasons:
                item.add_marker(pytest.mark.skip(reason=f"through a proxy: {reasons[entry]}"))
                unused.pop(entry, None)
    files = {item.path.name for item in items} if not any("::" in each for each in config.args) else ()
    if wrong := [entry for entry in unused if entry.partition("::")[0] in files]:
        raise pytest.UsageError(f"exempt from --through-proxy, and no test: {', '.join(wrong)}")
