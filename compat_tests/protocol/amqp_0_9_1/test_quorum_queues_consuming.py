"""Quorum queues: who gets which message, and in what order (RabbitMQ: documented; measured)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.quorum import ALL, RABBITMQ, client_of, counts, declare
from compat_tests.protocol.amqp_0_9_1.test_exchange import refused
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
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
def test_consume_after_qos_global_closes_connection_with_540_up_to_4_2(name: str) -> None:
    client = client_of(name).qos(5, global_=True).send(m.BasicConsume(queue="q"))
    text = f"NOT_IMPLEMENTED - {PLACE} does not support global qos"
    assert client.expect_connection_close(540).reply_text == text


@pytest.mark.parametrize("name", ["rabbitmq-3.13", "rabbitmq-4.2"])
def test_qos_global_of_zero_does_not_prevent_consume(name: str) -> None:
    client = client_of(name).qos(0, global_=True).consume("q")
    assert client.fill("q", b"1", b"2").bodies() == [b"1", b"2"]


@pytest.mark.needs("personality rabbitmq-4.2")
def test_qos_global_after_consume_does_not_limit_quorum_queue_consumer() -> None:
    client = client_of("rabbitmq-4.2").consume("q").qos(1, global_=True)
    assert client.fill("q", b"1", b"2").bodies() == [b"1", b"2"]


@pytest.mark.needs("personality rabbitmq-4.2")
def test_get_ignores_qos_global() -> None:
    client = client_of("rabbitmq-4.2").qos(1, global_=True).fill("q", b"1", b"2")
    assert client.get("q") and client.get("q")


@pytest.mark.needs("personality spec")
def test_consumers_share_prefetch_of_channel_in_spec_personality() -> None:
    client = client_of("spec").qos(2).consume("q", "a")
    client.consume("q", "b").fill("q", b"1", b"2", b"3")
    assert came(client) == [("a", b"1"), ("b", b"2")]
    client.ack(2)
    assert came(client) == [("a", b"3")]


@pytest.mark.needs("personality spec")
def test_ack_for_another_queue_frees_shared_prefetch_for_quorum_queue() -> None:
    client = client_of("spec").declare("other").qos(1)
    client.consume("other").fill("other", b"1").delivery()
    client.consume("q").fill("q", b"2").expect_nothing()
    assert client.ack(1).bodies() == [b"2"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_consumer_without_prefetch_limit_gets_at_most_2000_unacknowledged_messages(name: str) -> None:
    client = client_of(name).fill("q", *[b""] * 2001).consume("q")
    for _ in range(2000):
        client.delivery()
    client.expect_nothing()
    client.ack(1).delivery()


@pytest.mark.parametrize("name", ALL)
def test_no_ack_consumer_has_no_prefetch_limit(name: str) -> None:
    client = client_of(name).fill("q", *[b"x"] * 2100).qos(1)
    assert len(client.consume("q", no_ack=True).bodies()) == 2100


@pytest.mark.parametrize("name", ALL)
def test_exclusive_flag_of_consumers_is_ignored(name: str) -> None:
    client = client_of(name)
    for tag in "abc":
        client.consume("q", tag, exclusive=True)
    client.fill("q", b"1", b"2", b"3", b"4")
    assert [tag for tag, _ in came(client)] == ["a", "b", "c", "a"]
    assert client.get("q") is None


@rows(
    "name, argument, value, reason",
    ("rabbitmq-4.2", "x-priority", "high", ': "expected integer, got longstr"'),
    ("rabbitmq-4.2", "x-stream-offset", "first", " of queue type rabbit_quorum_queue"),
    ("rabbitmq-4.3", "x-stream-filter", "a", " of queue type rabbit_quorum_queue"),
    ("rabbitmq-4.3", "x-consumer-timeout", -1, ": {value_negative,-1}"),
    ("rabbitmq-4.3", "x-consumer-timeout", "5", ': "expected integer, got longstr"'),
)
def test_invalid_consumer_arguments_fail_with_406(name: str, argument: str, value: Any, reason: str) -> None:
    method = m.BasicConsume(queue="q", arguments={argument: value})
    refused(
        client_of(name), method, 406, f"PRECONDITION_FAILED - invalid arg '{argument}' for {PLACE}{reason}"
    )


@pytest.mark.parametrize("name", RABBITMQ)
def test_consume_ok_is_sent_before_first_delivery(name: str) -> None:
    client = client_of(name).fill("q", b"1")
    client.send(m.BasicConsume(queue="q", consumer_tag="t")).expect(m.BasicConsumeOk)
    client.delivery()


# --- whose turn it is ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ALL)
def test_consumers_with_prefetch_left_take_turns(name: str) -> None:
    client = client_of(name).consume("q", "a")
    client.consume("q", "b").fill("q", b"1", b"2", b"3")
    assert came(client) == [("a", b"1"), ("b", b"2"), ("a", b"3")]


@pytest.mark.parametrize("name", RABBITMQ)
def test_consumers_of_higher_priority_get_messages_first_until_prefetch_is_exhausted(name: str) -> None:
    client = client_of(name).qos(2).consume("q", "low")
    client.consume("q", "high", arguments={"x-priority": 5})
    client.consume("q", "lowest", arguments={"x-priority": -5}).fill("q", b"1", b"2", b"3", b"4", b"5")
    assert [tag for tag, _ in came(client)] == ["high", "high", "low", "low", "lowest"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_consumers_take_turns_in_the_order_in_which_their_prefetch_was_freed(name: str) -> None:
    client = client_of(name).qos(1)
    for tag in "abc":
        client.consume("q", tag)
    client.fill("q", b"1", b"2", b"3")
    assert [tag for tag, _ in came(client)] == ["a", "b", "c"]
    client.ack(3).ack(1).ack(2)
    client.fill("q", b"4", b"5", b"6")
    assert came(client) == [("c", b"4"), ("a", b"5"), ("b", b"6")]


@pytest.mark.parametrize("name", RABBITMQ)
def test_requeued_message_goes_to_the_consumer_that_waits_longest(name: str) -> None:
    client = client_of(name).qos(1)
    client.consume("q", "a").fill("q", b"1")
    assert came(client) == [("a", b"1")]
    client.nack(1)
    assert came(client) == [("a", b"1")]
    client.consume("q", "b").nack(2)
    assert came(client) == [("b", b"1")]


@pytest.mark.parametrize("name", ALL)
def test_get_returns_next_ready_message_although_queue_has_consumer(name: str) -> None:
    client = client_of(name).qos(1).consume("q")
    client.fill("q", b"1", b"2", b"3").delivery()
    got = client.get("q")
    assert got is not None
    assert (got.body, got.method.message_count) == (b"2", 1)


@pytest.mark.parametrize("name", ALL)
def test_prefetch_size_limits_deliveries_only_in_spec_personality(name: str) -> None:
    client = client_of(name)
    if name == "spec":
        client.qos(0, size=10)
    assert len(client.consume("q").fill("q", b"x" * 8, b"x" * 8).bodies()) == (1 if name == "spec" else 2)


# --- message priorities -------------------------------------------------------------------------------------
def drained(client: Client, *priorities: int | None) -> list[int | None]:
    for priority in priorities:
        client.publish(routing_key="q", priority=priority)
    found = []
    while (content := client.get("q", no_ack=True)) is not None:
        found.append(content.properties.priority)
    return found


@pytest.mark.needs("personality rabbitmq-3.13")
def test_message_priorities_have_no_effect_up_to_3_13() -> None:
    assert drained(client_of("rabbitmq-3.13"), 1, 9, None, 5) == [1, 9, None, 5]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_two_high_priority_messages_alternate_with_one_normal_message_from_4_0_to_4_2(name: str) -> None:
    low, high = [0, 1, 4, None], [5, 9, 255, 6, 7]
    assert drained(client_of(name), *low, *high) == [5, 9, 0, 255, 6, 1, 7, 4, None]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_third_turn_goes_to_high_priority_message_if_published_earlier(name: str) -> None:
    assert drained(client_of(name), 5, 6, 7, 0, 8, 1) == [5, 6, 7, 8, 0, 1]


@pytest.mark.parametrize("name", ["rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2"])
def test_turns_are_counted_while_no_high_priority_message_is_ready(name: str) -> None:
    client = client_of(name).consume("q", "t", no_ack=True)
    client.fill("q", b"", b"").bodies()
    client.call(m.BasicCancel(consumer_tag="t"), m.BasicCancelOk)
    assert drained(client, 0, 5, 6, 7) == [0, 5, 6, 7]


@pytest.mark.parametrize("name", ["rabbitmq-4.3", "spec"])
def test_priority_levels_are_strict_and_capped_at_31_since_4_3(name: str) -> None:
    published = [None, 0, 255, 31, 4, 32, 9, 5, 3]
    assert drained(client_of(name), *published) == [255, 31, 32, 9, 5, None, 4, 3, 0]


@pytest.mark.parametrize("name", ALL)
def test_requeued_message_is_delivered_before_messages_of_higher_priority(name: str) -> None:
    client = client_of(name, delivery_limit=5)
    client.publish(b"low", routing_key="q", priority=0).get("q")
    assert client.publish(b"high", routing_key="q", priority=9).nack(1).empty("q") == [b"low", b"high"]


# --- single active consumer ---------------------------------------------------------------------------------
def single(name: str | Any, channels: int = 3) -> Client:
    return declare(Server(name).client(channels=channels), **SINGLE)


@rows(
    "name, kind",
    ("rabbitmq-3.13", "quorum"),
    ("rabbitmq-4.0", "quorum"),
    ("rabbitmq-4.2", '<<"quorum">>'),
    ("rabbitmq-4.3", '<<"quorum">>'),
)
def test_get_from_single_active_consumer_queue_is_refused_with_405(name: str, kind: str) -> None:
    text = (
        f"RESOURCE_LOCKED - cannot obtain access to locked {PLACE}. basic.get operations are not supported "
    )
    text += f"by {kind} queues with single active consumer"
    refused(single(name), m.BasicGet(queue="q"), 405, text)


@pytest.mark.parametrize("name", ALL)
def test_next_consumer_becomes_active_when_active_consumer_is_cancelled(name: str) -> None:
    client = single(name)
    for tag in "abc":
        client.consume("q", tag)
    client.fill("q", b"1", b"2")
    assert came(client) == [("a", b"1"), ("a", b"2")]
    client.perform(m.BasicCancel(consumer_tag="a")).fill("q", b"3")
    assert came(client) == [("b", b"3")]


@pytest.mark.parametrize("name", RABBITMQ)
def test_consumer_count_has_only_active_consumer_and_cancelled_one_with_unacked_message(name: str) -> None:
    client = single(name).consume("q", "a")
    assert client.consume("q", "b").declare_ok("q", passive=True).consumer_count == 1
    client.fill("q", b"1")
    came(client)
    assert client.perform(m.BasicCancel(consumer_tag="a")).declare_ok("q", passive=True).consumer_count == 2


@pytest.mark.parametrize("name", RABBITMQ)
def test_messages_unacknowledged_by_active_consumer_go_first_to_the_next(name: str) -> None:
    server = Server(name)
    client, other = server.client(), server.client()
    declare(client, **SINGLE)
    client.qos(2).consume("q", "a").fill("q", b"1", b"2", b"3")
    assert came(client) == [("a", b"1"), ("a", b"2")]
    other.consume("q", "b")
    client.close_channel()
    assert came(other) == [("b", b"1"), ("b", b"2"), ("b", b"3")]


@pytest.mark.needs("personality rabbitmq-3.13")
def test_consumer_priority_does_not_decide_on_active_consumer_up_to_3_13() -> None:
    client = single("rabbitmq-3.13")
    for tag, priority in (("a", 0), ("b", 1), ("c", 9)):
        client.consume("q", tag, no_ack=True, arguments={"x-priority": priority})
    client.fill("q", b"1")
    assert came(client) == [("a", b"1")]
    client.perform(m.BasicCancel(consumer_tag="a")).fill("q", b"2")
    assert came(client) == [("b", b"2")]


FROM_4_0 = ("rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3", "spec")


@pytest.mark.parametrize("name", FROM_4_0)
def test_consumer_of_higher_priority_takes_over_at_once_if_no_message_is_unacknowledged(name: str) -> None:
    client = single(name).consume("q", "a")
    client.consume("q", "b", arguments={"x-priority": 1}).fill("q", b"1")
    assert came(client) == [("b", b"1")]


@pytest.mark.parametrize("name", FROM_4_0)
def test_consumer_of_higher_priority_takes_over_when_active_one_has_acknowledged_all(name: str) -> None:
    client = single(name).qos(1).consume("q", "a")
    client.qos(0).fill("q", b"1")
    assert came(client) == [("a", b"1")]
    client.consume("q", "b", arguments={"x-priority": 1}).fill("q", b"2", b"3").expect_nothing()
    client.ack(1)
    assert came(client) == [("b", b"2"), ("b", b"3")]
    client.perform(m.BasicCancel(consumer_tag="b")).fill("q", b"4")
    assert came(client) == [("a", b"4")]


@pytest.mark.parametrize(
    ("name", "at_once"),
    [("rabbitmq-4.0", False), ("rabbitmq-4.1", True), ("rabbitmq-4.2", True), ("rabbitmq-4.3", True)],
)
def test_requeued_message_lets_consumer_of_higher_priority_take_over(name: str, at_once: bool) -> None:
    client = single(name).consume("q", "a").fill("q", b"1")
    came(client)
    client.consume("q", "b", arguments={"x-priority": 1}).nack(1)
    if not at_once:
        client.expect_nothing()
        client.consume("q", "c")  # Whatever activates anybody.
    assert came(client) == [("b", b"1")]


@pytest.mark.parametrize("name", FROM_4_0)
def test_active_consumer_stays_active_if_its_replacement_was_cancelled(name: str) -> None:
    client = single(name).consume("q", "a").fill("q", b"1")
    assert came(client) == [("a", b"1")]
    client.consume("q", "b", arguments={"x-priority": 1}).perform(m.BasicCancel(consumer_tag="b"))
    client.fill("q", b"2").expect_nothing()
    client.ack(1)
    assert came(client) == [("a", b"2")]


@pytest.mark.parametrize("name", FROM_4_0)
def test_waiting_consumer_with_larger_prefetch_then_the_older_becomes_active(name: str) -> None:
    if name == "spec":
        pytest.skip("windows are shared")
    client = single(name)
    for tag, window in (("first", 1), ("small", 1), ("large", 9), ("large too", 9)):
        client.qos(window).consume("q", tag)
    for gone, follower in (("first", "large"), ("large", "large too"), ("large too", "small")):
        client.perform(m.BasicCancel(consumer_tag=gone)).fill("q", b"m")
        assert came(client) == [(follower, b"m")]


@pytest.mark.parametrize("name", FROM_4_0)
def test_waiting_consumer_of_highest_priority_becomes_active(name: str) -> None:
    client = single(name).consume("q", "a", arguments={"x-priority": 9})
    for tag, priority in (("b", 1), ("c", 5), ("d", 5)):
        client.consume("q", tag, arguments={"x-priority": priority})
    client.perform(m.BasicCancel(consumer_tag="a")).fill("q", b"1")
    assert came(client) == [("c", b"1")]


@pytest.mark.parametrize("name", ALL)
def test_next_consumer_becomes_active_when_connection_of_active_consumer_ends(name: str) -> None:
    server = Server(name)
    gone, client = server.client(), server.client()
    declare(client, **SINGLE)
    gone.consume("q", "a")
    client.consume("q", "b").fill("q", b"1")
    gone.delivery()
    gone.drop()
    [content] = [client.delivery()]
    assert (content.method.consumer_tag, counts(content)[0]) == ("b", True)


# --- choices ------------------------------------------------------------------------------------------------
@pytest.mark.needs("personality of choices")
def test_personality_can_allow_qos_global_for_quorum_queues() -> None:
    personality = replace(
        PERSONALITIES["rabbitmq-4.2"],
        quorum=replace(PERSONALITIES["rabbitmq-4.2"].quorum, refuses_shared_windows=False),
    )
    client = Server(personality).client()
    declare(client).qos(1, global_=True).consume("q")
    assert PERSONALITIES["spec"].quorum.refuses_shared_windows is False
