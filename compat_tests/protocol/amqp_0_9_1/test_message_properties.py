from __future__ import annotations

import struct

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import short_string
from compat_tests.tools.matrix import rows
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

# Written by hand, as the documents order them: name, value, bytes.
PROPERTIES = [
    ("content_type", "text/plain", short_string("text/plain")),
    ("content_encoding", "gzip", short_string("gzip")),
    ("headers", {"k": 1}, b"\x00\x00\x00\x07\x01kI\x00\x00\x00\x01"),
    ("delivery_mode", 2, b"\x02"),
    ("priority", 7, b"\x07"),
    ("correlation_id", "c", short_string("c")),
    ("reply_to", "r", short_string("r")),
    ("expiration", "60000", short_string("60000")),
    ("message_id", "m", short_string("m")),
    ("timestamp", 1_700_000_000, struct.pack(">Q", 1_700_000_000)),
    ("type", "t", short_string("t")),
    ("user_id", "guest", short_string("guest")),
    ("app_id", "a", short_string("a")),
    ("cluster_id", "x", short_string("x")),
]


@pytest.mark.needs("inspection")
@pytest.mark.rule("0-9/basic/properties-order", "0-9/basic/property-cluster-id")
@pytest.mark.rule("0-9-1/basic/properties-order")
@pytest.mark.parametrize("position", range(14), ids=[name for name, _, _ in PROPERTIES])
def test_each_property_has_its_own_flag_counted_from_the_highest_bit(client: Client, position: int) -> None:
    name, value, octets = PROPERTIES[position]
    client.declare("q")
    client.publish_bytes(struct.pack(">H", 0x8000 >> position) + octets, b"body", routing_key="q")
    client.send(m.BasicGet(queue="q")).expect(m.BasicGetOk)
    assert client.take_frame().payload[12:] == struct.pack(">H", 0x8000 >> position) + octets
    client.take_frame()

    # And the broker reads it as what it is, not just as bytes.
    client.nack(1)
    message = next(iter(client.server.vhost.queues["q"].ready)).message
    assert getattr(message.properties, name) == value


@pytest.mark.rule("0-9-1/basic/properties-types")
def test_message_with_all_properties_is_delivered_with_unchanged_properties(client: Client) -> None:
    client.declare("q")
    octets = b"\xff\xfc" + b"".join(octets for _, _, octets in PROPERTIES)
    delivery = client.publish_bytes(octets, b"body", routing_key="q").consume("q").delivery()
    for name, value, _ in PROPERTIES:
        assert getattr(delivery.properties, name) == value
    assert delivery.properties.encode() == octets


@pytest.mark.rule("0-9-1/basic/properties-passed-through")
def test_application_properties_do_not_affect_delivery(client: Client) -> None:
    values = {
        "correlation_id": "q",
        "reply_to": "missing queue",
        "message_id": "1",
        "timestamp": 1,
        "type": "fanout",
        "app_id": "\x01\udcff any bytes",
    }
    client.declare("q")
    for _ in range(2):  # A second message with the same id is no duplicate.
        client.publish(b"body", routing_key="q", **values)
    for _ in range(2):
        got = client.fetch("q")
        assert {name: getattr(got.properties, name) for name in values} == values
    assert client.get("q") is None


@pytest.mark.rule("0-9-1/basic/property-reserved")
def test_message_with_cluster_id_is_delivered_unchanged(client: Client) -> None:
    got = client.declare("q").publish(b"body", routing_key="q", cluster_id="old cluster").fetch("q")
    assert (got.body, got.properties.cluster_id) == (b"body", "old cluster")


# --- expiration --------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic/property-expiration")
def test_spec_personality_does_not_interpret_expiration(spec: Server) -> None:
    client = spec.client().declare("q")
    for expiration in ("x", "1"):
        client.publish(b"body", routing_key="q", expiration=expiration)
    spec.advance(60)
    for expiration in ("x", "1"):
        assert client.fetch("q").properties.expiration == expiration


@pytest.mark.deviates("0-9-1/basic/property-expiration")
@rows(
    "expiration, problem",
    ("abc", "no_integer"),
    ("", "no_integer"),
    (" 5", "no_integer"),
    ("\u0665", "no_integer"),
    ("-1", "{value_negative,-1}"),
    ("1.5", '{leftover_string,".5"}'),
    ("5 ", '{leftover_string," "}'),
    ("0x10", '{leftover_string,"x10"}'),
    ("1e3", '{leftover_string,"e3"}'),
    ("315360000001", "{value_too_large,315360000001}"),
)
def test_rabbitmq_refuses_invalid_expiration(rabbitmq: Server, expiration: str, problem: str) -> None:
    client = rabbitmq.client().publish(routing_key="q", expiration=expiration)
    client.expect_channel_close(
        406, text=f"PRECONDITION_FAILED - invalid expiration '{expiration}': {problem}", at=(60, 40)
    )


