from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import arguments, field, queue_declare, table
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

rule = pytest.mark.rule


@pytest.mark.needs("inspection")
@rule("0-9-1/reply-code/reply-success")
def test_close_with_200_is_answered_with_close_ok(client: Client) -> None:
    client.perform(m.ChannelClose(reply_code=200, reply_text="Goodbye"))
    client.perform(m.ConnectionClose(reply_code=200, reply_text="Goodbye"), channel=0)
    client.expect_end_after_close()


@rule("0-9-1/reply-code/content-too-large")
def test_spec_personality_closes_channel_with_311_at_too_large_message(spec: Server) -> None:
    client = spec.varied(largest_message=1000).client()
    client.declare("q").publish(bytes(1000), routing_key="q")
    client.publish(bytes(1001), routing_key="q").expect_channel_close(311, at=(60, 40))
    assert client.open_channel().count("q") == 1


@pytest.mark.needs("personality since rabbitmq-4.0")
@pytest.mark.deviates("0-9-1/reply-code/content-too-large")
def test_rabbitmq_closes_channel_with_406_at_message_larger_than_16_mib(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.publish(bytes(16 * 1024 * 1024), routing_key="q", frame_size=131064).expect_nothing()
    client.publish(bytes(16 * 1024 * 1024 + 1), routing_key="q", frame_size=131064)
    client.expect_channel_close(
        406,
        text="PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216",
        at=(60, 40),
    )


@rule("0-9-1/reply-code/no-consumers")
def test_immediate_message_without_consumer_is_returned_with_313(spec: Server) -> None:
    client = spec.client().declare("q")
    returned = client.publish(b"now", routing_key="q", immediate=True).expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.body) == (313, b"now")


@rule("0-9-1/reply-code/no-route")
def test_mandatory_message_without_route_is_returned_with_312(client: Client) -> None:
    client.publish(b"lost", exchange="amq.direct", routing_key="nowhere", mandatory=True)
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", "nowhere")
    assert returned.body == b"lost"


@pytest.mark.needs("inspection")
@rule("0-9-1/reply-code/connection-forced")
def test_connection_closed_by_operator_gets_320(server: Server) -> None:
    client = server.client()
    [connection] = server.state.connections
    connection.close_by_operator(320, "CONNECTION_FORCED - broker forced connection closure")
    client.expect_connection_close(320, text="CONNECTION_FORCED - broker forced connection closure")
    assert not server.state.connections


@pytest.mark.deviates("0-9-1/reply-code/invalid-path")
@rule("0-9-1/reply-code/invalid-path")
def test_unknown_virtual_host_closes_connection_with_402_by_spec_and_530_by_rabbitmq(server: Server) -> None:
    client = server.tuned(channel_max=10, frame_max=8192, heartbeat=0)
    client.ends(m.ConnectionOpen(virtual_host="/nope"), 402 if server.is_spec else 530, channel=0)


@rule("0-9-1/reply-code/access-refused")
@pytest.mark.protocols("0-9-1")
def test_exchange_with_reserved_name_closes_channel_with_403(client: Client) -> None:
    client.fails(
        m.ExchangeDeclare(exchange="amq.x", type="direct"),
        403,
        text="ACCESS_REFUSED - exchange name 'amq.x' contains reserved prefix 'amq.*'",
    )


@rule("0-9-1/reply-code/not-found")
def test_consume_from_missing_queue_closes_channel_with_404(client: Client) -> None:
    client.fails(m.BasicConsume(queue="missing"), 404, text="NOT_FOUND - no queue 'missing' in vhost '/'")


@rule("0-9-1/reply-code/resource-locked")
def test_consume_from_exclusive_queue_of_other_connection_closes_channel_with_405(server: Server) -> None:
    server.client().declare("mine", exclusive=True)
    close = server.client().fails(m.BasicConsume(queue="mine"), 405)
    assert close.reply_text.startswith(
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/'"
    )
    assert (close.class_id, close.method_id) == (60, 20)


@rule("0-9-1/reply-code/precondition-failed")
def test_ack_of_unknown_delivery_tag_closes_channel_with_406(client: Client) -> None:
    client.fails(m.BasicAck(delivery_tag=9), 406, text="PRECONDITION_FAILED - unknown delivery tag 9")


@pytest.mark.needs("virtual time")
@rule("0-9-1/reply-code/frame-error")
def test_frame_larger_than_frame_max_closes_connection_with_501(client: Client) -> None:
    client.send_frame(3, 1, bytes(131072 + 1)).expect_end_of_frames()


@pytest.mark.deviates("0-9-1/reply-code/syntax-error")
@rule("0-9-1/reply-code/syntax-error")
def test_unknown_field_type_closes_connection_with_502_or_without_explanation(client: Client) -> None:
    client.send_frame(1, 1, queue_declare("q", fields=table(field("a", b"z\0"))))
    if client.explained_to:
        client.expect_connection_close(502)
    else:
        client.expect_silent_end()


@pytest.mark.deviates("0-9-1/reply-code/command-invalid")
@rule("0-9-1/reply-code/command-invalid")
def test_second_connection_open_fails_with_503_by_spec_and_504_by_rabbitmq(server: Server) -> None:
    client = server.client()
    close = client.ends(m.ConnectionOpen(virtual_host="/"), 503 if server.is_spec else 504, channel=0)
    assert close.reply_text.endswith(" - unexpected method in connection state running")
    assert (close.class_id, close.method_id) == (10, 40)


@rule("0-9-1/reply-code/command-invalid")
@pytest.mark.parametrize("method", [m.ConnectionClose(), m.ConnectionTuneOk(), m.BasicDeliver()])
def test_connection_method_on_channel_closes_connection_with_503(client: Client, method: m.Method) -> None:
    client.send(method)
    if method.HAS_CONTENT and not client.explained_to:
        client.expect_nothing()  # RabbitMQ waits for the content (measured).
        client.send_frame(2, 1, bytes.fromhex("003c 0000 0000000000000000 0000"))
    client.expect_connection_close(503, at=(method.CLASS_ID, method.METHOD_ID))


@rule("0-9-1/reply-code/channel-error")
def test_method_on_unopened_channel_closes_connection_with_504(client: Client) -> None:
    client.ends(m.QueueDeclare(queue="q"), 504, channel=5, text="CHANNEL_ERROR - expected 'channel.open'")


@rule("0-9-1/reply-code/unexpected-frame")
def test_body_frame_without_method_closes_connection_with_505(client: Client) -> None:
    client.send_frame(3, 1, b"body")
    client.expect_connection_close(
        505, text="UNEXPECTED_FRAME - expected method frame, got non method frame instead"
    )


@rule("0-9-1/reply-code/not-allowed")
def test_consumer_tag_used_twice_closes_connection_with_530(client: Client) -> None:
    client.declare("q").consume("q", "tag")
    client.ends(
        m.BasicConsume(queue="q", consumer_tag="tag"),
        530,
        text="NOT_ALLOWED - attempt to reuse consumer tag 'tag'",
    )


@pytest.mark.deviates("0-9-1/reply-code/not-implemented")
@rule("0-9-1/reply-code/not-implemented")
def test_unknown_method_closes_connection_with_540_or_without_explanation(client: Client) -> None:
    client.send_frame(1, 1, arguments(130, 10))
    if not client.explained_to:
        client.expect_silent_end()
        return
    client.expect_connection_close(540, at=(130, 10))
