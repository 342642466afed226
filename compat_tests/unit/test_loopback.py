"""Free ports of the tests themselves."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from compat_tests.tools import loopback
from compat_tests.tools.loopback import LOOPBACK, free_port, free_ports, has_ipv6, needs_ipv6


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(50)
    assert len(set(ports)) == 50
    for port in ports:
        socket.create_server(("127.0.0.1", port)).close()
        if has_ipv6():
            socket.create_server(("::1", port), family=socket.AF_INET6).close()


def test_free_ports_are_not_ephemeral(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "range"
    file.write_text("12000\t60999\n")
    monkeypatch.setattr(loopback, "_EPHEMERAL_PORTS", file)
    assert all(10_000 <= port < 12_000 for port in free_ports(50))


@pytest.mark.parametrize("text", ["1024\t65535\n", None], ids=["almost-all", "not-known"])
def test_free_port_falls_back_when_ephemeral_range_is_wide_or_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    file = tmp_path / "range"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(loopback, "_EPHEMERAL_PORTS", file)
    assert 10_000 <= free_port() < 32_768


@needs_ipv6
@pytest.mark.parametrize("address", LOOPBACK)
def test_port_in_use_on_one_loopback_address_is_not_free(
    monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    taken, free = free_ports(2)
    drawn = iter([taken, free])
    monkeypatch.setattr(loopback._random, "randrange", lambda *_: next(drawn))
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, taken), family=family):
        assert free_port() == free
