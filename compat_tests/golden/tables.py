"""The golden tables, and how the codec is compared with them: in both directions, octet for octet.

`check` raises AssertionError, or the codec's own error, where the codec makes other octets of a row's values
or reads other values from its octets.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

from compat_tests.golden.make import FOLDER
from compat_tests.golden.values import cases
from fakeamqp.dialects import dialect_named
from fakeamqp.protocols.amqp_0_9.codec import (
    contents,
    methods as methods_0_9,
    version_0_8,
)
from fakeamqp.protocols.amqp_0_9.codec.bodies import Body
from fakeamqp.protocols.amqp_0_9.codec.requests import (
    Request,
    Response,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from fakeamqp.protocols.amqp_0_9_1.codec import (
    methods as methods_0_9_1,
    tables as field_tables,
)
from fakeamqp.protocols.amqp_0_9_1.codec.frames import HEARTBEAT_FRAME, content_frames, frame, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.record import fits
from fakeamqp.protocols.amqp_0_10.codec import commands, controls, frames, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import Assembler
from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet
from fakeamqp.protocols.amqp_0_10.codec.structs import NESTED
from fakeamqp.protocols.amqp_0_10.codec.types import (
    Array,
    List,
    Map,
    encode_array,
    encode_map,
    read_array,
    read_map,
)
from fakeamqp.protocols.amqp_0_10.dialect import frames as framing
from fakeamqp.timestamps import Timestamp

__all__ = ["NOT_SPOKEN", "Row", "all_rows", "check", "head", "kind_of", "python_table", "record", "rows"]

Row = dict[str, Any]

METHODS = {
    "0-8": version_0_8.METHODS,
    "0-9": methods_0_9.METHODS,
    "0-9-1": methods_0_9_1.METHODS,
}
GRAMMARS = {
    "rabbitmq": field_tables.RABBITMQ,
    "published-0-9-1": field_tables.PUBLISHED,
    "published-0-9": field_tables.PUBLISHED_0_9,
}
#: What is published and the broker does not speak: nobody implements the class, and nobody sends the method.
NOT_SPOKEN = {"0-8": ("test.", "channel.alert")}
#: A class of its own has the header of a session nowhere: every command reads and writes it.
NO_CLASS = {"0-10": ("session.header",)}
#: Records with another name here: Qpid's answer to basic.recover-sync is called so in 0-9 only.
_NAMED = {("0-8", "basic.recover-ok"): "basic.recover-sync-ok"}
#: Fields with another name here.
_RENAMED = {"nowait": "no-wait", "message.append.bytes": "octets", "basic.reserved": "cluster-id"}


@cache
def _read(protocol: str) -> tuple[Row, ...]:
    text = (FOLDER / f"amqp-{protocol}.jsonl").read_text(encoding="utf-8")
    return tuple(map(json.loads, text.splitlines()))


def head(protocol: str) -> Row:
    """What the table of a protocol says of itself."""
    return _read(protocol)[0]


def all_rows(protocol: str) -> list[Row]:
    """The rows of a protocol."""
    return list(_read(protocol)[1:])


def rows(protocol: str) -> list[Row]:
    """The rows of a protocol that the broker speaks."""
    left_out = (*NOT_SPOKEN.get(protocol, ()), *NO_CLASS.get(protocol, ()))
    return [row for row in all_rows(protocol) if not row.get("name", "").startswith(left_out or "\0")]


def kind_of(row: Row) -> str:
    """The first key of a row says what it is."""
    return next(iter(row))


def record(protocol: str, row: Row) -> type[Any]:
    """The class of a record."""
    if protocol != "0-10":
        if row["record"] == "method":
            return METHODS[protocol][row["major"] << 16 | row["minor"]]
        return contents.PROPERTIES[row["major"]]
    if row["record"] == "struct":
        return NESTED[row["name"]]
    of_kind: dict[int, type[Any]] = (
        controls.CONTROLS if row["record"] == "control" else commands.COMMANDS  # type: ignore[assignment]
    )
    return of_kind[row["major"] << 8 | row["minor"]]


def check(protocol: str, row: Row) -> None:
    """Raise an error where the codec and the row differ."""
    _CHECKS[kind_of(row)](protocol, row)


def exactly(found: object, expected: object) -> bool:
    """Equal values of equal types, nested ones too; a class of containers may be one of its own."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(expected)
            and all(exactly(found[name], value) for name, value in expected.items())
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(exactly(one, other) for one, other in zip(found, expected, strict=True))
        )
    return type(found) is type(expected) and found == expected


def spelled(protocol: str, owner: str, name: str) -> str:
    """The name of a field in Python."""
    if protocol != "0-10":
        name = _RENAMED.get(f"{owner}.{name}", _RENAMED.get(name, name))
    name = name.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


# --- records -----------------------------------------------------------------------------------------------


