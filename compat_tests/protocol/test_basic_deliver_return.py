"""basic.deliver and basic.return."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.protocol.driver import Client, Server
from fakeamqp.model.queues import QueueDeclaration
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

# --- deliver -----------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1/basic.deliver/01")
def test_a_message_nobody_can_process_is_dead_lettered_by_the_letter(spec: Server) -> None:
    client = spec.client()
    client.declare("dead")
    spec.vhost.queues.declare(
        "q", QueueDeclaration(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    )
    client.fill("q", b"poison", b"good")
    for delivery in range(5):
        got = client.get("q")
        assert got is not None
        assert (got.body, got.method.redelivered) == (b"poison", delivery > 0)
        assert client.count("dead") == 0
        client.send(m.BasicRecoverAsync(requeue=True))
    assert client.empty("q") == [b"good"]
    dead = client.get("dead")
    assert dead is not None
    assert dead.body == b"poison"
    assert dead.properties.headers is not None
    assert dead.properties.headers["x-first-death-reason"] == "delivery_limit"


@pytest.mark.rule("0-9-1/basic.deliver/01")
def test_a_message_may_come_back_to_its_consumer_so_often_only_by_the_letter(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    client.qos(1)
    client.consume("q")
    client.fill("q", b"poison", b"good")
    for _ in range(5):
        assert client.bodies() == [b"poison"]
        client.send(m.BasicRecoverAsync(requeue=False))
    assert client.bodies() == [b"good"]


@pytest.mark.deviates("0-9-1/basic.deliver/01")
def test_a_classic_queue_of_rabbitmq_delivers_without_end(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.declare("q")
    client.fill("q", b"poison")
    for tag in range(1, 101):
        got = client.get("q")
        assert got is not None
        client.nack(tag)
    assert client.empty("q") == [b"poison"]


@pytest.mark.rule("0-9-1/basic.deliver/fields#tags", "0-9-1/basic.deliver/fields#source")
def test_deliver_tells_all_about_the_message(client: Client) -> None:
    client.declare("q")
    client.bind("q", "amq.topic", "a.*")
    client.consume("q", "tag")
    client.publish(b"body", exchange="amq.topic", routing_key="a.b")
    assert client.take_frame().payload == (
        b"\x00\x3c\x00\x3c" + b"\x03tag" + b"\0\0\0\0\0\0\0\x01" + b"\0" + b"\x09amq.topic" + b"\x03a.b"
    )
    assert client.take_frame().payload == b"\x00\x3c\x00\x00" + b"\0\0\0\0\0\0\0\x04" + b"\0\0"
    assert client.take_frame().payload == b"body"
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.deliver/fields#redelivered")
def test_deliver_marks_what_was_delivered_before(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q")
    one.fill("q", b"1", b"2")
    one.get("q")
    one.drop()
    other.consume("q")
    deliveries = [other.delivery(), other.delivery()]
    assert [(each.body, each.method.redelivered) for each in deliveries] == [(b"1", True), (b"2", False)]


@pytest.mark.rule("0-9-1/basic.deliver/default-exchange-name")
def test_the_default_exchange_has_no_name_in_deliver(client: Client) -> None:
    client.declare("q")
    client.consume("q")
    client.publish(exchange="", routing_key="q")
    delivery = client.delivery()
    assert (delivery.method.exchange, delivery.method.routing_key) == ("", "q")


@pytest.mark.rule(
    "0-9-1/basic.deliver/tags-ascending#all-kinds", "0-9-1/basic.deliver/tags-ascending#channel"
)
def test_tags_count_up_over_all_consumers_and_gets_of_a_channel(client: Client) -> None:
    client.open_channel(2)
    for queue in ("a", "b", "c"):
        client.declare(queue)
    client.consume("a")
    client.consume("b", no_ack=True)
    tags = []
    for queue in ("a", "b", "c", "a"):
        client.fill(queue, b"m")
        content = client.get("c") if queue == "c" else client.delivery()
        assert content is not None
        tags.append(content.method.delivery_tag)
    assert tags == [1, 2, 3, 4]
    client.fill("c", b"m")
    got = client.get("c", channel=2)
    assert got is not None
    assert got.method.delivery_tag == 1


@pytest.mark.rule("0-9-1/basic.deliver/only-after-consume")
def test_nobody_gets_what_they_did_not_ask_for(client: Client) -> None:
    client.open_channel(2)
    for queue in ("q", "other"):
        client.declare(queue)
    client.consume("other", channel=2)
    client.fill("q", b"m")
    client.expect_nothing()
    assert client.count("q") == 1
    client.fill("other", b"asked for")
    assert client.delivery(2).body == b"asked for"
    client.expect_nothing()


# --- return ------------------------------------------------------------------------------------------


@pytest.mark.rule(
    "0-9-1/basic.return/content#code",
    "0-9-1/basic.return/content#source",
    "0-9-1/basic.return/content#content",
)
def test_a_message_is_returned_as_it_came(client: Client) -> None:
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


@pytest.mark.rule(
    "0-9-1/basic.return/content#code",
    "0-9-1/basic.return/content#source",
    "0-9-1/basic.return/content#content",
)
def test_what_no_consumer_was_ready_for_is_returned_as_it_came(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    client.bind("q", "amq.direct", "k")
    client.publish(b"body", exchange="amq.direct", routing_key="k", immediate=True, message_id="id")
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.method.reply_text) == (313, "NO_CONSUMERS")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", "k")
    assert (returned.properties.message_id, returned.body) == ("id", b"body")


@pytest.mark.rule("0-9-1/basic.return/to-publisher")
def test_a_message_returns_to_the_channel_it_came_by(server: Server) -> None:
    bystander = server.client()
    client = server.client(channels=3)
    client.publish(routing_key="nowhere", mandatory=True, channel=3)
    client.expect_content(m.BasicReturn, channel=3)
    client.expect_nothing()
    bystander.expect_nothing()


@pytest.mark.rule("0-9-1/basic.return/default-exchange-name")
def test_the_default_exchange_has_no_name_in_return(client: Client) -> None:
    client.publish(exchange="", routing_key="nowhere", mandatory=True)
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.exchange, returned.method.routing_key) == ("", "nowhere")
