"""Every type whose values hold no others: bytes written by hand, and what cannot be read or written."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.codec.amqp_0_10.strategies import SCALARS as STRATEGIES
from fakeamqp.protocols.amqp_0_10.codec.errors import IllegalValue, SegmentError
from fakeamqp.protocols.amqp_0_10.codec.structs import MessageProperties
from fakeamqp.protocols.amqp_0_10.codec.types import (
    CODES,
    SCALARS,
    Array,
    List,
    Map,
    encode_map,
    encode_value,
    read_map,
    same,
)
from fakeamqp.protocols.amqp_0_10.properties import TransferProperties
from fakeamqp.timestamps import Timestamp

rule = pytest.mark.rule

#: type -> (value, bytes behind the code)
VECTORS = {
    "bin8": [(b"\0", "00"), (b"\xff", "ff")],
    "int8": [(-128, "80"), (127, "7f"), (-1, "ff")],
    "uint8": [(0, "00"), (255, "ff")],
    "char": [("€", "a4"), ("A", "41")],
    "boolean": [(False, "00"), (True, "01")],
    "bin16": [(b"\x01\x02", "0102")],
    "int16": [(-32768, "8000"), (-2, "fffe")],
    "uint16": [(65535, "ffff"), (1, "0001")],
    "bin32": [(b"abcd", "61626364")],
    "int32": [(-1, "ffffffff"), (-(2**31), "80000000")],
    "uint32": [(4294967295, "ffffffff")],
    "float": [(1.5, "3fc00000")],
    "char-utf32": [("\U0001f600", "0001f600")],
    "bin64": [(b"abcdefgh", "6162636465666768")],
    "int64": [(-(2**63), "8000000000000000")],
    "uint64": [(2**64 - 1, "ffffffffffffffff")],
    "double": [(0.1, "3fb999999999999a")],
    "datetime": [(Timestamp(2**32 + 1), "0000000100000001")],
    "bin128": [(bytes(range(16)), bytes(range(16)).hex())],
    "uuid": [(UUID("01234567-89ab-cdef-0123-456789abcdef"), "0123456789abcdef0123456789abcdef")],
    "bin256": [(bytes(32), "00" * 32)],
    "bin512": [(b"\xff" * 64, "ff" * 64)],
    "bin1024": [(b"\x80" * 128, "80" * 128)],
    "vbin8": [(b"", "00"), (b"x" * 255, "ff" + "78" * 255)],
    "str8-latin": [("Ž€é", "03b4a4e9")],
    "str8": [("é", "02c3a9"), ("", "00")],
    "str8-utf16": [("é\U0001f600", "0600e9d83dde00")],
    "vbin16": [(b"", "0000"), (bytes(65535), "ffff" + "00" * 65535)],
    "str16-latin": [("é", "0001e9")],
    "str16": [("é", "0002c3a9"), ("x" * 65535, "ffff" + "78" * 65535)],
    "str16-utf16": [("é", "000200e9")],
    "vbin32": [(b"ab", "000000026162"), (bytes(70000), "00011170" + "00" * 70000)],
    "bin40": [(b"12345", "3132333435")],
    "dec32": [(Decimal("-123.45"), "02ffffcfc7"), (Decimal(7), "0000000007")],
    "bin72": [(b"123456789", "313233343536373839")],
    "dec64": [(Decimal("123456789.012345"), "0600007048860ddf79")],
    "void": [(None, "")],
    "bit": [(True, "")],
}


def entry(name: str, octets: str) -> bytes:
    """A map with one value, by hand."""
    body = b"\x01k" + bytes((CODES[name],)) + bytes.fromhex(octets)
    return (len(body) + 4).to_bytes(4, "big") + b"\0\0\0\x01" + body


def test_every_type_of_the_specification_has_vectors() -> None:
    assert set(VECTORS) == {scalar.name for scalar in SCALARS.values()}
    assert set(STRATEGIES) == set(VECTORS)


@pytest.mark.parametrize(
    ("name", "value", "octets"),
    [
        pytest.param(name, value, octets, marks=rule(f"0-10/types/{name}"), id=f"{name}-{number}")
        for name, vectors in VECTORS.items()
        for number, (value, octets) in enumerate(vectors)
    ],
)
def test_value_of_each_type_is_encoded_and_forwarded_octet_for_octet(
    name: str, value: object, octets: str
) -> None:
    assert encode_value(value, CODES[name]) == bytes.fromhex(octets)
    raw = entry(name, octets)
    found, end = read_map(raw, 0)
    assert end == len(raw)
    assert found == {"k": value}
    assert type(found["k"]) is type(value)
    # A message with it as an application header, as the next broker or client gets it:
    header = MessageProperties(application_headers=found).encode()
    forwarded = TransferProperties.decode(header)
    assert forwarded.rest_bytes == header
    assert forwarded.with_headers({"another": 1}).rest_bytes.count(raw[8:]) == 1
    assert TransferProperties.decode(header).message.application_headers == {"k": value}


@pytest.mark.parametrize("name", VECTORS)
def test_value_in_any_container_is_encoded_with_its_received_type(name: str) -> None:
    value, octets = VECTORS[name][0]
    inner = List([value])
    inner.octets = bytes.fromhex(f"{5 + len(octets) // 2:08x}00000001{CODES[name]:02x}{octets}")
    outer = encode_map(
        {"l": inner, "m": Map.of_entries([("k", value, CODES[name])]), "a": Array.of(name, [value])}
    )
    found, _ = read_map(outer, 0)
    assert encode_map(found) == outer
    assert encode_map({**found, "more": 1}).startswith(outer[8:], 8)
    assert found == {"l": [value], "m": {"k": value}, "a": [value]}


@examples(20)
@given(st.data())
@pytest.mark.parametrize("name", VECTORS)
def test_any_encoded_value_is_read_back(name: str, data: st.DataObject) -> None:
    value = data.draw(STRATEGIES[name])
    octets = Map.of_entries([("k", value, CODES[name])]).octets
    found, _ = read_map(octets, 0)
    assert found["k"] == value
    assert encode_map(Map(found)) == encode_map({"k": value})
    assert encode_value(found["k"], CODES[name]) == octets[8 + 3 :]


@pytest.mark.parametrize("name", [name for name in VECTORS if name not in ("void", "bit")])
def test_value_cut_short_is_refused(name: str) -> None:
    _, octets = VECTORS[name][-1]
    with pytest.raises(SegmentError, match="cut short"):
        read_map(entry(name, octets[:-2]), 0)


@rule("0-10/types/boolean")
def test_boolean_octet_other_than_zero_is_true_and_is_written_back_unchanged() -> None:
    raw = entry("boolean", "07")
    found, _ = read_map(raw, 0)
    assert found == {"k": True}
    assert encode_map(found) == raw
    found["k"] = False
    assert encode_map(found) == entry("boolean", "00")


def test_nan_keeps_its_octets() -> None:
    raw = entry("double", "7ff4000000000001")
    found, _ = read_map(raw, 0)
    assert found["k"] != found["k"]
    assert encode_map(found) == raw


@pytest.mark.parametrize(
    ("name", "octets"),
    [
        ("char-utf32", "00110000"),
        ("char-utf32", "0000d800"),
        ("str8-utf16", "0300e900"),
        ("str16-utf16", "000100"),
    ],
)
def test_octets_of_an_invalid_character_are_refused(name: str, octets: str) -> None:
    with pytest.raises(IllegalValue, match=r"'k': 0x[0-9a-f]+ is no "):
        read_map(entry(name, octets), 0)


def test_octets_of_invalid_utf_8_are_written_back_unchanged() -> None:
    raw = entry("str8", "02ff41")
    found, _ = read_map(raw, 0)
    assert encode_map(Map(found)) == entry("str16", "0002ff41")


@rule("0-10/types/unknown-code")
@pytest.mark.parametrize("code", sorted(set(range(256)) - set(CODES.values())))
def test_unknown_type_code_is_refused(code: int) -> None:
    raw = b"\0\0\0\x08\0\0\0\x01\x01k" + bytes((code, 0))
    with pytest.raises(IllegalValue, match=rf"'k': there is no type with the code 0x{code:02x}"):
        read_map(raw, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("int8", 128),
        ("uint8", -1),
        ("uint64", 1 << 64),
        ("int64", "1"),
        ("float", 1e39),
        ("char", "ab"),
        ("char", "中"),
        ("char-utf32", "ab"),
        ("bin16", b"a"),
        ("bin16", "ab"),
        ("vbin8", bytes(256)),
        ("str8", "é" * 128),
        ("str16", "x" * 65536),
        ("str8", 5),
        ("dec32", Decimal(2**31)),
        ("dec64", Decimal("1e-256")),
        ("dec64", Decimal("NaN")),
        ("dec32", 1),
        ("uuid", "01234567-89ab-cdef-0123-456789abcdef"),
        ("void", 0),
        ("bit", False),
        ("datetime", -1),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_refused(name: str, value: object) -> None:
    with pytest.raises(SegmentError):
        encode_value(value, CODES[name])


def test_decimals_in_unusual_forms_are_read_back_as_the_same_number() -> None:
    for value in (Decimal("1E+3"), Decimal("-0"), Decimal("0E+30"), Decimal("1.50")):
        octets = encode_value(value, CODES["dec64"])
        assert SCALARS[CODES["dec64"]].read(octets) == value


def test_same_compares_value_and_type_and_treats_nan_as_equal() -> None:
    nan = float("nan")
    assert same(nan, nan) and same([nan], [nan])
    assert not same(nan, 1.0) and not same(1.0, nan)
    assert same(1.0, 1.0) and not same(1.0, 2.0)
    assert not same(1, 1.0) and not same(1, True)
