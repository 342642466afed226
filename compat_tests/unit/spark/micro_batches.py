"""Spark's side of a streaming query without Spark: it calls a reader as Spark does, in this process.

The order per trigger is `latestOffset`, the offset log, `commit` of the batch before, `partitions`, the
tasks, the sink, the commit log. A query that starts again with a batch in the offset log and not in the
commit log repeats that one before it asks for more.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp import Broker
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue.reader import QueueStreamReader
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.shards import ShardStreamReader

#: Where a query may die, in the order in which it gets there.
MOMENTS = ("asked", "logged", "planned", "sunk", "done")


class Died(Exception):
    """The query was killed."""


class Limit:
    """As `pyspark.sql.streaming.datasource.ReadMaxRows`, which old versions do not have."""

    def __init__(self, rows: int) -> None:
        self.max_rows = rows


class ReadAllAvailable:
    """As the class of that name."""


class Query:
    """A query on a checkpoint, with a sink that writes every batch once."""

    def __init__(self, broker: Broker, *, modern: bool = True, **options: Any) -> None:
        self.options = {
            "amqp.url": broker.url,
            "idleTimeout": "2s",
            **{k: str(v) for k, v in options.items()},
        }
        self.modern = modern
        self.offsets: list[tuple[str, str]] = []
        self.committed = 0
        self.sink: dict[int, list[dict[str, Any]]] = {}
        self.planned: dict[int, list[dict[str, Any]]] = {}
        self.reader: Any = None
        self._fixed_end: str | None = None

    # --- life -----------------------------------------------------------------------------------------

    def start(self, *, available_now: bool = False) -> Query:
        """Start, and repeat what was not finished."""
        parsed = read_options(self.options, streaming=True)
        make = ShardStreamReader if parsed.shards else QueueStreamReader
        self.reader = make(parsed, chosen_columns(parsed))
        self._fixed_end = None
        if available_now and self.modern:
            self.reader.prepareForTriggerAvailableNow()
        elif available_now:  # Spark asks for the end of the run before it repeats what was not finished.
            self._fixed_end = json.dumps(self.reader.latestOffset())
        if not self.offsets:
            self.initial = json.dumps(self.reader.initialOffset())
        elif not self.modern:
            assert self.rows(self.end, self.end) == []
        if self.committed < len(self.offsets):
            self._run(None)
        return self

    def stop(self) -> None:
        """End as after SIGTERM."""
        if self.reader is not None:
            self.reader.stop()
            self.reader = None

    def kill(self) -> None:
        """End as after SIGKILL: what is not in the spool by now never will be."""
        running, self.reader._running = self.reader._running, None
        if running is not None:
            running.close() if self.options.get("shards") else running.close(flush=False)
            self.reader._restore_signal()
        self.reader = None

    # --- batches --------------------------------------------------------------------------------------

    @property
    def end(self) -> str:
        return self.offsets[-1][1] if self.offsets else self.initial

    def batch(self, die: str | None = None, limit: Any = None) -> list[dict[str, Any]]:
        """Run one batch; nothing if there is no new message. `die` is one of MOMENTS to be killed at."""
        start = self.end
        if self.modern:
            limit = limit or Limit(int(self.options.get("maxMessagesPerTrigger", 10_000)))
            end = json.dumps(self.reader.latestOffset(json.loads(start), limit))
        elif self._fixed_end:
            end = self._fixed_end
            self.reader.latestOffset()  # For the progress.
        else:
            end = json.dumps(self.reader.latestOffset())
        self._pass(die, "asked")
        if end == start:
            return []
        self.offsets.append((start, end))
        return self._run(die)

    def _run(self, die: str | None) -> list[dict[str, Any]]:
        number = len(self.offsets) - 1
        start, end = self.offsets[number]
        self._pass(die, "logged")
        if number:
            self.reader.commit(json.loads(start))
        rows = self.rows(start, end)
        if number in self.planned:
            assert rows == self.planned[number], "the same offsets gave other rows"
        self.planned[number] = rows
        self._pass(die, "planned")
        self.sink.setdefault(number, rows)
        self._pass(die, "sunk")
        self.committed = number + 1
        self._pass(die, "done")
        return rows

    def _pass(self, die: str | None, moment: str) -> None:
        if die == moment:
            self.kill()
            raise Died(moment)

    def rows(self, start: str, end: str) -> list[dict[str, Any]]:
        """The rows of a range, by way of executors."""
        return table(self.reader, self.reader.partitions(json.loads(start), json.loads(end))).to_pylist()

    def all(self, most: int = 1000) -> list[dict[str, Any]]:
        """Run batches until there is nothing new; the rows of all batches of the query's life."""
        for _ in range(most):
            if not self.batch():
                return self.seen
        raise AssertionError(f"there is still something new after {most} batches")

    @property
    def seen(self) -> list[dict[str, Any]]:
        return [row for number in sorted(self.sink) for row in self.sink[number]]


def table(reader: Any, partitions: Iterable[Any]) -> pa.Table:
    """What executors read, who get the reader and their partitions pickled."""
    batches = []
    for partition in partitions:
        there = pickle.loads(pickle.dumps(reader))
        batches.extend(there.read(pickle.loads(pickle.dumps(partition))))
    return pa.Table.from_batches(batches) if batches else pa.table({})


def publish(broker, *numbers, queue="orders", **properties):
    for number in numbers:
        broker.publish(str(number), routing_key=queue, message_id=f"m{number}", **properties)


def values(rows):
    return [int(row["value"]) for row in rows]
