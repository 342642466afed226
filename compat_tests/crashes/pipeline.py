"""A streaming job in a process of its own, to be killed: `python -m compat_tests.crashes.pipeline job.json`.

One session runs a query per lane: a queue into a sink that writes a file per micro-batch, and none for a
batch that it has written before. The sink notes every call, also those it has nothing to do for.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from fakeamqp.spark import local_session

PAUSE = threading.Event()


class Sink:
    """Takes a batch once, by its number. After batch `hold_after` it never returns."""

    def __init__(self, folder: Path, hold_after: int | None) -> None:
        self._folder = folder
        self._hold_after = hold_after
        folder.mkdir(exist_ok=True)

    def __call__(self, batch: DataFrame, number: int) -> None:
        rows = [list(row) for row in batch.select("message_id", "offset", "value").collect()]
        rows = [[name, offset, json.loads(value)["id"]] for name, offset, value in rows]
        file = self._folder / f"{number}.json"
        with (self._folder / "calls").open("a") as calls:
            calls.write(json.dumps({"batch": number, "again": file.exists(), "rows": rows}) + "\n")
        if not file.exists():
            unfinished = file.with_suffix(".tmp")
            unfinished.write_text(json.dumps(rows))
            os.replace(unfinished, file)
        if number == self._hold_after:
            (self._folder / "held").touch()
            threading.Event().wait()


def start(spark: SparkSession, lane: dict[str, Any], trigger: dict[str, Any]) -> StreamingQuery:
    folder = Path(lane["folder"])
    query = (
        spark.readStream.format("amqp")
        .options(**lane["options"])
        .load()
        .writeStream.foreachBatch(Sink(folder / "sink", lane["hold_after"]))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .queryName(lane["name"])
        .trigger(**trigger)
        .start()
    )
    # One after the other: Spark gives the process of a source ten seconds to start, on any machine.
    while query.isActive and query.status["message"].startswith("Initializing"):
        PAUSE.wait(0.01)
    return query


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    with local_session(app_name="crashes", fast=job["fast"], master=job["master"]) as spark:
        trigger = {"availableNow": True} if job["to_the_end"] else {"processingTime": "0 seconds"}
        queries = [start(spark, lane, trigger) for lane in job["lanes"]]
        for query in queries:
            query.awaitTermination()


if __name__ == "__main__":
    main()