def _check_record(protocol: str, row: Row) -> None:
    kind = record(protocol, row)
    name = row["name"] + (" properties" if row["record"] == "properties" else "")
    assert _NAMED.get((protocol, name), name) == kind.NAME
    of_family = protocol != "0-10"
    named = {spelled(protocol, row["name"], name): (of, value) for name, of, value in row["fields"]}
    optional = row["record"] != "method" and row["name"] != "session.command-fragment"
    found = cases(row["record"], named, optional=optional)
    assert len(found) + (row["record"] == "command") == len(row["octets"])
    spelt = {name: f"only {spelled(protocol, row['name'], name)}" for name, _, _ in row["fields"]}
    convert = _family_value if of_family else _value_0_10
    for case, text in row["octets"].items():
        octets = bytes.fromhex(text)
        values = found["all" if case == "sync" else spelt.get(case.removeprefix("only "), case)]
        values = {
            name: None if value is None else convert(named[name][0], value) for name, value in values.items()
        }
        if row["record"] == "properties":  # All of them are optional: a bit would be as well.
            values = {name: None if value is False else value for name, value in values.items()}
        made = kind(**values)
        sync = (case == "sync",) if row["record"] == "command" else ()
        assert made.encode(*sync) == octets, (case, made.encode(*sync).hex())
        for name, value in values.items():
            _check_field(_decoded(protocol, kind, row, octets, case), name, value)


def _decoded(protocol: str, kind: type[Any], row: Row, octets: bytes, case: str) -> Any:
    if row["record"] == "method":
        # In 0-8 the table of basic.consume may be missing, which `fits` is never asked about.
        assert protocol == "0-8" or fits(kind.FIELDS, octets, 4)
        return kind.decode(octets, field_tables.RABBITMQ)
    if row["record"] == "properties":
        return kind.decode(octets, 0, field_tables.RABBITMQ)
    if row["record"] == "control":
        return controls.decode(octets)
    if row["record"] == "command":
        made, sync = commands.decode(octets)
        assert sync is (case == "sync")
        return made
    return kind.decode(octets)


def _check_field(made: Any, name: str, value: Any) -> None:
    found = getattr(made, name)
    assert exactly(found, value), (name, found, value)


def _family_value(kind: str, value: Any) -> Any:
    if kind == "longstr":
        return bytes.fromhex(value)
    if kind == "content":
        return Body(bytes.fromhex(value[1]), value[0])
    return python_table(value) if kind == "table" else value


def python_table(fields: list[Any]) -> dict[str, Any]:
    """The fields of a table as the codec has them."""
    return {name: _tagged(tag, value) for name, tag, value in fields}


def _tagged(tag: str, value: Any) -> Any:
    if tag == "F":
        return python_table(value)
    if tag == "A":
        return [_tagged(*item) for item in value]
    if tag == "D":
        return Decimal(value[1]).scaleb(-value[0])
    if tag == "x":
        return bytes.fromhex(value)
    return Timestamp(value) if tag == "T" else value


def _value_0_10(kind: str, value: Any) -> Any:
    """A value of a type as the codec has it."""
    what, _, name = kind.partition(":")
    if what == "struct":
        return _struct(name, value)
    if name:
        return [_struct(name, each) for each in value]
    if kind.startswith(("vbin", "bin")):
        return bytes.fromhex(value)
    convert: dict[str, Callable[[Any], Any]] = {
        "uuid": lambda text: UUID(hex=text),
        "map": lambda entries: {key: _typed(of, item) for key, of, item in entries},
        "list": lambda items: [_typed(*item) for item in items],
        "array": lambda array: Array.of(array[0], [_typed(array[0], item) for item in array[1]]),
        "struct32": lambda struct: _struct(*struct),
        "sequence-set": lambda ranges: SequenceSet(map(tuple, ranges)),
        "byte-ranges": lambda ranges: ByteRanges(map(tuple, ranges)),
    }
    return convert[kind](value) if kind in convert else value


def _typed(kind: str, value: Any) -> Any:
    """A value behind its type code: dates and decimals are of classes of their own there."""
    if kind == "datetime":
        return Timestamp(value)
    if kind.startswith("dec"):
        return Decimal(value[1]).scaleb(-value[0])
    return _value_0_10(kind, value)


def _struct(name: str, values: list[Any]) -> Any:
    kind = NESTED[name]
    return kind(
        **{
            field: None if value is None else _value_0_10(of, value)
            for (field, of), value in zip(_fields_of(name), values, strict=True)
        }
    )


@cache
def _fields_of(struct: str) -> list[tuple[str, str]]:
    """Name and type of the fields of a struct, from its golden row: the codec is not asked."""
    row = next(row for row in all_rows("0-10") if row.get("name") == struct)
    return [(spelled("0-10", struct, name), of) for name, of, _ in row["fields"]]


# --- frames and contents -----------------------------------------------------------------------------------


def _check_frame(protocol: str, row: Row) -> None:
    octets, payload = bytes.fromhex(row["octets"]), bytes.fromhex(row["payload"])
    kind, channel = row["frame"], row["channel"]
    assert frame(kind, channel, payload) == octets
    if kind == 1:
        assert method_frame(channel, payload) == octets
    if kind == 8:
        assert octets == HEARTBEAT_FRAME
    reader = dialect_named(protocol)
    assert reader.may_begin(octets[0])
    assert reader.length(octets[: reader.header_size]) == len(octets)
    assert reader.cut(octets * 2) == [(kind, channel, payload, len(payload))] * 2


