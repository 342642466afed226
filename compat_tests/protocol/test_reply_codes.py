from __future__ import annotations

import pytest

from compat_tests.protocol.driver import Client, Server
from compat_tests.protocol.octets import arguments, field, queue_declare, table
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

rule = pytest.mark.rule


def is_spec(server: Server) -> bool:
    return server.state.personality.name == "spec"


@rule("0-9-1/reply-code/reply-success")
def test_200_is_an_orderly_close(client: Client) -> None:
    client.call(m.ChannelClose(reply_code=200, reply_text="Goodbye"), m.ChannelCloseOk)
    client.call(m.ConnectionClose(reply_code=200, reply_text="Goodbye"), m.ConnectionCloseOk, 0)
    client.expect_end_after_close()


@rule("0-9-1/reply-code/content-too-large")
def test_311_is_a_message_larger_than_the_server_takes_by_the_letter(spec: Server) -> None:
    client = spec.varied(largest_message=1000).client()
    client.declare("q")
    client.publish(bytes(1000), routing_key="q")
    client.publish(bytes(1001), routing_key="q")
    close = client.expect_channel_close(311)
    assert (close.class_id, close.method_id) == (60, 40)
    client.open_channel()
    assert client.count("q") == 1


@pytest.mark.deviates("0-9-1/reply-code/content-too-large")
def test_406_is_a_message_larger_than_rabbitmq_takes(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    client.publish(bytes(16 * 1024 * 1024), routing_key="q", frame_size=131064)
    client.expect_nothing()
    client.publish(bytes(16 * 1024 * 1024 + 1), routing_key="q", frame_size=131064)
    close = client.expect_channel_close(406)
    assert close.reply_text == (
        "PRECONDITION_FAILED - message size 16777217 is larger than configured max size 16777216"
    )
    assert (close.class_id, close.method_id) == (60, 40)


@rule("0-9-1/reply-code/no-consumers")
def test_313_is_an_immediate_message_without_a_consumer(spec: Server) -> None:
    client = spec.client()
    client.declare("q")
    client.publish(b"now", routing_key="q", immediate=True)
    returned = client.expect_content(m.BasicReturn)
    assert returned.method.reply_code == 313
    assert returned.body == b"now"


@rule("0-9-1/reply-code/no-route")
def test_312_is_a_mandatory_message_without_a_queue(client: Client) -> None:
    client.publish(b"lost", exchange="amq.direct", routing_key="nowhere", mandatory=True)
    returned = client.expect_content(m.BasicReturn)
    assert (returned.method.reply_code, returned.method.reply_text) == (312, "NO_ROUTE")
    assert (returned.method.exchange, returned.method.routing_key) == ("amq.direct", "nowhere")
    assert returned.body == b"lost"


@rule("0-9-1/reply-code/connection-forced")
def test_320_is_a_connection_closed_by_an_operator(server: Server) -> None:
    client = server.client()
    [connection] = server.state.connections
    connection.close_by_operator(320, "CONNECTION_FORCED - broker forced connection closure")
    close = client.expect_connection_close(320)
    assert close.reply_text == "CONNECTION_FORCED - broker forced connection closure"
    assert not server.state.connections


@pytest.mark.deviates("0-9-1/reply-code/invalid-path")
@rule("0-9-1/reply-code/invalid-path")
def test_402_is_an_unknown_virtual_host_by_the_letter_and_530_by_rabbitmq(server: Server) -> None:
    client = server.connect()
    client.send_bytes(client.protocol_header)
    client.expect(m.ConnectionStart, 0)
    client.login()
    client.expect(m.ConnectionTune, 0)
    client.send(m.ConnectionTuneOk(10, 8192, 0), 0)
    client.send(m.ConnectionOpen(virtual_host="/nope"), 0)
    client.expect_connection_close(402 if is_spec(server) else 530)


@rule("0-9-1/reply-code/access-refused")
@pytest.mark.protocols("0-9-1")
def test_403_is_a_reserved_name(client: Client) -> None:
    client.send(m.ExchangeDeclare(exchange="amq.x", type="direct"))
    close = client.expect_channel_close(403)
    assert close.reply_text == "ACCESS_REFUSED - exchange name 'amq.x' contains reserved prefix 'amq.*'"
    assert (close.class_id, close.method_id) == (40, 10)


@rule("0-9-1/reply-code/not-found")
def test_404_is_a_missing_entity(client: Client) -> None:
    client.send(m.BasicConsume(queue="missing"))
    close = client.expect_channel_close(404)
    assert close.reply_text == "NOT_FOUND - no queue 'missing' in vhost '/'"
    assert (close.class_id, close.method_id) == (60, 20)


@rule("0-9-1/reply-code/resource-locked")
def test_405_is_an_entity_of_another_connection(server: Server) -> None:
    server.client().declare("mine", exclusive=True)
    client = server.client()
    client.send(m.BasicConsume(queue="mine"))
    close = client.expect_channel_close(405)
    assert close.reply_text.startswith(
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'mine' in vhost '/'"
    )
    assert (close.class_id, close.method_id) == (60, 20)


@rule("0-9-1/reply-code/precondition-failed")
def test_406_is_an_unknown_delivery_tag(client: Client) -> None:
    client.send(m.BasicAck(delivery_tag=9))
    close = client.expect_channel_close(406)
    assert close.reply_text == "PRECONDITION_FAILED - unknown delivery tag 9"
    assert (close.class_id, close.method_id) == (60, 80)


@rule("0-9-1/reply-code/frame-error")
def test_501_is_a_malformed_frame(client: Client) -> None:
    client.send_frame(3, 1, bytes(131072 + 1))
    client.expect_end_of_frames()


@pytest.mark.deviates("0-9-1/reply-code/syntax-error")
@rule("0-9-1/reply-code/syntax-error")
def test_502_is_an_illegal_field_value(client: Client) -> None:
    client.send_frame(1, 1, queue_declare("q", fields=table(field("a", b"z\0"))))
    if client.explained_to:
        client.expect_connection_close(502)
    else:
        client.expect_silent_end()


@pytest.mark.deviates("0-9-1/reply-code/command-invalid")
@rule("0-9-1/reply-code/command-invalid")
def test_503_is_a_second_open_by_the_letter_and_504_by_rabbitmq(server: Server) -> None:
    client = server.client()
    client.send(m.ConnectionOpen(virtual_host="/"), 0)
    close = client.expect_connection_close(503 if is_spec(server) else 504)
    assert close.reply_text.endswith(" - unexpected method in connection state running")
    assert (close.class_id, close.method_id) == (10, 40)


@rule("0-9-1/reply-code/command-invalid")
@pytest.mark.parametrize("method", [m.ConnectionClose(), m.ConnectionTuneOk(), m.BasicDeliver()])
def test_503_is_a_method_that_does_not_belong_on_a_channel(client: Client, method: m.Method) -> None:
    client.send(method)
    if method.HAS_CONTENT and not client.explained_to:
        client.expect_nothing()  # RabbitMQ waits for the content (measured).
        client.send_frame(2, 1, bytes.fromhex("003c 0000 0000000000000000 0000"))
    close = client.expect_connection_close(503)
    assert (close.class_id, close.method_id) == (method.CLASS_ID, method.METHOD_ID)


@rule("0-9-1/reply-code/channel-error")
def test_504_is_the_use_of_a_channel_that_is_not_open(client: Client) -> None:
    client.send(m.QueueDeclare(queue="q"), 5)
    close = client.expect_connection_close(504)
    assert close.reply_text == "CHANNEL_ERROR - expected 'channel.open'"
    assert (close.class_id, close.method_id) == (50, 10)


@rule("0-9-1/reply-code/unexpected-frame")
def test_505_is_a_body_without_a_header(client: Client) -> None:
    client.send_frame(3, 1, b"body")
    close = client.expect_connection_close(505)
    assert close.reply_text == ("UNEXPECTED_FRAME - expected method frame, got non method frame instead")


@rule("0-9-1/reply-code/not-allowed")
def test_530_is_a_consumer_tag_used_twice(client: Client) -> None:
    client.declare("q")
    client.consume("q", "tag")
    client.send(m.BasicConsume(queue="q", consumer_tag="tag"))
    close = client.expect_connection_close(530)
    assert close.reply_text == "NOT_ALLOWED - attempt to reuse consumer tag 'tag'"
    assert (close.class_id, close.method_id) == (60, 20)


@pytest.mark.deviates("0-9-1/reply-code/not-implemented")
@rule("0-9-1/reply-code/not-implemented")
def test_540_is_a_method_the_server_does_not_know(client: Client) -> None:
    client.send_frame(1, 1, arguments(130, 10))
    if not client.explained_to:
        client.expect_silent_end()
        return
    close = client.expect_connection_close(540)
    assert (close.class_id, close.method_id) == (130, 10)
