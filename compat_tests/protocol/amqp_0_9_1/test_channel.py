"""Class channel: open, flow, close."""

from __future__ import annotations

import logging

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m


@pytest.mark.rule("0-9/channel/grammar#only-between")
@pytest.mark.rule("0-9-1/channel/grammar#used", "0-9-1/channel/grammar#only-between")
def test_method_before_channel_open_or_after_close_closes_the_connection_with_504(server: Server) -> None:
    server.client(channels=0).ends(m.QueueDeclare(queue="q"), 504)

    between = server.client()
    between.declare("q").perform(m.ChannelFlow(active=True)).close_channel()

    between.ends(m.QueueDeclare(queue="q"), 504)


@pytest.mark.rule("0-9-1/channel/not-open")
def test_method_on_unopened_channel_closes_the_connection_with_504(client: Client) -> None:
    client.ends(m.QueueDeclare(queue="q"), 504, channel=7, text="CHANNEL_ERROR - expected 'channel.open'")


@pytest.mark.deviates("0-9-1/channel/not-open")
@pytest.mark.rule("0-9-1/channel/not-open")
@pytest.mark.parametrize("frame_type", [2, 3])
def test_content_frame_on_unopened_channel_closes_the_connection(server: Server, frame_type: int) -> None:
    client = server.client().send_frame(frame_type, 7, b"\0\x3c" + bytes(12))
    client.expect_connection_close(504 if server.is_spec else 505, at=(0, 0))


@pytest.mark.rule("0-9-1/channel/not-open")
def test_close_ok_on_closed_channel_closes_the_connection_with_504(client: Client) -> None:
    client.close_channel().ends(m.ChannelCloseOk(), 504, at=(20, 41))


@pytest.mark.rule("0-9-1/channel.open/state")
def test_second_channel_open_closes_the_connection_with_504(client: Client) -> None:
    close = client.ends(m.ChannelOpen(), 504)
    if client.server.protocol == "0-9-1" or not client.server.is_spec:
        assert close.reply_text == "CHANNEL_ERROR - second 'channel.open' seen"
    assert (close.class_id, close.method_id) == (20, 10)


@pytest.mark.rule("0-9-1/channel.open/above-channel-max")
def test_spec_personality_refuses_channel_numbers_above_channel_max(spec: Server) -> None:
    spec.client(channels=0, channel_max=10).open_channel(10).ends(m.ChannelOpen(), 504, channel=11)


@pytest.mark.deviates("0-9-1/channel.open/above-channel-max")
def test_rabbitmq_limits_number_of_open_channels_to_channel_max(rabbitmq: Server) -> None:
    client = rabbitmq.client(channels=0, channel_max=2).open_channel(900).open_channel(1)
    close = client.close_channel(900).open_channel(3).ends(m.ChannelOpen(), 530, channel=2)
    assert close.reply_text == (
        "NOT_ALLOWED - number of channels opened (2) has reached the negotiated channel_max (2)"
    )
    assert (close.class_id, close.method_id) == (0, 0)


@pytest.mark.rule("0-9-1/channel.open/reusable")
def test_reopened_channel_restarts_delivery_tags_at_1(client: Client) -> None:
    client.declare("q").publish(b"1", routing_key="q")
    first = client.publish(b"2", routing_key="q").get("q", no_ack=True)
    second = client.close_channel().open_channel().get("q", no_ack=True)
    assert first is not None
    assert second is not None
    assert (first.method.delivery_tag, second.method.delivery_tag) == (1, 1)
    assert second.body == b"2"


@pytest.mark.rule("0-9-1/channel.open-ok/ready#open", "0-9-1/channel.open-ok/ready#reserved")
def test_open_ok_carries_an_empty_long_string(server: Server) -> None:
    client = server.client(channels=0)
    frame = client.send(m.ChannelOpen(), channel=1).take_frame()
    assert (frame.type, frame.channel) == (1, 1)
    assert frame.payload == bytes((0, 20, 0, 11)) + b"\0\0\0\0"
    client.declare("ready")


