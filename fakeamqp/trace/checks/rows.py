"""Rows with the columns of the Spark view `trace`, made from events or recorded lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, TypeAlias

from fakeamqp.dialects import dialect_named
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.json_form import value_to_json

__all__ = ["Check", "Record", "TraceRow", "found", "row_of", "runs"]

Record: TypeAlias = "Event | Mapping[str, Any] | TraceRow"
"""An event of a trace, a line of a recording as `json.loads` returns it, or a row made of either."""


@dataclass(slots=True)
class TraceRow:
    """One event; `fakeamqp.spark.traces.COLUMNS` describes each value."""

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


class Check(Protocol):
    """Sees the rows of one run in their order, and returns what it finds as dictionaries."""

    def see(self, row: TraceRow, /) -> Iterable[dict[str, Any]]:
        """What the next row shows."""

    def end(self) -> Iterable[dict[str, Any]]:
        """What the end of the run shows."""


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
        _fill_from_frame(row, record)
    elif isinstance(record, ConnectionEvent):
        row.kind, row.text = "connection", record.text
    elif isinstance(record, ModelEvent):
        row.kind = "model"
        _fill_from_facts(row, record.facts)
    return row


def _fill_from_frame(row: TraceRow, event: FrameEvent) -> None:
    """Take what the checks need of a method or a header."""
    part = event.part
    if part == "header":
        row.body_size = dialect_named(event.protocol).body_size(event.type, event.payload) or 0
    if part != "method" or (method := event.method) is None:
        return
    row.queue = _plain(getattr(method, "queue", None))
    row.consumer_tag = _plain(getattr(method, "consumer_tag", None))
    row.delivery_tag = getattr(method, "delivery_tag", None)
    row.multiple = bool(getattr(method, "multiple", False))
    row.requeue = bool(getattr(method, "requeue", False))
    row.redelivered = getattr(method, "redelivered", None)
    row.no_ack = getattr(method, "no_ack", None)
    row.no_wait = bool(getattr(method, "no_wait", False))
    row.prefetch = getattr(method, "prefetch_count", None)
    row.shared = getattr(method, "global_", None)


def _fill_from_facts(row: TraceRow, facts: Mapping[str, Any]) -> None:
    """Take what the checks need of an event of the model."""
    row.channel = facts.get("channel")
    row.queue = _plain(facts.get("queue"))
    row.consumer_tag = _plain(facts.get("consumer"))
    row.delivery_tag = facts.get("delivery_tag")
    row.redelivered = facts.get("redelivered")
    row.no_ack = facts.get("no_ack")
    row.prefetch = facts.get("prefetch")
    row.shared = facts.get("shares_prefetch")
    message = facts.get("message")
    if message is not None:
        row.message = getattr(message, "number", None) or None
        row.priority = getattr(getattr(message, "properties", None), "priority", None)


def _plain(name: Any) -> Any:
    return None if name is None else value_to_json(name)


def _row_of_line(number: int, line: Mapping[str, Any]) -> TraceRow:
    fields = line.get("fields") or {}
    facts = line.get("facts") or {}
    wrapped = facts.get("message")
    message = wrapped.get("message") if isinstance(wrapped, Mapping) else None
    message = message if isinstance(message, Mapping) else {}
    channel = line.get("channel")
    return TraceRow(
        run=line.get("run") or "",
        number=line.get("number", number),
        time=line["time"],
        alias=line["alias"],
        kind=line["kind"],
        name=line["name"],
        direction=line.get("direction"),
        channel=facts.get("channel") if channel is None else channel,
        size=line.get("size") or 0,
        queue=fields.get("queue", facts.get("queue")),
        consumer_tag=fields.get("consumer_tag", facts.get("consumer")),
        delivery_tag=fields.get("delivery_tag", facts.get("delivery_tag")),
        multiple=bool(fields.get("multiple")),
        requeue=bool(fields.get("requeue")),
        redelivered=fields.get("redelivered", facts.get("redelivered")),
        no_ack=fields.get("no_ack", facts.get("no_ack")),
        no_wait=bool(fields.get("no_wait")),
        prefetch=fields.get("prefetch_count", facts.get("prefetch")),
        shared=fields.get("global", facts.get("shares_prefetch")),
        message=message.get("number") or None,
        priority=(message.get("properties") or {}).get("priority"),
        body_size=line.get("body_size") or 0,
        text=line.get("text") or "",
    )
