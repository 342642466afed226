"""What a test hands in for AMQP 0-9: who deals with tunnels, what carries out-of-band frames."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import ManualClock
from fakeamqp.model.errors import InternalError, NotImplementedHere
from fakeamqp.model.state import BrokerState
from fakeamqp.protocols.amqp_0_9.registrations import MemoryTransport, Registrations, Tunnel, TunnelRequest


def request(proxy_name: str, *, broadcast: bool = False) -> TunnelRequest:
    return TunnelRequest({}, {}, proxy_name, "", False, broadcast, b"", "c", 1, "/", "guest")


def test_first_matching_tunnel_receives_request() -> None:
    registrations = Registrations(BrokerState(ManualClock()))
    got: list[str] = []
    for name in ("orders.*", "orders.eu", "?"):
        registrations.tunnels.append(Tunnel(name, lambda _, name=name: got.append(name)))
    for proxy in ("orders.eu", "orders.", "x"):
        registrations.tunnel(request(proxy))
    assert got == ["orders.*", "orders.*", "?"]
    with pytest.raises(NotImplementedHere, match=r"'Orders\.eu'"):
        registrations.tunnel(request("Orders.eu"))


def test_broadcast_request_reaches_all_tunnels_although_one_fails() -> None:
    registrations = Registrations(BrokerState(ManualClock()))
    got = []

    def fail(_: TunnelRequest) -> None:
        raise InternalError("the first")

    def fail_too(_: TunnelRequest) -> None:
        raise InternalError("the second")

    registrations.tunnels += [Tunnel("a", fail), Tunnel("b", fail_too), Tunnel("c", got.append)]
    with pytest.raises(InternalError, match="the first"):
        registrations.tunnel(request("", broadcast=True))
    assert len(got) == 1
    registrations.tunnels.clear()
    with pytest.raises(NotImplementedHere):
        registrations.tunnel(request("", broadcast=True))


def test_memory_transport_separates_directions_and_keeps_order() -> None:
    transport = MemoryTransport()
    assert transport.take() is None
    transport.send(b"1")
    transport.send(bytearray(b"2"))
    transport.put(b"a")
    assert repr(transport) == "<MemoryTransport 2 to the broker, 1 to the client>"
    assert (transport.take(), transport.take(), transport.take()) == (b"1", b"2", None)
    assert transport.receive() == b"a"
    with pytest.raises(LookupError, match="read its out-of-band frame first"):
        transport.receive()
