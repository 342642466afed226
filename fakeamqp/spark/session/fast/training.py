"""A program: a session uses the features that tests use, so that Java loads the classes that they need.

`python -m fakeamqp.spark.session.fast.training ARCHIVE` writes the archive when its Java exits.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["train"]


def train(spark: SparkSession, folder: Path) -> None:
    """Use the features of streaming jobs: JSON, watermark, duplicates, windows, state, Python."""
    rows = [(f'{{"id": {n}, "ts": "2026-01-01T00:0{n}:00Z", "total": {n}.5}}',) for n in range(10)]
    texts = spark.createDataFrame(rows, "value STRING")
    texts.write.text(str(folder / "in"))
    spark.createDataFrame(texts.collect()).createOrReplaceTempView("texts")
    spark.sql("SELECT length(value) AS n, count(*) FROM texts GROUP BY 1 ORDER BY 1").collect()
    for available_now in (True, False):
        query = (
            _totals(spark.readStream.text(str(folder / "in")))
            .writeStream.foreachBatch(_collect)
            .option("checkpointLocation", str(folder / f"checkpoint-{available_now}"))
        )
        if available_now:
            query.trigger(availableNow=True).start().awaitTermination()
        else:
            running = query.start()
            running.processAllAvailable()
            running.stop()


def train_on_a_broker(spark: SparkSession, folder: Path) -> None:
    """The same with a queue as the source and an exchange as the sink."""
    from fakeamqp import Broker
    from fakeamqp.spark.testing import AmqpStream

    with Broker() as broker:
        broker.load_definitions({"queues": [{"name": name, "vhost": "/"} for name in ("in", "out")]})
        for n in range(10):
            broker.publish(f'{{"id": {n}, "ts": "2026-01-01T00:0{n}:00Z", "total": {n}.5}}', routing_key="in")
        stream = AmqpStream(spark, broker.url, folder / "amqp")
        stream.run_available(_messages, queue="in", exchange="", routingKey="out")
        spark.read.format("amqp").options(**stream.options(), queue="out").load().collect()


def _collect(batch: DataFrame, number: int) -> None:
    batch.collect()


def _totals(texts: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    orders = texts.select(
        f.from_json(f.col("value").cast("string"), "id INT, ts TIMESTAMP, total DOUBLE").alias("o")
    )
    return (
        orders.select("o.*")
        .withWatermark("ts", "1 minute")
        .dropDuplicatesWithinWatermark(["id"])
        .groupBy(f.window("ts", "5 minutes"))
        .agg(f.sum("total").alias("total"))
    )


def _messages(texts: DataFrame) -> DataFrame:
    return _totals(texts.select("value")).selectExpr("to_json(struct(total)) AS value")


def main(archive: str) -> None:
    """Train, and let Java write the archive."""
    from fakeamqp.spark.session import jvm
    from fakeamqp.spark.session.local import local_session

    jvm.patience = 120.0  # Java writes the archive when it exits.
    config = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}"}
    with tempfile.TemporaryDirectory() as folder, local_session(config=config) as spark:
        train(spark, Path(folder))
        try:
            train_on_a_broker(spark, Path(folder))
        except Exception as error:
            print(f"without a broker: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