@pytest.mark.deviates("0-9-1/basic/property-expiration")
@pytest.mark.parametrize("expiration", ["0", "+5", "4294967296", "315360000000"])
def test_rabbitmq_accepts_expiration_of_up_to_ten_years(rabbitmq: Server, expiration: str) -> None:
    client = rabbitmq.client()
    client.publish(routing_key="q", expiration=expiration).expect_nothing()
    client.declare("q")


# --- user-id -----------------------------------------------------------------------------------------
@pytest.mark.rule("0-9-1/basic/property-user-id")
def test_spec_personality_accepts_user_id_of_another_user(spec: Server) -> None:
    client = spec.client().declare("q").publish(b"body", routing_key="q", user_id="somebody else")
    assert client.fetch("q").properties.user_id == "somebody else"


@pytest.mark.deviates("0-9-1/basic/property-user-id")
@pytest.mark.parametrize("user_id", ["somebody", ""])
def test_rabbitmq_refuses_publish_with_user_id_of_another_user(rabbitmq: Server, user_id: str) -> None:
    client = rabbitmq.client().publish(routing_key="q", user_id=user_id)
    client.expect_channel_close(
        406,
        text=f"PRECONDITION_FAILED - user_id property set to '{user_id}' but authenticated user was 'guest'",
        at=(60, 40),
    )


# --- what RabbitMQ does not mind ---------------------------------------------------------------------
@pytest.mark.needs("restart", "inspection")
def test_message_with_unknown_delivery_mode_is_transient(rabbitmq: Server) -> None:
    client = rabbitmq.client().declare("q", durable=True)
    assert client.publish(b"odd", routing_key="q", delivery_mode=7).fetch("q").properties.delivery_mode == 7
    rabbitmq.restart()
    assert rabbitmq.client().count("q") == 0


FIELDS = [
    b"\x01tt\x01",
    b"\x01bb\xff",
    b"\x01ss\xfe\xd4",
    b"\x01ll" + struct.pack(">q", 5),
    b"\x01ff" + struct.pack(">f", 0.5),
    b"\x01DD\x02\xff\xff\xff\xff",
    b"\x01VV",
    b"\x01xx\x00\x00\x00\x02\x00\xff",
    b"\x01kI\x00\x00\x00\x01",
    b"\x01FF\x00\x00\x00\x0c" + b"\x01zt\x01" + b"\x01at\x01" + b"\x01at\x00",
]
TWICE = b"\x01kI\x00\x00\x00\x02"


def headers_only(*fields: bytes) -> bytes:
    """Property bytes with these headers."""
    table = b"".join(fields)
    return b"\x20\x00" + len(table).to_bytes(4, "big") + table


def delivered_bytes(client: Client, octets: bytes) -> bytes:
    """The property bytes with which a message comes that was published with these."""
    client.declare("q").publish_bytes(octets, b"body", routing_key="q")
    client.send(m.BasicGet(queue="q")).expect(m.BasicGetOk)
    return client.take_frame().payload[12:]


def test_header_fields_keep_types_and_under_spec_personality_their_order(server: Server) -> None:
    by_letter = server.state.personality.published_field_grammar
    fields = [field for field in FIELDS if not by_letter or field[2:3] not in b"sx"]
    came = delivered_bytes(server.client(), headers_only(*fields))
    sorts = server.state.personality.rewrites_headers
    assert came == headers_only(*(sorted(fields) if sorts else fields))


def test_spec_personality_keeps_duplicate_header_fields(spec: Server) -> None:
    octets = headers_only(FIELDS[8], TWICE)
    assert delivered_bytes(spec.client(), octets) == octets


@pytest.mark.needs("personality since rabbitmq-4.0")
@pytest.mark.parametrize("size", [0, 300])
def test_rabbitmq_delivers_only_the_first_of_duplicate_header_fields(rabbitmq: Server, size: int) -> None:
    # Measured on 4.0.5 and 4.3.6. Long properties are not remembered.
    longer = b"\x01zS" + size.to_bytes(4, "big") + bytes(size)
    client = rabbitmq.client()
    for _ in range(2):
        came = delivered_bytes(client, headers_only(longer, FIELDS[8], TWICE))
        client.take_frame()
        assert came == headers_only(FIELDS[8], longer)


@pytest.mark.needs("personality since rabbitmq-4.0")
def test_rabbitmq_delivers_int64_header_values_with_type_tag_l(rabbitmq: Server) -> None:
    # Measured on 4.0.5 and 4.3.6: also in tables and arrays.
    five = struct.pack(">q", 5)
    field = b"\x01LL" + five
    inner = b"A" + (9).to_bytes(4, "big") + b"L" + five
    nested = b"\x01nF" + (16).to_bytes(4, "big") + b"\x01L" + inner
    came = delivered_bytes(rabbitmq.client(), headers_only(field, nested))
    assert came == headers_only(b"\x01Ll" + five, nested.replace(b"L" + five, b"l" + five))