# --- flow ------------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/channel.flow/initial-state")
def test_new_channel_delivers_messages_without_channel_flow(client: Client) -> None:
    client.declare("q").publish(routing_key="q").consume("q").delivery()


@pytest.mark.rule("0-9-1/channel.flow/initial-state")
def test_spec_personality_lets_client_pause_deliveries_with_channel_flow(spec: Server) -> None:
    client = spec.client().declare("q")
    client.publish(routing_key="q").perform(m.ChannelFlow(active=False)).consume("q").expect_nothing()
    client.perform(m.ChannelFlow(active=True)).expect_content(m.BasicDeliver)


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
def test_rabbitmq_refuses_channel_flow_with_active_false(rabbitmq: Server, about: str) -> None:
    client = rabbitmq.client()
    assert client.call(m.ChannelFlow(active=True), m.ChannelFlowOk).active
    client.ends(m.ChannelFlow(active=False), 540, text="NOT_IMPLEMENTED - active=false")


@pytest.mark.rule("0-9-1/channel.flow/bidirectional")
def test_channel_flow_stops_deliveries_of_a_long_queue_after_flow_ok(spec: Server) -> None:
    client = spec.client().declare("q")
    for _ in range(40):
        client.publish(b"x" * 100_000, routing_key="q")
    frames = client.consume("q", no_ack=True).send(m.ChannelFlow(active=False)).inbox
    at = next(i for i, frame in enumerate(frames) if isinstance(frame.method, m.ChannelFlowOk))
    assert 0 < at < len([*frames]) <= at + 1, "what was under way comes before flow-ok, nothing after"
    assert sum(isinstance(frame.method, m.BasicDeliver) for frame in frames) < 40
    del frames[:]
    client.expect_nothing()


@pytest.mark.rule("0-9-1/channel.flow/throttling")
def test_spec_personality_sends_channel_flow_on_all_channels_when_blocked(spec: Server) -> None:
    client = spec.client(channels=2)
    spec.state.block("low on memory")
    for channel in (1, 2):
        assert not client.expect(m.ChannelFlow, channel).active
        client.send(m.ChannelFlowOk(active=False), channel)
    assert not client.open_channel(3).expect(m.ChannelFlow, 3).active
    spec.state.unblock()
    for channel in (1, 2, 3):
        assert client.expect(m.ChannelFlow, channel).active
        client.send(m.ChannelFlowOk(active=True), channel)
    client.declare("q").expect_nothing()


@pytest.mark.needs("inspection", "settings")
@pytest.mark.deviates("0-9-1/channel.flow/throttling")
def test_rabbitmq_stops_reading_from_blocked_publisher_without_channel_flow(rabbitmq: Server) -> None:
    client = rabbitmq.client(client_properties={"capabilities": {"connection.blocked": True}})
    rabbitmq.state.block("low on memory")
    assert not client.publish(routing_key="q").connection.reading
    assert not [frame for frame in client.inbox if isinstance(frame.method, m.ChannelFlow)]


