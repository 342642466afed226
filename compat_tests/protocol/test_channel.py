"""Class channel: open, flow, close."""

from __future__ import annotations

import logging

import pytest

from compat_tests.protocol.driver import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.mark.rule("0-9-1/channel/grammar#used", "0-9-1/channel/grammar#only-between")
def test_methods_are_legal_between_open_and_close_only(server: Server) -> None:
    before = server.client(channels=0)
    before.send(m.QueueDeclare(queue="q"))
    before.expect_connection_close(504)

    between = server.client()
    between.declare("q")
    between.call(m.ChannelFlow(active=True), m.ChannelFlowOk)
    between.close_channel()

    between.send(m.QueueDeclare(queue="q"))
    between.expect_connection_close(504)


@pytest.mark.rule("0-9-1/channel/not-open")
def test_a_channel_that_is_not_open_cannot_be_used(client: Client) -> None:
    client.send(m.QueueDeclare(queue="q"), channel=7)
    close = client.expect_connection_close(504)
    assert close.reply_text == "CHANNEL_ERROR - expected 'channel.open'"
    assert (close.class_id, close.method_id) == (50, 10)


@pytest.mark.deviates("0-9-1/channel/not-open")
@pytest.mark.rule("0-9-1/channel/not-open")
@pytest.mark.parametrize("frame_type", [2, 3])
def test_a_content_on_a_channel_that_is_not_open_is_refused(server: Server, frame_type: int) -> None:
    client = server.client()
    client.send_frame(frame_type, 7, b"\0\x3c" + bytes(12))
    close = client.expect_connection_close(504 if server.state.personality.name == "spec" else 505)
    assert (close.class_id, close.method_id) == (0, 0)


@pytest.mark.rule("0-9-1/channel/not-open")
def test_a_channel_that_is_not_open_has_no_close_to_confirm(client: Client) -> None:
    client.close_channel()
    client.send(m.ChannelCloseOk())
    close = client.expect_connection_close(504)
    assert (close.class_id, close.method_id) == (20, 41)


@pytest.mark.rule("0-9-1/channel.open/state")
def test_an_open_channel_cannot_be_opened_again(client: Client) -> None:
    client.send(m.ChannelOpen())
    close = client.expect_connection_close(504)
    if client.server.protocol == "0-9-1" or client.server.state.personality.name != "spec":
        assert close.reply_text == "CHANNEL_ERROR - second 'channel.open' seen"
    assert (close.class_id, close.method_id) == (20, 10)


@pytest.mark.rule("0-9-1/channel.open/above-channel-max")
def test_numbers_above_channel_max_are_refused_by_the_letter(spec: Server) -> None:
    client = spec.client(channels=0, channel_max=10)
    client.open_channel(10)
    client.send(m.ChannelOpen(), channel=11)
    client.expect_connection_close(504)


