"""Writes the golden table of 1.0 from the published XML: `python -m compat_tests.golden.amqp_1_0`.

Debian's package `amqp-specs` has the XML. Nothing of the broker is imported. A row of the table has one of:

| Row has | It is |
|---|---|
| type | a value in one encoding of its type; `array` has the octets of an array of two such values |
| composite | a performative, SASL frame, section, outcome, or terminus: fields, and octets of cases |
| section | a section that is no composite |
| frame | a frame of a type on a channel |

A value is its type and what JSON has for it: hexadecimal octets for a binary, pairs for a map. The cases of a
composite are all fields, only one, all but one, none, and all with the symbol for a descriptor or in the
widest encodings.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

__all__ = ["PATH", "SPECS", "Encoder", "Field", "Layout", "main", "read_layouts", "text"]

SPECS = Path("/usr/share/amqp/specs/1-0")
PATH = Path(__file__).with_name("amqp-1-0.jsonl")
_PARTS = ("types", "transport", "messaging", "transactions", "security")

Value = list[Any]
"""Type, and value."""


class Field(NamedTuple):
    """A field: its primitive type ("*" for any), and how often it comes."""

    name: str
    type: str
    mandatory: bool
    multiple: bool


class Layout(NamedTuple):
    """A type with a descriptor; `of` is the primitive type behind it, "*" for any."""

    name: str
    code: int
    symbol: str
    of: str
    fields: tuple[Field, ...]


def _types() -> dict[str, Element]:
    """The types of all parts, by name."""
    found: dict[str, Element] = {}
    for part in _PARTS:
        source = (SPECS / f"{part}.bare.xml").read_text("utf-8")
        for each in ElementTree.fromstring(source[source.index("<amqp") :]).iter():
            each.tag = each.tag.rpartition("}")[2]
            if each.tag == "type":
                found[each.get("name", "")] = each
    return found


def read_layouts() -> list[Layout]:
    """All types that have a descriptor."""
    types = _types()

    def primitive(name: str) -> str:
        while name in types and types[name].get("class") == "restricted":
            name = types[name].get("source", "")
        return name

    found = []
    for name, element in types.items():
        descriptor = element.find("descriptor")
        if descriptor is None:
            continue
        high, low = (int(half, 16) for half in descriptor.get("code", "").split(":"))
        fields = tuple(
            Field(
                each.get("name", ""),
                primitive(each.get("type", "")),
                each.get("mandatory") == "true",
                each.get("multiple") == "true",
            )
            for each in element.findall("field")
        )
        symbol, of = descriptor.get("name", ""), primitive(element.get("source", ""))
        found.append(Layout(name, high << 32 | low, symbol, of, fields))
    return found


class _Encoding(NamedTuple):
    name: str
    code: int
    category: str
    width: int


def _encodings() -> dict[str, list[_Encoding]]:
    """The encodings of each primitive type, the widest first."""
    return {
        name: sorted(
            (
                _Encoding(
                    each.get("name") or name,
                    int(each.get("code", ""), 16),
                    each.get("category", ""),
                    int(each.get("width", "")),
                )
                for each in element.findall("encoding")
            ),
            key=lambda each: -each.width,
        )
        for name, element in _types().items()
        if element.get("class") == "primitive"
    }


_SIGNED = ("byte", "short", "int", "long", "timestamp")
_FORMATS = {"float": ">f", "double": ">d"}


class Encoder:
    """Writes values as the published definitions have them; the shortest encoding unless one is named."""

    def __init__(self) -> None:
        self.encodings = _encodings()

    def value(self, value: Value | None, encoding: str = "") -> bytes:
        """A value with its constructor."""
        if value is None:
            return b"\x40"
        kind, said = value
        if kind == "described":
            return b"\0" + self.value(said[0]) + self.value(said[1], encoding)
        candidates = self.encodings[kind][::-1]
        if encoding == "widest":
            candidates = candidates[-1:]
        elif encoding:
            candidates = [each for each in candidates if each.name == encoding]
        for each in candidates:
            data = self._data(each, kind, said, encoding == "widest")
            if data is not None:
                return bytes((each.code,)) + data
        raise ValueError(f"{value} has no encoding {encoding!r}")

    def _data(self, encoding: _Encoding, kind: str, said: Any, widest: bool) -> bytes | None:
        """What follows the constructor; None where the value has no such encoding."""
        width = encoding.width
        if kind == "array":
            return self._sized(width, self._items(said), len(said[1]))
        if kind in ("list", "map"):
            items = [each for pair in said for each in pair] if kind == "map" else said
            if width == 0:
                return b"" if not items else None
            octets = b"".join(self.value(each, "widest" if widest else "") for each in items)
            return self._sized(width, octets, len(items))
        if encoding.category == "variable":
            octets = bytes.fromhex(said) if kind == "binary" else said.encode("utf-8")
            return None if len(octets) >= 1 << 8 * width else len(octets).to_bytes(width, "big") + octets
        if kind == "boolean":
            return bytes((said,)) if width else b"" if encoding.name == str(said).lower() else None
        if kind in _FORMATS:
            return struct.pack(_FORMATS[kind], said)
        if kind in ("uuid", "decimal32", "decimal64", "decimal128"):
            return bytes.fromhex(said)
        if width == 0:
            return b"" if not said else None
        number = ord(said) if kind == "char" else said
        try:
            return int(number).to_bytes(width, "big", signed=kind in _SIGNED)
        except OverflowError:
            return None

    def _items(self, said: list[Any]) -> bytes:
        """Constructor and data of the items of an array, in the widest encoding of their type."""
        kind, items = said
        encoding = self.encodings[kind][0]
        data = [self._data(encoding, kind, each, False) for each in items]
        assert None not in data
        return bytes((encoding.code,)) + b"".join(each or b"" for each in data)

    @staticmethod
    def _sized(width: int, octets: bytes, count: int) -> bytes | None:
        if len(octets) + width >= 1 << 8 * width or count >= 1 << 8 * width:
            return None
        return (len(octets) + width).to_bytes(width, "big") + count.to_bytes(width, "big") + octets

    def composite(self, layout: Layout, values: list[Value | None], case: str = "") -> bytes:
        """A composite with these values of its fields; nulls at the end are left out."""
        listed = list(values)
        while listed and listed[-1] is None:
            listed.pop()
        descriptor = ["symbol", layout.symbol] if case == "symbolic" else ["ulong", layout.code]
        said = ["described", [descriptor, ["list", listed]]]
        return self.value(said, "widest" if case == "wide" else "")


# --- values -------------------------------------------------------------------------------------------------

_VALUES: dict[str, tuple[Any, ...]] = {
    "null": (None,),
    "boolean": (True, False),
    "ubyte": (0, 0xFE),
    "ushort": (0, 0x8182),
    "uint": (0, 0x81, 0xFF, 0x100, 0x81828384),
    "ulong": (0, 0x81, 0xFF, 0x100, 0x8182838485868788),
    "byte": (0, -2, 127, -128),
    "short": (0, -0x7E7D),
    "int": (0, -2, 127, -128, 128, -129, -0x7E7D7C7B),
    "long": (0, -2, 127, -128, 128, -129, -0x7E7D7C7B7A797877),
    "float": (-1234.5,),
    "double": (3.141592653589793,),
    "decimal32": ("81828384",),
    "decimal64": ("8182838485868788",),
    "decimal128": (bytes(range(0x80, 0x90)).hex(),),
    "char": ("\u20ac", "\U0001f40d"),
    "timestamp": (0, 0x0182838485868788, -2),
    "uuid": (bytes(range(0x80, 0x90)).hex(),),
    "binary": ("", "00ff81", "81" * 255, "82" * 256),
    "string": ("", "\u20ac \u00e9", "a" * 255, "b" * 256),
    "symbol": ("", "amqp:symbol", "a" * 255, "b" * 256),
    "list": (
        [],
        [["uint", 1], ["string", "two"], ["list", [None]]],
        [["binary", "83" * 250]],
        [["binary", "83" * 252]],
    ),
    "map": (
        [],
        [[["symbol", "b"], ["int", 1]], [["string", "a"], ["map", [[["ulong", 1], None]]]]],
        [[["symbol", "b"], ["binary", "84" * 252]]],
    ),
    "array": (["ushort", [1, 2, 3]], ["symbol", ["one", "two"]], ["binary", ["85" * 260]]),
}


def _values(layout: Layout) -> list[Value]:
    """A value for each field: two of one type differ."""
    found: list[Value] = []
    for number, field in enumerate(layout.fields, 1):
        octet = 0x80 + number
        kinds: dict[str, Any] = {
            "boolean": True,
            "ubyte": octet,
            "ushort": octet << 8 | number,
            "uint": octet << 24 | number,
            "ulong": octet << 56 | number,
            "timestamp": number << 40 | octet,
            "binary": f"{octet:02x}{number:02x}",
            "string": f"string {number}",
            "symbol": f"symbol-{number}",
            "map": [[["symbol", f"key-{number}"], ["string", f"value {number}"]]],
            "*": f"anything {number}",
        }
        if field.multiple:
            found.append(["array", [field.type, [f"one-{number}", f"two-{number}"]]])
        elif field.type == "error":
            condition = ["list", [["symbol", f"condition:{number}"]]]
            found.append(["described", [["ulong", 0x1D], condition]])
        else:
            found.append(["string" if field.type == "*" else field.type, kinds[field.type]])
    return found


_SECTION_VALUES: dict[str, Value] = {
    "map": ["map", [[["symbol", "x-key"], ["string", "value"]]]],
    "binary": ["binary", "00ff81"],
    "list": ["list", [["int", 1], ["string", "two"]]],
    "*": ["string", "value"],
}


def _rows() -> Iterator[dict[str, Any]]:
    encoder = Encoder()
    for kind, encodings in encoder.encodings.items():
        for encoding in encodings:
            for said in _VALUES[kind]:
                value = None if kind == "null" else [kind, said]
                try:
                    octets = encoder.value(value, "" if value is None else encoding.name)
                except ValueError:
                    continue
                shortest = octets == encoder.value(value)
                row = {"type": kind, "encoding": encoding.name, "value": said, "shortest": shortest}
                row["octets"] = octets.hex()
                if encoding is encodings[0] and kind not in ("null", "array"):
                    row["array"] = encoder.value(["array", [kind, [said, said]]]).hex()
                yield row
    for layout in read_layouts():
        if layout.of != "list" or layout.name == "amqp-sequence":
            section = ["described", [["ulong", layout.code], _SECTION_VALUES[layout.of]]]
            names = {"section": layout.name, "code": layout.code, "symbol": layout.symbol}
            yield {**names, "of": layout.of, "value": section[1][1], "octets": encoder.value(section).hex()}
            continue
        values = _values(layout)
        cases: dict[str, list[Value | None]] = {"all": list(values), "none": [None for _ in values]}
        for number, field in enumerate(layout.fields):
            cases[f"only {field.name}"] = [value if number == at else None for at, value in enumerate(values)]
            cases[f"without {field.name}"] = [
                None if number == at else value for at, value in enumerate(values)
            ]
        octets = {case: encoder.composite(layout, each).hex() for case, each in cases.items()}
        octets |= {case: encoder.composite(layout, cases["all"], case).hex() for case in ("symbolic", "wide")}
        yield {
            **{"composite": layout.name, "code": layout.code, "symbol": layout.symbol},
            "fields": [[*field, value] for field, value in zip(layout.fields, values, strict=True)],
            "octets": octets,
        }
    for kind, channel, payload in ((0, 0, b""), (0, 0x8182, b"\0\x53\x17\x45"), (1, 0, b"\0\x53\x44" * 99)):
        octets = struct.pack(">IBBH", 8 + len(payload), 2, kind, channel) + payload
        yield {"frame": kind, "channel": channel, "payload": payload.hex(), "octets": octets.hex()}


def text() -> str:
    """The whole file."""
    head = {
        "protocol": "1-0",
        "made": "python -m compat_tests.golden.amqp_1_0",
        "sources": [f"amqp-specs: 1-0/{part}.bare.xml" for part in _PARTS],
        "headers": {"amqp": "414d515000010000", "sasl": "414d515003010000"},
    }
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in (head, *_rows()))


def main() -> None:
    """Write the table."""
    PATH.write_text(text(), encoding="utf-8")
    print(f"{PATH.name}: {len(PATH.read_text(encoding='utf-8').splitlines()) - 1} rows")


if __name__ == "__main__":
    main()
