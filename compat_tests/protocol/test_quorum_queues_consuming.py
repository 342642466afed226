"""Quorum queues: who gets which message, and in what order (RabbitMQ: documented; measured)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.protocol.driver import Client, Server
from compat_tests.protocol.quorum import ALL, RABBITMQ, client_of, counts, declare
from compat_tests.protocol.test_exchange import refused
from fakeamqp.model.personality import PERSONALITIES
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

PLACE = "queue 'q' in vhost '/'"
SINGLE = {"single_active_consumer": True}


def came(client: Client, channel: int = 1) -> list[tuple[str, bytes]]:
    """Consumer and body of all deliveries that have come."""
    found = []
    while client.inbox:
        content = client.delivery(channel)
        found.append((content.method.consumer_tag, content.body))
    return found


# --- consumers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_consumers_share_no_window(name: str) -> None:
    client = client_of(name)
    client.qos(5, global_=True)
    client.send(m.BasicConsume(queue="q"))
    text = f"NOT_IMPLEMENTED - {PLACE} does not support global qos"
    assert client.expect_connection_close(540).reply_text == text


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2"])
def test_a_shared_window_without_limit_is_none(name: str) -> None:
    client = client_of(name)
    client.qos(0, global_=True)
    client.consume("q")
    client.fill("q", b"1", b"2")
    assert client.bodies() == [b"1", b"2"]


def test_a_window_shared_later_is_not_theirs() -> None:
    client = client_of("rabbitmq-4.2")
    client.consume("q")
    client.qos(1, global_=True)
    client.fill("q", b"1", b"2")
    assert client.bodies() == [b"1", b"2"]


def test_a_get_takes_no_notice_of_a_shared_window() -> None:
    client = client_of("rabbitmq-4.2")
    client.qos(1, global_=True)
    client.fill("q", b"1", b"2")
    assert client.get("q") and client.get("q")


def test_the_windows_of_the_documents_hold_here_too() -> None:
    client = client_of("spec")
    client.qos(2)
    client.consume("q", "a")
    client.consume("q", "b")
    client.fill("q", b"1", b"2", b"3")
    assert came(client) == [("a", b"1"), ("b", b"2")]
    client.ack(2)
    assert came(client) == [("a", b"3")]


def test_a_shared_window_may_be_opened_by_another_queue() -> None:
    client = client_of("spec")
    client.declare("other")
    client.qos(1)
    client.consume("other")
    client.fill("other", b"1")
    client.delivery()
    client.consume("q")
    client.fill("q", b"2")
    client.expect_nothing()
    client.ack(1)
    assert client.bodies() == [b"2"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_without_a_limit_a_consumer_holds_two_thousand(name: str) -> None:
    client = client_of(name)
    client.fill("q", *[b""] * 2001)
    client.consume("q")
    for _ in range(2000):
        client.delivery()
    client.expect_nothing()
    client.ack(1)
    client.delivery()


@pytest.mark.parametrize("name", ALL)
def test_without_acknowledgements_there_is_no_limit(name: str) -> None:
    client = client_of(name)
    client.fill("q", *[b"x"] * 2100)
    client.qos(1)
    client.consume("q", no_ack=True)
    assert len(client.bodies()) == 2100


@pytest.mark.parametrize("name", ALL)
def test_nobody_is_exclusive(name: str) -> None:
    client = client_of(name)
    for tag in "abc":
        client.consume("q", tag, exclusive=True)
    client.fill("q", b"1", b"2", b"3", b"4")
    assert [tag for tag, _ in came(client)] == ["a", "b", "c", "a"]
    assert client.get("q") is None


@pytest.mark.parametrize(
    ("name", "argument", "value", "reason"),
    [
        ("rabbitmq-4.2", "x-priority", "high", ': "expected integer, got longstr"'),
        ("rabbitmq-4.2", "x-stream-offset", "first", " of queue type rabbit_quorum_queue"),
        ("rabbitmq-4.3", "x-stream-filter", "a", " of queue type rabbit_quorum_queue"),
        ("rabbitmq-4.3", "x-consumer-timeout", -1, ": {value_negative,-1}"),
        ("rabbitmq-4.3", "x-consumer-timeout", "5", ': "expected integer, got longstr"'),
    ],
)
def test_arguments_of_consumers_are_checked(name: str, argument: str, value: Any, reason: str) -> None:
    method = m.BasicConsume(queue="q", arguments={argument: value})
    refused(
        client_of(name), method, 406, f"PRECONDITION_FAILED - invalid arg '{argument}' for {PLACE}{reason}"
    )


@pytest.mark.parametrize("name", RABBITMQ)
def test_the_consume_ok_comes_first(name: str) -> None:
    client = client_of(name)
    client.fill("q", b"1")
    client.send(m.BasicConsume(queue="q", consumer_tag="t"))
    client.expect(m.BasicConsumeOk)
    client.delivery()


# --- whose turn it is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_a_consumer_with_credit_left_goes_to_the_end(name: str) -> None:
    client = client_of(name)
    client.consume("q", "a")
    client.consume("q", "b")
    client.fill("q", b"1", b"2", b"3")
    assert came(client) == [("a", b"1"), ("b", b"2"), ("a", b"3")]


@pytest.mark.parametrize("name", RABBITMQ)
def test_higher_priorities_go_first_as_long_as_they_have_credit(name: str) -> None:
    client = client_of(name)
    client.qos(2)
    client.consume("q", "low")
    client.consume("q", "high", arguments={"x-priority": 5})
    client.consume("q", "lowest", arguments={"x-priority": -5})
    client.fill("q", b"1", b"2", b"3", b"4", b"5")
    assert [tag for tag, _ in came(client)] == ["high", "high", "low", "low", "lowest"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_whoever_had_no_credit_gets_in_line_when_some_comes_back(name: str) -> None:
    client = client_of(name)
    client.qos(1)
    for tag in "abc":
        client.consume("q", tag)
    client.fill("q", b"1", b"2", b"3")
    assert [tag for tag, _ in came(client)] == ["a", "b", "c"]
    client.ack(3)
    client.ack(1)
    client.ack(2)
    client.fill("q", b"4", b"5", b"6")
    assert came(client) == [("c", b"4"), ("a", b"5"), ("b", b"6")]


@pytest.mark.parametrize("name", RABBITMQ)
def test_a_message_that_is_given_back_goes_to_who_waits(name: str) -> None:
    client = client_of(name)
    client.qos(1)
    client.consume("q", "a")
    client.fill("q", b"1")
    assert came(client) == [("a", b"1")]
    client.nack(1)
    assert came(client) == [("a", b"1")]
    client.consume("q", "b")
    client.nack(2)
    assert came(client) == [("b", b"1")]


@pytest.mark.parametrize("name", ALL)
def test_a_get_takes_the_next_message_beside_consumers(name: str) -> None:
    client = client_of(name)
    client.qos(1)
    client.consume("q")
    client.fill("q", b"1", b"2", b"3")
    client.delivery()
    got = client.get("q")
    assert got is not None
    assert (got.body, got.method.message_count) == (b"2", 1)


@pytest.mark.parametrize("name", ALL)
def test_octets_of_the_window_count_where_the_documents_say_so(name: str) -> None:
    client = client_of(name)
    if name == "spec":
        client.qos(0, size=10)
    client.consume("q")
    client.fill("q", b"x" * 8, b"x" * 8)
    assert len(client.bodies()) == (1 if name == "spec" else 2)


# --- message priorities -------------------------------------------------------------------------------------


def drained(client: Client, *priorities: int | None) -> list[int | None]:
    for priority in priorities:
        client.publish(routing_key="q", priority=priority)
    found = []
    while (content := client.get("q", no_ack=True)) is not None:
        found.append(content.properties.priority)
    return found


def test_priorities_mean_nothing_up_to_3_13() -> None:
    assert drained(client_of("rabbitmq-3.13"), 1, 9, None, 5) == [1, 9, None, 5]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_of_two_lanes_the_high_one_goes_first_and_every_third_turn_is_the_other_ones(name: str) -> None:
    low, high = [0, 1, 4, None], [5, 9, 255, 6, 7]
    assert drained(client_of(name), *low, *high) == [5, 9, 0, 255, 6, 1, 7, 4, None]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_the_third_turn_is_the_high_lanes_where_it_waited_longer(name: str) -> None:
    assert drained(client_of(name), 5, 6, 7, 0, 8, 1) == [5, 6, 7, 8, 0, 1]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_turns_are_counted_while_one_lane_is_empty(name: str) -> None:
    client = client_of(name)
    client.consume("q", "t", no_ack=True)
    client.fill("q", b"", b"")
    client.bodies()
    client.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk)
    assert drained(client, 0, 5, 6, 7) == [0, 5, 6, 7]


@pytest.mark.parametrize("name", ["rabbitmq-4.3", "spec"])
def test_levels_are_strict(name: str) -> None:
    published = [None, 0, 255, 31, 4, 32, 9, 5, 3]
    assert drained(client_of(name), *published) == [255, 31, 32, 9, 5, None, 4, 3, 0]


@pytest.mark.parametrize("name", ALL)
def test_what_came_back_goes_before_all_priorities(name: str) -> None:
    client = client_of(name, delivery_limit=5)
    client.publish(b"low", routing_key="q", priority=0)
    client.get("q")
    client.publish(b"high", routing_key="q", priority=9)
    client.nack(1)
    assert client.empty("q") == [b"low", b"high"]


# --- single active consumer ---------------------------------------------------------------------------------


def single(name: str | Any, channels: int = 3) -> Client:
    client = Server(name).client(channels=channels)
    declare(client, **SINGLE)
    return client


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("rabbitmq-3.13", "quorum"),
        ("rabbitmq-4.0", "quorum"),
        ("rabbitmq-4.2", '<<"quorum">>'),
        ("rabbitmq-4.3", '<<"quorum">>'),
    ],
)
def test_nothing_is_got_past_a_single_active_consumer(name: str, kind: str) -> None:
    text = (
        f"RESOURCE_LOCKED - cannot obtain access to locked {PLACE}. basic.get operations are not supported "
    )
    text += f"by {kind} queues with single active consumer"
    refused(single(name), m.BasicGet(queue="q"), 405, text)


@pytest.mark.parametrize("name", ALL)
def test_the_first_one_is_active_and_the_next_follows(name: str) -> None:
    client = single(name)
    for tag in "abc":
        client.consume("q", tag)
    client.fill("q", b"1", b"2")
    assert came(client) == [("a", b"1"), ("a", b"2")]
    client.call(m.BasicCancel(consumer_tag="a"), m.BasicCancelOk)
    client.fill("q", b"3")
    assert came(client) == [("b", b"3")]


@pytest.mark.parametrize("name", RABBITMQ)
def test_only_the_active_one_is_counted(name: str) -> None:
    client = single(name)
    client.consume("q", "a")
    client.consume("q", "b")
    assert client.declare("q", passive=True).consumer_count == 1
    client.fill("q", b"1")
    came(client)
    client.call(m.BasicCancel(consumer_tag="a"), m.BasicCancelOk)
    assert client.declare("q", passive=True).consumer_count == 2


@pytest.mark.parametrize("name", RABBITMQ)
def test_what_the_active_one_held_is_first_for_the_next(name: str) -> None:
    server = Server(name)
    client, other = server.client(), server.client()
    declare(client, **SINGLE)
    client.qos(2)
    client.consume("q", "a")
    client.fill("q", b"1", b"2", b"3")
    assert came(client) == [("a", b"1"), ("a", b"2")]
    other.consume("q", "b")
    client.close_channel()
    assert came(other) == [("b", b"1"), ("b", b"2"), ("b", b"3")]


def test_priorities_do_not_matter_for_the_active_one_up_to_3_13() -> None:
    client = single("rabbitmq-3.13")
    for tag, priority in (("a", 0), ("b", 1), ("c", 9)):
        client.consume("q", tag, no_ack=True, arguments={"x-priority": priority})
    client.fill("q", b"1")
    assert came(client) == [("a", b"1")]
    client.call(m.BasicCancel(consumer_tag="a"), m.BasicCancelOk)
    client.fill("q", b"2")
    assert came(client) == [("b", b"2")]


FROM_4_0 = ("rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3", "spec")


@pytest.mark.parametrize("name", FROM_4_0)
def test_a_higher_priority_takes_over_at_once_where_nothing_is_held(name: str) -> None:
    client = single(name)
    client.consume("q", "a")
    client.consume("q", "b", arguments={"x-priority": 1})
    client.fill("q", b"1")
    assert came(client) == [("b", b"1")]


@pytest.mark.parametrize("name", FROM_4_0)
def test_a_higher_priority_takes_over_once_nothing_is_held(name: str) -> None:
    client = single(name)
    client.qos(1)
    client.consume("q", "a")
    client.qos(0)
    client.fill("q", b"1")
    assert came(client) == [("a", b"1")]
    client.consume("q", "b", arguments={"x-priority": 1})
    client.fill("q", b"2", b"3")
    client.expect_nothing()
    client.ack(1)
    assert came(client) == [("b", b"2"), ("b", b"3")]
    client.call(m.BasicCancel(consumer_tag="b"), m.BasicCancelOk)
    client.fill("q", b"4")
    assert came(client) == [("a", b"4")]


@pytest.mark.parametrize(
    ("name", "at_once"),
    [("rabbitmq-4.0", False), ("rabbitmq-4.1", True), ("rabbitmq-4.2", True), ("rabbitmq-4.3", True)],
)
def test_a_message_that_is_given_back_lets_the_higher_priority_take_over(name: str, at_once: bool) -> None:
    client = single(name)
    client.consume("q", "a")
    client.fill("q", b"1")
    came(client)
    client.consume("q", "b", arguments={"x-priority": 1})
    client.nack(1)
    if not at_once:
        client.expect_nothing()
        client.consume("q", "c")  # Whatever activates anybody.
    assert came(client) == [("b", b"1")]


@pytest.mark.parametrize("name", FROM_4_0)
def test_who_was_to_be_replaced_goes_on_where_the_other_has_gone(name: str) -> None:
    client = single(name)
    client.consume("q", "a")
    client.fill("q", b"1")
    assert came(client) == [("a", b"1")]
    client.consume("q", "b", arguments={"x-priority": 1})
    client.call(m.BasicCancel(consumer_tag="b"), m.BasicCancelOk)
    client.fill("q", b"2")
    client.expect_nothing()
    client.ack(1)
    assert came(client) == [("a", b"2")]


@pytest.mark.parametrize("name", FROM_4_0)
def test_of_equals_the_one_with_the_larger_window_follows_and_then_the_older(name: str) -> None:
    if name == "spec":
        pytest.skip("windows are shared")
    client = single(name)
    for tag, window in (("first", 1), ("small", 1), ("large", 9), ("large too", 9)):
        client.qos(window)
        client.consume("q", tag)
    for gone, follower in (("first", "large"), ("large", "large too"), ("large too", "small")):
        client.call(m.BasicCancel(consumer_tag=gone), m.BasicCancelOk)
        client.fill("q", b"m")
        assert came(client) == [(follower, b"m")]


@pytest.mark.parametrize("name", FROM_4_0)
def test_the_highest_of_those_that_wait_follows(name: str) -> None:
    client = single(name)
    client.consume("q", "a", arguments={"x-priority": 9})
    for tag, priority in (("b", 1), ("c", 5), ("d", 5)):
        client.consume("q", tag, arguments={"x-priority": priority})
    client.call(m.BasicCancel(consumer_tag="a"), m.BasicCancelOk)
    client.fill("q", b"1")
    assert came(client) == [("c", b"1")]


@pytest.mark.parametrize("name", ALL)
def test_the_single_active_consumer_ends_with_its_connection(name: str) -> None:
    server = Server(name)
    gone, client = server.client(), server.client()
    declare(client, **SINGLE)
    gone.consume("q", "a")
    client.consume("q", "b")
    client.fill("q", b"1")
    gone.delivery()
    gone.drop()
    [content] = [client.delivery()]
    assert (content.method.consumer_tag, counts(content)[0]) == ("b", True)


# --- choices ------------------------------------------------------------------------------------------------


def test_the_personality_can_allow_shared_windows() -> None:
    personality = replace(
        PERSONALITIES["rabbitmq-4.2"],
        quorum=replace(PERSONALITIES["rabbitmq-4.2"].quorum, refuses_shared_windows=False),
    )
    client = Server(personality).client()
    declare(client)
    client.qos(1, global_=True)
    client.consume("q")
    assert PERSONALITIES["spec"].quorum.refuses_shared_windows is False
