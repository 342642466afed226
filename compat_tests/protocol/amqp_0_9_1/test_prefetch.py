from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


# --- the size window ---------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic.qos/prefetch-size-01")
def test_spec_personality_delivers_single_message_larger_than_prefetch_size(spec: Server) -> None:
    client = spec.client().declare("q").qos(0, size=10)
    assert client.consume("q").fill("q", b"x" * 100, b"y").bodies() == [b"x" * 100]
    assert client.ack(1).bodies() == [b"y"]


@pytest.mark.rule("0-9-1/basic.qos/prefetch-size-window#fits")
def test_spec_personality_delivers_messages_while_they_fit_prefetch_size(spec: Server) -> None:
    client = spec.client().declare("q")
    client.qos(0, size=100).consume("q")
    assert client.fill("q", b"1" * 40, b"2" * 40, b"3" * 40).bodies() == [b"1" * 40, b"2" * 40]
    assert client.ack(1).bodies() == [b"3" * 40]


@pytest.mark.rule("0-9-1/basic.qos/prefetch-size-window#zero")
def test_prefetch_size_zero_sets_no_limit(client: Client) -> None:
    client.declare("q").qos(0, size=0).consume("q")
    assert len(client.fill("q", *[b"x" * 50_000] * 10).bodies()) == 10


