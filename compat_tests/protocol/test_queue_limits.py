"""Limits of length and bytes, and what happens beyond them (RabbitMQ: documented; measured)."""

from __future__ import annotations

import pytest

from compat_tests.protocol.driver import Client, Server


@pytest.fixture
def client(rabbitmq: Server) -> Client:
    return rabbitmq.client()


def declare(client: Client, **arguments: object) -> None:
    client.declare("q", arguments={name.replace("_", "-"): value for name, value in arguments.items()})


def test_the_oldest_message_makes_room(client: Client) -> None:
    declare(client, x_max_length=2)
    client.fill("q", b"1", b"2", b"3")
    assert client.empty("q") == [b"2", b"3"]


def test_as_many_old_messages_go_as_the_octets_need(client: Client) -> None:
    declare(client, x_max_length_bytes=10)
    client.fill("q", b"12", b"345", b"67890")
    assert client.count("q") == 3
    client.fill("q", b"abcd")
    assert client.empty("q") == [b"67890", b"abcd"]


def test_a_message_beyond_the_limit_alone_drives_out_all_and_itself(client: Client) -> None:
    declare(client, x_max_length_bytes=5)
    client.fill("q", b"1", b"2", b"123456")
    assert client.count("q") == 0


def test_both_limits_hold(client: Client) -> None:
    declare(client, x_max_length=3, x_max_length_bytes=5)
    client.fill("q", b"1", b"2", b"3", b"4")
    assert client.count("q") == 3
    client.fill("q", b"5678")
    assert client.empty("q") == [b"4", b"5678"]


def test_headers_do_not_count(client: Client) -> None:
    declare(client, x_max_length_bytes=5)
    client.publish(b"12345", routing_key="q", headers={"long": "x" * 1000})
    assert client.count("q") == 1


def test_a_length_of_zero_keeps_nothing(client: Client) -> None:
    declare(client, x_max_length=0)
    client.fill("q", b"1")
    assert client.count("q") == 0
    client.consume("q", no_ack=True)
    client.fill("q", b"2")
    assert client.bodies() == [b"2"]


def test_what_clients_hold_does_not_count(client: Client) -> None:
    declare(client, x_max_length=1)
    client.fill("q", b"1")
    assert client.get("q") is not None
    client.fill("q", b"2")
    assert client.count("q") == 1


def test_what_comes_back_counts_again(client: Client) -> None:
    declare(client, x_max_length=1)
    client.fill("q", b"1")
    assert client.get("q") is not None
    client.fill("q", b"2")
    client.reject(1, requeue=True)
    assert client.empty("q") == [b"2"]  # The head is dropped: the one that came back.


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
def test_a_queue_that_rejects_keeps_what_it_has(client: Client, overflow: str) -> None:
    declare(client, x_max_length=2, x_overflow=overflow)
    client.fill("q", b"1", b"2", b"3")
    assert client.empty("q") == [b"1", b"2"]
    client.fill("q", b"4")
    assert client.empty("q") == [b"4"]


def test_a_queue_that_rejects_takes_back_more_than_its_limit(client: Client) -> None:
    declare(client, x_max_length=1, x_overflow="reject-publish")
    client.fill("q", b"1")
    assert client.get("q") is not None
    client.fill("q", b"2")
    client.reject(1, requeue=True)
    assert client.empty("q") == [b"1", b"2"]


def test_a_queue_that_rejects_counts_octets(client: Client) -> None:
    declare(client, x_max_length_bytes=5, x_overflow="reject-publish")
    client.fill("q", b"123", b"456", b"45")
    assert client.empty("q") == [b"123", b"45"]


def test_a_queue_that_rejects_looks_at_its_limit_before_its_consumers(client: Client) -> None:
    declare(client, x_max_length_bytes=3, x_overflow="reject-publish")
    client.consume("q", no_ack=True)
    client.fill("q", b"1234", b"123")
    assert client.bodies() == [b"123"]


def dead_lettering(**arguments: object) -> dict[str, object]:
    return {"x_dead_letter_exchange": "", "x_dead_letter_routing_key": "dead", **arguments}


def test_what_is_dropped_is_dead_lettered(client: Client) -> None:
    client.declare("dead")
    declare(client, **dead_lettering(x_max_length=1))
    client.fill("q", b"1", b"2", b"3")
    assert client.empty("q") == [b"3"]
    assert client.empty("dead") == [b"1", b"2"]


@pytest.mark.parametrize(("overflow", "dead"), [("reject-publish", []), ("reject-publish-dlx", [b"2", b"3"])])
def test_what_is_rejected_is_dead_lettered_where_the_queue_says_so(
    client: Client, overflow: str, dead: list[bytes]
) -> None:
    client.declare("dead")
    declare(client, **dead_lettering(x_max_length=1, x_overflow=overflow))
    client.fill("q", b"1", b"2", b"3")
    assert client.empty("q") == [b"1"]
    assert client.empty("dead") == dead


def test_a_full_queue_of_priorities_drops_the_head_however_urgent_it_is(client: Client) -> None:
    declare(client, x_max_length=2, x_max_priority=9)
    for priority in (1, 9, 5):
        client.publish(b"%d" % priority, routing_key="q", priority=priority)
    assert client.empty("q") == [b"5", b"1"]


def test_a_restart_takes_the_octets_of_what_it_drops_off_the_limit(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.declare("q", durable=True, arguments={"x-max-length-bytes": 10})
    client.fill("q", b"kept", delivery_mode=2)
    client.fill("q", b"lost", delivery_mode=1)
    rabbitmq.restart()
    client = rabbitmq.client()
    assert rabbitmq.vhost.queues["q"].ready_bytes == 4
    client.fill("q", b"123456")
    assert client.empty("q") == [b"kept", b"123456"]
