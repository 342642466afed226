"""A trace as a Parquet file: one row per event, for SQL and data frames.

| Column | Type | Value |
|---|---|---|
| `number` | int64 | the position of the event in the trace, from 0 |
| `time` | double | seconds on the broker's clock since the trace began |
| `wall_time` | timestamp[us, UTC] | the broker's wall time, if known |
| `connection`, `alias` | string | the connection's name and its short name |
| `kind` | string | "frame", "connection" or "model" |
| `name` | string | "basic.publish", "content header", "connected", "published", ... |
| `direction` | string | of a frame: "received" by the broker, or "sent" by it |
| `channel` | int32 | its number |
| `size` | int64 | of a frame: bytes of payload |
| `exchange`, `routing_key`, `queue`, `consumer_tag` | string | of the method, or of the message and queue |
| `delivery_tag` | uint64 | |
| `redelivered` | bool | |
| `message` | int64 | of a model event: the number of the message, the same in all queues |
| `message_id` | string | of the message; see below |
| `body_size` | uint64 | bytes in the body of the message |
| `reply_code` | int32 | of a close or a return |
| `text` | string | the event in one line |
| `fields` | string | JSON: a method's fields, the properties, the body, the detail, or the facts |

A column that does not apply is null. A method with a message, such as basic.publish or message.transfer, has
the `message_id` and the `body_size` of the content that follows it, so that one row describes one message. In
0-10 `exchange` is the destination of a transfer, `routing_key` comes from its header, `consumer_tag` is the
destination of a subscription, and `reply_code` is the code of a close or an exception. The schema of `fields`
is in `fakeamqp.trace.json_form`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fakeamqp.dialects import dialect_named
from fakeamqp.errors import FakeAMQPError
from fakeamqp.trace.events import Event, FrameEvent
from fakeamqp.trace.json_form import event_to_json, value_to_json

if TYPE_CHECKING:
    import os

    from fakeamqp.trace.timeline import Trace


class PyarrowMissing(FakeAMQPError):
    """Parquet needs pyarrow, which is not installed."""

    __module__ = "fakeamqp.trace"


def write(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Write `trace`; see `Trace.parquet`."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as problem:
        raise PyarrowMissing(
            "Parquet needs pyarrow; install it with: pip install 'fakeamqp[trace]'"
        ) from problem
    schema = pa.schema(
        [
            ("number", pa.int64()),
            ("time", pa.float64()),
            ("wall_time", pa.timestamp("us", tz="UTC")),
            ("connection", pa.string()),
            ("alias", pa.string()),
            ("kind", pa.string()),
            ("name", pa.string()),
            ("direction", pa.string()),
            ("channel", pa.int32()),
            ("size", pa.int64()),
            ("exchange", pa.string()),
            ("routing_key", pa.string()),
            ("queue", pa.string()),
            ("consumer_tag", pa.string()),
            ("delivery_tag", pa.uint64()),
            ("redelivered", pa.bool_()),
            ("message", pa.int64()),
            ("message_id", pa.string()),
            ("body_size", pa.uint64()),
            ("reply_code", pa.int32()),
            ("text", pa.string()),
            ("fields", pa.string()),
        ]
    )
    rows = _rows(trace.events, trace.wall_time)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)


def _rows(events: Iterable[Event], wall_time: float | None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    awaiting: dict[tuple[object, ...], dict[str, Any]] = {}
    growing: dict[tuple[object, ...], dict[str, Any]] = {}
    for number, event in enumerate(events):
        said = event_to_json(event)
        row: dict[str, Any] = {
            "number": number,
            "wall_time": None if wall_time is None else round((wall_time + event.time) * 1e6),
            "redelivered": None,
        }
        for name in ("time", "connection", "alias", "kind", "name", "direction", "channel", "size", "text"):
            row[name] = _column(said.get(name))
        details = _details(said)
        if said["kind"] == "model":
            row.update(_of_facts(details))
        elif isinstance(event, FrameEvent):
            place = (said["alias"], said["direction"], said["channel"])
            if said["part"] == "method" and not event.name.startswith("session."):
                awaiting[place] = row
                growing.pop(place, None)
                row.update(_of_frame(event, "method"))
            elif said["part"] == "header":
                message = _of_frame(event, "header")
                row.update(message)
                waits = awaiting.pop(place, {})
                waits.update({name: value for name, value in message.items() if value is not None})
                if message["body_size"] is None:
                    waits["body_size"] = 0
                    growing[place] = waits
            elif said["part"] == "body" and place in growing:
                growing[place]["body_size"] += said["size"]
        row["fields"] = json.dumps(details)
        rows.append(row)
    return rows


def _details(said: dict[str, Any]) -> Any:
    if said["kind"] == "connection":
        return {"detail": said["detail"]}
    if said["kind"] == "model":
        return said["facts"]
    if said["part"] == "method":
        return said["fields"]
    if said["part"] == "header":
        return said["properties"]
    return {"body": said["body"]} if said["part"] == "body" else {}


def _of_frame(event: FrameEvent, part: str) -> dict[str, Any]:
    """The columns that a method fills, or that a header fills in its own row and in that of its method."""
    reader = dialect_named(event.protocol)
    if part == "header":
        said = reader.columns_of_content(event.type, event.redacted.payload, event.direction)
    else:
        said = {} if event.method is None else reader.columns(event.method, event.direction)
    return {name: _column(value_to_json(value)) for name, value in said.items()}


def _of_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """The columns that a model event fills. Its own facts take precedence over those of the message."""
    fact = facts.get("message")
    # Only an object with one key is a message; a table may have a field of that name among others.
    message = fact.get("message") if isinstance(fact, dict) and len(fact) == 1 else None
    row: dict[str, Any] = {}
    if isinstance(message, dict):
        row = {
            "exchange": _column(message["exchange"]),
            "routing_key": _column(message["routing_key"]),
            "message": message["number"] or None,
            "message_id": _column(message["properties"].get("message_id")),
            "body_size": message["size"],
        }
    for name, fact in facts.items():
        column = _NAMES.get(name, name)
        kind = _OF_FACTS.get(column)
        value = _column(fact)
        if kind is str:
            row[column] = None if value is None else str(value)
        elif kind is not None and isinstance(value, kind):
            row[column] = value
    return row


_OF_FACTS: dict[str, type] = {
    **dict.fromkeys(("exchange", "routing_key", "queue", "consumer_tag"), str),
    **dict.fromkeys(("channel", "delivery_tag", "reply_code"), int),
    "redelivered": bool,
}
"""The columns that facts fill, and the types of their values."""
_NAMES = {"consumer": "consumer_tag", "code": "reply_code"}
"""Columns by the names of facts in `fakeamqp.model.events`, where these differ."""


def _column(value: Any) -> Any:
    """A value as a column can have it: text is valid UTF-8, lists and tables are JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return json.dumps(value) if isinstance(value, (dict, list)) else value
