"""What a client of AMQP 1.0 sends, and clients of 0-9-1 cannot get."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_1_0 import Server, message
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol

LONG = "k" * 300


@pytest.mark.rule("1-0/conversion/to-0-9-1")
@pytest.mark.parametrize("what", ["routing key", "content type"])
def test_text_too_long_for_0_9_1_closes_the_connection_of_its_consumer_alone(
    server: Server, what: str
) -> None:
    queue = server.vhost.queues["q"]
    server.vhost.bindings.bind("amq.fanout", queue, "")
    old = server.client()
    old.consume("q", "t")
    client = server.session()
    if what == "routing key":
        state = client.sender(f"/exchanges/amq.fanout/{LONG}").publish()
    else:
        properties = c.Properties(content_type=Symbol(LONG))
        state = client.sender("/queues/q").publish(message(properties=properties))
    assert isinstance(state, c.Accepted)
    server.advance(0)
    closed = old.expect(m.ConnectionClose, 0)
    assert (closed.reply_code, closed.reply_text) == (541, "INTERNAL_ERROR")
    assert len(queue.ready) == 1
    received = client.receiver("/queues/q", 1, 1).take()[1]
    assert received["data"] == b"body"
