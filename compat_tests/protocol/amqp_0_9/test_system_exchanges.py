"""System exchanges over 0-9: contents of every class, and services that refuse some of them."""

from __future__ import annotations

import pytest

from compat_tests.protocol.amqp_0_9.files import publish, publish_file, stage_file
from compat_tests.scripted.amqp_0_9 import Server
from compat_tests.scripted.requesting import Requester
from compat_tests.scripted.services import add_service, bodies
from fakeamqp.protocols.amqp_0_9.codec import StreamProperties, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body

rule = pytest.mark.rule

TRANSFER = m.MessageTransfer(destination="amq.system", routing_key="s", body=Body(b"transfer"))
STREAM = m.StreamPublish(exchange="amq.system", routing_key="s")


@rule("0-9/exchange-type.system/passes-to-service")
def test_services_get_contents_of_all_classes(server: Server) -> None:
    got = add_service(server, "s")
    client = server.client()
    client.publish(b"basic", exchange="amq.system", routing_key="s")
    publish_file(client, b"file", "s", exchange="amq.system")
    client.send_content(STREAM, StreamProperties(), b"stream")
    requester = Requester(client)
    requester.call(TRANSFER, m.MessageOk)
    server.advance(0)
    assert bodies(got) == [b"basic", b"file", b"stream", b"transfer"]
    assert [each.content_class for each in got] == ["basic", "file", "stream", "basic"]


@rule("0-9/file.publish/exchange-03")
def test_an_exchange_may_refuse_files(server: Server) -> None:
    got = add_service(server, "s", "basic", "stream")
    client = server.client(channels=2)
    stage_file(client, b"refused")
    publish(client, "s", exchange="amq.system")
    close = client.expect_channel_close(540)
    assert (close.class_id, close.method_id) == (70, 60)
    assert "takes no contents of class file" in close.reply_text
    client.declare("q", channel=2)  # The connection goes on.
    server.advance(0)
    assert got == []


@rule("0-9/stream.publish/exchange-03")
def test_an_exchange_may_refuse_streams(server: Server) -> None:
    got = add_service(server, "s", "basic", "file")
    client = server.client(channels=2)
    client.send_content(STREAM, StreamProperties(), b"refused")
    close = client.expect_channel_close(540)
    assert (close.class_id, close.method_id) == (80, 40)
    assert "takes no contents of class stream" in close.reply_text
    client.declare("q", channel=2)
    server.advance(0)
    assert got == []


@rule("0-9/message.transfer/destination-03")
def test_a_destination_may_refuse_transfers(server: Server) -> None:
    got = add_service(server, "s", "file")
    client = server.client(channels=2)
    Requester(client).ask(TRANSFER)
    close = client.expect_channel_close(540)
    assert (close.class_id, close.method_id) == (120, 10)
    assert "takes no contents of class basic" in close.reply_text
    client.declare("q", channel=2)
    server.advance(0)
    assert got == []
