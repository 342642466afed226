"""Recordings as views, and the queries over them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.spark.traces.checking import checked
from fakeamqp.spark.traces.reading import COLUMNS, Format, located, read, sql_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PathLike: TypeAlias = "str | os.PathLike[str]"


class Traces:
    """The traces of one or more brokers, for queries in SQL.

    The queries about violations run the checks of `fakeamqp.trace.checks`, each run in one task. Each other
    query is a file of SQL over two temporary views, `trace` (one row per event) and `deliveries` (one row per
    delivery to a client); docs/spark-traces.md has their columns. Such a query sets the views of the session
    to those of its `Traces`. Recordings are read for each result again: `save` large recordings first.

    Args:
        events: rows with the columns of `trace`.
        damaged: the damaged lines of files, with the columns `run` and `line`.
    """

    def __init__(self, events: DataFrame, damaged: DataFrame | None = None) -> None:
        self.events = events
        if damaged is None:
            damaged = events.sparkSession.createDataFrame([], "run STRING, line STRING")
        self.damaged = damaged

    def latency_by_queue(self) -> DataFrame:
        """The seconds from entering a queue to the first delivery.

        Columns: virtual_host, queue, messages (the number delivered), p50, p95, p99, max.
        """
        return self._ask("latency_by_queue")

    def redelivery_rate(self) -> DataFrame:
        """The share of redeliveries in the deliveries of a queue.

        Columns: virtual_host, queue, deliveries, redelivered, rate (0 to 1), acked, rejected, requeued.
        """
        return self._ask("redelivery_rate")

    def unacked_age(self) -> DataFrame:
        """The seconds from a delivery to its settlement, by queue.

        Columns: virtual_host, queue, settled (their number), p50, p95, p99, max, unsettled (the number at the
        end of the trace), oldest_unsettled (the age of the oldest of them in seconds).
        """
        return self._ask("unacked_age")

    def unacked_high_water(self) -> DataFrame:
        """The maximum of unsettled messages of each consumer and each channel, compared with the prefetch.

        Columns: run, alias, channel, session, scope ('consumer' or 'channel'), consumer_tag, consumer,
        deliveries, high_water, high_water_number (the event where it was reached first), prefetch (0: no
        limit), exceedances (the number of deliveries beyond it), first_exceedance (the event of the first).
        Rows with exceedances are first.
        """
        return checked("unacked_high_water", self.events)

    def fifo_violations(self) -> DataFrame:
        """First deliveries after the delivery of a message that was enqueued later, if order is guaranteed.

        Columns: run, number, alias, channel, session, queue, consumer_tag, delivery_tag, priority, message,
        enqueued_number, overtaken_by (a message), overtaken_by_number (its delivery).
        """
        return checked("fifo_violations", self.events)

    def conformance(self) -> DataFrame:
        """Frames and events that violate a rule of the protocol.

        Columns: run, number, time, alias, channel, session, rule, broken_by ('client' or 'broker'), spec (the
        id of the rule in the documents, or null), description, name, delivery_tag, consumer_tag.
        """
        return checked("conformance", self.events)

    def sql(self, text: str) -> DataFrame:
        """Your own query, in SQL over the views `trace` and `deliveries`."""
        self.create_views()
        return self.events.sparkSession.sql(text)

    def create_views(self) -> None:
        """Set the views `trace` and `deliveries` to these traces, for `spark.sql`."""
        self.events.createOrReplaceTempView("trace")
        self.events.sparkSession.sql(sql_of("deliveries")).createOrReplaceTempView("deliveries")

    def _ask(self, name: str) -> DataFrame:
        return self.sql(sql_of(name))

    def save(self, path: PathLike) -> None:
        """Write the rows of `trace` to a folder of Parquet files, which `load` reads much faster.

        Args:
            path: of the folder; an existing one is replaced.
        """
        self.events.write.mode("overwrite").parquet(located(self.events.sparkSession, path))

    def html(self, path: PathLike | None = None, *, title: str = "", rows: int = 200) -> str:
        """All results on one self-contained page, which loads no other resource.

        Args:
            path: also write the page to this file; an existing file is replaced.
            title: of the page.
            rows: the number of rows to show of each result.

        Raises:
            OSError: the file cannot be written.
        """
        from fakeamqp.trace.report import QUERIES, Totals, page

        asked = {name: getattr(self, name)().limit(rows + 1).collect() for name in QUERIES}
        answers = {name: [row.asDict() for row in found] for name, found in asked.items()}
        (counted,) = self.sql(
            "SELECT count(*) AS events, count(DISTINCT run) AS runs, count(DISTINCT run, alias) "
            "FILTER (WHERE kind = 'connection') AS connections, coalesce(max(time), 0) AS seconds FROM trace"
        ).collect()
        text = page(answers, Totals(**counted.asDict(), damaged=self.damaged.count()), title, rows)
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        return text


def load(
    spark: SparkSession, paths: PathLike | Iterable[PathLike], *, format: Format | None = None
) -> Traces:
    """Read traces: recordings as JSON Lines or Parquet (`Trace.jsonl`, `.parquet`), or the files of `save`.

    Args:
        spark: the session.
        paths: a file, a folder with its subfolders, a pattern with `*`, or several of them.
        format: "jsonl" or "parquet"; the default depends on the extensions. A folder with both is read as
            Parquet.

    Raises:
        RecordingError: there are no files, or the first one is not a recording; the text names it.
    """
    return Traces(*read(spark, paths, format))


def of(events: DataFrame) -> Traces:
    """Traces of any rows with the columns of `trace`."""
    return Traces(events.select(*COLUMNS))


def report(
    spark: SparkSession,
    paths: PathLike | Iterable[PathLike],
    output: PathLike,
    *,
    title: str = "",
    format: Format | None = None,
) -> None:
    """Read traces and write all results to one HTML page; see `load` and `Traces.html`."""
    load(spark, paths, format=format).html(output, title=title)
