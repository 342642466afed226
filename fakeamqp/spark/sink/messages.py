"""Conversion from Arrow to messages: whole columns at a time, directly to encoded properties. And frames.

The properties of a message are flags and values. Each column becomes a list of encoded values, with None
where the property is absent. Then the flags and values of each row are joined, in the order of AMQP.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    CONTENT_HEADER,
    FRAME_OVERHEAD,
    content_frames,
    method_frame,
)
from fakeamqp.protocols.amqp_0_9_1.codec.methods import BasicPublish
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import OCTET
from fakeamqp.protocols.base.codec import FieldError
from fakeamqp.spark.errors import PublishError
from fakeamqp.spark.sink.arrays import is_text, microseconds, octets
from fakeamqp.spark.sink.columns import QUEUE
from fakeamqp.spark.sink.headers import header_tables

if TYPE_CHECKING:
    from fakeamqp.spark.options import WriteOptions
    from fakeamqp.spark.sink.columns import Path
    from fakeamqp.spark.wire.channel import WireChannel

T = TypeVar("T")

#: Exchange, routing key, properties (flags and values, as in a content header) and body.
Message: TypeAlias = tuple[str, str, bytes, bytes]

_PROPERTIES = [(name, kind, 0x8000 >> bit) for bit, (name, kind) in enumerate(BasicProperties.LAYOUT)]
_OCTETS = {"delivery_mode": {1: b"\x01", 2: b"\x02"}, "priority": dict(enumerate(OCTET))}

# What the encoders raise for a value that does not fit, and what a value must be.
_MISFITS = ValueError, LookupError, OverflowError, FieldError
_SHORT = "at most 255 bytes"
_EXPECTED = {
    "delivery_mode": "1 or 2",
    "exchange": f"{_SHORT} of UTF-8",
    "priority": "0 to 255",
    "routing_key": f"{_SHORT} of UTF-8",
    "timestamp": "a time since 1970",
}


@dataclass(frozen=True)
class SinkRows:
    """The rows of a record batch, which become messages.

    Attributes:
        batch: the rows.
        first: the number of the first row in the task.
        columns: the places of each column, from `find_columns`; and of `queue` if no row goes back to the
            queue that it names.
        options: the options of the writer.
        origin: the prefix of deterministic message ids; the number of the row in the task follows it.
    """

    batch: pa.RecordBatch
    first: int
    columns: Mapping[str, tuple[Path, ...]]
    options: WriteOptions
    origin: str

    def messages(self) -> list[Message]:
        """The messages, in the order of the rows.

        Raises:
            PublishError: a row cannot be converted. Then no message of the batch is published.
        """
        exchanges = self._filled("exchange", _texts, self.options.exchange or "")
        keys = self._filled("routing_key", _texts, self.options.routing_key or "")
        if self.columns.get(QUEUE):
            self._check_not_fed(exchanges, keys)
        bodies = self._filled("value", octets, b"")
        return list(zip(exchanges, keys, self._properties(), bodies, strict=True))

    def _properties(self) -> list[bytes]:
        flags = 0
        varying: list[Sequence[int]] = []
        values: list[Sequence[bytes]] = []
        for name, kind, flag in _PROPERTIES:
            encoded = self._values(name, kind)
            if encoded is None:
                continue
            if None in encoded:
                varying.append([0 if value is None else flag for value in encoded])
                values.append([value or b"" for value in encoded])
            else:
                flags |= flag
                values.append(encoded)  # type: ignore[arg-type]
        heads = [flags.to_bytes(2, "big")] * self.batch.num_rows
        if varying:
            heads = [(flags + sum(each)).to_bytes(2, "big") for each in zip(*varying, strict=True)]
        return list(map(b"".join, zip(heads, *values, strict=True)))

    def _values(self, name: str, kind: str) -> Sequence[bytes | None] | None:
        """The encoded values of a property, with None where a row has none; None if no row has one."""
        encode = partial(_encoded, name, kind)
        if name == "delivery_mode":
            return self._filled(name, encode, OCTET[2 if self.options.persistent else 1])
        ids = self.options.message_id
        if name != "message_id" or ids == "column":
            return self._column(name, encode)
        given = None if ids == "deterministic" else self._column(name, encode)
        if given is not None and None not in given:
            return given
        numbers = range(self.first, self.first + self.batch.num_rows)
        texts = [f"{self.origin}-{number}".encode() for number in numbers]
        ours = [OCTET[len(text)] + text for text in texts]
        if given is None:
            return ours
        return [mine if theirs is None else theirs for theirs, mine in zip(given, ours, strict=True)]

    def _filled(self, name: str, encode: Callable[[pa.Array], list[T | None]], default: T) -> list[T]:
        """The encoded values of a column, with a default instead of null."""
        values = self._column(name, encode)
        if values is None:
            return [default] * self.batch.num_rows
        return [default if value is None else value for value in values]

    def _column(self, name: str, encode: Callable[[pa.Array], list[T | None]]) -> list[T | None] | None:
        """The encoded values of a column; None if there is no column.

        Raises:
            PublishError: a value does not fit.
        """
        array = self._array(name)
        if array is None:
            return None
        try:
            return encode(array)
        except _MISFITS:
            for row in range(len(array)):
                value = array.slice(row, 1)
                try:
                    encode(value)
                except _MISFITS as error:
                    raise self._refusal(row, _problem(name, value, error)) from None
            raise

    def _array(self, name: str) -> pa.Array | None:
        arrays = [self._at(path) for path in self.columns.get(name, ())]
        arrays = [array for array in arrays if not pa.types.is_null(array.type)]
        if len(arrays) < 2:
            return arrays[0] if arrays else None
        kind = arrays[0].type
        if pa.types.is_integer(kind):
            kind = pa.int64()  # Each of them fits.
        return pc.coalesce(*(array.cast(kind) for array in arrays))

    def _at(self, path: Path) -> pa.Array:
        column = self.batch.column(path[0])
        return column if len(path) == 1 else column.flatten()[path[1]]

    def _check_not_fed(self, exchanges: Sequence[str], keys: Sequence[str]) -> None:
        """Refuse a row that goes back to the queue that it was read from."""
        queues = self._filled(QUEUE, _texts, "")
        for row, (exchange, key, queue) in enumerate(zip(exchanges, keys, queues, strict=True)):
            if key == queue and not exchange and queue:
                raise self._refusal(
                    row,
                    f"it would go back to the queue {queue!r} that it was read from, as its column 'queue' "
                    "says. Drop the column 'queue' if this is another broker, or if the query may read the "
                    "message again",
                )

    def _refusal(self, row: int, why: str) -> PublishError:
        return PublishError(f"row {self.first + row} of the task cannot be sent: {why}")


def _encoded(name: str, kind: str, array: pa.Array) -> list[bytes | None]:
    """The values of a property, by its type in AMQP. Raises one of `_MISFITS` for one that does not fit."""
    if kind == "table":
        return header_tables(array)
    if kind == "shortstr":
        return [None if value is None else OCTET[len(value)] + value for value in octets(array)]
    if kind == "octet":
        numbers = _OCTETS[name]
        return [None if value is None else numbers[value] for value in array.to_pylist()]
    times = microseconds(array).to_pylist()
    return [None if value is None else (value // 1_000_000).to_bytes(8, "big") for value in times]


def _texts(array: pa.Array) -> list[str | None]:
    """Exchanges or routing keys. Raises one of `_MISFITS` for one that does not fit."""
    if (pc.max(pc.binary_length(array)).as_py() or 0) > 255:
        raise ValueError
    texts: list[str | None] = array.to_pylist()
    return texts


def _problem(name: str, value: pa.Array, error: Exception) -> str:
    """What an error says of the only value of an array."""
    if name == "headers":
        return f"headers: {error}"
    try:
        shown = repr(value[0].as_py())
    except (OverflowError, ValueError):  # Python has no such time or text.
        shown = repr(octets(value)[0] if is_text(value.type) else microseconds(value)[0].as_py())
    shown = shown if len(shown) < 60 else shown[:50] + "..."
    return f"its {name} is {shown}; it must be {_EXPECTED.get(name, _SHORT)}"


def frames(message: Message, channel: WireChannel, mandatory: bool) -> bytes:
    """The frames of a message for a channel, joined: method, content header and body.

    Args:
        message: the message.
        channel: on which it is published.
        mandatory: whether the broker returns it if it reaches no queue.

    Raises:
        PublishError: its properties do not fit in a frame.
    """
    exchange, routing_key, properties, body = message
    limit = channel.connection.frame_max - FRAME_OVERHEAD
    if CONTENT_HEADER.size + len(properties) > limit:
        raise PublishError(
            f"a message to exchange {exchange!r} with routing key {routing_key!r} cannot be sent: its "
            f"properties have {len(properties)} bytes, and a frame holds at most {limit}"
        )
    content = content_frames(channel.number, BasicPublish.CLASS_ID, properties, body, limit)
    return b"".join((_method(channel.number, exchange, routing_key, mandatory), *content))


@lru_cache(1024)
def _method(channel: int, exchange: str, routing_key: str, mandatory: bool) -> bytes:
    publish = BasicPublish(exchange=exchange, routing_key=routing_key, mandatory=mandatory)
    return method_frame(channel, publish.encode())
