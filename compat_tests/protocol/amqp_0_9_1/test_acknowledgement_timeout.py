"""How long a client may hold a delivery (RabbitMQ: documented delivery acknowledgement timeout)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.personality import PERSONALITIES

pytestmark = pytest.mark.needs("virtual time")

HALF_AN_HOUR = 1800


def text(milliseconds: int, channel: int = 1) -> str:
    return (
        f"PRECONDITION_FAILED - delivery acknowledgement on channel {channel} timed out. Timeout value used: "
        f"{milliseconds} ms. This timeout value can be configured, see consumers doc guide to learn more"
    )


@pytest.fixture
def rabbitmq() -> Server:
    """A broker that behaves like RabbitMQ 4.2: later ones have no such timeout for classic queues."""
    return Server("rabbitmq-4.2")


@pytest.fixture
def holder(rabbitmq: Server) -> Client:
    """A consumer that holds one delivery."""
    client = rabbitmq.client().declare("q").consume("q")
    client.publish(b"held", routing_key="q").delivery()
    return client


def test_a_delivery_held_for_half_an_hour_closes_the_channel(holder: Client) -> None:
    holder.after(HALF_AN_HOUR - 1).expect_nothing()
    holder.after(1).expect_channel_close(406, text=text(1_800_000), at=(0, 0))


def test_unacknowledged_message_is_ready_again_after_the_acknowledgement_timeout(holder: Client) -> None:
    assert holder.after(HALF_AN_HOUR).server.client().fetch("q").method.redelivered


def test_delivery_acknowledged_in_time_does_not_close_the_channel(rabbitmq: Server, holder: Client) -> None:
    tag = holder.after(1000).publish(b"later", routing_key="q").delivery().method.delivery_tag
    holder.ack(tag - 1).after(1000).expect_nothing()
    rabbitmq.advance(800)  # Half an hour after the later one was delivered.
    holder.expect_channel_close(406)


def test_unacknowledged_message_of_basic_get_closes_the_channel_after_the_timeout(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    client.publish(routing_key="q").get("q")
    client.after(HALF_AN_HOUR).expect_channel_close(406)


def test_no_ack_delivery_has_no_acknowledgement_timeout(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").consume("q", no_ack=True)
    client.publish(routing_key="q").delivery()
    client.after(2 * HALF_AN_HOUR).expect_nothing()


def test_x_consumer_timeout_argument_sets_acknowledgement_timeout_of_queue(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("patient").declare("hasty", arguments={"x-consumer-timeout": 5000})
    for queue in ("patient", "hasty"):
        client.consume(queue).publish(routing_key=queue).delivery()
    client.after(4.999).expect_nothing()
    assert client.after(0.001).expect_channel_close(406).reply_text == text(5000)


def test_acknowledgement_timeout_leaves_other_channels_open(holder: Client) -> None:
    holder.open_channel(2).after(HALF_AN_HOUR).expect_channel_close(406)
    assert holder.count("q", channel=2) == 1


def test_closed_channel_has_no_acknowledgement_timeout(holder: Client) -> None:
    holder.close_channel().after(HALF_AN_HOUR).expect_nothing()


def test_personality_sets_acknowledgement_timeout_of_all_queues() -> None:
    server = Server(replace(PERSONALITIES["rabbitmq-4.2"], consumer_timeout=60.0))
    client = server.client().declare("q")
    client.publish(routing_key="q").get("q")
    assert client.after(60).expect_channel_close(406).reply_text == text(60_000)


def test_spec_personality_has_no_acknowledgement_timeout() -> None:
    client = (server := Server("spec")).client()
    client.declare("q")
    client.publish(routing_key="q")
    client.get("q")
    server.advance(10 * HALF_AN_HOUR)
    client.expect_nothing()
