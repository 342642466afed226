"""Content properties: flags and values, continued flags, and headers that keep their bytes."""

from __future__ import annotations

import copy
import dataclasses
import re
import struct

import pytest
from hypothesis import given, strategies as st

from compat_tests.unit.codec.strategies import properties, scalars, tables
from fakeamqp.protocols.amqp_0_9_1.codec import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import (
    PUBLISHED,
    RABBITMQ,
    REMOVED,
    Grammar,
    edit_table,
    encode_table,
)
from fakeamqp.protocols.base.codec import FieldError, FieldNameError, FrameError, WireError

rule = pytest.mark.rule
both = pytest.mark.protocols("0-9-1", "0-9")

ONE_EACH = [
    ("content_type", "a/b", 0x8000, b"\x03a/b"),
    ("content_encoding", "gzip", 0x4000, b"\x04gzip"),
    ("headers", {"a": True}, 0x2000, b"\x00\x00\x00\x04\x01at\x01"),
    ("delivery_mode", 2, 0x1000, b"\x02"),
    ("priority", 255, 0x0800, b"\xff"),
    ("correlation_id", "c", 0x0400, b"\x01c"),
    ("reply_to", "r", 0x0200, b"\x01r"),
    ("expiration", "1000", 0x0100, b"\x041000"),
    ("message_id", "m", 0x0080, b"\x01m"),
    ("timestamp", 2**40, 0x0040, b"\x00\x00\x01\x00\x00\x00\x00\x00"),
    ("type", "t", 0x0020, b"\x01t"),
    ("user_id", "u", 0x0010, b"\x01u"),
    ("app_id", "x", 0x0008, b"\x01x"),
    ("cluster_id", "", 0x0004, b"\x00"),
]
ALL = BasicProperties(**{name: value for name, value, _, _ in ONE_EACH})
#: Headers with tags that writing would not choose, a doubled name, and a name only RabbitMQ takes
ODD_FIELDS = b"\x01ab\xff\x01bB\x01\x01au\x00\x02\x07x-deathi\x00\x00\x00\x07"
ODD = b"\x20\x00" + struct.pack(">I", len(ODD_FIELDS)) + ODD_FIELDS


def read(octets: bytes, grammar: Grammar = RABBITMQ) -> BasicProperties:
    return BasicProperties.decode(octets, 0, grammar)


@rule("0-9-1/basic/properties-order")
@rule("0-9-1/basic/properties-types")
@both
@rule("0-9-1/content/flags-order")
@pytest.mark.parametrize("grammar", [RABBITMQ, PUBLISHED], ids=repr)
@pytest.mark.parametrize(("name", "value", "flag", "octets"), ONE_EACH, ids=[row[0] for row in ONE_EACH])
def test_each_property_alone_has_its_flag_and_octets(
    name: str, value: object, flag: int, octets: bytes, grammar: Grammar
) -> None:
    one = BasicProperties(**{name: value})
    assert one.encode() == struct.pack(">H", flag) + octets
    assert read(one.encode(), grammar) == one


@both
@rule("0-9-1/content/values-in-order#order")
@rule("0-9-1/basic/properties-types")
def test_all_properties_together_are_encoded_in_order() -> None:
    assert ALL.encode() == b"\xff\xfc" + b"".join(octets for _, _, _, octets in ONE_EACH)
    assert read(ALL.encode()) == ALL


@both
@rule("0-9-1/content/values-in-order#flagged", "0-9-1/content/values-in-order#order")
def test_only_flagged_values_are_present_and_in_order() -> None:
    assert BasicProperties(message_id="m", priority=1).encode() == b"\x08\x80\x01\x01m"


@rule("0-9-1/basic/property-reserved")
def test_the_reserved_property_is_read_like_any_other() -> None:
    assert read(b"\x00\x04\x03abc").cluster_id == "abc"


def test_empty_properties_and_empty_headers_have_known_octets() -> None:
    assert BasicProperties().encode() == bytes(2)
    assert read(bytes(2)) == BasicProperties()
    assert BasicProperties(headers={}).encode() == b"\x20\x00" + bytes(4)
    assert read(b"\x20\x00" + bytes(4)).headers == {}


