from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Client, Server
from compat_tests.scripted.octets import (
    arguments,
    cut,
    field,
    long_string,
    queue_declare,
    short_string,
    table,
)
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m

rule = pytest.mark.rule
HEADERS_ONLY = b"\x20\x00"
"""Property flags of a message that has headers and nothing else."""


# --- integers ----------------------------------------------------------------------------------------------
@rule("0-9-1/types/integers-unsigned#unsigned", "0-9-1/types/integers-unsigned#big-endian")
@pytest.mark.parametrize("tag", [2**32, 2**63, 2**64 - 1])
def test_a_delivery_tag_is_unsigned(client: Client, tag: int) -> None:
    client.send_frame(1, 1, arguments(60, 80, tag.to_bytes(8, "big"), b"\0"))
    assert str(tag) in client.expect_channel_close(406).reply_text


@rule("0-9-1/types/integers-unsigned#unsigned", "0-9-1/types/integers-unsigned#big-endian")
@pytest.mark.parametrize("count", [1, 65535])
def test_a_prefetch_count_is_unsigned(client: Client, count: int) -> None:
    client.send_frame(1, 1, arguments(60, 10, b"\0\0\0\0", count.to_bytes(2, "big"), b"\0"))
    client.expect(m.BasicQosOk)
    client.declare("q")
    for _ in range(3):
        client.publish(routing_key="q")
    client.consume("q")
    for _ in range(min(count, 3)):
        client.delivery()
    client.expect_nothing()


@rule("0-9-1/types/integers-unsigned#unsigned")
@pytest.mark.parametrize("octet", [0, 255])
def test_an_octet_is_unsigned(client: Client, octet: int) -> None:
    client.declare("q")
    assert client.publish(routing_key="q", priority=octet).fetch("q").properties.priority == octet


# --- bits --------------------------------------------------------------------------------------------------
@pytest.mark.needs("restart", "inspection")
@rule("0-9-1/types/bits-packed")
def test_durable_is_the_second_bit_of_queue_declare(server: Server) -> None:
    client = server.client()
    client.send_frame(1, 1, queue_declare("q", 0x02)).expect(m.QueueDeclareOk)
    client.declare("q", durable=True)
    server.restart()
    server.client().declare("q", passive=True)


@rule("0-9-1/types/bits-packed")
def test_no_wait_is_the_fifth_bit_of_queue_declare(client: Client) -> None:
    client.send_frame(1, 1, queue_declare("q", 0x10)).expect_nothing()
    assert client.count("q") == 0


@rule("0-9-1/types/bits-packed")
def test_redelivered_is_the_lowest_bit_of_get_ok(client: Client) -> None:
    client.declare("q").publish(routing_key="q").get("q")
    client.recover().send(m.BasicGet(queue="q"))
    get_ok = cut(client.take_bytes())[0].payload
    assert get_ok[4:13] == (2).to_bytes(8, "big") + b"\x01"


@rule("0-9-1/types/bits-break#other-type")
def test_a_table_after_four_bits_starts_on_its_own_octet(client: Client) -> None:
    client.declare("q").publish(routing_key="q")
    consume = arguments(60, 20, b"\0\0", short_string("q"), short_string("tag"), b"\x02", b"\0\0\0\0")
    assert client.send_frame(1, 1, consume).expect(m.BasicConsumeOk).consumer_tag == "tag"
    client.delivery()
    assert client.close_channel().open_channel().count("q") == 0, "no-ack was set"


@rule("0-9-1/types/bits-break#other-type")
def test_a_single_bit_is_an_octet(client: Client) -> None:
    client.send_frame(1, 1, arguments(20, 20, b"\x01"))
    [flow_ok] = cut(client.take_bytes())
    assert flow_ok.payload == bytes.fromhex("00140015 01")


# --- strings, timestamps -----------------------------------------------------------------------------------
@rule("0-9/types/max-shortstr", "0-9-1/types/integers-unsigned#lengths", "0-9-1/types/shortstr#length")
@rule("0-9-1/types/shortstr#utf-8")
@pytest.mark.parametrize("text", ["", "x" * 255, "ж" * 100, "\U0001f407" * 50])
def test_a_short_string_holds_up_to_255_octets_of_utf_8(client: Client, text: str) -> None:
    client.declare("q")
    assert client.publish(routing_key="q", message_id=text).fetch("q").properties.message_id == text


