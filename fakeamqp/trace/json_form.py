"""The JSON form of events, for recordings, tables and pages. This text is the schema.

Every event has

| Key | Value |
|---|---|
| `time` | seconds on the broker's clock since the trace began |
| `connection` | the name of the connection, or null |
| `alias` | its short name, such as "c1", or "" |
| `kind` | "frame", "connection" or "model" |
| `name` | the kind of event: "basic.publish", "content header", "connected", "published", ... |
| `text` | the event in one line |
| `real_time` | real seconds since the trace began; missing if the broker's clock was real |

A frame also has `protocol` ("0-8", "0-9", "0-9-1" or "0-10"), `direction` ("received" by the broker or "sent"
by it), `channel`, `type` (a number, see `fakeamqp.dialects`), `part` ("method", "header", "body",
"heartbeat" or "" for any other), `size` (bytes of payload), `cut` (true if only the beginning of the payload
was kept), `readable` (false if the bytes cannot be decoded, or are not complete), and

- a method has `fields`: {name: value} without reserved ones, or null if it cannot be decoded. In 0-10 a
  method is a control or a command, which may also have `sync`; sets of ids are text such as "0-4,7". In 0-9
  a method in a request has `request`: {"id", "response_mark"}, a method in a response has `response`: {"id",
  "request_id", "batch_offset"}, and a transfer whose body is a reference has `reference` instead of `body`
- a content header has `class_id`, `body_size` and `properties`: {name: value} of those that are present, or
  null if they cannot be decoded. In 0-10 there is no class id, the size is from message-properties,
  properties have the names of 0-9-1, and `structs` has the structs of 0-10: {struct: {field: value}}. In 0-9
  there is `weight`, the number of contents inside this one
- a content body has `body`: its bytes
- a trace frame of 0-9 has `octets`: its content.

A connection event has `event` and `detail`. A model event has `event` and `facts`: {name: value}.

Numbers, booleans, null, text, lists and tables are written as such in JSON. A value of another type is an
object with one key:

| Value | Written as |
|---|---|
| bytes that are not UTF-8, and all bytes in tables | `{"base64": "AP8="}` |
| text whose bytes are not UTF-8 | `{"octets": "/w=="}`, in base64 |
| decimal | `{"decimal": "1.50"}` |
| timestamp in a table, in seconds since 1970 | `{"timestamp": 1700000000}` |
| infinity or not a number | `{"float": "inf"}` |
| a secret, such as a password | `{"secret": 12}`, the number of its bytes |
| a message | `{"message": {…}}` of number, exchange, routing_key, body, size, publisher and properties |
| the outcome of a publish | `{"outcome": {"text", "queues", "refused", "unconsumed", "delays"}}` |
| uuid | `{"uuid": "12345678-…"}` |
| any other object | `{"object": "its str"}` |
| a table whose only field has one of these names | `{"table": {"decimal": "of the application"}}` |

The number of a message stays the same in all queues, also after dead-lettering. Numbers begin at 1; 0 stands
for no number. `value_from_json` reads facts back.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from fakeamqp.dialects import RedactedValue, dialect_named
from fakeamqp.timestamps import Timestamp
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.truncation import Truncated, full_size

PROPERTIES = (
    "content_type",
    "content_encoding",
    "headers",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
)
_MARKS = frozenset(
    (
        "base64",
        "decimal",
        "float",
        "message",
        "object",
        "octets",
        "outcome",
        "secret",
        "table",
        "timestamp",
        "uuid",
    )
)
_DEEPEST = 250
"""Deeper than any table that the codec accepts."""


def event_to_json(event: Event) -> dict[str, Any]:
    """The JSON form of an event; see the text of the module. It never raises and has no passwords."""
    said: dict[str, Any] = {
        "time": event.time,
        "connection": event.connection,
        "alias": event.alias,
        "kind": "",
        "name": event.name,
        "text": event.text,
    }
    if event.real_time is not None:
        said["real_time"] = event.real_time
    if isinstance(event, FrameEvent):
        said.update(kind="frame", protocol=event.protocol, direction=event.direction, channel=event.channel)
        said.update(
            type=event.type, part=event.part, size=event.size, cut=isinstance(event.payload, Truncated)
        )
        said.update(dialect_named(event.protocol).to_json(event.type, event.redacted.payload))
    elif isinstance(event, ConnectionEvent):
        said.update(kind="connection", event=event.event, detail=event.detail)
    elif isinstance(event, ModelEvent):
        said.update(kind="model", event=event.event)
        said["facts"] = {name: value_to_json(value) for name, value in event.facts.items()}
    return said


def bytes_or_text(octets: bytes) -> Any:
    """Text if the bytes are UTF-8, otherwise `{"base64": ...}`."""
    try:
        return octets.decode()
    except UnicodeDecodeError as problem:
        # Truncation may have split a character.
        if isinstance(octets, Truncated) and problem.end == len(octets) and problem.start > len(octets) - 4:
            return octets[: problem.start].decode()
        return {"base64": base64.b64encode(octets).decode()}


def value_to_json(value: object, depth: int = 0) -> Any:
    """The JSON form of any value; see the text of the module."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, RedactedValue):
        return {"secret": value.size}
    if isinstance(value, Timestamp):
        return {"timestamp": int(value)}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, UUID):
        return {"uuid": str(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping) and depth < _DEEPEST:
        table = {str(name): value_to_json(item, depth + 1) for name, item in value.items()}
        return {"table": table} if len(table) == 1 and not _MARKS.isdisjoint(table) else table
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields") and depth < _DEEPEST:
        return [value_to_json(item, depth + 1) for item in value]
    return _object(value)


def _text(value: str) -> Any:
    try:
        value.encode()
        return str(value)
    except UnicodeEncodeError:
        octets = value.encode("utf-8", "surrogateescape")
        return {"octets": base64.b64encode(octets).decode()}


def _object(value: object) -> dict[str, Any]:
    """Objects of the model are recognized by their attributes."""
    try:
        if hasattr(value, "body") and hasattr(value, "routing_key"):
            return {"message": _message(value)}
        if hasattr(value, "queues") and hasattr(value, "refused"):
            return {"outcome": _outcome(value)}
        return {"object": _text(str(value))}
    except Exception as error:
        return {"object": f"<{type(value).__name__}, which cannot be shown: {type(error).__name__}>"}


def _message(message: Any) -> dict[str, Any]:
    properties = getattr(message, "properties", None)
    present = {name: getattr(properties, name, None) for name in PROPERTIES}
    publisher = getattr(getattr(message, "publisher", None), "name", None)
    number = getattr(message, "number", 0)
    return {
        "number": number if isinstance(number, int) else 0,
        "exchange": value_to_json(message.exchange),
        "routing_key": value_to_json(message.routing_key),
        "body": bytes_or_text(message.body),
        "size": full_size(message.body),
        "publisher": publisher if isinstance(publisher, str) else None,
        "properties": {name: value_to_json(value) for name, value in present.items() if value is not None},
    }


def _outcome(outcome: Any) -> dict[str, Any]:
    return {
        "text": _text(str(outcome)),
        "queues": [_called(queue) for queue in outcome.queues],
        "refused": [_called(queue) for queue in outcome.refused],
        "unconsumed": bool(getattr(outcome, "unconsumed", False)),
        "elsewhere": bool(getattr(outcome, "elsewhere", False)),
        "delays": [
            {"exchange": _called(delay.exchange), "seconds": value_to_json(delay.seconds)}
            for delay in getattr(outcome, "delays", ())
        ],
    }


def _called(thing: object) -> Any:
    name = getattr(thing, "name", thing)
    return _text(str(name))
