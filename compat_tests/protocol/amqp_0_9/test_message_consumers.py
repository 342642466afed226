"""Transfers from the broker: consumers and their destinations, get, acknowledgement, recover, qos."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9 import Server
from compat_tests.scripted.amqp_0_9_1 import QuietTap
from compat_tests.scripted.requesting import Asked, Requester
from compat_tests.tools.matrix import marked_rows, rows
from fakeamqp.model.access import Permission, User
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body

rule = pytest.mark.rule


def other(server: Server) -> Requester:
    """Requests on a connection of its own."""
    return Requester(server.client())


def take(requester: Requester, count: int) -> list[Asked]:
    """So many transfers that have come, and no more."""
    taken = [requester.transfer() for _ in range(count)]
    requester.client.expect_nothing()
    return taken


def fill(requester: Requester, *bodies: bytes, queue: str = "q") -> Requester:
    requester.client.fill(queue, *bodies)
    return requester


# --- acknowledgement -----------------------------------------------------------------------------------
@rule("0-9/message.transfer/ack-by-response", "0-9/message/10")
def test_transfer_answered_with_ok_is_acknowledged(server: Server, requester: Requester) -> None:
    fill(requester, b"1", b"2", b"3").consume("q", "d")
    taken = take(requester, 3)
    requester.answer(taken[0].number).answer(taken[2].number).client.drop()
    assert server.client().empty("q") == [b"2"]


@rule("0-9/message.transfer/ack-by-response", "0-9/response/range")
def test_one_response_may_acknowledge_many(server: Server, requester: Requester) -> None:
    fill(requester, b"1", b"2", b"3", b"4").consume("q", "d")
    taken = take(requester, 4)
    requester.answer(taken[0].number, offset=2).client.drop()
    assert server.client().empty("q") == [b"4"]


@rule("0-9/message.reject/rejects", "0-9/message.transfer/ack-by-response")
def test_rejected_transfer_is_discarded_without_a_dead_letter_exchange(requester: Requester) -> None:
    fill(requester, b"1").consume("q", "d")
    requester.answer(take(requester, 1)[0].number, m.MessageReject(code=0, text="no good")).client.drop()
    assert requester.server.client().empty("q") == []


@rule("0-9/message.reject/rejects")
def test_rejected_transfer_is_dead_lettered(requester: Requester) -> None:
    client = requester.client
    client.declare("dead")
    table = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("dying", arguments=table)
    fill(requester, b"1", queue="dying")
    requester.consume("dying", "d").answer(take(requester, 1)[0].number, m.MessageReject())
    assert client.empty("dead") == [b"1"]


@rule("0-9/message/09", "0-9/domain.no-ack/auto-ack")
def test_message_sent_with_no_ack_is_removed_even_if_rejected(server: Server, requester: Requester) -> None:
    fill(requester, b"1", b"2").consume("q", "d", no_ack=True)
    taken = take(requester, 2)
    requester.answer(taken[0].number).answer(taken[1].number, m.MessageReject()).client.drop()
    assert server.client().empty("q") == []


def test_unanswered_transfers_are_requeued_when_the_channel_closes(requester: Requester) -> None:
    client = requester.client
    fill(requester, b"1", b"2").consume("q", "d")
    take(requester, 2)
    content = client.close_channel().open_channel().get("q")
    assert content is not None and content.method.redelivered
    assert content.body == b"1"


def test_requeued_transfer_is_not_delivered_on_the_closing_channel(requester: Requester) -> None:
    client = requester.client
    fill(requester, b"1").consume("q", "d")
    take(requester, 1)
    client.consume("q", "t").perform(m.ChannelClose(reply_code=200)).expect_nothing()


# --- consume and cancel --------------------------------------------------------------------------------
@rule("0-9/message.consume/01")
def test_a_queue_has_many_consumers(requester: Requester) -> None:
    for number in range(20):
        requester.consume("q", f"d{number}")
    fill(requester, *[b"%d" % number for number in range(20)])
    assert [asked.method.destination for asked in take(requester, 20)] == [f"d{n}" for n in range(20)]


@rule("0-9/domain.destination/blank")
def test_a_blank_destination_is_a_consumers_too(requester: Requester) -> None:
    fill(requester, b"1").consume("q", "")
    assert take(requester, 1)[0].method.destination == ""
    requester.ask(m.MessageConsume(queue="q", destination=""))
    requester.client.expect_connection_close(530)


CONSUME = m.MessageConsume(queue="q", destination="d")


@marked_rows(
    "channel, method",
    (rule("0-9/message.consume/queue-01"), 2, m.MessageConsume(destination="e")),
    (rule("0-9/message.get/queue-01"), 2, m.MessageGet()),
    (rule("0-9/message.consume/destination-01"), 1, CONSUME),
    (rule("0-9/message.consume/destination-01"), 2, CONSUME),
    (rule("0-9/message.consume/destination-02"), 2, m.MessageCancel(destination="d")),
    ((), 1, m.MessageCancel(destination="basic")),
    ids=repr,
)
def test_request_without_current_queue_or_for_destination_of_another_consumer_closes_connection_with_530(
    requester: Requester, channel: int, method: Any
) -> None:
    """A destination is that of a consumer on the whole connection, and a consumer has a class."""
    client = requester.client
    requester.call(CONSUME, m.MessageOk)
    client.consume("q", "basic").open_channel(2)
    (requester if channel == 1 else Requester(client, 2)).ask(method)
    client.expect_connection_close(530)


def test_a_blank_name_is_the_current_queue(requester: Requester) -> None:
    fill(requester, b"1").consume("", "d")
    take(requester, 1)


def test_two_connections_may_have_the_same_destination(server: Server, requester: Requester) -> None:
    requester.consume("q", "d")
    other(server).consume("q", "d")


@rule("0-9/message.consume/exclusive-01")
@rows(
    "first, method, code",
    (True, CONSUME, 403),
    (False, m.MessageConsume(queue="q", destination="d", exclusive=True), 403),
    (False, m.MessageConsume(queue="none", destination="d"), 404),
)
def test_consume_beside_exclusive_access_or_from_a_missing_queue_closes_the_channel(
    server: Server, requester: Requester, first: bool, method: Any, code: int
) -> None:
    requester.consume("q", "d", exclusive=first)
    second = other(server)
    second.ask(method)
    second.client.expect_channel_close(code)


def test_message_consumer_with_no_local_gets_only_messages_of_other_connections(requester: Requester) -> None:
    requester.consume("q", "d", no_local=True).publish("q", b"own").client.expect_nothing()
    other(requester.server).publish("q", b"others'")
    assert take(requester, 1)[0].method.body.octets == b"others'"


def test_message_consumer_with_higher_x_priority_in_its_filter_is_preferred(lenient: Server) -> None:
    requester = Requester(lenient.client())
    requester.client.declare("q")
    requester.consume("q", "low").consume("q", "high", filter={"x-priority": 5})
    fill(requester, b"1")
    assert take(requester, 1)[0].method.destination == "high"


@rule("0-9/message.cancel/stops")
def test_message_cancel_stops_transfers_to_the_destination(requester: Requester) -> None:
    requester.consume("q", "d")
    fill(requester, b"1")
    (asked,) = take(requester, 1)
    requester.call(m.MessageCancel(destination="d"), m.MessageOk)
    fill(requester, b"2").client.expect_nothing()
    assert requester.answer(asked.number).client.empty("q") == [b"2"]


@rule("0-9/message.cancel/01")
def test_cancel_of_missing_destination_is_confirmed(server: Server, requester: Requester) -> None:
    requester.consume("q", "d")
    server.client().perform(m.QueueDelete(queue="q"))
    requester.client.expect_nothing()
    for destination in ("d", "never there"):
        requester.call(m.MessageCancel(destination=destination), m.MessageOk)


@pytest.mark.letter
def test_flow_stops_transfers_too(requester: Requester) -> None:
    requester.consume("q", "d").client.perform(m.ChannelFlow(active=False))
    fill(requester, b"1").client.expect_nothing()
    requester.client.perform(m.ChannelFlow(active=True))
    take(requester, 1)


# --- get -----------------------------------------------------------------------------------------------
@rule("0-9/message.get/ok-and-transfer")
def test_a_get_is_answered_and_a_transfer_follows(requester: Requester) -> None:
    fill(requester, b"1", b"2").call(m.MessageGet(queue="q", destination="somewhere"), m.MessageOk)
    (asked,) = take(requester, 1)
    assert (asked.method.destination, asked.method.body.octets) == ("somewhere", b"1")
    assert requester.answer(asked.number).client.empty("q") == [b"2"]


@rule("0-9/message.get/empty")
def test_a_get_from_an_empty_queue_is_told(requester: Requester) -> None:
    requester.call(m.MessageGet(queue="q", destination="d"), m.MessageEmpty)
    requester.client.expect_nothing()


def test_message_from_get_is_requeued_as_redelivered_when_unanswered_unless_no_ack(
    server: Server, requester: Requester
) -> None:
    first = fill(requester, b"1", b"2").get("q")
    requester.get("q", no_ack=True)
    requester.client.drop()
    second = other(server)
    again = second.get("q")
    assert first is not None and not first.method.redelivered
    assert again is not None and (again.method.body.octets, again.method.redelivered) == (b"1", True)
    assert second.get("q") is None


def test_tap_reports_the_consumer_of_a_delivery_but_not_of_a_get(requester: Requester) -> None:
    told: list[object] = []

    class Onlooker(QuietTap):
        def happened(self, event: str, **facts: Any) -> None:
            if event == "delivered":
                told.append(facts["consumer"])

    requester.server.state.tap = Onlooker()
    fill(requester, b"1", b"2").get("q")
    requester.consume("q", "d")
    assert told == [None, "d"]


def test_an_exclusive_consumer_shuts_out_a_get(spec: Server) -> None:
    requester = Requester(spec.client())
    requester.client.declare("q")
    requester.consume("q", "d", exclusive=True)
    second = other(spec)
    second.ask(m.MessageGet(queue="q"))
    second.client.expect_channel_close(403)


# --- recover -------------------------------------------------------------------------------------------
@rule("0-9/message.recover/01", "0-9/message.recover/requeue#recipient")
def test_recover_without_requeue_redelivers_to_the_same_consumer(requester: Requester) -> None:
    requester.consume("q", "d")
    fill(requester, b"1", b"2", b"3", b"4")
    taken = take(requester, 4)
    second = other(requester.server).consume("q", "e")
    requester.answer(taken[0].number).call(m.MessageRecover(requeue=False), m.MessageOk)
    again = take(requester, 3)
    assert sorted(asked.method.body.octets for asked in again) == [b"2", b"3", b"4"]
    assert all(asked.method.redelivered for asked in again)
    assert again[0].number > taken[-1].number
    second.client.expect_nothing()


@rule("0-9/message.recover/requeue#queue")
def test_recover_with_requeue_redelivers_to_any_consumer_of_the_queue(requester: Requester) -> None:
    requester.consume("q", "d")
    fill(requester, b"1", b"2")
    take(requester, 2)
    second = other(requester.server).consume("q", "e")
    requester.call(m.MessageRecover(requeue=True), m.MessageOk)
    taken = take(requester, 1) + take(second, 1)
    assert sorted(asked.method.body.octets for asked in taken) == [b"1", b"2"]
    assert all(asked.method.redelivered for asked in taken)


def test_late_answer_to_a_recovered_transfer_does_not_acknowledge_its_redelivery(
    server: Server, requester: Requester
) -> None:
    requester.consume("q", "d")
    fill(requester, b"1")
    (first,) = take(requester, 1)
    requester.call(m.MessageRecover(requeue=False), m.MessageOk)
    take(requester, 1)
    requester.answer(first.number).client.drop()
    assert server.client().empty("q") == [b"1"]


@rule("0-9/message.recover/02")
@pytest.mark.parametrize("select", [(m.TxSelect(), m.TxSelectOk), (m.DtxSelect(), m.DtxSelectOk)])
def test_message_recover_on_transacted_channel_is_refused_with_406(requester: Requester, select: Any) -> None:
    requester.client.call(*select)
    requester.ask(m.MessageRecover())
    requester.client.expect_channel_close(406)


# --- qos -----------------------------------------------------------------------------------------------
@marked_rows(
    "window, bodies, sent",
    (rule("0-9/message.qos/prefetch-count-01"), {"prefetch_count": 2}, [b"1", b"2", b"3", b"4"], 2),
    (rule("0-9/message.qos/prefetch-count-01"), {"prefetch_size": 5}, [b"123", b"12", b"1"], 2),
    (rule("0-9/message.qos/prefetch-size-01"), {"prefetch_size": 10}, [b"x" * 100, b"y"], 1),
    ids=["count", "size", "larger than size"],
)
def test_message_prefetch_limits_unanswered_transfers_of_all_consumers_of_the_channel(
    requester: Requester, window: dict[str, int], bodies: list[bytes], sent: int
) -> None:
    requester.call(m.MessageQos(**window), m.MessageOk)
    requester.consume("q", "d").consume("q", "e")
    fill(requester, *bodies)
    taken = take(requester, sent)
    requester.answer(taken[0].number)
    assert take(requester, 1)[0].method.body.octets == bodies[sent]


def test_new_prefetch_applies_to_existing_message_consumers(requester: Requester) -> None:
    requester.consume("q", "d")
    fill(requester, b"1", b"2")
    taken = take(requester, 2)
    requester.call(m.MessageQos(prefetch_count=2), m.MessageOk)
    fill(requester, b"3").client.expect_nothing()
    requester.answer(taken[0].number)
    take(requester, 1)
    fill(requester, b"4", b"5", b"6").client.expect_nothing()
    requester.call(m.MessageQos(prefetch_count=4), m.MessageOk)
    take(requester, 2)


@pytest.mark.parametrize("before", [True, False])
def test_message_prefetch_does_not_limit_consumers_with_no_ack(requester: Requester, before: bool) -> None:
    if before:
        requester.call(m.MessageQos(prefetch_count=1), m.MessageOk)
    requester.consume("q", "d")
    fill(requester, b"0")
    take(requester, 1)
    requester.consume("q", "e", no_ack=True)
    if not before:
        requester.call(m.MessageQos(prefetch_count=1), m.MessageOk)
    fill(requester, b"1", b"2", b"3")
    assert {asked.method.destination for asked in take(requester, 3)} == {"e"}


def test_messages_from_get_neither_count_towards_prefetch_nor_need_it(requester: Requester) -> None:
    assert fill(requester, b"1", b"2", b"3").get("q") is not None
    requester.call(m.MessageQos(prefetch_count=1), m.MessageOk)
    requester.consume("q", "d")
    take(requester, 1)
    assert requester.get("q") is not None


def test_global_message_prefetch_counts_transfers_of_all_channels(server: Server) -> None:
    client = server.client(channels=3).declare("q")
    requesters = {number: Requester(client, number) for number in (1, 2, 3)}
    requesters[1].consume("q", "d1")
    fill(requesters[1], b"0")
    (first,) = take(requesters[1], 1)
    requesters[2].call(m.MessageQos(prefetch_count=3, global_=True), m.MessageOk)
    requesters[2].consume("q", "d2")
    requesters[3].consume("q", "d3")
    fill(requesters[1], *[b"%d" % number for number in range(1, 6)])
    channels = [frame.channel for frame in client.inbox]
    assert len(channels) == 2 and set(channels) != {1}
    client.inbox.clear()
    requesters[1].answer(first.number)
    assert len(client.inbox) == 1
    client.inbox.clear()
    requesters[3].ask(m.MessageQos(prefetch_count=4, global_=True))
    assert len(client.inbox) == 2, "the response, and one transfer more"


def test_classes_have_windows_of_their_own(requester: Requester) -> None:
    client = requester.client
    client.declare("r")
    requester.consume("q", "d")
    client.consume("r", "t")
    requester.call(m.MessageQos(prefetch_count=1), m.MessageOk)
    assert client.fill("r", b"1", b"2").bodies() == [b"1", b"2"]
    requester.call(m.MessageQos(), m.MessageOk)
    client.qos(1)
    fill(requester, b"1", b"2")
    take(requester, 2)


# --- what else there is --------------------------------------------------------------------------------
def test_consumers_of_class_message_and_class_basic_get_messages_in_turn(requester: Requester) -> None:
    client = requester.client
    requester.consume("q", "d")
    client.consume("q", "t")
    requester.ask(m.MessageTransfer(routing_key="q", body=Body(b"1")))
    assert requester.transfer().method.body.octets == b"1"
    requester.response(m.MessageOk)
    assert client.fill("q", b"2").delivery().body == b"2"


def test_message_consume_and_get_without_read_permission_are_refused_with_403(lenient: Server) -> None:
    lenient.client().declare("q")
    lenient.state.access.add(User("u", "p", (), {"/": Permission(read="^allowed$")}))
    for method in (m.MessageConsume(queue="q", destination="d"), m.MessageGet(queue="q")):
        requester = Requester(lenient.client(user="u", password="p"))
        requester.ask(method)
        requester.client.expect_channel_close(403)