@rule("0-9-1/content/header-layout")
def test_properties_start_behind_class_weight_and_size_of_a_content_header() -> None:
    payload = struct.pack(">HHQ", 60, 0, 5) + ALL.encode()
    assert BasicProperties.decode(payload, 12, RABBITMQ) == ALL


@given(properties())
def test_any_properties_survive_encoding_and_decoding(value: Properties) -> None:
    octets = value.encode()
    decoded = type(value).decode(octets, 0, RABBITMQ)
    assert decoded == value
    assert decoded.encode() == octets


@rule("0-9-1/content/flags-continuation")
@pytest.mark.parametrize("words", [b"\x00\x00", b"\x00\x01\x00\x00", b"\x00\x01" * 9 + b"\x00\x00"])
def test_further_flag_words_without_flags_are_skipped(words: bytes) -> None:
    value = BasicProperties(content_type="a/b", app_id="x")
    flags = struct.pack(">H", 0x8008 | 1)
    assert read(flags + words + b"\x03a/b\x01x") == value
    assert read(b"\x00\x01" + words) == BasicProperties()
    for cut in range(len(words)):
        with pytest.raises(FrameError, match="basic properties"):
            read(flags + words[:cut])


@pytest.mark.parametrize("flags", ["0002", "8002", "00010002", "00018000", "000100010100", "ffff0000"])
def test_a_flag_without_a_property_is_a_syntax_error(flags: str) -> None:
    with pytest.raises(FieldError, match=r"^basic properties: .*does not exist"):
        read(bytes.fromhex(flags) + bytes(20))


def test_properties_cut_at_any_octet_are_a_frame_error() -> None:
    octets = ALL.encode()
    for cut in range(len(octets)):
        with pytest.raises(FrameError, match=r"^basic properties") as caught:
            read(octets[:cut])
        if cut >= 2:
            name = next(n for n, _, _, _ in ONE_EACH if cut < value_end(n))
            assert str(caught.value).startswith(f"basic properties, field {name}: ")


def value_end(name: str) -> int:
    """Where the value of a property ends in the bytes of ALL."""
    end = 2
    for other, _, _, octets in ONE_EACH:
        end += len(octets)
        if other == name:
            return end
    raise AssertionError(name)


def test_octets_left_over_are_a_frame_error() -> None:
    for value in (BasicProperties(), ALL):
        with pytest.raises(FrameError, match=r"^basic properties: 1 bytes are left over"):
            read(value.encode() + b"\0")


@given(st.binary(max_size=100), st.sampled_from([RABBITMQ, PUBLISHED]))
def test_random_octets_give_properties_or_a_wire_error(octets: bytes, grammar: Grammar) -> None:
    try:
        value = read(octets, grammar)
    except WireError as error:
        assert str(error).startswith("basic properties")
    else:
        assert read(value.encode(), grammar.unchecked) == value


@given(properties(), st.data(), st.sampled_from([RABBITMQ, PUBLISHED]))
def test_damaged_octets_give_properties_or_a_wire_error(
    value: Properties, data: st.DataObject, grammar: Grammar
) -> None:
    octets = bytearray(value.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    try:
        type(value).decode(bytes(octets), 0, grammar)
    except WireError as error:
        assert str(error).startswith(value.NAME)


@both
@rule("0-9-1/types/shortstr-no-nul")
def test_the_published_grammar_refuses_zero_octets_and_bad_names() -> None:
    octets = BasicProperties(app_id="a\0").encode()
    assert read(octets).app_id == "a\0"
    with pytest.raises(FieldError, match=r"^basic properties, field app_id: .*zero byte"):
        read(octets, PUBLISHED)
    with pytest.raises(FieldNameError, match=r"^basic properties, field headers: .*x\.death"):
        read(BasicProperties(headers={"x.death": 1}).encode(), PUBLISHED)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content_type", "x" * 256),
        ("content_type", b"raw"),
        ("app_id", "\ud800"),
        ("headers", {"k": 2**64}),
        ("headers", {"k": object()}),
        ("headers", 5),
        ("delivery_mode", 256),
        ("priority", -1),
        ("priority", "1"),
        ("timestamp", -1),
        ("timestamp", 2**64),
    ],
)
def test_invalid_property_value_is_a_field_error_with_its_name(name: str, value: object) -> None:
    with pytest.raises(FieldError, match=rf"^basic properties, field {name}: "):
        BasicProperties(**{name: value}).encode()


