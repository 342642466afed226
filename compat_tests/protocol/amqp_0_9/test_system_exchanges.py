"""System exchanges over 0-9: contents of every class, and services that refuse some of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compat_tests.scripted.amqp_0_9 import Client, Server
from compat_tests.scripted.contents_0_9 import Channel
from compat_tests.scripted.requesting import Requester
from compat_tests.scripted.services import add_service, bodies
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9.codec import StreamProperties, methods as m
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body

rule = pytest.mark.rule

TRANSFER = m.MessageTransfer(destination="amq.system", routing_key="s", body=Body(b"transfer"))
STREAM = m.StreamPublish(exchange="amq.system", routing_key="s")


@rule("0-9/exchange-type.system/passes-to-service")
def test_services_get_contents_of_all_classes(server: Server) -> None:
    got = add_service(server, "s")
    client = server.client().publish(b"basic", exchange="amq.system", routing_key="s")
    Channel(client, "file").publish(b"file", "s", exchange="amq.system")
    client.send_content(STREAM, StreamProperties(), b"stream")
    Requester(client).call(TRANSFER, m.MessageOk)
    server.advance(0)
    assert bodies(got) == [b"basic", b"file", b"stream", b"transfer"]
    assert [each.content_class for each in got] == ["basic", "file", "stream", "basic"]


def publish_staged(client: Client) -> None:
    Channel(client, "file").stage_file(b"refused").publish_staged("s", exchange="amq.system")


@rows(
    "refused, publish, ids",
    pytest.param("file", publish_staged, (70, 60), marks=rule("0-9/file.publish/exchange-03")),
    pytest.param(
        "stream",
        lambda client: client.send_content(STREAM, StreamProperties(), b"refused"),
        (80, 40),
        marks=rule("0-9/stream.publish/exchange-03"),
    ),
    pytest.param(
        "basic",
        lambda client: Requester(client).ask(TRANSFER),
        (120, 10),
        marks=rule("0-9/message.transfer/destination-03"),
    ),
)
def test_service_that_does_not_take_a_class_of_contents_closes_the_channel_with_540(
    server: Server, refused: str, publish: Callable[[Client], object], ids: tuple[int, int]
) -> None:
    got = add_service(server, "s", *({"basic", "file", "stream"} - {refused}))
    client = server.client(channels=2)
    publish(client)
    close = client.expect_channel_close(540)
    assert (close.class_id, close.method_id) == ids
    assert f"takes no contents of class {refused}" in close.reply_text
    client.declare("q", channel=2)  # The connection goes on.
    server.advance(0)
    assert got == []
