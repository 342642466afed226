"""An encoder written from the documents alone. It has no declarations: layouts come from `published`.

It is as plain as the documents are, reads nothing, and checks nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from compat_tests.golden.published import Layout, Types

__all__ = ["Encoder010", "family_frame", "field_table", "method", "properties"]

# --- 0-8, 0-9, 0-9-1 ---------------------------------------------------------------------------------------

#: Numbers, most significant octet first (0-9-1, 4.2.5.2).
NUMBERS = {"octet": ">B", "short": ">H", "long": ">I", "longlong": ">Q", "timestamp": ">Q"}

#: The numbers of field tables, `s` and `l` as RabbitMQ has them. The published grammar reads some otherwise.
TAGS = {
    **{"t": ">?", "b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "L": ">q", "l": ">q"},
    **{"f": ">f", "d": ">d", "T": ">Q"},
}
PUBLISHED = {**TAGS, "U": ">h", "l": ">Q"}


def _short_string(text: str) -> bytes:
    octets = text.encode()
    return struct.pack(">B", len(octets)) + octets


def _long_string(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


def _tagged(tag: str, value: Any, published: bool) -> bytes:
    """A value of a table or an array, behind its tag."""
    octets: bytes
    if tag == "S":
        octets = _long_string(value.encode())
    elif tag == "s" and published:
        octets = _short_string(value)
    elif tag == "x":
        octets = _long_string(bytes.fromhex(value))
    elif tag == "F":
        octets = field_table(value, published)
    elif tag == "A":
        octets = _long_string(b"".join(_tagged(*item, published) for item in value))
    elif tag == "D":
        places, digits = value
        octets = struct.pack(">Bi" if digits < 0 else ">BI", places, digits)
    elif tag == "V":
        octets = b""
    else:
        octets = struct.pack((PUBLISHED if published else TAGS)[tag], value)
    return tag.encode() + octets


def field_table(fields: Sequence[Sequence[Any]], published: bool = False) -> bytes:
    """A table of (name, tag, value) with its length."""
    return _long_string(
        b"".join(_short_string(name) + _tagged(tag, value, published) for name, tag, value in fields)
    )


def _family_value(kind: str, value: Any) -> bytes:
    if kind in NUMBERS:
        return struct.pack(NUMBERS[kind], value)
    if kind == "shortstr":
        return _short_string(value)
    if kind == "longstr":
        return _long_string(bytes.fromhex(value))
    if kind == "content":
        by_reference, octets = value
        return struct.pack(">B", by_reference) + _long_string(bytes.fromhex(octets))
    assert kind == "table", kind
    return field_table(value)


def method(layout: Layout, values: dict[str, Any]) -> bytes:
    """The payload of a method frame. Successive bits share octets, from the lowest bit on."""
    octets = struct.pack(">HH", layout.major, layout.minor)
    bits: list[bool] = []

    def packed() -> bytes:
        numbers = [bits[start : start + 8] for start in range(0, len(bits), 8)]
        return bytes(sum(bit << place for place, bit in enumerate(eight)) for eight in numbers)

    for field in layout.fields:
        if field.type == "bit":
            bits.append(values[field.name])
            continue
        octets += packed() + _family_value(field.type, values[field.name])
        bits.clear()
    return octets + packed()


def properties(layout: Layout, values: dict[str, Any]) -> bytes:
    """Flags and values; the first property has bit 15 (0-9-1, 4.2.6.1)."""
    flags = 0
    octets = b""
    for place, field in enumerate(layout.fields):
        if values[field.name] is not None:
            flags |= 1 << (15 - place)
            octets += _family_value(field.type, values[field.name])
    return struct.pack(">H", flags) + octets


def content_header(class_id: int, weight: int, size: int, listed: bytes) -> bytes:
    """The payload of a content header frame."""
    return struct.pack(">HHQ", class_id, weight, size) + listed


def family_frame(kind: int, channel: int, payload: bytes) -> bytes:
    """A frame (0-9-1, 4.2.3)."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


# --- 0-10 --------------------------------------------------------------------------------------------------

_FORMS_0_10 = {
    **{"int8": ">b", "uint8": ">B", "int16": ">h", "uint16": ">H", "int32": ">i", "uint32": ">I"},
    **{"int64": ">q", "uint64": ">Q", "datetime": ">Q", "sequence-no": ">I", "float": ">f", "double": ">d"},
    **{"boolean": ">?", "dec32": ">Bi", "dec64": ">Bq"},
}
_ENCODINGS = {"latin": "iso8859-15", "utf16": "utf-16-be", "utf32": "utf-32-be"}


