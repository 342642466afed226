"""Trace records as rows with the columns of the view `trace`, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from fakeamqp.trace import Event
from fakeamqp.trace.plain import plain

__all__ = ["Record", "Row", "runs"]

Record: TypeAlias = "Event | Mapping[str, Any]"
"""An event of a trace, or a line of a recording that `json.loads` has read."""


@dataclass(slots=True)
class Row:
    """One event; `fakeamqp.spark.traces.COLUMNS` says what each value is."""

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
        """Whether a client has sent it."""
        return self.direction == "received"

    @property
    def place(self) -> tuple[str, int | None, int]:
        """One channel from its opening to the next."""
        return self.alias, self.channel, self.session


def runs(records: Iterable[Record]) -> Iterator[list[Row]]:
    """The rows of each run, in order. What tells them apart is `run`; what has none is of one run."""
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
    said = plain(record) if isinstance(record, Event) else record
    fields = said.get("fields") or {}
    facts = said.get("facts") or {}
    marked = facts.get("message")
    message = marked.get("message") if isinstance(marked, Mapping) else None
    message = message if isinstance(message, Mapping) else {}
    channel = said.get("channel")
    return Row(
        run=said.get("run") or "",
        number=said.get("number", number),
        time=said["time"],
        alias=said["alias"],
        kind=said["kind"],
        name=said["name"],
        direction=said.get("direction"),
        channel=facts.get("channel") if channel is None else channel,
        size=said.get("size") or 0,
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
        body_size=said.get("body_size") or 0,
        text=said.get("text") or "",
    )
