"""Quorum queues: times to live, limits of length and bytes (RabbitMQ: documented; measured)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.driver import Client, Server
from compat_tests.protocol.quorum import ALL, RABBITMQ, client_of, declare
from fakeamqp.model.arguments.queue_arguments import QueueOptions
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

# --- time to live -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_messages_expire(name: str) -> None:
    server = Server(name)
    client = server.client()
    declare(client, message_ttl=1000)
    client.fill("q", b"1")
    server.advance(0.999)
    assert client.count("q") == 1
    server.advance(0.001)
    assert client.count("q") == 0


@pytest.mark.parametrize("name", RABBITMQ)
@pytest.mark.parametrize(("own", "seconds"), [("500", 0.5), ("2000", 1.0), (None, 1.0)])
def test_the_shorter_time_holds(name: str, own: str | None, seconds: float) -> None:
    server = Server(name)
    client = server.client()
    declare(client, message_ttl=1000)
    client.publish(routing_key="q", expiration=own)
    server.advance(seconds - 0.001)
    assert client.count("q") == 1
    server.advance(0.001)
    assert client.count("q") == 0


@pytest.mark.parametrize("name", RABBITMQ)
def test_a_time_of_zero_is_a_millisecond(name: str) -> None:
    server = Server(name)
    client = server.client()
    declare(client, message_ttl=0)
    client.fill("q", b"1")
    assert client.count("q") == 1
    server.advance(0.001)
    assert client.count("q") == 0
    client.consume("q")
    client.fill("q", b"2")
    assert client.bodies() == [b"2"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_what_is_held_does_not_expire_and_dies_when_it_comes_back(name: str) -> None:
    server = Server(name)
    client = server.client()
    declare(client, message_ttl=1000)
    client.fill("q", b"1")
    client.get("q")
    server.advance(60)
    client.expect_nothing()
    client.reject(1, requeue=True)
    assert client.count("q") == 0


@pytest.mark.parametrize("name", RABBITMQ)
def test_the_time_goes_on_when_a_message_comes_back(name: str) -> None:
    server = Server(name)
    client = server.client()
    declare(client, message_ttl=1000)
    client.fill("q", b"1")
    client.get("q")
    server.advance(0.6)
    client.reject(1, requeue=True)
    server.advance(0.3)
    assert client.count("q") == 1
    server.advance(0.1)
    assert client.count("q") == 0


@pytest.mark.parametrize("name", RABBITMQ)
def test_messages_expire_at_the_head_only(name: str) -> None:
    server = Server(name)
    client = server.client()
    declare(client)
    client.fill("q", b"1")
    client.publish(b"2", routing_key="q", expiration="1000")
    server.advance(60)
    assert client.count("q") == 2
    client.get("q", no_ack=True)
    assert client.get("q") is None


@pytest.mark.parametrize("name", RABBITMQ)
@pytest.mark.parametrize(("no_ack", "behind"), [(True, 0), (False, 1)])
def test_a_get_that_needs_no_acknowledgement_lets_what_it_hid_expire(
    name: str, no_ack: bool, behind: int
) -> None:
    server = Server(name)
    client = server.client()
    declare(client)
    client.fill("q", b"1")
    client.publish(b"2", routing_key="q", expiration="1000")
    server.advance(60)
    got = client.get("q", no_ack=no_ack)
    assert got is not None
    assert got.method.message_count == behind


@pytest.mark.parametrize(("name", "left"), [("rabbitmq-4.2", 3), ("rabbitmq-4.3", 2)])
def test_every_level_has_a_head(name: str, left: int) -> None:
    server = Server(name)
    client = server.client()
    declare(client)
    client.publish(b"high", routing_key="q", priority=9)
    client.publish(b"low", routing_key="q", priority=1, expiration="1000")
    client.publish(b"normal", routing_key="q")
    server.advance(1)
    assert client.count("q") == left


@pytest.mark.parametrize(("name", "left"), [("rabbitmq-4.2", 2), ("rabbitmq-4.3", 1)])
def test_what_came_back_hides_a_head_up_to_4_2(name: str, left: int) -> None:
    server = Server(name)
    client = server.client()
    declare(client)
    client.fill("q", b"1")
    client.get("q")
    client.publish(b"2", routing_key="q", expiration="1000")
    client.nack(1)
    server.advance(1)
    assert client.count("q") == left


# --- dropping from the head ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_the_head_makes_room(name: str) -> None:
    client = client_of(name, max_length=2)
    client.fill("q", b"1", b"2", b"3")
    assert client.empty("q") == [b"2", b"3"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_reject_publish_dlx_drops_from_the_head_too(name: str) -> None:
    client = client_of(name, max_length=2, overflow="reject-publish-dlx")
    client.fill("q", b"1", b"2", b"3")
    assert client.empty("q") == [b"2", b"3"]


@pytest.mark.parametrize("name", ALL)
def test_what_is_held_does_not_count(name: str) -> None:
    client = client_of(name, max_length=2)
    client.fill("q", b"1", b"2")
    client.get("q")
    client.get("q")
    client.fill("q", b"3", b"4")
    assert client.count("q") == 2


@pytest.mark.parametrize("name", RABBITMQ)
def test_what_comes_back_to_a_full_queue_is_its_head(name: str) -> None:
    client = client_of(name, max_length=2, delivery_limit=5)
    client.fill("q", b"1")
    client.get("q")
    client.fill("q", b"2", b"3")
    client.nack(1)
    assert client.empty("q") == [b"2", b"3"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_a_length_of_zero_still_serves_consumers(name: str) -> None:
    client = client_of(name, max_length=0)
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    client.fill("q", b"1")
    client.expect(m.BasicAck)
    assert client.count("q") == 0
    client.consume("q")
    client.fill("q", b"2")
    assert client.delivery().body == b"2"


@pytest.mark.parametrize(
    ("name", "left"),
    [("rabbitmq-3.13", b"bc"), ("rabbitmq-4.0", b"ac"), ("rabbitmq-4.2", b"ac"), ("rabbitmq-4.3", b"ac")],
)
def test_the_head_is_what_would_be_delivered_next(name: str, left: bytes) -> None:
    client = client_of(name, max_length=2)
    client.publish(b"a", routing_key="q", priority=1)
    client.publish(b"b", routing_key="q", priority=9)
    client.publish(b"c", routing_key="q", priority=1)
    assert b"".join(client.empty("q")) == left


@pytest.mark.parametrize(("name", "left"), [("rabbitmq-3.13", 5), ("rabbitmq-4.2", 5), ("rabbitmq-4.3", 3)])
def test_properties_count_for_octets_from_4_3_on(name: str, left: int) -> None:
    client = client_of(name, max_length_bytes=10)
    client.fill("q", *[b"x"] * 4)  # Without properties there are two bytes of flags.
    client.fill("q", b"x")
    assert client.count("q") == left


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2"])
def test_as_many_go_as_the_octets_need(name: str) -> None:
    client = client_of(name, max_length_bytes=10)
    client.fill("q", b"12", b"345", b"67890")
    assert client.count("q") == 3
    client.fill("q", b"abcd")
    assert client.empty("q") == [b"67890", b"abcd"]


# --- holding publishers off ---------------------------------------------------------------------------------


def confirms(client: Client, count: int) -> str:
    """Publish so many messages one by one: a for each that is taken, n for each that is not."""
    said = ""
    for _ in range(count):
        client.publish(b"m", routing_key="q")
        [frame] = client.inbox
        client.take_frame()
        said += "a" if isinstance(frame.method, m.BasicAck) else "n"
    return said


def confirming(server: Server) -> Client:
    client = server.client()
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    return client


def drained(client: Client, count: int) -> None:
    for _ in range(count):
        assert client.get("q", no_ack=True) is not None


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("limit", "soft"), [(2, 1), (10, 8)])
def test_one_more_than_the_limit_is_taken_and_then_none_until_there_is_room(
    name: str, limit: int, soft: int
) -> None:
    client = confirming(Server(name))
    declare(client, max_length=limit, overflow="reject-publish")
    assert confirms(client, limit + 3) == "a" * (limit + 1) + "nn"
    drained(client, limit - soft)
    assert confirms(client, 1) == "n"
    drained(client, 1)
    assert confirms(client, limit - soft + 3) == "a" * (limit - soft + 1) + "nn"


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2"])
def test_octets_hold_publishers_off_as_well(name: str) -> None:
    client = confirming(Server(name))
    declare(client, max_length_bytes=5, overflow="reject-publish")
    assert confirms(client, 7) == "aaaaaan"
    drained(client, 1)
    assert confirms(client, 1) == "n"
    drained(client, 1)
    assert confirms(client, 1) == "a"


@pytest.mark.parametrize("name", RABBITMQ)
def test_who_comes_later_is_held_off_only_above_the_limit(name: str) -> None:
    server = Server(name)
    first = confirming(server)
    declare(first, max_length=2, overflow="reject-publish")
    assert confirms(first, 4) == "aaan"
    assert confirms(confirming(server), 1) == "n"
    drained(first, 1)
    assert confirms(confirming(server), 1) == "a"
    assert confirms(first, 1) == "n"


@pytest.mark.parametrize("name", ALL)
def test_nobody_else_hears_of_it(name: str) -> None:
    client = client_of(name, max_length=1, overflow="reject-publish")
    client.fill("q", b"1", b"2", b"3")
    client.expect_nothing()
    assert client.count("q") == 2


@pytest.mark.parametrize("name", ALL)
def test_a_transaction_that_is_held_off_is_committed_all_the_same(name: str) -> None:
    client = client_of(name, max_length=1, overflow="reject-publish")
    client.fill("q", b"1", b"2")
    client.call(m.TxSelect(), m.TxSelectOk)
    client.fill("q", b"3")
    client.call(m.TxCommit(), m.TxCommitOk)
    assert client.count("q") == 2


@pytest.mark.parametrize("name", RABBITMQ)
def test_a_queue_that_holds_publishers_off_takes_back_more_than_its_limit(name: str) -> None:
    client = client_of(name, max_length=1, overflow="reject-publish", delivery_limit=5)
    client.fill("q", b"1", b"2")
    client.get("q")
    client.get("q")
    client.fill("q", b"3")
    client.nack(2, multiple=True)
    assert client.count("q") == 3


@pytest.mark.parametrize("name", RABBITMQ)
def test_a_purge_lets_publishers_go_on(name: str) -> None:
    client = confirming(Server(name))
    declare(client, max_length=1, overflow="reject-publish")
    assert confirms(client, 3) == "aan"
    client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk)
    assert confirms(client, 1) == "a"


@pytest.mark.parametrize("name", RABBITMQ)
def test_consumers_that_take_messages_let_publishers_go_on(name: str) -> None:
    client = confirming(Server(name))
    declare(client, max_length=1, overflow="reject-publish")
    assert confirms(client, 3) == "aan"
    client.consume("q", no_ack=True)
    assert client.bodies() == [b"m", b"m"]
    client.fill("q", b"m")
    assert client.delivery().body == b"m"


@pytest.mark.parametrize("name", RABBITMQ)
def test_a_message_that_expires_lets_publishers_go_on(name: str) -> None:
    server = Server(name)
    client = confirming(server)
    declare(client, max_length=1, overflow="reject-publish", message_ttl=1000)
    assert confirms(client, 3) == "aan"
    server.advance(1)
    assert confirms(client, 1) == "a"


# --- other options, as policies set them --------------------------------------------------------------------


def apply(server: Server, **options: Any) -> None:
    server.vhost.queues["q"].apply(QueueOptions(**options))


@pytest.mark.parametrize("name", RABBITMQ)
def test_a_new_limit_holds_at_once(name: str) -> None:
    server = Server(name)
    client = server.client()
    declare(client)
    client.fill("q", b"1", b"2", b"3")
    apply(server, max_length=1)
    assert client.empty("q") == [b"3"]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3"])
def test_without_a_limit_publishers_go_on(name: str) -> None:
    server = Server(name)
    client = confirming(server)
    declare(client, max_length=1, overflow="reject-publish")
    assert confirms(client, 3) == "aan"
    apply(server)
    assert confirms(client, 1) == "a"


def test_a_new_delivery_limit_holds_for_what_is_there() -> None:
    server = Server("rabbitmq-4.2")
    client = server.client()
    declare(client)
    client.fill("q", b"1")
    client.get("q")
    apply(server, delivery_limit=0)
    client.nack(1)
    assert client.count("q") == 0


def test_a_new_expiry_counts_from_the_last_use() -> None:
    server = Server("rabbitmq-4.2")
    declare(server.client())
    server.advance(7)
    apply(server, expires=8.0)
    server.advance(0.75)
    assert "q" in server.vhost.queues
    server.advance(0.25)
    assert "q" not in server.vhost.queues
