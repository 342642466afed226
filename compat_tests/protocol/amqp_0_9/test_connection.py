"""Opening, redirecting and closing a connection of 0-9."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import PROTOCOL_HEADER, Client, Server
from fakeamqp.protocols.amqp_0_9.codec import methods as m

rule = pytest.mark.rule


def tuned(server: Server, **tune_ok: int) -> Client:
    """A client that is about to open a virtual host."""
    client = server.connect()
    client.send_bytes(PROTOCOL_HEADER).expect(m.ConnectionStart, 0)
    client.login().expect(m.ConnectionTune, 0)
    return client.send(m.ConnectionTuneOk(**{"channel_max": 2047, "frame_max": 131072, **tune_ok}), 0)


@pytest.mark.letter
def test_server_properties_name_another_product_than_rabbitmq_in_simple_types(server: Server) -> None:
    """Tests of clients go by the name of the product: what is spoken here is not what RabbitMQ speaks."""
    start = server.connect().send_bytes(PROTOCOL_HEADER).expect(m.ConnectionStart, 0)
    assert start.server_properties["product"] != "RabbitMQ"
    kinds = {type(value) for value in start.server_properties.values()}
    assert kinds <= {str, bool, dict}


@rule("0-9/connection.tune/channel-max-meaning#total")
def test_channel_max_is_how_many_channels_there_may_be(server: Server) -> None:
    client = tuned(server, channel_max=3).perform(m.ConnectionOpen(virtual_host="/"), channel=0)
    for number in (1, 2, 3):
        client.open_channel(number)
    client.ends(m.ChannelOpen(), 504 if server.is_spec else 530, channel=4)


@rule("0-9/connection.tune/frame-max-meaning#largest")
@pytest.mark.parametrize("limit", [4096, 5000])
@pytest.mark.letter
def test_no_frame_is_longer_than_frame_max(server: Server, limit: int) -> None:
    client = server.client(frame_max=limit).declare("q")
    client.publish(b"x" * 20_000, routing_key="q", frame_size=limit - 8).send(m.BasicGet(queue="q"))
    bodies = [frame.payload for frame in client.inbox if frame.type == 3]
    assert b"".join(bodies) == b"x" * 20_000
    assert max(len(body) for body in bodies) + 8 == limit


@rule("0-9/connection.open/capabilities")
def test_connection_open_with_unknown_capabilities_succeeds(server: Server) -> None:
    tuned(server).perform(m.ConnectionOpen(virtual_host="/", capabilities="foo bar"), channel=0)


@pytest.mark.letter
def test_wrong_password_ends_the_socket_without_connection_close(server: Server) -> None:
    """Where the text has no code for it, a close would be RabbitMQ's in 0-9-1."""
    client = server.connect()
    client.send_bytes(PROTOCOL_HEADER).expect(m.ConnectionStart, 0)
    client.login("guest", "wrong", {"capabilities": {"authentication_failure_close": True}})
    client.expect_silent_end()


# --- heartbeats --------------------------------------------------------------------------------------
@rule("0-9/heartbeat/negotiated")
def test_heartbeats_are_sent_at_the_negotiated_interval_unless_zero(server: Server) -> None:
    client = server.client(heartbeat=1)
    server.advance(1.1)
    assert {(frame.type, frame.channel) for frame in client.inbox} == {(8, 0)}
    silent = server.client(heartbeat=0)
    silent.after(1000).expect_nothing()
    assert not silent.closed


@rule("0-9/heartbeat/channel-zero#channel")
@pytest.mark.letter
def test_a_heartbeat_on_a_channel_is_a_frame_error(client: Client) -> None:
    client.send_frame(8, 1, b"").expect_connection_close(501)
