"""A content that comes in tiny frames takes no more memory than its bytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.conformance import SHARING
from fakeamqp.dialects import protocol_names
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, frame

COUNT = 10_000
MOST = 100_000
"""Bytes of memory for a body of 20 000 bytes, or none, in so many frames; as objects they take 430 000."""


@contextmanager
def little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield
        assert tracemalloc.get_traced_memory()[0] - before < MOST
    finally:
        tracemalloc.stop()


@pytest.mark.needs("personality rabbitmq-4.3")
@pytest.mark.parametrize("protocol", [each for each in SHARING if each in protocol_names()])
@pytest.mark.parametrize("size", [0, 2])
def test_memory_of_tiny_body_frames_is_limited_to_their_bytes(protocol: str, size: int) -> None:
    client = Server("rabbitmq-4.3" if protocol == "0-9-1" else "spec", protocol=protocol).client()
    client.declare("q")
    body = b"0123456789" * 2000
    client.send(m.BasicPublish(routing_key="q"))
    header, *_ = content_frames(1, 60, bytes(2), body, 100_000)
    client.send_bytes(header)
    with little_memory():
        for start in range(0, COUNT * size, size) if size else range(COUNT):
            client.send_bytes(frame(3, 1, body[start : start + size] if start + size < len(body) else b""))
    rest = body[COUNT * size - size :] if size else body
    message = client.send_bytes(frame(3, 1, rest)).get("q")
    assert message is not None and message.body == body


@pytest.mark.rule("0-9-1/types/max-content-size")
@pytest.mark.parametrize("size", [2**63, 2**64 - 1])
def test_announced_body_size_allocates_no_memory(spec: Server, size: int) -> None:
    client, other = spec.client(), spec.client()
    other.declare("q")
    client.send(m.BasicPublish(routing_key="q"))
    with little_memory():
        client.send_frame(2, 1, b"\0\x3c\0\0" + size.to_bytes(8, "big") + b"\0\0")
        client.send_bytes(frame(3, 1, bytes(20_000)))
        assert other.publish(b"meanwhile", routing_key="q").empty("q") == [b"meanwhile"]
    client.drop()
    assert other.count("q") == 0


@pytest.mark.rule("0-9-1/types/max-content-size")
def test_memory_of_unfinished_content_is_freed_with_its_connection(spec: Server) -> None:
    with little_memory():
        client = spec.client().send(m.BasicPublish(routing_key="q"))
        client.send_frame(2, 1, b"\0\x3c\0\0" + (2**63).to_bytes(8, "big") + b"\0\0")
        for _ in range(20):
            client.send_bytes(frame(3, 1, bytes(100_000)))
        client.drop()
        del client
