"""First deliveries out of order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fakeamqp.trace.checks.rows import Record, TraceRow, found

__all__ = ["FifoCheck", "fifo_violations"]

_IN_QUEUE = frozenset(("enqueued", "delivered", "acked", "rejected", "requeued"))


class FifoCheck:
    """Finds, in the rows of one run, first deliveries after that of a message that was enqueued later."""

    def __init__(self) -> None:
        self._latest: dict[tuple[int, str | None], tuple[str, int]] = {}
        self._rerouted: set[int] = set()
        self._furthest: dict[tuple[Any, ...], tuple[int, int, int]] = {}

    def see(self, row: TraceRow) -> Iterator[dict[str, Any]]:
        """What the next row shows."""
        if row.kind != "model" or row.message is None:
            return
        if row.name in ("dead-lettered", "delay over"):
            self._rerouted.add(row.message)
        if row.name not in _IN_QUEUE:
            return
        before, place = self._latest.get((row.message, row.queue), ("", -1))
        self._latest[row.message, row.queue] = (row.name, row.number)
        first = row.name == "delivered" and before == "enqueued" and row.redelivered is False
        if not first or row.message in self._rerouted:
            return
        priority = row.priority or 0
        path = (*row.place, row.queue, priority)
        ahead = self._furthest.get(path)
        if ahead is not None and place < ahead[0]:
            yield {
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
        self._furthest[path] = max(ahead or (-1, -1, -1), (place, row.message, row.number))

    def end(self) -> Iterable[dict[str, Any]]:
        """What the end of the run shows: nothing."""
        return ()


def fifo_violations(records: Iterable[Record]) -> list[dict[str, Any]]:
    """The rows of `Traces.fifo_violations`, as dictionaries."""
    return list(found(FifoCheck, records))