def test_flow_ok_from_client_closes_rabbitmq_connection_with_503(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.ends(m.ChannelFlowOk(active=True), 503, text="COMMAND_INVALID - unimplemented method")


@pytest.mark.rule("0-9-1/channel.flow/expected-behaviour")
def test_spec_personality_stops_reading_from_client_that_publishes_despite_channel_flow(spec: Server) -> None:
    client = spec.client().declare("q")
    spec.state.block("low on memory")
    assert not client.expect(m.ChannelFlow).active
    assert client.connection.reading
    client.publish(routing_key="q")
    assert not client.connection.reading, "nothing more is read from it until the broker has recovered"
    spec.state.unblock()
    assert client.connection.reading


@pytest.mark.rule("0-9-1/channel.flow/stops-deliveries#stops", "0-9-1/channel.flow/stops-deliveries#resumes")
def test_channel_flow_stops_and_resumes_deliveries(spec: Server) -> None:
    client = spec.client(channels=2).declare("q")
    client.consume("q").perform(m.ChannelFlow(active=False)).publish(b"1", routing_key="q", channel=2)
    client.publish(b"2", routing_key="q", channel=2).expect_nothing()
    client.perform(m.ChannelFlow(active=True))
    assert [client.delivery().body, client.delivery().body] == [b"1", b"2"]


@pytest.mark.rule("0-9-1/channel.flow/stops-deliveries#stops")
def test_channel_flow_does_not_affect_deliveries_of_other_channels(spec: Server) -> None:
    client = spec.client(channels=2).declare("q").consume("q", "paused", channel=1)
    client.consume("q", "active", channel=2).perform(m.ChannelFlow(active=False))
    for _ in range(3):
        assert client.publish(routing_key="q").delivery(channel=2).method.consumer_tag == "active"
    client.expect_nothing()


@pytest.mark.rule("0-9-1/channel.flow/not-get")
def test_basic_get_succeeds_on_channel_paused_by_channel_flow(spec: Server) -> None:
    client = spec.client().declare("q").perform(m.ChannelFlow(active=False))
    assert client.publish(b"got", routing_key="q").fetch("q").body == b"got"


@pytest.mark.rule("0-9-1/channel.flow/not-get")
def test_rabbitmq_allows_basic_get_after_channel_flow_with_active_true(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").perform(m.ChannelFlow(active=True))
    assert client.publish(routing_key="q").get("q") is not None


@pytest.mark.rule("0-9-1/channel.flow/paused-consumer-count")
def test_consumer_count_excludes_consumers_paused_by_channel_flow(spec: Server) -> None:
    client = spec.client(channels=2).declare("q")
    client.consume("q", channel=1).perform(m.ChannelFlow(active=False), channel=1)
    assert client.declare_ok("q", passive=True, channel=2).consumer_count == 0
    client.perform(m.ChannelFlow(active=True), channel=1)
    assert client.declare_ok("q", passive=True, channel=2).consumer_count == 1


@pytest.mark.deviates("0-9-1/channel.flow/paused-consumer-count")
def test_rabbitmq_consumer_count_includes_consumers_with_full_prefetch(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q").perform(m.BasicQos(prefetch_count=1))
    client.consume("q").publish(routing_key="q").delivery()
    assert client.declare_ok("q", passive=True).consumer_count == 1


@pytest.mark.rule("0-9-1/channel.flow-ok/echo")
def test_flow_ok_repeats_the_active_flag_of_channel_flow(spec: Server) -> None:
    client = spec.client()
    assert client.call(m.ChannelFlow(active=False), m.ChannelFlowOk).active is False
    assert client.call(m.ChannelFlow(active=True), m.ChannelFlowOk).active is True


# --- close -----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/channel.close/stability#discards")
def test_methods_after_a_channel_exception_are_discarded(client: Client) -> None:
    client.send(m.QueueBind(queue="missing", exchange="amq.direct"))
    client.send(m.QueueDeclare(queue="after")).publish(exchange="missing as well").expect_channel_close(404)
    client.expect_nothing()
    client.open_channel().fails(m.QueueDeclare(queue="after", passive=True), 404)


@pytest.mark.rule("0-9-1/channel.close/stability#crossed")
def test_channel_close_crossing_the_broker_close_is_answered_with_close_ok(client: Client) -> None:
    client.send(m.QueueDeclare(queue="missing", passive=True))
    client.send(m.ChannelClose(reply_code=200)).expect(m.ChannelClose)
    client.expect(m.ChannelCloseOk)
    client.send(m.ChannelCloseOk()).open_channel()


@pytest.mark.rule("0-9/channel/grammar#opened")
@pytest.mark.rule("0-9-1/channel.close/either-peer#client", "0-9-1/channel.close/either-peer#server")
def test_client_and_broker_can_each_close_a_channel(client: Client) -> None:
    client.send(m.ChannelClose(reply_code=200, reply_text="done")).expect(m.ChannelCloseOk)
    client.open_channel().fails(m.QueueDeclare(queue="missing", passive=True), 404, at=(50, 10))


@pytest.mark.rule("0-9-1/channel.close/cancels-consumers#consumers")
@pytest.mark.rule("0-9-1/channel.close/cancels-consumers#messages")
def test_channel_close_cancels_consumers_and_requeues_unacknowledged_messages(server: Server) -> None:
    client = server.client(channels=2).declare("q").consume("q", channel=1)
    assert not client.publish(b"held", routing_key="q").delivery(channel=1).method.redelivered
    assert client.close_channel(1).declare_ok("q", passive=True, channel=2).consumer_count == 0
    again = client.consume("q", channel=2).delivery(channel=2)
    assert (again.body, again.method.redelivered) == (b"held", True)


@pytest.mark.rule("0-9-1/channel.close/rolls-back")
def test_channel_close_rolls_back_an_open_transaction(server: Server) -> None:
    client = server.client(channels=2).declare("q").perform(m.TxSelect())
    assert client.publish(routing_key="q").close_channel(1).count("q", channel=2) == 0


@pytest.mark.rule("0-9-1/channel.close-ok/reporting")
def test_disconnect_before_channel_close_ok_is_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.send(m.QueueDeclare(queue="missing", passive=True)).expect(m.ChannelClose)
    with caplog.at_level(logging.INFO, logger="fakeamqp"):
        client.drop()
    assert "channel 1" in caplog.text
    assert "channel.close-ok" in caplog.text


@pytest.mark.rule("0-9-1/channel.close-ok/number-free#client")
def test_channel_number_can_be_reopened_directly_after_client_close(client: Client) -> None:
    client.send(m.ChannelClose(reply_code=200)).send(m.ChannelOpen())
    client.send(m.BasicQos()).expect(m.ChannelCloseOk)
    client.expect(m.ChannelOpenOk)
    client.expect(m.BasicQosOk)


@pytest.mark.rule("0-9-1/channel.close-ok/number-free#server")
def test_unacknowledged_messages_of_closed_channel_are_redelivered_after_close_ok(server: Server) -> None:
    client = server.client(channels=2).declare("q").publish(b"m", routing_key="q")
    client.send(m.BasicGet(queue="q")).expect_content(m.BasicGetOk)
    client.perform(m.BasicConsume(queue="q"), channel=2).perform(m.ChannelClose(reply_code=200))
    assert client.expect_content(m.BasicDeliver, 2).method.redelivered


def test_channel_number_can_be_reopened_after_client_close_ok(client: Client) -> None:
    client.send(m.QueueDeclare(queue="missing", passive=True)).expect(m.ChannelClose)
    client.send(m.ChannelCloseOk()).send(m.ChannelOpen()).expect(m.ChannelOpenOk)


@pytest.mark.rule("0-9-1/channel.close/stability#discards")
def test_spec_personality_discards_channel_open_before_close_ok(spec: Server) -> None:
    client = spec.client()
    client.send(m.QueueDeclare(queue="missing", passive=True)).expect(m.ChannelClose)
    client.send(m.ChannelOpen()).expect_nothing()
    client.send(m.ChannelCloseOk()).open_channel()


@pytest.mark.deviates("0-9-1/channel.close/stability#discards")
def test_rabbitmq_refuses_channel_open_before_close_ok_with_504(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.send(m.QueueDeclare(queue="missing", passive=True)).expect(m.ChannelClose)
    client.ends(m.ChannelOpen(), 504, text="CHANNEL_ERROR - second 'channel.open' seen")


def test_unexpected_close_ok_on_open_channel_closes_the_connection_with_503(client: Client) -> None:
    client.ends(m.ChannelCloseOk(), 503, text="COMMAND_INVALID - unimplemented method")


def test_reopened_channel_is_not_in_confirm_mode(client: Client) -> None:
    client.declare("q").perform(m.ConfirmSelect())
    assert client.publish(routing_key="q").expect(m.BasicAck).delivery_tag == 1
    client.close_channel().open_channel().publish(routing_key="q").expect_nothing()
