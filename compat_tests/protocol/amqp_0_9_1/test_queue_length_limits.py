"""Limits of length and bytes, and what happens beyond them (RabbitMQ: documented; measured)."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server


@pytest.fixture
def client(rabbitmq: Server) -> Client:
    return rabbitmq.client()


def declare(client: Client, **arguments: object) -> Client:
    return client.declare("q", arguments={name.replace("_", "-"): value for name, value in arguments.items()})


def test_full_queue_drops_its_oldest_message(client: Client) -> None:
    assert declare(client, x_max_length=2).fill("q", b"1", b"2", b"3").empty("q") == [b"2", b"3"]


def test_full_queue_drops_as_many_oldest_messages_as_x_max_length_bytes_requires(client: Client) -> None:
    assert declare(client, x_max_length_bytes=10).fill("q", b"12", b"345", b"67890").count("q") == 3
    assert client.fill("q", b"abcd").empty("q") == [b"67890", b"abcd"]


def test_message_larger_than_x_max_length_bytes_drops_all_messages_and_itself(client: Client) -> None:
    assert declare(client, x_max_length_bytes=5).fill("q", b"1", b"2", b"123456").count("q") == 0


def test_x_max_length_and_x_max_length_bytes_apply_together(client: Client) -> None:
    declare(client, x_max_length=3, x_max_length_bytes=5)
    assert client.fill("q", b"1", b"2", b"3", b"4").count("q") == 3
    assert client.fill("q", b"5678").empty("q") == [b"4", b"5678"]


def test_headers_do_not_count_against_x_max_length_bytes(client: Client) -> None:
    declare(client, x_max_length_bytes=5)
    assert client.publish(b"12345", routing_key="q", headers={"long": "x" * 1000}).count("q") == 1


def test_queue_of_max_length_zero_keeps_no_message_and_still_delivers_to_consumers(client: Client) -> None:
    assert declare(client, x_max_length=0).fill("q", b"1").count("q") == 0
    assert client.consume("q", no_ack=True).fill("q", b"2").bodies() == [b"2"]


def test_unacknowledged_messages_do_not_count_against_x_max_length(client: Client) -> None:
    assert declare(client, x_max_length=1).fill("q", b"1").get("q") is not None
    assert client.fill("q", b"2").count("q") == 1


def test_requeued_message_counts_against_x_max_length_and_is_dropped_at_the_head(client: Client) -> None:
    assert declare(client, x_max_length=1).fill("q", b"1").get("q") is not None
    client.fill("q", b"2").reject(1, requeue=True)
    assert client.empty("q") == [b"2"]  # The head is dropped: the one that came back.


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_full_queue_with_overflow_reject_publish_keeps_its_messages(client: Client, overflow: str) -> None:
    declare(client, x_max_length=2, x_overflow=overflow)
    assert client.fill("q", b"1", b"2", b"3").empty("q") == [b"1", b"2"]
    assert client.fill("q", b"4").empty("q") == [b"4"]


def test_queue_with_overflow_reject_publish_accepts_requeued_message_above_its_limit(client: Client) -> None:
    assert declare(client, x_max_length=1, x_overflow="reject-publish").fill("q", b"1").get("q") is not None
    assert client.fill("q", b"2").reject(1, requeue=True).empty("q") == [b"1", b"2"]


def test_queue_with_overflow_reject_publish_refuses_messages_above_x_max_length_bytes(client: Client) -> None:
    declare(client, x_max_length_bytes=5, x_overflow="reject-publish")
    assert client.fill("q", b"123", b"456", b"45").empty("q") == [b"123", b"45"]


def test_reject_publish_refuses_message_above_byte_limit_although_a_consumer_is_ready(client: Client) -> None:
    declare(client, x_max_length_bytes=3, x_overflow="reject-publish")
    assert client.consume("q", no_ack=True).fill("q", b"1234", b"123").bodies() == [b"123"]


def dead_lettering(**arguments: object) -> dict[str, object]:
    return {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "dead", **arguments}


def test_messages_dropped_by_x_max_length_are_dead_lettered(client: Client) -> None:
    client.declare("dead")
    declare(client, **dead_lettering(x_max_length=1))
    assert client.fill("q", b"1", b"2", b"3").empty("q") == [b"3"]
    assert client.empty("dead") == [b"1", b"2"]


@pytest.mark.parametrize(("overflow", "dead"), [("reject-publish", []), ("reject-publish-dlx", [b"2", b"3"])])
def test_refused_publishes_are_dead_lettered_only_with_overflow_reject_publish_dlx(
    client: Client, overflow: str, dead: list[bytes]
) -> None:
    client.declare("dead")
    declare(client, **dead_lettering(x_max_length=1, x_overflow=overflow))
    assert client.fill("q", b"1", b"2", b"3").empty("q") == [b"1"]
    assert client.empty("dead") == dead


def test_full_priority_queue_drops_its_head_of_highest_priority(client: Client) -> None:
    declare(client, x_max_length=2, x_max_priority=9)
    for priority in (1, 9, 5):
        client.publish(b"%d" % priority, routing_key="q", priority=priority)
    assert client.empty("q") == [b"5", b"1"]


@pytest.mark.needs("restart", "inspection")
def test_transient_messages_lost_in_restart_leave_x_max_length_bytes(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q", durable=True, arguments={"x-max-length-bytes": 10})
    client.fill("q", b"kept", delivery_mode=2).fill("q", b"lost", delivery_mode=1)
    client = rabbitmq.restart().client()
    assert rabbitmq.vhost.queues["q"].ready_bytes == 4
    assert client.fill("q", b"123456").empty("q") == [b"kept", b"123456"]
