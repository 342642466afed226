"""The check of conformance on the rows of Spark, each run in one task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

from fakeamqp.trace import checks
from fakeamqp.trace.checks.rows import Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["conformance"]

_COLUMNS = (
    "run STRING, number BIGINT, time DOUBLE, alias STRING, channel INT, session INT, rule STRING, "
    "broken_by STRING, spec STRING, description STRING, name STRING, delivery_tag BIGINT, consumer_tag STRING"
)


class _Check:
    """Gets the rows of one run, in their order."""

    def __init__(self) -> None:
        self._rows: list[Row] = []

    def eval(self, row: Iterable[Any]) -> None:
        self._rows.append(Row(*row))

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        return (tuple(found.values()) for found in checks.conformance(self._rows))


def conformance(events: DataFrame) -> DataFrame:
    """What `fakeamqp.trace.checks.conformance` finds in rows of the view `trace`."""
    from pyspark.sql import functions as F

    # A row has no null where the check has a default.
    columns = [
        F.coalesce(field.name, F.lit(field.default)).alias(field.name)
        if field.default not in (None, MISSING)
        else F.col(field.name)
        for field in fields(Row)
    ]
    runs = events.select(*columns).asTable().partitionBy("run").orderBy("number")
    # With Arrow it would need pandas. PySpark's types do not know that a table can be the argument.
    check: Any = F.udtf(_Check, returnType=_COLUMNS, useArrow=False)
    found: DataFrame = check(runs)
    return found.orderBy("run", "number", "rule")
