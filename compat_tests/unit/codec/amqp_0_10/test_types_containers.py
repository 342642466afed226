"""Maps, lists, arrays and struct32: bytes written by hand, what is kept of them, and what is refused."""

from __future__ import annotations

import copy
import struct
import sys
import tracemalloc
from datetime import datetime, timezone
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.amqp_0_10.strategies import arrays, maps, values
from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties, ReplyTo, Xid
from fakeamqp.protocols.amqp_0_10.codec.types import (
    CODES,
    MAX_DEPTH,
    MAX_EMPTY_ELEMENTS,
    Array,
    List,
    Map,
    UnknownStruct,
    code_of,
    encode_array,
    encode_list,
    encode_map,
    read_array,
    read_list,
    read_map,
    read_struct32,
    splice_map,
)
from fakeamqp.timestamps import Timestamp

rule = pytest.mark.rule


def sized(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def a_map(count: int, *entries: bytes) -> bytes:
    return sized(struct.pack(">I", count) + b"".join(entries))


def an_array(code: int, count: int, octets: bytes) -> bytes:
    return sized(struct.pack(">BI", code, count) + octets)


# --- byte for byte -----------------------------------------------------------------------------------


@rule("0-10/types/map")
def test_map_is_read_and_written_octet_for_octet() -> None:
    octets = bytes.fromhex("00000010 00000002 0161 01ff 0162 95 0003 78797a")
    found, end = read_map(octets + b"behind", 0)
    assert found == {"a": -1, "b": "xyz"} and end == len(octets)
    assert encode_map(found) == octets
    assert Map.of_entries([("a", -1, CODES["int8"]), ("b", "xyz", CODES["str16"])]).octets == octets


@rule("0-10/types/list")
def test_list_is_read_and_written_octet_for_octet() -> None:
    octets = sized(b"\0\0\0\x03" + b"\x02\x05" + b"\xf0" + b"\x85\x01x")
    found, end = read_list(octets, 0)
    assert found == [5, None, "x"] and end == len(octets)
    assert encode_list(found) == octets
    assert encode_list([5, None, "x"]) == sized(
        b"\0\0\0\x03" + b"\x31" + bytes(7) + b"\x05" + b"\xf0" + b"\x95\0\x01x"
    )


@rule("0-10/types/array")
def test_array_is_read_and_written_octet_for_octet() -> None:
    octets = an_array(0x95, 2, b"\0\x05PLAIN\0\x08EXTERNAL")
    found, end = read_array(octets, 0)
    assert found == ["PLAIN", "EXTERNAL"] and found.code == 0x95 and end == len(octets)
    assert encode_array(found) == octets
    assert encode_array(Array.of("str16", ["PLAIN", "EXTERNAL"])) == octets
    assert encode_array(["PLAIN", "EXTERNAL"]) == octets
    found.append("ANONYMOUS")
    assert read_array(encode_array(found), 0)[0] == ["PLAIN", "EXTERNAL", "ANONYMOUS"]


@rule("0-10/types/array-empty")
def test_empty_containers_are_read_with_and_without_a_count() -> None:
    assert encode_map({}) == bytes.fromhex("0000000400000000")
    assert encode_list([]) == bytes.fromhex("0000000400000000")
    assert encode_array(()) == bytes.fromhex("000000059500000000")
    for read, encode in ((read_map, encode_map), (read_list, encode_list), (read_array, encode_array)):
        for octets in (bytes(4), encode(())) if read is not read_map else (bytes(4), encode({})):
            found, end = read(octets, 0)
            assert not found and end == len(octets)
            assert encode(found) == octets


@rule("0-10/types/struct32")
@rule("0-10/types/struct32-size")
def test_a_struct32_begins_with_its_size_and_code() -> None:
    delivery = DeliveryProperties(routing_key="k")
    octets = delivery.encode()
    assert octets == bytes.fromhex("00000006 0401 0002 016b")
    assert int.from_bytes(octets[:4], "big") == len(octets) - 4
    assert read_struct32(octets, 0) == (delivery, len(octets))
    found, _ = read_map(a_map(1, b"\x01s\xab" + octets), 0)
    assert found == {"s": delivery}
    assert encode_map({"s": delivery}) == a_map(1, b"\x01s\xab" + octets)


def test_unknown_struct_keeps_its_octets() -> None:
    octets = sized(b"\x63\x01\x00\x00abc")
    found, end = read_struct32(octets, 0)
    assert found == UnknownStruct(0x6301, b"\0\0abc") and end == len(octets)
    assert found.encode() == octets
    assert encode_map({"s": found}) == a_map(1, b"\x01s\xab" + octets)


def test_array_of_structs_is_written_and_read_back() -> None:
    xids = Array([Xid(1, b"g", b"b"), Xid(2, b"h")], 0xAB)
    octets = encode_array(xids)
    assert octets[4:9] == bytes.fromhex("ab00000002")
    assert read_array(octets, 0)[0] == xids
    assert encode_array(list(xids)) == octets


# --- values and what they are written as ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "boolean"),
        (None, "void"),
        (1, "int64"),
        (-(2**63), "int64"),
        (2**63, "uint64"),
        (1.0, "double"),
        ("x", "str16"),
        (b"x", "vbin32"),
        (bytearray(b"x"), "vbin32"),
        (Decimal("1.5"), "dec32"),
        (Decimal(2**31), "dec64"),
        (Timestamp(5), "datetime"),
        (datetime(2020, 1, 1, tzinfo=timezone.utc), "datetime"),
        (UUID(int=1), "uuid"),
        ({}, "map"),
        ([], "list"),
        ((), "list"),
        (Array(), "array"),
        (Xid(1), "struct32"),
    ],
)
def test_python_value_is_encoded_with_the_type_code_for_its_type(value: object, name: str) -> None:
    assert code_of(value) == CODES[name]
    assert encode_map({"k": value})[10] == CODES[name]


