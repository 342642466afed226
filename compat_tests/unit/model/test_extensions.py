"""What a test hands in for AMQP 0-9: who deals with tunnels, what carries out-of-band frames."""

from __future__ import annotations

import pytest

from fakeamqp.model.errors import InternalError, NotImplementedHere
from fakeamqp.model.extensions import Extensions, MemoryTransport, Tunnel, TunnelRequest


def request(proxy_name: str, *, broadcast: bool = False) -> TunnelRequest:
    return TunnelRequest({}, {}, proxy_name, "", False, broadcast, b"", "c", 1, "/", "guest")


def test_the_first_that_fits_gets_a_request() -> None:
    extensions = Extensions()
    got: list[str] = []
    for name in ("orders.*", "orders.eu", "?"):
        extensions.tunnels.append(Tunnel(name, lambda _, name=name: got.append(name)))
    for proxy in ("orders.eu", "orders.", "x"):
        extensions.tunnel(request(proxy))
    assert got == ["orders.*", "orders.*", "?"]
    with pytest.raises(NotImplementedHere, match=r"'Orders\.eu'"):
        extensions.tunnel(request("Orders.eu"))


def test_all_get_what_is_broadcast_also_when_one_fails() -> None:
    extensions = Extensions()
    got = []

    def fail(_: TunnelRequest) -> None:
        raise InternalError("the first")

    def fail_too(_: TunnelRequest) -> None:
        raise InternalError("the second")

    extensions.tunnels += [Tunnel("a", fail), Tunnel("b", fail_too), Tunnel("c", got.append)]
    with pytest.raises(InternalError, match="the first"):
        extensions.tunnel(request("", broadcast=True))
    assert len(got) == 1
    extensions.tunnels.clear()
    with pytest.raises(NotImplementedHere):
        extensions.tunnel(request("", broadcast=True))


def test_a_memory_transport_keeps_the_directions_apart_and_the_order() -> None:
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
