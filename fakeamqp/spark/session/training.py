"""A program: a session uses the features that tests use, so that Java loads the classes that they need.

`python -m fakeamqp.spark.session.training ARCHIVE` writes the archive of fast mode when its Java exits.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def train(spark: SparkSession, folder: Path) -> None:
    """Use the features of streaming jobs: JSON, watermark, duplicates, windows, state, Python."""
    from fakeamqp import Broker
    from fakeamqp.spark.testing import AmqpStream

    with Broker(definitions={"queues": [{"name": name} for name in ("in", "out")]}) as broker:
        stream = AmqpStream(spark, broker.url, folder)

        def publish(hour: int) -> None:
            for n in range(10):
                order = {"id": 10 * hour + n, "ts": f"2026-01-01T0{hour}:0{n}:00Z", "total": n}
                broker.publish(json.dumps(order), routing_key="in")

        publish(hour=0)
        spark.read.format("amqp").options(**stream.options(queue="in")).load().collect()
        stream.run_available(_totals, queue="in", exchange="", routingKey="out")
        publish(hour=1)
        stream.start(_totals, queue="in")
        stream.process_all()
        stream.stop()
    spark.createDataFrame([("a",), ("b",)], "value STRING").createOrReplaceTempView("texts")
    spark.sql("SELECT length(value) AS n, count(*) FROM texts GROUP BY 1 ORDER BY 1").collect()


def _totals(messages: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    orders = messages.select(
        f.from_json(f.col("value").cast("string"), "id INT, ts TIMESTAMP, total DOUBLE").alias("o")
    )
    return (
        orders.select("o.*")
        .withWatermark("ts", "1 minute")
        .dropDuplicatesWithinWatermark(["id"])
        .groupBy(f.window("ts", "5 minutes"))
        .agg(f.sum("total").alias("total"))
        .selectExpr("to_json(struct(total)) AS value")
    )


def main(archive: str) -> None:
    """Train, and let Java write the archive."""
    from fakeamqp.spark.session import process
    from fakeamqp.spark.session.local import local_session

    process.patience = 120.0  # Java writes the archive when it exits.
    config = {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={archive}"}
    with tempfile.TemporaryDirectory() as folder, local_session(config=config) as spark:
        train(spark, Path(folder))


if __name__ == "__main__":
    main(sys.argv[1])
