"""Rows with the columns of the Spark view `trace`, made from events or recorded lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from fakeamqp.trace import Event
from fakeamqp.trace.json_form import event_to_json

__all__ = ["Record", "Row", "runs"]

Record: TypeAlias = "Event | Mapping[str, Any]"
"""An event of a trace, or a line of a recording as `json.loads` returns it."""


@dataclass(slots=True)
class Row:
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


def runs(records: Iterable[Record]) -> Iterator[list[Row]]:
    """The rows of each run, in order. Records without a `run` belong to one run."""
    rows = sorted(
        (_row(number, record) for number, record in enumerate(records)),
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


def _row(number: int, record: Record) -> Row:
    line = event_to_json(record) if isinstance(record, Event) else record
    fields = line.get("fields") or {}
    facts = line.get("facts") or {}
    wrapped = facts.get("message")
    message = wrapped.get("message") if isinstance(wrapped, Mapping) else None
    message = message if isinstance(message, Mapping) else {}
    channel = line.get("channel")
    return Row(
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
