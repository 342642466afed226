"""Streams as DataFrames and as sources of streaming queries, in Spark itself."""

from __future__ import annotations

import pika
import pytest

REASON = "PySpark is not installed"
errors = pytest.importorskip("pyspark.errors", reason=REASON)
AnalysisException, StreamingQueryException = errors.AnalysisException, errors.StreamingQueryException
DataSourceReader = pytest.importorskip("pyspark.sql.datasource", reason=REASON).DataSourceReader


@pytest.fixture
def log(amqp_broker):
    stream = {"x-queue-type": "stream"}
    amqp_broker.load_definitions(
        {"queues": [{"name": name, "durable": True, "arguments": stream} for name in ("log", "more")]}
    )

    def publish(*numbers, to="log"):
        for number in numbers:
            amqp_broker.publish(str(number), routing_key=to)

    return publish


def offsets(rows, stream="log"):
    return [row.offset for row in rows if row.queue == stream]


def test_a_range_of_a_stream_is_read_by_several_tasks(spark, amqp_broker, log):
    log(*range(6000))
    options = {"amqp.url": amqp_broker.url, "stream": "log", "columns": "offset,value", "minPartitions": 2}
    everything = spark.read.format("amqp").options(**options).load()
    assert everything.rdd.getNumPartitions() == 2
    assert everything.selectExpr("count(*)", "count(DISTINCT offset)", "max(offset)").first() == (
        6000,
        6000,
        5999,
    )
    some = spark.read.format("amqp").options(
        **options, startingOffsets='{"log": 10}', endingOffsets='{"log": 13}'
    )
    assert [int(row.value) for row in some.load().orderBy("offset").collect()] == [10, 11, 12]


def test_pushed_filters_reduce_number_of_partitions(spark, amqp_broker, log):
    log(*range(6000))
    log(*range(3000), to="more")
    options = {
        "amqp.url": amqp_broker.url,
        "stream": "log,more",
        "minPartitions": 3,
        "timestampTolerance": "1m",
    }
    setting = "spark.sql.python.filterPushdown.enabled"
    pushes = hasattr(DataSourceReader, "pushFilters")
    try:
        for enabled, option, tasks in (
            ("false", "false", 3),
            ("true", "false", 3),
            ("true", "true", 1 if pushes else 3),
        ):
            spark.conf.set(setting, enabled)
            everything = spark.read.format("amqp").options(**options, filterPushdown=option).load()
            some = everything.where("queue = 'log' AND offset >= 5990")
            assert (some.count(), some.rdd.getNumPartitions()) == (10, tasks)
            old = everything.where("timestamp < timestamp'2001-01-01'")
            assert (old.count(), old.rdd.getNumPartitions()) == (0, tasks)
        if pushes:
            spark.conf.set(setting, "false")
            refused = spark.read.format("amqp").options(**options, filterPushdown="true").load()
            with pytest.raises(AnalysisException, match=setting):
                refused.where("offset >= 5990").count()
    finally:
        spark.conf.unset(setting)


def test_filter_of_the_broker_selects_the_messages_of_a_value(spark, amqp_broker, log):
    for number in range(3000):
        value = "east" if number % 100 == 0 else "west"
        amqp_broker.publish(str(number), routing_key="log", headers={"x-stream-filter-value": value})
    options = {"amqp.url": amqp_broker.url, "stream": "log", "streamFilter": "east", "minPartitions": 2}
    rows = spark.read.format("amqp").options(**options).load()
    assert sorted(int(row.value) for row in rows.collect()) == [*range(0, 3000, 100)]


def test_partitions_of_a_super_stream_are_tasks(spark, amqp_broker, amqp_stream, log):
    names = [f"orders-{number}" for number in range(3)]
    stream = {"x-queue-type": "stream"}
    amqp_broker.load_definitions(
        {"queues": [{"name": name, "durable": True, "arguments": stream} for name in names]}
    )
    for name in names:
        log(*range(10), to=name)
    options = {"amqp.url": amqp_broker.url, "superStream": "orders"}
    assert spark.read.format("amqp").options(**options).load().rdd.getNumPartitions() == 3
    streamed = spark.readStream.format("amqp").options(**options).load()
    query = amqp_stream.run_available(streamed.select("queue", "offset"))
    assert [progress.numInputRows for progress in query.recentProgress if progress.numInputRows] == [30]
    for name in names:
        assert sorted(offsets(amqp_stream.rows, name)) == [*range(10)]


def test_redeclared_stream_fails_next_run_of_query(amqp_broker, amqp_stream, log):
    log(*range(10))
    amqp_stream.run_available(lambda rows: rows.select("queue", "offset"), stream="log")
    with pika.BlockingConnection(pika.URLParameters(amqp_broker.url)) as connection:
        channel = connection.channel()
        channel.queue_delete("log")
        channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    log(*range(1000, 1100))
    with pytest.raises(StreamingQueryException, match="'log' was read up to 10 and has other messages now"):
        amqp_stream.run_available(lambda rows: rows.select("queue", "offset"), stream="log")


def test_available_now_goes_on_where_the_run_before_has_ended(amqp_broker, amqp_stream, log):
    log(*range(25))
    log(*range(5), to="more")

    def gather(rows):
        return rows.select("queue", "offset")

    query = amqp_stream.run_available(gather, stream="log,more", maxMessagesPerTrigger=10)
    batches = [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]
    assert sum(batches) == 30
    log(1, 2)
    amqp_stream.run_available(gather, stream="log,more", maxMessagesPerTrigger=10)
    assert sorted(offsets(amqp_stream.rows)) == [*range(27)]
    assert sorted(offsets(amqp_stream.rows, "more")) == [*range(5)]


def test_process_all_reads_stream_messages_published_before(amqp_broker, amqp_stream, log):
    log(0)
    query = amqp_stream.start(lambda rows: rows.select("queue", "offset"), stream="log")
    for number in range(1, 4):
        amqp_stream.process_all()
        assert sorted(offsets(amqp_stream.rows)) == [*range(number)]
        log(number)
    assert query.lastProgress is not None
    amqp_stream.stop()
    # Spark does not wait for the process of the source, which says goodbye.
    amqp_broker.wait_for(lambda: not amqp_broker.connections, timeout=20)
    assert amqp_broker.queue("log").ready == 4


def test_failed_batch_has_same_rows_after_restart(amqp_stream, log):
    log(*range(10))
    seen = []

    def job(rows):
        def write(batch, number):
            seen.append((number, sorted(row.offset for row in batch.select("offset").collect())))
            if len(seen) == 1:
                raise RuntimeError("on purpose")

        return rows.writeStream.foreachBatch(write)

    amqp_stream.start(job, stream="log")
    amqp_stream.wait_failed()
    log(10)
    amqp_stream.restart()
    amqp_stream.process_all()
    assert seen == [(0, [*range(10)]), (0, [*range(10)]), (1, [10])]
