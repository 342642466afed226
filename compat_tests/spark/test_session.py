"""What the session of `spark_amqp` is like."""

from __future__ import annotations

import datetime
import os
import sys
import time


def test_times_are_utc_in_spark_in_workers_and_here(spark):
    noon = datetime.datetime(2026, 7, 1, 12)
    rows = spark.createDataFrame([(noon,)], "at TIMESTAMP")
    assert rows.selectExpr("hour(at) AS hour").first().hour == 12
    assert rows.first().at == noon

    def zone(_):
        import time

        return time.tzname[0]

    assert spark.sparkContext.parallelize([0], 1).map(zone).collect() == ["UTC"]
    assert time.tzname[0] == "UTC"


def test_workers_run_this_python(spark):
    def python(_):
        import sys

        return sys.executable

    [found] = spark.sparkContext.parallelize([0], 1).map(python).collect()
    assert os.path.dirname(found) == os.path.dirname(sys.executable)


def test_checkpoints_are_written_without_forks(spark):
    """The class that does it moved between versions of Spark: this one has it under the name that was set."""
    name = spark.conf.get("spark.sql.streaming.checkpointFileManagerClass")
    loader = spark.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    assert loader.loadClass(name).getSimpleName() == "FileSystemBasedCheckpointFileManager"


def test_a_table_goes_to_a_folder_of_the_session(spark):
    before = set(os.listdir())
    spark.range(3).write.saveAsTable("numbers")
    try:
        assert spark.table("numbers").count() == 3
        assert set(os.listdir()) == before
    finally:
        spark.sql("DROP TABLE numbers")
