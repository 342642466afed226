"""Times to live of messages and queues (RabbitMQ: documented extensions; measured)."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.fixture
def client(rabbitmq: Server) -> Client:
    return rabbitmq.client()


def exists(client: Client, queue: str) -> bool:
    client.send(m.QueueDeclare(queue=queue, passive=True))
    if isinstance(client.inbox[0].method, m.QueueDeclareOk):
        client.take_frame()
        return True
    client.expect_channel_close(404)
    client.open_channel()
    return False


# --- messages of a queue with x-message-ttl ----------------------------------------------------------
@pytest.mark.needs("virtual time")
def test_message_expires_after_x_message_ttl(client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 1000})
    client.fill("q", b"1").after(0.5).fill("q", b"2")
    assert client.after(0.499).count("q") == 2
    assert client.after(0.001).count("q") == 1
    assert client.after(0.5).count("q") == 0


@pytest.mark.needs("virtual time")
def test_expired_message_is_not_delivered_to_consumer(client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 1000}).qos(1)
    assert client.consume("q").fill("q", b"1", b"2").bodies() == [b"1"]
    client.after(10).ack(1)  # A delivered message expires no more; the one behind it did.
    client.expect_nothing()
    assert client.count("q") == 0


def test_message_ttl_of_zero_expires_at_once_without_ready_consumer(client: Client) -> None:
    assert client.declare("q", arguments={"x-message-ttl": 0}).fill("q", b"nobody").count("q") == 0
    assert client.consume("q").fill("q", b"somebody").bodies() == [b"somebody"]


@pytest.mark.needs("virtual time")
def test_requeued_message_keeps_its_expiry_time(client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 1000}).fill("q", b"m").get("q")
    assert client.after(0.6).nack(1).count("q") == 1
    assert client.after(0.4).count("q") == 0


@pytest.mark.needs("virtual time")
def test_message_requeued_after_its_expiry_is_dead_lettered_at_once(client: Client) -> None:
    client.declare("dead")
    arguments = {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("q", arguments=arguments).fill("q", b"m").get("q")
    assert client.after(10).count("dead") == 0
    client.nack(1)
    assert (client.count("q"), client.count("dead")) == (0, 1)


def test_x_message_ttl_does_not_change_expiration_property(client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 60_000})
    assert client.publish(routing_key="q", expiration="50000").fetch("q").properties.expiration == "50000"


# --- messages with an expiration ---------------------------------------------------------------------
@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(("ttl", "expiration", "life"), [(1000, "5000", 1), (5000, "1000", 1)])
def test_shorter_of_both_ttls_applies(client: Client, ttl: int, expiration: str, life: float) -> None:
    client.declare("q", arguments={"x-message-ttl": ttl})
    assert client.publish(routing_key="q", expiration=expiration).after(life - 0.001).count("q") == 1
    assert client.after(0.001).count("q") == 0


@pytest.mark.needs("virtual time")
def test_expired_message_stays_behind_unexpired_head(client: Client) -> None:
    client.declare("q").publish(b"lasting", routing_key="q")
    assert client.publish(b"short-lived", routing_key="q", expiration="1000").after(5).count("q") == 2
    assert client.empty("q") == [b"lasting"]


@pytest.mark.needs("virtual time")
def test_message_expires_in_each_queue_by_its_own_ttl(rabbitmq: Server, client: Client) -> None:
    client.declare("fast", arguments={"x-message-ttl": 1000})
    client.declare("slow", arguments={"x-message-ttl": 3000})
    for queue in ("fast", "slow"):
        client.bind(queue, "amq.fanout")
    client.publish(exchange="amq.fanout", expiration="2000")
    rabbitmq.advance(1)
    assert (client.count("fast"), client.count("slow")) == (0, 1)
    assert client.after(1).count("slow") == 0


@pytest.mark.needs("virtual time")
def test_message_expires_after_x_max_length_dropped_the_head_before_it(client: Client) -> None:
    client.declare("dead")
    arguments = {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("q", arguments=arguments).publish(b"long", routing_key="q", expiration="60000")
    assert client.publish(b"short", routing_key="q", expiration="1000").empty("dead") == [b"long"]
    assert client.after(1).empty("dead") == [b"short"]


# --- queues with x-expires ---------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
def test_unused_queue_is_deleted_when_x_expires_has_passed(rabbitmq: Server, client: Client) -> None:
    client.declare("q", arguments={"x-expires": 1000}).fill("q", b"m")
    client.after(0.999).fill("q", b"a publish is no use")
    rabbitmq.advance(0.001)
    assert not exists(client, "q")


@pytest.mark.needs("virtual time", "inspection")
@pytest.mark.parametrize("use", ["declare", "passive declare", "get"])
def test_declare_and_get_restart_x_expires(rabbitmq: Server, client: Client, use: str) -> None:
    client.declare("q", arguments={"x-expires": 1000})
    rabbitmq.advance(0.9)
    if use == "declare":
        client.declare("q", arguments={"x-expires": 1000})
    elif use == "passive declare":
        client.declare("q", passive=True)
    else:
        client.get("q")
    rabbitmq.advance(0.9)
    assert "q" in rabbitmq.vhost.queues
    rabbitmq.advance(0.1)
    assert "q" not in rabbitmq.vhost.queues


@pytest.mark.needs("virtual time", "inspection")
def test_a_queue_with_a_consumer_does_not_expire(rabbitmq: Server, client: Client) -> None:
    client.declare("q", arguments={"x-expires": 1000}).consume("q", "t")
    client.after(100).perform(m.BasicCancel(consumer_tag="t"))
    rabbitmq.advance(0.9)
    assert "q" in rabbitmq.vhost.queues
    rabbitmq.advance(0.1)
    assert "q" not in rabbitmq.vhost.queues


@pytest.mark.needs("virtual time")
def test_messages_of_an_expired_queue_are_not_dead_lettered(client: Client) -> None:
    client.declare("dead")
    arguments = {"x-expires": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    assert client.declare("q", arguments=arguments).fill("q", b"m").after(1).count("dead") == 0
    assert not exists(client, "q")


@pytest.mark.needs("virtual time")
def test_delivery_of_expired_queue_can_be_acknowledged(client: Client) -> None:
    client.declare("q", arguments={"x-expires": 1000}).fill("q", b"m").get("q")
    client.after(1).ack(1).expect_nothing()
    assert not exists(client, "q")
