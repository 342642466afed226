from __future__ import annotations

import dataclasses

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from fakeamqp.inspect import NoHistory, Published
from fakeamqp.inspect.messages import published_views
from fakeamqp.inspect.topology import queue_view
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

PROPERTIES = {
    "content_type": "text/plain",
    "content_encoding": "identity",
    "headers": {"shop": "north", "tags": ["a", {"b": 1}]},
    "delivery_mode": 2,
    "priority": 3,
    "correlation_id": "c-1",
    "reply_to": "answers",
    "expiration": "60000",
    "message_id": "m-1",
    "timestamp": 1_700_000_000,
    "type": "order",
    "user_id": "guest",
    "app_id": "shop",
}


@pytest.fixture
def orders(client: Client) -> str:
    return client.declare_ok("orders").queue


def messages(server: Server, queue: str = "orders"):
    return queue_view(server.state, queue).messages


# --- in a queue ---------------------------------------------------------------------------------------


def test_message_view_has_the_body_routing_and_properties_of_its_publish(
    server: Server, client: Client, orders: str
):
    client.bind("orders", "amq.topic", "order.*")
    client.publish(b"two apples", exchange="amq.topic", routing_key="order.placed", **PROPERTIES)
    [message] = messages(server)
    assert (message.body, message.exchange, message.routing_key) == (
        b"two apples",
        "amq.topic",
        "order.placed",
    )
    assert message.properties == PROPERTIES
    assert {name: getattr(message, name) for name in PROPERTIES} == PROPERTIES
    assert (message.state, message.redelivered, message.persistent) == ("ready", False, True)


def test_absent_properties_have_no_value_and_absent_headers_are_empty(
    server: Server, client: Client, orders: str
):
    client.publish(b"", routing_key="orders")
    [message] = messages(server)
    assert message.headers == {}
    assert message.properties == {}
    assert [getattr(message, name) for name in PROPERTIES if name != "headers"] == [None] * 12
    assert not message.persistent
    assert (message.consumer_tag, message.connection, message.channel, message.held_for) == (None,) * 4


def test_message_view_cannot_be_changed_and_does_not_change(server: Server, client: Client, orders: str):
    client.publish(b"one", routing_key="orders", headers={"n": 1})
    [message] = messages(server)
    with pytest.raises(dataclasses.FrozenInstanceError):
        message.body = b"two"
    with pytest.raises(TypeError):
        message.headers["n"] = 2
    client.get("orders", no_ack=True)
    assert (message.body, message.state) == (b"one", "ready")
    assert message == dataclasses.replace(message)
    assert hash(message) == hash(dataclasses.replace(message))


def test_message_body_can_be_read_as_text_and_json_if_valid(server: Server, client: Client, orders: str):
    client.publish('{"café": [1, null]}'.encode(), routing_key="orders")
    client.publish(b"\xff", routing_key="orders")
    good, bad = messages(server)
    assert good.text == '{"café": [1, null]}'
    assert good.json() == {"café": [1, None]}
    with pytest.raises(UnicodeDecodeError):
        bad.text  # noqa: B018
    with pytest.raises(ValueError, match=r"^the body is not JSON: b'\\xff' \("):
        bad.json()


def test_unacked_message_view_shows_its_consumer_and_holding_time(server: Server, orders: str):
    client = server.client(channels=3)
    client.publish(b"one", routing_key="orders")
    client.consume("orders", "worker", channel=3)
    server.advance(2.5)
    [message] = messages(server)
    assert (message.state, message.consumer_tag, message.channel) == ("unacked", "worker", 3)
    assert message.connection == client.connection.name
    assert message.held_for == 2.5
    assert repr(message) == (
        "<message b'one' exchange='' routing_key='orders' unacked by consumer 'worker' "
        f"on {client.connection.name} channel 3 for 2.500 s>"
    )


def test_message_fetched_with_get_has_a_connection_but_no_consumer(
    server: Server, client: Client, orders: str
):
    client.publish(b"one", routing_key="orders")
    client.get("orders")
    [message] = messages(server)
    assert (message.state, message.consumer_tag, message.connection) == (
        "unacked",
        None,
        client.connection.name,
    )
    assert "unacked by a get on" in repr(message)


def test_ready_messages_in_delivery_order_come_before_unacked_messages(
    server: Server, client: Client, orders: str
):
    for body in (b"1", b"2", b"3", b"4"):
        client.publish(body, routing_key="orders")
    first, second = client.get("orders"), client.get("orders")
    assert first is not None and second is not None
    client.send(m.BasicReject(delivery_tag=first.method.delivery_tag, requeue=True))
    assert [(each.body, each.state, each.redelivered) for each in messages(server)] == [
        (b"1", "ready", True),
        (b"3", "ready", False),
        (b"4", "ready", False),
        (b"2", "unacked", False),
    ]


def test_higher_priorities_are_delivered_and_shown_first(server: Server, client: Client):
    client.declare("ranked", arguments={"x-max-priority": 5})
    for body, priority in ((b"low", 1), (b"high", 5), (b"none", None)):
        client.publish(body, routing_key="ranked", priority=priority)
    assert [message.body for message in messages(server, "ranked")] == [b"high", b"low", b"none"]


