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
def test_message_expires_after_x_message_ttl(rabbitmq: Server, client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 1000})
    client.fill("q", b"1")
    rabbitmq.advance(0.5)
    client.fill("q", b"2")
    rabbitmq.advance(0.499)
    assert client.count("q") == 2
    rabbitmq.advance(0.001)
    assert client.count("q") == 1
    rabbitmq.advance(0.5)
    assert client.count("q") == 0


@pytest.mark.needs("virtual time")
def test_expired_message_is_not_delivered_to_consumer(rabbitmq: Server, client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 1000})
    client.qos(1)
    client.consume("q")
    client.fill("q", b"1", b"2")
    assert client.bodies() == [b"1"]
    rabbitmq.advance(10)
    client.ack(1)  # A delivered message expires no more; the one behind it did.
    client.expect_nothing()
    assert client.count("q") == 0


def test_message_ttl_of_zero_expires_at_once_without_ready_consumer(client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 0})
    client.fill("q", b"nobody")
    assert client.count("q") == 0
    client.consume("q")
    client.fill("q", b"somebody")
    assert client.bodies() == [b"somebody"]


@pytest.mark.needs("virtual time")
def test_requeued_message_keeps_its_expiry_time(rabbitmq: Server, client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 1000})
    client.fill("q", b"m")
    client.get("q")
    rabbitmq.advance(0.6)
    client.nack(1)
    assert client.count("q") == 1
    rabbitmq.advance(0.4)
    assert client.count("q") == 0


@pytest.mark.needs("virtual time")
def test_message_requeued_after_its_expiry_is_dead_lettered_at_once(rabbitmq: Server, client: Client) -> None:
    client.declare("dead")
    arguments = {"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("q", arguments=arguments)
    client.fill("q", b"m")
    client.get("q")
    rabbitmq.advance(10)
    assert client.count("dead") == 0
    client.nack(1)
    assert (client.count("q"), client.count("dead")) == (0, 1)


def test_x_message_ttl_does_not_change_expiration_property(client: Client) -> None:
    client.declare("q", arguments={"x-message-ttl": 60_000})
    client.publish(routing_key="q", expiration="50000")
    got = client.get("q")
    assert got is not None
    assert got.properties.expiration == "50000"


# --- messages with an expiration ---------------------------------------------------------------------


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(("ttl", "expiration", "life"), [(1000, "5000", 1), (5000, "1000", 1)])
def test_shorter_of_x_message_ttl_and_expiration_applies(
    rabbitmq: Server, client: Client, ttl: int, expiration: str, life: float
) -> None:
    client.declare("q", arguments={"x-message-ttl": ttl})
    client.publish(routing_key="q", expiration=expiration)
    rabbitmq.advance(life - 0.001)
    assert client.count("q") == 1
    rabbitmq.advance(0.001)
    assert client.count("q") == 0


@pytest.mark.needs("virtual time")
def test_expired_message_stays_behind_unexpired_head(rabbitmq: Server, client: Client) -> None:
    client.declare("q")
    client.publish(b"lasting", routing_key="q")
    client.publish(b"short-lived", routing_key="q", expiration="1000")
    rabbitmq.advance(5)
    assert client.count("q") == 2
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
    rabbitmq.advance(1)
    assert client.count("slow") == 0


@pytest.mark.needs("virtual time")
def test_message_expires_after_x_max_length_dropped_the_head_before_it(
    rabbitmq: Server, client: Client
) -> None:
    client.declare("dead")
    arguments = {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("q", arguments=arguments)
    client.publish(b"long", routing_key="q", expiration="60000")
    client.publish(b"short", routing_key="q", expiration="1000")
    assert client.empty("dead") == [b"long"]
    rabbitmq.advance(1)
    assert client.empty("dead") == [b"short"]


# --- queues with x-expires ---------------------------------------------------------------------------


@pytest.mark.needs("virtual time")
def test_unused_queue_is_deleted_when_x_expires_has_passed(rabbitmq: Server, client: Client) -> None:
    client.declare("q", arguments={"x-expires": 1000})
    client.fill("q", b"m")
    rabbitmq.advance(0.999)
    client.fill("q", b"a publish is no use")
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
    client.declare("q", arguments={"x-expires": 1000})
    client.consume("q", "t")
    rabbitmq.advance(100)
    client.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk)
    rabbitmq.advance(0.9)
    assert "q" in rabbitmq.vhost.queues
    rabbitmq.advance(0.1)
    assert "q" not in rabbitmq.vhost.queues


@pytest.mark.needs("virtual time")
def test_messages_of_an_expired_queue_are_not_dead_lettered(rabbitmq: Server, client: Client) -> None:
    client.declare("dead")
    arguments = {"x-expires": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("q", arguments=arguments)
    client.fill("q", b"m")
    rabbitmq.advance(1)
    assert client.count("dead") == 0
    assert not exists(client, "q")


@pytest.mark.needs("virtual time")
def test_delivery_of_expired_queue_can_be_acknowledged(rabbitmq: Server, client: Client) -> None:
    client.declare("q", arguments={"x-expires": 1000})
    client.fill("q", b"m")
    client.get("q")
    rabbitmq.advance(1)
    client.ack(1)
    client.expect_nothing()
    assert not exists(client, "q")
