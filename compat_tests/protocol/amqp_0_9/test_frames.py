"""Frames of 0-9: on which channels they travel, and in which order a method is looked at."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import PROTOCOL_HEADER, Client, Server
from compat_tests.scripted.octets import cut
from fakeamqp.protocols.amqp_0_9.codec import BasicProperties, methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames

rule = pytest.mark.rule


@rule("0-9/frame/channel-global#connection", "0-9/frame/channel-global#others")
@pytest.mark.letter
def test_connection_methods_come_on_channel_0_and_others_on_their_own_channel(server: Server) -> None:
    client = server.connect().send_bytes(PROTOCOL_HEADER).login()
    client.send(m.ConnectionTuneOk(channel_max=2047, frame_max=4096), 0)
    client.send(m.ConnectionOpen(virtual_host="/"), 0)
    assert {frame.channel for frame in cut(client.take_bytes())} == {0}
    client.open_channel(7).declare("q", channel=7)
    client.publish(routing_key="q", channel=7).send(m.BasicGet(queue="q"), 7)
    frames = cut(client.take_bytes())
    assert [(frame.type, frame.channel) for frame in frames] == [(1, 7), (2, 7), (3, 7)]


@rule("0-9/frame/method-processing#context")
def test_the_context_of_a_method_is_looked_at_before_its_arguments(client: Client) -> None:
    """A channel that is not open, and a type of exchange that does not exist."""
    client.ends(m.ExchangeDeclare(exchange="x", type="no-such"), 504, channel=9)


@rule("0-9/frame/method-processing#arguments")
def test_queue_declare_with_an_invalid_argument_creates_no_queue(client: Client) -> None:
    client.fails(m.QueueDeclare(queue="q", arguments={"x-expires": -1}), 406)
    client.open_channel().fails(m.QueueDeclare(queue="q", passive=True), 404)


@rule("0-9/frame/undeliverable-size", "0-9/frame/oversized-send#header")
@pytest.mark.letter
def test_content_header_over_frame_max_closes_connection_of_consumer_with_501(server: Server) -> None:
    publisher, reader = server.client(), server.client(frame_max=4096)
    publisher.declare("q").publish(routing_key="q", headers={"long": "x" * 8000})
    reader.consume("q").expect_nothing()
    close = reader.after(0).expect_connection_close(501)
    assert "content header of 80" in close.reply_text and "4096" in close.reply_text
    assert publisher.count("q") == 1, "it is still there for others"


@rule("0-9/frame/undeliverable-size", "0-9/frame/oversized-send#header")
@pytest.mark.parametrize("how", ["got", "returned"])
@pytest.mark.letter
def test_get_is_refused_with_501_for_header_over_frame_max(server: Server, how: str) -> None:
    publisher, reader = server.client(), server.client(frame_max=4096)
    publisher.declare("q")
    if how == "got":
        publisher.publish(routing_key="q", headers={"long": "x" * 8000})
        reader.send(m.BasicGet(queue="q"))
    else:
        header = BasicProperties(headers={"long": "x" * 4050}).encode()
        reader.send(m.BasicPublish(routing_key="nowhere", mandatory=True))
        reader.send_bytes(b"".join(content_frames(1, 60, header, b"", 4088)))
    server.advance(0)
    if how == "got":
        reader.expect_connection_close(501)
        assert publisher.count("q") == 1
    else:
        assert len(reader.expect_content(m.BasicReturn).properties.headers["long"]) == 4050, "it fits"


@rule("0-9/frame/undeliverable-size")
@pytest.mark.letter
def test_message_too_large_for_one_consumers_frame_max_goes_to_another_consumer(server: Server) -> None:
    publisher, small, large = server.client(), server.client(frame_max=4096), server.client()
    publisher.declare("q")
    small.consume("q")
    large.consume("q")
    publisher.fill("q", b"1", b"2", headers={"long": "x" * 8000})
    server.advance(0)
    small.expect_connection_close(501)
    assert sorted(large.bodies()) == [b"1", b"2"]
