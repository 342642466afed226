"""basic.deliver and basic.return."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


# --- deliver -----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic.deliver/01")
def test_spec_personality_dead_letters_message_after_five_requeued_deliveries(spec: Server) -> None:
    client = spec.client().declare("dead")
    spec.vhost.queues.declare(
        "q", QueueDeclaration(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    )
    client.fill("q", b"poison", b"good")
    for delivery in range(5):
        got = client.fetch("q")
        assert (got.body, got.method.redelivered) == (b"poison", delivery > 0)
        assert client.count("dead") == 0
        client.send(m.BasicRecoverAsync(requeue=True))
    assert client.empty("q") == [b"good"]
    dead = client.fetch("dead")
    assert dead.body == b"poison"
    assert dead.properties.headers is not None
    assert dead.properties.headers["x-first-death-reason"] == "delivery_limit"


@pytest.mark.rule("0-9-1/basic.deliver/01")
def test_spec_personality_drops_message_after_five_deliveries_to_its_consumer(spec: Server) -> None:
    client = spec.client().declare("q").qos(1)
    client.consume("q").fill("q", b"poison", b"good")
    for _ in range(5):
        assert client.bodies() == [b"poison"]
        client.send(m.BasicRecoverAsync(requeue=False))
    assert client.bodies() == [b"good"]


@pytest.mark.deviates("0-9-1/basic.deliver/01")
def test_rabbitmq_classic_queue_has_no_delivery_limit(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").fill("q", b"poison")
    for tag in range(1, 101):
        client.fetch("q")
        client.nack(tag)
    assert client.empty("q") == [b"poison"]


@pytest.mark.rule("0-9-1/basic.deliver/fields#tags", "0-9-1/basic.deliver/fields#source")
def test_deliver_carries_consumer_tag_delivery_tag_exchange_and_routing_key(client: Client) -> None:
    client.declare("q").bind("q", "amq.topic", "a.*").consume("q", "tag")
    client.publish(b"body", exchange="amq.topic", routing_key="a.b")
    assert client.take_frame().payload == (
        b"\x00\x3c\x00\x3c" + b"\x03tag" + b"\0\0\0\0\0\0\0\x01" + b"\0" + b"\x09amq.topic" + b"\x03a.b"
    )
    assert client.take_frame().payload == b"\x00\x3c\x00\x00" + b"\0\0\0\0\0\0\0\x04" + b"\0\0"
    assert client.take_frame().payload == b"body"
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.deliver/fields#redelivered")
def test_deliver_sets_redelivered_for_message_of_an_earlier_basic_get(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q").fill("q", b"1", b"2").get("q")
    one.drop()
    other.consume("q")
    deliveries = [other.delivery(), other.delivery()]
    assert [(each.body, each.method.redelivered) for each in deliveries] == [(b"1", True), (b"2", False)]


@pytest.mark.rule("0-9-1/basic.deliver/default-exchange-name")
def test_deliver_names_the_default_exchange_with_an_empty_string(client: Client) -> None:
    delivery = client.declare("q").consume("q").publish(exchange="", routing_key="q").delivery()
    assert (delivery.method.exchange, delivery.method.routing_key) == ("", "q")


@pytest.mark.rule("0-9-1/basic.deliver/tags-ascending#all-kinds")
@pytest.mark.rule("0-9-1/basic.deliver/tags-ascending#channel")
def test_delivery_tags_of_consumers_and_gets_count_up_per_channel(client: Client) -> None:
    client.open_channel(2)
    for queue in ("a", "b", "c"):
        client.declare(queue)
    client.consume("a").consume("b", no_ack=True)
    tags = []
    for queue in ("a", "b", "c", "a"):
        client.fill(queue, b"m")
        content = client.get("c") if queue == "c" else client.delivery()
        assert content is not None
        tags.append(content.method.delivery_tag)
    assert tags == [1, 2, 3, 4]
    assert client.fill("c", b"m").fetch("c", channel=2).method.delivery_tag == 1


@pytest.mark.rule("0-9-1/basic.deliver/only-after-consume")
def test_channel_without_consumer_on_queue_receives_no_deliveries(client: Client) -> None:
    client.open_channel(2)
    for queue in ("q", "other"):
        client.declare(queue)
    client.consume("other", channel=2).fill("q", b"m").expect_nothing()
    assert client.count("q") == 1
    assert client.fill("other", b"asked for").delivery(2).body == b"asked for"
    client.expect_nothing()


# --- return ------------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic.return/content#code", "0-9-1/basic.return/content#source")
@pytest.mark.rule("0-9-1/basic.return/content#content")
def test_unroutable_mandatory_message_is_returned_with_its_properties_and_body(client: Client) -> None:
    properties = {
        "content_type": "text/plain",
        "headers": {"h": 1, "s": "text"},
        "delivery_mode": 2,
        "priority": 3,
        "correlation_id": "c",
        "message_id": "id",
    }
    body = b"y" * 300_000
    client.publish(body, exchange="amq.direct", routing_key="nowhere", mandatory=True, **properties)
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", "nowhere")
    assert {name: getattr(returned.properties, name) for name in properties} == properties
    assert returned.body == body
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.return/content#code", "0-9-1/basic.return/content#source")
@pytest.mark.rule("0-9-1/basic.return/content#content")
def test_spec_personality_returns_immediate_message_unchanged_with_code_313(spec: Server) -> None:
    client = spec.client().declare("q").bind("q", "amq.direct", "k")
    client.publish(b"body", exchange="amq.direct", routing_key="k", immediate=True, message_id="id")
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.method.reply_text) == (313, "NO_CONSUMERS")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", "k")
    assert (returned.properties.message_id, returned.body) == ("id", b"body")


@pytest.mark.rule("0-9-1/basic.return/to-publisher")
def test_mandatory_message_is_returned_on_the_channel_of_its_publish(server: Server) -> None:
    bystander = server.client()
    client = server.client(channels=3).publish(routing_key="nowhere", mandatory=True, channel=3)
    client.expect_content(m.BasicReturn, channel=3)
    client.expect_nothing()
    bystander.expect_nothing()


@pytest.mark.rule("0-9-1/basic.return/default-exchange-name")
def test_return_names_the_default_exchange_with_an_empty_string(client: Client) -> None:
    client.publish(exchange="", routing_key="nowhere", mandatory=True)
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.exchange, returned.method.routing_key) == ("", "nowhere")
