"""Messages that cross from AMQP 0-9-1 to 0-10 and back, and the other way round."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.amqp_0_10.strategies import maps, records, unsigned
from compat_tests.unit.codec.strategies import short_texts, tables
from fakeamqp.model.messages.message import PlainProperties
from fakeamqp.protocols.amqp_0_9_1.codec import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ, encode_table
from fakeamqp.protocols.amqp_0_10.codec.structs import (
    DeliveryProperties,
    MessageProperties,
    ReplyTo,
    Xid,
    encode_header,
)
from fakeamqp.protocols.amqp_0_10.codec.types import CODES, MAX_DEPTH, Array, Map
from fakeamqp.protocols.amqp_0_10.properties import (
    EXPIRATION_HEADER,
    FILE,
    FILE_ENCODING,
    MESSAGE_ID_HEADER,
    STREAM,
    STREAM_ENCODING,
    TAGS,
    TRANSFER,
    TYPE_HEADER,
    ContentProperties,
    TransferProperties,
    carried,
    plain_headers,
    plain_value,
    reply_text,
    reply_to,
)
from fakeamqp.timestamps import Timestamp

ID = UUID("cbf34e70-07a2-4447-b2aa-a660a88ac96b")
NAMES = [name for name, _ in BasicProperties.LAYOUT if name != "cluster_id"]


def to_basic(properties: object) -> BasicProperties:
    """What a client of 0-9-1 gets of these properties, read from its bytes."""
    made = BasicProperties(**{name: getattr(properties, name) for name in NAMES})
    return BasicProperties.decode(made.encode(), 0, RABBITMQ)


def from_basic(**values: object) -> BasicProperties:
    """What a client of 0-9-1 has sent."""
    return BasicProperties.decode(BasicProperties(**values).encode(), 0, RABBITMQ)


def over_0_10(properties: object) -> TransferProperties:
    """The properties as a client of 0-10 gets them."""
    return TransferProperties.decode(TransferProperties.of(properties).encode())


# --- from 0-9-1 ----------------------------------------------------------------------------------------


def test_properties_of_0_9_1_become_fields_of_0_10() -> None:
    found = over_0_10(
        from_basic(
            content_type="text/plain",
            content_encoding="utf-8",
            headers={"n": 1},
            delivery_mode=2,
            priority=7,
            correlation_id="c",
            reply_to="amq.direct/rk",
            expiration="1000",
            message_id=str(ID),
            timestamp=1_600_000_000,
            user_id="guest",
            app_id="app",
        )
    )
    assert found.delivery == DeliveryProperties(
        priority=7, delivery_mode=2, ttl=1000, timestamp=1_600_000_000
    )
    assert found.message == MessageProperties(
        message_id=ID,
        correlation_id=b"c",
        reply_to=ReplyTo("amq.direct", "rk"),
        content_type="text/plain",
        content_encoding="utf-8",
        user_id=b"guest",
        app_id=b"app",
        application_headers={"n": 1},
    )
    assert found.fragment is None and found.others == ()


def test_properties_without_a_field_in_0_10_become_application_headers() -> None:
    found = over_0_10(from_basic(type="order", message_id="id-1", expiration="soon", headers={"n": 1}))
    assert found.delivery is None
    assert found.message is not None and found.message.message_id is None
    assert found.message.application_headers == {
        "n": 1,
        EXPIRATION_HEADER: "soon",
        MESSAGE_ID_HEADER: "id-1",
        TYPE_HEADER: "order",
    }
    assert (found.type, found.message_id, found.expiration) == ("order", "id-1", "soon")
    assert found.headers == {"n": 1}
    assert over_0_10(from_basic(type="order")).headers is None


@pytest.mark.parametrize(
    "text", [str(ID).upper(), f"{{{ID}}}", ID.hex, f"urn:uuid:{ID}", "", "x" * 36, "0" * 8 + "-"]
)
def test_message_id_without_canonical_uuid_form_stays_a_text(text: str) -> None:
    found = over_0_10(from_basic(message_id=text))
    assert found.message is not None and found.message.message_id is None
    assert found.message_id == text


@pytest.mark.parametrize("text", ["0", "1", str(2**64 - 1)])
def test_numeric_expiration_becomes_the_ttl(text: str) -> None:
    found = over_0_10(from_basic(expiration=text))
    assert found.delivery == DeliveryProperties(ttl=int(text)) and found.expiration == text


@pytest.mark.parametrize("text", ["", "01", "-1", "+1", " 1", "1.5", str(2**64), "²", "٣"])
def test_expiration_without_canonical_number_form_becomes_no_ttl(text: str) -> None:
    found = over_0_10(from_basic(expiration=text))
    assert found.delivery is None and found.expiration == text


@pytest.mark.parametrize(("mode", "carried"), [(0, 1), (1, 1), (2, 2), (3, 1), (255, 1)])
def test_every_delivery_mode_but_2_becomes_1(mode: int, carried: int) -> None:
    assert over_0_10(from_basic(delivery_mode=mode)).delivery_mode == carried


@pytest.mark.parametrize(("priority", "carried"), [(0, 0), (9, 9), (10, 9), (255, 9)])
def test_priority_above_9_becomes_9(priority: int, carried: int) -> None:
    assert over_0_10(from_basic(priority=priority)).priority == carried


#: value as 0-9-1 has it -> type of 0-10
TABLE_VALUES = [
    (True, "boolean"),
    (None, "void"),
    (1, "int32"),
    (2**40, "int64"),
    (1.5, "double"),
    (Decimal("1.5"), "dec32"),
    (Decimal(2**32 - 1), "dec64"),
    ("é", "str16"),
    ("x" * 70_000, "vbin32"),
    (b"\xff", "vbin32"),
    (Timestamp(7), "datetime"),
    ({"a": [1, {"b": None}]}, "map"),
    ([1, "x", [2]], "list"),
]


@pytest.mark.parametrize(("value", "name"), TABLE_VALUES)
def test_header_of_0_9_1_gets_the_nearest_type_of_0_10(value: object, name: str) -> None:
    found = over_0_10(from_basic(headers={"k": value}))
    assert found.message is not None
    octets = found.message.application_headers.octets
    assert octets[10] == CODES[name]
    expected = value.encode() if name == "vbin32" and isinstance(value, str) else value
    assert found.headers == {"k": expected}
    assert to_basic(found).headers == {"k": expected}


@pytest.mark.parametrize(
    ("tag", "octets", "name", "value"),
    [
        ("b", "80", "int8", -128),
        ("B", "ff", "uint8", 255),
        ("s", "8000", "int16", -32768),
        ("u", "ffff", "uint16", 65535),
        ("I", "80000000", "int32", -(2**31)),
        ("i", "ffffffff", "uint32", 2**32 - 1),
        ("L", "8000000000000000", "int64", -(2**63)),
        ("l", "0000000000000001", "int64", 1),
        ("f", "3fc00000", "float", 1.5),
        ("d", "3ff8000000000000", "double", 1.5),
        ("t", "01", "boolean", True),
        ("T", "0000000000000007", "datetime", 7),
    ],
)
def test_numeric_headers_of_0_9_1_keep_their_width_in_0_10(
    tag: str, octets: str, name: str, value: object
) -> None:
    entry = b"\x01k" + tag.encode() + bytes.fromhex(octets)
    raw = b"\x20\x00" + len(entry).to_bytes(4, "big") + entry
    found = over_0_10(BasicProperties.decode(raw, 0, RABBITMQ))
    assert found.message is not None
    assert found.message.application_headers.octets[10:] == bytes((CODES[name],)) + bytes.fromhex(octets)
    assert found.headers == {"k": value}
    if tag != "L":
        assert found.header_tag("k") == tag


def test_values_out_of_range_of_0_10_are_converted_or_cut() -> None:
    headers = {
        "n": 2**64,
        "m": -(2**63) - 1,
        "d": Decimal("NaN"),
        "big": Decimal(2**70),
        "then": datetime(2020, 1, 1, tzinfo=timezone.utc),
        "before": Timestamp(-1),
        "o": ID,
        "long": "é" * 40_000,
        "k" * 300: 1,
        "lone": "\ud800",
        "tuple": (1, 2),
    }
    properties = PlainProperties(
        headers=headers, reply_to="q" * 300, content_type="t" * 300, priority=-1, timestamp=-5
    )
    found = over_0_10(properties)
    assert found.headers is not None and len(found.headers) == len(headers)
    assert found.headers["n"] == str(2**64) and found.headers["m"] == str(-(2**63) - 1)
    assert found.headers["then"] == 1_577_836_800
    assert found.headers["k" * 255] == 1 and found.headers["tuple"] == [1, 2]
    assert (found.reply_to, found.content_type) == ("q" * 255, "t" * 255)
    assert (found.priority, found.timestamp) == (0, None)
    to_basic(found)


def test_nesting_deeper_than_0_10_allows_ends_in_void() -> None:
    value: object = "bottom"
    for _ in range(150):
        value = [value]
    found = over_0_10(from_basic(headers={"k": value}))
    depth = 0
    inner = found.headers["k"]
    while inner:
        inner, depth = inner[0], depth + 1
    assert inner is None and 90 < depth <= 100


# --- from 0-10 -----------------------------------------------------------------------------------------


def of_0_10(delivery: DeliveryProperties | None = None, **values: object) -> TransferProperties:
    header = b"" if delivery is None else delivery.encode()
    return TransferProperties.decode(header + MessageProperties(**values).encode())


def test_fields_of_0_10_become_properties_of_0_9_1() -> None:
    delivery = DeliveryProperties(priority=3, delivery_mode=1, ttl=5, timestamp=6, routing_key="k")
    found = to_basic(
        of_0_10(
            delivery,
            message_id=ID,
            correlation_id=b"\xff\0",
            reply_to=ReplyTo("e", "k"),
            content_type="t",
            user_id=b"u",
            app_id=b"a" * 300,
            application_headers={TYPE_HEADER: "order", "n": 1},
        )
    )
    assert found == from_basic(
        priority=3,
        delivery_mode=1,
        expiration="5",
        timestamp=6,
        message_id=str(ID),
        correlation_id="\udcff\0",
        reply_to="e/k",
        content_type="t",
        user_id="u",
        app_id="a" * 255,
        type="order",
        headers={"n": 1},
    )


def test_empty_properties_stay_empty_in_both_directions() -> None:
    empty = TransferProperties.decode(None)
    assert to_basic(empty) == BasicProperties()
    assert over_0_10(BasicProperties()) == empty
    assert empty.encode() == b"" == empty.rest_bytes


@pytest.mark.parametrize("value", [5, None, b"x", "x" * 256, "é" * 128])
def test_type_header_with_an_invalid_value_stays_a_header(value: object) -> None:
    found = of_0_10(application_headers={TYPE_HEADER: value})
    assert found.type is None and found.headers == {TYPE_HEADER: value}


def test_message_id_field_takes_precedence_over_the_message_id_header() -> None:
    found = of_0_10(message_id=ID, application_headers={MESSAGE_ID_HEADER: "other"})
    assert found.message_id == str(ID)
    assert found.headers == {MESSAGE_ID_HEADER: "other"}


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (ID, str(ID)),
        (2**63, str(2**63)),
        (2**63 - 1, 2**63 - 1),
        (Decimal(2**32), str(2**32)),
        (Decimal(-(2**31) - 1), str(-(2**31) - 1)),
        (Array.of("str16", ["a"]), ["a"]),
        (Xid(1, b"g", b"b"), Xid(1, b"g", b"b").encode()),
        ({"u": [ID]}, {"u": [str(ID)]}),
        (Timestamp(5), Timestamp(5)),
    ],
)
def test_header_value_unknown_to_0_9_1_becomes_the_nearest_known_value(value: object, plain: object) -> None:
    found = of_0_10(application_headers={"k": value})
    assert found.headers == {"k": plain} and type(found.headers["k"]) is type(plain)
    assert to_basic(found).headers == {"k": plain}
    assert plain_headers({"k": value}) == {"k": plain}


def test_header_text_with_a_lone_surrogate_is_carried_as_its_octets() -> None:
    fields = Map.of_entries([("k", "\ud800x", CODES["str16-utf16"])])
    found = of_0_10(application_headers=fields)
    assert to_basic(found).headers == {"k": b"\xed\xa0\x80x".decode("utf-8", "surrogateescape")}


@pytest.mark.parametrize("name", sorted(TAGS))
def test_every_type_of_0_10_has_a_field_tag_of_0_9_1(name: str) -> None:
    fields = Map.of_entries([("k", SAMPLES[name], CODES[name])])
    found = of_0_10(application_headers=fields)
    assert found.header_tag("k") == TAGS[name]
    assert found.header_tag("other") is None
    assert of_0_10().header_tag("k") is None
    assert set(SAMPLES) == set(TAGS) == set(CODES)
    encode_table(found.headers)


SAMPLES = {
    **{f"bin{8 * size}": bytes(size) for size in (1, 2, 4, 8, 16, 32, 64, 128, 5, 9)},
    **dict.fromkeys(("vbin8", "vbin16", "vbin32"), b"x"),
    **dict.fromkeys([f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)], 1),
    **dict.fromkeys(("str8", "str16", "str8-latin", "str16-latin", "str8-utf16", "str16-utf16"), "x"),
    **dict.fromkeys(("char", "char-utf32"), "x"),
    **dict.fromkeys(("float", "double"), 1.5),
    **dict.fromkeys(("dec32", "dec64"), Decimal(1)),
    **{"boolean": True, "bit": True, "void": None, "uuid": ID, "datetime": Timestamp(1)},
    **{"map": {"x": 1}, "list": [1], "array": [1], "struct32": Xid(1)},
}


# --- reply-to ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("queue", ReplyTo(None, "queue")),
        ("", ReplyTo(None, "")),
        ("amq.topic/a.b", ReplyTo("amq.topic", "a.b")),
        ("amq.topic/", ReplyTo("amq.topic", "")),
        ("amq.topic/a/b", ReplyTo("amq.topic", "a/b")),
        ("/a/b", ReplyTo(None, "a/b")),
        ("/a", ReplyTo(None, "/a")),
        ("//a/b", ReplyTo(None, "/a/b")),
        ("a%2Fb/c", ReplyTo("a/b", "c")),
        ("a%252Fb/c", ReplyTo("a%2Fb", "c")),
        ("100%/c", ReplyTo("100%", "c")),
        ("a%25/c", ReplyTo(None, "a%25/c")),
        ("amq.rabbitmq.reply-to.g2dk/AA.b==", ReplyTo(None, "amq.rabbitmq.reply-to.g2dk/AA.b==")),
    ],
)
def test_reply_to_address_and_its_text_are_converted_both_ways(text: str, address: ReplyTo) -> None:
    assert reply_to(text) == address
    assert reply_text(address) == text


def test_reply_to_without_an_exchange_is_written_as_its_routing_key() -> None:
    assert reply_text(ReplyTo("", "queue")) == reply_text(ReplyTo(None, "queue")) == "queue"
    assert reply_text(ReplyTo()) == reply_text(ReplyTo("", "")) == ""
    assert reply_text(ReplyTo("e")) == "e/"


PIECES = st.lists(st.sampled_from(["a", "b", "/", "/", "%", "%2F", "%25", "25", "2F"]), max_size=8).map(
    "".join
)


@examples(400)
@given(PIECES)
def test_any_reply_to_text_survives_conversion_to_an_address(text: str) -> None:
    assert reply_text(reply_to(text)) == text


@examples(400)
@given(PIECES, PIECES)
def test_any_reply_to_address_survives_conversion_to_a_text(exchange: str, key: str) -> None:
    found = reply_to(reply_text(ReplyTo(exchange, key)))
    assert (found.exchange or "", found.routing_key) == (exchange, key)


# --- there and back ------------------------------------------------------------------------------------

CARRIED = {TYPE_HEADER, MESSAGE_ID_HEADER, EXPIRATION_HEADER}


@st.composite
def basic_properties(draw):
    """What a client of 0-9-1 may send, but for what the page says does not come back."""
    texts = [
        "content_type",
        "content_encoding",
        "correlation_id",
        "reply_to",
        "message_id",
        "type",
        "user_id",
        "app_id",
    ]
    found = {name: draw(st.none() | short_texts()) for name in texts}
    found["message_id"] = draw(st.none() | short_texts() | st.uuids().map(str))
    found["expiration"] = draw(st.none() | short_texts() | unsigned(64).map(str))
    found["delivery_mode"] = draw(st.sampled_from([None, 1, 2]))
    found["priority"] = draw(st.none() | st.integers(0, 9))
    found["timestamp"] = draw(st.none() | unsigned(64))
    # An empty table that type, message-id or expiration share comes back as none.
    found["headers"] = draw(st.none() | tables().filter(lambda table: table and not CARRIED & set(table)))
    return found


@examples(120)
@given(basic_properties())
def test_properties_of_0_9_1_survive_conversion_to_0_10_and_back(values: dict) -> None:
    sent = from_basic(**values)
    assert to_basic(over_0_10(sent)) == sent


def unsigned_decimals(value):
    """RabbitMQ's grammar, by which the test reads, has no negative ones."""
    if isinstance(value, dict):
        return {name: unsigned_decimals(item) for name, item in value.items()}
    if isinstance(value, Array):
        return Array(map(unsigned_decimals, value), value.code)
    if isinstance(value, list):
        return [unsigned_decimals(item) for item in value]
    if isinstance(value, Decimal) and value < 0:
        # -n becomes n - 1: the lowest value of a width has no positive counterpart in it.
        return -value - Decimal((0, (1,), value.as_tuple().exponent))
    return value


