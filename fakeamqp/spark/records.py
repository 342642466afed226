"""From deliveries to Arrow: one list for each selected column, made when a batch is complete.

No message may keep a batch from being made: a query that dies of a message dies of it again after every
restart. What Arrow or Spark cannot hold is replaced: lone bytes by U+FFFD, times out of range by null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from fakeamqp.spark.columns import PROPERTIES, Column, arrow_schema

if TYPE_CHECKING:
    from pika.spec import Basic, BasicProperties

__all__ = ["Delivered", "record_batch"]

# The last second of the year 9999, Spark's last. Some publishers write milliseconds where seconds belong.
_LAST_SECOND = 253_402_300_799


class Delivered(NamedTuple):
    """One message as pika delivers it, and its origin.

    `offset` is its place in the queue's snapshot, the spool or the stream; `received_at` is in microseconds
    since 1970.
    """

    deliver: Basic.Deliver
    properties: BasicProperties
    body: bytes
    queue: str
    offset: int
    received_at: int


def record_batch(messages: Sequence[Delivered], columns: Iterable[Column]) -> pa.RecordBatch:
    """The messages as a record batch of exactly these columns, in their order."""
    columns = tuple(columns)
    arrays = [_array(column, messages) for column in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=arrow_schema(columns))


def _array(column: Column, messages: Sequence[Delivered]) -> pa.Array:
    values = _MAKERS[column.name if column.name != "headers" else f"headers {column.arrow}"](messages)
    try:
        return pa.array(values, column.arrow)
    except (TypeError, UnicodeEncodeError, pa.ArrowException):
        # pika returns short strings that are not UTF-8 as bytes.
        return pa.array([_readable(value) for value in values], column.arrow)


def _timestamp(properties: BasicProperties) -> int | None:
    seconds = properties.timestamp
    return seconds * 1_000_000 if seconds is not None and 0 <= seconds <= _LAST_SECOND else None


def _headers_as_map(message: Delivered) -> list[tuple[str, str | None]] | None:
    headers = message.properties.headers
    if headers is None:
        return None
    return [(name, value if isinstance(value, str) else _json(value)) for name, value in _sorted(headers)]


def _headers_as_json(message: Delivered) -> str | None:
    headers = message.properties.headers
    return None if headers is None else _json(dict(_sorted(headers)))


def _sorted(headers: dict[Any, Any]) -> list[tuple[str, Any]]:
    try:
        return sorted(headers.items(), key=itemgetter(0))
    except TypeError:  # Some names are text and some are bytes.
        return sorted(((_readable(name), value) for name, value in headers.items()), key=itemgetter(0))


def _properties(message: Delivered) -> dict[str, Any]:
    properties = message.properties
    return {name: getattr(properties, name) for name in PROPERTIES}


_MAKERS: dict[str, Callable[[Sequence[Delivered]], list[Any]]] = {
    "value": lambda messages: [message.body for message in messages],
    "routing_key": lambda messages: [message.deliver.routing_key for message in messages],
    "exchange": lambda messages: [message.deliver.exchange for message in messages],
    "queue": lambda messages: [message.queue for message in messages],
    "offset": lambda messages: [message.offset for message in messages],
    "timestamp": lambda messages: [_timestamp(message.properties) for message in messages],
    "message_id": lambda messages: [message.properties.message_id for message in messages],
    "redelivered": lambda messages: [message.deliver.redelivered for message in messages],
    "received_at": lambda messages: [message.received_at for message in messages],
    f"headers {pa.map_(pa.string(), pa.string())}": lambda messages: [
        _headers_as_map(message) for message in messages
    ],
    f"headers {pa.string()}": lambda messages: [_headers_as_json(message) for message in messages],
    "properties": lambda messages: [_properties(message) for message in messages],
}


def _json(value: object) -> str | None:
    """A field value as JSON: null for None, bytes as text if they are UTF-8, otherwise in base64."""
    if value is None:
        return None
    if type(value) is int:
        # Most headers that are not text; an encoder costs ten times as much.
        return str(value)
    import json

    try:
        return json.dumps(value, default=_plain, sort_keys=True, ensure_ascii=False)
    except TypeError:  # A table inside has a name of bytes.
        return json.dumps(_with_readable_names(value), default=_plain, sort_keys=True, ensure_ascii=False)


def _with_readable_names(value: Any) -> Any:
    if isinstance(value, dict):
        return {_readable(name): _with_readable_names(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_with_readable_names(each) for each in value]
    return value


def _plain(value: object) -> object:
    import base64
    import datetime
    import decimal

    if isinstance(value, (bytes, bytearray)):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)).isoformat()
    if isinstance(value, decimal.Decimal):
        return float(value)
    return str(value)


def _readable(value: Any) -> Any:
    """The value with bytes as text at any depth; bytes that are not text are replaced."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, (list, tuple)):
        return type(value)(_readable(each) for each in value)
    if isinstance(value, dict):
        return {key: _readable(each) for key, each in value.items()}
    return value
