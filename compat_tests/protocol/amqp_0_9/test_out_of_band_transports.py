"""Out-of-band frames: types 4, 5 and 6, whose payloads travel by another transport."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.requesting import Requester
from fakeamqp.model.errors import InternalError
from fakeamqp.protocols.amqp_0_9.codec import BasicProperties, methods as m
from fakeamqp.protocols.amqp_0_9.registrations import MemoryTransport, Registrations
from fakeamqp.protocols.amqp_0_9_1.codec import methods as shared
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

rule = pytest.mark.rule

METHOD, HEADER, BODY = 4, 5, 6


@pytest.fixture
def server(lenient: Server) -> Server:
    """Tickets would only be in the way here."""
    return lenient


@pytest.fixture
def transport(server: Server) -> MemoryTransport:
    made = server.state.extensions[Registrations].transports["memory"] = MemoryTransport()
    return made


@pytest.fixture
def client(server: Server, transport: MemoryTransport) -> Client:
    """Its channel 1 is in-band, and its channel 2 has a transport."""
    client = server.client()
    client.call(m.ChannelOpen(out_of_band="memory"), shared.ChannelOpenOk, 2)
    return client.declare("q")


def aside(client: Client, transport: MemoryTransport, frame_type: int, payload: bytes) -> Client:
    transport.send(payload)
    return client.send_frame(frame_type, 2, b"")


def call_aside(client: Client, transport: MemoryTransport, method: Method) -> Client:
    aside(client, transport, METHOD, method.encode())
    return client


def header(size: int, **properties: object) -> bytes:
    return CONTENT_HEADER.pack(60, 0, size) + BasicProperties(**properties).encode()  # type: ignore[arg-type]


@rule("0-9/oob/unconfigured")
@pytest.mark.parametrize("frame_type", [METHOD, HEADER, BODY])
@pytest.mark.parametrize("channel", [0, 1, 9])
@pytest.mark.parametrize("payload", [b"", b"\0\x32\0\x0a"])
def test_without_a_transport_there_are_no_such_frames(
    client: Client, frame_type: int, channel: int, payload: bytes
) -> None:
    client.send_frame(frame_type, channel, payload).expect_connection_close(501)


@rule("0-9/oob/configured-by-open")
@pytest.mark.parametrize("name", ["unknown", "Memory"])
@pytest.mark.letter
def test_channel_open_with_unknown_transport_closes_connection_with_540(client: Client, name: str) -> None:
    client.ends(m.ChannelOpen(out_of_band=name), 540, channel=3, at=(20, 10))


@rule("0-9/channel.open/out-of-band")
def test_an_empty_field_asks_for_no_transport(client: Client) -> None:
    client.call(m.ChannelOpen(out_of_band=""), shared.ChannelOpenOk, 3)
    client.send_frame(METHOD, 3, b"").expect_connection_close(501)


@rule("0-9/frame/type-oob-method", "0-9/oob/format")
def test_a_method_out_of_band_is_like_any_other(client: Client, transport: MemoryTransport) -> None:
    call_aside(client, transport, m.QueueDeclare(queue="new"))
    assert client.expect(shared.QueueDeclareOk, 2).queue == "new"


@rule("0-9/frame/type-oob-method", "0-9/frame/type-oob-header", "0-9/frame/type-oob-body")
@rule("0-9/oob/configured-by-open")
def test_a_content_out_of_band_is_published(client: Client, transport: MemoryTransport) -> None:
    call_aside(client, transport, m.BasicPublish(routing_key="q"))
    aside(client, transport, HEADER, header(6, message_id="1"))
    aside(client, transport, BODY, b"one")
    got = aside(client, transport, BODY, b"two").fetch("q")
    assert (got.body, got.properties.message_id) == (b"onetwo", "1")


def test_frames_of_a_content_may_come_either_way(client: Client, transport: MemoryTransport) -> None:
    client.send(m.BasicPublish(routing_key="q"), 2).send_frame(2, 2, header(6))
    got = aside(client, transport, BODY, b"one").send_frame(3, 2, b"two").get("q")
    assert got is not None and got.body == b"onetwo"


def test_a_payload_may_be_larger_than_frames_are(client: Client, transport: MemoryTransport) -> None:
    body = b"x" * 1_000_000
    call_aside(client, transport, m.BasicPublish(routing_key="q"))
    aside(client, transport, HEADER, header(len(body)))
    got = aside(client, transport, BODY, body).get("q")
    assert got is not None and got.body == body


def test_method_frame_with_inline_payload_ends_connection(client: Client, transport: MemoryTransport) -> None:
    transport.send(m.QueueDeclare(queue="new").encode())
    client.send_frame(METHOD, 2, b"x").expect_connection_close(501)


def test_a_payload_has_to_be_there_before_its_frame(client: Client) -> None:
    client.send_frame(METHOD, 2, b"")
    assert "has not arrived" in client.expect_connection_close(501).reply_text


@rule("0-9/oob/format")
def test_deliveries_go_out_of_band(client: Client, transport: MemoryTransport) -> None:
    client.call(m.BasicConsume(queue="q", consumer_tag="c"), shared.BasicConsumeOk, 2)
    client.publish(b"x" * 200_000, routing_key="q")
    frames = [client.take_frame() for _ in range(4)]
    assert [(each.type, each.channel, each.payload) for each in frames] == [
        (kind, 2, b"") for kind in (METHOD, HEADER, BODY, BODY)
    ]
    deliver = m.BasicDeliver.decode(transport.receive(), client.grammar)
    assert (deliver.consumer_tag, deliver.routing_key) == ("c", "q")
    assert CONTENT_HEADER.unpack_from(transport.receive()) == (60, 0, 200_000)
    assert transport.receive() + transport.receive() == b"x" * 200_000
    client.expect_nothing()
    assert client.send(m.BasicAck(delivery_tag=1), 2).count("q") == 0


def test_other_channels_are_not_affected(client: Client, transport: MemoryTransport) -> None:
    got = client.publish(b"m", routing_key="q").get("q")
    assert got is not None and got.body == b"m"
    with pytest.raises(LookupError):
        transport.receive()


def test_messages_of_get_and_return_are_sent_out_of_band(client: Client, transport: MemoryTransport) -> None:
    client.fill("q", b"m").send(m.BasicGet(queue="q"), 2)
    assert [client.take_frame().type for _ in range(3)] == [METHOD, HEADER, BODY]
    assert isinstance(m.BasicGetOk.decode(transport.receive(), client.grammar), m.BasicGetOk)
    transport.receive()
    assert transport.receive() == b"m"
    client.publish(b"m", routing_key="nowhere", mandatory=True, channel=2)
    assert [client.take_frame().type for _ in range(3)] == [METHOD, HEADER, BODY]
    assert m.BasicReturn.decode(transport.receive(), client.grammar).reply_code == 312


def test_the_content_of_a_response_goes_out_of_band_and_the_response_does_not(
    client: Client, transport: MemoryTransport
) -> None:
    client.fill("q", b"m")
    requester = Requester(client, 2)
    requester.ask(m.BasicGet(queue="q"))
    requester.response(m.BasicGetOk)
    assert [client.take_frame().type for _ in range(2)] == [HEADER, BODY]
    transport.receive()
    assert transport.receive() == b"m"


def test_a_blocked_publisher_is_held_back_out_of_band_too(client: Client, transport: MemoryTransport) -> None:
    client.server.state.block("low on memory")
    call_aside(client, transport, m.BasicPublish(routing_key="q"))
    transport.send(header(1))
    transport.send(b"m")
    two_frames = bytes((HEADER, 0, 2, 0, 0, 0, 0, 0xCE, BODY, 0, 2, 0, 0, 0, 0, 0xCE))
    assert not client.send_bytes(two_frames).connection.reading
    assert len(client.server.vhost.queues["q"].ready) == 0
    client.server.state.unblock()
    assert len(client.server.vhost.queues["q"].ready) == 1


@rule("0-9/channel.close/stability")
def test_frames_of_a_closing_channel_are_discarded_with_their_payloads(
    client: Client, transport: MemoryTransport
) -> None:
    call_aside(client, transport, m.QueueDeclare(queue="nobody", passive=True))
    call_aside(client, transport, m.QueueDeclare(queue="discarded")).expect_channel_close(404, 2)
    client.call(m.ChannelOpen(out_of_band="memory"), shared.ChannelOpenOk, 2)
    call_aside(client, transport, m.QueueDeclare(queue="new"))
    assert client.expect(shared.QueueDeclareOk, 2).queue == "new"
    client.fails(m.QueueDeclare(queue="discarded", passive=True), 404)


def test_a_transport_that_fails_ends_the_connection(server: Server, client: Client) -> None:
    class Broken(MemoryTransport):
        failed = False

        def put(self, payload: bytes) -> None:
            if not self.failed:
                self.failed = True
                raise InternalError("the transport has failed")

    server.state.extensions[Registrations].transports["broken"] = Broken()
    client.call(m.ChannelOpen(out_of_band="broken"), shared.ChannelOpenOk, 3)
    client.call(m.BasicConsume(queue="q"), shared.BasicConsumeOk, 3)
    other = server.client().fill("q", b"1", b"2")
    client.expect_nothing()
    server.advance(0)
    assert "the transport has failed" in client.expect_connection_close(541).reply_text
    assert other.empty("q") == [b"1", b"2"]
