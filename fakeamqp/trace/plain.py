"""Events as plain values, for JSON, tables and pages. One schema, written down here.

Every event has

| Key | Value |
|---|---|
| `time` | seconds on the broker's clock since the trace began |
| `connection` | the name of the connection, or null |
| `alias` | its short name, such as "c1", or "" |
| `kind` | "frame", "connection" or "model" |
| `name` | what it is: "basic.publish", "content header", "connected", "published", ... |
| `text` | the same in one line for people |

A frame also has `protocol` ("0-8", "0-9", "0-9-1" or "0-10"), `direction` ("received" by the broker or "sent"
by it), `channel`, `type` (a number, see `fakeamqp.adapters`), `part` ("method", "header", "body",
"heartbeat" or "" where it is none of these), `size` (bytes of payload), `cut` (true where only the beginning
of the payload was kept), `readable` (false where the bytes cannot be decoded, or not all of them are there),
and

- a method `fields`: {name: value}, all but the reserved ones; null where it cannot be read. In 0-10 that is a
  control or a command, which may also have `sync`; sets of ids are text such as "0-4,7". In 0-9 one that came
  as a request has `request`: {"id", "response_mark"}, one that came as a response `response`: {"id",
  "request_id", "batch_offset"}, and the body of a transfer that is a reference is called `reference`
- a content header `class_id`, `body_size` and `properties`: {name: value}, those that are present; null where
  they cannot be read. In 0-10 there is no class id, the size is what message-properties say, properties have
  the names of 0-9-1, and `structs` has them as they are: {struct: {field: value}}. In 0-9 there is `weight`,
  how many contents are inside this one
- a content body `body`: its bytes
- a trace frame of 0-9 `octets`: what is in it.

A connection event has `event` and `detail`, an event of the model `event` and `facts`: {name: value}.

Numbers, booleans, null, text, lists and tables are what they are in JSON. What JSON has no word for is an
object with one key:

| Value | Written as |
|---|---|
| bytes, where they are not UTF-8, and always as a field of a table | `{"base64": "AP8="}` |
| text whose bytes are not UTF-8 | `{"bytes": "/w=="}`, in base64 |
| decimal | `{"decimal": "1.50"}` |
| timestamp in a table, in seconds since 1970 | `{"timestamp": 1700000000}` |
| infinite or no number | `{"float": "inf"}` |
| what nobody is to read, such as a password | `{"secret": 12}`, the number of its bytes |
| a message | `{"message": {…}}` of number, exchange, routing_key, body, size, publisher and properties |
| what became of a message | `{"outcome": {"text", "queues", "refused", "unconsumed", "delays"}}` |
| uuid | `{"uuid": "12345678-…"}` |
| anything else | `{"object": "as it calls itself"}` |
| a table whose only field has one of these names | `{"table": {"decimal": "of the application"}}` |

The number of a message is the same wherever it goes, dead-letter exchanges included; numbers begin with 1,
and 0 is none. `value_of` reads facts back.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from fakeamqp.protocols.framed.codec.basic import BasicProperties
from fakeamqp.protocols.framed.codec.tables import Timestamp
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.parts import Cut, full_size
from fakeamqp.trace.reading import Hidden, reader_of

__all__ = ["PROPERTIES", "bytes_or_text", "plain", "plain_value"]

PROPERTIES = tuple(name for name, _ in BasicProperties.LAYOUT)
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
"""Beyond the deepest tables there are."""


def plain(event: Event) -> dict[str, Any]:
    """An event as values that JSON knows; the module's text is their schema.

    It never fails, and it shows no password.
    """
    said: dict[str, Any] = {
        "time": event.time,
        "connection": event.connection,
        "alias": event.alias,
        "kind": "",
        "name": event.name,
        "text": event.text,
    }
    if isinstance(event, FrameEvent):
        said.update(kind="frame", protocol=event.protocol, direction=event.direction, channel=event.channel)
        said.update(type=event.type, part=event.part, size=event.size, cut=isinstance(event.payload, Cut))
        said.update(reader_of(event.protocol).plain(event.type, event.redacted.payload))
    elif isinstance(event, ConnectionEvent):
        said.update(kind="connection", event=event.event, detail=event.detail)
    elif isinstance(event, ModelEvent):
        said.update(kind="model", event=event.event)
        said["facts"] = {name: plain_value(value) for name, value in event.facts.items()}
    return said


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def bytes_or_text(octets: bytes) -> Any:
    """Text where the bytes are UTF-8, else `{"base64": ...}`."""
    try:
        return octets.decode()
    except UnicodeDecodeError as problem:
        # What was cut may have been cut in the middle of a character.
        if isinstance(octets, Cut) and problem.end == len(octets) and problem.start > len(octets) - 4:
            return octets[: problem.start].decode()
        return {"base64": base64.b64encode(octets).decode()}


def plain_value(value: object, depth: int = 0) -> Any:
    """Any value as JSON knows it; see the module's text for those it does not know."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Hidden):
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
        table = {str(name): plain_value(item, depth + 1) for name, item in value.items()}
        return {"table": table} if len(table) == 1 and not _MARKS.isdisjoint(table) else table
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields") and depth < _DEEPEST:
        return [plain_value(item, depth + 1) for item in value]
    return _object(value)


def _text(value: str) -> Any:
    try:
        value.encode()
        return str(value)
    except UnicodeEncodeError:
        octets = value.encode("utf-8", "surrogateescape")
        return {"octets": base64.b64encode(octets).decode()}


def _object(value: object) -> dict[str, Any]:
    """Objects of the model are known by their attributes alone."""
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
    values = {name: plain_value(getattr(properties, name, None)) for name in PROPERTIES}
    publisher = getattr(getattr(message, "publisher", None), "name", None)
    number = getattr(message, "number", 0)
    return {
        "number": number if isinstance(number, int) else 0,
        "exchange": plain_value(message.exchange),
        "routing_key": plain_value(message.routing_key),
        "body": bytes_or_text(message.body),
        "size": full_size(message.body),
        "publisher": publisher if isinstance(publisher, str) else None,
        "properties": _present(values),
    }


def _outcome(outcome: Any) -> dict[str, Any]:
    return {
        "text": _text(str(outcome)),
        "queues": [_called(queue) for queue in outcome.queues],
        "refused": [_called(queue) for queue in outcome.refused],
        "unconsumed": bool(getattr(outcome, "unconsumed", False)),
        "delays": [
            {"exchange": _called(delay.exchange), "seconds": plain_value(delay.seconds)}
            for delay in getattr(outcome, "delays", ())
        ],
    }


def _called(thing: object) -> Any:
    name = getattr(thing, "name", thing)
    return _text(str(name))
