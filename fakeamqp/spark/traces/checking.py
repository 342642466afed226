"""The checks of `fakeamqp.trace.checks` on the rows of Spark, each run in one task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.trace.checks import Conformance, FifoCheck, HighWater
from fakeamqp.trace.checks.rows import Check, TraceRow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class _Query(NamedTuple):
    """A check, as a query.

    Args:
        check: its class.
        rows: a condition for the rows of the view `trace` that it needs.
        columns: the columns of what it finds.
        order: the columns that what it finds is ordered by; `-` means descending.
    """

    check: Callable[[], Check]
    rows: str
    columns: str
    order: str = "run number"


_PLACE = "alias STRING, channel INT, session INT"
_QUERIES = {
    "conformance": _Query(
        Conformance,
        "true",
        f"run STRING, number BIGINT, time DOUBLE, {_PLACE}, rule STRING, broken_by STRING, spec STRING, "
        "description STRING, name STRING, delivery_tag BIGINT, consumer_tag STRING",
        "run number rule",
    ),
    "fifo_violations": _Query(
        FifoCheck,
        "kind = 'model' AND message IS NOT NULL",
        f"run STRING, number BIGINT, {_PLACE}, queue STRING, consumer_tag STRING, delivery_tag BIGINT, "
        "priority INT, message BIGINT, enqueued_number BIGINT, overtaken_by BIGINT, "
        "overtaken_by_number BIGINT",
    ),
    "unacked_high_water": _Query(
        HighWater,
        "kind = 'model' AND channel IS NOT NULL OR name = 'basic.qos'",
        f"run STRING, {_PLACE}, scope STRING, consumer_tag STRING, consumer INT, deliveries BIGINT, "
        "high_water BIGINT, high_water_number BIGINT, prefetch BIGINT, exceedances BIGINT, "
        "first_exceedance BIGINT",
        "-exceedances -high_water run alias channel session scope consumer_tag consumer",
    ),
}


def checked(name: str, events: DataFrame) -> DataFrame:
    """What the check of this name finds in rows of the view `trace`."""
    from pyspark.sql import functions as F

    query = _QUERIES[name]
    check = query.check

    class Task:
        """Gets the rows of one run, in their order."""

        def __init__(self) -> None:
            self._check = check()

        def eval(self, row: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
            for found in self._check.see(TraceRow(*row)):
                yield tuple(found.values())

        def terminate(self) -> Iterator[tuple[Any, ...]]:
            for found in self._check.end():
                yield tuple(found.values())

    # A row has no null where the check has a default.
    columns = [
        F.coalesce(field.name, F.lit(field.default)).alias(field.name)
        if field.default not in (None, MISSING)
        else F.col(field.name)
        for field in fields(TraceRow)
    ]
    # The checks read no other texts, and these are most of the bytes.
    events = events.withColumn("text", F.expr("IF(kind = 'connection', text, '')"))
    runs = events.where(query.rows).select(*columns).asTable().partitionBy("run").orderBy("number")
    # With Arrow it would need pandas. PySpark's types do not know that a table can be the argument.
    task: Any = F.udtf(Task, returnType=query.columns, useArrow=False)
    found: DataFrame = task(runs)
    return found.orderBy(*(F.desc(each[1:]) if each[0] == "-" else each for each in query.order.split()))