def test_unchanged_headers_are_written_back_with_their_received_octets() -> None:
    value = read(ODD)
    assert value.headers == {"a": -1, "b": 1, "x-death": 7}
    assert value.encode() == ODD
    assert copy.copy(value).encode() == ODD
    assert dataclasses.replace(value, priority=1).encode() == b"\x28\x00" + ODD[2:] + b"\x01"


@pytest.mark.parametrize("change", [{"a": True}, {"a": -1.0}, {"new": 1}, {"b": True}, {"a": [1]}])
def test_changed_headers_are_encoded_again(change: dict) -> None:
    changed = read(ODD)
    changed.headers.update(change)
    expected = {"a": -1, "b": 1, "x-death": 7, **change}
    assert changed.encode() == b"\x20\x00" + encode_table(expected)
    replaced = dataclasses.replace(read(ODD), headers=expected)
    assert replaced.encode() == b"\x20\x00" + encode_table(expected)
    removed = dataclasses.replace(read(ODD), headers=None)
    assert removed.encode() == bytes(2)


def test_header_tag_returns_the_received_tag_of_an_unchanged_header() -> None:
    value = read(ODD)
    tags = [value.header_tag(name) for name in ("a", "b", "x-death", "missing")]
    assert tags == ["b", "B", "i", None], "of two fields with one name the first counts"
    value.headers["a"] = "changed"
    assert value.header_tag("a") is None
    assert BasicProperties(headers={"a": 1}).header_tag("a") is None
    assert BasicProperties().header_tag("a") is None


def test_with_headers_edits_a_copy_and_keeps_other_octets() -> None:
    value = read(ODD)
    edited = value.with_headers({"b": REMOVED, "c": "new"})
    assert edited.encode() == b"\x20\x00" + edit_table(ODD[2:], {"b": REMOVED, "c": "new"})
    assert b"\x01au\x00\x02" in edited.encode()
    assert edited.headers == {"a": -1, "x-death": 7, "c": "new"}
    assert value.headers == {"a": -1, "b": 1, "x-death": 7}
    assert value.encode() == ODD
    assert edited.with_headers({"c": REMOVED}).headers == {"a": -1, "x-death": 7}


def test_with_headers_removes_the_named_headers() -> None:
    edited = read(ODD).with_headers({"c": "new"}, ("b", "missing"))
    assert edited.headers == {"a": -1, "x-death": 7, "c": "new"}


def test_with_headers_keeps_earlier_changes_of_the_headers() -> None:
    value = read(ODD)
    value.headers["a"] = "changed"
    edited = value.with_headers({"d": 1})
    assert edited.headers == {"a": "changed", "b": 1, "x-death": 7, "d": 1}
    assert read(edited.encode()) == edited


def test_with_headers_creates_headers_where_properties_have_no_headers() -> None:
    assert BasicProperties().with_headers({"a": 1}) == BasicProperties(headers={"a": 1})
    assert BasicProperties(priority=1).with_headers({"a": REMOVED}) == BasicProperties(priority=1)
    assert BasicProperties(headers={"a": 1}).with_headers({"a": REMOVED}) == BasicProperties(headers={})


def test_with_headers_may_add_names_that_the_published_grammar_refuses_from_peers() -> None:
    octets = b"\x20\x00" + b"\x00\x00\x00\x07\x01as\x03abc"
    edited = read(octets, PUBLISHED).with_headers({"x.death": [{"count": 1}]})
    assert edited.headers == {"a": "abc", "x.death": [{"count": 1}]}
    assert b"\x01as\x03abc" in edited.encode()


def test_with_headers_refuses_a_number_beyond_64_bits() -> None:
    with pytest.raises(FieldError, match="'k'"):
        read(ODD).with_headers({"k": 2**64})


@given(tables(), tables())
def test_with_headers_is_an_update(fields: dict, changes: dict) -> None:
    value = read(BasicProperties(headers=fields).encode())
    assert value.with_headers(changes).headers == {**fields, **changes}


@given(properties(), st.data())
def test_reader_returns_the_chosen_properties_and_headers_encoded(
    value: Properties, data: st.DataObject
) -> None:
    names = data.draw(st.lists(st.sampled_from([name for name, _ in value.LAYOUT]), min_size=1, unique=True))
    expected = [
        encode_table(value.headers)
        if name == "headers" and value.headers is not None
        else getattr(value, name)
        for name in names
    ]
    assert value.reader(*names)(value.encode()) == tuple(expected)