@examples(100)
@given(maps())
def test_any_encoded_map_is_read_back(fields: dict) -> None:
    octets = encode_map(fields)
    found, end = read_map(octets, 0)
    assert end == len(octets) and found == fields
    assert encode_map(found) == octets
    assert encode_map(copy.deepcopy(found)) == octets
    assert encode_map(dict(found)) == octets


@examples(100)
@given(arrays() | st.lists(values(), max_size=3))
def test_any_encoded_list_or_array_is_read_back(items: list) -> None:
    encode, read = (encode_array, read_array) if isinstance(items, Array) else (encode_list, read_list)
    octets = encode(items)
    found, end = read(octets, 0)
    assert end == len(octets) and found == items
    assert encode(found) == octets


def test_array_of_elements_of_different_types_is_refused() -> None:
    with pytest.raises(SegmentError, match="of one type, not of 0x31, 0x95"):
        encode_array([1, "x"])


@pytest.mark.parametrize(
    "value", [object(), {1}, 1 << 64, -(1 << 63) - 1, "x" * 65536, {"k" * 256: 1}, {5: 1}]
)
def test_invalid_value_in_a_map_is_refused_with_the_name_of_its_key(value: object) -> None:
    with pytest.raises(SegmentError, match="'deep': "):
        encode_map({"deep": [value]})


def test_struct_without_a_code_is_refused_as_a_map_value() -> None:
    with pytest.raises(SegmentError, match="no struct with a code"):
        encode_map({"s": ReplyTo("e", "k")})


# --- what is kept --------------------------------------------------------------------------------------

ODD = a_map(
    4,
    b"\x01a\x01\x05",  # int8
    b"\x01b\x08\x09",  # a boolean that is not 1
    b"\x01c\xa9" + sized(b"\0\0\0\x02\x12\0\x07\x84\x01\xa4"),  # a list: uint16, str8-latin
    b"\x01d\xa8" + bytes(4),  # an empty map without count
)


