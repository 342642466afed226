"""A proxy with faults and a simulated network, in front of a broker; both without sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from compat_tests.fuzz.fault_server import FaultServer, NetworkContext
from compat_tests.fuzz.proxied_legs import Legs
from fakeamqp.connection import Connection, PeerAddress
from fakeamqp.faults import Faults
from fakeamqp.model.personality import personality
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9_1.proxied.connection import ProxiedConnection
from fakeamqp.protocols.base.proxied.legs import BrokerLeg
from fakeamqp.protocols.negotiation import accept
from fakeamqp.proxy import IMPOSSIBLE
from fakeamqp.trace import Recorder

__all__ = ["ProxyServer", "Upstream"]


class _ProxyContext(NetworkContext):
    impossible = IMPOSSIBLE


class Upstream:
    """The transport between a proxy and its broker: one of the `links` of the server.

    Attributes:
        stalled: nothing moves in either direction.
    """

    wrapping = None

    def __init__(self, server: ProxyServer, leg: BrokerLeg, legs: Legs) -> None:
        self._server = server
        self._leg = leg
        self._legs = legs
        self.over = False
        self.stalled = False
        self._broker: Any = accept(server.broker, PeerAddress(port=server.next_port()), self._use)
        leg.connected(lambda: None)

    def _use(self, connection: Connection) -> None:
        self._broker = connection

    def wrap(self, wrap: Callable[..., Any]) -> None:
        """Faults of the network are between client and proxy."""

    def flush(self) -> bool:
        """Move bytes both ways; returns whether there were any."""
        if self.over or self.stalled:
            return False
        leg, broker = self._leg, self._broker
        there = b"".join(leg.pending()) if broker.reading else b""
        leg.sent(len(there))
        if there:
            self._legs.broker_gets(there)
            broker.receive(there)
            broker = self._broker
        back = b"".join(broker.pending()) if leg.reading else b""
        broker.sent(len(back))
        if back:
            self._legs.broker_sends(back)
            leg.receive(back)
        if not (there or back) and (leg.finished or leg.aborted or broker.finished or broker.aborted):
            self.end()
            return True
        return bool(there or back)

    def end(self) -> None:
        """The transport is no more."""
        if not self.over:
            self.over = True
            self._server.links.remove(self)  # type: ignore[arg-type]
            self._server.upstreams.remove(self)
            self._leg.receive_eof()
            self._broker.receive_eof()


class ProxyServer(FaultServer):
    """What clients connect to: a proxy. `state` is the proxy's, `broker` that of the broker behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.recorder = self.next_tap = self.state.tap = Recorder(self.clock.now)
        self.faults = Faults(_ProxyContext(self))
        self.broker = BrokerState(self.clock, personality=personality("rabbitmq-4.3"), seed=1)
        self.state.timers = self.broker.timers
        self.upstreams: list[Upstream] = []
        self.legs: dict[str, Legs] = {}
        """By the name of the client's connection."""
        self.proxied: list[ref[ProxiedConnection]] = []

    def next_port(self) -> int:
        self._port += 1
        return self._port

    def accept(self, peer: PeerAddress, use: Callable[[Connection], None]) -> Connection:
        """The proxy's end of a new connection, and the connection to the broker."""
        self.legs[peer.name] = legs = Legs(peer.name)

        def dial(leg: BrokerLeg) -> None:
            upstream = Upstream(self, leg, legs)
            self.upstreams.append(upstream)
            self.links.append(upstream)  # type: ignore[arg-type]

        proxied = ProxiedConnection(self.state, peer, use, dial)
        self.proxied.append(ref(proxied))
        return proxied
