"""Rows with the columns of the Spark view `trace`, made from events or recorded lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from fakeamqp.dialects import dialect_named
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.json_form import value_to_json

Record: TypeAlias = "Event | Mapping[str, Any] | TraceRow"
"""An event of a trace, a line of a recording as `json.loads` returns it, or a row made of either."""


@dataclass(slots=True)
class TraceRow:
    """One event; docs/spark-traces.md describes each value."""

    run: str
    number: int
    time: float
    alias: str
    kind: str
    name: str
    direction: str | None = None
    channel: int | None = None
    session: int = 0
    size: int = 0
    queue: str | None = None
    consumer_tag: str | None = None
    delivery_tag: int | None = None
    multiple: bool = False
    requeue: bool = False
    redelivered: bool | None = None
    no_ack: bool | None = None
    no_wait: bool = False
    prefetch: int | None = None
    shared: bool | None = None
    message: int | None = None
    priority: int | None = None
    body_size: int = 0
    text: str = ""

    @property
    def received(self) -> bool:
        """True for a frame from a client."""
        return self.direction == "received"

    @property
    def place(self) -> tuple[str, int | None, int]:
        """Identifies a channel from its opening to the next one: connection, number, count of openings."""
        return self.alias, self.channel, self.session

    def values(self, *columns: str) -> dict[str, Any]:
        """The values of some columns, by their names."""
        return {column: getattr(self, column) for column in columns}


class Check:
    """Sees the rows of one run in their order, and returns what it finds as dictionaries."""

    def see(self, row: TraceRow) -> Iterable[dict[str, Any]]:
        """What the next row shows."""
        raise NotImplementedError

    def end(self) -> Iterable[dict[str, Any]]:
        """What the end of the run shows."""
        return ()


def found(make: Callable[[], Check], records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """What a check finds in each run."""
    for run in runs(records):
        check = make()
        for row in run:
            yield from check.see(row)
        yield from check.end()


def runs(records: Iterable[Record]) -> Iterator[list[TraceRow]]:
    """The rows of each run, in order. Records without a `run` belong to one run."""
    rows = sorted(
        (
            record if isinstance(record, TraceRow) else row_of(number, record)
            for number, record in enumerate(records)
        ),
        key=lambda row: (row.run, row.number),
    )
    for _, group in groupby(rows, key=lambda row: row.run):
        run = list(group)
        openings: dict[tuple[str, int | None], int] = {}
        for row in run:
            channel = (row.alias, row.channel)
            if row.name == "channel.open" and row.received:
                openings[channel] = openings.get(channel, 0) + 1
            row.session = openings.get(channel, 0)
        yield run


def row_of(number: int, record: Event | Mapping[str, Any]) -> TraceRow:
    """The row of an event or of a line; an event has this number."""
    if not isinstance(record, Event):
        return _row_of_line(number, record)
    row = TraceRow("", number, record.time, record.alias, "", record.name)
    if isinstance(record, FrameEvent):
        row.kind, row.direction, row.channel = "frame", record.direction, record.channel
        row.size = record.size
        reader = dialect_named(record.protocol)
        if record.part == "header":
            row.body_size = reader.body_size(record.type, record.payload) or 0
        elif (method := record.method) is not None:
            _fill(row, dict(reader.values(method)), {})
    elif isinstance(record, ConnectionEvent):
        row.kind, row.text = "connection", record.text
    elif isinstance(record, ModelEvent):
        row.kind, row.channel = "model", record.facts.get("channel")  # type: ignore[assignment]
        _fill(row, {}, record.facts)
        message = record.facts.get("message")
        row.message = getattr(message, "number", None) or None
        row.priority = getattr(getattr(message, "properties", None), "priority", None)
    return row


def _row_of_line(number: int, line: Mapping[str, Any]) -> TraceRow:
    facts = line.get("facts") or {}
    wrapped = facts.get("message")
    message = wrapped.get("message") if isinstance(wrapped, Mapping) else None
    message = message if isinstance(message, Mapping) else {}
    channel = line.get("channel")
    row = TraceRow(
        run=line.get("run") or "",
        number=line.get("number", number),
        time=line["time"],
        alias=line["alias"],
        kind=line["kind"],
        name=line["name"],
        direction=line.get("direction"),
        channel=facts.get("channel") if channel is None else channel,
        size=line.get("size") or 0,
        message=message.get("number") or None,
        priority=(message.get("properties") or {}).get("priority"),
        body_size=line.get("body_size") or 0,
        text=line.get("text") or "",
    )
    _fill(row, line.get("fields") or {}, facts)
    return row


def _fill(row: TraceRow, fields: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Take what the checks need of the fields of a method, or of the facts of a model event."""
    for column, (field, fact) in _COLUMNS.items():
        value = fields.get(field, facts.get(fact))
        setattr(row, column, value_to_json(value) if isinstance(value, str) else value)
    row.multiple = bool(fields.get("multiple"))
    row.requeue = bool(fields.get("requeue"))
    row.no_wait = bool(fields.get("no_wait"))


_COLUMNS = {
    "queue": ("queue", "queue"),
    "consumer_tag": ("consumer_tag", "consumer"),
    "delivery_tag": ("delivery_tag", "delivery_tag"),
    "redelivered": ("redelivered", "redelivered"),
    "no_ack": ("no_ack", "no_ack"),
    "prefetch": ("prefetch_count", "prefetch"),
    "shared": ("global", "shares_prefetch"),
}
"""By the column of a row: the field of a method, and that of an event in `fakeamqp.model.events`."""
