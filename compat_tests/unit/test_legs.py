"""The comparison of both legs of a proxy finds each way in which a proxy can be wrong."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from contextlib import ExitStack, suppress

import pytest

from compat_tests.tools import legs
from compat_tests.tools.legs import Legs, Traffic

HEADER = b"AMQP\0\0\x09\x01"
HEARTBEAT = b"\x08\0\0\0\0\0\0\xce"
METHOD = b"\x01\0\0\0\0\0\x04\0\x0a\0\x33\xce"
SENT = HEADER + METHOD + HEARTBEAT


def closed(sock: socket.socket) -> None:
    sock.shutdown(socket.SHUT_WR)


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def not_ended(_: socket.socket) -> None: ...


def traffic(
    change: Callable[[bytes], bytes] = bytes,
    passed_end: Callable[[socket.socket], None] = closed,
    *,
    end: Callable[[socket.socket], None] = closed,
) -> Traffic:
    """The broker sends a method, and the client sends frames and ends; the proxy may change that."""
    with ExitStack() as held:
        broker_port, proxy_port = (
            held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)
        )
        relays = held.enter_context(Legs(broker_port.getsockname()[1]))

        def connected(port: int) -> socket.socket:
            return held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))

        def accepted(listener: socket.socket) -> socket.socket:
            listener.settimeout(10)
            return held.enter_context(listener.accept()[0])

        client = connected(relays.listen(proxy_port.getsockname()[1]))
        proxy_to_client = accepted(proxy_port)
        proxy_to_broker = connected(relays.to)
        broker = accepted(broker_port)

        broker.sendall(METHOD)
        proxy_to_client.sendall(proxy_to_broker.recv(len(METHOD), socket.MSG_WAITALL))
        client.recv(len(METHOD), socket.MSG_WAITALL)

        client.sendall(SENT)
        octets = proxy_to_client.recv(len(SENT), socket.MSG_WAITALL)
        end(client)
        with suppress(ConnectionResetError):
            assert proxy_to_client.recv(1) == b""
        if changed := change(octets):
            proxy_to_broker.sendall(changed)
            broker.recv(len(changed), socket.MSG_WAITALL)
        passed_end(proxy_to_broker)
        if passed_end is not not_ended:
            with suppress(ConnectionResetError):
                assert broker.recv(1) == b""
            broker.close()
            proxy_to_client.close()
        return relays.traffic()


def test_equal_bytes_and_ends_of_both_legs_are_counted_without_a_problem() -> None:
    assert traffic() == Traffic(connections=1, frames=3, heartbeats=1, bytes=len(SENT + METHOD), problems=())


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda octets: octets.replace(b"\x33", b"\x34"),
            "byte 18 was 33ce08000000000000ce and became 34ce08000000000000ce",
        ),
        (lambda octets: octets.replace(HEARTBEAT, b""), "the last 8 bytes are missing"),
        (
            lambda octets: HEADER + HEARTBEAT + METHOD,
            "byte 8 was 01000000000004000a0033ce08000000 and became",
        ),
        (lambda octets: octets + HEARTBEAT, "byte 28 was not sent and became 08000000000000ce"),
        (lambda octets: b"", "the last 28 bytes are missing"),
    ],
    ids=["changed", "dropped", "swapped", "added", "nothing"],
)
def test_changed_dropped_swapped_or_added_bytes_are_a_problem(
    change: Callable[[bytes], bytes], problem: str
) -> None:
    [found] = traffic(change).problems
    assert found.startswith(f"connection 1 to the broker: {problem}")


def test_another_end_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legs, "_SECONDS", 0.1)
    for end, passed_end, problem in (
        (closed, reset, "closed before the proxy, reset behind it"),
        (reset, closed, "reset before the proxy, closed behind it"),
        (closed, not_ended, "closed before the proxy, not ended behind it"),
    ):
        assert traffic(passed_end=passed_end, end=end).problems[0] == f"connection 1 to the broker: {problem}"
    assert traffic(passed_end=reset, end=reset).problems == ()