def test_unchanged_entries_of_a_changed_map_keep_their_octets() -> None:
    found, _ = read_map(ODD, 0)
    assert found == {"a": 5, "b": True, "c": [7, "€"], "d": {}}
    assert encode_map(found) == ODD
    found["e"] = "new"
    assert encode_map(found) == a_map(5, ODD[8:], b"\x01e\x95\0\x03new")
    found["a"] = 6
    assert encode_map(found)[8:19] == b"\x01a\x31" + bytes(7) + b"\x06"
    assert encode_map(found)[19:] == ODD[12:] + b"\x01e\x95\0\x03new"
    found["c"].append(None)
    inner, _ = read_map(encode_map(found), 0)
    assert inner["c"] == [7, "€", None]
    del found["b"], found["c"]
    assert read_map(encode_map(found), 0)[0] == {"a": 6, "d": {}, "e": "new"}


def test_int_1_replaced_by_true_is_encoded_as_boolean() -> None:
    found, _ = read_map(a_map(1, b"\x01k\x02\x01"), 0)
    found["k"] = True
    assert encode_map(found) == a_map(1, b"\x01k\x08\x01")


def test_reordered_map_entries_are_written_in_the_new_order() -> None:
    found, _ = read_map(ODD, 0)
    turned = Map({name: found[name] for name in ("d", "a")})
    turned.octets = found.octets
    assert encode_map(turned) == a_map(2, b"\x01d\xa8" + bytes(4), b"\x01a\x01\x05")


def test_splice_map_keeps_the_octets_of_unchanged_entries() -> None:
    changed = splice_map(ODD, {"a": "x", "z": None}, ["b", "unknown"])
    assert changed == a_map(4, b"\x01a\x95\0\x01x", ODD[16:], b"\x01z\xf0")
    assert splice_map(bytes(4), {"k": None}) == a_map(1, b"\x01k\xf0")
    ordered = splice_map(ODD, {"B": None, "é": None, "aa": None}, ordered=True)
    assert list(read_map(ordered, 0)[0]) == ["B", "a", "aa", "b", "c", "d", "é"]


# --- what is refused -----------------------------------------------------------------------------------


@rule("0-10/types/map-distinct-keys")
def test_map_with_a_duplicate_key_is_refused() -> None:
    with pytest.raises(IllegalValue, match="key 'k' twice"):
        read_map(a_map(2, b"\x01k\xf0", b"\x01k\x02\x01"), 0)


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (b"", "inside its size"),
        (b"\0\0\0", "inside its size"),
        (b"\0\0\0\x05\0\0\0\0", "announces 5 bytes, 4 are left"),
        (b"\xff\xff\xff\xff\0\0\0\0", "announces 4294967295 bytes, 4 are left"),
        (b"\0\0\0\x03\0\0\0", "inside its count"),
        (a_map(2, b"\x01k\xf0"), "announces 2 entries and has 1"),
        (a_map(0, b"\x01k\xf0"), "announces 0 entries and has 1"),
        (a_map(0xFFFFFFFF, b"\x01k\xf0"), "announces 4294967295 entries and has 1"),
        (a_map(1, b"\x05k\xf0"), "inside a key"),
        (a_map(1, b"\x01k"), "inside a key"),
        (a_map(1, b"\x01k\x95"), "str16 is cut short"),
        (a_map(1, b"\x01k\x95\0"), "str16 is cut short"),
        (a_map(1, b"\x01k\x95\0\x02x"), "str16 is cut short"),
        (a_map(1, b"\x01k\xa9\0\0\0\x09\0\0\0\0"), "list announces 9 bytes, 4 are left"),
        (a_map(1, b"\x01k\xab\0\0\0\x01\x04"), "struct32 is cut short inside its code"),
        (a_map(1, b"\x01k\xab\0\0\0\x03\x04\x01\0"), "delivery-properties"),
    ],
)
def test_map_with_invalid_sizes_or_counts_is_refused(octets: bytes, why: str) -> None:
    with pytest.raises(SegmentError, match=why):
        read_map(octets, 0)


def test_map_cut_short_is_refused_although_other_octets_follow() -> None:
    short = a_map(1, b"\x01k\x95\0\x02x")
    with pytest.raises(SegmentError, match="cut short"):
        read_map(short + b"xxxxxxxx", 0)


