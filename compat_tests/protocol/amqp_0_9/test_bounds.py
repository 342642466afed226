"""Bounds of contents, and the memory alarm, for clients of 0-9."""

from __future__ import annotations

import struct

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.protocols.amqp_0_9.codec import contents
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

BODY = bytes(20_000)


def test_child_contents_beyond_the_largest_depth_close_the_connection_with_502() -> None:
    client = Server("spec", protocol="0-9").client().send(m.BasicPublish(routing_key="q"))
    header = struct.pack(">HHQH", 60, 1, 0, 0)
    for _ in range(contents.MAX_DEPTH + 1):
        client.send_frame(2, 1, header)
    assert "contents nest deeper" in client.expect_connection_close(502).reply_text


def test_broker_stops_reading_from_a_publisher_at_the_memory_limit() -> None:
    server = Server("spec", protocol="0-9", memory_limit=100_000)
    client = server.client().declare("q").fill("q", *[BODY] * 5)
    assert not client.fill("q", b"waits").connection.reading
    assert len(server.vhost.queues["q"].ready) == 5
    server.vhost.queues["q"].purge()
    server.state.memory.settle()
    assert client.connection.reading
    assert len(server.vhost.queues["q"].ready) == 1
