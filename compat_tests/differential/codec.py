"""0-9-1 on the wire as the differential tests write and show it: from the protocol's own description.

Nothing of the library is used here, so that an error in its codec cannot hide on both sides of a
comparison. Field values keep their tags: where two brokers send the same number in another width, it shows.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = [
    "METHODS",
    "MethodLayout",
    "Tagged",
    "content_header",
    "decode_method",
    "decode_properties",
    "encode_method",
    "encode_properties",
    "encode_table",
    "frame",
    "method_frame",
    "publish_frames",
    "shown",
]

_SPEC = Path(__file__).parents[2] / "spec" / "amqp-0-9-1.toml"
_NUMBERS = {"b": "b", "B": "B", "s": "h", "u": "H", "I": "i", "i": "I", "l": "q", "L": "q"}
_NUMBERS |= {"f": "f", "d": "d", "T": "Q"}
_FIXED = {"octet": "B", "short": "H", "long": "I", "longlong": "Q", "timestamp": "Q"}


@dataclass(frozen=True)
class MethodLayout:
    """What the protocol says of one method. `fields` are (name, wire type)."""

    name: str
    ids: tuple[int, int]
    content: bool
    responses: tuple[str, ...]
    fields: tuple[tuple[str, str], ...]


def _layouts(entries: Iterable[Mapping[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((entry["name"].replace("-", "_"), entry["type"]) for entry in entries)


def _read_spec() -> tuple[dict[str, MethodLayout], tuple[tuple[str, str], ...]]:
    spec = tomllib.loads(_SPEC.read_text(encoding="utf-8"))
    methods: dict[str, MethodLayout] = {}
    properties: tuple[tuple[str, str], ...] = ()
    for each in spec["classes"]:
        if each["name"] == "basic":
            properties = _layouts(each["properties"])
        for method in each["methods"]:
            name = f"{each['name']}.{method['name']}"
            methods[name] = MethodLayout(
                name,
                (each["id"], method["id"]),
                method["content"],
                tuple(f"{each['name']}.{response}" for response in method.get("responses", ())),
                _layouts(method["fields"]),
            )
    return methods, properties


METHODS, _PROPERTIES = _read_spec()
_BY_IDS = {layout.ids: layout for layout in METHODS.values()}


@dataclass(frozen=True, repr=False)
class Tagged:
    """A field value with the tag it travels under. A table's value is a list of (name, value)."""

    tag: str
    value: Any = None

    def __repr__(self) -> str:
        if self.tag == "F":
            return "{" + ", ".join(f"{name}={value!r}" for name, value in self.value) + "}"
        if self.tag == "A":
            return "[" + ", ".join(map(repr, self.value)) + "]"
        if self.tag == "V":
            return "V"
        if self.tag in "Sx":
            return f"{self.tag}:{shown(self.value)}"
        return f"{self.tag}:{self.value}"


def shown(octets: bytes | str) -> str:
    """Bytes in quotes, what is not printable escaped."""
    return repr(_octets(octets))[1:]


def _octets(value: bytes | str) -> bytes:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


# --- field tables ------------------------------------------------------------------------------------------


def _tagged(value: Any) -> Tagged:
    if isinstance(value, Tagged):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Tagged("I" if -(2**31) <= value < 2**31 else "l", value)
    tags: dict[type, str] = {
        bool: "t",
        float: "d",
        str: "S",
        bytes: "x",
        dict: "F",
        list: "A",
        type(None): "V",
    }
    return Tagged(tags[type(value)], value)


def _encode_value(value: Any) -> bytes:
    tagged = _tagged(value)
    tag, value = tagged.tag.encode(), tagged.value
    if tagged.tag == "t":
        return tag + bytes((value,))
    if tagged.tag in _NUMBERS:
        return tag + struct.pack(">" + _NUMBERS[tagged.tag], value)
    if tagged.tag == "D":
        return tag + struct.pack(">BI", *value)
    if tagged.tag == "F":
        return tag + encode_table(value)
    if tagged.tag == "A":
        return tag + _long(b"".join(map(_encode_value, value)))
    return tag if tagged.tag == "V" else tag + _long(_octets(value))


def _short(value: bytes | str) -> bytes:
    octets = _octets(value)
    return bytes((len(octets),)) + octets


def _long(octets: bytes) -> bytes:
    return struct.pack(">I", len(octets)) + octets


def encode_table(fields: Mapping[str, Any] | Iterable[tuple[str, Any]] | bytes) -> bytes:
    """A table from a mapping, from pairs (names may repeat), or from its bytes without the length."""
    if isinstance(fields, bytes):
        return _long(fields)
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    return _long(b"".join(_short(name) + _encode_value(value) for name, value in pairs))


def _decode_value(octets: bytes, offset: int) -> tuple[Tagged, int]:
    tag = chr(octets[offset])
    offset += 1
    if tag == "t":
        return Tagged(tag, bool(octets[offset])), offset + 1
    if tag in _NUMBERS:
        layout = struct.Struct(">" + _NUMBERS[tag])
        return Tagged(tag, layout.unpack_from(octets, offset)[0]), offset + layout.size
    if tag == "D":
        return Tagged(tag, struct.unpack_from(">BI", octets, offset)), offset + 5
    if tag == "F":
        return _decode_table(octets, offset)
    if tag == "V":
        return Tagged(tag), offset
    end = offset + 4 + int.from_bytes(octets[offset : offset + 4], "big")
    offset += 4
    if tag == "A":
        items = []
        while offset < end:
            item, offset = _decode_value(octets, offset)
            items.append(item)
        return Tagged(tag, items), offset
    if tag in "Sx":
        return Tagged(tag, octets[offset:end]), end
    raise ValueError(f"a broker sent a field with the unknown tag {tag!r}")


