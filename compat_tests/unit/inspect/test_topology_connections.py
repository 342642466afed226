"""Connections and channels of AMQP 0-9-1, 0-9 and 0-8, as a test sees them."""

from __future__ import annotations

import pytest

from compat_tests.scripted import amqp_0_9
from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.unit.inspect.views import connection_views
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

PROPERTIES = {"product": "pika", "version": "1.3", "connection_name": "worker 7", "capabilities": {"x": True}}


def test_connection_view_shows_user_virtual_host_and_client_properties(server: Server):
    client = server.client(heartbeat=30, client_properties=PROPERTIES)
    [view] = connection_views(server.state)
    assert (view.name, view.user, view.virtual_host) == (client.connection.name, "guest", "/")
    assert (view.heartbeat, view.blocked) == (30, None)
    assert view.client_properties == PROPERTIES
    assert (view.client, view.connection_name) == ("pika 1.3", "worker 7")
    assert repr(view) == (
        f"<connection {view.name!r} called 'worker 7' from 'pika 1.3' user='guest' "
        "virtual_host='/' channels=1>"
    )


def test_connection_views_are_oldest_first_without_closed_connections(server: Server):
    clients = [server.connect(port=port) for port in (3, 1, 2)]
    for client in clients:
        client.handshake()
    names = [client.connection.name for client in clients]
    assert [view.name for view in connection_views(server.state)] == names
    clients[1].drop()
    assert [view.name for view in connection_views(server.state)] == [names[0], names[2]]


def test_connection_view_has_no_user_before_login(server: Server):
    client = server.connect()
    client.send_bytes(b"AMQP\x00\x00\x09\x01")
    [view] = connection_views(server.state)
    assert (view.user, view.virtual_host, view.client, view.connection_name) == (None, None, "", None)
    assert repr(view) == f"<connection {view.name!r} user=None virtual_host=None channels=0>"


def test_channel_views_show_consumers_prefetch_and_mode(server: Server):
    client = server.client(channels=3)
    client.declare("orders")
    client.call(m.ConfirmSelect(), m.ConfirmSelectOk, 1)
    client.call(m.BasicQos(prefetch_count=2), m.BasicQosOk, 2)
    client.call(m.BasicQos(prefetch_count=5, global_=True), m.BasicQosOk, 3)
    client.call(m.TxSelect(), m.TxSelectOk, 3)
    client.consume("orders", "tag", channel=2)
    for _ in range(3):
        client.publish(routing_key="orders")
    one, two, three = connection_views(server.state)[0].channels
    assert (one.number, one.consumers, one.unacked, one.prefetch, one.mode) == (1, (), 0, 0, "confirm")
    assert (two.number, two.unacked, two.prefetch, two.mode) == (2, 2, 2, None)
    assert [consumer.tag for consumer in two.consumers] == ["tag"]
    assert (three.prefetch, three.mode) == (5, "tx")
    assert repr(one) == "<channel 1 consumers=0 unacked=0 prefetch=unlimited confirm>"
    assert repr(two) == "<channel 2 consumers=1 unacked=2 prefetch=2>"


def test_closed_channels_are_not_shown(server: Server):
    client = server.client(channels=2)
    client.close_channel(1)
    client.send(m.QueueDeclare(queue="missing", passive=True), 2)
    assert connection_views(server.state)[0].channels == ()


def test_blocked_connection_view_shows_the_reason(server: Server):
    server.client()
    server.state.block("low on memory")
    [view] = connection_views(server.state)
    assert view.blocked == "low on memory"
    assert repr(view).endswith("blocked='low on memory'>")
    server.state.unblock()
    assert connection_views(server.state)[0].blocked is None


# --- AMQP 0-9 and 0-8 -----------------------------------------------------------------------------------


def test_0_9_connection_view_shows_protocol_and_channels() -> None:
    server = amqp_0_9.Server("rabbitmq-4.2")
    client = server.client(channels=2)
    client.call(m.TxSelect(), m.TxSelectOk, 2)
    (view,) = connection_views(server.state)
    assert (view.protocol, view.sessions) == ("0-9", ())
    assert [(each.number, each.mode) for each in view.channels] == [(1, None), (2, "tx")]
    assert repr(view) == f"<connection '{view.name}' user='guest' virtual_host='/' protocol='0-9' channels=2>"


@pytest.mark.parametrize("header", [b"AMQP\1\1\x08\0", b"AMQP\1\1\x09\1"])
def test_connection_with_a_0_8_header_is_shown_with_protocol_0_8(header: bytes) -> None:
    server = amqp_0_9.Server("rabbitmq-4.2")
    server.connect().send_bytes(header)
    (view,) = connection_views(server.state)
    assert view.protocol == "0-8"
