"""`localhost`: one port on both loopback addresses."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from compat_tests.tools.loopback import LOOPBACK, free_port, needs_ipv6
from compat_tests.unit.runtime.fakes import Echoes, PortEngine
from compat_tests.unit.runtime.test_listener import echo
from fakeamqp.runtime import CannotListen, PortInUse, listener
from fakeamqp.runtime.addresses import cannot_listen


def addresses(engine: PortEngine) -> list[str]:
    return [each.address[0] for each in engine.listeners]


def port_taken_on_ipv6() -> tuple[socket.socket, int]:
    """A port that is in use on ::1 and free on 127.0.0.1."""
    port = free_port()
    return socket.create_server(("::1", port), family=socket.AF_INET6), port


@needs_ipv6
@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "localhost."])
def test_both_loopback_addresses_have_the_same_port(engine: PortEngine, echoes: Echoes, host: str) -> None:
    first, second = engine.listen_on(host)
    assert (first.address[0], second.address[0]) == LOOPBACK
    assert first.port == second.port > 0
    assert echo(first.address) == echo(second.address) == b"x"
    assert sorted(each.peer.server_host for each in echoes.accepted) == sorted(LOOPBACK)


def test_any_other_host_has_one_listener(engine: PortEngine) -> None:
    (only,) = engine.listen_on("127.0.0.1")
    assert engine.listeners == (only,)


@needs_ipv6
@pytest.mark.parametrize("address", LOOPBACK)
def test_localhost_port_in_use_on_either_address_leaves_no_listener_open(
    engine: PortEngine, address: str
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    port = free_port()
    with (
        socket.create_server((address, port), family=family),
        pytest.raises(PortInUse, match=f"port {port} on {address} is in use") as caught,
    ):
        engine.listen_on("localhost", port)
    assert (caught.value.host, caught.value.port) == (address, port)
    assert engine.listeners == ()
    assert len(engine.listen_on("localhost", port)) == 2


@needs_ipv6
def test_localhost_chooses_a_port_free_on_both_addresses(
    engine: PortEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, taken = port_taken_on_ipv6()
    bind = listener.bound_socket
    tried = []

    def taken_first(family: int, sockaddr: Any) -> socket.socket:
        if family == socket.AF_INET and sockaddr[1] == 0:
            tried.append(sockaddr)
            if len(tried) == 1:
                sockaddr = (sockaddr[0], taken)
        return bind(family, sockaddr)

    monkeypatch.setattr(listener, "bound_socket", taken_first)
    with other:
        first, second = engine.listen_on("localhost")
    assert len(tried) == 2
    assert first.port == second.port != taken
    assert engine.listeners == (first, second)


@pytest.mark.parametrize("code", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
def test_a_machine_without_ipv6_listens_on_ipv4_alone(
    engine: PortEngine, monkeypatch: pytest.MonkeyPatch, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    without(monkeypatch, socket.AF_INET6, code)
    (only,) = engine.listen_on("localhost")
    assert only.address[0] == "127.0.0.1"
    assert echo(only.address) == b"x"
    assert caplog.records == []


@needs_ipv6
def test_a_machine_without_ipv4_listens_on_ipv6_alone(
    engine: PortEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, socket.AF_INET, errno.EADDRNOTAVAIL)
    engine.listen_on("localhost")
    assert addresses(engine) == ["::1"]


def test_a_machine_without_any_loopback_address_cannot_listen(
    engine: PortEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, socket.AF_INET, errno.EADDRNOTAVAIL)
    without(monkeypatch, socket.AF_INET6, errno.EAFNOSUPPORT)
    with pytest.raises(CannotListen, match="cannot listen on ::1"):
        engine.listen_on("localhost")


@needs_ipv6
def test_forbidden_loopback_address_is_an_error_and_leaves_no_listener(
    engine: PortEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, socket.AF_INET6, errno.EACCES)
    with pytest.raises(CannotListen, match="cannot listen on ::1"):
        engine.listen_on("localhost")
    assert engine.listeners == ()


def without(monkeypatch: pytest.MonkeyPatch, family: int, code: int) -> None:
    """Let sockets of the family fail to bind with this error code."""
    bind = listener.bound_socket

    def fails(wanted: int, sockaddr: Any) -> socket.socket:
        if wanted == family:
            error = OSError(code, "no such address")
            raise cannot_listen(error, sockaddr) from error
        return bind(wanted, sockaddr)

    monkeypatch.setattr(listener, "bound_socket", fails)
