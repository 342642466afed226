"""The layouts and bytes of 1.0 beside the published XML, by a reader and an encoder of their own."""

from __future__ import annotations

import struct
import sys
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.types import (
    TYPE_OF_CODE,
    Array,
    Described,
    Symbol,
    UByte,
    UInt,
    ULong,
    UShort,
    encode_value,
    read_value,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path("/usr/share/amqp/specs/1-0")
SPEC = Path(__file__).parents[2] / "spec" / "amqp-1-0.toml"
PARTS = ("types", "transport", "messaging", "transactions", "security")

needs_xml = pytest.mark.skipif(
    not FOLDER.exists(), reason="the published XML is in Debian's package amqp-specs"
)


@cache
def published() -> dict[str, Any]:
    """The types of all parts by name; of restricted types what they restrict."""
    found: dict[str, Any] = {}
    for part in PARTS:
        text = (FOLDER / f"{part}.bare.xml").read_text("utf-8")
        root = ElementTree.fromstring(text[text.index("<amqp") :])
        for each in root.iter():
            if each.tag.rpartition("}")[2] == "type":
                found[each.get("name", "")] = each
    return found


def children(of: Any, name: str) -> list[Any]:
    return [each for each in of if each.tag.rpartition("}")[2] == name]


def primitive(name: str) -> str:
    """The primitive type that a type of a field is in the end."""
    while name in published() and published()[name].get("class") == "restricted":
        name = published()[name].get("source")
    return name


@needs_xml
@pytest.mark.parametrize("kind", c.COMPOSITES.values(), ids=lambda kind: kind.NAME)
def test_composite_has_descriptor_and_fields_of_the_published_xml(kind: type[c.Composite]) -> None:
    declared = published()[kind.NAME]
    (descriptor,) = children(declared, "descriptor")
    high, low = (int(half, 16) for half in descriptor.get("code").split(":"))
    assert (descriptor.get("name"), high << 32 | low) == (kind.DESCRIPTOR, kind.CODE)
    fields = [
        (
            each.get("name"),
            primitive(each.get("type")),
            each.get("mandatory") == "true",
            each.get("multiple") == "true",
        )
        for each in children(declared, "field")
    ]
    assert [(each.name, each.type, each.mandatory, each.multiple) for each in kind.FIELDS] == fields


@needs_xml
def test_type_codes_are_those_of_the_published_xml() -> None:
    codes = set()
    for each in published().values():
        if each.get("class") == "primitive":
            codes |= {int(encoding.get("code"), 16) for encoding in children(each, "encoding")}
    assert set(TYPE_OF_CODE) == codes


def test_layouts_are_those_of_the_specification_in_the_project() -> None:
    spec = tomllib.loads(SPEC.read_text("utf-8"))
    composites = {each["name"]: each for each in spec["composites"]}
    for kind in c.COMPOSITES.values():
        said = composites[kind.NAME]
        assert (said["code"], said["descriptor"]) == (kind.CODE, kind.DESCRIPTOR)
        fields = [
            (each["name"], each.get("mandatory", False), each.get("multiple", False))
            for each in said.get("fields", ())
        ]
        assert [(each.name, each.mandatory, each.multiple) for each in kind.FIELDS] == fields
    sections = {each["code"]: each["name"] for each in spec["composites"] if 0x70 <= each["code"] <= 0x78}
    assert {code: name for code, (name, _) in c.SECTIONS.items()} == sections


# --- an encoder of its own ----------------------------------------------------------------------------------

VALUES: dict[str, tuple[Any, bytes]] = {
    "string": ("abc", b"\xa1\x03abc"),
    "symbol": (Symbol("abc"), b"\xa3\x03abc"),
    "uint": (UInt(5), b"\x52\x05"),
    "ushort": (UShort(5), b"\x60\0\x05"),
    "ubyte": (UByte(1), b"\x50\x01"),
    "ulong": (ULong(5), b"\x53\x05"),
    "boolean": (True, b"\x41"),
    "binary": (b"\xff\0", b"\xa0\x02\xff\0"),
    "timestamp": (None, b"\x40"),
    "map": ({Symbol("k"): "v"}, b"\xc1\x07\x02\xa3\x01k\xa1\x01v"),
    "*": ("any", b"\xa1\x03any"),
    "error": (c.Error(condition=Symbol("x")), b"\0\x53\x1d\xc0\x04\x01\xa3\x01x"),
}


def expected(kind: type[c.Composite], count: int) -> tuple[dict[str, Any], bytes]:
    """The first fields of a composite with a value each, and its bytes as the standard writes them."""
    values: dict[str, Any] = {}
    items = []
    for field in kind.FIELDS[:count]:
        value, octets = VALUES[field.type]
        if field.multiple and value is not None:
            value = (value,)
            octets = b"\xe0\x09\x01\xb3\0\0\0\x03abc"
        values[field.attribute] = value
        items.append(octets)
    while items and items[-1] == b"\x40":
        items.pop()
    body = b"".join(items)
    head = b"\0\x53" + bytes((kind.CODE,))
    if not items:
        return values, head + b"\x45"
    if len(body) < 255:
        return values, head + struct.pack(">BBB", 0xC0, len(body) + 1, len(items)) + body
    return values, head + struct.pack(">BII", 0xD0, len(body) + 4, len(items)) + body


@pytest.mark.parametrize("kind", c.COMPOSITES.values(), ids=lambda kind: kind.NAME)
def test_composite_is_written_and_read_as_the_standard_says(kind: type[c.Composite]) -> None:
    for count in range(len(kind.FIELDS) + 1):
        values, octets = expected(kind, count)
        assert kind(**values).encode() == octets
        if all(values.get(each.attribute) is not None for each in kind.FIELDS if each.mandatory):
            value, end = read_value(octets)
            assert end == len(octets)
            assert c.composite_of(value, kind).encode() == octets


BYTES: list[tuple[Any, str]] = [
    (None, "40"),
    (True, "41"),
    (False, "42"),
    (UInt(0), "43"),
    (UInt(255), "52ff"),
    (UInt(256), "7000000100"),
    (ULong(0), "44"),
    (ULong(1 << 63), "808000000000000000"),
    (-1, "55ff"),
    (200, "8100000000000000c8"),
    (1.5, "823ff8000000000000"),
    ("é", "a102c3a9"),
    ("x" * 256, "b100000100" + "78" * 256),
    (Symbol("a"), "a30161"),
    ([], "45"),
    ([True], "c0020141"),
    ({}, "c10100"),
    (Array([UByte(1), UByte(2)]), "e00402500102"),
    (Described(Symbol("d"), 1), "00a301645501"),
]


@pytest.mark.parametrize(("value", "octets"), BYTES, ids=[octets[:12] for _, octets in BYTES])
def test_value_has_these_bytes(value: Any, octets: str) -> None:
    assert encode_value(value).hex() == octets
    read, end = read_value(bytes.fromhex(octets))
    assert (read, type(read), end) == (value, type(value), len(octets) // 2)
