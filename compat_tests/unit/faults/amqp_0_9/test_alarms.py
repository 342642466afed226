"""Alarms: publishers of 0-9 are held back, whatever they publish with."""

from __future__ import annotations

import pytest

from compat_tests.unit.faults.amqp_0_9.server import FaultServer
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared


@pytest.mark.parametrize("personality", ["rabbitmq-4.2", "spec"])
@pytest.mark.parametrize("by_request", [True, False])
def test_publisher_is_not_read_from_during_an_alarm(personality: str, by_request: bool) -> None:
    server = FaultServer(personality, tickets=personality == "spec")
    requester = server.requester()
    client = requester.client
    alarm = server.faults.memory_alarm()
    if personality == "spec":
        assert client.expect(m.ChannelFlow).active is False
    for body in (b"one", b"two"):
        if by_request:
            requester.ask(m.MessageTransfer(routing_key="q", body=Body(body)))
        else:
            client.publish(body, routing_key="q")
    # Who has sent the header of a content waits with its body.
    assert server.bodies() == ([b"one"] if by_request else [])
    client.take_bytes()
    alarm.remove()
    assert server.bodies() == [b"one", b"two"]
    assert not client.closed
    flows = [frame.method for frame in client.inbox if isinstance(frame.method, shared.ChannelFlow)]
    assert flows == ([shared.ChannelFlow(active=True)] if personality == "spec" else [])