def test_reader_refuses_properties_cut_at_any_byte_with_the_error_of_decode() -> None:
    whole = ALL.encode()
    read_one = BasicProperties.reader("content_type")
    for octets in [
        *(whole[:end] for end in range(len(whole))),
        whole + b"\x00",
        b"\x00\x02",
        b"\x00\x01\x00\x02",
    ]:
        with pytest.raises(WireError) as of_decode:
            read(octets)
        with pytest.raises(type(of_decode.value), match=re.escape(str(of_decode.value))):
            read_one(octets)


def test_reader_does_not_read_inside_of_headers() -> None:
    octets = b"\x20\x80\x00\x00\x00\x03\x01xz\x01m"
    with pytest.raises(FieldError, match="unknown tag"):
        read(octets)
    assert BasicProperties.reader("message_id", "headers")(octets) == ("m", b"\x00\x00\x00\x03\x01xz")


@given(properties(), tables(), tables(), scalars())
def test_taken_header_is_gone_from_encoded_properties_and_the_rest_stays(
    value: Properties, before: dict, after: dict, taken: object
) -> None:
    if "headers" not in dict(value.LAYOUT):
        assert value.take_header(value.encode(), "x") == (b"", value.encode())
        return
    others = {name: field for name, field in {**before, **after}.items() if name != "x"}
    first = {name: field for name, field in others.items() if name in before}
    value.headers = {**first, "x": taken, **{name: others[name] for name in others if name not in first}}
    octets = value.encode()
    field, rest = value.take_header(octets, "x")
    assert field == encode_table({"x": taken})[6:]
    assert rest == value.replace(headers=others or None).encode()
    assert value.take_header(rest, "x") == (b"", rest)
    start = value.headers_offset(octets)
    assert start is not None
    assert octets[start:].startswith(encode_table(value.headers))
    assert value.headers_offset(value.replace(headers=None).encode()) is None


def test_of_two_headers_with_one_name_the_first_is_taken() -> None:
    field, rest = BasicProperties.take_header(ODD, "a")
    assert field == b"b\xff"
    assert BasicProperties.take_header(rest, "a")[0] == b"u\x00\x02"


def test_empty_headers_are_left_out_when_a_header_is_taken() -> None:
    octets = BasicProperties(headers={}, message_id="m").encode()
    assert BasicProperties.take_header(octets, "x") == (b"", BasicProperties(message_id="m").encode())


def test_header_behind_continued_flags_is_taken() -> None:
    octets = b"\x20\x01\x00\x01\x00\x00\x00\x00\x00\x03\x01xV"
    assert BasicProperties.take_header(octets, "x") == (b"V", b"\x00\x01\x00\x01\x00\x00")


def test_header_of_properties_cut_at_any_byte_is_a_frame_error_or_whole() -> None:
    whole = BasicProperties(content_type="a/b", headers={"a": True, "b": "text", "x": 3}).encode()
    assert BasicProperties.take_header(whole, "x")[0] == b"I\x00\x00\x00\x03"
    for end in range(len(whole)):
        with pytest.raises(FrameError):
            BasicProperties.take_header(whole[:end], "x")


def test_headers_entry_that_runs_past_the_end_of_its_table_is_a_frame_error() -> None:
    octets = b"\x20\x80\x00\x00\x00\x08\x01xS\x00\x00\x00\x02m\x02mm"
    with pytest.raises(FrameError, match="cut short"):
        BasicProperties.take_header(octets, "x")


@given(st.binary(max_size=40))
def test_header_of_random_properties_is_taken_or_a_wire_error(octets: bytes) -> None:
    for begun in (octets, b"\x20\x00" + struct.pack(">I", len(octets)) + octets):
        try:
            field, rest = BasicProperties.take_header(begun, "")
        except WireError:
            continue
        assert len(field) + len(rest) <= len(begun)


def test_properties_compare_by_value_and_show_no_private_part() -> None:
    assert read(ODD) == BasicProperties(headers={"a": -1, "b": 1, "x-death": 7})
    assert read(ODD) != BasicProperties()
    assert "_raw" not in repr(read(ODD))
    assert not hasattr(read(ODD), "__dict__")