@pytest.mark.deviates("0-9-1/channel.open/above-channel-max")
def test_rabbitmq_counts_channels_against_channel_max(rabbitmq: Server) -> None:
    client = rabbitmq.client(channels=0, channel_max=2)
    client.open_channel(900)
    client.open_channel(1)
    client.close_channel(900)
    client.open_channel(3)
    client.send(m.ChannelOpen(), channel=2)
    close = client.expect_connection_close(530)
    assert close.reply_text == (
        "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    )
    assert (close.class_id, close.method_id) == (0, 0)


@pytest.mark.rule("0-9-1/channel.open/reusable")
def test_a_reopened_channel_starts_anew(client: Client) -> None:
    client.declare("q")
    client.publish(b"1", routing_key="q")
    client.publish(b"2", routing_key="q")
    first = client.get("q", no_ack=True)
    client.close_channel()
    client.open_channel()
    second = client.get("q", no_ack=True)
    assert first is not None
    assert second is not None
    assert (first.method.delivery_tag, second.method.delivery_tag) == (1, 1)
    assert second.body == b"2"


@pytest.mark.rule("0-9-1/channel.open-ok/ready#open", "0-9-1/channel.open-ok/ready#reserved")
def test_open_ok_carries_an_empty_long_string(server: Server) -> None:
    client = server.client(channels=0)
    client.send(m.ChannelOpen(), channel=1)
    frame = client.take_frame()
    assert (frame.type, frame.channel) == (1, 1)
    assert frame.payload == bytes((0, 20, 0, 11)) + b"\0\0\0\0"
    client.declare("ready")


# --- flow ------------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1/channel.flow/initial-state")
def test_a_new_channel_is_active(client: Client) -> None:
    client.declare("q")
    client.publish(routing_key="q")
    client.consume("q")
    client.delivery()


@pytest.mark.rule("0-9-1/channel.flow/initial-state")
def test_a_client_may_open_a_channel_and_pause_it(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    client.publish(routing_key="q")
    client.call(m.ChannelFlow(active=False), m.ChannelFlowOk)
    client.consume("q")
    client.expect_nothing()
    client.call(m.ChannelFlow(active=True), m.ChannelFlowOk)
    client.expect_content(m.BasicDeliver)


@pytest.mark.parametrize(
    "about",
    [
        pytest.param(rule, marks=pytest.mark.deviates(f"0-9-1/{rule}"), id=rule)
        for rule in (
            "channel.flow/initial-state",
            "channel.flow/bidirectional",
            "channel.flow/stops-deliveries#stops",
            "channel.flow/stops-deliveries#resumes",
            "channel.flow-ok/echo",
        )
    ],
)
def test_rabbitmq_does_not_let_the_client_pause_a_channel(rabbitmq: Server, about: str) -> None:
    client = rabbitmq.client()
    assert client.call(m.ChannelFlow(active=True), m.ChannelFlowOk).active
    client.send(m.ChannelFlow(active=False))
    close = client.expect_connection_close(540)
    assert close.reply_text == "NOT_IMPLEMENTED - active=false"
    assert (close.class_id, close.method_id) == (20, 20)


@pytest.mark.rule("0-9-1/channel.flow/bidirectional")
def test_a_flow_amid_a_large_delivery_stops_it_soon(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    for _ in range(40):
        client.publish(b"x" * 100_000, routing_key="q")
    client.consume("q", no_ack=True)
    client.send(m.ChannelFlow(active=False))
    frames = client.inbox
    at = next(i for i, frame in enumerate(frames) if isinstance(frame.method, m.ChannelFlowOk))
    assert 0 < at < len([*frames]) <= at + 1, "what was under way comes before flow-ok, nothing after"
    assert sum(isinstance(frame.method, m.BasicDeliver) for frame in frames) < 40
    del frames[:]
    client.expect_nothing()


@pytest.mark.rule("0-9-1/channel.flow/throttling")
def test_a_broker_short_of_memory_tells_publishers_to_stop(spec: Server) -> None:
    client = spec.client(channels=2)
    spec.state.block("low on memory")
    for channel in (1, 2):
        assert not client.expect(m.ChannelFlow, channel).active
        client.send(m.ChannelFlowOk(active=False), channel)
    client.open_channel(3)
    assert not client.expect(m.ChannelFlow, 3).active
    spec.state.unblock()
    for channel in (1, 2, 3):
        assert client.expect(m.ChannelFlow, channel).active
        client.send(m.ChannelFlowOk(active=True), channel)
    client.declare("q")
    client.expect_nothing()


@pytest.mark.deviates("0-9-1/channel.flow/throttling")
def test_rabbitmq_throttles_without_flow(rabbitmq: Server) -> None:
    client = rabbitmq.client(client_properties={"capabilities": {"connection.blocked": True}})
    rabbitmq.state.block("low on memory")
    client.publish(routing_key="q")
    assert not client.connection.reading
    assert not [frame for frame in client.inbox if isinstance(frame.method, m.ChannelFlow)]


def test_rabbitmq_does_not_expect_flow_ok(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.send(m.ChannelFlowOk(active=True))
    close = client.expect_connection_close(503)
    assert close.reply_text == "COMMAND_INVALID - unimplemented method"
    assert (close.class_id, close.method_id) == (20, 21)


@pytest.mark.rule("0-9-1/channel.flow/expected-behaviour")
def test_who_goes_on_publishing_is_cut_off(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    spec.state.block("low on memory")
    assert not client.expect(m.ChannelFlow).active
    assert client.connection.reading
    client.publish(routing_key="q")
    assert not client.connection.reading, "nothing more is read from it until the broker has recovered"
    spec.state.unblock()
    assert client.connection.reading


@pytest.mark.rule("0-9-1/channel.flow/stops-deliveries#stops", "0-9-1/channel.flow/stops-deliveries#resumes")
def test_flow_stops_deliveries_and_resumes_them(spec: Server) -> None:
    client = spec.client(channels=2)
    client.declare("q")
    client.consume("q")
    client.call(m.ChannelFlow(active=False), m.ChannelFlowOk)
    client.publish(b"1", routing_key="q", channel=2)
    client.publish(b"2", routing_key="q", channel=2)
    client.expect_nothing()
    client.call(m.ChannelFlow(active=True), m.ChannelFlowOk)
    assert [client.delivery().body, client.delivery().body] == [b"1", b"2"]


@pytest.mark.rule("0-9-1/channel.flow/stops-deliveries#stops")
def test_flow_holds_for_its_own_channel_only(spec: Server) -> None:
    client = spec.client(channels=2)
    client.declare("q")
    client.consume("q", "paused", channel=1)
    client.consume("q", "active", channel=2)
    client.call(m.ChannelFlow(active=False), m.ChannelFlowOk)
    for _ in range(3):
        client.publish(routing_key="q")
        assert client.delivery(channel=2).method.consumer_tag == "active"
    client.expect_nothing()


@pytest.mark.rule("0-9-1/channel.flow/not-get")
def test_a_paused_channel_can_still_get(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    client.call(m.ChannelFlow(active=False), m.ChannelFlowOk)
    client.publish(b"got", routing_key="q")
    got = client.get("q")
    assert got is not None
    assert got.body == b"got"


@pytest.mark.rule("0-9-1/channel.flow/not-get")
def test_flow_and_get_at_rabbitmq(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.declare("q")
    client.call(m.ChannelFlow(active=True), m.ChannelFlowOk)
    client.publish(routing_key="q")
    assert client.get("q") is not None


@pytest.mark.rule("0-9-1/channel.flow/paused-consumer-count")
def test_paused_consumers_are_not_counted(spec: Server) -> None:
    client = spec.client(channels=2)
    client.declare("q")
    client.consume("q", channel=1)
    client.call(m.ChannelFlow(active=False), m.ChannelFlowOk, channel=1)
    assert client.declare("q", passive=True, channel=2).consumer_count == 0
    client.call(m.ChannelFlow(active=True), m.ChannelFlowOk, channel=1)
    assert client.declare("q", passive=True, channel=2).consumer_count == 1


@pytest.mark.deviates("0-9-1/channel.flow/paused-consumer-count")
def test_rabbitmq_counts_consumers_that_can_take_nothing(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.declare("q")
    client.call(m.BasicQos(prefetch_count=1), m.BasicQosOk)
    client.consume("q")
    client.publish(routing_key="q")
    client.delivery()
    assert client.declare("q", passive=True).consumer_count == 1


@pytest.mark.rule("0-9-1/channel.flow-ok/echo")
def test_flow_ok_repeats_the_setting(spec: Server) -> None:
    client = spec.client()
    assert client.call(m.ChannelFlow(active=False), m.ChannelFlowOk).active is False
    assert client.call(m.ChannelFlow(active=True), m.ChannelFlowOk).active is True


# --- close -----------------------------------------------------------------------------------------


@pytest.mark.rule("0-9-1/channel.close/stability#discards")
def test_what_follows_a_failure_has_no_effect(client: Client) -> None:
    client.send(m.QueueBind(queue="missing", exchange="amq.direct"))
    client.send(m.QueueDeclare(queue="after"))
    client.publish(exchange="missing as well")
    client.expect_channel_close(404)
    client.expect_nothing()
    client.open_channel()
    client.send(m.QueueDeclare(queue="after", passive=True))
    client.expect_channel_close(404)


@pytest.mark.rule("0-9-1/channel.close/stability#crossed")
def test_a_crossed_close_is_answered(client: Client) -> None:
    client.send(m.QueueDeclare(queue="missing", passive=True))
    client.send(m.ChannelClose(reply_code=200))
    client.expect(m.ChannelClose)
    client.expect(m.ChannelCloseOk)
    client.send(m.ChannelCloseOk())
    client.open_channel()


@pytest.mark.rule("0-9-1/channel.close/either-peer#client", "0-9-1/channel.close/either-peer#server")
def test_either_peer_may_close(client: Client) -> None:
    client.send(m.ChannelClose(reply_code=200, reply_text="done"))
    client.expect(m.ChannelCloseOk)
    client.open_channel()
    client.send(m.QueueDeclare(queue="missing", passive=True))
    close = client.expect_channel_close(404)
    assert (close.class_id, close.method_id) == (50, 10)


@pytest.mark.rule(
    "0-9-1/channel.close/cancels-consumers#consumers", "0-9-1/channel.close/cancels-consumers#messages"
)
def test_closing_ends_consumers_and_returns_what_they_held(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.consume("q", channel=1)
    client.publish(b"held", routing_key="q")
    assert not client.delivery(channel=1).method.redelivered
    client.close_channel(1)
    assert client.declare("q", passive=True, channel=2).consumer_count == 0
    client.consume("q", channel=2)
    again = client.delivery(channel=2)
    assert (again.body, again.method.redelivered) == (b"held", True)


@pytest.mark.rule("0-9-1/channel.close/rolls-back")
def test_closing_discards_an_open_transaction(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.call(m.TxSelect(), m.TxSelectOk)
    client.publish(routing_key="q")
    client.close_channel(1)
    assert client.count("q", channel=2) == 0


@pytest.mark.rule("0-9-1/channel.close-ok/reporting")
def test_a_socket_that_ends_before_close_ok_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(m.QueueDeclare(queue="missing", passive=True))
    client.expect(m.ChannelClose)
    with caplog.at_level(logging.INFO, logger="fakeamqp"):
        client.drop()
    assert "channel 1" in caplog.text
    assert "channel.close-ok" in caplog.text


@pytest.mark.rule("0-9-1/channel.close-ok/number-free#client")
def test_the_number_is_free_at_once(client: Client) -> None:
    client.send(m.ChannelClose(reply_code=200))
    client.send(m.ChannelOpen())
    client.send(m.BasicQos())
    client.expect(m.ChannelCloseOk)
    client.expect(m.ChannelOpenOk)
    client.expect(m.BasicQosOk)


@pytest.mark.rule("0-9-1/channel.close-ok/number-free#server")
def test_messages_of_a_closed_channel_go_to_another_one_after_close_ok(server: Server) -> None:
    client = server.client(channels=2)
    client.declare("q")
    client.publish(b"m", routing_key="q")
    client.send(m.BasicGet(queue="q"))
    client.expect_content(m.BasicGetOk)
    client.call(m.BasicConsume(queue="q"), m.BasicConsumeOk, 2)
    client.call(m.ChannelClose(reply_code=200), m.ChannelCloseOk)
    assert client.expect_content(m.BasicDeliver, 2).method.redelivered


def test_the_number_is_free_after_the_clients_close_ok(client: Client) -> None:
    client.send(m.QueueDeclare(queue="missing", passive=True))
    client.expect(m.ChannelClose)
    client.send(m.ChannelCloseOk())
    client.send(m.ChannelOpen())
    client.expect(m.ChannelOpenOk)


@pytest.mark.rule("0-9-1/channel.close/stability#discards")
def test_an_open_before_close_ok_is_discarded_by_the_letter(spec: Server) -> None:
    client = spec.client()
    client.send(m.QueueDeclare(queue="missing", passive=True))
    client.expect(m.ChannelClose)
    client.send(m.ChannelOpen())
    client.expect_nothing()
    client.send(m.ChannelCloseOk())
    client.open_channel()


@pytest.mark.deviates("0-9-1/channel.close/stability#discards")
def test_an_open_before_close_ok_is_an_error_at_rabbitmq(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.send(m.QueueDeclare(queue="missing", passive=True))
    client.expect(m.ChannelClose)
    client.send(m.ChannelOpen())
    close = client.expect_connection_close(504)
    assert close.reply_text == "CHANNEL_ERROR - second 'channel.open' seen"


def test_a_close_ok_nobody_waits_for_is_an_error(client: Client) -> None:
    client.send(m.ChannelCloseOk())
    close = client.expect_connection_close(503)
    assert close.reply_text == "COMMAND_INVALID - unimplemented method"
    assert (close.class_id, close.method_id) == (20, 41)


def test_a_channel_takes_its_confirms_and_consumers_with_it(client: Client) -> None:
    client.declare("q")
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
    client.publish(routing_key="q")
    assert client.expect(m.BasicAck).delivery_tag == 1
    client.close_channel()
    client.open_channel()
    client.publish(routing_key="q")
    client.expect_nothing()
