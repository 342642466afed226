"""Messages that come back to a quorum queue: what is counted, where they go, and when they die.

RabbitMQ: documented; measured. What differs between its versions is told by personality.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.quorum import ALL, RABBITMQ, client_of, counts, declare
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

FOR_EVER = -1
"""A delivery limit that is none, from 4.0 on."""


def nack(client: Client) -> None:
    client.nack(0, multiple=True)


def reject(client: Client) -> None:
    for tag in (1, 2, 3):
        client.reject(tag, requeue=True)


def recover(client: Client) -> None:
    client.perform(m.BasicRecover(requeue=True))


def close(client: Client) -> Client:
    return client.close_channel().open_channel()


def held(name: str, **asked: Any) -> Client:
    """A client that has got three messages, a, b and c; d is still in the queue."""
    client = client_of(name, **asked).fill("q", b"a", b"b", b"c", b"d")
    for _ in range(3):
        client.get("q")
    return client


def got(client: Client) -> tuple[bool, int | None, int | None]:
    """Get and hold the next message: whether it is redelivered, and its counts."""
    content = client.fetch("q")
    return counts(content)


# --- counts -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_never_requeued_message_has_no_delivery_count(name: str) -> None:
    content = client_of(name).fill("q", b"1").get("q")
    assert content is not None and content.properties.headers is None and not content.method.redelivered


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "spec"])
@pytest.mark.parametrize("back", [nack, recover, close])
def test_delivery_count_includes_every_requeue_up_to_4_2(name: str, back: Callable[[Client], None]) -> None:
    client = client_of(name, delivery_limit=5).fill("q", b"1")
    for count in (1, 2):
        got(client)
        back(client)
        assert got(client) == (True, count * 2 - 1, None)
        back(client)


@pytest.mark.needs("personality rabbitmq-4.3")
@rows(
    "back, first, second",
    (nack, (True, None, 1), (True, None, 2)),
    (recover, (True, None, 1), (True, None, 2)),
    (close, (True, 1, 1), (True, 2, 2)),
)
def test_failures_and_requeues_are_counted_separately_since_4_3(
    back: Callable[[Client], None], first: tuple[bool, int, int], second: tuple[bool, int, int]
) -> None:
    client = client_of("rabbitmq-4.3", delivery_limit=5).fill("q", b"1")
    got(client)
    back(client)
    assert got(client) == first
    back(client)
    assert got(client) == second


@pytest.mark.needs("personality rabbitmq-4.3")
def test_reject_increments_delivery_count_and_nack_does_not_since_4_3() -> None:
    client = client_of("rabbitmq-4.3").fill("q", b"1")
    got(client)
    client.reject(1, requeue=True)
    assert got(client) == (True, 1, 1)
    client.nack(2)
    assert got(client) == (True, 1, 2)
    client.reject(3, requeue=True)
    assert got(client) == (True, 2, 3)


@pytest.mark.parametrize("name", RABBITMQ)
def test_delivery_to_consumer_has_delivery_count_after_requeue(name: str) -> None:
    client = client_of(name).fill("q", b"1")
    client.consume("q").delivery()
    client.reject(1, requeue=True)
    expected = (True, 1, 1) if name == "rabbitmq-4.3" else (True, 1, None)
    assert counts(client.delivery()) == expected


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2", "rabbitmq-4.3"])
def test_x_delivery_count_is_a_64_bit_integer(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1").get("q")
    client.reject(1, requeue=True).send(m.BasicGet(queue="q", no_ack=True))
    assert b"x-delivery-countl\0\0\0\0\0\0\0\x01" in client.inbox[1].payload


@pytest.mark.parametrize("name", RABBITMQ)
def test_x_delivery_count_of_publisher_is_replaced_after_requeue(name: str) -> None:
    client = client_of(name)
    client.publish(b"1", routing_key="q", headers={"x-delivery-count": 7, "other": "kept"})
    content = client.get("q")
    assert content is not None and counts(content)[:2] == (False, 7)
    content = client.reject(1, requeue=True).get("q")
    assert content is not None and counts(content)[:2] == (True, 1)
    assert (content.properties.headers or {})["other"] == "kept"


@pytest.mark.parametrize("name", ALL)
def test_messages_of_cancelled_consumer_stay_unacknowledged(name: str) -> None:
    client = client_of(name).fill("q", b"1")
    client.consume("q", "t").delivery()
    client.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk)
    assert client.count("q") == 0
    assert client.nack(1).count("q") == 1


# --- delivery limit -----------------------------------------------------------------------------------------
def deliveries_until_gone(client: Client, back: Callable[[Client, int], None], most: int = 50) -> int:
    """How often the one message of the queue is delivered, if it is given back each time."""
    for count in range(most):
        content = client.get("q")
        if content is None:
            return count
        back(client, content.method.delivery_tag)
    return most


def by_reject(client: Client, tag: int) -> None:
    client.reject(tag, requeue=True)


def by_nack(client: Client, tag: int) -> None:
    client.nack(tag)


def by_closing(client: Client, _tag: int) -> None:
    close(client)


@pytest.mark.parametrize("name", RABBITMQ)
@pytest.mark.parametrize("limit", [0, 1, 2])
@pytest.mark.parametrize("back", [by_reject, by_closing])
def test_message_is_delivered_one_time_more_than_delivery_limit(
    name: str, limit: int, back: Callable[[Client, int], None]
) -> None:
    client = client_of(name, delivery_limit=limit).fill("q", b"1")
    assert deliveries_until_gone(client, back) == limit + 1


@pytest.mark.parametrize(
    ("name", "deliveries"),
    [("rabbitmq-3.13", 50), ("rabbitmq-4.0", 21), ("rabbitmq-4.2", 21), ("rabbitmq-4.3", 21), ("spec", 21)],
)
def test_default_delivery_limit_is_20_since_4_0(name: str, deliveries: int) -> None:
    client = client_of(name).fill("q", b"1")
    assert deliveries_until_gone(client, by_reject) == deliveries


@pytest.mark.parametrize(("name", "deliveries"), [("rabbitmq-4.2", 2), ("rabbitmq-4.3", 50)])
def test_nack_does_not_count_against_delivery_limit_since_4_3(name: str, deliveries: int) -> None:
    client = client_of(name, delivery_limit=1).fill("q", b"1")
    assert deliveries_until_gone(client, by_nack) == deliveries


@pytest.mark.parametrize(
    ("name", "deliveries"),
    [("rabbitmq-3.13", 1), ("rabbitmq-4.0", 50), ("rabbitmq-4.2", 50), ("rabbitmq-4.3", 50)],
)
def test_negative_delivery_limit_means_unlimited_since_4_0(name: str, deliveries: int) -> None:
    client = client_of(name, delivery_limit=-1).fill("q", b"1")
    assert deliveries_until_gone(client, by_reject) == deliveries


@pytest.mark.parametrize(
    ("name", "deliveries"),
    [("rabbitmq-3.13", 50), ("rabbitmq-4.0", 50), ("rabbitmq-4.2", 21), ("rabbitmq-4.3", 21)],
)
def test_delivery_limit_of_wrong_type_is_none_up_to_4_0_and_20_since_4_2(name: str, deliveries: int) -> None:
    client = client_of(name, delivery_limit="abc").fill("q", b"1")
    assert deliveries_until_gone(client, by_reject) == deliveries


# --- where they go ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("back", [nack, reject, recover, close])
def test_requeued_messages_are_first_with_delivery_limit(name: str, back: Callable[[Client], None]) -> None:
    client = held(name, delivery_limit=5)
    back(client)
    assert client.empty("q") == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("name", ALL)
def test_requeued_messages_are_in_the_order_of_their_requeueing(name: str) -> None:
    client = held(name, delivery_limit=5)
    for tag in (2, 1, 3):
        client.reject(tag, requeue=True)
    assert client.empty("q") == [b"b", b"a", b"c", b"d"]


@rows("name", "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
@pytest.mark.parametrize("back", [nack, recover])
def test_messages_requeued_by_nack_or_recover_are_last_without_delivery_limit_up_to_4_2(
    name: str, back: Callable[[Client], None]
) -> None:
    limit = {} if name == "rabbitmq-3.13" else {"delivery_limit": FOR_EVER}
    client = held(name, **limit)
    back(client)
    last = [b"a", b"b", b"c", b"d"] if name == "rabbitmq-4.3" else [b"d", b"a", b"b", b"c"]
    assert client.empty("q") == last


@rows(
    "name, order",
    ("rabbitmq-3.13", b"dabc"),
    ("rabbitmq-4.0", b"dabc"),
    ("rabbitmq-4.2", b"dabc"),
    ("rabbitmq-4.3", b"abcd"),
)
def test_rejected_messages_are_last_without_delivery_limit_up_to_4_2(name: str, order: bytes) -> None:
    limit = {} if name == "rabbitmq-3.13" else {"delivery_limit": FOR_EVER}
    client = held(name, **limit)
    reject(client)
    assert b"".join(client.empty("q")) == order


@pytest.mark.parametrize("name", RABBITMQ)
def test_messages_requeued_by_channel_close_are_first_without_delivery_limit(name: str) -> None:
    limit = {} if name == "rabbitmq-3.13" else {"delivery_limit": FOR_EVER}
    client = held(name, **limit)
    assert close(client).empty("q") == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0"])
def test_nacked_messages_are_first_if_delivery_limit_has_wrong_type(name: str) -> None:
    client = held(name, delivery_limit="abc")
    nack(client)
    assert client.empty("q") == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_message_requeued_at_the_end_loses_its_priority(name: str) -> None:
    client = client_of(name, delivery_limit=FOR_EVER)
    client.publish(b"urgent", routing_key="q", priority=9).get("q")
    assert client.publish(b"normal", routing_key="q").nack(1).empty("q") == [b"normal", b"urgent"]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_message_requeued_at_the_end_counts_as_the_newest(name: str) -> None:
    client = client_of(name, delivery_limit=FOR_EVER)
    client.publish(b"normal", routing_key="q").get("q")
    for body in (b"1", b"2", b"3"):
        client.publish(body, routing_key="q", priority=9)
    client.nack(1)
    # The third turn is the normal lane's, but what waits there has come last.
    assert client.empty("q") == [b"1", b"2", b"3", b"normal"]


@rows("name", "rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
def test_messages_of_one_multiple_nack_are_requeued_in_order_of_consumer_tags(name: str) -> None:
    client = client_of(name, delivery_limit=9)
    client.qos(2).consume("q", "z").consume("q", "y")
    assert client.fill("q", b"a", b"b", b"c", b"d").bodies() == [b"a", b"b", b"c", b"d"]
    for tag in "zy":
        client.call(m.BasicCancel(consumer_tag=tag), m.BasicCancelOk)
    assert client.nack(4, multiple=True).empty("q") == [b"b", b"d", b"a", b"c"]


@pytest.mark.parametrize(("name", "order"), [("rabbitmq-3.13", b"ebdac"), ("rabbitmq-4.2", b"acbde")])
def test_messages_of_closed_channel_are_requeued_by_consumer(name: str, order: bytes) -> None:
    client = client_of(name)
    client.fill("q", b"e").get("q")
    client.qos(2).consume("q", "z").consume("q", "y")
    assert client.fill("q", b"a", b"b", b"c", b"d").bodies() == [b"a", b"b", b"c", b"d"]
    close(client)
    assert b"".join(client.empty("q")) == order


@pytest.mark.parametrize("name", RABBITMQ)
def test_messages_of_lost_connections_are_requeued_one_connection_after_another(name: str) -> None:
    server = Server(name)
    one, other = server.client(), server.client()
    declare(one).fill("q", b"a", b"b", b"c", b"d", b"e")
    for client in (one, one, other, other):
        client.get("q")
    other.drop()
    one.drop()
    assert server.client().empty("q") == [b"c", b"d", b"a", b"b", b"e"]


# --- delayed retry ------------------------------------------------------------------------------------------


RETRY = {"delayed_retry_type": "all", "delayed_retry_min": 1000}


def delayed(server: Server, **asked: Any) -> Client:
    client = server.client()
    declare(client, **{**RETRY, **asked}).fill("q", b"1").get("q")
    return client


@pytest.mark.needs("virtual time")
def test_rejected_message_with_delayed_retry_is_ready_after_delayed_retry_min() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server)
    assert client.reject(1, requeue=True).count("q") == 0
    assert client.after(0.999).get("q") is None
    assert client.after(0.001).empty("q") == [b"1"]


@pytest.mark.needs("virtual time")
def test_each_retry_waits_for_its_own_time() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server)
    client.fill("q", b"2").get("q")
    client.reject(1, requeue=True).after(0.5).reject(2, requeue=True)
    assert client.after(0.5).count("q") == 1
    assert client.after(0.5).empty("q") == [b"1", b"2"]


@pytest.mark.needs("virtual time", "inspection")
def test_bytes_of_delayed_retry_are_not_ready_bytes_during_the_delay() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server)
    queue = server.vhost.queues["q"]
    client.reject(1, requeue=True)
    size = queue.parked.amount()[1]
    assert queue.parked.amount() == (1, size) and size
    server.advance(1)
    assert queue.parked.amount() == (0, 0)
    assert queue.ready_bytes == size


@pytest.mark.needs("personality rabbitmq-4.3")
@rows(
    "kind, back, waits",
    ("all", by_reject, True),
    ("all", by_nack, True),
    ("all", by_closing, True),
    ("failed", by_reject, True),
    ("failed", by_nack, False),
    ("failed", by_closing, True),
    ("returned", by_reject, False),
    ("returned", by_nack, True),
    ("returned", by_closing, False),
    ("disabled", by_reject, False),
    ("nonsense", by_reject, False),
    (5, by_nack, False),
)
def test_delayed_retry_type_decides_if_rejected_nacked_or_lost_message_is_delayed(
    kind: Any, back: Callable[[Client, int], None], waits: bool
) -> None:
    client = delayed(Server("rabbitmq-4.3"), delayed_retry_type=kind)
    back(client, 1)
    assert client.count("q") == (0 if waits else 1)


@pytest.mark.needs("personality rabbitmq-4.3")
@pytest.mark.parametrize("least", [0, -5, "1000", None])
def test_message_is_requeued_at_once_without_valid_delayed_retry_min(least: Any) -> None:
    client = delayed(Server("rabbitmq-4.3"), delayed_retry_min=least)
    assert client.reject(1, requeue=True).count("q") == 1


def waits_for(server: Server, client: Client, back: Callable[[Client, int], None]) -> list[int]:
    """For how many seconds the message waits after each of four deliveries; it is held already."""
    found = []
    tag = 1
    for _ in range(4):
        back(client, tag)
        seconds = 0
        while client.count("q") == 0:
            server.advance(1)
            seconds += 1
        found.append(seconds)
        tag = client.fetch("q").method.delivery_tag
    return found


@pytest.mark.needs("virtual time")
@rows(
    "back, most, waits",
    (by_reject, 3000, [1, 2, 3, 3]),
    (by_reject, None, [1, 1, 1, 1]),
    (by_reject, 500, [1, 1, 1, 1]),
    (by_nack, 3000, [1, 1, 1, 1]),
)
def test_delay_of_retry_grows_with_each_failure_up_to_delayed_retry_max(
    back: Callable[[Client, int], None], most: int | None, waits: list[int]
) -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server, **({} if most is None else {"delayed_retry_max": most}))
    assert waits_for(server, client, back) == waits


@pytest.mark.needs("virtual time")
def test_message_above_delivery_limit_is_not_retried() -> None:
    server = Server("rabbitmq-4.3")
    assert delayed(server, delivery_limit=0).reject(1, requeue=True).after(10).count("q") == 0


@pytest.mark.needs("personality rabbitmq-4.3")
def test_nacked_message_is_delayed_without_delivery_limit() -> None:
    assert delayed(Server("rabbitmq-4.3"), delivery_limit=FOR_EVER).nack(1).count("q") == 0


@pytest.mark.needs("virtual time")
def test_delayed_retries_are_ordered_with_requeued_messages_before_new_ones() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server, delayed_retry_type="failed")
    client.fill("q", b"2", b"3", b"4").get("q")
    client.get("q")
    assert client.reject(1, requeue=True).nack(3).after(1).nack(2).empty("q") == [b"3", b"1", b"2", b"4"]


@pytest.mark.needs("virtual time")
def test_delayed_retry_is_delivered_to_waiting_consumer_after_its_delay() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server).consume("q")
    client.reject(1, requeue=True).expect_nothing()
    server.advance(1)
    assert counts(client.delivery()) == (True, 1, 1)


@pytest.mark.needs("virtual time")
def test_delayed_retries_count_against_x_max_length_and_are_purged() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server, max_length=1).reject(1, requeue=True)
    assert client.fill("q", b"2").count("q") == 0
    assert client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == 1
    assert client.after(10).fill("q", b"3").empty("q") == [b"3"]


@pytest.mark.needs("personality rabbitmq-4.2")
def test_delayed_retry_has_no_effect_before_4_3() -> None:
    assert delayed(Server("rabbitmq-4.2")).reject(1, requeue=True).count("q") == 1


@pytest.mark.needs("virtual time")
def test_delayed_retry_is_cancelled_when_queue_is_deleted() -> None:
    server = Server("rabbitmq-4.3")
    delayed(server).reject(1, requeue=True).perform(m.QueueDelete(queue="q"))
    server.advance(10)
    assert not list(server.state.timers.pending())
