"""Channels of 0-9: how they begin, pause and end. What is work in progress there has tests of its own."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule


@rule("0-9/channel.open-ok/channel-id")
def test_every_channel_has_an_id_of_its_own(server: Server) -> None:
    ids = []
    for _ in range(2):
        client = server.client(channels=0)
        ids += [client.call(m.ChannelOpen(), m.ChannelOpenOk, number).channel_id for number in (1, 2)]
        client.close_channel(1)
        ids.append(client.call(m.ChannelOpen(), m.ChannelOpenOk, 1).channel_id)
    assert len(set(ids)) == 6
    assert all(ids)


@rule("0-9/channel.flow/finish-frame")
@pytest.mark.letter
def test_started_delivery_is_finished_before_flow_off_takes_effect(server: Server) -> None:
    client = server.client(frame_max=4096).declare("q").consume("q")
    client.publish(b"x" * 20_000, routing_key="q", frame_size=4088).send(m.ChannelFlow(active=False))
    assert client.publish(b"later", routing_key="q").delivery().body == b"x" * 20_000
    assert client.expect(m.ChannelFlowOk).active is False
    client.expect_nothing()
    assert client.perform(m.ChannelFlow(active=True)).delivery().body == b"later"


@rule("0-9/channel.flow/stops-deliveries#stops", "0-9/channel.flow/stops-deliveries#resumes")
@pytest.mark.letter
def test_messages_recovered_while_flow_is_off_are_redelivered_when_flow_is_on(server: Server) -> None:
    client = server.client().declare("q").consume("q")
    assert client.fill("q", b"1", b"2").bodies() == [b"1", b"2"]
    client.perform(m.ChannelFlow(active=False)).recover(requeue=False).expect_nothing()
    client.perform(m.ChannelFlow(active=True))
    again = [client.delivery(), client.delivery()]
    assert [(each.body, each.method.redelivered) for each in again] == [(b"1", True), (b"2", True)]


@rule("0-9/channel.flow/finish-frame")
@pytest.mark.letter
def test_one_channel_pauses_and_others_do_not(server: Server) -> None:
    client = server.client(channels=2).declare("q").declare("other")
    client.consume("q").consume("other", channel=2).perform(m.ChannelFlow(active=False))
    assert client.fill("q", b"held").fill("other", b"goes on").delivery(2).body == b"goes on"
    client.expect_nothing()


@rule("0-9/server-model/wait-for-reply")
def test_requests_that_wait_for_no_reply_are_answered_in_their_order(server: Server) -> None:
    client = server.client(channels=2)
    names = [f"q{number}" for number in range(20)]
    octets = [
        client.method_frame(m.QueueDeclare(queue=name), channel)
        for channel in (1, 2)
        for name in names[channel - 1 :: 2]
    ]
    client.send_bytes(b"".join(octets))
    for channel in (1, 2):
        answered = [client.expect(m.QueueDeclareOk, channel).queue for _ in names[::2]]
        assert answered == names[channel - 1 :: 2]
    client.expect_nothing()


@rule("0-9/server-model/wait-for-reply")
def test_declare_sent_behind_a_failing_declare_is_discarded(server: Server) -> None:
    client = server.client()
    requests = [m.QueueDeclare(queue="missing", passive=True), m.QueueDeclare(queue="after")]
    client.send_bytes(b"".join(client.method_frame(each) for each in requests)).expect_channel_close(404)
    client.expect_nothing()
    assert "after" not in server.vhost.queues


@rule("0-9/server-model/distinct-replies")
def test_delivery_and_declare_ok_both_arrive_after_a_declare(client: Client) -> None:
    client.declare("q").consume("q").publish(b"first", routing_key="q")
    assert client.send(m.QueueDeclare(queue="other")).delivery().body == b"first"
    assert client.expect(m.QueueDeclareOk).queue == "other"


@rule("0-9/server-model/optional-classes", "0-9/errors/code-second-digit")
@pytest.mark.parametrize("class_id", [85, 130, 9999])
@pytest.mark.letter
def test_method_of_an_unknown_class_closes_the_connection_with_540(client: Client, class_id: int) -> None:
    client.send_frame(1, 1, class_id.to_bytes(2, "big") + b"\x00\x0a\x00")
    client.expect_connection_close(540, at=(class_id, 10))
