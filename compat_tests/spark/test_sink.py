"""The sink as Spark uses it: writes of DataFrames, streams, SQL, and tasks that are tried again."""

from __future__ import annotations

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import pytest


@pytest.fixture
def queue(amqp_broker):
    amqp_broker.load_definitions({"queues": [{"name": "q", "durable": True}]})
    return amqp_broker.queue("q")


@pytest.fixture
def append(amqp_broker):
    def append(rows, **options):
        options = {"amqp.url": amqp_broker.url, "routingKey": "q", **options}
        rows.write.format("amqp").options(**options).mode("append").save()

    return append


def test_every_partition_numbers_its_own_rows(spark, queue, append):
    append(spark.range(7).repartition(3).selectExpr("CAST(id AS STRING) AS value"), maxInFlight="2")
    append(spark.range(0).selectExpr("CAST(id AS STRING) AS value"))
    messages = queue.messages
    assert sorted(int(message.body) for message in messages) == list(range(7))
    ids = sorted(message.message_id for message in messages)
    assert len(set(ids)) == 7
    assert len({each.split("-")[0] for each in ids}) == 1
    assert {each.split("-")[1] for each in ids} == {"0", "1", "2"}


def test_types_of_spark_become_those_of_amqp(spark, queue, append):
    append(
        spark.sql(
            """
            SELECT 'a' AS VALUE,
                   TIMESTAMP '2024-02-29 12:00:00.999' AS timestamp,
                   CAST(7 AS TINYINT) AS priority,
                   CAST(NULL AS STRING) AS reply_to,
                   NULL AS correlation_id,
                   named_struct('type', 'order', 'delivery_mode', 1) AS properties,
                   struct(1 AS i, 1.25 AS d, X'FF' AS x, array('s') AS a, map('k', 0.5D) AS m, NULL AS n)
                       AS headers
            """
        )
    )
    [message] = queue.messages
    headers = dict(message.headers)
    noon = int(datetime(2024, 2, 29, 12, tzinfo=timezone.utc).timestamp())
    assert float(headers.pop("d")) == 1.25
    assert headers == {"i": 1, "x": b"\xff", "a": ["s"], "m": {"k": 0.5}}
    assert (message.body, message.timestamp, message.priority) == (b"a", noon, 7)
    assert (message.type, message.delivery_mode, message.reply_to) == ("order", 1, None)


@pytest.mark.parametrize("large", ["false", "true"])
def test_large_and_small_arrow_string_types_are_written(spark, queue, append, large):
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large)
    try:
        append(
            spark.sql("SELECT 'a' AS value, 'q' AS routing_key, 'm' AS message_id, map('k', 'v') AS headers")
        )
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    [message] = queue.messages
    assert (message.body, message.message_id, dict(message.headers)) == (b"a", "m", {"k": "v"})


def test_rows_read_from_queue_are_written_with_same_body_and_properties(spark, amqp_broker, queue, append):
    amqp_broker.load_definitions({"queues": [{"name": "copy", "durable": True}]})
    amqp_broker.publish(
        b"\xff", routing_key="q", message_id="m", headers={"a": "b"}, priority=3, type="order"
    )
    read = {"amqp.url": amqp_broker.url, "queue": "q", "includeProperties": "true"}
    rows = spark.read.format("amqp").options(**read).load().drop("routing_key")
    append(rows, routingKey="copy")
    [copy] = amqp_broker.queue("copy").messages
    [original] = queue.messages
    assert copy.properties == {**original.properties, "delivery_mode": 2}
    assert copy.body == original.body


def test_sql_insert_publishes_messages(spark, amqp_broker, queue):
    spark.sql(
        "CREATE TEMPORARY VIEW outbox (value STRING, message_id STRING) "
        f"USING amqp OPTIONS ('amqp.url' '{amqp_broker.url}', 'routingKey' 'q')"
    )
    try:
        spark.sql("INSERT INTO outbox VALUES ('a', 'm1'), ('b', 'm2')")
    finally:
        spark.catalog.dropTempView("outbox")
    assert {(message.text, message.message_id) for message in queue.messages} == {("a", "m1"), ("b", "m2")}