def test_expires_in_is_the_remaining_ttl_of_a_message(server: Server, client: Client):
    client.declare("brief", arguments={"x-message-ttl": 5000})
    client.publish(b"short", routing_key="brief", expiration="1500")
    client.publish(b"long", routing_key="brief")
    server.advance(1)
    assert [message.expires_in for message in messages(server, "brief")] == [0.5, 4.0]
    assert "expires_in=0.500" in repr(messages(server, "brief")[0])
    client.get("brief")
    server.advance(3)
    held = messages(server, "brief")[-1]
    assert (held.body, held.state, held.expires_in) == (b"short", "unacked", 0.0)


def test_long_bodies_are_shortened_in_representations_only(server: Server, client: Client, orders: str):
    client.publish(b"x" * 1000, routing_key="orders")
    [message] = messages(server)
    assert len(message.body) == 1000
    assert len(repr(message)) < 150
    assert "xxx..." in repr(message)


def test_repr_of_a_message_with_any_octets_is_ascii_on_a_single_line(server: Server, client: Client):
    server.vhost.queues.declare("\udcff")
    client.publish(b"\xff\n", routing_key="\udcff", headers={"\udcfe\n": "\udcfd"})
    [message] = messages(server, "\udcff")
    repr(message).encode("ascii")
    assert "\n" not in repr(message)


# --- published ----------------------------------------------------------------------------------------


def test_published_messages_are_in_order_and_name_their_queues(server: Server, client: Client, orders: str):
    client.declare("more")
    client.bind("orders", "amq.fanout")
    client.bind("more", "amq.fanout")
    client.publish(b"1", routing_key="orders")
    client.publish(b"2", routing_key="nowhere")
    client.publish(b"3", exchange="amq.fanout", headers={"n": 3})
    one, two, three = published_views(server.state)
    assert [view.body for view in (one, two, three)] == [b"1", b"2", b"3"]
    assert (one.routed, one.unroutable, one.queues, one.outcome) == (
        True,
        False,
        ("orders",),
        "routed to orders",
    )
    assert (two.routed, two.unroutable, two.queues, two.outcome) == (False, True, (), "unroutable")
    assert three.queues == ("orders", "more")
    assert three.headers == {"n": 3}
    assert (one.virtual_host, one.connection) == ("/", client.connection.name)


def test_publish_refused_by_a_full_queue_names_the_queue(server: Server, client: Client):
    client.declare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.publish(b"1", routing_key="full")
    client.publish(b"2", routing_key="full")
    one, two = published_views(server.state)
    assert (one.refused, one.refused_by) == (False, ())
    assert (two.refused, two.refused_by, two.routed) == (True, ("full",), True)
    assert "refused by full queue 'full'" in repr(two)


def test_failed_publish_is_not_in_the_history(server: Server, client: Client):
    client.publish(b"1", exchange="missing")
    client.expect_channel_close(404)
    assert len(published_views(server.state)) == 0


def test_repr_of_a_published_message_names_another_virtual_host(server: Server):
    server.state.add_virtual_host("other")
    server.state.access.users["guest"].permissions["other"] = server.state.access.users["guest"].permissions[
        "/"
    ]
    server.client(virtual_host="other").publish(b"1", routing_key="x")
    [view] = published_views(server.state)
    assert view.virtual_host == "other"
    assert repr(view).endswith("in virtual host 'other': unroutable>")


def test_published_is_a_sequence_that_does_not_change(server: Server, client: Client):
    client.publish(b"1", routing_key="x")
    client.publish(b"2", routing_key="x")
    published = published_views(server.state)
    client.publish(b"3", routing_key="x")
    assert [view.body for view in published] == [b"1", b"2"]
    assert published[-1].body == b"2"
    assert isinstance(published[1:], Published)
    assert [view.body for view in published[1:]] == [b"2"]
    assert published == list(published)
    assert published == published[:]
    assert published != published[1:]
    with pytest.raises(IndexError):
        published[2]


def test_published_history_is_bounded_and_counts_dropped_messages():
    server = Server(history=2)
    client = server.client()
    for body in (b"1", b"2", b"3"):
        client.publish(body, routing_key="x")
    published = published_views(server.state)
    assert [view.body for view in published] == [b"2", b"3"]
    assert published.dropped == 1
    assert repr(published).startswith("<2 published and 1 older:\n  <published b'2' ")
    server.state.clear()
    assert (len(published_views(server.state)), published_views(server.state).dropped) == (0, 0)
    assert repr(published_views(server.state)) == "<nothing published>"


def test_repr_of_a_long_history_shows_the_last_20_messages(server: Server, client: Client):
    for number in range(25):
        client.publish(b"%02d" % number, routing_key="x")
    lines = repr(published_views(server.state)).splitlines()
    assert lines[:2] == ["<25 published:", "  ... 5 more before"]
    assert [line[15:17] for line in lines[2:-1]] == [f"{number:02d}" for number in range(5, 25)]


def test_published_without_a_history_raises_no_history():
    server = Server()
    server.client().publish(b"1", routing_key="x")
    with pytest.raises(NoHistory, match="history="):
        published_views(server.state)
