"""Consumers that hold a message too long: the queue takes it back (RabbitMQ: documented, since 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.quorum import counts, declare
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
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
    client = declare(server.client(**UNDERSTANDS), **queue)
    return client.qos(window).consume("q", "c", arguments=arguments or {})


def hold(client: Client, *bodies: bytes) -> Client:
    client.fill("q", *bodies)
    for body in bodies:
        assert client.delivery().body == body
    return client


def rests(client: Client) -> Client:
    """The client is told that its consumer gets nothing more for now."""
    cancel = client.expect(m.BasicCancel)
    assert (cancel.consumer_tag, cancel.no_wait) == ("c", True)
    client.expect_nothing()
    return client


@pytest.mark.needs("virtual time")
def test_message_unacknowledged_for_half_an_hour_is_requeued(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1").after(HALF_AN_HOUR - 1).expect_nothing()
    server.advance(1)
    rests(client)
    got = server.client().fetch("q")
    assert (got.body, counts(got)) == (b"1", (True, None, 1))


@pytest.mark.needs("virtual time")
def test_message_settled_in_time_is_not_requeued(server: Server) -> None:
    client = hold(consumer(server), b"1", b"2")
    client.ack(1).nack(2, requeue=False).after(2 * HALF_AN_HOUR).expect_nothing()


@pytest.mark.needs("virtual time")
def test_only_the_delivery_that_timed_out_is_requeued(server: Server) -> None:
    client = hold(consumer(server), b"1")
    server.advance(1000)
    hold(client, b"2")
    server.advance(800)
    assert rests(client).count("q") == 1
    client.ack(2)  # Still its own.
    assert client.after(HALF_AN_HOUR).count("q") == 1


@pytest.mark.needs("virtual time")
def test_later_delivery_times_out_later(server: Server) -> None:
    client = hold(consumer(server), b"1")
    server.advance(1000)
    hold(client, b"2")
    server.advance(800)
    rests(client)
    server.advance(1000)
    assert rests(client).empty("q") == [b"1", b"2"]


@pytest.mark.needs("virtual time")
def test_timed_out_consumer_gets_no_delivery_until_all_its_messages_are_settled(server: Server) -> None:
    client = hold(consumer(server), b"1", b"2")
    server.advance(HALF_AN_HOUR)
    rests(client).fill("q", b"3").ack(1).expect_nothing()
    assert client.nack(2).bodies() == [b"1", b"2", b"3"]


@pytest.mark.needs("virtual time")
def test_late_settlement_after_timeout_does_not_remove_messages(server: Server) -> None:
    client = hold(consumer(server), b"1", b"2", b"3")
    server.advance(HALF_AN_HOUR)
    assert rests(client).ack(1).reject(2).nack(3).bodies() == [b"1", b"2", b"3"]


@pytest.mark.needs("virtual time")
def test_message_that_timed_out_is_delivered_to_another_consumer(server: Server) -> None:
    client, other = consumer(server), server.client()
    hold(client, b"1")
    other.consume("q")
    server.advance(HALF_AN_HOUR)
    rests(client)
    assert counts(other.delivery()) == (True, None, 1)


@pytest.mark.needs("virtual time")
def test_channel_without_consumer_cancel_notify_is_closed_with_406_at_timeout(server: Server) -> None:
    client = declare(server.client()).consume("q", "c")
    hold(client, b"1").after(HALF_AN_HOUR).expect_channel_close(406, text=TEXT, at=(0, 0))
    got = server.client().fetch("q")
    assert counts(got) == (True, None, 1)


@pytest.mark.needs("virtual time")
def test_timeout_of_message_got_by_get_closes_channel_with_406(server: Server) -> None:
    client = server.client(**UNDERSTANDS)
    declare(client).fill("q", b"1").get("q")
    assert client.after(HALF_AN_HOUR).expect_channel_close(406).reply_text == TEXT
    assert server.client().count("q") == 1


@pytest.mark.needs("virtual time")
def test_timeout_of_cancelled_consumer_closes_channel_with_406(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1").perform(m.BasicCancel(consumer_tag="c"))
    client.after(HALF_AN_HOUR).expect_channel_close(406)


@pytest.mark.needs("virtual time", "inspection")
def test_cancelled_consumer_gets_no_delivery_after_its_timeout(server: Server) -> None:
    client = consumer(server)
    hold(client, b"a").perform(m.BasicCancel(consumer_tag="c"))
    client.after(HALF_AN_HOUR).expect_channel_close(406)
    client.expect_nothing()
    assert len(server.vhost.queues["q"].ready) == 1


@pytest.mark.needs("virtual time")
def test_other_messages_of_channel_closed_by_timeout_count_as_failed(server: Server) -> None:
    client = hold(declare(server.client()).consume("q", "c"), b"1")
    server.advance(1000)
    hold(client, b"2").after(800).expect_channel_close(406)
    other = server.client()
    got = [other.get("q") for _ in range(2)]
    assert [(each.body, counts(each)) for each in got if each] == [
        (b"1", (True, None, 1)),
        (b"2", (True, 1, 1)),
    ]


@pytest.mark.needs("virtual time")
def test_cancel_ok_of_client_ends_the_timed_out_consumer(server: Server) -> None:
    client = hold(consumer(server), b"1")
    server.advance(HALF_AN_HOUR)
    rests(client).send(m.BasicCancelOk(consumer_tag="c")).ack(1).expect_nothing()
    assert client.count("q") == 1
    assert client.declare_ok("q", passive=True).consumer_count == 0


@pytest.mark.needs("virtual time")
@rows(
    "queue, argument, seconds",
    ({"consumer_timeout": 5000}, None, 5),
    ({"consumer_timeout": 5000}, 9000, 9),
    ({}, 9000, 9),
    ({}, None, HALF_AN_HOUR),
)
def test_consumer_timeout_of_consumer_takes_precedence_over_that_of_queue(
    server: Server, queue: dict[str, int], argument: int | None, seconds: int
) -> None:
    client = consumer(
        server, arguments=None if argument is None else {"x-consumer-timeout": argument}, **queue
    )
    hold(client, b"1").after(seconds - 0.001).expect_nothing()
    server.advance(0.001)
    rests(client)


@pytest.mark.needs("virtual time", "inspection")
def test_changed_consumer_timeout_applies_only_to_later_consumers(server: Server) -> None:
    client = consumer(server, window=1)
    server.vhost.queues["q"].apply(QueueOptions(consumer_timeout=5.0))
    assert client.consume("q", "later").fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    assert client.after(5).expect(m.BasicCancel).consumer_tag == "later"
    assert client.after(HALF_AN_HOUR - 5).expect(m.BasicCancel).consumer_tag == "c"


@pytest.mark.needs("virtual time")
def test_each_consumer_has_its_own_timeout(server: Server) -> None:
    client = declare(server.client(**UNDERSTANDS))
    client.qos(1).consume("q", "slow").consume("q", "fast", arguments={"x-consumer-timeout": 1000})
    assert client.fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    assert client.after(1).expect(m.BasicCancel).consumer_tag == "fast"
    assert client.after(HALF_AN_HOUR - 1).expect(m.BasicCancel).consumer_tag == "slow"


@pytest.mark.needs("virtual time")
def test_message_that_timed_out_is_delayed_with_delayed_retry_type_returned(server: Server) -> None:
    client = hold(consumer(server, delayed_retry_type="returned", delayed_retry_min=1000), b"1")
    server.advance(HALF_AN_HOUR)
    assert rests(client).count("q") == 0
    assert client.after(1).count("q") == 1


@pytest.mark.needs("virtual time")
def test_timeout_does_not_count_against_delivery_limit(server: Server) -> None:
    client = hold(consumer(server, delivery_limit=0), b"1")
    server.advance(HALF_AN_HOUR)
    assert rests(client).count("q") == 1


@pytest.mark.needs("virtual time")
def test_message_that_timed_out_is_requeued_first_without_delivery_limit(server: Server) -> None:
    client = hold(consumer(server, window=1, delivery_limit=-1), b"1").fill("q", b"2")
    server.advance(HALF_AN_HOUR)
    assert rests(client).empty("q") == [b"1", b"2"]


@pytest.mark.needs("virtual time")
def test_next_consumer_becomes_active_when_single_active_consumer_times_out(server: Server) -> None:
    client = consumer(server, single_active_consumer=True).consume("q", "next")
    assert hold(client, b"1").after(HALF_AN_HOUR).expect(m.BasicCancel).consumer_tag == "c"
    content = client.delivery()
    assert (content.method.consumer_tag, content.body) == ("next", b"1")
    assert client.ack(1).fill("q", b"2").delivery().method.consumer_tag == "next"


@pytest.mark.needs("virtual time")
def test_only_single_active_consumer_gets_deliveries_again_after_late_ack(server: Server) -> None:
    client = hold(consumer(server, single_active_consumer=True), b"1")
    server.advance(HALF_AN_HOUR)
    assert rests(client).ack(1).delivery().body == b"1"


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2"])
def test_timeout_closes_channel_of_every_client_up_to_4_2(name: str) -> None:
    server = Server(name)
    client = hold(consumer(server), b"1")
    server.advance(HALF_AN_HOUR)
    assert "1800000 ms" in client.expect_channel_close(406).reply_text
    got = server.client().fetch("q")
    assert counts(got) == (True, 1, None)


@pytest.mark.needs("virtual time")
def test_deleted_queue_has_no_consumer_timeout(server: Server) -> None:
    client = consumer(server)
    hold(client, b"1").perform(m.QueueDelete(queue="q"))
    client.expect(m.BasicCancel)
    client.after(HALF_AN_HOUR).expect_nothing()


@pytest.mark.needs("virtual time")
def test_classic_queue_of_4_3_has_no_consumer_timeout(server: Server) -> None:
    client = server.client().declare("q", durable=True)
    client.fill("q", b"1").get("q")
    client.after(10 * HALF_AN_HOUR).expect_nothing()