@pytest.mark.deviates("0-9-1/basic.qos/prefetch-both#size")
@pytest.mark.deviates("0-9-1/basic.qos/prefetch-size-01", "0-9-1/basic.qos/prefetch-size-window#fits")
def test_rabbitmq_refuses_prefetch_size_with_540(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.ends(m.BasicQos(prefetch_size=10), 540, text="NOT_IMPLEMENTED - prefetch_size!=0 (10)")


# --- the message window ------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic.qos/prefetch-both#count", "0-9-1/basic.qos/prefetch-count-01")
def test_unacknowledged_deliveries_do_not_exceed_prefetch_count(client: Client) -> None:
    client.declare("q").qos(3).consume("q")
    assert client.fill("q", *[b"%d" % number for number in range(10)]).bodies() == [b"0", b"1", b"2"]
    assert client.ack(2).bodies() == [b"3"]
    assert client.ack(4, multiple=True).bodies() == [b"4", b"5", b"6"]


@pytest.mark.rule("0-9-1/basic.qos/prefetch-both#count", "0-9-1/basic.qos/prefetch-both#channel")
@pytest.mark.rule("0-9-1/basic.qos/prefetch-both#connection")
def test_spec_personality_delivers_only_when_channel_and_connection_windows_have_room(spec: Server) -> None:
    client = spec.client(channels=2)
    for queue in ("one", "two"):
        client.declare(queue)
    client.qos(3, size=100, global_=True, channel=1).qos(2, channel=1)
    client.consume("one", "one", channel=1).consume("two", "two", channel=2)

    assert client.fill("one", *[b"x"] * 5).bodies(channel=1) == [b"x"] * 2  # The channel's window is full.
    assert client.fill("two", b"y", b"y").bodies(channel=2) == [b"y"]  # And now the connection's.

    client.ack(1, channel=1)
    # The third place is free and goes to whoever was there first; the bytes would allow more.
    assert client.bodies(channel=1) == [b"x"]
    assert client.ack(3, multiple=True, channel=1).bodies(channel=1) == [b"x"] * 2
    assert client.ack(1, channel=2).bodies(channel=2) == [b"y"]


@pytest.mark.rule("0-9-1/basic.qos/prefetch-both#count", "0-9-1/basic.qos/prefetch-both#size")
@pytest.mark.rule("0-9-1/basic.qos/prefetch-both#channel", "0-9-1/basic.qos/prefetch-both#connection")
def test_spec_personality_applies_global_prefetch_size_and_channel_prefetch_count(spec: Server) -> None:
    client = spec.client().declare("q")
    client.qos(0, size=50, global_=True).qos(3).consume("q")
    assert client.fill("q", b"1" * 20, b"2" * 20, b"3" * 20).bodies() == [b"1" * 20, b"2" * 20]
    assert client.ack(2, multiple=True).bodies() == [b"3" * 20]
    assert client.fill("q", b"4", b"5", b"6").bodies() == [b"4", b"5"]


@pytest.mark.rule("0-9-1/basic.qos/prefetch-both#count", "0-9-1/basic.qos/prefetch-both#channel")
@pytest.mark.protocols("0-9-1")
def test_rabbitmq_delivers_only_when_consumer_and_channel_prefetch_have_room(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client().declare("q")
    client.qos(2).qos(3, global_=True).consume("q", "one")
    client.consume("q", "two").fill("q", *[b"x"] * 6)
    assert [client.delivery().method.consumer_tag for _ in range(3)] == ["one", "two", "one"]
    client.expect_nothing()
    client.ack(2)  # Of "two": "one" is full, so it is the turn of "two".
    assert client.delivery().method.consumer_tag == "two"
    client.expect_nothing()


@pytest.mark.rule("0-9-1/basic.qos/no-ack-exempt#count")
def test_prefetch_count_does_not_limit_no_ack_consumers(client: Client) -> None:
    client.declare("q").qos(1).qos(1, global_=True)
    assert client.consume("q", no_ack=True).fill("q", b"1", b"2", b"3").bodies() == [b"1", b"2", b"3"]


@pytest.mark.rule("0-9-1/basic.qos/no-ack-exempt#size")
def test_spec_personality_does_not_apply_prefetch_size_to_no_ack_consumers(spec: Server) -> None:
    client = spec.client().declare("q")
    client.qos(0, size=1).consume("q", no_ack=True)
    assert client.fill("q", b"first", b"second").bodies() == [b"first", b"second"]


def acking_and_not(server: Server, *, qos_last: bool = False) -> Client:
    """A client with a shared limit of 1: consumer "a" of queue "a" acknowledges, "n" of "n" does not."""
    client = server.client().declare("a").declare("n")
    if not qos_last:
        client.qos(1, global_=True)
    client.consume("a", "a").consume("n", "n", no_ack=True)
    if qos_last:
        client.qos(1, global_=True)
    return client


def test_queues_waiting_for_global_prefetch_are_served_in_turn(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client().qos(3, global_=True)
    for name in ("a", "b"):
        client.declare(name).consume(name, name)
    client.fill("b", b"b1", b"b2", b"b3", b"b4")
    assert client.fill("a", b"a1", b"a2", b"a3").bodies() == [b"b1", b"b2", b"b3"]
    client.ack(3, multiple=True)
    # RabbitMQ: 9 of 9 runs on 4.0.5, in any order.
    assert sorted(client.bodies()) == [b"a1", b"a2", b"b4"]


@pytest.mark.deviates("0-9-1/basic.qos/no-ack-exempt#count")
@pytest.mark.parametrize("qos_last", [False, True])
def test_rabbitmq_holds_back_no_ack_consumers_at_full_prefetch(rabbitmq_4_2: Server, qos_last: bool) -> None:
    client = acking_and_not(rabbitmq_4_2, qos_last=qos_last).fill("a", b"a1", b"a2")
    assert client.fill("n", b"n1", b"n2", b"n3").bodies() == [b"a1"]
    assert client.ack(1).bodies() == [b"a2"]
    assert client.ack(2).bodies() == [b"n1", b"n2", b"n3"]
    assert client.fill("n", b"n4").bodies() == [b"n4"]  # Such deliveries take no room.


@pytest.mark.rule("0-9-1/basic.qos/no-ack-exempt#count")
def test_spec_personality_delivers_to_no_ack_consumers_while_global_prefetch_is_full(spec: Server) -> None:
    client = acking_and_not(spec).fill("a", b"a1", b"a2")
    assert client.fill("n", b"n1", b"n2").bodies() == [b"a1", b"n1", b"n2"]


def test_unacked_messages_of_cancelled_consumer_count_for_no_ack_consumers(rabbitmq_4_2: Server) -> None:
    client = acking_and_not(rabbitmq_4_2)
    assert client.fill("a", b"a1").bodies() == [b"a1"]
    client.perform(m.BasicCancel(consumer_tag="a"))
    client.consume("a", "a", no_ack=True)  # It takes over what the first one holds.
    client.fill("n", b"n1").fill("a", b"a2").expect_nothing()
    assert sorted(client.ack(1).bodies()) == [b"a2", b"n1"]


def test_acknowledging_and_no_ack_consumers_of_one_queue_share_global_prefetch(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client().declare("q").qos(1, global_=True)
    client.consume("q", "a").consume("q", "n", no_ack=True)
    assert client.fill("q", b"1", b"2", b"3", b"4").bodies() == [b"1"]
    client.ack(1)
    assert [client.delivery().method.consumer_tag for _ in range(2)] == ["n", "a"]
    client.expect_nothing()


def test_resetting_global_prefetch_to_zero_releases_no_ack_consumers(rabbitmq_4_2: Server) -> None:
    client = acking_and_not(rabbitmq_4_2).fill("a", b"a1")
    assert client.fill("n", b"n1").bodies() == [b"a1"]
    assert client.qos(0, global_=True).bodies() == [b"n1"]


def test_full_global_prefetch_does_not_hold_back_consumers_of_another_channel(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client(channels=2).declare("a").declare("n")
    client.qos(1, global_=True).consume("a", "a").consume("n", "n", no_ack=True)
    assert client.fill("a", b"a1").fill("n", b"n1").bodies() == [b"a1"]
    assert client.consume("n", "n", no_ack=True, channel=2).bodies(channel=2) == [b"n1"]


def test_messages_of_basic_get_count_in_new_global_prefetch_until_reset_to_zero(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client()
    client.declare("q").fill("q", b"1").get("q")
    client.qos(1, global_=True).consume("q", no_ack=True).ack(1).fill("q", b"2").expect_nothing()
    assert client.qos(2, global_=True).bodies() == [b"2"]
    client.qos(1, global_=True).fill("q", b"3").expect_nothing()
    assert client.qos(0, global_=True).bodies() == [b"3"]
    assert client.qos(1, global_=True).fill("q", b"4").bodies() == [b"4"]


def test_earlier_quorum_queue_deliveries_count_in_a_new_global_prefetch(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client().declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    client.declare("q").consume("quorum", "c").consume("q", "n", no_ack=True)
    assert client.fill("quorum", b"1").bodies() == [b"1"]
    client.qos(1, global_=True).fill("q", b"2").expect_nothing()
    assert client.ack(1).bodies() == [b"2"]


@pytest.mark.rule("0-9-1/basic.qos/count-zero")
def test_prefetch_count_zero_sets_no_limit(client: Client) -> None:
    client.declare("q").qos(0).consume("q")
    assert len(client.fill("q", *[b"m"] * 100).bodies()) == 100


@pytest.mark.rule("0-9-1/basic.qos/get-unaffected")
def test_basic_get_succeeds_while_prefetch_is_full(client: Client) -> None:
    client.declare("q").qos(1).qos(1, global_=True)
    assert client.consume("q").fill("q", b"1", b"2").bodies() == [b"1"]
    assert client.fetch("q").body == b"2"


@pytest.mark.rule("0-9-1/basic.qos/get-unaffected")
def test_unacknowledged_message_of_basic_get_does_not_count_in_prefetch(client: Client) -> None:
    client.declare("q").qos(1).qos(1, global_=True)
    client.fill("q", b"1", b"2", b"3").get("q")
    assert client.consume("q").bodies() == [b"2"]
    client.ack(1).expect_nothing()
    assert client.ack(2).bodies() == [b"3"]


@pytest.mark.rule("0-9-1/basic.qos-ok/confirm")
def test_qos_ok_has_no_fields(client: Client) -> None:
    assert client.send(m.BasicQos(prefetch_count=5)).take_frame().payload == b"\x00\x3c\x00\x0b"


# --- whose window it is ------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic.qos/global-connection#connection")
def test_spec_personality_applies_global_prefetch_to_the_connection(spec: Server) -> None:
    client = spec.client(channels=2).declare("q")
    client.qos(2, global_=True, channel=1).consume("q", channel=1)
    client.consume("q", channel=2).fill("q", *[b"m"] * 5).delivery(channel=1)
    client.delivery(channel=2)
    client.expect_nothing()
    assert len(client.ack(1, channel=2).inbox) == 3


@pytest.mark.rule("0-9-1/basic.qos/global-connection#channel")
def test_spec_personality_applies_non_global_prefetch_to_the_channel(spec: Server) -> None:
    client = spec.client(channels=2).declare("q").qos(2, channel=1)
    client.consume("q", "a", channel=1).consume("q", "b", channel=1).fill("q", *[b"m"] * 5)
    assert [client.delivery().method.consumer_tag for _ in range(2)] == ["a", "b"]
    client.expect_nothing()
    client.consume("q", channel=2)  # Not limited.
    assert len(client.bodies(channel=2)) == 3


@pytest.mark.deviates("0-9-1/basic.qos/global-connection#connection")
@pytest.mark.protocols("0-9-1")
def test_rabbitmq_applies_global_prefetch_to_the_channel(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client(channels=2).declare("q").qos(2, global_=True, channel=1)
    client.consume("q", "1", channel=1).consume("q", "2", channel=1).fill("q", *[b"m"] * 4)
    assert [client.delivery().method.consumer_tag for _ in range(2)] == ["1", "2"]
    client.expect_nothing()
    assert client.ack(1).delivery().method.consumer_tag == "1"
    client.expect_nothing()
    client.consume("q", channel=2)  # Not limited.
    assert len(client.bodies(channel=2)) == 1


@pytest.mark.deviates("0-9-1/basic.qos/prefetch-both#channel", "0-9-1/basic.qos/global-connection#channel")
def test_rabbitmq_applies_non_global_prefetch_to_each_new_consumer(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").qos(2)
    client.consume("q", "1").consume("q", "2").fill("q", *[b"m"] * 6)
    assert [client.delivery().method.consumer_tag for _ in range(4)] == ["1", "2", "1", "2"]
    client.expect_nothing()
    assert client.ack(2).delivery().method.consumer_tag == "2"
    client.expect_nothing()


# --- changes -----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic.qos/applies-until-changed#active")
@pytest.mark.rule("0-9-1/basic.qos/applies-until-changed#until")
def test_spec_personality_applies_new_prefetch_count_to_existing_consumers(spec: Server) -> None:
    client = spec.client()
    client.declare("q").qos(1).consume("q")
    assert client.fill("q", *[b"%d" % number for number in range(6)]).bodies() == [b"0"]
    assert client.qos(3).bodies() == [b"1", b"2"]
    client.qos(1).ack(2, multiple=True).expect_nothing()
    assert client.ack(3).bodies() == [b"3"]


@pytest.mark.rule("0-9-1/basic.qos/applies-until-changed#active")
def test_spec_personality_counts_earlier_unacknowledged_messages_in_new_prefetch(spec: Server) -> None:
    client = spec.client().declare("q").consume("q")
    assert client.fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    client.qos(2).fill("q", b"3").expect_nothing()
    assert client.ack(1).bodies() == [b"3"]


@pytest.mark.deviates("0-9-1/basic.qos/applies-until-changed#until")
@pytest.mark.deviates("0-9-1/basic.qos/applies-until-changed#active")
def test_rabbitmq_applies_new_prefetch_count_only_to_new_consumers(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q")
    client.qos(1).consume("q", "1").qos(3)
    assert client.fill("q", *[b"m"] * 5).bodies() == [b"m"]
    client.consume("q", "2")
    assert [client.delivery().method.consumer_tag for _ in range(3)] == ["2"] * 3
    client.expect_nothing()


def test_rabbitmq_applies_new_global_prefetch_to_existing_consumers(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client().declare("q").qos(1, global_=True)
    assert client.consume("q").fill("q", b"0", b"1", b"2").bodies() == [b"0"]
    assert client.qos(2, global_=True).bodies() == [b"1"]
    assert client.qos(0, global_=True).bodies() == [b"2"]


def test_rabbitmq_counts_earlier_deliveries_in_a_new_global_prefetch(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client().declare("q").consume("q")
    assert client.fill("q", b"0", b"1").bodies() == [b"0", b"1"]
    client.qos(1, global_=True).fill("q", b"2").expect_nothing()
    client.ack(1).expect_nothing()
    assert client.ack(2).bodies() == [b"2"]


def test_rabbitmq_non_global_qos_removes_global_prefetch(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client().declare("q")
    client.qos(3, global_=True).qos(2).consume("q", "1")
    client.consume("q", "2").fill("q", *[b"m"] * 5)
    assert [client.delivery().method.consumer_tag for _ in range(4)] == ["1", "2", "1", "2"]
    client.expect_nothing()


def test_non_global_qos_releases_messages_held_back_by_global_prefetch(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client().declare("q").qos(1, global_=True)
    assert client.consume("q").fill("q", b"1", b"2", b"3").bodies() == [b"1"]
    assert client.qos(1).bodies() == [b"2", b"3"]


def test_unacknowledged_messages_of_cancelled_consumer_count_in_global_prefetch(rabbitmq_4_2: Server) -> None:
    client = rabbitmq_4_2.client().declare("q")
    client.qos(1, global_=True).consume("q", "1").consume("q", "2")
    assert client.fill("q", b"0", b"1").bodies() == [b"0"]
    client.perform(m.BasicCancel(consumer_tag="1")).expect_nothing()
    assert client.ack(1).bodies() == [b"1"]


@rows(
    "settle, following",
    (m.BasicAck(delivery_tag=1), b"2"),
    (m.BasicNack(delivery_tag=1), b"2"),
    (m.BasicReject(delivery_tag=1), b"2"),
    (m.BasicReject(delivery_tag=1, requeue=True), b"1"),
    (m.BasicRecoverAsync(requeue=True), b"1"),
    ids=["ack", "nack", "reject", "requeue", "recover"],
)
def test_every_settlement_frees_prefetch(rabbitmq: Server, settle: m.Method, following: bytes) -> None:
    client = rabbitmq.client().declare("q").qos(1)
    assert client.consume("q").fill("q", b"1", b"2").bodies() == [b"1"]
    assert client.send(settle).bodies() == [following]


# --- a consumer that follows a cancelled one with its tag ----------------------------------------------
def succeeded(server: Server, first: int, second: int, **queue: Any) -> Client:
    """A client whose consumer c was cancelled with so many deliveries; the next c has another window."""
    client = server.client().declare("q", durable=True, **queue)
    client.fill("q", *[b"%d" % number for number in range(1, 9)])
    assert len(client.qos(first).consume("q", "c").bodies()) == first
    return client.perform(m.BasicCancel(consumer_tag="c")).qos(second).consume("q", "c")


def test_acks_for_cancelled_consumer_add_prefetch_to_new_consumer_with_same_tag(rabbitmq: Server) -> None:
    client = succeeded(rabbitmq, 3, 1)
    assert client.bodies() == [b"4"]
    assert client.ack(3, multiple=True).bodies() == [b"5", b"6", b"7"]
    assert client.ack(4).bodies() == [b"8"]


def test_quorum_queue_counts_messages_of_cancelled_consumer_for_next_of_its_tag(rabbitmq: Server) -> None:
    client = succeeded(rabbitmq, 3, 1, arguments={"x-queue-type": "quorum"})
    assert client.bodies() == []
    assert client.ack(1).bodies() == [b"4"]
    client.ack(3, multiple=True)
    assert client.bodies() == [b"5"]  # The window has one place, however many are settled at once.


def test_acks_for_cancelled_consumer_add_no_prefetch_to_consumer_with_another_tag(rabbitmq: Server) -> None:
    client = succeeded(rabbitmq, 2, 1)
    assert client.bodies() == [b"3"]
    assert client.perform(m.BasicCancel(consumer_tag="c")).consume("q", "d").bodies() == [b"4"]
    assert client.ack(3, multiple=True).bodies() == []


def test_spec_personality_gives_new_consumer_with_same_tag_no_prefetch_for_earlier_acks(spec: Server) -> None:
    client = spec.varied(prefetch_is_per_consumer=True).client()
    client.declare("q").fill("q", b"1", b"2", b"3").qos(1)
    assert client.consume("q", "c").bodies() == [b"1"]
    assert client.perform(m.BasicCancel(consumer_tag="c")).consume("q", "c").bodies() == [b"2"]
    assert client.ack(1).bodies() == []
