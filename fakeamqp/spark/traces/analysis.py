"""Recordings as views, and the questions that are asked of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.spark.traces.columns import COLUMNS
from fakeamqp.spark.traces.reading import Format, located, read
from fakeamqp.spark.traces.sql import text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Traces", "load", "of", "report"]

PathLike: TypeAlias = "str | os.PathLike[str]"


class Traces:
    """What happened in one broker or in many, to be asked with SQL.

    Each question is a file of SQL over two temporary views, `trace` (an event in a row) and `deliveries` (a
    message that went to a client in a row); docs/spark-traces.md has their columns. The views of a session
    are those of the `Traces` that was asked last. Nothing is read before a result is looked at, and then all
    is read each time: `save` big recordings first.

    Args:
        events: rows with the columns of `trace`.
        damaged: lines of files that were none, with the columns `run` and `line`.
    """

    def __init__(self, events: DataFrame, damaged: DataFrame | None = None) -> None:
        self.events = events
        if damaged is None:
            damaged = events.sparkSession.createDataFrame([], "run STRING, line STRING")
        self.damaged = damaged

    # --- the questions --------------------------------------------------------------------------------

    def latency_by_queue(self) -> DataFrame:
        """Seconds that messages waited in a queue for their first delivery.

        Columns: virtual_host, queue, messages (how many were delivered), p50, p95, p99, max.
        """
        return self._ask("latency_by_queue")

    def redelivery_rate(self) -> DataFrame:
        """What part of a queue's deliveries were not the first.

        Columns: virtual_host, queue, deliveries, redelivered, rate (0 to 1), acked, rejected, requeued.
        """
        return self._ask("redelivery_rate")

    def unacked_age(self) -> DataFrame:
        """Seconds from a delivery to its settlement, by queue.

        Columns: virtual_host, queue, settled (how many), p50, p95, p99, max, unsettled (how many were still
        held where the trace ends), oldest_unsettled (seconds that one of them had been held by then).
        """
        return self._ask("unacked_age")

    def unacked_high_water(self) -> DataFrame:
        """The most messages that a consumer, or all of a channel, held at once, against their prefetch.

        Columns: run, alias, channel, session, scope ('consumer' or 'channel'), consumer_tag, consumer,
        deliveries, high_water, high_water_number (where that was first), prefetch (0: no limit), exceedances
        (how many deliveries were beyond it), first_exceedance (the number of the first). Those with
        exceedances come first.
        """
        return self._ask("unacked_high_water")

    def fifo_violations(self) -> DataFrame:
        """First deliveries behind one of a message that was enqueued later, where order is promised.

        Columns: run, number, alias, channel, session, queue, consumer_tag, delivery_tag, priority, message,
        enqueued_number, overtaken_by (a message), overtaken_by_number (its delivery).
        """
        return self._ask("fifo_violations")

    def conformance(self) -> DataFrame:
        """Frames and events that break a rule of the protocol.

        Columns: run, number, time, alias, channel, session, rule, broken_by ('client' or 'broker'), spec (the
        id of the rule in the documents, or null), says (the rule in words), name, delivery_tag, consumer_tag.
        """
        return self._ask("conformance")

    def sql(self, text: str) -> DataFrame:
        """Any other question, in SQL over the views `trace` and `deliveries`."""
        self.create_views()
        return self.events.sparkSession.sql(text)

    def create_views(self) -> None:
        """Make `trace` and `deliveries` the views of these traces, for `spark.sql`."""
        self.events.createOrReplaceTempView("trace")
        self.events.sparkSession.sql(text_of("deliveries")).createOrReplaceTempView("deliveries")

    def _ask(self, name: str) -> DataFrame:
        return self.sql(text_of(name))

    # --- what to keep ---------------------------------------------------------------------------------

    def save(self, path: PathLike) -> None:
        """Write the rows of `trace` to a folder of Parquet files, which `load` reads many times as fast.

        Args:
            path: of the folder; one that is there is replaced.
        """
        self.events.write.mode("overwrite").parquet(located(self.events.sparkSession, path))

    def html(self, path: PathLike | None = None, *, title: str = "", rows: int = 200) -> str:
        """All answers on one self-contained page. It loads nothing from anywhere.

        Args:
            path: also write it to this file; one that is there is replaced.
            title: what the traces are of.
            rows: how many rows of each answer are shown.

        Raises:
            OSError: the file cannot be written.
        """
        from fakeamqp.spark.traces.html import page

        text = page(self, title, rows)
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        return text


def load(
    spark: SparkSession, paths: PathLike | Iterable[PathLike], *, format: Format | None = None
) -> Traces:
    """Read traces: recordings as JSON Lines or Parquet (`Trace.jsonl`, `.parquet`), or what `save` wrote.

    Args:
        spark: the session.
        paths: a file, a folder with all that is below it, a pattern with `*`, or several of them.
        format: "jsonl" or "parquet"; by default as the names end. Of a folder with both, Parquet is read.

    Raises:
        RecordingError: there is nothing to read, or the first of it is no recording; the text says which.
    """
    return Traces(*read(spark, paths, format))


def of(events: DataFrame) -> Traces:
    """Traces of rows that have the columns of `trace`, wherever they are from."""
    return Traces(events.select(*COLUMNS))


def report(
    spark: SparkSession,
    paths: PathLike | Iterable[PathLike],
    output: PathLike,
    *,
    title: str = "",
    format: Format | None = None,
) -> None:
    """Read traces and write all answers to one HTML page; see `load` and `Traces.html`."""
    load(spark, paths, format=format).html(output, title=title)