@st.composite
def transfers(draw):
    """What a client of 0-10 may send, but for what the page says does not come back."""
    delivery = draw(records(DeliveryProperties))
    message = draw(records(MessageProperties))
    for name in ("correlation_id", "user_id", "app_id"):
        value = getattr(message, name)
        setattr(message, name, None if value is None else value[:255])
    if (
        message.reply_to is not None
        and len(reply_text(message.reply_to).encode("utf-8", "surrogateescape")) > 255
    ):
        message.reply_to = None
    if delivery.priority is not None:
        delivery.priority %= 10
    if message.application_headers is not None:
        message.application_headers = unsigned_decimals(draw(maps()))
    return TransferProperties.decode(delivery.encode() + message.encode())


@examples(120)
@given(transfers())
def test_properties_of_0_10_survive_conversion_to_0_9_1_and_back(sent: TransferProperties) -> None:
    basic = to_basic(sent)
    back = over_0_10(basic)
    assert to_basic(back) == basic
    assert back.delivery_mode == sent.delivery_mode and back.priority == sent.priority
    assert sent.delivery is not None and sent.message is not None
    if sent.delivery.ttl is not None:
        assert back.delivery is not None and back.delivery.ttl == sent.delivery.ttl
    message = back.message or MessageProperties()
    for name in ("message_id", "correlation_id", "content_type", "content_encoding", "user_id", "app_id"):
        assert getattr(message, name) == getattr(sent.message, name)
    if sent.message.reply_to is not None:
        address = message.reply_to
        assert (address.exchange or "") == (sent.message.reply_to.exchange or "")
        assert (address.routing_key or "") == (sent.message.reply_to.routing_key or "")
    if sent.headers is not None:
        assert back.headers == sent.headers


