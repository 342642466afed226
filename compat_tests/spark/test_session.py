"""What the session of `amqp_spark` is like."""

from __future__ import annotations

import datetime
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from fakeamqp.spark import register


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


def test_sources_send_messages_in_files_of_the_spool(spark):
    environment = spark.sparkContext._jvm.java.lang.System.getenv()  # Sources and workers inherit it.
    assert environment["FAKEAMQP_SPARK_TRANSPORT"] == "file"


def test_workers_import_installed_pyspark_with_compiled_bytecode(spark):
    import pyspark

    def module(_):
        import pyspark.sql

        return pyspark.sql.__file__, pyspark.sql.__cached__

    [(file, compiled)] = spark.sparkContext.parallelize([0], 1).map(module).collect()
    assert file.startswith(os.environ["SPARK_HOME"])
    assert os.path.samefile(file, pyspark.sql.__file__)
    assert os.path.exists(compiled)


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


def test_the_log_has_errors_of_writes_but_those_that_repeat_the_failure_of_a_task(spark):
    log4j = spark.sparkContext._jvm.org.apache.logging.log4j
    context = log4j.LogManager.getContext(False)
    console = context.getConfiguration().getAppender("console")

    def shown(logger, text):
        event = log4j.core.impl.Log4jLogEvent.newBuilder().setLoggerName(logger)
        event = event.setMessage(log4j.message.SimpleMessage(text)).build()
        enabled = context.getLogger(logger).isErrorEnabled()
        return enabled and not (console.hasFilter() and console.isFiltered(event))

    v2 = "org.apache.spark.sql.execution.datasources.v2"
    repeated = [
        ("org.apache.spark.util.Utils", "Aborting task"),
        (f"{v2}.DataWritingSparkTask", "Aborting commit for partition 1 (task 21, attempt 0, stage 17.0)"),
        (f"{v2}.DataWritingSparkTask", "Aborted commit for partition 1 (task 21, attempt 0, stage 17.0)"),
        (f"{v2}.AppendDataExec", "Data source write support org.example.Write@1 is aborting."),
        (f"{v2}.AppendDataExec", "Data source write support org.example.Write@1 aborted."),
    ]
    assert [each for each in repeated if shown(*each)] == []
    others = [
        ("org.apache.spark.util.Utils", "Uncaught exception in thread main"),
        (f"{v2}.AppendDataExec", "Data source write support org.example.Write@1 failed to abort."),
    ]
    assert [each for each in others if not shown(*each)] == []


@pytest.fixture
def write(spark, amqp_broker):
    """Writes a row to a queue, and returns its messages."""
    amqp_broker.load_definitions({"queues": [{"name": "written"}]})

    def write():
        row = spark.sql("SELECT 'a row' AS value").write.format("amqp").option("amqp.url", amqp_broker.url)
        row.option("routingKey", "written").mode("append").save()
        return [bytes(message.body) for message in amqp_broker.queue("written").messages]

    return write


def test_thread_that_begins_later_writes_a_batch(write):
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(write).result() == [b"a row"]


def test_thread_that_begins_later_starts_a_query_that_writes(spark, amqp_stream, amqp_broker):
    amqp_broker.load_definitions({"queues": [{"name": "read"}, {"name": "written"}]})
    amqp_broker.publish("a row", routing_key="read")

    def run():
        amqp_stream.run_available(lambda rows: rows.select("value"), queue="read", routingKey="written")

    with ThreadPoolExecutor(1) as thread:
        thread.submit(run).result()
    assert [bytes(message.body) for message in amqp_broker.queue("written").messages] == [b"a row"]


def test_thread_without_an_active_session_writes_after_register(spark, write):
    """As a thread that has used Spark before `register` was called in another one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(spark._jvm.SparkSession.clearActiveSession).result()
        with pytest.raises(Exception, match="DATA_SOURCE_NOT_FOUND"):
            thread.submit(write).result()
        thread.submit(register, spark).result()
        assert thread.submit(write).result() == [b"a row"]
