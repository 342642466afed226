"""What RabbitMQ 3.10.8 does otherwise than later versions, measured; each test holds both sides."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.protocol.amqp_0_9_1.test_policies import set_policy
from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import field, long_string, table
from compat_tests.tools.matrix import rows
from fakeamqp.model.access import Permission, TopicPermission
from fakeamqp.model.policies import PolicyError
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, frame
from fakeamqp.protocols.amqp_0_9_1.codec.tables import Timestamp

OLD, NEW = "rabbitmq-3.10", "rabbitmq-3.13"
BOTH = pytest.mark.parametrize("name", [OLD, NEW])


def client_of(name: str) -> Client:
    return Server(name).client()


def headers(*fields: bytes) -> bytes:
    """Properties with this header table alone."""
    return b"\x20\0" + table(*fields)


def integer(name: str, value: int) -> bytes:
    return field(name, b"I" + value.to_bytes(4, "big", signed=True))


def returned(client: Client, properties: bytes, exchange: str) -> bool:
    """Whether a message with these properties finds no queue."""
    client.send(m.BasicPublish(exchange=exchange, mandatory=True))
    client.send_bytes(b"".join(content_frames(1, 60, properties, b"m", 4000)))
    if client.inbox:
        client.expect_content(m.BasicReturn)
        return True
    return False


def header_bytes(client: Client, queue: str) -> bytes:
    """The properties of the next message of a queue, as bytes."""
    [_, content_header, *_] = client.send(m.BasicGet(queue=queue)).inbox
    octets = content_header.payload[12:]
    client.expect_content(m.BasicGetOk)
    return octets


# --- texts -------------------------------------------------------------------------------------------
@pytest.mark.needs("settings")
@BOTH
def test_access_refused_text_names_the_permission_since_3_13(name: str) -> None:
    server = Server(name)
    user = server.state.access.users["guest"]
    user.permissions["/"] = Permission(configure="")
    user.topic_permissions["/", "amq.topic"] = TopicPermission(write="^a")
    client = server.client(channels=2)
    action, write = ("", "") if name == OLD else ("configure ", "write ")
    text = client.fails(m.QueueDeclare(queue="q"), 403).reply_text
    assert text == f"ACCESS_REFUSED - {action}access to queue 'q' in vhost '/' refused for user 'guest'"
    client.publish(exchange="amq.topic", routing_key="b", channel=2)
    text = client.expect_channel_close(403, 2).reply_text
    assert text.startswith(f"ACCESS_REFUSED - {write}access to topic 'b' in exchange 'amq.topic'")


@BOTH
def test_unknown_exchange_type_closes_the_connection_until_3_10(name: str) -> None:
    client = client_of(name).send(m.ExchangeDeclare(exchange="x", type="bogus"))
    if name == OLD:
        assert client.expect_connection_close(503).reply_text.endswith("unknown exchange type 'bogus'")
    else:
        client.expect_channel_close(406)


@BOTH
@rows(
    "payload, old, new",
    (b"za\xc5\xbc", b'<<"za\xc5\xbc">>', '<<"za\u017c"/utf8>>'.encode()),
    (b"\xe9", b'<<"\xe9">>', '<<"\u00e9">>'.encode()),
    (b"\xf0\x9f\x98\x80", b"<<240,159,152,128>>", '<<"\U0001f600"/utf8>>'.encode()),
    (b"a\x7f", b"<<97,127>>", b"<<97,127>>"),
)
def test_octets_in_frame_error_text_are_printed_in_latin_1_until_3_10(
    name: str, payload: bytes, old: bytes, new: bytes
) -> None:
    client = client_of(name).send_bytes(frame(5, 1, payload))
    text = client.expect_connection_close(501).reply_text.encode("utf-8", "surrogateescape")
    assert text == b"FRAME_ERROR - type 5, all octets = %b: unknown_frame" % (old if name == OLD else new)


# --- headers ---------------------------------------------------------------------------------------
@BOTH
def test_headers_are_delivered_unsorted_with_duplicates_until_3_10(name: str) -> None:
    client = client_of(name).declare("q")
    b, a, again = integer("b", 1), integer("a", 2), integer("b", 3)
    client.publish_bytes(headers(b, a, again), b"m", routing_key="q")
    assert header_bytes(client, "q") == (headers(b, a, again) if name == OLD else headers(a, b))


@BOTH
def test_dead_lettered_message_keeps_duplicate_headers_until_3_10(name: str) -> None:
    client = client_of(name).declare("dead")
    client.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    b, again = integer("b", 1), integer("b", 3)
    long = field("a", b"L" + bytes(7) + b"\5")
    client.publish_bytes(headers(b, long, again), b"m", routing_key="q").get("q")
    client.reject(1)
    octets = header_bytes(client, "dead")
    expected = long.replace(b"L", b"l") + (b + again if name == OLD else b) + b"\x07x-death"
    assert octets[6 : 6 + len(expected)] == expected


@BOTH
def test_expiration_is_delivered_with_leading_zero_until_3_10(name: str) -> None:
    client = client_of(name).declare("q").fill("q", b"m", expiration="0500")
    assert client.fetch("q").properties.expiration == ("0500" if name == OLD else "500")


@BOTH
@rows(
    "properties, refused",
    ({"delivery_mode": 7}, "invalid message: {delivery_mode_unknown,7}"),
    ({"delivery_mode": 0}, "invalid message: {delivery_mode_unknown,0}"),
    ({"delivery_mode": 7, "headers": {"CC": 5}}, "unacceptable_type_in_header"),
    ({"delivery_mode": 7, "user_id": "nobody"}, "user_id property"),
    ({"delivery_mode": 2}, ""),
)
def test_unknown_delivery_mode_fails_in_3_10(name: str, properties: dict[str, Any], refused: str) -> None:
    client = client_of(name).declare("q").fill("q", b"m", **properties)
    if refused and (name == OLD or "delivery_mode" not in refused):
        assert refused in client.expect_channel_close(406).reply_text
    else:
        assert client.count("q") == 1


# --- headers exchanges ---------------------------------------------------------------------------------
def bound(name: str, arguments: bytes) -> Client:
    """A client with a queue that is bound to amq.headers with these arguments, an encoded table."""
    client = client_of(name).declare("q")
    payload = m.QueueBind(queue="q", exchange="amq.headers").encode()
    client.send_frame(1, 1, payload[:-4] + arguments).expect(m.QueueBindOk)
    return client


DOUBLE = field("a", b"d" + bytes((0x3F, 0xF0)) + bytes(6))
TIMESTAMP = field("a", b"T" + bytes(7) + b"\1")
MATCH_ANY = field("x-match", b"S" + long_string(b"any"))


@BOTH
@rows(
    "wanted, sent, old, new",
    ([integer("a", 1)], [DOUBLE], True, False),
    ([DOUBLE], [integer("a", 1)], True, False),
    ([field("a", b"t\1")], [DOUBLE], False, False),
    ([TIMESTAMP], [TIMESTAMP], True, False),
    ([MATCH_ANY, integer("a", 1), integer("a", 2)], [integer("a", 1)], True, True),
    ([MATCH_ANY, integer("a", 1), integer("a", 2)], [integer("a", 2)], False, True),
    ([MATCH_ANY, integer("a", 1), integer("a", 2)], [integer("a", 3), integer("a", 2)], True, True),
    ([integer("a", 1), integer("a", 2)], [integer("a", 1)], False, False),
    ([integer("a", 1), integer("a", 2)], [integer("a", 1), integer("a", 2)], True, False),
    ([integer("a", 1), integer("a", 2)], [integer("a", 2), integer("a", 1)], False, False),
)
def test_headers_exchange_compares_values_without_type_and_in_order_until_3_10(
    name: str, wanted: list[bytes], sent: list[bytes], old: bool, new: bool
) -> None:
    client = bound(name, table(*wanted))
    assert returned(client, headers(*sent), "amq.headers") is not (old if name == OLD else new)


# --- dead letters ------------------------------------------------------------------------------------
def dying(client: Client) -> None:
    """Queues q and p, each of which is the other's target of dead letters."""
    for queue, other in (("q", "p"), ("p", "q")):
        client.declare(queue, arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": other})


def rejected(client: Client, queue: str) -> None:
    content = client.fetch(queue)
    client.reject(content.method.delivery_tag)


def dead_headers(client: Client, queue: str) -> dict[str, Any]:
    found = client.fetch(queue).properties.headers
    assert found is not None
    return dict(found)


AS_ADDED = ["count", "reason", "queue", "time", "exchange", "routing-keys"]


@BOTH
def test_x_last_death_headers_exist_since_3_13(name: str) -> None:
    client = client_of(name)
    dying(client)
    client.fill("q", b"m")
    rejected(client, "q")
    found = dead_headers(client, "p")
    assert found["x-first-death-queue"] == "q"
    assert ("x-last-death-queue" in found) is (name == NEW)


@pytest.mark.needs("virtual time")
@BOTH
def test_fields_of_repeated_x_death_entries_are_sorted_until_3_10(name: str) -> None:
    server = Server(name)
    client = server.client()
    dying(client)
    client.fill("q", b"m", expiration="500")
    server.advance(1)
    first = ["original-expiration"]
    rejected(client, "p")
    [latest, oldest] = dead_headers(client, "q")["x-death"]
    assert list(oldest) == ([*AS_ADDED, *first] if name == OLD else [*first, *AS_ADDED])
    assert list(latest) == (sorted(AS_ADDED) if name == OLD else AS_ADDED)


@pytest.mark.needs("virtual time")
@BOTH
def test_each_death_reverses_the_order_of_older_x_death_entries_until_3_10(name: str) -> None:
    server = Server(name)
    client = server.client()
    dying(client)
    client.fill("q", b"m", expiration="500")
    server.advance(1)
    rejected(client, "p")
    rejected(client, "q")
    deaths = [(each["queue"], each["reason"]) for each in dead_headers(client, "p")["x-death"]]
    others = [("q", "expired"), ("p", "rejected")]
    assert deaths == [("q", "rejected"), *(others if name == OLD else reversed(others))]


@BOTH
def test_x_death_entries_set_by_publisher_are_kept_until_3_10(name: str) -> None:
    client = client_of(name)
    dying(client)
    claimed = [
        {"reason": "rejected", "queue": "q", "extra": 1},
        {"reason": "bogus", "queue": "other"},
        {"reason": "bogus", "queue": "other", "extra": 2},
    ]
    if name == NEW:
        claimed = claimed[:1]  # An unknown reason is 541.
    content = client.fill("q", b"m", headers={"x-death": claimed}).get("q")
    assert content is not None and content.properties.headers is not None
    assert content.properties.headers["x-death"] == (claimed if name == OLD else [])
    client.reject(1)
    latest, *others = dead_headers(client, "p")["x-death"]
    if name == OLD:
        assert list(latest.items()) == [("count", 1), ("extra", 1), ("queue", "q"), ("reason", "rejected")]
        assert others == [claimed[1]]
    else:
        assert (list(latest), others) == (AS_ADDED, [])


# --- queues --------------------------------------------------------------------------------------------
@BOTH
@pytest.mark.parametrize(
    ("value", "known"),
    [("client-local", True), (b"random", True), ("min-masters", True), ("bogus", False), (5, False)],
)
def test_unknown_queue_master_locator_closes_the_connection_with_541_until_3_10(
    name: str, value: object, known: bool
) -> None:
    client = client_of(name)
    client.send(m.QueueDeclare(queue="q", arguments={"x-queue-master-locator": value}))  # type: ignore[dict-item]
    if known or name == NEW:
        client.expect(m.QueueDeclareOk)
    else:
        assert client.expect_connection_close(541).reply_text == "INTERNAL_ERROR"


@BOTH
def test_first_get_from_quorum_queue_has_x_delivery_count_0_until_3_10(name: str) -> None:
    client = client_of(name).declare("q", durable=True, arguments={"x-queue-type": "quorum"})
    content = client.fill("q", b"1", b"2").fetch("q", no_ack=True)
    assert content.properties.headers == ({"x-delivery-count": 0} if name == OLD else None)
    assert client.consume("q").delivery().properties.headers is None


@pytest.mark.needs("virtual time")
@BOTH
@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_x_consumer_timeout_argument_is_ignored_until_3_10(name: str, kind: str) -> None:
    server = Server(name)
    client = server.client()
    client.declare("q", durable=True, arguments={"x-queue-type": kind, "x-consumer-timeout": 60_000})
    client.fill("q", b"m").consume("q").delivery()
    server.advance(300)
    if name == NEW:
        client.expect_channel_close(406)
    else:
        client.expect_nothing()
        server.advance(3600)  # That of the node stays.
        client.expect_channel_close(406)


@pytest.mark.needs("own broker")
@rows("key, value", ("target-group-size", 3), ("consumer-timeout", 60_000), ("stream-filter-size-bytes", 20))
def test_policy_keys_introduced_after_3_10_are_refused_by_3_10(key: str, value: int) -> None:
    set_policy(Server(NEW), "p", {key: value})
    with pytest.raises(PolicyError, match=key):
        set_policy(Server(OLD), "p", {key: value})


# --- streams -------------------------------------------------------------------------------------------
def stream(name: str, **properties: Any) -> Client:
    """A client that has one message of a stream."""
    client = client_of(name).declare("s", durable=True, arguments={"x-queue-type": "stream"})
    return client.fill("s", b"m", **properties).qos(10).consume("s", arguments={"x-stream-offset": "first"})


@BOTH
def test_streams_keep_byte_headers_and_drop_array_headers_until_3_10(name: str) -> None:
    sent = {"b": b"x", "x-a": [1], "x-exchange": "e", "t": Timestamp(5)}
    properties = stream(name, headers=sent, expiration="0500").delivery().properties
    old = {"b": b"x", "t": Timestamp(5), "x-exchange": "e", "x-stream-offset": 0}
    new = {"b": "x", "t": Timestamp(5), "x-a": [1], "x-stream-offset": 0}
    assert properties.headers == (old if name == OLD else new)
    assert properties.delivery_mode == (None if name == OLD else 1)
    assert properties.expiration == ("0500" if name == OLD else "500")


@BOTH
@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_x_stream_filter_is_ignored_until_3_10(name: str, kind: str) -> None:
    client = client_of(name).declare("q", durable=True, arguments={"x-queue-type": kind})
    client.fill("q", b"m", headers={"x-stream-filter-value": "a"}).qos(10)
    offset = {"x-stream-offset": "first"} if kind == "stream" else {}
    client.consume("q", arguments={"x-stream-filter": "b", **offset})
    assert client.bodies() == ([] if (name, kind) == (NEW, "stream") else [b"m"])


@BOTH
@rows(
    "method",
    m.BasicReject(delivery_tag=1, requeue=False),
    m.BasicReject(delivery_tag=1, requeue=True),
    m.BasicNack(delivery_tag=1),
)
def test_reject_and_nack_of_stream_deliveries_close_the_connection_until_3_10(name: str, method: Any) -> None:
    client = stream(name)
    client.delivery()
    if name == NEW:
        client.send(method).expect_nothing()
    else:
        text = "basic.nack and basic.reject not supported by stream queues queue 's' in vhost '/'"
        client.ends(method, 540, text=f"NOT_IMPLEMENTED - {text}")


# --- transactions ----------------------------------------------------------------------------------------
def lost(name: str) -> tuple[Client, Client]:
    """A client whose transaction publishes to a queue that another client has deleted since."""
    server = Server(name)
    client, other = server.client(), server.client()
    client.declare("q").perform(m.TxSelect()).publish(b"m", routing_key="q", mandatory=True)
    other.perform(m.QueueDelete(queue="q"))
    return client, other


@pytest.mark.needs("personality rabbitmq-3.10")
def test_commit_returns_mandatory_message_for_deleted_queue_until_3_10() -> None:
    client, _ = lost(OLD)
    assert client.send(m.TxCommit()).expect_content(m.BasicReturn).method.reply_code == 312
    client.expect(m.TxCommitOk)


@pytest.mark.needs("personality rabbitmq-3.10")
def test_commit_routes_to_recreated_queue_of_same_name_until_3_10() -> None:
    client, other = lost(OLD)
    other.declare("q")
    client.perform(m.TxCommit())
    assert other.count("q") == 1
    client.expect_nothing()
