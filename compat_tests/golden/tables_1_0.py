"""The golden table of 1.0, how the codec is compared with it, and mutants that the comparison has to find.

A mutant is one change in memory. Of a composite: two fields change places, a field gets another type, is
gone, is mandatory or multiple where it was not or the other way round, or the descriptor is another one. Of
the types: two encodings change places in reading, or two classes in writing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple
from uuid import UUID

from compat_tests.golden.amqp_1_0 import PATH
from fakeamqp.protocols.amqp_1_0.codec import composites as c, types
from fakeamqp.protocols.amqp_1_0.codec.errors import FieldError
from fakeamqp.protocols.amqp_1_0.codec.frames import frame
from fakeamqp.protocols.amqp_1_0.codec.types import Array, Described, encode_value, read_value, skip_value
from fakeamqp.protocols.amqp_1_0.dialect import DIALECT

__all__ = ["Mutant", "Row", "all_mutants", "check", "is_killed", "kind_of", "python", "rows", "type_mutants"]

Row = dict[str, Any]

_CLASSES: dict[str, Callable[[Any], Any]] = {
    "null": lambda said: said,
    "boolean": bool,
    "ubyte": types.UByte,
    "ushort": types.UShort,
    "uint": types.UInt,
    "ulong": types.ULong,
    "byte": types.Byte,
    "short": types.Short,
    "int": types.Int,
    "long": int,
    "float": types.Float,
    "double": float,
    "decimal32": lambda said: types.Decimal32(bytes.fromhex(said)),
    "decimal64": lambda said: types.Decimal64(bytes.fromhex(said)),
    "decimal128": lambda said: types.Decimal128(bytes.fromhex(said)),
    "char": types.Char,
    "timestamp": types.Milliseconds,
    "uuid": lambda said: UUID(hex=said),
    "binary": bytes.fromhex,
    "string": str,
    "symbol": types.Symbol,
    "list": lambda said: [python(each) for each in said],
    "map": lambda said: {python(key): python(value) for key, value in said},
    "array": lambda said: Array([_CLASSES[said[0]](each) for each in said[1]]),
    "described": lambda said: Described(python(said[0]), python(said[1])),
}


@cache
def all_rows() -> list[Row]:
    """The head and all rows."""
    return [json.loads(line) for line in PATH.read_text(encoding="utf-8").splitlines()]


def rows(kind: str = "") -> list[Row]:
    """All rows, or those of a kind."""
    return [row for row in all_rows()[1:] if kind in ("", kind_of(row))]


def kind_of(row: Row) -> str:
    """What a row is: type, composite, section or frame."""
    return next(iter(row))


def python(value: list[Any] | None) -> Any:
    """A value of the table as the codec has it."""
    return None if value is None else _CLASSES[value[0]](value[1])


def check(row: Row) -> None:
    """Compare in both directions. AssertionError, or an error of the codec, where it differs."""
    _CHECKS[kind_of(row)](row)


def exactly(found: Any, expected: Any) -> bool:
    """Equal values of equal types, nested ones too, in equal order."""
    if type(found) is not type(expected):
        return False
    if isinstance(expected, dict):
        return exactly(list(found), list(expected)) and exactly([*found.values()], [*expected.values()])
    if isinstance(expected, (list, tuple)):
        return len(found) == len(expected) and all(map(exactly, found, expected))
    if isinstance(expected, Described):
        return exactly(found.descriptor, expected.descriptor) and exactly(found.value, expected.value)
    return bool(found == expected)


def _read(octets: bytes, offset: int = 0) -> Any:
    """The value that these octets are, and no more; the same between other octets."""
    value, end = read_value(b"\xff" * 3 + octets + b"\xff", 3 + offset)
    assert end == len(octets) + 3
    assert skip_value(octets, offset) == len(octets)
    return value


_NOT_READ_IN_ARRAYS = ("decimal32", "decimal64", "decimal128")
"""As RabbitMQ (measured on 4.0.5 and 4.3.6)."""


def _check_type(row: Row) -> None:
    octets, expected = bytes.fromhex(row["octets"]), _CLASSES[row["type"]](row["value"])
    found = _read(octets)
    assert exactly(found, expected), (found, expected)
    if row["shortest"]:
        assert encode_value(expected) == octets
    if "array" in row:
        array = bytes.fromhex(row["array"])
        assert encode_value(Array([expected, expected])) == array
        if row["type"] in _NOT_READ_IN_ARRAYS:
            return
        found = _read(array)
        assert exactly(found, Array([expected, expected])), found
        assert found.of is type(expected)


def _check_composite(row: Row) -> None:
    kind = c.COMPOSITES[row["code"]]
    assert c.BY_DESCRIPTOR[row["symbol"]] is kind
    assert (row["composite"], row["code"], row["symbol"]) == (kind.NAME, kind.CODE, kind.DESCRIPTOR)
    named = {name.replace("-", "_"): value for name, _, _, _, value in row["fields"]}
    mandatory = {name for name, _, needed, _, _ in row["fields"] if needed}
    for case, text in row["octets"].items():
        octets = bytes.fromhex(text)
        word, _, which = case.partition(" ")
        present = {
            name: case != "none" and (word not in ("only", "without") or (word == "only") == (name == which))
            for name, _, _, _, _ in row["fields"]
        }
        values = {name: python(named[name]) for name in named if present[name.replace("_", "-")]}
        if case not in ("symbolic", "wide"):
            assert kind(**{name: _given(value) for name, value in values.items()}).encode() == octets, case
        if any(not present[name] for name in mandatory):
            _refuses(octets, kind)
            continue
        found = c.composite_of(_read(octets), kind)
        for name in named:
            _check_field(found, name, values.get(name))


def _given(value: Any) -> Any:
    """A value of a field as the broker gives it: several are a tuple, an error is one."""
    if isinstance(value, Array):
        return tuple(value)
    return c.composite_of(value) if isinstance(value, Described) else value


def _check_field(found: c.Composite, name: str, value: Any) -> None:
    read, expected = getattr(found, name), _given(value)
    assert exactly(read, expected), (name, read, expected)


def _refuses(octets: bytes, kind: type[c.Composite]) -> None:
    try:
        c.composite_of(_read(octets), kind)
    except FieldError:
        return
    raise AssertionError(f"{kind.NAME} lacks a field and is read")


def _check_section(row: Row) -> None:
    octets = bytes.fromhex(row["octets"])
    expected = Described(types.ULong(row["code"]), python(row["value"]))
    assert c.SECTIONS[row["code"]] == (row["section"], row["of"])
    assert row["symbol"] == f"amqp:{row['section']}:{row['of']}"
    assert exactly(_read(octets), expected)
    assert encode_value(expected) == octets


def _check_frame(row: Row) -> None:
    octets, payload = bytes.fromhex(row["octets"]), bytes.fromhex(row["payload"])
    kind, channel = row["frame"], row["channel"]
    assert frame(kind, channel, payload) == octets
    assert DIALECT.length(octets[: DIALECT.header_size]) == len(octets)
    assert DIALECT.cut(octets * 2) == [(kind, channel, payload, len(payload))] * 2


_CHECKS: dict[str, Callable[[Row], None]] = {
    "type": _check_type,
    "composite": _check_composite,
    "section": _check_section,
    "frame": _check_frame,
}


# --- mutants ------------------------------------------------------------------------------------------------

_OTHER = {
    **{"boolean": "ubyte", "ubyte": "ushort", "ushort": "uint", "uint": "ulong", "ulong": "uint"},
    **{"string": "symbol", "symbol": "string", "binary": "string", "timestamp": "ulong", "map": "list"},
    **{"*": "uint", "error": "string"},
}
_KILLED = (AssertionError, AttributeError, KeyError, TypeError, ValueError, OverflowError, types.DecodeError)


class Mutant(NamedTuple):
    """A change of a composite: attributes that its class has instead of its own."""

    row: Row
    change: str
    attributes: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.row['composite']}: {self.change}"


def all_mutants() -> Iterator[Mutant]:
    """Every change of every composite."""
    for row in rows("composite"):
        kind = c.COMPOSITES[row["code"]]
        for change, fields in _changes(kind.FIELDS):
            mandatory = tuple(each for each in fields if each.mandatory)
            nulls = dict.fromkeys(each.attribute for each in fields)
            yield Mutant(row, change, {"FIELDS": fields, "_mandatory": mandatory, "_nulls": nulls})
        yield Mutant(
            row, "code", {"CODE": kind.CODE + 1, "_prefix": b"\0" + types.encode_ulong(kind.CODE + 1)}
        )
        yield Mutant(row, "descriptor", {"DESCRIPTOR": f"{kind.DESCRIPTOR}:"})


def _changes(fields: tuple[c.Field, ...]) -> Iterator[tuple[str, tuple[c.Field, ...]]]:
    for one, other in combinations(range(len(fields)), 2):
        changed = list(fields)
        changed[one], changed[other] = changed[other], changed[one]
        yield f"swap {fields[one].name} and {fields[other].name}", tuple(changed)
    for at, field in enumerate(fields):
        signs = {"[]": field.multiple, "!": field.mandatory}
        yield f"drop {field.name}", (*fields[:at], *fields[at + 1 :])
        for change, kind, flags in (
            ("retype", _OTHER[field.type], signs),
            ("mandatory", field.type, {**signs, "!": not field.mandatory}),
            ("multiple", field.type, {**signs, "[]": not field.multiple}),
        ):
            said = kind + "".join(sign for sign, is_so in flags.items() if is_so)
            yield f"{change} {field.name}", (*fields[:at], c.Field(f"{field.name} {said}"), *fields[at + 1 :])


def is_killed(mutant: Mutant) -> bool:
    """Whether the comparison fails with the composite changed."""
    with _changed(c.COMPOSITES[mutant.row["code"]], mutant.attributes):
        return not _passes([mutant.row])


def _passes(checked: list[Row]) -> bool:
    try:
        for row in checked:
            check(row)
    except _KILLED:
        return False
    return True


@contextmanager
def _changed(kind: type[c.Composite], attributes: dict[str, Any]) -> Iterator[None]:
    before = {name: vars(kind)[name] for name in attributes}
    try:
        for name, value in attributes.items():
            setattr(kind, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(kind, name, value)


class TypeMutant(NamedTuple):
    """Two entries of a register of the codec that have changed places."""

    name: str
    register: Any
    first: Any
    second: Any

    def __str__(self) -> str:
        return f"{self.name}: {self.first!r} for {self.second!r}"


_SAME_IN_ARRAYS = {type(None), bool, types.Array}


def type_mutants() -> Iterator[TypeMutant]:
    """Every exchange of two encodings that are read, and of two classes that are written."""
    registers: dict[str, Any] = {
        "readers": types._READERS,
        "encoders": types._ENCODERS,
        "widest encodings": types._WIDEST,
    }
    for name, register in registers.items():
        keys = types.TYPE_OF_CODE if name == "readers" else register
        spoken = [key for key in keys if key not in (tuple, Described, types.Blank, types.WideBoolean)]
        for one, other in combinations(spoken, 2):
            # Arrays of null keep the octets that came, so their encoder is not seen.
            pair = {one, other}
            if name != "widest encodings" or type(None) not in pair or not pair <= _SAME_IN_ARRAYS:
                yield TypeMutant(name, register, one, other)


def is_type_killed(mutant: TypeMutant) -> bool:
    """Whether the comparison of types fails with the entries exchanged."""
    register, one, other = mutant.register, mutant.first, mutant.second
    register[one], register[other] = register[other], register[one]
    try:
        return not _passes(rows("type"))
    finally:
        register[one], register[other] = register[other], register[one]
