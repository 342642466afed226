"""What the first connection of a process costs: `python -m compat_tests.benchmarks.first_connection`.

Each run is a process of its own. It starts a broker, and counts processor time, of client and broker
together, from the connect of a raw socket on: the handshake of 0-9-1, a channel, a queue, a message published
and got.
"""

from __future__ import annotations

import socket
import statistics
import struct
import subprocess
import sys
import time

__all__ = ["first_connection_seconds"]

_START_OK = (10, 11)
_TUNE_OK = (10, 31)
_OPEN = (10, 40)
_CHANNEL_OPEN = (20, 10)
_QUEUE_DECLARE = (50, 10)
_PUBLISH = (60, 40)
_GET = (60, 70)


def first_connection_seconds(runs: int = 7) -> list[float]:
    """The processor time of the first connection, in seconds, for each of so many processes."""
    command = [sys.executable, "-m", "compat_tests.benchmarks.first_connection", "once"]
    return [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(runs)
    ]


def _once() -> float:
    from fakeamqp import Broker

    with Broker() as broker:
        start = time.process_time()
        with socket.create_connection((broker.host, broker.port), timeout=60) as client:
            _converse(client)
        return time.process_time() - start


def _converse(client: socket.socket) -> None:
    queue = _short(b"q")
    client.sendall(b"AMQP\0\0\x09\x01")
    _expect(client, 10, 10)
    login = _long(b"\0guest\0guest")
    client.sendall(_method(0, _START_OK, _long(b"") + _short(b"PLAIN") + login + _short(b"en_US")))
    _expect(client, 10, 30)
    client.sendall(_method(0, _TUNE_OK, struct.pack(">HIH", 2047, 131072, 0)))
    client.sendall(_method(0, _OPEN, _short(b"/") + b"\0\0"))
    _expect(client, 10, 41)
    client.sendall(_method(1, _CHANNEL_OPEN, b"\0"))
    _expect(client, 20, 11)
    client.sendall(_method(1, _QUEUE_DECLARE, b"\0\0" + queue + b"\0" + _long(b"")))
    _expect(client, 50, 11)
    client.sendall(
        _method(1, _PUBLISH, b"\0\0\0" + queue + b"\0")
        + _frame(2, 1, struct.pack(">HHQH", 60, 0, 1, 0))
        + _frame(3, 1, b"m")
        + _method(1, _GET, b"\0\0" + queue + b"\1")
    )
    _expect(client, 60, 71)
    _read(client)
    assert _read(client) == b"m"


def _short(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def _long(text: bytes) -> bytes:
    return struct.pack(">I", len(text)) + text


def _method(channel: int, ids: tuple[int, int], arguments: bytes) -> bytes:
    return _frame(1, channel, struct.pack(">HH", *ids) + arguments)


def _frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def _expect(client: socket.socket, *ids: int) -> None:
    received = struct.unpack_from(">HH", _read(client))
    assert received == ids, f"expected method {ids}, received {received}"


def _read(client: socket.socket) -> bytes:
    """The payload of the next frame."""
    _, _, size = struct.unpack(">BHI", _exactly(client, 7))
    return _exactly(client, size + 1)[:-1]


def _exactly(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = client.recv(size - len(data))
        assert more, "the broker has closed the connection"
        data += more
    return data


if __name__ == "__main__":
    if sys.argv[1:] == ["once"]:
        print(_once())
    else:
        seconds = first_connection_seconds()
        print(f"first connection: {1e3 * statistics.median(seconds):.1f} ms of processor time")