def _decode_table(octets: bytes, offset: int) -> tuple[Tagged, int]:
    end = offset + 4 + int.from_bytes(octets[offset : offset + 4], "big")
    offset += 4
    fields = []
    while offset < end:
        start, offset = offset + 1, offset + 1 + octets[offset]
        name = octets[start:offset].decode("utf-8", "backslashreplace")
        value, offset = _decode_value(octets, offset)
        fields.append((name, value))
    return Tagged("F", fields), offset


# --- methods and contents ----------------------------------------------------------------------------------

_EMPTY: dict[str, Any] = {"shortstr": "", "longstr": "", "table": {}}


def encode_method(method: str, **arguments: Any) -> bytes:
    """The payload of a method frame; what is not named is zero or empty."""
    layout = METHODS[method]
    assert arguments.keys() <= dict(layout.fields).keys(), f"{method} has no {sorted(arguments)}"
    out = bytearray(struct.pack(">HH", *layout.ids))
    bits = 0
    for name, kind in layout.fields:
        value = arguments.get(name, _EMPTY.get(kind, 0))
        if kind == "bit":
            if bits % 8 == 0:
                out.append(0)
            out[-1] |= bool(value) << bits % 8
            bits += 1
            continue
        bits = 0
        out += _encode_field(kind, value)
    return bytes(out)


def _encode_field(kind: str, value: Any) -> bytes:
    if kind in _FIXED:
        return struct.pack(">" + _FIXED[kind], value)
    if kind == "shortstr":
        return _short(value)
    return encode_table(value) if kind == "table" else _long(_octets(value))


def _decode_field(kind: str, octets: bytes, offset: int) -> tuple[Any, int]:
    if kind in _FIXED:
        layout = struct.Struct(">" + _FIXED[kind])
        return layout.unpack_from(octets, offset)[0], offset + layout.size
    if kind == "table":
        return _decode_table(octets, offset)
    size = 1 if kind == "shortstr" else 4
    start = offset + size
    end = start + int.from_bytes(octets[offset:start], "big")
    return octets[start:end], end


def decode_method(payload: bytes) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a method; bytes behind the last field are shown as `TRAILING`."""
    ids: tuple[int, int] = struct.unpack_from(">HH", payload)
    layout = _BY_IDS[ids]
    arguments: dict[str, Any] = {}
    offset = 4
    bits = 0
    for name, kind in layout.fields:
        if kind == "bit":
            offset += bits % 8 == 0
            arguments[name] = payload[offset - 1] >> bits % 8 & 1
            bits += 1
            continue
        bits = 0
        arguments[name], offset = _decode_field(kind, payload, offset)
    if offset != len(payload):
        arguments["TRAILING"] = payload[offset:]
    return layout.name, arguments


def encode_properties(**properties: Any) -> bytes:
    """Property flags and values."""
    assert properties.keys() <= dict(_PROPERTIES).keys(), f"there are no properties {sorted(properties)}"
    flags = 0
    out = b""
    for place, (name, kind) in enumerate(_PROPERTIES):
        if name in properties:
            flags |= 0x8000 >> place
            out += _encode_field(kind, properties[name])
    return struct.pack(">H", flags) + out


def decode_properties(octets: bytes) -> str:
    """Property flags and values as text."""
    flags = int.from_bytes(octets[:2], "big")
    offset = 2
    parts = []
    for place, (name, kind) in enumerate(_PROPERTIES):
        if flags & 0x8000 >> place:
            value, offset = _decode_field(kind, octets, offset)
            parts.append(f"{name}={shown(value) if isinstance(value, bytes) else repr(value)}")
    return "{" + ", ".join(parts) + "}"


# --- frames ------------------------------------------------------------------------------------------------


def frame(kind: int, channel: int, payload: bytes, end: int = 0xCE) -> bytes:
    """One frame."""
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes((end,))


def method_frame(method: str, channel: int = 1, **arguments: Any) -> bytes:
    """The frame of a method."""
    return frame(1, channel, encode_method(method, **arguments))


def content_header(size: int, properties: bytes = b"\0\0", *, class_id: int = 60, weight: int = 0) -> bytes:
    """The payload of a content header frame."""
    return struct.pack(">HHQ", class_id, weight, size) + properties


def publish_frames(
    channel: int, *, body: bytes | str = b"", props: Mapping[str, Any], frame_max: int, **arguments: Any
) -> bytes:
    """basic.publish with its content."""
    octets = _octets(body)
    largest = frame_max - 8
    parts = [frame(1, channel, encode_method("basic.publish", **arguments))]
    parts.append(frame(2, channel, content_header(len(octets), encode_properties(**props))))
    for start in range(0, len(octets), largest):
        parts.append(frame(3, channel, octets[start : start + largest]))
    return b"".join(parts)
