"""Chaos for clients of 0-9: what happens to them, and what does not."""

from __future__ import annotations

import pytest

from compat_tests.unit.faults.amqp_0_9.server import FaultServer
from fakeamqp.dialects import protocol_names
from fakeamqp.faults.chaos import FAULTS
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared

OF_THE_NETWORK = {"slices", "slow", "stall"}
"""These need transports, and know no protocol."""


def test_chaos_rejects_a_transfer(server: FaultServer) -> None:
    requester = server.requester()
    chaos = server.faults.chaos(1, {"rejected-transfer": 1.0})
    requester.call(m.MessageTransfer(routing_key="q", body=Body(b"no")), m.MessageReject)
    assert "received message.transfer number 1 on channel 1: rejected-transfer" in chaos.plan
    assert server.bodies() == []


def test_chaos_nacks_a_publish_on_a_confirm_channel(server: FaultServer) -> None:
    client = server.client()
    client.declare("q")
    client.call(shared.ConfirmSelect(), shared.ConfirmSelectOk)
    server.faults.chaos(1, {"nack": 1.0})
    client.publish(b"x", routing_key="q")
    assert client.expect(shared.BasicNack).delivery_tag == 1
    assert server.bodies() == []


@pytest.mark.parametrize("fault", sorted(FAULTS.keys() - OF_THE_NETWORK))
def test_plan_of_chaos_gives_the_same_bytes_when_played_again(fault: str) -> None:
    def talk(server: FaultServer) -> bytes:
        requester = server.requester()
        client = requester.client
        client.consume("q", "t")
        heard = b""
        for number in range(6):
            if client.closed:
                break
            octets = requester.request_bytes(m.MessageTransfer(routing_key="q", body=Body(b"x")))
            client.send_bytes(octets)
            if not client.closed:
                client.publish(b"%d" % number, routing_key="q")
            server.advance(0.1)
            heard += client.take_bytes()
        server.advance(5)
        return heard + client.take_bytes()

    first, again = FaultServer(), FaultServer()
    chaos = first.faults.chaos(3, {fault: 0.5}).optional()
    heard = talk(first)
    for rule in first.faults.rules:
        assert getattr(rule, "error", None) is None
    again.faults.chaos(plan=chaos.plan).optional()
    if chaos.plan.count("\n"):
        assert talk(again) == heard


def test_chaos_refuses_publishes_only_in_protocols_that_can_answer_so() -> None:
    assert [name for name in protocol_names() if FAULTS["nack"].happens_in(name)] == ["0-9-1", "1-0", "0-9"]
    assert [name for name in protocol_names() if FAULTS["rejected-transfer"].happens_in(name)] == ["0-9"]
