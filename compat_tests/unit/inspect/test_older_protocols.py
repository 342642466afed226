"""Connections of AMQP 0-9 and 0-8, as a test sees them."""

from __future__ import annotations

import pytest

from compat_tests.scripted.amqp_0_9 import Server
from fakeamqp.inspect.topology import connection_views
from fakeamqp.protocols.amqp_0_9.codec import methods as m


def test_0_9_connection_view_shows_protocol_and_channels() -> None:
    server = Server("rabbitmq-4.2")
    client = server.client(channels=2)
    client.call(m.TxSelect(), m.TxSelectOk, 2)
    (view,) = connection_views(server.state)
    assert (view.protocol, view.sessions) == ("0-9", ())
    assert [(each.number, each.mode) for each in view.channels] == [(1, None), (2, "tx")]
    assert repr(view) == f"<connection '{view.name}' user='guest' virtual_host='/' protocol='0-9' channels=2>"


@pytest.mark.parametrize("header", [b"AMQP\1\1\x08\0", b"AMQP\1\1\x09\1"])
def test_connection_with_a_0_8_header_is_shown_with_protocol_0_8(header: bytes) -> None:
    server = Server("rabbitmq-4.2")
    server.connect().send_bytes(header)
    (view,) = connection_views(server.state)
    assert view.protocol == "0-8"