@pytest.mark.parametrize(
    ("octets", "why"),
    [
        (sized(b"\x95\0\0\0"), "inside its count"),
        (an_array(0x0F, 0, b""), "no type with the code 0x0f"),
        (an_array(0x02, 2, b"\1"), "hold more or fewer"),
        (an_array(0x02, 1, b"\1\2"), "hold more or fewer"),
        (an_array(0x12, 1, b"\1"), "cut short"),
        (an_array(0xF0, 0, b"\0"), "or it has some"),
        (an_array(0xF0, 0xFFFFFFFF, b""), "elements without bytes"),
        (an_array(0xF1, MAX_EMPTY_ELEMENTS + 1, b""), "elements without bytes"),
    ],
)
def test_array_with_invalid_count_elements_or_type_is_refused(octets: bytes, why: str) -> None:
    with pytest.raises(SegmentError, match=why):
        read_array(octets, 0)


def test_array_of_void_elements_is_read_up_to_the_limit() -> None:
    octets = an_array(0xF0, MAX_EMPTY_ELEMENTS, b"")
    found, _ = read_array(octets, 0)
    assert found == [None] * MAX_EMPTY_ELEMENTS
    assert encode_array(found) == octets


@pytest.mark.parametrize(
    "octets",
    [
        a_map(0xFFFFFFFF),
        sized(b"\xff\xff\xff\xff\xf0"),
        an_array(0x95, 0xFFFFFFFF, b""),
        an_array(0xF0, 0xFFFFFFFF, b""),
    ],
)
def test_container_with_a_huge_count_is_refused_without_large_allocations(octets: bytes) -> None:
    read = (
        read_array if len(octets) == 9 and octets[4] != 0xFF else read_map if len(octets) == 8 else read_list
    )
    tracemalloc.start()
    try:
        with pytest.raises(SegmentError):
            read(octets, 0)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def nested(kind: int, depth: int) -> bytes:
    """A map with lists, arrays or maps in each other, so many levels in all."""
    inner = {0xA8: a_map(0), 0xA9: sized(bytes(4)), 0xAA: an_array(0xF0, 0, b"")}[kind]
    for _ in range(depth - 2):
        inner = {
            0xA8: lambda octets: a_map(1, b"\x01k\xa8" + octets),
            0xA9: lambda octets: sized(b"\0\0\0\x01\xa9" + octets),
            0xAA: lambda octets: an_array(0xAA, 1, octets),
        }[kind](inner)
    return a_map(1, b"\x01k" + bytes((kind,)) + inner)


@pytest.mark.parametrize("kind", [0xA8, 0xA9, 0xAA])
def test_nesting_deeper_than_the_limit_is_refused(kind: int) -> None:
    octets = nested(kind, MAX_DEPTH + 1)
    found, _ = read_map(octets, 0)
    assert encode_map(found) == octets
    for depth in (MAX_DEPTH + 2, 3000):
        with pytest.raises(SegmentError, match=f"deeper than {MAX_DEPTH} levels"):
            read_map(nested(kind, depth), 0)


def test_nesting_is_refused_when_the_stack_is_nearly_used_up() -> None:
    octets = nested(0xA8, MAX_DEPTH)

    def deep(levels: int) -> None:
        if levels:
            deep(levels - 1)
        else:
            read_map(octets, 0)

    frames, frame = 0, sys._getframe()
    while frame is not None:
        frames, frame = frames + 1, frame.f_back
    with pytest.raises(SegmentError, match="deeper than the caller's stack"):
        deep(sys.getrecursionlimit() - frames - 60)


def test_values_that_contain_themselves_are_refused() -> None:
    loop: list = []
    loop.append(loop)
    for value in (loop, {"k": loop}):
        with pytest.raises(SegmentError, match="deeper than"):
            encode_map({"k": value})
    array = Array(code=0xAA)
    array.append(array)
    with pytest.raises(SegmentError, match="deeper than"):
        encode_array(array)


@examples(100)
@given(st.binary(max_size=60), st.sampled_from([read_map, read_list, read_array, read_struct32]))
def test_any_octets_are_read_or_refused(octets: bytes, read) -> None:
    try:
        found, end = read(sized(octets), 0)
    except SegmentError:
        return
    assert end == len(octets) + 4
    encode = {Map: encode_map, List: encode_list, Array: encode_array}.get(type(found))
    if encode is not None:
        assert encode(found) == sized(octets)
