"""From deliveries to Arrow: one array for each selected column, made when a batch is complete.

No message may keep a batch from being made: a query that dies of a message dies of it again after every
restart. What a column cannot hold is replaced, bytes that are no text by U+FFFD and times out of range by
null, and the column `_error` says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import pyarrow as pa

from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.base.codec import WireError
from fakeamqp.spark.rows.columns import DIGEST, Column, arrow_schema
from fakeamqp.spark.rows.headers import LAST_SECOND, as_text, replaced
from fakeamqp.spark.rows.identity import content_digest

# More rows, or rows of more bytes, should not be in the memory of a task at once.
_ENOUGH_ROWS, _ENOUGH_BYTES = 10_000, 8 << 20

_reader = cache(BasicProperties.reader)
_PROPERTIES = [name for name, _ in BasicProperties.LAYOUT]
# The flag of the message id in the second byte of a property list.
_MESSAGE_ID = 0x80


class DeliveredRow(NamedTuple):
    """One message as it was delivered, and its origin.

    `tag`, `redelivered`, `route`, `properties` and `body` are those of `wire.channel.Receive`.
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
    def size(self) -> int:
        """The bytes of its body and its properties."""
        return len(self.body) + len(self.properties)


def fill_a_batch(rows: int, size: int) -> bool:
    """Whether so many rows, with so many bytes, are as large as a record batch should be."""
    return rows >= _ENOUGH_ROWS or size >= _ENOUGH_BYTES


def record_batch(messages: Sequence[DeliveredRow], columns: Iterable[Column]) -> pa.RecordBatch:
    """The messages as a record batch of exactly these columns, in their order."""
    schema = arrow_schema(columns)
    batch = _Batch(messages, schema)
    # `_error` is the last to be made, because it tells of the others.
    arrays = {
        field.name: batch.array(field) for field in sorted(schema, key=lambda each: each.name == "_error")
    }
    return pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


class _Batch:
    """Messages by field and property, and notes of what cannot be read, by row."""

    def __init__(self, messages: Sequence[DeliveredRow], schema: pa.Schema) -> None:
        self._rows = len(messages)
        self._notes: defaultdict[int, list[str]] = defaultdict(list)
        self._fields = _by_name(DeliveredRow._fields, messages)
        names = {field.name for field in schema}
        if "properties" in names:
            names.update(field.name for field in schema.field("properties").type)
        self._properties = self._read([name for name in _PROPERTIES if name in names])

    def _read(self, names: Sequence[str]) -> dict[str, Sequence[Any]]:
        """The values of some properties. A malformed property list has none."""
        if not names:
            return {}
        read, none = _reader(*names), (None,) * len(names)
        rows = []
        for row, octets in enumerate(self._fields["properties"]):
            try:
                rows.append(read(octets))
            except WireError as error:
                rows.append(none)
                self._notes[row].append(str(error))
        return _by_name(names, rows)

    def array(self, column: pa.Field) -> pa.Array:
        """The values of a column."""
        name, kind = column.name, column.type
        if name == "headers":
            read = partial(as_text, as_json=kind == pa.string())
            return self._each(self._properties[name], read, kind)
        if name == "properties":
            arrays = [self._property(field.name, field.type) for field in kind]
            return pa.StructArray.from_arrays(arrays, fields=list(kind))
        if name in self._properties:
            return self._property(name, kind)
        if name in ("exchange", "routing_key"):
            return self._each(self._fields["route"], partial(_routed, name), kind)
        if name == "_error":
            return self._errors(kind)
        if name == DIGEST.name:
            contents = zip(self._fields["properties"], self._fields["body"], strict=True)
            return pa.array([content_digest(*each) if _has_id(each[0]) else None for each in contents], kind)
        return pa.array(self._fields["body" if name == "value" else name], kind)

    def _property(self, name: str, kind: pa.DataType) -> pa.Array:
        values = list(self._properties[name])
        if pa.types.is_timestamp(kind):
            for row, seconds in enumerate(values):
                if seconds is not None and seconds > LAST_SECOND:
                    self._notes[row].append(f"{name} is a time after the year 9999: {seconds} s since 1970")
                    values[row] = None
            return pa.array(values, pa.timestamp("s", kind.tz)).cast(kind)
        try:
            return pa.array(values, kind)
        except UnicodeEncodeError:
            texts = [value and _text(name, value, self._notes[row]) for row, value in enumerate(values)]
            return pa.array(texts, kind)

    def _each(
        self, values: Sequence[Any], make: Callable[[bytes, list[str]], Any], kind: pa.DataType
    ) -> pa.Array:
        """What `make` makes of each value; equal ones are read once."""
        places: dict[Any, int] = {}
        indices = [places.setdefault(value, len(places)) for value in values]
        made: list[Any] = []
        notes: list[str] = []
        noted = {}
        for value in places:
            made.append(None if value is None else make(value, notes))
            if notes:
                noted[value], notes = notes, []
        if noted:
            for row, value in enumerate(values):
                self._notes[row] += noted.get(value, ())
        return pa.array(made, kind).take(pa.array(indices, pa.int32()))

    def _errors(self, kind: pa.DataType) -> pa.Array:
        errors: list[Any] = [None] * self._rows
        for row, notes in self._notes.items():
            if notes:
                reason = "; ".join(dict.fromkeys(notes))
                errors[row] = {"reason": reason, "octets": self._fields["properties"][row]}
        return pa.array(errors, kind)


def _has_id(properties: bytes) -> bool:
    return len(properties) > 1 and bool(properties[1] & _MESSAGE_ID)


def _by_name(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, Sequence[Any]]:
    """The columns of some rows."""
    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return dict(zip(names, columns, strict=True))


def _routed(name: str, route: bytes, notes: list[str]) -> str:
    """The exchange or the routing key of a route."""
    middle = 1 + route[0]
    octets = route[1:middle] if name == "exchange" else route[middle + 1 :]
    return _text(name, octets.decode("utf-8", "surrogateescape"), notes)


def _text(name: str, text: str, notes: list[str]) -> str:
    found = replaced(text)
    if found != text:
        octets = text.encode("utf-8", "surrogateescape")
        notes.append(f"{name} is not UTF-8: {octets.hex()} (hexadecimal)")
    return found
