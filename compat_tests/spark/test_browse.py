"""Queues as DataFrames, in Spark itself."""

from __future__ import annotations

import json

import pytest

pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def orders(amqp_broker):
    names = ("orders", "refunds")
    amqp_broker.load_definitions({"queues": [{"name": name, "durable": True} for name in names]})
    for number in range(5):
        amqp_broker.publish(
            str(number),
            routing_key="orders",
            message_id=f"m{number}",
            timestamp=1_900_000_000,
            headers={"shop": "east", "attempt": 1},
        )
    return amqp_broker.queue("orders")


@pytest.fixture
def read(spark, amqp_broker):
    def read(**options):
        return spark.read.format("amqp").options(**{"amqp.url": amqp_broker.url, **options}).load()

    return read


def test_each_action_reads_messages_present_at_that_time(read, orders, amqp_broker):
    waiting = read(queue="orders,refunds")
    assert waiting.count() == 5
    amqp_broker.publish("back", routing_key="refunds")
    assert waiting.groupBy("queue").count().orderBy("queue").collect() == [("orders", 5), ("refunds", 1)]
    assert orders.ready == 5
    assert waiting.where("NOT redelivered").count() == 0


def test_columns_have_spark_types(read, orders):
    first = (
        read(queue="orders", includeProperties=True)
        .where("offset = 0")
        .selectExpr(
            "CAST(value AS STRING)",
            "routing_key",
            "unix_timestamp(timestamp) AS published",
            "headers['shop'] AS shop",
            "headers['attempt'] AS attempt",
            "properties.delivery_mode",
            "received_at > timestamp'2024-01-01' AS received",
        )
    )
    [row] = first.collect()
    assert row == ("0", "orders", 1_900_000_000, "east", "1", row.delivery_mode, True)
    assert row.delivery_mode in (None, 1, 2)


def test_parquet_file_of_read_rows_has_no_metadata_about_the_broker(read, orders, amqp_broker, tmp_path):
    read(queue="orders", includeProperties=True).coalesce(1).write.parquet(f"{tmp_path}/orders")
    [file] = tmp_path.glob("orders/*.parquet")
    schema = pq.read_schema(file)
    assert {field.metadata for field in schema} == {None}
    written = json.loads(schema.metadata[b"org.apache.spark.sql.parquet.row.metadata"])
    assert [field["metadata"] for field in written["fields"]] == [{}] * 12
    address = amqp_broker.url.rpartition("@")[2].strip("/").encode()
    assert address not in file.read_bytes()


def test_queue_is_read_through_sql_view(spark, read, orders, amqp_broker):
    spark.sql(
        "CREATE TEMPORARY VIEW waiting USING amqp "
        f"OPTIONS ('amqp.url' '{amqp_broker.url}', 'queue' 'orders', 'columns' 'value,message_id')"
    )
    try:
        rows = spark.sql(
            "SELECT message_id FROM waiting WHERE CAST(CAST(value AS STRING) AS INT) > 2"
        ).collect()
    finally:
        spark.catalog.dropTempView("waiting")
    assert sorted(row.message_id for row in rows) == ["m3", "m4"]


def test_a_part_of_a_queue_leaves_all_of_it(read, orders, amqp_broker):
    assert len(read(queue="orders").limit(2).collect()) == 2
    amqp_broker.wait_until_idle()
    assert orders.ready == 5


def test_a_query_may_read_a_queue_twice(read, orders):
    waiting = read(queue="orders")
    assert [waiting.union(waiting).count() for _ in range(5)] == [10] * 5
    assert [waiting.join(waiting, "message_id").count() for _ in range(5)] == [5] * 5
    assert waiting.crossJoin(waiting).count() == 25
    assert orders.ready == 5


def test_a_task_that_would_wait_for_itself_fails(read, orders, amqp_broker):
    for _ in range(120):  # More than sockets keep between the read and Spark.
        amqp_broker.publish(bytes(1 << 20), routing_key="orders")
    waiting = read(queue="orders", reconnectTimeout="1h")
    # Spark takes one row of the first read, and does not end it before the task ends.
    twice = waiting.coalesce(1).limit(1).union(waiting).coalesce(1)
    with pytest.raises(Exception, match=r"the same task already reads it, .* cache\(\) the DataFrame"):
        twice.select("value").collect()
    amqp_broker.wait_for(lambda: orders.ready == 125)
    cached = waiting.cache()
    try:
        assert cached.coalesce(1).limit(1).union(cached).coalesce(1).count() == 126
    finally:
        cached.unpersist()


def test_error_of_batch_read_names_missing_queue_or_unknown_option(read, orders):
    with pytest.raises(Exception, match=r"cannot read queue 'oders': .*404 NOT_FOUND"):
        read(queue="oders").count()
    with pytest.raises(Exception, match=r"there is no option 'quee'.*'queue'"):
        read(quee="orders")
