"""Priorities of consumers, queues with x-max-priority, single active consumers (RabbitMQ: documented)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.fixture
def connect(rabbitmq: Server) -> Callable[[], Client]:
    return rabbitmq.client


@pytest.fixture
def client(rabbitmq: Server) -> Client:
    return rabbitmq.client()


def takers(client: Client) -> list[str]:
    """Whose the deliveries are that have come."""
    tags = []
    while client.inbox:
        tags.append(client.delivery().method.consumer_tag)
    return tags


def consume(client: Client, tag: str, priority: int | None = None, **arguments: bool) -> Client:
    table = {} if priority is None else {"x-priority": priority}
    return client.consume("q", tag, arguments=table, **arguments)


# --- consumers ---------------------------------------------------------------------------------------
def test_consumer_of_highest_priority_gets_all_messages_without_prefetch_limit(client: Client) -> None:
    client.declare("q")
    consume(client, "low")
    consume(client, "high", 5)
    consume(client, "mid", 1).fill("q", *[b"m"] * 3)
    assert takers(client) == ["high", "high", "high"]


def test_messages_go_to_consumers_of_lower_priority_when_prefetch_is_exhausted(client: Client) -> None:
    client.declare("q").qos(1)
    for tag, priority in (("none", None), ("high", 5), ("low", -5)):
        consume(client, tag, priority)
    client.fill("q", *[b"m"] * 4)
    assert takers(client) == ["high", "none", "low"]
    client.ack(1)
    assert takers(client) == ["high"]


def test_consumers_of_equal_priority_take_turns(client: Client) -> None:
    client.declare("q")
    for tag in ("a", "b"):
        consume(client, tag, 3)
    consume(client, "idle", 2).fill("q", *[b"m"] * 4)
    assert takers(client) == ["a", "b", "a", "b"]


def test_consumer_priorities_are_compared_across_connections(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    one.declare("q")
    consume(one, "low", 1)
    consume(other, "high", 2)
    one.fill("q", b"m")
    assert takers(one) == []
    assert takers(other) == ["high"]


# --- single active consumer --------------------------------------------------------------------------
def declare_single(client: Client) -> Client:
    return client.declare("q", arguments={"x-single-active-consumer": True})


def test_next_consumer_becomes_active_when_active_one_is_cancelled(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    declare_single(one)
    consume(one, "1", no_ack=True)
    consume(other, "2", no_ack=True)
    one.fill("q", b"a", b"b")
    assert takers(one) == ["1", "1"]
    one.perform(m.BasicCancel(consumer_tag="1")).fill("q", b"c")
    assert takers(other) == ["2"]


def test_next_single_active_consumer_gets_ready_and_requeued_messages(connect: Callable[[], Client]) -> None:
    one, other = connect(), connect()
    declare_single(one).qos(1)
    consume(one, "1")
    consume(other, "2").fill("q", b"a", b"b")
    assert takers(one) == ["1"]
    other.expect_nothing()
    one.drop()
    assert sorted(other.bodies()) == [b"a", b"b"]


def test_single_active_consumer_with_exhausted_prefetch_stays_active(client: Client) -> None:
    declare_single(client).qos(1)
    consume(client, "1")
    consume(client, "2").fill("q", b"a", b"b")
    assert takers(client) == ["1"]
    client.ack(1)
    assert takers(client) == ["1"]


def test_consumer_of_highest_priority_is_the_next_single_active_consumer(client: Client) -> None:
    declare_single(client)
    consume(client, "1")
    consume(client, "2")
    consume(client, "3", 5).fill("q", b"a")
    assert takers(client) == ["1"]
    client.perform(m.BasicCancel(consumer_tag="1")).fill("q", b"b")
    assert takers(client) == ["3"]


def test_exclusive_consumer_on_single_active_consumer_queue_is_refused(client: Client) -> None:
    declare_single(client)
    client.fails(
        m.BasicConsume(queue="q", exclusive=True),
        403,
        text="ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use",
    )


# --- messages ----------------------------------------------------------------------------------------
def test_queue_with_x_max_priority_delivers_highest_priority_first(client: Client) -> None:
    client.declare("q", arguments={"x-max-priority": 5})
    for priority in (0, 3, 9, 5, 1):
        client.publish(b"%d" % priority, routing_key="q", priority=priority)
    client.publish(b"none", routing_key="q")
    # 9 counts as 5 and was there before it.
    assert client.empty("q") == [b"9", b"5", b"3", b"1", b"0", b"none"]


def test_message_priorities_have_no_effect_without_x_max_priority(client: Client) -> None:
    client.declare("q")
    for priority in (0, 9, 5):
        client.publish(b"%d" % priority, routing_key="q", priority=priority)
    assert client.empty("q") == [b"0", b"9", b"5"]


def test_consumer_gets_the_ready_message_of_highest_priority(client: Client) -> None:
    client.declare("q", arguments={"x-max-priority": 9}).qos(1).consume("q")
    for priority in (1, 2, 9):
        client.publish(b"%d" % priority, routing_key="q", priority=priority)
    assert client.bodies() == [b"1"]
    assert client.ack(1).bodies() == [b"9"]
    assert client.ack(2).bodies() == [b"2"]


def test_messages_rejected_together_are_dead_lettered_in_order_of_their_priorities(client: Client) -> None:
    client.declare("dead")
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("q", arguments={"x-max-priority": 5, **to_dead}).consume("q")
    for body in (b"a1", b"b3", b"c1", b"d5", b"e9"):
        client.publish(body, routing_key="q", priority=int(body[1:]))
    client.bodies()
    assert client.nack(0, multiple=True, requeue=False).empty("dead") == [b"d5", b"e9", b"b3", b"a1", b"c1"]


@pytest.mark.needs("virtual time")
def test_message_of_lower_priority_expires_only_at_the_head(client: Client) -> None:
    client.declare("q", arguments={"x-max-priority": 9})
    client.publish(b"lesser", routing_key="q", priority=1, expiration="1000")
    assert client.publish(b"urgent", routing_key="q", priority=9).after(5).count("q") == 2
    assert client.empty("q") == [b"urgent"]
