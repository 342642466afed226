"""A query that would read what it writes is refused, and copies are not taken for one."""

from __future__ import annotations

import pytest

from fakeamqp.spark.causes import cause_of

F = pytest.importorskip("pyspark.sql.functions", reason="PySpark is not installed")


@pytest.fixture
def broker(amqp_broker):
    amqp_broker.load_definitions(
        {
            "queues": [{"name": name, "durable": True} for name in ("a", "b")],
            "exchanges": [{"name": "events", "type": "fanout"}],
            "bindings": [
                {"source": "events", "destination": "a", "destination_type": "queue", "routing_key": ""}
            ],
        }
    )
    amqp_broker.publish(b"1", exchange="events", routing_key="k")
    return amqp_broker


@pytest.fixture
def rows(spark, broker):
    return spark.read.format("amqp").options(**{"amqp.url": broker.url, "queue": "a"}).load()


def write(rows, url, **options):
    rows.write.format("amqp").options(**{"amqp.url": url, **options}).mode("append").save()


def test_routing_key_option_overrides_destination_of_read_rows(rows, broker):
    write(rows, broker.url, routingKey="b")
    [copy] = broker.queue("b").messages
    assert (copy.exchange, copy.routing_key, broker.queue("a").ready) == ("", "b", 1)


def test_a_batch_may_put_messages_back(rows, broker, tmp_path):
    """Such as those of a backup: the columns have their metadata in tables, too."""
    rows.write.parquet(str(tmp_path / "backup"))
    backup = rows.sparkSession.read.parquet(str(tmp_path / "backup"))
    write(backup, broker.url)
    assert broker.queue("a").ready == 2


BACK = "OptionError: the query would read its own messages: its rows come from 'a'"


@pytest.mark.parametrize(
    ("pipeline", "options", "said"),
    [
        (lambda rows: rows, {}, f"{BACK}, and have the exchange that led there"),
        (lambda rows: rows.select("value"), {"routingKey": "a"}, BACK),
    ],
    ids=["same columns", "same queue"],
)
def test_messages_of_a_stream_do_not_go_back_to_their_queue(
    spark, broker, amqp_stream, tmp_path, pipeline, options, said
):
    assert failure_of(write_stream(spark, broker, tmp_path, pipeline, **options)).startswith(said)
    assert broker.queue("a").ready == 0


def write_stream(spark, broker, folder, pipeline, **options):
    url = {"amqp.url": broker.url}
    rows = spark.readStream.format("amqp").options(**url, queue="a", spoolDir=str(folder / "spool")).load()
    write = pipeline(rows).writeStream.format("amqp").options(**{**url, **options}).trigger(availableNow=True)
    return lambda: write.start(checkpointLocation=str(folder / "checkpoint")).awaitTermination()


def failure_of(query):
    with pytest.raises(Exception, match="a") as caught:
        query()
    return cause_of(caught.value).removeprefix("fakeamqp.spark.errors.")


def test_a_batch_write_in_foreachBatch_is_refused_too(spark, broker, tmp_path):
    url = {"amqp.url": broker.url}
    rows = spark.readStream.format("amqp").options(**url, queue="a", spoolDir=str(tmp_path / "spool")).load()
    stream = rows.writeStream.foreachBatch(
        lambda batch, _: write(batch.select("value"), broker.url, routingKey="a")
    )
    query = stream.trigger(availableNow=True)
    said = failure_of(lambda: query.start(checkpointLocation=str(tmp_path / "checkpoint")).awaitTermination())
    assert BACK in said
    assert broker.queue("a").ready == 0


def test_rows_without_metadata_are_sent(spark, broker, tmp_path):
    def bare(rows):
        return rows.select(F.col("value").alias("value", metadata={}))

    write_stream(spark, broker, tmp_path, bare, routingKey="a")()
    # The source has it until its consumer ends, which Spark does not wait for.
    broker.wait_for(lambda: broker.queue("a").ready == 1, timeout=20)
