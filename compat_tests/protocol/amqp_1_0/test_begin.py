"""Sessions of AMQP 1.0: begin, end, and both windows."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_1_0 import Client, Server, message
from fakeamqp.protocols.amqp_1_0.codec import composites as c


@pytest.mark.rule("1-0/begin/reply")
def test_begin_is_answered_on_the_same_channel_with_a_window_of_400(server: Server) -> None:
    answer = server.open().begin(3, handle_max=7)
    assert (answer.remote_channel, answer.incoming_window, answer.handle_max) == (3, 400, 7)


@pytest.mark.rule("1-0/begin/next-outgoing-id")
def test_first_transfer_id_depends_on_the_version(rabbitmq: Server, rabbitmq_4_0: Server) -> None:
    assert rabbitmq.open().begin().next_outgoing_id == 0
    assert rabbitmq_4_0.open().begin().next_outgoing_id == 4_294_967_292


@pytest.mark.rule("1-0/begin/remote-channel")
def test_begin_with_remote_channel_closes_the_connection(server: Server) -> None:
    client = server.open()
    client.send(c.Begin(remote_channel=0, next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    client.expect_close("amqp:internal-error")


@pytest.mark.rule("1-0/begin/twice")
def test_second_begin_on_a_channel_ends_its_session(client: Client) -> None:
    client.send(c.Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
    client.expect_end("amqp:internal-error")
    client.begin()


@pytest.mark.rule("1-0/end/reply")
def test_end_is_answered_with_end_and_the_channel_is_free(client: Client) -> None:
    client.send(c.End())
    assert client.expect(c.End).error is None
    client.begin()


@pytest.mark.rule("1-0/end/unknown-channel")
def test_frame_on_a_channel_without_session_is_ignored(client: Client) -> None:
    client.send(c.Detach(handle=0), 5).expect_nothing()
    client.begin(5)


@pytest.mark.rule("1-0/flow/session")
def test_flow_ahead_of_what_was_sent_ends_the_session(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    client.send(c.Flow(next_incoming_id=5, incoming_window=9, next_outgoing_id=0, outgoing_window=9))
    text = "next-incoming-id from FLOW (5) leads next-outgoing-id (0)"
    client.expect_end("amqp:session:window-violation", text)


@pytest.mark.rule("1-0/flow/session")
def test_broker_sends_no_more_transfers_than_the_clients_window_admits(rabbitmq: Server) -> None:
    client = rabbitmq.open()
    client.begin(incoming_window=2)
    sender = client.sender()
    for _ in range(5):
        sender.publish()
    receiver = client.receiver(handle=1)
    receiver.flow(link_credit=10, incoming_window=2)
    assert [receiver.take()[0].delivery_id for _ in range(2)] == [0, 1]
    client.expect_nothing()
    receiver.flow(handle=None, next_incoming_id=2, incoming_window=1)
    assert receiver.take()[0].delivery_id == 2
    client.expect_nothing()


@pytest.mark.rule("1-0/flow/session")
def test_window_for_publishers_is_granted_again_when_half_is_left(client: Client) -> None:
    sender = client.sender()
    for _ in range(199):
        sender.transfer(settled=True)
    granted = [each.what for each in client.take_all()]
    assert all(each.handle is not None for each in granted)
    sender.transfer(settled=True)
    assert client.expect(c.Flow).incoming_window == 400


@pytest.mark.rule("1-0/flow/window-violation")
def test_transfer_beyond_the_window_ends_the_session(rabbitmq: Server) -> None:
    client = rabbitmq.session()
    sender = client.sender()
    client.connection.sessions[0].incoming_window = 0
    sender.transfer()
    text = "incoming window violation (tolerated excess tranfers: 0)"
    client.expect_end("amqp:session:window-violation", text)


@pytest.mark.rule("1-0/flow/alarm")
def test_alarm_closes_the_window_and_tolerates_400_transfers(server: Server) -> None:
    client = server.session()
    sender = client.sender()
    server.state.block("low on memory")
    assert client.expect(c.Flow).incoming_window == 0
    assert isinstance(sender.publish(), c.Accepted)
    server.state.unblock()
    assert client.expect(c.Flow).incoming_window == 400


@pytest.mark.rule("1-0/flow/alarm")
def test_session_that_begins_during_an_alarm_has_no_window_but_links_have_credit(server: Server) -> None:
    server.state.block("low on memory")
    client = server.open()
    assert client.begin().incoming_window == 0
    assert client.sender().granted.link_credit == 170


@pytest.mark.rule("1-0/flow/echo")
def test_echo_without_handle_has_no_answer(client: Client) -> None:
    client.send(c.Flow(incoming_window=9, next_outgoing_id=0, outgoing_window=9, echo=True))
    client.expect_nothing()


@pytest.mark.rule("1-0/end/releases")
def test_end_returns_what_the_client_holds(server: Server) -> None:
    client = server.session()
    client.sender().publish(message(b"x"))
    client.receiver(handle=1, credit=1).take()
    client.take_all()
    client.send(c.End())
    client.expect(c.End)
    assert [each.message.body for each in server.vhost.queues["q"].ready] == [b"x"]
