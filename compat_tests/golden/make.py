"""Writes the golden tables: `python -m compat_tests.golden.make`. Debian's package `amqp-specs` is needed.

A table is a file of JSON lines. The first line says what it was made from. The others are rows:

| Row has | It is |
|---|---|
| record | a method, content properties, a control, a command or a struct |
| frame | a frame of any type |
| content | all frames of one content |
| request, response | the payload of such a frame of 0-9 |
| table | a field table; `grammars` are those that read it so, `written` says that the broker writes it so |
| frames | an assembly of 0-10 in frames |
| header | a header segment of 0-10 |
| type | a map of 0-10 with a value of one type, and an array of that type |

The `fields` of a record are name, type and value (see `values`). Its `octets` are those of each case: all
fields; of the bits of a method, or else of the optional fields, only one; none of these. "sync" is a command
with all fields that is a sync point.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from compat_tests.golden import encoding, published, values
from compat_tests.golden.published import Layout

__all__ = ["FOLDER", "PROTOCOLS", "main", "text_of"]

FOLDER = Path(__file__).parent
PROTOCOLS = tuple(published.SOURCES)

Row = dict[str, Any]

HEADERS = {
    "0-8": "414d515001010800",
    "0-9": "414d515001010009",
    "0-9-1": "414d515000000901",
    "0-10": "414d51500101000a",
}


def text_of(protocol: str) -> str:
    """The whole file of a protocol."""
    rows = _of_0_10() if protocol == "0-10" else _of_family(protocol)
    head = {
        "protocol": protocol,
        "made": "python -m compat_tests.golden.make",
        "sources": [
            "RabbitMQ's published additions" if source == "supplement" else f"amqp-specs: {source}"
            for source in published.SOURCES[protocol]
        ],
        "header": HEADERS[protocol],
    }
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in (head, *rows))


def _row_of(
    layout: Layout, structs: dict[str, Layout], encode: Callable[[dict[str, Any], bool], bytes]
) -> Row:
    """The row of a record; `encode` gets the values of a case, and whether a command is a sync point."""
    found = values.values_of(layout, structs)
    typed = {field.name: (field.type, found[field.name]) for field in layout.fields}
    cases = values.cases(layout.kind, typed, optional=layout.kind == "properties" or layout.pack > 0)
    octets = {case: encode(each, False).hex() for case, each in cases.items()}
    if layout.kind == "command":
        octets["sync"] = encode(cases["all"], True).hex()
    return {
        **{"record": layout.kind, "name": layout.name, "major": layout.major, "minor": layout.minor},
        **{"fields": [[name, *each] for name, each in typed.items()], "octets": octets},
    }


# --- 0-8, 0-9, 0-9-1 ---------------------------------------------------------------------------------------

_FRAME_TYPES = {
    "0-8": (1, 2, 3, 4, 5, 6, 7, 8),
    "0-9": (1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
    "0-9-1": (1, 2, 3, 8),
}
_BODY = bytes(range(0x41, 0x5B))


def _of_family(protocol: str) -> Iterator[Row]:
    layouts = published.layouts(protocol)
    properties: dict[int, bytes] = {}
    for layout in layouts:
        encode = encoding.method if layout.kind == "method" else encoding.properties
        row = _row_of(layout, {}, lambda found, _, layout=layout, encode=encode: encode(layout, found))
        if layout.kind == "properties":
            properties[layout.major or 0] = bytes.fromhex(row["octets"]["all"])
        yield row
    for kind in _FRAME_TYPES[protocol]:
        payload = b"" if kind == 8 else bytes((0x91, 0x92, 0xCE, kind))
        channel = 0 if kind in (7, 8) else 0x8182
        octets = encoding.family_frame(kind, channel, payload)
        yield {"frame": kind, "channel": channel, "payload": payload.hex(), "octets": octets.hex()}
    for class_id, listed in properties.items():
        yield _content(class_id, listed, _BODY, ())
        yield _content(class_id, b"\0\0", b"", ())
    if protocol == "0-9":
        inner = _content(80, properties[80], b"inner", ())
        other = _content(70, properties[70], b"", ())
        yield _content(110, properties[110], _BODY, (inner, _content(60, b"\0\0", b"m", (other,)), other))
        yield from _requests()
    yield from _tables(protocol)


def _content(class_id: int, listed: bytes, body: bytes, children: tuple[Row, ...]) -> Row:
    """The frames of a content on channel 0x0102, with at most ten octets of a body in each."""
    channel, limit = 0x0102, 10
    header = encoding.content_header(class_id, len(children), len(body), listed)
    octets = encoding.family_frame(2, channel, header)
    octets += b"".join(bytes.fromhex(child["octets"]) for child in children)
    for start in range(0, len(body), limit):
        octets += encoding.family_frame(3, channel, body[start : start + limit])
    return {
        **{"content": class_id, "channel": channel, "limit": limit, "properties": listed.hex()},
        **{"body": body.hex(), "children": list(children), "octets": octets.hex()},
    }


def _requests() -> Iterator[Row]:
    """Requests with four reserved octets, as the figure of the text has them, and without, as its grammar."""
    ping = "0014003c"
    numbers = "8182838485868788" + "9192939495969798"
    one, two = 0x8182838485868788, 0x9192939495969798
    yield {"request": [one, two, True], "method": ping, "octets": numbers + "00000000" + ping}
    yield {"request": [one, two, False], "method": ping, "octets": numbers + ping}
    yield {"response": [one, two, 0xA1A2A3A4], "method": ping, "octets": numbers + "a1a2a3a4" + ping}


#: (tag, value, the grammars that read it so, whether the broker writes it so)
_ALL = ("rabbitmq", "published-0-9-1", "published-0-9")
_OWN = ("rabbitmq", "published-0-9")
_TABLE_VALUES: tuple[tuple[str, Any, tuple[str, ...], bool], ...] = (
    ("S", "a long \u00e9 string", _ALL, True),
    ("S", "", _ALL, True),
    ("I", -0x7E7D7C7C, _ALL, True),
    ("I", 0x01020304, _ALL, True),
    ("t", True, _ALL, True),
    ("t", False, _ALL, True),
    ("b", -2, _ALL, False),
    ("B", 0xFE, _ALL, False),
    ("u", 0x8182, _ALL, False),
    ("i", 0x81828384, _ALL, False),
    ("L", -0x7E7D7C7B7A797877, _ALL, False),
    ("l", -0x7E7D7C7B7A797877, _OWN, True),
    ("l", 0x8182838485868788, ("published-0-9-1",), False),
    ("s", -0x7E7D, _OWN, False),
    ("s", "a short one", ("published-0-9-1",), False),
    ("U", -0x7E7D, ("published-0-9-1",), False),
    ("f", -1234.5, _ALL, False),
    ("d", 3.141592653589793, _ALL, True),
    ("D", [3, 0x01020304], _ALL, True),
    ("D", [3, 0x81828384], ("rabbitmq",), True),
    ("D", [3, -0x7E7D7C7C], ("published-0-9-1", "published-0-9"), True),
    ("T", 0x81828384, _ALL, True),
    ("V", None, _ALL, True),
    ("F", [["inner", "S", "value"], ["number", "I", 1]], _ALL, True),
    ("F", [], _ALL, True),
    ("A", [["S", "one"], ["I", 2], ["F", [["a", "V", None]]], ["A", [["t", True]]]], _ALL, True),
    ("A", [], _ALL, True),
    ("x", "00ff8100", _OWN, True),
)


def _tables(protocol: str) -> Iterator[Row]:
    of_protocol = {"0-9-1": {"rabbitmq", "published-0-9-1"}}.get(protocol, {"rabbitmq", "published-0-9"})
    rows = [([["name", tag, value], ["next", "I", 7]], *rest) for tag, value, *rest in _TABLE_VALUES]
    everything = [
        [f"field-{number}", tag, value]
        for number, (tag, value, grammars, written) in enumerate(_TABLE_VALUES)
        if grammars == _ALL and written
    ]
    for fields, grammars, written in [*rows, ([], _ALL, True), (everything, _ALL, True)]:
        readers = [each for each in grammars if each in of_protocol]
        if readers:
            octets = encoding.field_table(fields, published="rabbitmq" not in readers and protocol == "0-9-1")
            yield {"table": fields, "grammars": readers, "written": written, "octets": octets.hex()}


# --- 0-10 --------------------------------------------------------------------------------------------------

_TYPE_VALUES: dict[str, Any] = {
    "bin8": "81",
    "int8": -2,
    "uint8": 0xFE,
    "char": "\u20ac",
    "boolean": True,
    "bin16": "8182",
    "int16": -0x7E7D,
    "uint16": 0x8182,
    "bin32": "81828384",
    "int32": -0x7E7D7C7B,
    "uint32": 0x81828384,
    "float": -1234.5,
    "char-utf32": "\U0001f40d",
    "bin64": "8182838485868788",
    "int64": -0x7E7D7C7B7A797877,
    "uint64": 0x8182838485868788,
    "double": 3.141592653589793,
    "datetime": 0x0182838485868788,
    "bin128": bytes(range(0x80, 0x90)).hex(),
    "uuid": bytes(range(0x80, 0x90)).hex(),
    "bin256": bytes(range(0x80, 0xA0)).hex(),
    "bin512": bytes(range(0x80, 0xC0)).hex(),
    "bin1024": bytes(range(0x80, 0x100)).hex(),
    "vbin8": "00ff81",
    "str8-latin": "\u20ac latin",
    "str8": "\u20ac \u00e9",
    "str8-utf16": "\u20ac \U0001f40d",
    "vbin16": "00ff81",
    "str16-latin": "\u20ac latin",
    "str16": "\u20ac \u00e9",
    "str16-utf16": "\u20ac \U0001f40d",
    "vbin32": "00ff81",
    "map": [["a", "int64", 1], ["b", "map", [["c", "str16", "d"]]]],
    "list": [["int64", 1], ["str16", "two"], ["list", [["void", None]]]],
    "array": ["uint16", [1, 2, 3]],
    "struct32": ["dtx.xid", [0x81828384, "919293", "a1a2"]],
    "bin40": "8182838485",
    "dec32": [3, -0x7E7D7C7B],
    "bin72": "818283848586878889",
    "dec64": [3, -0x7E7D7C7B7A797877],
    "void": None,
    "bit": True,
}


def _of_0_10() -> Iterator[Row]:
    layouts = published.layouts("0-10")
    types = published.types_0_10()
    structs = {each.name: each for each in layouts if each.kind == "struct"}
    encoder = encoding.Encoder010(types, structs)
    full: dict[str, list[Any]] = {}
    for layout in layouts:

        def encode(found: dict[str, Any], sync: bool, layout: Layout = layout) -> bytes:
            listed = [found[field.name] for field in layout.fields]
            if layout.kind == "control":
                return encoder.control(layout, listed)
            if layout.kind == "command":
                return encoder.command(layout, listed, sync)
            return encoder.struct(layout, listed)

        row = _row_of(layout, structs, encode)
        full[layout.name] = [value for _, _, value in row["fields"]]
        yield row
    listed = ("delivery", "fragment", "message")
    entries = [[name, full[name]] for name in (f"message.{each}-properties" for each in listed)]
    header = b"".join(encoder.struct(structs[name], listed) for name, listed in entries)
    yield {"header": entries, "octets": header.hex()}
    yield from _assemblies(header)
    for name, (code, _, _) in types.items():
        if code is None:
            continue
        value = _TYPE_VALUES[name]
        row: Row = {"type": name, "code": code, "value": value}
        row["octets"] = encoder.value("map", [["key", name, value], ["next", "uint8", 7]]).hex()
        row["array"] = encoder.value("array", [name, [value, value]]).hex()
        yield row


def _assemblies(header: bytes) -> Iterator[Row]:
    """A control, a command, and a transfer; each in frames of any size and of at most 32 octets."""
    channel = 0x8182
    control, command = bytes.fromhex("010a0000"), bytes.fromhex("030101000000")
    transfer = bytes.fromhex("040101000000")
    for segments in (
        [(0, control)],
        [(0, control * 9)],
        [(1, command)],
        [(1, transfer), (2, header), (3, _BODY)],
        [(1, transfer), (3, b"")],
    ):
        for limit in (0xFFFF, 32):
            octets = b""
            for number, (kind, payload) in enumerate(segments):
                size = limit - 12
                pieces = [payload[start : start + size] for start in range(0, len(payload), size)] or [b""]
                for place, piece in enumerate(pieces):
                    flags = 8 * (number == 0) + 4 * (number == len(segments) - 1)
                    flags += 2 * (place == 0) + (place == len(pieces) - 1)
                    octets += encoding.frame_0_10(flags, kind, 0 if kind == 0 else 1, channel, piece)
            listed = [[kind, payload.hex()] for kind, payload in segments]
            yield {"frames": listed, "channel": channel, "limit": limit, "octets": octets.hex()}


def main() -> None:
    """Write all tables."""
    for protocol in PROTOCOLS:
        path = FOLDER / f"amqp-{protocol}.jsonl"
        path.write_text(text_of(protocol), encoding="utf-8")
        print(f"{path.name}: {len(path.read_text(encoding='utf-8').splitlines()) - 1} rows")


if __name__ == "__main__":
    main()