# --- file and stream -----------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", [FILE_ENCODING, STREAM_ENCODING])
def test_file_and_stream_contents_carry_the_properties_of_0_9_1(encoding: str) -> None:
    values = {
        "content_type": "t",
        "content_encoding": "n",
        "headers": {"n": 1},
        "priority": 200,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "5",
        "message_id": "m",
        "timestamp": 6,
        "type": "order",
        "user_id": "u",
        "app_id": "a",
    }
    sent = from_basic(**values)
    made = ContentProperties.of(encoding, sent)
    found = ContentProperties.decode(encoding, made.encode())
    assert {name: getattr(found, name) for name in values} == values
    assert to_basic(found) == sent.replace(delivery_mode=2 if encoding == FILE_ENCODING else None)
    over = over_0_10(found)
    assert over.priority == 9
    assert {name: getattr(over, name) for name in values} == {**values, "priority": 9}


def test_every_property_has_a_field_or_header_in_each_content_class() -> None:
    assert set(TRANSFER) == set(NAMES) - {"headers"}
    assert set(FILE) == set(STREAM) == set(TRANSFER) - {"delivery_mode"}
    for places in (TRANSFER, FILE, STREAM):
        headers = [place.header for place in places.values() if place.header]
        assert len(headers) == len(set(headers))
        assert all(place.field or place.header for place in places.values())


