"""AMQP 0-8: what the broker of 0-9 says in other numbers, or not at all."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9.codec import methods as m, version_0_8 as old

HEADERS = [b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x09\x01"]


@pytest.fixture(params=HEADERS, ids=["8-0", "9-1"])
def older(server: Server, request: pytest.FixtureRequest) -> Client:
    """A client of 0-8 that has sent nothing yet."""
    client = server.connect()
    client.protocol_header = request.param
    client.methods = old.METHODS
    return client


def opened(client: Client) -> Client:
    client.handshake()
    client.call(m.ChannelOpen(), old.ChannelOpenOk)
    return client


def test_connection_start_of_0_8_has_version_8_0(older: Client) -> None:
    start = older.send_bytes(older.protocol_header).expect(old.ConnectionStart, 0)
    assert (start.version_major, start.version_minor) == (8, 0)


def test_published_messages_are_returned_by_get_and_delivered_to_a_consumer(older: Client) -> None:
    client = opened(older).declare("q").bind("q", "amq.topic", "a.#")
    client.publish(b"1", exchange="amq.topic", routing_key="a.b", content_type="text/plain")
    got = client.publish(b"2", exchange="amq.topic", routing_key="a.c").fetch("q")
    assert (got.body, got.properties.content_type) == (b"1", "text/plain")
    client.call(old.BasicConsume(queue="q", consumer_tag="t"), m.BasicConsumeOk)
    assert client.delivery().body == b"2"


def test_consume_is_read_with_and_without_a_table(older: Client) -> None:
    client = opened(older).declare("q")
    for tag, table in (("with", bytes(4)), ("without", b"")):
        consume = old.BasicConsume(queue="q", consumer_tag=tag).encode()
        assert client.send_frame(1, 1, consume + table).expect(m.BasicConsumeOk).consumer_tag == tag


def test_connection_close_has_the_method_number_of_0_8(older: Client) -> None:
    client = opened(older).send(m.ExchangeDeclare(exchange="x", type="no-such-type"))
    close = client.expect(old.ConnectionClose, 0)
    assert (old.ConnectionClose.METHOD_ID, close.reply_code) == (60, 503)
    assert client.send(old.ConnectionCloseOk(), 0).closed


def test_client_close_is_answered_with_close_ok_of_0_8(older: Client) -> None:
    client = opened(older).perform(m.ChannelClose())
    client.perform(old.ConnectionClose(reply_code=200), channel=0).expect_end_after_close()


@rows("method", m.ChannelResume(b"x"), m.ChannelPing(), m.MessageGet(queue="q"), ids=lambda each: each.NAME)
def test_method_added_in_0_9_closes_a_0_8_connection_with_540(older: Client, method: m.ChannelPing) -> None:
    assert opened(older).send(method).expect(old.ConnectionClose, 0).reply_code == 540


def test_request_frame_is_a_frame_error_in_0_8(older: Client) -> None:
    client = opened(older).send_frame(9, 1, bytes(20) + m.ChannelPing().encode())
    if older.server.is_spec:
        client.expect_silent_end()
    else:
        assert client.expect(old.ConnectionClose, 0).reply_code == 501


def test_stream_message_is_delivered_over_0_8(older: Client) -> None:
    client = opened(older).declare("q").send_content(m.StreamPublish(routing_key="q"), body=b"s")
    client.call(old.StreamConsume(queue="q"), m.StreamConsumeOk)
    assert client.expect_content(m.StreamDeliver).body == b"s"
