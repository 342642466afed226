"""Methods that are to be sent, also in requests and responses."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Client
from compat_tests.scripted.requesting import Requester
from compat_tests.unit.faults.amqp_0_9.server import FaultServer
from fakeamqp.dialects import dialect_named
from fakeamqp.faults import FaultError, Faults
from fakeamqp.protocols.amqp_0_9.codec import BasicProperties, StreamProperties, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared


@pytest.mark.parametrize(
    "wanted",
    [
        {"queue": "q"},
        {"destination": "d"},
        {"exchange": ""},
        {"routing_key": "q"},
        {"body": b"two apples"},
        {"headers": {"shop": "north"}},
        {"priority": 4},
        {"redelivered": False},
    ],
    ids=str,
)
def test_rule_fires_on_a_delivery_that_meets_its_condition(
    requester: Requester, faults: Faults, wanted: dict[str, Any]
) -> None:
    rule = faults.on("message.transfer", direction="sent", **wanted)
    requester.publish("q", b"two apples", priority=4, application_headers={"shop": "north"})
    requester.consume("q")
    requester.transfer()
    assert rule.hits == 1


def test_dropped_delivery_is_requeued_when_its_connection_is_lost(
    server: FaultServer, requester: Requester
) -> None:
    server.faults.on("message.transfer", direction="sent", body=b"one").drop().once()
    requester.publish("q", b"one", b"two")
    requester.consume("q")
    assert requester.bodies() == [b"two"]
    requester.client.drop()
    assert server.bodies() == [b"one", b"two"]


def test_duplicated_transfer_has_a_request_number_of_its_own(requester: Requester, faults: Faults) -> None:
    faults.on("message.transfer", direction="sent").duplicate()
    requester.publish("q", b"x")
    requester.consume("q")
    one, other = requester.transfer(), requester.transfer()
    assert one.number != other.number
    assert one.method == other.method
    requester.answer(other.number)
    requester.answer(one.number)
    requester.client.declare("other")
    requester.publish("other", b"y")  # Both answers are fine: the connection is still there.


def test_client_receives_the_replaced_values_of_a_delivery(requester: Requester, faults: Faults) -> None:
    faults.on("message.transfer", direction="sent").replace(
        body="changed", redelivered=True, content_type="x/y", headers={"a": 1}
    )
    requester.publish("q", b"x", app_id="a", application_headers={"b": 2})
    requester.consume("q")
    method = requester.transfer().method
    assert (method.body, method.redelivered, method.content_type) == (Body(b"changed"), True, "x/y")
    assert (method.app_id, method.application_headers) == ("a", {"a": 1})


def test_held_response_is_sent_when_released(server: FaultServer, requester: Requester) -> None:
    rule = server.faults.on("message.ok", direction="sent").hold()
    requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"x")))
    assert not requester.client.inbox
    assert server.bodies() == [b"x"]
    rule.release()
    assert requester.response(m.MessageOk).first == 1


def test_stream_delivery_has_the_replaced_body(client: Client, faults: Faults) -> None:
    rule = faults.on("stream.deliver", queue="q", content_type="a/b").replace(body=b"changed")
    client.call(m.StreamConsume(queue="q", consumer_tag="t"), m.StreamConsumeOk)
    client.send_content(m.StreamPublish(routing_key="q"), StreamProperties(content_type="a/b"), b"x")
    assert client.expect_content(m.StreamDeliver).body == b"changed"
    assert rule.hits == 1


@pytest.mark.parametrize("how", sorted(dialect_named("0-9").malformations))
@pytest.mark.parametrize("what", ["basic.deliver", "message.transfer", "message.ok"])
def test_malform_changes_the_bytes_of_deliveries_and_responses(
    server: FaultServer, how: str, what: str
) -> None:
    way = dialect_named("0-9").malformations[how]
    if what == "message.ok" and how == "cut-arguments":
        return  # It has none.
    if way.content_only and what == "message.ok":
        with pytest.raises(FaultError, match="is for methods with a content"):
            server.faults.on(what, direction="sent", protocol="0-9").malform(how)
        return
    well = _delivered(FaultServer())
    rule = server.faults.on(what, direction="sent", protocol="0-9").malform(how)
    broken = _delivered(server)
    assert rule.hits >= 1
    assert broken != well
    assert len(dialect_named("0-9").cut(broken)) >= 1


def _delivered(server: FaultServer) -> bytes:
    """What goes to a client that has a message delivered by class message and one by class basic."""
    requester = server.requester()
    client = requester.client
    client.publish(b"two apples", routing_key="q")
    requester.ask(m.MessageConsume(queue="q", destination="d"))
    client.send(m.QueueDeclare(queue="r", no_wait=True))
    client.send(m.BasicConsume(queue="r", consumer_tag="t", no_wait=True))
    client.publish(b"three", routing_key="r")
    return client.take_bytes()


def test_methods_sent_by_the_test_reach_the_client(requester: Requester, faults: Faults) -> None:
    requester.publish("q", b"x")  # By that the broker knows in which form the client writes requests.
    sent = m.MessageTransfer(destination="d", routing_key="k")
    assert faults.send(sent, channel=1, body=b"hello", priority=3) == 1
    asked = requester.transfer()
    assert asked.number == 1
    assert (asked.method.body, asked.method.priority, asked.method.routing_key) == (Body(b"hello"), 3, "k")
    requester.answer(asked.number)
    faults.send(m.ChannelPing(), channel=1)
    assert requester.request(m.ChannelPing).number == 2
    faults.send(m.BasicDeliver(consumer_tag="t"), channel=1, body=b"x", content_type="a/b")
    got = requester.client.expect_content(m.BasicDeliver)
    assert (got.body, got.properties) == (b"x", BasicProperties(content_type="a/b"))
    faults.send(m.StreamDeliver(consumer_tag="t"), channel=1, body=b"x", content_type="a/b")
    assert requester.client.expect_content(m.StreamDeliver).properties == StreamProperties(content_type="a/b")
    faults.send(m.ConnectionRedirect(host="h"))
    assert requester.client.expect(m.ConnectionRedirect, 0).host == "h"


def test_only_methods_of_0_9_are_sent_to_its_clients(client: Client, faults: Faults) -> None:
    with pytest.raises(FaultError, match=r"bytes or a method of AMQP 0-9, not BasicAck"):
        faults.send(shared.BasicAck())


def test_nack_of_rabbitmq_can_be_sent_to_a_0_9_client(client: Client, faults: Faults) -> None:
    faults.send(shared.BasicNack(delivery_tag=7), channel=1)
    assert client.expect(shared.BasicNack).delivery_tag == 7
