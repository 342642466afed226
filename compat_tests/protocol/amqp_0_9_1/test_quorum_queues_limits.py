"""Quorum queues: times to live, limits of length and bytes (RabbitMQ: documented; measured)."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.quorum import ALL, RABBITMQ, client_of, declare
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.model.arguments.queue_arguments import QueueOptions
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


# --- time to live -------------------------------------------------------------------------------------------
@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", ALL)
def test_message_expires_after_x_message_ttl(name: str) -> None:
    client = Server(name).client()
    assert declare(client, message_ttl=1000).fill("q", b"1").after(0.999).count("q") == 1
    assert client.after(0.001).count("q") == 0


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
@pytest.mark.parametrize(("own", "seconds"), [("500", 0.5), ("2000", 1.0), (None, 1.0)])
def test_shorter_of_expiration_and_x_message_ttl_applies(name: str, own: str | None, seconds: float) -> None:
    server = Server(name)
    client = declare(server.client(), message_ttl=1000)
    assert client.publish(routing_key="q", expiration=own).after(seconds - 0.001).count("q") == 1
    assert client.after(0.001).count("q") == 0


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_message_ttl_of_zero_expires_after_one_millisecond(name: str) -> None:
    client = Server(name).client()
    assert declare(client, message_ttl=0).fill("q", b"1").count("q") == 1
    assert client.after(0.001).count("q") == 0
    assert client.consume("q").fill("q", b"2").bodies() == [b"2"]


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_unacknowledged_message_expires_only_when_requeued(name: str) -> None:
    client = Server(name).client()
    declare(client, message_ttl=1000).fill("q", b"1").get("q")
    client.after(60).expect_nothing()
    assert client.reject(1, requeue=True).count("q") == 0


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_requeued_message_keeps_its_expiry_time(name: str) -> None:
    client = Server(name).client()
    declare(client, message_ttl=1000).fill("q", b"1").get("q")
    assert client.after(0.6).reject(1, requeue=True).after(0.3).count("q") == 1
    assert client.after(0.1).count("q") == 0


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_expired_message_stays_behind_unexpired_head(name: str) -> None:
    server = Server(name)
    client = declare(server.client()).fill("q", b"1").publish(b"2", routing_key="q", expiration="1000")
    assert client.after(60).count("q") == 2
    client.get("q", no_ack=True)
    assert client.get("q") is None


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
@pytest.mark.parametrize(("no_ack", "behind"), [(True, 0), (False, 1)])
def test_message_count_of_get_leaves_out_expired_message_behind(name: str, no_ack: bool, behind: int) -> None:
    server = Server(name)
    client = declare(server.client()).fill("q", b"1").publish(b"2", routing_key="q", expiration="1000")
    assert client.after(60).fetch("q", no_ack=no_ack).method.message_count == behind


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(("name", "left"), [("rabbitmq-4.2", 3), ("rabbitmq-4.3", 2)])
def test_message_at_head_of_its_priority_level_expires_since_4_3(name: str, left: int) -> None:
    server = Server(name)
    client = declare(server.client()).publish(b"high", routing_key="q", priority=9)
    client.publish(b"low", routing_key="q", priority=1, expiration="1000")
    assert client.publish(b"normal", routing_key="q").after(1).count("q") == left


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize(("name", "left"), [("rabbitmq-4.2", 2), ("rabbitmq-4.3", 1)])
def test_requeued_message_prevents_expiry_of_message_behind_it_up_to_4_2(name: str, left: int) -> None:
    client = Server(name).client()
    declare(client).fill("q", b"1").get("q")
    assert client.publish(b"2", routing_key="q", expiration="1000").nack(1).after(1).count("q") == left


# --- dropping from the head ---------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_full_quorum_queue_drops_its_head(name: str) -> None:
    assert client_of(name, max_length=2).fill("q", b"1", b"2", b"3").empty("q") == [b"2", b"3"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_full_quorum_queue_with_reject_publish_dlx_drops_its_head(name: str) -> None:
    client = client_of(name, max_length=2, overflow="reject-publish-dlx")
    assert client.fill("q", b"1", b"2", b"3").empty("q") == [b"2", b"3"]


@pytest.mark.parametrize("name", ALL)
def test_unacknowledged_messages_do_not_count_against_x_max_length(name: str) -> None:
    client = client_of(name, max_length=2)
    client.fill("q", b"1", b"2").get("q")
    client.get("q")
    assert client.fill("q", b"3", b"4").count("q") == 2


@pytest.mark.parametrize("name", RABBITMQ)
def test_message_requeued_to_full_queue_is_dropped_as_its_head(name: str) -> None:
    client = client_of(name, max_length=2, delivery_limit=5)
    client.fill("q", b"1").get("q")
    assert client.fill("q", b"2", b"3").nack(1).empty("q") == [b"2", b"3"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_queue_of_max_length_zero_still_delivers_to_consumers(name: str) -> None:
    client = client_of(name, max_length=0)
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    client.fill("q", b"1").expect(m.BasicAck)
    assert client.count("q") == 0
    assert client.consume("q").fill("q", b"2").delivery().body == b"2"


@pytest.mark.parametrize(
    ("name", "left"),
    [("rabbitmq-3.13", b"bc"), ("rabbitmq-4.0", b"ac"), ("rabbitmq-4.2", b"ac"), ("rabbitmq-4.3", b"ac")],
)
def test_full_queue_drops_message_of_highest_priority_since_4_0(name: str, left: bytes) -> None:
    client = client_of(name, max_length=2).publish(b"a", routing_key="q", priority=1)
    client.publish(b"b", routing_key="q", priority=9).publish(b"c", routing_key="q", priority=1)
    assert b"".join(client.empty("q")) == left


@pytest.mark.parametrize(("name", "left"), [("rabbitmq-3.13", 5), ("rabbitmq-4.2", 5), ("rabbitmq-4.3", 3)])
def test_properties_count_against_x_max_length_bytes_since_4_3(name: str, left: int) -> None:
    client = client_of(name, max_length_bytes=10)
    client.fill("q", *[b"x"] * 4)  # Without properties there are two bytes of flags.
    assert client.fill("q", b"x").count("q") == left


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2"])
def test_full_queue_drops_as_many_messages_as_x_max_length_bytes_requires(name: str) -> None:
    client = client_of(name, max_length_bytes=10)
    assert client.fill("q", b"12", b"345", b"67890").count("q") == 3
    assert client.fill("q", b"abcd").empty("q") == [b"67890", b"abcd"]


# --- holding publishers off ---------------------------------------------------------------------------------
def confirms(client: Client, count: int) -> str:
    """Publish so many messages one by one: a for each that is taken, n for each that is not."""
    said = ""
    for _ in range(count):
        [frame] = client.publish(b"m", routing_key="q").inbox
        client.take_frame()
        said += "a" if isinstance(frame.method, m.BasicAck) else "n"
    return said


def confirming(server: Server) -> Client:
    return server.client().perform(m.ConfirmSelect())


def drained(client: Client, count: int) -> Client:
    for _ in range(count):
        assert client.get("q", no_ack=True) is not None
    return client


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("limit", "soft"), [(2, 1), (10, 8)])
def test_reject_publish_accepts_one_message_above_limit_then_refuses_until_queue_is_drained(
    name: str, limit: int, soft: int
) -> None:
    client = declare(confirming(Server(name)), max_length=limit, overflow="reject-publish")
    assert confirms(client, limit + 3) == "a" * (limit + 1) + "nn"
    drained(client, limit - soft)
    assert confirms(client, 1) == "n"
    drained(client, 1)
    assert confirms(client, limit - soft + 3) == "a" * (limit - soft + 1) + "nn"


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2"])
def test_reject_publish_refuses_messages_above_x_max_length_bytes(name: str) -> None:
    client = declare(confirming(Server(name)), max_length_bytes=5, overflow="reject-publish")
    assert confirms(client, 7) == "aaaaaan"
    drained(client, 1)
    assert confirms(client, 1) == "n"
    drained(client, 1)
    assert confirms(client, 1) == "a"


@pytest.mark.parametrize("name", RABBITMQ)
def test_new_publisher_is_refused_only_while_queue_is_above_its_limit(name: str) -> None:
    server = Server(name)
    first = declare(confirming(server), max_length=2, overflow="reject-publish")
    assert confirms(first, 4) == "aaan"
    assert confirms(confirming(server), 1) == "n"
    drained(first, 1)
    assert confirms(confirming(server), 1) == "a"
    assert confirms(first, 1) == "n"


@pytest.mark.parametrize("name", ALL)
def test_publisher_without_confirms_is_not_informed_of_refused_message(name: str) -> None:
    client = client_of(name, max_length=1, overflow="reject-publish")
    client.fill("q", b"1", b"2", b"3").expect_nothing()
    assert client.count("q") == 2


@pytest.mark.parametrize("name", ALL)
def test_commit_succeeds_although_full_queue_refuses_its_message(name: str) -> None:
    client = client_of(name, max_length=1, overflow="reject-publish")
    client.fill("q", b"1", b"2").call(m.TxSelect(), m.TxSelectOk)
    client.fill("q", b"3").call(m.TxCommit(), m.TxCommitOk)
    assert client.count("q") == 2


@pytest.mark.parametrize("name", RABBITMQ)
def test_full_queue_with_reject_publish_accepts_requeued_messages_above_its_limit(name: str) -> None:
    client = client_of(name, max_length=1, overflow="reject-publish", delivery_limit=5)
    client.fill("q", b"1", b"2").get("q")
    client.get("q")
    assert client.fill("q", b"3").nack(2, multiple=True).count("q") == 3


@pytest.mark.parametrize("name", RABBITMQ)
def test_publisher_is_confirmed_again_after_full_queue_is_purged(name: str) -> None:
    client = declare(confirming(Server(name)), max_length=1, overflow="reject-publish")
    assert confirms(client, 3) == "aan"
    client.perform(m.QueuePurge(queue="q"))
    assert confirms(client, 1) == "a"


@pytest.mark.parametrize("name", RABBITMQ)
def test_publish_is_accepted_again_after_consumer_drained_full_queue(name: str) -> None:
    client = declare(confirming(Server(name)), max_length=1, overflow="reject-publish")
    assert confirms(client, 3) == "aan"
    assert client.consume("q", no_ack=True).bodies() == [b"m", b"m"]
    assert client.fill("q", b"m").delivery().body == b"m"


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_publisher_is_confirmed_again_after_messages_expired(name: str) -> None:
    server = Server(name)
    client = declare(confirming(server), max_length=1, overflow="reject-publish", message_ttl=1000)
    assert confirms(client, 3) == "aan"
    server.advance(1)
    assert confirms(client, 1) == "a"


# --- other options, as policies set them --------------------------------------------------------------------
def apply(server: Server, **options: Any) -> None:
    server.vhost.queues["q"].apply(QueueOptions(**options))


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("name", RABBITMQ)
def test_new_max_length_drops_messages_at_once(name: str) -> None:
    server = Server(name)
    client = declare(server.client()).fill("q", b"1", b"2", b"3")
    apply(server, max_length=1)
    assert client.empty("q") == [b"3"]


@pytest.mark.needs("inspection")
@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3"])
def test_publisher_is_confirmed_again_after_limit_is_removed(name: str) -> None:
    server = Server(name)
    client = declare(confirming(server), max_length=1, overflow="reject-publish")
    assert confirms(client, 3) == "aan"
    apply(server)
    assert confirms(client, 1) == "a"


@pytest.mark.needs("inspection", "personality rabbitmq-4.2")
def test_new_delivery_limit_applies_to_unacknowledged_message() -> None:
    server = Server("rabbitmq-4.2")
    client = server.client()
    declare(client).fill("q", b"1").get("q")
    apply(server, delivery_limit=0)
    assert client.nack(1).count("q") == 0


@pytest.mark.needs("virtual time", "inspection", "personality rabbitmq-4.2")
def test_new_expires_is_counted_from_last_use_of_queue() -> None:
    server = Server("rabbitmq-4.2")
    declare(server.client())
    server.advance(7)
    apply(server, expires=8.0)
    server.advance(0.75)
    assert "q" in server.vhost.queues
    server.advance(0.25)
    assert "q" not in server.vhost.queues
