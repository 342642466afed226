"""Messages in streams: how they come in, what becomes of their properties, filters, what restarts keep."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.streams import ALL, RABBITMQ, consume, crashed, declare, offsets, read
from compat_tests.scripted.amqp_0_9_1 import Client, Content, Server
from compat_tests.tools.matrix import rows
from fakeamqp.inspect.topology import queue_view
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp


@pytest.fixture(params=ALL)
def server(request: pytest.FixtureRequest) -> Server:
    server = Server(request.param)
    declare(server.client())
    return server


@pytest.fixture
def client(server: Server) -> Client:
    return server.client()


def delivered(client: Client, **properties: Any) -> Content:
    """A message with these properties, as a consumer gets it."""
    client.fill("s", b"body", **properties)
    return only(client)


def only(client: Client) -> Content:
    client.qos(1)
    consume(client, "last")
    return client.delivery()


def given(content: Content) -> dict[str, Any]:
    """The headers of a delivery, without the offset."""
    headers = dict(content.properties.headers or {})
    del headers["x-stream-offset"]
    return headers


# --- coming in ---------------------------------------------------------------------------------------------
def test_delivery_from_stream_has_exchange_and_routing_key_of_publish(client: Client) -> None:
    client.bind("s", "amq.topic", "a.#").publish(b"1", exchange="amq.topic", routing_key="a.b")
    method = only(client).method
    assert (method.exchange, method.routing_key) == ("amq.topic", "a.b")


def test_mandatory_publish_to_stream_is_confirmed(client: Client) -> None:
    client.perform(m.ConfirmSelect()).publish(b"1", routing_key="s", mandatory=True)
    assert client.expect(m.BasicAck).delivery_tag == 1  # And not returned.


def test_publishes_in_transaction_are_in_stream_after_commit(server: Server, client: Client) -> None:
    client.perform(m.TxSelect()).fill("s", b"1", b"2")
    assert read(server) == []
    client.perform(m.TxCommit()).fill("s", b"3").perform(m.TxRollback())
    assert read(server) == [b"1", b"2"]


@pytest.mark.parametrize("name", RABBITMQ)
def test_message_with_its_stream_in_cc_is_stored_once(name: str) -> None:
    client = declare(Server(name).client()).publish(b"1", routing_key="s", headers={"CC": ["s", "other"]})
    content = only(client)
    assert client.count("s") == 1
    assert given(content) == {"CC": ["s", "other"]}


@pytest.mark.needs("virtual time")
@pytest.mark.parametrize("name", RABBITMQ)
def test_expiration_is_validated_but_message_in_stream_does_not_expire(name: str) -> None:
    server = Server(name)
    client = declare(server.client()).fill("s", b"1", expiration="0")
    server.advance(10**6)
    assert read(server) == [b"1"]
    client.fill("s", b"2", expiration="bad").expect_channel_close(406)


def test_dead_letters_can_go_to_a_stream(client: Client) -> None:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "s"}
    client.declare("q", durable=True, arguments=arguments).fill("q", b"dead", delivery_mode=2)
    client.qos(1).consume("q").reject(client.delivery().method.delivery_tag)
    content = only(client)
    deaths = (content.properties.headers or {})["x-death"]
    assert [(death["queue"], death["reason"]) for death in deaths] == [("q", "rejected")]


@pytest.mark.needs("virtual time")
def test_a_dead_letter_that_no_stream_can_store_is_dropped() -> None:
    server = Server()
    client = declare(server.client())
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "s", "x-message-ttl": 1000}
    client.declare("q", arguments=arguments)
    client.fill("q", b"dead", headers={"price": Decimal("1.5")}).fill("q", b"fine")
    server.advance(1)
    assert read(server) == [b"fine"]


# --- properties --------------------------------------------------------------------------------------------

PLAIN: dict[str, Any] = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "priority": 3,
    "correlation_id": "c",
    "reply_to": "r",
    "message_id": "m",
    "timestamp": 1_600_000_000,
    "type": "t",
    "app_id": "a",
}


def test_message_properties_are_kept_in_stream(client: Client) -> None:
    properties = delivered(client, delivery_mode=2, user_id="guest", **PLAIN).properties
    assert {name: getattr(properties, name) for name in PLAIN} == PLAIN
    assert (properties.delivery_mode, properties.user_id, properties.expiration) == (2, "guest", None)


@pytest.mark.parametrize(("asked", "got"), [(None, 1), (1, 1), (2, 2)])
@pytest.mark.parametrize("name", RABBITMQ)
def test_message_without_delivery_mode_is_delivered_from_stream_with_mode_1(
    name: str, asked: int | None, got: int
) -> None:
    client = declare(Server(name).client())
    assert delivered(client, delivery_mode=asked).properties.delivery_mode == got


@pytest.mark.parametrize("name", RABBITMQ)
def test_headers_and_properties_unknown_to_amqp_1_0_are_changed_or_dropped_in_stream(name: str) -> None:
    client = declare(Server(name).client())
    headers = {
        "b": b"octets",
        "array": [1],
        "table": {"a": 1},
        "x-array": [1],
        "x-table": {"a": 1},
        "x-routing-key": "k",
        "x-exchange": "e",
        "x-basic-type": "t",
        "a": 1,
    }
    content = delivered(client, expiration="0100", cluster_id="c", headers=headers)
    assert given(content) == {"a": 1, "b": "octets", "x-array": [1], "x-table": {"a": 1}}
    assert (content.properties.expiration, content.properties.cluster_id) == ("100", None)


@rows(
    "given_as, comes_as",
    (2**63 // 1000, 2**63 // 1000),
    (2**63 // 1000 + 1, 18437520701672696841),
    (2**62, 0),
    (2**63 - 1, 2**64 - 1),
    (2**63 + 10**15, 10**15),
    (10**17, 7766279631452241),
    (2**64 - 1, 2**64 - 1),
)
@pytest.mark.parametrize("name", RABBITMQ)
def test_timestamps_overflow_as_milliseconds(name: str, given_as: int, comes_as: int) -> None:
    client = declare(Server(name).client())
    content = delivered(client, timestamp=given_as, headers={"at": Timestamp(given_as)})
    assert (content.properties.timestamp, given(content)) == (comes_as, {"at": comes_as})


@pytest.mark.parametrize("name", RABBITMQ)
def test_headers_are_delivered_from_stream_in_order_of_their_names(name: str) -> None:
    client = declare(Server(name).client())
    headers = delivered(client, headers={"z": 1, "x-a": 1, "é": 1, "Z": 1, "a": 1}).properties.headers
    assert list(headers or {}) == ["Z", "a", "x-a", "x-stream-offset", "z", "é"]


@pytest.mark.needs("personality spec")
def test_spec_personality_keeps_headers_and_properties_unchanged_in_stream() -> None:
    client = declare(Server("spec").client())
    headers = {"z": [1], "a": {"b": 1}}
    content = delivered(client, headers=headers)
    assert given(content) == headers
    assert content.properties.delivery_mode is None


def test_integer_headers_keep_their_width_in_stream() -> None:
    client = declare(Server().client())
    fields = b"\x01zb\xff" + b"\x01as\x00\x05" + b"\x01mL\0\0\0\0\0\0\0\x07"
    client.publish_bytes(b"\x20\0" + len(fields).to_bytes(4, "big") + fields, b"", routing_key="s")
    client.qos(1).send(m.BasicConsume(queue="s", arguments={"x-stream-offset": "first"}))
    client.expect(m.BasicConsumeOk)
    client.expect(m.BasicDeliver)
    payload = client.take_frame().payload
    offset = b"\x0fx-stream-offsetl" + bytes(8)
    in_order = b"\x01as\x00\x05" + b"\x01ml\0\0\0\0\0\0\0\x07" + offset + b"\x01zb\xff"
    assert in_order in payload


@pytest.mark.parametrize("name", RABBITMQ)
@rows(
    "headers",
    {"price": Decimal("1.5")},
    {"x-stream-filter-value": 5},
    {"x-stream-filter-value": "a\0b"},
    {"x-stream-filter-value": "a" * 4097},
    {"x-stream-filter-value": "\udcff"},
    ids=["decimal", "number", "nul", "long", "not UTF-8"],
)
def test_message_that_cannot_be_stored_in_stream_ends_connection(name: str, headers: dict[str, Any]) -> None:
    server = Server(name)
    client = declare(server.client()).fill("s", b"1", headers=headers)
    crashed(client)
    assert read(server) == []


# --- filters -----------------------------------------------------------------------------------------------
@pytest.fixture
def filtered(server: Server) -> Server:
    client = server.client()
    for body, value in ((b"a1", "a"), (b"b1", "b"), (b"-1", None), (b"a2", "a"), (b"-2", "")):
        client.fill("s", body, headers=None if value is None else {"x-stream-filter-value": value})
    return server


@rows(
    "arguments, expected",
    ({"filter": "a"}, [b"a1", b"a2"]),
    ({"filter": "c"}, []),
    ({"filter": ["a", "b"]}, [b"a1", b"b1", b"a2"]),
    ({"filter": ["b", 5, None]}, [b"b1"]),
    ({"filter": "b", "match_unfiltered": True}, [b"b1", b"-1", b"-2"]),
    ({"filter": "b", "match_unfiltered": False}, [b"b1"]),
    ({"filter": "b", "match_unfiltered": "yes"}, [b"b1"]),
    ({"filter": ""}, [b"-1", b"-2"]),
    ({"filter": 5}, [b"a1", b"b1", b"-1", b"a2", b"-2"]),
    ({"match_unfiltered": True}, [b"a1", b"b1", b"-1", b"a2", b"-2"]),
    ids=str,
)
def test_stream_filter_selects_messages_by_filter_value(
    filtered: Server, arguments: dict[str, Any], expected: list[bytes]
) -> None:
    assert read(filtered, **arguments) == expected


def test_filter_value_stays_in_headers_of_delivery(filtered: Server) -> None:
    client = consume(filtered.client().qos(1), 3)
    assert given(client.delivery()) == {"x-stream-filter-value": "a"}


def test_filtered_out_messages_do_not_use_prefetch(filtered: Server) -> None:
    client = filtered.client().qos(1)
    first = consume(client, filter="a").delivery()
    client.expect_nothing()
    second = client.ack(first.method.delivery_tag).delivery()
    assert offsets([first, second]) == [0, 3]
    client.ack(second.method.delivery_tag)
    client.fill("s", b"b2", headers={"x-stream-filter-value": "b"}).expect_nothing()
    assert client.fill("s", b"a3", headers={"x-stream-filter-value": "a"}).bodies() == [b"a3"]


def test_x_stream_filter_without_text_ends_the_connection(filtered: Server) -> None:
    client = filtered.client().qos(1)
    crashed(client, m.BasicConsume(queue="s", arguments={"x-stream-filter": [1, 2]}))


# --- restarts ----------------------------------------------------------------------------------------------
@pytest.mark.needs("restart", "inspection")
def test_stream_keeps_all_messages_and_offsets_over_a_restart(server: Server) -> None:
    client = server.client().fill("s", b"1", delivery_mode=1)
    client.fill("s", b"2", delivery_mode=2).qos(1)
    consume(client)
    client = server.restart().client().fill("s", b"3").qos(10)
    consume(client)
    contents = [client.delivery() for _ in range(3)]
    assert [content.body for content in contents] == [b"1", b"2", b"3"]
    assert offsets(contents) == [0, 1, 2]
    assert not any(content.method.redelivered for content in contents)
    assert len(server.vhost.queues["s"].unacked) == 3


@pytest.mark.needs("inspection")
def test_acknowledged_stream_deliveries_are_no_longer_unacknowledged(server: Server) -> None:
    client = server.client().fill("s", b"1", b"2", b"3", b"4").qos(10)
    consume(client)
    tags = [client.delivery().method.delivery_tag for _ in range(4)]
    unacked = server.vhost.queues["s"].unacked
    assert len(unacked) == 4
    client.ack(tags[0])
    assert len(unacked) == 3
    client.ack(tags[2], multiple=True)
    assert len(unacked) == 1
    client.close_channel()
    assert len(unacked) == 0


@pytest.mark.needs("restart", "inspection")
def test_crash_loses_messages_after_the_last_confirmed_message(server: Server) -> None:
    client = server.client(channels=2).perform(m.ConfirmSelect(), channel=2)
    for body, channel in ((b"1", 1), (b"2", 2), (b"3", 1)):
        client.publish(body, routing_key="s", channel=channel)
    server.restart(crash=True)
    assert read(server) == [b"1", b"2"]


# --- inspection --------------------------------------------------------------------------------------------
@pytest.mark.needs("inspection")
def test_inspection_shows_the_log_with_its_offsets(server: Server) -> None:
    client = server.client().fill("s", b"1", b"2", b"3").qos(2)
    consume(client, 1)
    view = queue_view(server.state, "s")
    assert [(message.offset, message.body, message.state) for message in view.messages] == [
        (0, b"1", "ready"),
        (1, b"2", "ready"),
        (2, b"3", "ready"),
    ]
    assert (view.ready, view.unacked, view.consumers[0].next_offset) == (3, 2, 3)
    assert "offset=1" in repr(view.messages[1])
    assert "next_offset=3" in repr(view.consumers[0])


@pytest.mark.needs("inspection")
def test_inspection_of_other_queues_shows_no_offsets(client: Client) -> None:
    client.declare("q", durable=True).fill("q", b"1").consume("q", "c")
    view = queue_view(client.server.state, "q")
    assert view.messages[0].offset is None
    assert view.consumers[0].next_offset is None


def test_messages_with_different_headers_keep_their_own_headers(client: Client) -> None:
    client.fill("s", b"1", headers={"n": 1}).fill("s", b"2", headers={"n": 2})
    client.fill("s", b"3", headers={"n": 1}).qos(5)
    consume(client)
    assert [given(client.delivery())["n"] for _ in range(3)] == [1, 2, 1]


def test_timestamp_in_headers_is_kept_in_stream() -> None:
    client = declare(Server().client())
    headers = given(delivered(client, headers={"t": Timestamp(5)}))
    assert BasicProperties(headers=headers).encode().endswith(b"\x01tT\0\0\0\0\0\0\0\x05")


@rows(
    "name, choices, names",
    ("rabbitmq-4.3", {}, ["a", "x-stream-offset", "z"]),
    ("spec", {}, ["z", "a", "x-stream-offset"]),
    ("spec", {"sorts_headers": True}, ["a", "x-stream-offset", "z"]),
)
def test_x_stream_offset_is_sorted_among_headers_only_if_headers_are_sorted(
    name: str, choices: dict[str, bool], names: list[str]
) -> None:
    server = Server(name).varied(**choices)
    client = declare(server.client()).publish(b"1", routing_key="s", headers={"z": 1, "a": 2}).qos(10)
    assert list(consume(client).delivery().properties.headers) == names
