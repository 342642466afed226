"""Consumers that hold a message too long: the queue takes it back (RabbitMQ: documented, since 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.driver import Client, Server
from compat_tests.protocol.quorum import counts, declare
from fakeamqp.model.arguments.queue_arguments import QueueOptions
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

HALF_AN_HOUR = 1800
UNDERSTANDS = {"client_properties": {"capabilities": {"consumer_cancel_notify": True}}}
TEXT = (
    "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: -1 ms. "
    "This timeout value can be configured, see consumers doc guide to learn more"
)


@pytest.fixture
def server() -> Server:
    return Server("rabbitmq-4.3")


def consumer(
    server: Server, window: int = 5, *, arguments: dict[str, Any] | None = None, **queue: Any
) -> Client:
    """A client that understands basic.cancel, with the consumer c of queue q."""
    client = server.client(**UNDERSTANDS)
    declare(client, **queue)
    client.qos(window)
    client.consume("q", "c", arguments=arguments or {})
    return client


def hold(client: Client, *bodies: bytes) -> None:
    client.fill("q", *bodies)
    for body in bodies:
        assert client.delivery().body == body


def rests(client: Client) -> None:
    """The client is told that its consumer gets nothing more for now."""
    cancel = client.expect(m.BasicCancel)
    assert (cancel.consumer_tag, cancel.no_wait) == ("c", True)
    client.expect_nothing()


def test_what_was_held_for_half_an_hour_goes_back(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1")
    server.advance(HALF_AN_HOUR - 1)
    client.expect_nothing()
    server.advance(1)
    rests(client)
    got = server.client().get("q")
    assert got is not None
    assert (got.body, counts(got)) == (b"1", (True, None, 1))


def test_what_is_settled_in_time_stays_settled(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1", b"2")
    client.ack(1)
    client.nack(2, requeue=False)
    server.advance(2 * HALF_AN_HOUR)
    client.expect_nothing()


def test_only_what_is_due_goes_back(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1")
    server.advance(1000)
    hold(client, b"2")
    server.advance(800)
    rests(client)
    assert client.count("q") == 1
    client.ack(2)  # Still its own.
    server.advance(HALF_AN_HOUR)
    assert client.count("q") == 1


def test_the_others_are_due_later(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1")
    server.advance(1000)
    hold(client, b"2")
    server.advance(800)
    rests(client)
    server.advance(1000)
    rests(client)
    assert client.empty("q") == [b"1", b"2"]


def test_it_gets_nothing_until_all_is_settled(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1", b"2")
    server.advance(HALF_AN_HOUR)
    rests(client)
    client.fill("q", b"3")
    client.ack(1)
    client.expect_nothing()
    client.nack(2)
    assert client.bodies() == [b"1", b"2", b"3"]


def test_settling_late_has_no_other_effect(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1", b"2", b"3")
    server.advance(HALF_AN_HOUR)
    rests(client)
    client.ack(1)
    client.reject(2)
    client.nack(3)
    assert client.bodies() == [b"1", b"2", b"3"]


def test_another_consumer_takes_over(server: Server) -> None:
    client, other = consumer(server), server.client()
    hold(client, b"1")
    other.consume("q")
    server.advance(HALF_AN_HOUR)
    rests(client)
    assert counts(other.delivery()) == (True, None, 1)


def test_a_client_that_does_not_understand_loses_its_channel(server: Server) -> None:
    client = server.client()
    declare(client)
    client.consume("q", "c")
    hold(client, b"1")
    server.advance(HALF_AN_HOUR)
    close = client.expect_channel_close(406)
    assert close.reply_text == TEXT
    assert (close.class_id, close.method_id) == (0, 0)
    got = server.client().get("q")
    assert got is not None
    assert counts(got) == (True, None, 1)


def test_a_get_costs_the_channel(server: Server) -> None:
    client = server.client(**UNDERSTANDS)
    declare(client)
    client.fill("q", b"1")
    client.get("q")
    server.advance(HALF_AN_HOUR)
    assert client.expect_channel_close(406).reply_text == TEXT
    assert server.client().count("q") == 1


def test_a_cancelled_consumer_costs_the_channel(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1")
    client.call(m.BasicCancel(consumer_tag="c"), m.BasicCancelOk)
    server.advance(HALF_AN_HOUR)
    client.expect_channel_close(406)


def test_a_cancelled_consumer_gets_nothing_more_once_it_held_too_long(server: Server) -> None:
    client = consumer(server)
    hold(client, b"a")
    client.call(m.BasicCancel(consumer_tag="c"), m.BasicCancelOk)
    server.advance(HALF_AN_HOUR)
    client.expect_channel_close(406)
    client.expect_nothing()
    assert len(server.vhost.queues["q"].ready) == 1


def test_what_else_the_channel_held_has_failed(server: Server) -> None:
    client = server.client()
    declare(client)
    client.consume("q", "c")
    hold(client, b"1")
    server.advance(1000)
    hold(client, b"2")
    server.advance(800)
    client.expect_channel_close(406)
    other = server.client()
    got = [other.get("q") for _ in range(2)]
    assert [(each.body, counts(each)) for each in got if each] == [
        (b"1", (True, None, 1)),
        (b"2", (True, 1, 1)),
    ]


def test_a_cancel_ok_ends_the_consumer(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1")
    server.advance(HALF_AN_HOUR)
    rests(client)
    client.send(m.BasicCancelOk(consumer_tag="c"))
    client.ack(1)
    client.expect_nothing()
    assert client.count("q") == 1
    assert client.declare("q", passive=True).consumer_count == 0


@pytest.mark.parametrize(
    ("queue", "argument", "seconds"),
    [
        ({"consumer_timeout": 5000}, None, 5),
        ({"consumer_timeout": 5000}, 9000, 9),
        ({}, 9000, 9),
        ({}, None, HALF_AN_HOUR),
    ],
)
def test_the_consumer_knows_best_and_then_the_queue(
    server: Server, queue: dict[str, int], argument: int | None, seconds: int
) -> None:
    client = consumer(
        server, arguments=None if argument is None else {"x-consumer-timeout": argument}, **queue
    )
    hold(client, b"1")
    server.advance(seconds - 0.001)
    client.expect_nothing()
    server.advance(0.001)
    rests(client)


def test_a_timeout_that_is_set_later_holds_for_those_who_come_later(server: Server) -> None:
    client = consumer(server, window=1)
    server.vhost.queues["q"].apply(QueueOptions(consumer_timeout=5.0))
    client.consume("q", "later")
    client.fill("q", b"1", b"2")
    assert client.bodies() == [b"1", b"2"]
    server.advance(5)
    assert client.expect(m.BasicCancel).consumer_tag == "later"
    server.advance(HALF_AN_HOUR - 5)
    assert client.expect(m.BasicCancel).consumer_tag == "c"


def test_consumers_with_different_timeouts(server: Server) -> None:
    client = server.client(**UNDERSTANDS)
    declare(client)
    client.qos(1)
    client.consume("q", "slow")
    client.consume("q", "fast", arguments={"x-consumer-timeout": 1000})
    client.fill("q", b"1", b"2")
    assert client.bodies() == [b"1", b"2"]
    server.advance(1)
    assert client.expect(m.BasicCancel).consumer_tag == "fast"
    server.advance(HALF_AN_HOUR - 1)
    assert client.expect(m.BasicCancel).consumer_tag == "slow"


def test_a_delayed_retry_is_one_of_what_is_returned(server: Server) -> None:
    client = consumer(server, delayed_retry_type="returned", delayed_retry_min=1000)
    hold(client, b"1")
    server.advance(HALF_AN_HOUR)
    rests(client)
    assert client.count("q") == 0
    server.advance(1)
    assert client.count("q") == 1


def test_no_delivery_limit_is_reached(server: Server) -> None:
    client = consumer(server, delivery_limit=0)
    hold(client, b"1")
    server.advance(HALF_AN_HOUR)
    rests(client)
    assert client.count("q") == 1


def test_without_a_limit_it_is_in_front_all_the_same(server: Server) -> None:
    client = consumer(server, window=1, delivery_limit=-1)
    hold(client, b"1")
    client.fill("q", b"2")
    server.advance(HALF_AN_HOUR)
    rests(client)
    assert client.empty("q") == [b"1", b"2"]


def test_the_single_active_consumer_is_followed_by_another(server: Server) -> None:
    client = consumer(server, single_active_consumer=True)
    client.consume("q", "next")
    hold(client, b"1")
    server.advance(HALF_AN_HOUR)
    assert client.expect(m.BasicCancel).consumer_tag == "c"
    content = client.delivery()
    assert (content.method.consumer_tag, content.body) == ("next", b"1")
    client.ack(1)
    client.fill("q", b"2")
    assert client.delivery().method.consumer_tag == "next"


def test_a_single_active_consumer_without_a_follower_goes_on_once_it_has_settled(server: Server) -> None:
    client = consumer(server, single_active_consumer=True)
    hold(client, b"1")
    server.advance(HALF_AN_HOUR)
    rests(client)
    client.ack(1)
    assert client.delivery().body == b"1"


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2"])
def test_up_to_4_2_every_client_loses_its_channel(name: str) -> None:
    server = Server(name)
    client = consumer(server)
    hold(client, b"1")
    server.advance(HALF_AN_HOUR)
    assert "1800000 ms" in client.expect_channel_close(406).reply_text
    got = server.client().get("q")
    assert got is not None
    assert counts(got) == (True, 1, None)


def test_nothing_is_watched_once_the_queue_has_gone(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1")
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    client.expect(m.BasicCancel)
    server.advance(HALF_AN_HOUR)
    client.expect_nothing()


def test_classic_queues_wait_for_ever(server: Server) -> None:
    client = server.client()
    client.declare("q", durable=True)
    client.fill("q", b"1")
    client.get("q")
    server.advance(10 * HALF_AN_HOUR)
    client.expect_nothing()
