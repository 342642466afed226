"""From deliveries to Arrow: one array for each selected column, made when a batch is complete.

No message may keep a batch from being made: a query that dies of a message dies of it again after every
restart. What a column cannot hold is replaced, octets that are no text by U+FFFD and times out of range by
null, and the column `_error` says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from fakeamqp.spark.columns import Column, arrow_schema
from fakeamqp.spark.header_tables import LAST_SECOND, as_json, as_map
from fakeamqp.spark.property_lists import NAMES, cut


class DeliveredRow(NamedTuple):
    """One message as it was delivered, and its origin.

    `tag`, `redelivered`, `route`, `properties` and `body` are those of `fakeamqp.spark.incoming.Receive`.
    `offset` is the message's place in the queue's snapshot, the spool or the stream; `received_at` is in
    microseconds since 1970.
    """

    tag: int
    redelivered: bool
    route: bytes
    properties: bytes
    body: bytes
    queue: str
    offset: int
    received_at: int

    @property
    def octets(self) -> int:
        """The size of what is kept of it, in bytes."""
        return len(self.body) + len(self.properties)


def record_batch(messages: Sequence[DeliveredRow], columns: Iterable[Column]) -> pa.RecordBatch:
    """The messages as a record batch of exactly these columns, in their order."""
    schema = arrow_schema(columns)
    batch = _Batch(messages)
    # `_error` is the last to be made, because it tells of the others.
    arrays = {
        field.name: batch.array(field) for field in sorted(schema, key=lambda each: each.name == "_error")
    }
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


class _Batch:
    """Messages by field, and notes of what cannot be read, by row."""

    def __init__(self, messages: Sequence[DeliveredRow]) -> None:
        self._rows = len(messages)
        self._notes: defaultdict[int, list[str]] = defaultdict(list)
        fields = zip(*messages, strict=True) if messages else ((),) * len(DeliveredRow._fields)
        self._fields: dict[str, Sequence[Any]] = dict(zip(DeliveredRow._fields, fields, strict=True))

    def array(self, column: pa.Field) -> pa.Array:
        """The values of a column."""
        name, kind = column.name, column.type
        if name == "headers":
            return self._headers_as_json() if kind == pa.string() else self._headers_as_map()
        if name == "properties":
            arrays = [self._property(field.name, field.type) for field in kind]
            return pa.StructArray.from_arrays(arrays, fields=list(kind))
        if name in NAMES:
            return self._property(name, kind)
        if name in ("exchange", "routing_key"):
            return self._texts([route[name] for route in self._routes], name)
        if name == "_error":
            return self._errors(kind)
        return pa.array(self._fields[_FIELDS.get(name, name)], kind)

    @cached_property
    def _routes(self) -> list[dict[str, bytes]]:
        known = {route: _route(route) for route in set(self._fields["route"])}
        return [known[route] for route in self._fields["route"]]

    @cached_property
    def _properties(self) -> dict[str, Sequence[Any]]:
        rows = []
        for number, octets in enumerate(self._fields["properties"]):
            row, problem = cut(octets)
            rows.append(row)
            if problem is not None:
                self._notes[number].append(problem)
        columns = zip(*rows, strict=True) if rows else ((),) * len(NAMES)
        return dict(zip(NAMES, columns, strict=True))

    def _property(self, name: str, kind: pa.DataType) -> pa.Array:
        values = self._properties[name]
        if kind == pa.string():
            return self._texts(values, name)
        if pa.types.is_timestamp(kind):
            values = [self._microseconds(row, seconds) for row, seconds in enumerate(values)]
        return pa.array(values, kind)

    def _microseconds(self, row: int, seconds: int | None) -> int | None:
        if seconds is not None and seconds > LAST_SECOND:
            self._notes[row].append(f"timestamp is a time after the year 9999: {seconds} s since 1970")
            return None
        return seconds and seconds * 1_000_000

    def _texts(self, values: Sequence[bytes | None], name: str) -> pa.Array:
        try:
            return pa.array(values, pa.binary()).cast(pa.string())
        except pa.ArrowInvalid:
            return pa.array([self._text(row, value, name) for row, value in enumerate(values)], pa.string())

    def _text(self, row: int, value: bytes | None, name: str) -> str | None:
        if value is None:
            return None
        text = value.decode("utf-8", "replace")
        if text.encode() != value:
            self._notes[row].append(f"{name} is not UTF-8: {value.hex()} (hexadecimal)")
        return text

    def _each_table(self, read: Callable[[bytes, list[str]], Any]) -> list[Any]:
        """What `read` makes of each header table; equal ones are read once."""
        known: dict[bytes | None, tuple[Any, list[str]]] = {None: (None, [])}
        made = []
        for row, table in enumerate(self._properties["headers"]):
            if table not in known:
                notes: list[str] = []
                known[table] = read(table, notes), notes
            value, notes = known[table]
            made.append(value)
            if notes:
                self._notes[row] += notes
        return made

    def _headers_as_map(self) -> pa.Array:
        tables = self._each_table(as_map)
        names: list[str] = []
        values: list[str | None] = []
        ends: list[int | None] = []
        for table in tables:
            ends.append(None if table is None else len(names))
            if table is not None:
                names += table[0]
                values += table[1]
        ends.append(len(names))
        return pa.MapArray.from_arrays(
            pa.array(ends, pa.int32()), pa.array(names, pa.string()), pa.array(values, pa.string())
        )

    def _headers_as_json(self) -> pa.Array:
        return pa.array(self._each_table(as_json), pa.string())

    def _errors(self, kind: pa.DataType) -> pa.Array:
        errors: list[Any] = [None] * self._rows
        for row, notes in self._notes.items():
            errors[row] = {
                "reason": "; ".join(dict.fromkeys(notes)),
                "octets": self._fields["properties"][row],
            }
        return pa.array(errors, kind)


def _route(octets: bytes) -> dict[str, bytes]:
    """The exchange and the routing key of a delivery, which follow one another as short strings."""
    middle = 1 + octets[0]
    return {"exchange": octets[1:middle], "routing_key": octets[middle + 1 :]}


_FIELDS = {"value": "body"}
