"""Mutants of the declarations: does the comparison with the golden tables find every one?

A mutant is one change of one record, made in memory: two fields change places, a field gets a wider type (or
another one, where nothing is wider), or a field is gone. The comparison has to fail for the golden row of
that record. Type mutants exchange two types of one width: their codes in the maps of 0-10, their tags in the
field tables of the others.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any, NamedTuple

from compat_tests.golden import tables
from fakeamqp.errors import FakeAMQPError
from fakeamqp.protocols.amqp_0_9_1.codec import fields as wire, method, properties
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.record import Field
from fakeamqp.protocols.amqp_0_10.codec.codec import build
from fakeamqp.protocols.amqp_0_10.codec.structs import Packed
from fakeamqp.protocols.amqp_0_10.codec.types import SCALARS

__all__ = ["PROTOCOLS", "Mutant", "TypeMutant", "all_mutants", "is_killed", "is_type_killed", "type_mutants"]

PROTOCOLS = ("0-9-1", "0-9", "0-10")

_WIDER: dict[str, Any] = {
    "bit": wire.NumberType("octet", "B"),
    "octet": wire.NumberType("short", "H"),
    "short": wire.NumberType("long", "I"),
    "long": wire.NumberType("longlong", "Q"),
    "longlong": wire.NumberType("long", "I"),  # Nothing is wider.
    "timestamp": wire.NumberType("long", "I"),
    "shortstr": wire.LongStringType(),
    "longstr": wire.ShortStringType(),
    "table": wire.LongStringType(),
    "content": wire.LongStringType(),
}
_WIDER_0_10 = {
    "bit": "uint8",
    "uint8": "uint16",
    "uint16": "uint32",
    "uint32": "uint64",
    "uint64": "uint32",
    "datetime": "uint32",
    "sequence-no": "uint64",
    "str8": "str16",
    "str16": "str8",
    "vbin8": "vbin16",
    "vbin16": "vbin32",
    "vbin32": "vbin16",
    "uuid": "vbin16",
    "map": "array",
    "array": "map",
    "struct32": "vbin32",
    "sequence-set": "vbin16",
    "byte-ranges": "sequence-set",
    "struct:dtx.xid": "struct:message.reply-to",
    "struct:message.reply-to": "struct:dtx.xid",
    "array:session.command-fragment": "array",
}

#: What a codec with a wrong layout does: wrong octets or values, or an error of the codec or of Python.
_KILLED = (
    *(AssertionError, AttributeError, FakeAMQPError, IndexError, KeyError, OverflowError, TypeError),
    *(ValueError, struct.error),
)


class Mutant(NamedTuple):
    """A change of a record: `fields` are those that it has instead of its own."""

    protocol: str
    name: str
    change: str
    row: tables.Row
    record: type[Any]
    fields: tuple[Any, ...]

    def __str__(self) -> str:
        return f"{self.protocol} {self.name}: {self.change}"


def all_mutants(protocol: str) -> Iterator[Mutant]:
    """Every change of every field of a protocol."""
    for row in tables.rows(protocol):
        if tables.kind_of(row) != "record":
            continue
        record = tables.record(protocol, row)
        name = row["name"] + (" properties" if row["record"] == "properties" else "")
        for change, fields in _changes(record):
            yield Mutant(protocol, name, change, row, record, fields)


def _changes(record: type[Any]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    fields = list(record.FIELDS)
    for first, second in combinations(range(len(fields)), 2):
        changed = fields.copy()
        changed[first], changed[second] = changed[second], changed[first]
        yield f"swap {fields[first][0]} and {fields[second][0]}", tuple(changed)
    for place, (name, kind) in enumerate(fields):
        wider = _wider(record, name, kind)
        yield f"widen {name}", (*fields[:place], wider, *fields[place + 1 :])
        yield f"drop {name}", (*fields[:place], *fields[place + 1 :])


def _wider(record: type[Any], name: str, kind: Any) -> Any:
    if issubclass(record, Packed):
        return name, _WIDER_0_10[kind]
    return Field(name, _WIDER[kind.name])


def is_killed(mutant: Mutant) -> bool:
    """Whether the comparison fails with the record changed."""
    with _changed(mutant.record, mutant.fields):
        return not _passes(mutant.protocol, [mutant.row])


def _passes(protocol: str, rows: list[tables.Row]) -> bool:
    try:
        for row in rows:
            tables.check(protocol, row)
    except _KILLED:
        return False
    return True


class TypeMutant(NamedTuple):
    """Two types that have changed places: the keys of two entries in `register`."""

    protocol: str
    name: str
    register: dict[int, Any]
    first: int
    second: int

    def __str__(self) -> str:
        return f"{self.protocol} {self.name}: {self.first:#x} for {self.second:#x}"


def type_mutants() -> Iterator[TypeMutant]:
    """Every exchange of two types that have the same width and are read differently."""
    for first, second in combinations(SCALARS.values(), 2):
        if (first.width, first.prefix) == (second.width, second.prefix):
            yield TypeMutant("0-10", "scalars", SCALARS, first.code, second.code)
    for protocol, names in (
        ("0-9-1", ("rabbitmq", "published-0-9-1")),
        ("0-9", ("published-0-9",)),
    ):
        for name in names:
            numbers: Any = tables.GRAMMARS[name].numbers
            for one, other in combinations(numbers, 2):
                readers = numbers[one], numbers[other]
                formats = {reader.__self__.format for reader, _ in readers}
                if len({size for _, size in readers}) == 1 and len(formats) == 2:
                    yield TypeMutant(protocol, f"{name} tags", numbers, one, other)


def is_type_killed(mutant: TypeMutant) -> bool:
    """Whether the comparison of maps or tables fails with the types exchanged."""
    register, one, other = mutant.register, mutant.first, mutant.second
    rows = [row for row in tables.rows(mutant.protocol) if tables.kind_of(row) in ("type", "table")]
    register[one], register[other] = register[other], register[one]
    try:
        return not _passes(mutant.protocol, rows)
    finally:
        register[one], register[other] = register[other], register[one]


@contextmanager
def _changed(record: type[Any], fields: tuple[Any, ...]) -> Iterator[None]:
    """The record with other fields; afterwards all is as before."""
    compiled = ("encode", "decode")
    changes: dict[str, Any] = {"FIELDS": fields}
    if not issubclass(record, Packed):
        changes["LAYOUT"] = tuple((field.name, field.type.name) for field in fields)
    assert record.FIELDS is not None  # Now 0-10 has worked out what the annotations say.
    before = {name: vars(record).get(name) for name in (*changes, *compiled)}
    try:
        for name, value in changes.items():
            setattr(record, name, value)
        if issubclass(record, Packed):
            for name in compiled:
                build(record, name)
        else:
            module = method if issubclass(record, Method) else properties
            record.encode = module._compile_encode(record)
            record.decode = module._compile_decode(record)
        yield
    finally:
        for name, kept in before.items():
            if kept is None:
                delattr(record, name)
            else:
                setattr(record, name, kept)
