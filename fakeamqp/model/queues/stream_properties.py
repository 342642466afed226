"""How a stream stores a message's properties.

RabbitMQ stores messages of streams in the format of AMQP 1.0, and converts them back to 0-9-1 for every
consumer. This conversion loses or changes some properties (read in its sources, mostly measured): headers
come out in the order of their names, tables and arrays only under names that begin with `x-`, bytes as text;
`delivery_mode` is always present and `cluster_id` never; timestamps are milliseconds in between (measured).
RabbitMQ 3.10 changes less (measured).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from fakeamqp.model.arguments.consumer_arguments import STREAM_OFFSET
from fakeamqp.model.errors import ChannelCrash
from fakeamqp.model.int64 import Int64
from fakeamqp.model.message import Message, ReadableProperties
from fakeamqp.timestamps import Timestamp

__all__ = ["FILTER_VALUE", "OFFSET", "stored_properties", "stored_size"]

OFFSET = STREAM_OFFSET
"""The header with a message's offset; it has the name of the consumer argument."""

FILTER_VALUE = "x-stream-filter-value"
"""The header by whose value consumers can filter a stream."""

_LATEST = (2**63 - 1) // 1000  # Seconds: the latest timestamp that does not overflow as milliseconds.
_LONGEST_FILTER_VALUE = 4096
_CHUNK = 52  # Bytes before the message: the header of a chunk, and the length of its only entry.
_ENVELOPE = 96  # Bytes of the message's sections and the names in them (measured on 4.0.5 and 4.3.6).
_LONG = 3  # More bytes for the length of a body of more than 255 bytes.


def stored_properties(properties: ReadableProperties, *, annotates: bool = True) -> ReadableProperties:
    """The properties as consumers will see them, with a placeholder for the offset.

    `annotates` says how; see `Personality.streams_annotate`.

    Raises:
        Crash: RabbitMQ cannot convert a header.
    """
    headers = properties.headers or {}
    if annotates and FILTER_VALUE in headers and not _is_filter_value(headers[FILTER_VALUE]):
        raise ChannelCrash(f"header {FILTER_VALUE} is not a text of at most {_LONGEST_FILTER_VALUE} bytes")
    changes: dict[str, Any] = {OFFSET: Int64(0)}
    removed = []
    for name, value in headers.items():
        if isinstance(value, Decimal):
            raise ChannelCrash(f"header {name!r} is a decimal, which streams cannot store")
        swallowed = name.startswith("x-basic-") or (annotates and name in ("x-exchange", "x-routing-key"))
        annotation = annotates and (name == "CC" or name.startswith("x-"))
        if swallowed or (isinstance(value, (list, dict)) and not annotation):
            removed.append(name)
        elif isinstance(value, bytes) and annotates:
            changes[name] = value.decode("utf-8", "surrogateescape")
        elif isinstance(value, Timestamp) and value > _LATEST:
            changes[name] = Timestamp(_overflown(value))
    stored = properties.with_headers(changes, removed, ordered=True)
    kept: dict[str, Any] = {}
    timestamp = properties.timestamp
    if timestamp is not None and timestamp > _LATEST:
        kept["timestamp"] = _overflown(timestamp)
    if getattr(properties, "cluster_id", None) is not None:
        kept["cluster_id"] = None
    if not annotates:
        return stored.replace(**kept) if kept else stored
    kept["delivery_mode"] = 2 if properties.delivery_mode == 2 else 1
    expiration = properties.expiration
    if expiration is not None and expiration.isdecimal():
        kept["expiration"] = str(int(expiration))
    return stored.replace(**kept)


def stored_size(message: Message) -> int:
    """The approximate bytes of a message in a stream, without its properties."""
    names = len(message.exchange) + len(message.routing_key)
    size = len(message.body)
    return _CHUNK + _ENVELOPE + names + size + (_LONG if size > 255 else 0)


def size_of_properties(properties: ReadableProperties) -> int:
    """The approximate bytes of properties in a stream."""
    headers = properties.headers or {}
    size = sum(len(name) + 4 + len(str(value)) for name, value in headers.items() if name != OFFSET)
    for text in (
        properties.content_type,
        properties.content_encoding,
        properties.correlation_id,
        properties.reply_to,
        properties.expiration,
        properties.message_id,
        properties.type,
        properties.user_id,
        properties.app_id,
    ):
        if text is not None:
            size += len(text) + 2
    return size


def _overflown(seconds: int) -> int:
    """A timestamp beyond the latest one, after AMQP 1.0 had it as a signed 64-bit number of milliseconds."""
    milliseconds = (seconds * 1000 + 2**63) % 2**64 - 2**63
    towards_zero = abs(milliseconds) // 1000
    return (towards_zero if milliseconds >= 0 else -towards_zero) % 2**64


def _is_filter_value(value: object) -> bool:
    """Whether RabbitMQ accepts this as a filter value."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return len(value.encode()) <= _LONGEST_FILTER_VALUE
    except UnicodeEncodeError:  # The bytes were not UTF-8.
        return False
