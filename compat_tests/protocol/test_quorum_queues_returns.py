"""Messages that come back to a quorum queue: what is counted, where they go, and when they die.

RabbitMQ: documented; measured. What differs between its versions is told by personality.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.protocol.driver import Client, Server
from compat_tests.protocol.quorum import ALL, RABBITMQ, client_of, counts, declare
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

FOR_EVER = -1
"""A delivery limit that is none, from 4.0 on."""


def nack(client: Client) -> None:
    client.nack(0, multiple=True)


def reject(client: Client) -> None:
    for tag in (1, 2, 3):
        client.reject(tag, requeue=True)


def recover(client: Client) -> None:
    client.call(m.BasicRecover(requeue=True), m.BasicRecoverOk)


def close(client: Client) -> None:
    client.close_channel()
    client.open_channel()


def held(name: str, **asked: Any) -> Client:
    """A client that has got three messages, a, b and c; d is still in the queue."""
    client = client_of(name, **asked)
    client.fill("q", b"a", b"b", b"c", b"d")
    for _ in range(3):
        client.get("q")
    return client


def got(client: Client) -> tuple[bool, int | None, int | None]:
    """Get and hold the next message: whether it is redelivered, and its counts."""
    content = client.get("q")
    assert content is not None
    return counts(content)


# --- counts -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_a_message_that_never_came_back_has_no_count(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1")
    content = client.get("q")
    assert content is not None and content.properties.headers is None and not content.method.redelivered


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "spec"])
@pytest.mark.parametrize("back", [nack, recover, close])
def test_every_return_is_counted_up_to_4_2(name: str, back: Callable[[Client], None]) -> None:
    client = client_of(name, delivery_limit=5)
    client.fill("q", b"1")
    for count in (1, 2):
        got(client)
        back(client)
        assert got(client) == (True, count * 2 - 1, None)
        back(client)


@pytest.mark.parametrize(
    ("back", "first", "second"),
    [
        (nack, (True, None, 1), (True, None, 2)),
        (recover, (True, None, 1), (True, None, 2)),
        (close, (True, 1, 1), (True, 2, 2)),
    ],
)
def test_from_4_3_on_failures_are_counted_beside_all_returns(
    back: Callable[[Client], None], first: tuple[bool, int, int], second: tuple[bool, int, int]
) -> None:
    client = client_of("rabbitmq-4.3", delivery_limit=5)
    client.fill("q", b"1")
    got(client)
    back(client)
    assert got(client) == first
    back(client)
    assert got(client) == second


def test_from_4_3_on_a_reject_is_a_failure_and_a_nack_is_none() -> None:
    client = client_of("rabbitmq-4.3")
    client.fill("q", b"1")
    got(client)
    client.reject(1, requeue=True)
    assert got(client) == (True, 1, 1)
    client.nack(2)
    assert got(client) == (True, 1, 2)
    client.reject(3, requeue=True)
    assert got(client) == (True, 2, 3)


@pytest.mark.parametrize("name", RABBITMQ)
def test_consumers_see_the_counts_too(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1")
    client.consume("q")
    client.delivery()
    client.reject(1, requeue=True)
    expected = (True, 1, 1) if name == "rabbitmq-4.3" else (True, 1, None)
    assert counts(client.delivery()) == expected


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2", "rabbitmq-4.3"])
def test_a_count_is_a_long(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1")
    client.get("q")
    client.reject(1, requeue=True)
    client.send(m.BasicGet(queue="q", no_ack=True))
    assert b"x-delivery-countl\0\0\0\0\0\0\0\x01" in client.inbox[1].payload


@pytest.mark.parametrize("name", RABBITMQ)
def test_a_publishers_own_count_is_replaced_once_the_message_comes_back(name: str) -> None:
    client = client_of(name)
    client.publish(b"1", routing_key="q", headers={"x-delivery-count": 7, "other": "kept"})
    content = client.get("q")
    assert content is not None and counts(content)[:2] == (False, 7)
    client.reject(1, requeue=True)
    content = client.get("q")
    assert content is not None and counts(content)[:2] == (True, 1)
    assert (content.properties.headers or {})["other"] == "kept"


@pytest.mark.parametrize("name", ALL)
def test_a_cancelled_consumer_keeps_what_it_holds(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1")
    client.consume("q", "t")
    client.delivery()
    client.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk)
    assert client.count("q") == 0
    client.nack(1)
    assert client.count("q") == 1


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
def test_a_message_is_delivered_once_more_than_the_limit(
    name: str, limit: int, back: Callable[[Client, int], None]
) -> None:
    client = client_of(name, delivery_limit=limit)
    client.fill("q", b"1")
    assert deliveries_until_gone(client, back) == limit + 1


@pytest.mark.parametrize(
    ("name", "deliveries"),
    [("rabbitmq-3.13", 50), ("rabbitmq-4.0", 21), ("rabbitmq-4.2", 21), ("rabbitmq-4.3", 21), ("spec", 21)],
)
def test_the_limit_where_the_queue_has_none(name: str, deliveries: int) -> None:
    client = client_of(name)
    client.fill("q", b"1")
    assert deliveries_until_gone(client, by_reject) == deliveries


@pytest.mark.parametrize(("name", "deliveries"), [("rabbitmq-4.2", 2), ("rabbitmq-4.3", 50)])
def test_from_4_3_on_a_nack_reaches_no_limit(name: str, deliveries: int) -> None:
    client = client_of(name, delivery_limit=1)
    client.fill("q", b"1")
    assert deliveries_until_gone(client, by_nack) == deliveries


@pytest.mark.parametrize(
    ("name", "deliveries"),
    [("rabbitmq-3.13", 1), ("rabbitmq-4.0", 50), ("rabbitmq-4.2", 50), ("rabbitmq-4.3", 50)],
)
def test_a_negative_limit_is_none_since_4_0(name: str, deliveries: int) -> None:
    client = client_of(name, delivery_limit=-1)
    client.fill("q", b"1")
    assert deliveries_until_gone(client, by_reject) == deliveries


@pytest.mark.parametrize(
    ("name", "deliveries"),
    [("rabbitmq-3.13", 50), ("rabbitmq-4.0", 50), ("rabbitmq-4.2", 21), ("rabbitmq-4.3", 21)],
)
def test_a_limit_that_is_no_number(name: str, deliveries: int) -> None:
    client = client_of(name, delivery_limit="abc")
    client.fill("q", b"1")
    assert deliveries_until_gone(client, by_reject) == deliveries


# --- where they go ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("back", [nack, reject, recover, close])
def test_with_a_limit_what_came_back_is_in_front(name: str, back: Callable[[Client], None]) -> None:
    client = held(name, delivery_limit=5)
    back(client)
    assert client.empty("q") == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("name", ALL)
def test_what_came_back_is_in_the_order_in_which_it_did(name: str) -> None:
    client = held(name, delivery_limit=5)
    for tag in (2, 1, 3):
        client.reject(tag, requeue=True)
    assert client.empty("q") == [b"b", b"a", b"c", b"d"]


@pytest.mark.parametrize(
    "name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3"]
)
@pytest.mark.parametrize("back", [nack, recover])
def test_without_a_limit_what_is_given_back_is_last(name: str, back: Callable[[Client], None]) -> None:
    limit = {} if name == "rabbitmq-3.13" else {"delivery_limit": FOR_EVER}
    client = held(name, **limit)
    back(client)
    assert client.empty("q") == [b"d", b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("rabbitmq-3.13", b"dabc"),
        ("rabbitmq-4.0", b"dabc"),
        ("rabbitmq-4.2", b"dabc"),
        ("rabbitmq-4.3", b"abcd"),
    ],
)
def test_without_a_limit_a_reject_is_a_nack_up_to_4_2(name: str, order: bytes) -> None:
    limit = {} if name == "rabbitmq-3.13" else {"delivery_limit": FOR_EVER}
    client = held(name, **limit)
    reject(client)
    assert b"".join(client.empty("q")) == order


@pytest.mark.parametrize("name", RABBITMQ)
def test_without_a_limit_what_is_lost_is_in_front(name: str) -> None:
    limit = {} if name == "rabbitmq-3.13" else {"delivery_limit": FOR_EVER}
    client = held(name, **limit)
    close(client)
    assert client.empty("q") == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0"])
def test_with_a_limit_that_is_no_number_it_is_in_front(name: str) -> None:
    client = held(name, delivery_limit="abc")
    nack(client)
    assert client.empty("q") == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3"])
def test_what_goes_last_has_lost_its_priority(name: str) -> None:
    client = client_of(name, delivery_limit=FOR_EVER)
    client.publish(b"urgent", routing_key="q", priority=9)
    client.get("q")
    client.publish(b"normal", routing_key="q")
    client.nack(1)
    assert client.empty("q") == [b"normal", b"urgent"]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_what_goes_last_is_young_again(name: str) -> None:
    client = client_of(name, delivery_limit=FOR_EVER)
    client.publish(b"normal", routing_key="q")
    client.get("q")
    for body in (b"1", b"2", b"3"):
        client.publish(body, routing_key="q", priority=9)
    client.nack(1)
    # The third turn is the normal lane's, but what waits there has come last.
    assert client.empty("q") == [b"1", b"2", b"3", b"normal"]


@pytest.mark.parametrize(
    "name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3"]
)
def test_many_are_given_back_by_consumer_tag(name: str) -> None:
    client = client_of(name, delivery_limit=9)
    client.qos(2)
    client.consume("q", "z")
    client.consume("q", "y")
    client.fill("q", b"a", b"b", b"c", b"d")
    assert client.bodies() == [b"a", b"b", b"c", b"d"]
    for tag in "zy":
        client.call(m.BasicCancel(consumer_tag=tag), m.BasicCancelOk)
    client.nack(4, multiple=True)
    assert client.empty("q") == [b"b", b"d", b"a", b"c"]


@pytest.mark.parametrize(("name", "order"), [("rabbitmq-3.13", b"ebdac"), ("rabbitmq-4.2", b"acbde")])
def test_what_a_channel_held_comes_back_by_consumer(name: str, order: bytes) -> None:
    client = client_of(name)
    client.fill("q", b"e")
    client.get("q")
    client.qos(2)
    client.consume("q", "z")
    client.consume("q", "y")
    client.fill("q", b"a", b"b", b"c", b"d")
    assert client.bodies() == [b"a", b"b", b"c", b"d"]
    close(client)
    assert b"".join(client.empty("q")) == order


@pytest.mark.parametrize("name", RABBITMQ)
def test_one_connection_after_the_other(name: str) -> None:
    server = Server(name)
    one, other = server.client(), server.client()
    declare(one)
    one.fill("q", b"a", b"b", b"c", b"d", b"e")
    for client in (one, one, other, other):
        client.get("q")
    other.drop()
    one.drop()
    assert server.client().empty("q") == [b"c", b"d", b"a", b"b", b"e"]


# --- delayed retry ------------------------------------------------------------------------------------------


RETRY = {"delayed_retry_type": "all", "delayed_retry_min": 1000}


def delayed(server: Server, **asked: Any) -> Client:
    client = server.client()
    declare(client, **{**RETRY, **asked})
    client.fill("q", b"1")
    client.get("q")
    return client


def test_a_retry_waits() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server)
    client.reject(1, requeue=True)
    assert client.count("q") == 0
    server.advance(0.999)
    assert client.get("q") is None
    server.advance(0.001)
    assert client.empty("q") == [b"1"]


def test_each_retry_waits_for_its_own_time() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server)
    client.fill("q", b"2")
    client.get("q")
    client.reject(1, requeue=True)
    server.advance(0.5)
    client.reject(2, requeue=True)
    server.advance(0.5)
    assert client.count("q") == 1
    server.advance(0.5)
    assert client.empty("q") == [b"1", b"2"]


def test_the_bytes_of_a_retry_are_counted_while_it_waits() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server)
    queue = server.vhost.queues["q"]
    client.reject(1, requeue=True)
    size = queue.parked.amount()[1]
    assert queue.parked.amount() == (1, size) and size
    server.advance(1)
    assert queue.parked.amount() == (0, 0)
    assert queue.ready_bytes == size


@pytest.mark.parametrize(
    ("kind", "back", "waits"),
    [
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
    ],
)
def test_what_is_retried_later(kind: Any, back: Callable[[Client, int], None], waits: bool) -> None:
    client = delayed(Server("rabbitmq-4.3"), delayed_retry_type=kind)
    back(client, 1)
    assert client.count("q") == (0 if waits else 1)


@pytest.mark.parametrize("least", [0, -5, "1000", None])
def test_there_is_no_retry_without_a_time(least: Any) -> None:
    client = delayed(Server("rabbitmq-4.3"), delayed_retry_min=least)
    client.reject(1, requeue=True)
    assert client.count("q") == 1


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
        content = client.get("q")
        assert content is not None
        tag = content.method.delivery_tag
    return found


@pytest.mark.parametrize(
    ("back", "most", "waits"),
    [
        (by_reject, 3000, [1, 2, 3, 3]),
        (by_reject, None, [1, 1, 1, 1]),
        (by_reject, 500, [1, 1, 1, 1]),
        (by_nack, 3000, [1, 1, 1, 1]),
    ],
)
def test_every_failure_makes_it_wait_longer(
    back: Callable[[Client, int], None], most: int | None, waits: list[int]
) -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server, **({} if most is None else {"delayed_retry_max": most}))
    assert waits_for(server, client, back) == waits


def test_the_limit_comes_before_the_retry() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server, delivery_limit=0)
    client.reject(1, requeue=True)
    server.advance(10)
    assert client.count("q") == 0


def test_without_a_limit_what_is_given_back_is_not_retried_later() -> None:
    client = delayed(Server("rabbitmq-4.3"), delivery_limit=FOR_EVER)
    client.nack(1)
    assert client.count("q") == 1


def test_retries_go_before_what_is_new_and_behind_what_came_back() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server, delayed_retry_type="failed")
    client.fill("q", b"2", b"3", b"4")
    client.get("q")
    client.get("q")
    client.reject(1, requeue=True)
    client.nack(3)
    server.advance(1)
    client.nack(2)
    assert client.empty("q") == [b"3", b"1", b"2", b"4"]


def test_a_retry_goes_to_the_consumer_that_waits_for_it() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server)
    client.consume("q")
    client.reject(1, requeue=True)
    client.expect_nothing()
    server.advance(1)
    assert counts(client.delivery()) == (True, 1, 1)


def test_retries_are_purged_and_count_for_limits() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server, max_length=1)
    client.reject(1, requeue=True)
    client.fill("q", b"2")
    assert client.count("q") == 0
    assert client.call(m.QueuePurge(queue="q"), m.QueuePurgeOk).message_count == 1
    server.advance(10)
    client.fill("q", b"3")
    assert client.empty("q") == [b"3"]


def test_there_are_no_retries_before_4_3() -> None:
    client = delayed(Server("rabbitmq-4.2"))
    client.reject(1, requeue=True)
    assert client.count("q") == 1


def test_a_deleted_queue_retries_nothing() -> None:
    server = Server("rabbitmq-4.3")
    client = delayed(server)
    client.reject(1, requeue=True)
    client.call(m.QueueDelete(queue="q"), m.QueueDeleteOk)
    server.advance(10)
    assert not list(server.state.timers.pending())
