"""Connections that this process opens (`fakeamqp.runtime.dialing`): names and their addresses."""

from __future__ import annotations

import asyncio
import socket
from threading import Event
from typing import Any

import pytest

from compat_tests.tools.loopback import free_ports
from fakeamqp import Broker, Proxy

HEADER = b"AMQP\x00\x00\x09\x01"
_START = b"\x01\x00\x00"


def resolve(monkeypatch: pytest.MonkeyPatch, host: str, *ports: int, after: Event | None = None) -> None:
    """Let a name have these ports of the loopback interface as its addresses, `after` an event."""
    ask = socket.getaddrinfo

    def answer(name: str, port: int, *arguments: Any, flags: int = 0, **keywords: Any) -> Any:
        if name != host or flags:
            return ask(name, port, *arguments, flags=flags, **keywords)
        if after is not None:
            assert after.wait(30)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", each)) for each in ports]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


def greeting(proxy: Proxy) -> bytes:
    """The beginning of what a client gets for its protocol header."""
    with socket.create_connection((proxy.host, proxy.port), timeout=30) as client:
        client.sendall(HEADER)
        return client.recv(3)


def test_next_address_of_a_name_is_tried_when_the_first_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as broker:
        resolve(monkeypatch, "rabbit.test", free_ports(1)[0], broker.port)
        with Proxy("amqp://guest:guest@rabbit.test/%2F") as proxy:
            assert greeting(proxy) == _START


def test_name_that_resolves_slowly_delays_no_other_client(monkeypatch: pytest.MonkeyPatch) -> None:
    resolved = Event()
    with Broker() as broker, Proxy("amqp://slow.test/%2F") as slow:
        resolve(monkeypatch, "slow.test", broker.port, after=resolved)
        with socket.create_connection((slow.host, slow.port), timeout=30) as client:
            client.sendall(HEADER)
            slow.wait_for(lambda: "AMQP 0-0-9-1" in slow.trace.timeline())  # Its loop takes turns meanwhile.
            resolved.set()
            assert client.recv(3) == _START


@pytest.mark.parametrize("host", ["no-such-host.invalid", f"{'a' * 70}.invalid"], ids=["unknown", "too long"])
def test_name_without_an_address_is_told_to_the_client(caplog: pytest.LogCaptureFixture, host: str) -> None:
    with (
        Proxy(f"amqp://{host}/%2F") as proxy,
        socket.create_connection((proxy.host, proxy.port), timeout=30) as client,
    ):
        client.sendall(HEADER)
        answer = b""
        while b"the proxy has no broker" not in answer:
            answer += client.recv(4096)
        assert proxy.admin.failures == ()
    assert f"{host}:5672".encode() in answer
    assert "no connection to the broker" in caplog.text


@pytest.mark.asyncio
async def test_stop_in_an_event_loop_ends_a_dial_that_has_no_answer() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        waiting = []
        for _ in range(4):  # The system answers no further connects.
            waiting.append(socket.socket())
            waiting[-1].setblocking(False)
            waiting[-1].connect_ex(full.getsockname())
        proxy = Proxy(f"amqp://127.0.0.1:{full.getsockname()[1]}/%2F", runtime="asyncio")
        async with proxy:
            _, writer = await asyncio.open_connection(proxy.host, proxy.port)
            writer.write(HEADER)
            await proxy.wait_for.aio(lambda: proxy.connections)
        writer.close()
        for each in waiting:
            each.close()
