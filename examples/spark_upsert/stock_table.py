"""Keeps a table of what is left of each article in a shop, by the changes that come from a queue.

A change is JSON, such as `{"article": "plums", "left": 40}`. Each micro-batch is merged into a table of
Parquet files: the newest change of an article replaces its row. Spark may run a batch again after a crash, so
the table remembers the number of its last batch, and leaves out a batch that it has already.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from fakeamqp.spark import register

CHANGES = "stock.changes"
ROW = "article STRING, left INT"


class StockTable:
    """A table in a folder: one version for each batch, and a file that names the present one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._present = folder / "present"

    @property
    def batch(self) -> int:
        """The number of the batch that was merged last; -1 if there is none."""
        return int(self._present.read_text()) if self._present.exists() else -1

    def rows(self, spark: SparkSession) -> DataFrame:
        """The present rows."""
        if self.batch < 0:
            return spark.createDataFrame([], ROW)
        return spark.read.schema(ROW).parquet(str(self._version(self.batch)))

    def merge(self, changes: DataFrame, batch: int) -> None:
        """Replace the rows of the articles in `changes`, unless the table has this batch already."""
        before = self.batch
        if batch <= before:
            return
        newest = changes.groupBy("article").agg(F.max_by("left", "offset").alias("left"))
        kept = self.rows(changes.sparkSession).join(newest, "article", "left_anti")
        kept.unionByName(newest).write.mode("overwrite").parquet(str(self._version(batch)))
        # A rename is all or nothing: a crash leaves the version before, or this one.
        unfinished = self._present.with_suffix(".tmp")
        unfinished.write_text(str(batch))
        unfinished.replace(self._present)
        if before >= 0:
            shutil.rmtree(self._version(before))

    def _version(self, batch: int) -> Path:
        return self._folder / f"batch-{batch}"


def changes(messages: DataFrame) -> DataFrame:
    """The changes of articles, in the order of their column `offset`; messages that are none are left out."""
    change = F.from_json(F.col("value").cast("string"), ROW)
    return messages.select("offset", change.alias("change")).select("offset", "change.*").dropna()


def into(table: StockTable) -> Callable[[DataFrame], DataStreamWriter]:
    """The pipeline from messages to the table."""
    return lambda messages: changes(messages).writeStream.foreachBatch(table.merge)


def main() -> None:
    state = Path(os.environ.get("STATE_DIR", "stock-table"))
    spark = SparkSession.builder.appName("stock-table").getOrCreate()
    register(spark)
    source = spark.readStream.format("amqp").option("queue", CHANGES).option("spoolDir", str(state / "spool"))
    source = source.option("amqp.url", os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/"))
    writer = into(StockTable(state / "table"))(source.load())
    writer.option("checkpointLocation", str(state / "checkpoint")).start().awaitTermination()


if __name__ == "__main__":
    main()
