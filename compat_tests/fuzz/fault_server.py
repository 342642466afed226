"""A broker without sockets, with faults and a simulated network."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.scripted.fault_context import FaultContext
from fakeamqp.connection import PeerAddress
from fakeamqp.faults import Faults

__all__ = ["FaultServer", "Link", "NetworkContext"]

C = TypeVar("C")
_MOST_TURNS = 100_000


class Link:
    """The transport of a scripted client, in place of its connection: what comes for it is in `arrived`."""

    aborted = False

    def __init__(self, server: FaultServer, peer: PeerAddress) -> None:
        self.server = server
        self.peer = peer
        self.arrived = b""
        self.over = False
        self.wrapping: Any = None
        self._waiting = b""
        self.connection: Any = server.accept(peer, self._stir)
        if server.wrap is not None:
            self.wrap(server.wrap)

    def wrap(self, wrap: Callable[..., Any]) -> None:
        if self.wrapping is None and not self.over:
            self.connection = self.wrapping = wrap(self.connection, self._stir)

    def _stir(self, connection: object = None) -> None:
        if self.wrapping is not None:
            self.wrapping.notified(connection)
        elif connection is not None:
            self.connection = connection

    def receive(self, octets: bytes) -> None:
        """Bytes of the client's; they wait as long as the broker does not read."""
        self._waiting += octets
        self._read()

    def _read(self) -> bool:
        if self.over or not self._waiting or not self.connection.reading:
            return False
        octets, self._waiting = self._waiting, b""
        self.connection.receive(octets)
        return True

    def flush(self) -> bool:
        """Move bytes both ways; whether there were any."""
        if self.over:
            return False
        if self.wrapping is not None and self.server.wrap is None:
            inner = self.wrapping.unwrap()
            if inner is not None:
                self.connection, self.wrapping = inner, None
        connection = self.connection
        if connection.aborted:
            self.receive_eof()
            return True
        octets = b"".join(connection.pending())
        connection.sent(len(octets))
        self.arrived += octets
        moved = self._read() or bool(octets)
        if connection.aborted or connection.finished:
            self.receive_eof()
            return True
        return moved

    def pending(self) -> list[bytes]:
        octets, self.arrived = self.arrived, b""
        return [octets]

    def sent(self, octets: int) -> None:
        pass

    @property
    def finished(self) -> bool:
        return self.over

    def receive_eof(self) -> None:
        """The transport is no more."""
        if not self.over:
            self.over = True
            self.connection.receive_eof()
            self.server.links.remove(self)


class NetworkContext(FaultContext):
    """A `FaultContext` with transports."""

    def wrap_connections(self, wrap: Callable[..., Any] | None) -> None:
        self._server.wrap = wrap
        if wrap is not None:
            for link in list(self._server.links):
                link.wrap(wrap)

    def refuse(self, refusing: bool) -> None:
        self._server.refusing = refusing


class FaultServer(Server):
    """A `Server` with `faults`. `next_tap` stands behind them, as the recorder does in a broker."""

    def __init__(self, name: str = "rabbitmq-4.3", next_tap: Any = None, **state: Any) -> None:
        super().__init__(name, **state)
        self.next_tap = next_tap
        self.state.tap = next_tap
        self.links: list[Link] = []
        self.wrap: Callable[..., Any] | None = None
        self.refusing = False
        self.forgetting = False
        """Whether it is just losing its disk."""
        self.faults = Faults(NetworkContext(self))

    def link(self) -> Link | None:
        """A new transport, or None where the operating system would refuse."""
        if self.refusing:
            return None
        self._port += 1
        link = Link(self, PeerAddress(port=self._port))
        self.links.append(link)
        return link

    def dial(self, kind: Callable[[Any, PeerAddress], C]) -> C | None:
        """A client on a new transport, or None where the operating system would refuse."""
        link = self.link()
        if link is None:
            return None
        server = SimpleNamespace(state=self.state, protocol="0-9-1", accept=lambda *_: link)
        return kind(server, link.peer)

    def pump(self, read: Callable[[], object] = lambda: None) -> None:
        """Let everything happen that can at this instant; `read` has clients look at what has come."""
        for _ in range(_MOST_TURNS):
            due = self.state.timers.next_due()
            moved = due is not None and due <= self.clock.now() and self.state.timers.run_due() > 0
            for link in list(self.links):
                moved |= link.flush()
            read()
            if not moved:
                return
        raise AssertionError("something goes on for ever at one instant")

    def advance(self, seconds: float, read: Callable[[], object] = lambda: None) -> None:
        """Move time, instant by instant."""
        target = self.clock.now() + seconds
        self.pump(read)
        while (due := self.state.timers.next_due()) is not None and due <= target:
            self.clock.advance(max(0.0, due - self.clock.now()))
            self.pump(read)
        self.clock.advance(max(0.0, target - self.clock.now()))
        self.pump(read)

    def restart(self, *, crash: bool = False, durable: bool = True) -> None:
        """As `Broker.restart`."""
        if not crash:
            for connection in list(self.state.connections):
                connection.close_by_operator(320, "CONNECTION_FORCED - broker forced connection closure")
        for link in list(self.links):
            link.flush()
            link.receive_eof()
        for connection in list(self.state.connections):
            connection.receive_eof()  # type: ignore[attr-defined]
        self.state.restart(crash=crash)
        if not durable:
            self.forgetting = True
            self.state.discard("the broker came back without its disk")
            self.forgetting = False
            self.state.populate()
