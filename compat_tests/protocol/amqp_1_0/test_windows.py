"""Flow control of AMQP 1.0 as the standard has it: windows of sessions, credit of links."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.scripted.amqp_1_0 import WINDOW, Client, Server, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import Symbol

rule = pytest.mark.rule


def fill(server: Server, count: int) -> None:
    sender = server.session().sender()
    for number in range(count):
        sender.publish(message(b"%d" % number))


def flow(client: Client, **fields: Any) -> None:
    said = {"incoming_window": WINDOW, "next_outgoing_id": 0, "outgoing_window": WINDOW, **fields}
    client.send(c.Flow(**said))


def bodies(client: Client) -> list[bytes]:
    return [each.payload[-1:] for each in client.take_all() if isinstance(each.what, c.Transfer)]


# --- windows ------------------------------------------------------------------------------------------------


@rule("1-0/flow/session-fields", "1-0/begin/incoming-window", "1-0/begin/outgoing-window")
def test_flows_of_the_broker_have_the_state_of_the_session(rabbitmq: Server) -> None:
    client = rabbitmq.open()
    assert client.begin(next_outgoing_id=7).outgoing_window == 0xFFFFFFFF
    granted = client.sender().granted
    assert (granted.next_incoming_id, granted.incoming_window) == (7, 400)
    assert (granted.next_outgoing_id, granted.outgoing_window) == (0, 0xFFFFFFFF)


@rule("1-0/begin/any-id")
def test_transfer_ids_of_the_client_may_be_any_and_wrap(rabbitmq: Server) -> None:
    client = rabbitmq.open()
    client.begin(next_outgoing_id=0xFFFFFFFE)
    sender = client.sender()
    for _ in range(3):
        assert isinstance(sender.publish(), c.Accepted)
    rabbitmq.state.block("low on memory")
    assert client.expect(c.Flow).next_incoming_id == 1


@rule("1-0/begin/any-id", "1-0/flow/next-incoming-id-absent")
def test_transfer_ids_of_the_broker_wrap(rabbitmq_4_0: Server) -> None:
    fill(rabbitmq_4_0, 6)
    client = rabbitmq_4_0.open()
    client.begin(incoming_window=3)
    receiver = client.receiver().flow(link_credit=9, incoming_window=3)
    assert len(client.take_all()) == 3
    receiver.flow(handle=None, next_incoming_id=0xFFFFFFFF, incoming_window=2)
    assert len(client.take_all()) == 2
    receiver.flow(handle=None, next_incoming_id=1, incoming_window=2)
    assert len(client.take_all()) == 1


@rule("1-0/flow/remote-window", "1-0/flow/window-order")
def test_window_counts_from_what_the_client_has_seen(rabbitmq: Server) -> None:
    fill(rabbitmq, 6)
    client = rabbitmq.open()
    client.begin(incoming_window=2)
    client.receiver().flow(link_credit=9, incoming_window=2)
    assert bodies(client) == [b"0", b"1"]
    flow(client, next_incoming_id=1, incoming_window=2)
    assert bodies(client) == [b"2"]
    flow(client, next_incoming_id=3, incoming_window=9)
    assert bodies(client) == [b"3", b"4", b"5"]


@rule("1-0/flow/window-zero", "1-0/flow/window-order")
def test_window_of_0_stops_transfers_and_nothing_else(server: Server) -> None:
    fill(server, 1)
    client = server.open()
    client.begin(incoming_window=0)
    assert isinstance(client.sender().publish(message(b"1")), c.Accepted)
    receiver = client.receiver(handle=1).flow(link_credit=9, incoming_window=0)
    assert isinstance(client.sender(handle=2).publish(message(b"2")), c.Accepted)
    receiver.flow(handle=None, incoming_window=5)
    assert bodies(client) == [b"0", b"1", b"2"]


@rule("1-0/flow/window-per-transfer")
def test_window_counts_transfers_and_not_messages(server: Server) -> None:
    server.session().sender().publish(message(b"x" * 3000))
    client = server.open(max_frame_size=512)
    first = client.begin(incoming_window=2).next_outgoing_id
    receiver = client.receiver().flow(link_credit=1, incoming_window=2)
    assert [each.what.more for each in client.take_all()] == [True, True]
    receiver.flow(handle=None, next_incoming_id=(first + 2) & 0xFFFFFFFF, incoming_window=99)
    assert not client.take_all()[-1].what.more


@pytest.mark.deviates("1-0/flow/echo-session", "1-0/flow/echo-sender")
def test_echo_of_a_session_or_a_sender_has_no_answer(client: Client) -> None:
    client.sender()
    flow(client, echo=True)
    flow(client, echo=True, handle=0, delivery_count=0)
    client.expect_nothing()


@rule("1-0/flow/sender-state")
def test_flow_of_a_sender_changes_neither_its_credit_nor_the_link(client: Client) -> None:
    sender = client.sender()
    flow(client, handle=0, delivery_count=0, link_credit=1, available=7)
    for _ in range(3):
        assert isinstance(sender.publish(), c.Accepted)


# --- credit -------------------------------------------------------------------------------------------------


@rule("1-0/flow/grants", "1-0/flow/delivery-count")
def test_credit_for_a_sender_counts_from_its_initial_delivery_count(server: Server) -> None:
    client = server.session()
    sender = client.sender(initial_delivery_count=0xFFFFFFFE)
    assert (sender.granted.delivery_count, sender.granted.link_credit) == (0xFFFFFFFE, 170)
    for _ in range(84):
        sender.transfer(settled=True)
    client.expect_nothing()
    sender.transfer(settled=True)
    granted = client.expect(c.Flow)
    assert (granted.delivery_count, granted.link_credit) == (83, 170)


@rule("1-0/flow/available", "1-0/flow/delivery-count")
def test_answer_to_echo_says_what_is_available_and_how_much_was_sent(rabbitmq: Server) -> None:
    fill(rabbitmq, 5)
    client = rabbitmq.session()
    receiver = client.receiver().flow(link_credit=2, echo=True)
    assert bodies_and_flow(client) == ([b"0", b"1"], (2, 0, 3))
    receiver.flow(link_credit=0, delivery_count=2, echo=True)
    assert bodies_and_flow(client) == ([], (2, 0, 3))


def bodies_and_flow(client: Client) -> tuple[list[bytes], tuple[int, int, int]]:
    *transfers, told = client.take_all()
    said = told.what
    return [each.payload[-1:] for each in transfers], (said.delivery_count, said.link_credit, said.available)


@rule("1-0/flow/credit-per-link", "1-0/flow/other-handle")
def test_each_link_has_its_own_credit(rabbitmq: Server) -> None:
    fill(rabbitmq, 6)
    client = rabbitmq.session()
    one, other = client.receiver(handle=0), client.receiver(handle=7)
    one.flow(link_credit=1)
    other.flow(link_credit=2)
    flow(client)
    handles = [each.what.handle for each in client.take_all()]
    assert sorted(handles) == [0, 7, 7]


@rule("1-0/flow/credit-zero", "1-0/flow/credit-added")
def test_credit_of_0_stops_a_link_until_it_gets_more(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    receiver = client.receiver(credit=5).flow(link_credit=0, echo=True)
    stopped = client.expect(c.Flow)
    assert (stopped.link_credit, stopped.delivery_count) == (0, 0)
    fill(rabbitmq, 3)
    client.expect_nothing()
    receiver.flow(link_credit=2)
    assert bodies(client) == [b"0", b"1"]


@pytest.mark.deviates("1-0/flow/credit-none", "1-0/flow/credit-range")
@pytest.mark.parametrize("credit", [None, 0x80000000, 0xFFFFFFFF])
def test_flow_without_credit_or_with_too_much_ends_the_session(client: Client, credit: int | None) -> None:
    client.receiver()
    flow(client, handle=0, link_credit=credit)
    client.expect_end("amqp:internal-error")


@rule("1-0/flow/link-credit")
def test_largest_credit_is_that_below_2_to_the_31(server: Server) -> None:
    fill(server, 2)
    client = server.session()
    client.receiver(credit=0x7FFFFFFF)
    assert bodies(client) == [b"0", b"1"]


@rule("1-0/flow/drain-empty", "1-0/flow/drain-off")
def test_drained_link_without_messages_gives_back_its_credit_and_goes_on(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    receiver = client.receiver().flow(link_credit=3, drain=True)
    drained = client.expect(c.Flow)
    assert (drained.delivery_count, drained.link_credit, drained.drain, drained.available) == (3, 0, True, 0)
    fill(rabbitmq, 2)
    client.expect_nothing()
    receiver.flow(link_credit=1, delivery_count=3)
    assert bodies(client) == [b"0"]


@rule("1-0/flow/get")
def test_credit_of_1_with_drain_gets_one_message_or_none(rabbitmq: Server) -> None:
    fill(rabbitmq, 1)
    client = rabbitmq.session()
    receiver = client.receiver().flow(link_credit=1, drain=True)
    first, told = client.take_all()
    assert first.payload.endswith(b"0") and told.what.delivery_count == 1
    receiver.flow(link_credit=1, delivery_count=1, drain=True)
    (told,) = client.take_all()
    assert (told.what.delivery_count, told.what.link_credit) == (2, 0)


@rule("1-0/flow/notification")
def test_message_goes_out_when_it_comes_as_long_as_there_is_credit(server: Server) -> None:
    client = server.session()
    client.receiver(credit=2).client.expect_nothing()
    fill(server, 3)
    assert bodies(client) == [b"0", b"1"]


@rule("1-0/begin/handle-max-default", "1-0/begin/unknown-fields")
def test_unknown_capabilities_and_properties_of_begin_have_no_effect(server: Server) -> None:
    names = (Symbol("x"), Symbol("y"))
    client = server.open()
    answer = client.begin(
        handle_max=None, offered_capabilities=names, desired_capabilities=names, properties={Symbol("a"): 1}
    )
    assert (answer.handle_max, answer.offered_capabilities, answer.properties) == (255, None, None)
    client.sender(handle=255)


# --- end ----------------------------------------------------------------------------------------------------


@rule("1-0/end/error", "1-0/end/detaches")
def test_end_with_an_error_is_answered_without_and_ends_the_links(server: Server) -> None:
    client = server.session()
    client.receiver(credit=1)
    client.send(c.End(error=c.Error(condition=Symbol("x:y"), description="why")))
    assert client.expect(c.End).error is None
    assert not server.vhost.queues["q"].subscriptions


@rule("1-0/end/discards")
def test_broker_ignores_everything_after_its_own_end(server: Server) -> None:
    client = server.session()
    sender = client.sender()
    client.send(c.Flow(incoming_window=1, next_outgoing_id=0, outgoing_window=1, handle=9, link_credit=1))
    client.expect_end("amqp:session:unattached-handle")
    sender.transfer()
    flow(client, handle=0)
    client.send(c.End()).expect_nothing()
    assert not server.vhost.queues["q"].ready
    client.begin()
    client.expect_nothing()
