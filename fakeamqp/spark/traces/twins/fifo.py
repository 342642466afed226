"""First deliveries out of order; the twin of `fifo_violations.sql`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakeamqp.spark.traces.twins.records import Record, runs

__all__ = ["fifo_violations"]

_IN_QUEUE = frozenset(("enqueued", "delivered", "acked", "rejected", "requeued"))


def fifo_violations(records: Iterable[Record]) -> list[dict[str, Any]]:
    """What `Traces.fifo_violations` returns, as dictionaries."""
    found = []
    for run in runs(records):
        latest: dict[tuple[int, str | None], tuple[str, int]] = {}
        astray: set[int] = set()
        furthest: dict[tuple[Any, ...], tuple[int, int, int]] = {}
        for row in run:
            if row.kind != "model" or row.message is None:
                continue
            if row.name in ("dead-lettered", "delay over"):
                astray.add(row.message)
            if row.name not in _IN_QUEUE:
                continue
            before, place = latest.get((row.message, row.queue), ("", -1))
            latest[row.message, row.queue] = (row.name, row.number)
            first = row.name == "delivered" and before == "enqueued" and row.redelivered is False
            if not first or row.message in astray:
                continue
            priority = row.priority or 0
            path = (*row.place, row.queue, priority)
            ahead = furthest.get(path)
            if ahead is not None and place < ahead[0]:
                found.append(
                    {
                        "run": row.run,
                        "number": row.number,
                        "alias": row.alias,
                        "channel": row.channel,
                        "session": row.session,
                        "queue": row.queue,
                        "consumer_tag": row.consumer_tag,
                        "delivery_tag": row.delivery_tag,
                        "priority": priority,
                        "message": row.message,
                        "enqueued_number": place,
                        "overtaken_by": ahead[1],
                        "overtaken_by_number": ahead[2],
                    }
                )
            furthest[path] = max(furthest.get(path, (-1, -1, -1)), (place, row.message, row.number))
    return found
