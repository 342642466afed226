"""First deliveries out of order: the reference implementation of `fifo_violations.sql`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakeamqp.trace.checks.rows import Record, runs

__all__ = ["fifo_violations"]

_IN_QUEUE = frozenset(("enqueued", "delivered", "acked", "rejected", "requeued"))


def fifo_violations(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows of `Traces.fifo_violations`, as dictionaries."""
    found = []
    for run in runs(records):
        latest: dict[tuple[int, str | None], tuple[str, int]] = {}
        rerouted: set[int] = set()
        furthest: dict[tuple[Any, ...], tuple[int, int, int]] = {}
        for row in run:
            if row.kind != "model" or row.message is None:
                continue
            if row.name in ("dead-lettered", "delay over"):
                rerouted.add(row.message)
            if row.name not in _IN_QUEUE:
                continue
            before, place = latest.get((row.message, row.queue), ("", -1))
            latest[row.message, row.queue] = (row.name, row.number)
            first = row.name == "delivered" and before == "enqueued" and row.redelivered is False
            if not first or row.message in rerouted:
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