class Encoder010:
    """Args: the table of types, and all structs by name."""

    def __init__(self, types: Types, structs: dict[str, Layout]) -> None:
        self._types = types
        self._structs = structs

    def value(self, kind: str, value: Any) -> bytes:
        """A value without its code."""
        what, _, name = kind.partition(":")
        if what == "struct":
            return self.struct(self._structs[name], value)
        if name:  # The documents do not say how: each element is a struct32 (docs/decisions-0-10.md).
            items = [self.struct(self._structs[name], each) for each in value]
            body = b"".join(_long_string(each) for each in items)
            return _long_string(struct.pack(">BI", self._code("struct32"), len(items)) + body)
        _, width, variable = self._types[kind]
        octets = self._octets(kind, value)
        if variable:
            return len(octets).to_bytes(width, "big") + octets
        assert len(octets) == width, (kind, value)
        return octets

    def _code(self, kind: str) -> int:
        code = self._types[kind][0]
        assert code is not None, kind
        return code

    def _octets(self, kind: str, value: Any) -> bytes:
        """A value of a type of the table, without its size."""
        if kind in _FORMS_0_10:
            return struct.pack(_FORMS_0_10[kind], *(value if kind.startswith("dec") else [value]))
        if kind.startswith(("str8", "str16", "char")):
            encoding = _ENCODINGS.get(kind.partition("-")[2])
            return value.encode(encoding or ("iso8859-15" if kind == "char" else "utf-8"))
        if kind.startswith(("bin", "vbin", "uuid")):
            return bytes.fromhex(value)
        if kind in ("void", "bit"):
            return b""
        if kind == "map":
            items = [self.value("str8", key) + self._with_code(each, item) for key, each, item in value]
            return struct.pack(">I", len(items)) + b"".join(items)
        if kind == "list":
            return struct.pack(">I", len(value)) + b"".join(self._with_code(*item) for item in value)
        if kind == "array":
            of, items = value
            return struct.pack(">BI", self._code(of), len(items)) + b"".join(self.value(of, i) for i in items)
        if kind in ("sequence-set", "byte-ranges"):
            form = ">II" if kind == "sequence-set" else ">QQ"
            return b"".join(struct.pack(form, lower, upper) for lower, upper in value)
        assert kind == "struct32", kind
        name, values = value
        return self.struct(self._structs[name], values)[4:]  # which has a size of four octets

    def _with_code(self, kind: str, value: Any) -> bytes:
        return bytes((self._code(kind),)) + self.value(kind, value)

    def packed(self, layout: Layout, values: Sequence[Any]) -> bytes:
        """Flags, least significant octet first, and the fields that are there."""
        flags = 0
        octets = b""
        for place, (field, value) in enumerate(zip(layout.fields, values, strict=True)):
            if layout.pack and value in (None, False) and (value is None or field.type == "bit"):
                continue
            flags |= 1 << place
            if field.type != "bit":
                octets += self.value(field.type, value)
        return (flags.to_bytes(layout.pack, "little") if layout.pack else b"") + octets

    def struct(self, layout: Layout, values: Sequence[Any]) -> bytes:
        """A struct with its size and its code, as far as it has them."""
        code = b"" if layout.minor is None else bytes((layout.major or 0, layout.minor))
        octets = code + self.packed(layout, values)
        return (len(octets).to_bytes(layout.size, "big") if layout.size else b"") + octets

    def control(self, layout: Layout, values: Sequence[Any]) -> bytes:
        """The segment of a control."""
        return struct.pack(">BB", layout.major, layout.minor) + self.packed(layout, values)

    def command(self, layout: Layout, values: Sequence[Any], sync: bool) -> bytes:
        """The segment of a command: its code, the session header, its fields."""
        head = self.struct(self._structs["session.header"], [sync])
        return struct.pack(">BB", layout.major, layout.minor) + head + self.packed(layout, values)


def frame_0_10(flags: int, segment: int, track: int, channel: int, payload: bytes) -> bytes:
    """A frame: four octets of flags, type and size, four of track and channel, four reserved."""
    return struct.pack(">BBHBBHI", flags, segment, len(payload) + 12, 0, track, channel, 0) + payload
