"""Tables that are large or deep, wherever a client may send one."""

from __future__ import annotations

import struct
import time

from compat_tests.attempts.attempt import Row, attempt
from compat_tests.attempts.targets import Target
from compat_tests.differential.codec import frame
from compat_tests.differential.raw_client import PROTOCOL_HEADER, RawClient


def _table(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


def _deep(depth: int, kind: bytes) -> bytes:
    """A table in a table and so on, or an array in an array."""
    octets = b""
    for _ in range(depth):
        inner = _table(octets)
        octets = b"\x01aF" + inner if kind == b"F" else b"A" + inner
    return octets if kind == b"F" else b"\x01a" + octets


def _wide(count: int) -> bytes:
    return b"".join(b"\x06%06dt\x01" % number for number in range(count))


TABLES = {
    "tables 100 deep": _deep(100, b"F"),
    "tables 10 000 deep": _deep(10_000, b"F"),
    "arrays 100 deep": _deep(100, b"A"),
    "arrays 20 000 deep": _deep(20_000, b"A"),
    "10 000 fields": _wide(10_000),
    "10 000 fields of one name": b"\x01at\x01" * 10_000,
    "a text of 100 000 bytes": b"\x01aS" + _table(b"x" * 100_000),
    "a length beyond the end": b"\x01aS\xff\xff\xff\xff",
    "a name beyond the end": b"\xffa",
    "an array with half a value": b"\x01aA" + _table(b"I\0"),
}


def _queue_arguments(client: RawClient, table: bytes) -> None:
    client.send_bytes(frame(1, 1, struct.pack(">HHH", 50, 10, 0) + b"\x01u\x02" + _table(table)))


def _headers(client: RawClient, table: bytes) -> None:
    """To a headers exchange, which has to look at them."""
    client.send_bytes(
        frame(1, 1, struct.pack(">HHH", 60, 40, 0) + b"\x0bamq.headers\0\0")
        + frame(2, 1, struct.pack(">HHQH", 60, 0, 0, 0x2000) + _table(table))
    )


def _binding_arguments(client: RawClient, table: bytes) -> None:
    names = b"\x01t\x0bamq.headers\0"
    client.send_bytes(frame(1, 1, struct.pack(">HHH", 50, 20, 0) + names + b"\0" + _table(table)))


_PLACES = {
    "arguments of queue.declare": _queue_arguments,
    "arguments of queue.bind": _binding_arguments,
    "headers of a message": _headers,
}


@attempt("Giant and deep tables")
def tables(target: Target) -> dict[str, Row]:
    """A client sends a table of at most 131 072 bytes, the largest frame, in arguments, in headers that a
    headers exchange reads, and in the client properties, where a frame has at most 8 192 bytes on RabbitMQ
    until the client has logged in. "Refused" is a close with a reply code. Both brokers accept tables of any
    depth; in Python, values below 200 levels are bytes."""
    rows = {}
    for place, send in _PLACES.items():
        for name, table in TABLES.items():
            client = target.client()
            client.do(1, "queue.declare", queue="t")
            start = time.monotonic()
            send(client, table)
            came = client.barrier(1)
            took = time.monotonic() - start
            for queue in "tu":
                client.do(1, "queue.delete", queue=queue)
            client.close()
            rows[f"{place}: {name}"] = Row(_told(came), f"{took:.2f} s")
            target.serves()
    for name, table in TABLES.items():
        client = target.client(handshake=False, header=PROTOCOL_HEADER)
        client.until("connection.start")
        start = time.monotonic()
        payload = struct.pack(">HH", 10, 11) + _table(table) + b"\x05PLAIN" + _table(b"\0guest\0guest")
        client.send_bytes(frame(1, 0, payload + b"\x05en_US"))
        came = client.until("connection.tune", seconds=15)
        client.close()
        rows[f"client properties: {name}"] = Row(_told(came), f"{time.monotonic() - start:.2f} s")
        target.serves()
    return rows


def _told(came: list[str]) -> str:
    for text in came:
        if ".close(" in text:
            return f"refused: {text.partition('(')[2].partition(',')[0]}"
        if text == "closed":
            return "closed"
        if text == "silence":
            return "no answer"
    return "taken"
