"""Conversion from Arrow to messages: whole columns at a time, directly to encoded properties.

The properties of a message are flags and values. Each column becomes a list of encoded values, with None
where the property is absent. Then the flags and values of each row are joined, in the order of AMQP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fakeamqp.spark.errors import PublishError
from fakeamqp.spark.sink.arrays import is_text, microseconds, octets
from fakeamqp.spark.sink.destinations import ON_PURPOSE
from fakeamqp.spark.sink.headers import header_tables

if TYPE_CHECKING:
    from fakeamqp.spark.options import WriteOptions
    from fakeamqp.spark.origin import Origin
    from fakeamqp.spark.sink.columns import Path

#: Exchange, routing key, properties (flags and values, as in a content header) and body.
Message: TypeAlias = tuple[str, str, bytes, bytes]

_OCTETS = [bytes([number]) for number in range(256)]

# In the order of AMQP 0-9-1. The values have the same order.
_FLAGS = {
    "content_type": 1 << 15,
    "content_encoding": 1 << 14,
    "headers": 1 << 13,
    "delivery_mode": 1 << 12,
    "priority": 1 << 11,
    "correlation_id": 1 << 10,
    "reply_to": 1 << 9,
    "expiration": 1 << 8,
    "message_id": 1 << 7,
    "timestamp": 1 << 6,
    "type": 1 << 5,
    "user_id": 1 << 4,
    "app_id": 1 << 3,
}
_RANGES = {"delivery_mode": (1, 2), "priority": (0, 255)}


class Encoder:
    """Converts the record batches of one task to messages.

    Args:
        columns: the places of each column, from `find_columns`.
        options: the options of the writer.
        origin: the prefix of deterministic message ids; the number of the row in the task follows it.
        read: what the rows were read from, if it is on the same broker; no row goes there.
    """

    def __init__(
        self,
        columns: Mapping[str, tuple[Path, ...]],
        options: WriteOptions,
        origin: str,
        read: Origin | None = None,
    ) -> None:
        self._columns = columns
        self._options = options
        self._origin = origin
        self._read = read

    def messages(self, batch: pa.RecordBatch, first: int) -> list[Message]:
        """The messages of a batch, in the order of its rows.

        Args:
            batch: the rows.
            first: the number of its first row in the task.

        Raises:
            PublishError: a row cannot be converted. Then no message of the batch is published.
        """
        rows = _Rows(batch, self._columns, first)
        exchanges = rows.short_texts("exchange", self._options.exchange or "")
        keys = rows.short_texts("routing_key", self._options.routing_key or "")
        if self._read:
            _check_not_fed(self._read, list(zip(exchanges, keys, strict=True)), first)
        return list(zip(exchanges, keys, self._properties(rows), rows.bodies(), strict=True))

    def _properties(self, rows: _Rows) -> list[bytes]:
        flags = 0
        varying: list[Sequence[int]] = []
        values: list[Sequence[bytes]] = []
        for name, flag in _FLAGS.items():
            encoded = self._values(name, rows)
            if encoded is None:
                continue
            if None in encoded:
                varying.append([0 if value is None else flag for value in encoded])
                values.append([value or b"" for value in encoded])
            else:
                flags |= flag
                values.append(encoded)  # type: ignore[arg-type]
        heads = [flags.to_bytes(2, "big")] * rows.count
        if varying:
            heads = [(flags + sum(each)).to_bytes(2, "big") for each in zip(*varying, strict=True)]
        return list(map(b"".join, zip(heads, *values, strict=True)))

    def _values(self, name: str, rows: _Rows) -> Sequence[bytes | None] | None:
        """The encoded values of a property, with None where a row has none; None if no row has one."""
        if name == "headers":
            return rows.headers()
        if name == "timestamp":
            return rows.timestamps()
        if name == "message_id":
            return self._message_ids(rows)
        if name in _RANGES:
            default = None
            if name == "delivery_mode":
                default = _OCTETS[2 if self._options.persistent else 1]
            return rows.numbers(name, *_RANGES[name], default)
        return rows.short_strings(name)

    def _message_ids(self, rows: _Rows) -> Sequence[bytes | None] | None:
        kind = self._options.message_id
        given = None if kind == "deterministic" else rows.short_strings("message_id")
        if kind == "column" or (given is not None and None not in given):
            return given
        texts = [f"{self._origin}-{row}".encode() for row in range(rows.first, rows.first + rows.count)]
        made = [_OCTETS[len(text)] + text for text in texts]
        if given is None:
            return made
        return [ours if theirs is None else theirs for theirs, ours in zip(given, made, strict=True)]


def _check_not_fed(read: Origin, routes: list[tuple[str, str]], first: int) -> None:
    for exchange, key in set(routes):
        if read.is_fed_by(exchange, key):
            raise PublishError(
                f"row {first + routes.index((exchange, key))} of the task cannot be sent: it would go to "
                f"exchange {exchange!r} with routing key {key!r}, and the query reads {read}. {ON_PURPOSE}"
            )


class _Rows:
    """The columns of a record batch by name, as Python lists of the values to send."""

    def __init__(self, batch: pa.RecordBatch, columns: Mapping[str, tuple[Path, ...]], first: int) -> None:
        self._batch = batch
        self._columns = columns
        self.first = first
        self.count = batch.num_rows

    def bodies(self) -> list[bytes]:
        array = self._array("value")
        if array is None:
            return [b""] * self.count
        return [value or b"" for value in octets(array)]

    def short_texts(self, name: str, default: str) -> list[str]:
        array = self._array(name)
        if array is None:
            return [default] * self.count
        self._check_length(name, array)
        try:
            texts = array.to_pylist()
        except UnicodeDecodeError:
            wrong = pa.array([_is_malformed(value) for value in octets(array)])
            self._check(name, array, wrong, "valid UTF-8")
            raise
        return [default if value is None else value for value in texts]

    def short_strings(self, name: str) -> list[bytes | None] | None:
        array = self._array(name)
        if array is None:
            return None
        self._check_length(name, array)
        return [None if value is None else _OCTETS[len(value)] + value for value in octets(array)]

    def numbers(self, name: str, least: int, most: int, default: bytes | None) -> list[bytes | None] | None:
        array = self._array(name)
        if array is None:
            return None if default is None else [default] * self.count
        self._check(name, array, pc.or_(pc.less(array, least), pc.greater(array, most)), f"{least} to {most}")
        return [default if value is None else _OCTETS[value] for value in array.to_pylist()]

    def timestamps(self) -> list[bytes | None] | None:
        array = self._array("timestamp")
        if array is None:
            return None
        since_1970 = microseconds(array)
        self._check("timestamp", array, pc.less(since_1970, 0), "a time since 1970")
        seconds = pc.divide(since_1970, 1_000_000).to_pylist()
        return [None if value is None else value.to_bytes(8, "big") for value in seconds]

    def headers(self) -> list[bytes | None] | None:
        array = self._array("headers")
        if array is None:
            return None
        try:
            return header_tables(array)
        except ValueError:
            for row in range(self.count):
                try:
                    header_tables(array.slice(row, 1))
                except ValueError as error:
                    raise PublishError(
                        f"row {self.first + row} of the task cannot be sent: headers: {error}"
                    ) from None
            raise

    def _array(self, name: str) -> pa.Array | None:
        arrays = [self._at(path) for path in self._columns.get(name, ())]
        arrays = [array for array in arrays if not pa.types.is_null(array.type)]
        if len(arrays) < 2:
            return arrays[0] if arrays else None
        kind = arrays[0].type
        if pa.types.is_integer(kind):
            kind = pa.int64()  # Each of them fits.
        return pc.coalesce(*(array.cast(kind) for array in arrays))

    def _at(self, path: Path) -> pa.Array:
        column = self._batch.column(path[0])
        return column if len(path) == 1 else column.flatten()[path[1]]

    def _check_length(self, name: str, array: pa.Array) -> None:
        self._check(name, array, pc.greater(pc.binary_length(array), 255), "at most 255 bytes")

    def _check(self, name: str, array: pa.Array, wrong: pa.BooleanArray, expected: str) -> None:
        """Refuse the first row where `wrong` is true."""
        row = pc.index(wrong, True).as_py()
        if row >= 0:
            value = _shown(array.slice(row, 1))
            raise PublishError(
                f"row {self.first + row} of the task cannot be sent: its {name} is "
                f"{value if len(value) < 60 else value[:50] + '...'}; it must be {expected}"
            )


def _shown(array: pa.Array) -> str:
    """The only value of an array, as errors show it."""
    try:
        return repr(array[0].as_py())
    except (OverflowError, ValueError):  # Python has no such time or text.
        return repr(octets(array)[0] if is_text(array.type) else microseconds(array)[0].as_py())


def _is_malformed(text: bytes | None) -> bool:
    try:
        (text or b"").decode()
    except UnicodeDecodeError:
        return True
    return False