def test_a_thread_that_has_made_a_dataframe_can_write(spark, queue, append):
    """Spark finds the sink by the active session of the thread."""
    rows = spark.range(1).selectExpr("'a' AS value")

    def write():
        spark.createDataFrame([("any",)], "value STRING")
        append(rows)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(write).result()
    assert [message.text for message in queue.messages] == ["a"]


def test_invalid_columns_are_refused_before_connecting(spark, amqp_broker, append):
    connects = amqp_broker.faults.on("connection.open").optional()
    with pytest.raises(Exception, match="Failed to initialize Python data source writer") as caught:
        append(spark.sql("SELECT id AS value FROM range(1)"))
    assert "column 'value' is BIGINT; it must be BINARY or STRING" in str(caught.value)
    assert connects.hits == 0


def test_a_task_that_fails_says_why(spark, amqp_broker, queue, append):
    with pytest.raises(Exception, match="404 NOT_FOUND - no exchange 'nowhere'") as caught:
        append(spark.range(1).selectExpr("'a' AS value"), exchange="nowhere")
    assert "PublishError" in str(caught.value)


def lines(folder, *names):
    for name in names:
        unfinished = folder / f".{name}"
        unfinished.write_text(f"{name}1\n{name}2\n")
        unfinished.rename(folder / f"{name}.txt")


def test_a_batch_that_runs_again_has_the_same_ids(spark, tmp_path, queue, amqp_stream):
    source = spark.readStream.text(str(tmp_path))
    lines(tmp_path, "a")
    amqp_stream.run_available(source, exchange="", routingKey="q")
    lines(tmp_path, "b")
    with amqp_stream.crash():
        amqp_stream.run_available(source, exchange="", routingKey="q")
    query = amqp_stream.restart()
    amqp_stream.process_all()
    sent = [(message.text, message.message_id) for message in queue.messages]
    first = [("a1", f"{query.id}-0-0-0"), ("a2", f"{query.id}-0-0-1")]
    second = [("b1", f"{query.id}-1-0-0"), ("b2", f"{query.id}-1-0-1")]
    assert sent == first + second * 2


def test_tasks_of_a_python_worker_share_a_connection(spark, tmp_path, amqp_broker, queue, amqp_stream):
    connects = amqp_broker.faults.on("connection.open")
    lines(tmp_path, *"abcdefghijk")
    source = spark.readStream.option("maxFilesPerTrigger", "1").text(str(tmp_path)).repartition(2)
    amqp_stream.run_available(source, exchange="", routingKey="q")
    assert len(queue.messages) == 22
    assert len({message.message_id.rsplit("-", 2)[0] for message in queue.messages}) == 11
    assert connects.hits <= 2 * spark.sparkContext.defaultParallelism


RETRY = """
import sys

from fakeamqp.spark import local_session

with local_session(master="local[2,4]") as spark:
    rows = spark.range(600).repartition(1).selectExpr("CAST(id AS STRING) AS value")
    options = {"amqp.url": sys.argv[1], "routingKey": "q", "maxInFlight": "50", "reconnectTimeout": "0"}
    rows.write.format("amqp").options(**options).mode("append").save()
"""


def test_retried_spark_task_sends_same_message_ids(tmp_path, amqp_broker, queue):
    """In a session of its own, for the master says whether tasks are tried again."""
    cut = amqp_broker.faults.on("basic.publish").after(150).disconnect().once()
    script = tmp_path / "retry.py"
    script.write_text(RETRY)
    done = subprocess.run(
        [sys.executable, str(script), amqp_broker.url], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    assert cut.hits == 1
    assert re.search(r"ConnectionLost: .* [0-9]+ of the [0-9]+ messages that this task has sent", done.stderr)
    sent = {(message.text, message.message_id) for message in queue.messages}
    assert len(queue.messages) == 150 + 600
    assert len(sent) == 600
    assert {int(text) for text, _ in sent} == set(range(600))
    assert len({message_id for _, message_id in sent}) == 600