@rule("0-9-1/types/shortstr#utf-8")
def test_a_queue_name_may_have_200_octets_of_utf_8(rabbitmq: Server) -> None:
    assert rabbitmq.client().declare_ok("ж" * 100).queue == "ж" * 100


@rule("0-9-1/types/shortstr-no-nul")
def test_spec_personality_closes_connection_with_502_at_zero_octet_in_short_string(spec: Server) -> None:
    spec.client().send_frame(1, 1, queue_declare(b"a\0b")).expect_connection_close(502, at=(50, 10))


@pytest.mark.deviates("0-9-1/types/shortstr-no-nul")
def test_rabbitmq_accepts_zero_octet_in_short_string(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    assert client.send_frame(1, 1, queue_declare(b"a\0b")).expect(m.QueueDeclareOk).queue == "a\0b"


@pytest.mark.needs("inspection")
@rule("0-9-1/types/longstr")
def test_a_long_string_holds_any_octets(server: Server) -> None:
    octets = bytes(range(256)) * 10
    client = server.started()
    properties = table(field("binary", b"S" + long_string(octets)))
    response = long_string(b"\0guest\0guest")
    client.send_frame(
        1, 0, arguments(10, 11, properties, short_string("PLAIN"), response, short_string("en_US"))
    )
    client.expect(m.ConnectionTune, 0)
    [connection] = server.state.connections
    kept = connection.client_properties["binary"]
    assert kept.encode("utf-8", "surrogateescape") == octets


@rule("0-9-1/types/timestamp")
@pytest.mark.parametrize("seconds", [0, 2**40, 2**64 - 1])
def test_a_timestamp_has_64_bits_of_seconds(client: Client, seconds: int) -> None:
    client.declare("q").publish_bytes(b"\x00\x40" + seconds.to_bytes(8, "big"), routing_key="q")
    assert client.fetch("q").properties.timestamp == seconds


# --- tables ------------------------------------------------------------------------------------------------
def passed_on(client: Client, headers: bytes) -> bytes:
    """The headers table of a message, as published and as delivered."""
    client.declare("q").publish_bytes(HEADERS_ONLY + headers, routing_key="q").expect_nothing()
    client.send(m.BasicGet(queue="q", no_ack=True))
    header = cut(client.take_bytes())[1].payload
    assert header[12:14] == HEADERS_ONLY
    return header[14:]


MIXED = table(
    field("bool", b"t\x01"),
    field("int", b"I\xff\xff\xff\xfe"),
    field("list", b"A" + long_string(b"b\x01" + b"S" + long_string(b"x"))),
    field("nested", b"F" + table(field("void", b"V"))),
    field("text", b"S" + long_string(b"a\0b")),
)


@rule("0-9-1/types/table-encoding")
def test_mixed_headers_table_is_delivered_byte_for_byte(client: Client) -> None:
    assert passed_on(client, MIXED) == MIXED


@rule("0-9-1/types/table-encoding")
def test_table_length_that_includes_itself_closes_connection_with_501(client: Client) -> None:
    wrong = (len(MIXED)).to_bytes(4, "big") + MIXED[4:]
    client.send_frame(1, 1, queue_declare("q", fields=wrong)).expect_connection_close(501)


@rule("0-9-1/types/table-encoding")
def test_table_length_of_server_properties_excludes_the_length_field(server: Server) -> None:
    client = server.connect()
    client.send_bytes(client.protocol_header)
    payload = cut(client.take_bytes())[0].payload
    length = int.from_bytes(payload[6:10], "big")
    behind = payload[10 + length :]
    mechanisms = int.from_bytes(behind[:4], "big")
    assert behind[4 + mechanisms :] == long_string(b"en_US")


@rule("0-9-1/types/table-empty")
def test_an_empty_table_is_four_zero_octets(client: Client) -> None:
    client.send_frame(1, 1, queue_declare("q", fields=b"\0\0\0\0")).expect(m.QueueDeclareOk)
    client.declare("q", arguments={})
    assert passed_on(client, b"\0\0\0\0") == b"\0\0\0\0"


@rule("0-9-1/types/table-nested")
@pytest.mark.parametrize("depth", [10, 100])
def test_headers_tables_nested_100_levels_deep_are_delivered_unchanged(client: Client, depth: int) -> None:
    nested = table(field("bottom", b"t\x01"))
    for _ in range(depth):
        nested = table(field("a", b"F" + nested))
    assert passed_on(client, nested) == nested


def test_tables_nested_10_000_levels_deep_are_accepted(server: Server) -> None:
    client = server.client()
    nested = table()
    for _ in range(10_000):
        nested = table(field("a", b"F" + nested))
    client.send_frame(1, 1, queue_declare("q", fields=nested)).expect(m.QueueDeclareOk)


GOOD_NAMES = ["a", "Z", "$a", "#a", "a1", "a_b", "x-match", "a$#", "a" * 128]
BAD_NAMES = ["", "1abc", "_a", "-a", "a b", "é", "a" * 129]


@rule("0-9-1/types/table-name-syntax#first", "0-9-1/types/table-name-syntax#following")
@rule("0-9-1/types/table-name-syntax#length")
@pytest.mark.parametrize("name", GOOD_NAMES)
def test_valid_field_names_are_accepted(client: Client, name: str) -> None:
    headers = table(field(name, b"V"))
    assert passed_on(client, headers) == headers


@rule("0-9-1/types/table-name-syntax#first", "0-9-1/types/table-name-syntax#following")
@rule("0-9-1/types/table-name-syntax#length")
@pytest.mark.parametrize("name", BAD_NAMES)
def test_spec_personality_closes_connection_with_503_at_invalid_field_name(spec: Server, name: str) -> None:
    client = spec.client().publish_bytes(HEADERS_ONLY + table(field(name, b"V")), routing_key="q")
    client.expect_connection_close(503)


@pytest.mark.deviates("0-9-1/types/table-name-syntax#first", "0-9-1/types/table-name-syntax#following")
@pytest.mark.deviates("0-9-1/types/table-name-syntax#length")
@pytest.mark.parametrize("name", BAD_NAMES)
def test_rabbitmq_accepts_invalid_field_names(rabbitmq: Server, name: str) -> None:
    headers = table(field(name, b"V"))
    assert passed_on(rabbitmq.client(), headers) == headers


NINE_X = queue_declare("q", fields=table(field("9x", b"t\x01")))


@rule("0-9-1/types/table-name-validation")
def test_spec_personality_closes_connection_with_503_at_argument_with_invalid_name(spec: Server) -> None:
    spec.client().send_frame(1, 1, NINE_X).expect_connection_close(503, at=(50, 10))


@pytest.mark.deviates("0-9-1/types/table-name-validation")
def test_rabbitmq_accepts_argument_with_invalid_name(rabbitmq: Server) -> None:
    rabbitmq.client().send_frame(1, 1, NINE_X).expect(m.QueueDeclareOk)


@rule("0-9-1/types/table-duplicates")
def test_table_with_two_fields_of_one_name_is_accepted(client: Client) -> None:
    twice = table(field("a", b"I\0\0\0\x01"), field("a", b"I\0\0\0\x02"))
    client.send_frame(1, 1, queue_declare("twice", fields=twice)).expect(m.QueueDeclareOk)
    rewrites = client.server.state.personality.rewrites_headers
    assert passed_on(client, twice) == (table(field("a", b"I\0\0\0\x01")) if rewrites else twice)


# --- field values ------------------------------------------------------------------------------------------
def routed(client: Client, value: bytes, wanted: bytes) -> bool:
    """Whether a message whose header is `value` reaches a queue bound for `wanted`: the broker read both."""
    queue = client.declare_ok(exclusive=True).queue
    binding = table(field("x-match", b"S" + long_string(b"all")), field("h", wanted))
    bind = arguments(
        50, 20, b"\0\0", short_string(queue), short_string("amq.match"), short_string(""), b"\0", binding
    )
    client.send_frame(1, 1, bind).expect(m.QueueBindOk)
    client.publish_bytes(HEADERS_ONLY + table(field("h", value)), exchange="amq.match")
    return client.get(queue, no_ack=True) is not None


def test_headers_exchange_matches_first_or_last_of_equal_names_by_personality(server: Server) -> None:
    client = server.client()
    last = server.state.personality.matches_last_header
    for number, fits in ((1, not last), (2, last)):
        queue = client.declare_ok(exclusive=True).queue
        client.bind(queue, "amq.match", arguments={"x-match": "all", "h": number})
        twice = table(field("h", b"I\0\0\0\x01"), field("g", b"t\1"), field("h", b"I\0\0\0\x02"))
        client.publish_bytes(HEADERS_ONLY + twice, exchange="amq.match")
        assert (client.get(queue, no_ack=True) is not None) is fits


def text(octets: bytes) -> bytes:
    return b"S" + long_string(octets)


def kind(id_: str, name: str, value: bytes, same: bytes, other: bytes) -> Any:
    """A value, the same otherwise written (or the same), and another value."""
    return pytest.param(value, same, other, marks=rule(f"0-9-1/types/value-{name}"), id=id_)


BIG = b"L\0\0\0\0\xff\xff\xff\xff"
DOUBLES = bytes.fromhex("64 3fb999999999999a"), bytes.fromhex("64 3fb999999999999b")
ARRAY, SHORT_ARRAY = b"A" + long_string(b"b\x01V" + text(b"x")), b"A" + long_string(b"b\x01V")
TABLE, OTHER_TABLE = b"F" + table(field("a", b"b\x01")), b"F" + table(field("a", b"b\x02"))
VALUES = [
    kind("t-true", "boolean#other", b"t\x01", b"t\x80", b"t\x00"),
    kind("t-false", "boolean#zero", b"t\x00", b"t\x00", b"t\x01"),
    kind("b", "int8", b"b\x80", b"I\xff\xff\xff\x80", b"I\0\0\0\x80"),
    kind("B", "uint8", b"B\xff", b"I\0\0\0\xff", b"b\xff"),
    kind("u", "uint16", b"u\xff\xff", b"I\0\0\xff\xff", b"b\xff"),
    kind("I", "int32", b"I\xff\xff\xff\xff", b"b\xff", BIG),
    kind("i", "uint32", b"i\xff\xff\xff\xff", BIG, b"b\xff"),
    kind("L", "int64", b"L" + b"\xff" * 8, b"b\xff", b"L\x7f" + b"\xff" * 7),
    kind("f", "float", b"f\x3f\xc0\0\0", b"d\x3f\xf8\0\0\0\0\0\0", b"f\x3f\xc0\0\x01"),
    kind("d", "double", DOUBLES[0], *DOUBLES),
    kind("D", "decimal", b"D\x02\0\0\x30\x39", b"D\x02\0\0\x30\x39", b"D\x03\0\0\x30\x39"),
    kind("S", "longstr", text(b"a\0\xff"), text(b"a\0\xff"), text(b"a\0\xfe")),
    kind("A", "array", ARRAY, ARRAY, SHORT_ARRAY),
    kind("T", "timestamp", b"T" + bytes(8), b"T" + bytes(8), b"T\0\0\x01\0\0\0\0\0"),
    kind("F", "table", TABLE, TABLE, OTHER_TABLE),
]


@pytest.mark.parametrize(("value", "same", "other"), VALUES)
def test_field_value_is_compared_by_its_type_and_delivered_unchanged(
    client: Client, value: bytes, same: bytes, other: bytes
) -> None:
    rewrites = client.server.state.personality.rewrites_headers
    came = b"l" + value[1:] if rewrites and value[:1] == b"L" else value
    assert passed_on(client, table(field("h", value))) == table(field("h", came))
    assert routed(client, value, same)
    assert not routed(client, value, other)


MINUS_TWO = b"b\xfe"


@rule("0-9-1/types/value-int16")
def test_type_tag_u_upper_is_an_int16_in_spec_personality(spec: Server) -> None:
    client = spec.client()
    headers = table(field("h", b"U\xff\xfe"))
    assert passed_on(client, headers) == headers
    assert routed(client, b"U\xff\xfe", MINUS_TWO)
    assert not routed(client, b"U\x00\xfe", MINUS_TWO)


@pytest.mark.deviates("0-9-1/types/value-int16")
def test_rabbitmq_reads_type_tag_s_as_int16_and_refuses_u_upper(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    headers = table(field("h", b"s\xff\xfe"))
    assert passed_on(client, headers) == headers
    assert routed(client, b"s\xff\xfe", MINUS_TWO)
    client.publish_bytes(HEADERS_ONLY + table(field("h", b"U\xff\xfe")), routing_key="q")
    client.expect_connection_close(541)


@rule("0-9-1/types/value-shortstr")
def test_type_tag_s_is_a_short_string_in_spec_personality(spec: Server) -> None:
    client = spec.client()
    headers = table(field("h", b"s\x03abc"))
    assert passed_on(client, headers) == headers
    assert routed(client, b"s\x03abc", text(b"abc"))
    assert not routed(client, b"s\x03abc", text(b"abd"))


@pytest.mark.deviates("0-9-1/types/value-shortstr")
def test_rabbitmq_reads_no_short_strings_in_tables(rabbitmq: Server) -> None:
    client = rabbitmq.client().publish_bytes(HEADERS_ONLY + table(field("h", b"s\x03abc")), routing_key="q")
    client.expect_connection_close(541)  # an int16, and bytes too many


MANY_ONES = b"l" + b"\xff" * 8


@rule("0-9-1/types/value-uint64")
def test_type_tag_l_is_unsigned_in_spec_personality(spec: Server) -> None:
    client = spec.client()
    headers = table(field("h", MANY_ONES))
    assert passed_on(client, headers) == headers
    assert routed(client, MANY_ONES, MANY_ONES)
    assert not routed(client, MANY_ONES, b"b\xff")
    assert routed(client, b"l\0\0\0\0\xff\xff\xff\xff", b"i\xff\xff\xff\xff")


@pytest.mark.deviates("0-9-1/types/value-uint64")
def test_rabbitmq_reads_type_tag_l_as_signed(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    headers = table(field("h", MANY_ONES))
    assert passed_on(client, headers) == headers
    assert routed(client, MANY_ONES, b"b\xff")


@pytest.mark.deviates("0-9-1/types/value-decimal")
@rule("0-9-1/types/value-decimal")
def test_negative_decimal_is_delivered_unchanged_and_signed_only_in_spec_personality(server: Server) -> None:
    headers = table(field("h", b"D\x02\xff\xff\xcf\xc7"))
    came = passed_on(server.client(), headers)
    assert came == headers
    fields, _ = server.connect().grammar.decode(came, 0, len(came))
    assert fields["h"] == Decimal("-123.45" if server.is_spec else "42949549.51")


@rule("0-9-1/types/value-void")
def test_void_header_is_delivered_and_matched_as_void(client: Client) -> None:
    headers = table(field("before", b"t\x01"), field("h", b"V"), field("then", b"t\x01"))
    assert passed_on(client, headers) == headers
    assert routed(client, b"V", b"V")


@pytest.mark.deviates("0-9-1/types/value-unknown")
@rule("0-9-1/types/value-unknown")
@pytest.mark.parametrize("tag", [b"z", b"\0", b"\xff"])
def test_undefined_type_tag_in_headers_closes_the_connection(server: Server, tag: bytes) -> None:
    client = server.client().declare("q")
    client.publish_bytes(HEADERS_ONLY + table(field("h", tag + bytes(8))), routing_key="q")
    close = client.expect_connection_close(502 if client.explained_to else 541)
    assert (close.class_id, close.method_id) == ((60, 40) if client.explained_to else (0, 0))
    assert server.client().count("q") == 0


@rule("0-9-1/types/value-unknown")
def test_byte_array_in_headers_is_accepted_by_rabbitmq_and_refused_by_spec_personality(
    spec: Server, rabbitmq: Server
) -> None:
    headers = table(field("h", b"x" + long_string(b"\0\xff")))
    assert passed_on(rabbitmq.client(), headers) == headers
    client = spec.client()
    client.publish_bytes(HEADERS_ONLY + headers, routing_key="q").expect_connection_close(502)


# --- contents ----------------------------------------------------------------------------------------------
def announce(client: Client, size: int) -> None:
    client.send(m.BasicPublish(routing_key="q"))
    client.send_frame(2, 1, arguments(60, 0, size.to_bytes(8, "big"), b"\0\0"))


@rule("0-9-1/types/max-content-size")
@pytest.mark.parametrize("size", [2**40, 2**63 - 1, 2**63, 2**64 - 1])
def test_spec_personality_accepts_content_header_of_any_64_bit_size(spec: Server, size: int) -> None:
    client = spec.client(channels=2)
    announce(client, size)
    client.send_frame(3, 1, b"the first octets of many").expect_nothing()
    client.declare("another-channel", channel=2)


@pytest.mark.needs("personality rabbitmq-4.3")
@pytest.mark.deviates("0-9-1/types/max-content-size")
def test_rabbitmq_closes_connection_with_501_at_content_header_of_more_than_512_mib(rabbitmq: Server) -> None:
    client = rabbitmq.client()
    announce(client, 512 * 1024 * 1024)
    client.expect_nothing()
    client = rabbitmq.client()
    announce(client, 512 * 1024 * 1024 + 1)
    client.expect_connection_close(
        501,
        text="FRAME_ERROR - content body size 536870913 exceeds maximum allowed size 536870912",
        at=(60, 40),
    )