def test_empty_headers_table_becomes_an_empty_map() -> None:
    message = over_0_10(from_basic(headers={})).message
    assert message is not None and message.application_headers.octets == bytes.fromhex("0000000400000000")


@pytest.mark.parametrize("kind", ["map", "list"])
def test_value_nested_deeper_than_the_limit_is_cut_to_void(kind: str) -> None:
    nested: Any = "deepest"
    for _ in range(MAX_DEPTH):
        nested = {"k": nested} if kind == "map" else [nested]
    assert carried(nested) == nested
    cut = carried({"k": nested} if kind == "map" else [nested])
    for _ in range(MAX_DEPTH):
        cut = cut["k"] if kind == "map" else cut[0]
    assert cut is None


def test_header_added_with_with_headers_counts_as_one_nesting_level() -> None:
    properties = TransferProperties.decode(encode_header([MessageProperties()]))
    nested: Any = "deepest"
    for _ in range(MAX_DEPTH - 1):
        nested = [nested]
    assert properties.with_headers({"h": nested}).headers == {"h": nested}
    found = properties.with_headers({"h": [nested]}).headers
    assert found is not None
    cut: Any = found["h"]
    for _ in range(MAX_DEPTH - 1):
        cut = cut[0]
    assert cut is None


def test_timestamp_0_is_kept_and_timestamp_out_of_range_is_absent() -> None:
    for seconds in (0, 1, 2**64 - 1):
        assert over_0_10(BasicProperties(timestamp=Timestamp(seconds))).timestamp == seconds
    for seconds in (-1, 2**64):
        assert over_0_10(PlainProperties(timestamp=Timestamp(seconds))).timestamp is None


def test_properties_are_equal_only_to_properties() -> None:
    properties = TransferProperties.decode(encode_header([DeliveryProperties(priority=1)]))
    assert properties == TransferProperties.decode(encode_header([DeliveryProperties(priority=1)]))
    assert (properties == 1) is False


@pytest.mark.parametrize(
    ("value", "carried_as"),
    [
        (Decimal("1.5"), Decimal("1.5")),
        (Decimal("1E-255"), Decimal("1E-255")),
        (Decimal("1E-256"), "1E-256"),
        (Decimal("1E+1"), "1E+1"),
        (Decimal("NaN"), "NaN"),
        (Decimal(2**32 - 1), Decimal(2**32 - 1)),
        (Decimal(2**32), str(2**32)),
        (Decimal(-(2**31)), Decimal(-(2**31))),
        (Decimal(-(2**31) - 1), str(-(2**31) - 1)),
    ],
)
def test_decimal_out_of_range_of_0_9_1_becomes_a_text(value: Decimal, carried_as: object) -> None:
    assert plain_value(value) == carried_as
    assert type(plain_value(value)) is type(carried_as)