def _child(row: Row) -> contents.Content:
    properties, body = bytes.fromhex(row["properties"]), bytes.fromhex(row["body"])
    return contents.Content(row["content"], properties, body, tuple(map(_child, row["children"])))


def _check_content(protocol: str, row: Row) -> None:
    octets, content = bytes.fromhex(row["octets"]), _child(row)
    arguments = (row["channel"], content.class_id, content.properties, content.body, row["limit"])
    assert b"".join(contents.content_frames(*arguments, content.children)) == octets
    if not content.children:
        assert b"".join(content_frames(*arguments)) == octets
    assembler = contents.ContentAssembler()
    found = None
    for kind, channel, payload, _ in dialect_named(protocol).cut(octets):
        assert channel == row["channel"]
        assert found is None
        found = assembler.add_header(payload) if kind == 2 else assembler.add_body(payload)
    assert found == content


def _check_request(protocol: str, row: Row) -> None:
    one, two, reserved = row["request"]
    octets, request = bytes.fromhex(row["octets"]), Request(one, two, bytes.fromhex(row["method"]), reserved)
    assert encode_request(request) == octets
    assert decode_request(octets) == request


def _check_response(protocol: str, row: Row) -> None:
    octets, response = bytes.fromhex(row["octets"]), Response(*row["response"], bytes.fromhex(row["method"]))
    assert encode_response(response) == octets
    assert decode_response(octets) == response


def _check_table(protocol: str, row: Row) -> None:
    octets, fields = bytes.fromhex(row["octets"]), python_table(row["table"])
    for name in row["grammars"]:
        found, end = GRAMMARS[name].decode(b"..." + octets + b"more", 3, len(octets) + 3)
        assert end == len(octets) + 3
        assert exactly(found, fields), (name, found)
    if row["written"]:
        assert field_tables.encode_table(fields) == octets


# --- 0-10 --------------------------------------------------------------------------------------------------


def _check_frames(protocol: str, row: Row) -> None:
    octets, channel = bytes.fromhex(row["octets"]), row["channel"]
    segments = [(kind, bytes.fromhex(payload)) for kind, payload in row["frames"]]
    assert frames.encode_frames(channel, segments, row["limit"]) == octets
    if segments[0][0] == 0:
        assert frames.control_frame(channel, segments[0][1], row["limit"]) == octets
    assembler = Assembler()
    found = None
    for kind, number, payload, _ in dialect_named("0-10").cut(octets):
        assert number == channel
        assert found is None
        assert not kind & framing.OFF_TRACK
        found = assembler.add(kind >> 8, kind & framing.TYPE_MASK, payload)
    assert found is not None
    assert found.is_command is (segments[0][0] == 1)
    parts = {0: found.first, 1: found.first, 2: found.header, 3: found.body}
    assert all(parts[kind] == payload for kind, payload in segments)
    assert (found.header is None) is (2 not in dict(segments))
    assert dialect_named("0-10").length(octets[:12]) == int.from_bytes(octets[2:4], "big")


def _check_header(protocol: str, row: Row) -> None:
    octets, expected = bytes.fromhex(row["octets"]), tuple(_struct(*each) for each in row["header"])
    assert structs.encode_header(expected) == octets
    assert structs.decode_header(octets) == expected


def _check_type(protocol: str, row: Row) -> None:
    octets, array = bytes.fromhex(row["octets"]), bytes.fromhex(row["array"])
    value = _typed(row["type"], row["value"])
    made = Map.of_entries([("key", value, row["code"]), ("next", 7, 2)])
    assert made.octets == octets
    found, end = read_map(octets, 0)
    assert end == len(octets)
    _check_containers(found["key"], value)
    assert found["next"] == 7
    assert encode_map(found) == octets
    assert encode_array(Array.of(row["type"], [value, value])) == array
    items, end = read_array(array, 0)
    assert end == len(array)
    assert items.code == row["code"]
    for item in items:
        _check_containers(item, value)
    if row["type"] in _NATURAL:
        # Behind size and count: all but the entry "next", whose number would be an int64.
        assert encode_map({"key": value})[8:] == octets[8:-7]


#: The types that a value of Python is written as where nothing else is asked for.
_NATURAL = ("boolean", "int64", "double", "datetime", "uuid", "str16", "vbin32", "dec32", "dec64", "void")


def _check_containers(found: Any, value: Any) -> None:
    assert exactly(found, value), (found, value)
    for kind in (Map, List, Array):
        if isinstance(found, kind):
            assert found.octets is not None


_CHECKS: dict[str, Callable[[str, Row], None]] = {
    "record": _check_record,
    "frame": _check_frame,
    "content": _check_content,
    "request": _check_request,
    "response": _check_response,
    "table": _check_table,
    "frames": _check_frames,
    "header": _check_header,
    "type": _check_type,
}
