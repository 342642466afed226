"""Watches the orders of a shop, and raises an alert when a customer orders for much money in five minutes.

Orders come from a queue, as JSON. What cannot be read goes to a dead-letter exchange, with the reason in a
header; an order that comes twice counts once; alerts go to a topic exchange as `alert.<customer>`. It is one
streaming query, from the queue to the two exchanges.
"""

from __future__ import annotations

import os
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pyspark.sql import DataFrame, SparkSession, functions as F

from fakeamqp.spark import dead_letters, poison_split, register

SHOP, ORDERS = "shop", "orders"
ALERTS, ALERTS_QUEUE = "shop.alerts", "alerts"
DEAD, POISON = "shop.dead", "orders.poison"

ORDER = (
    "order_id STRING NOT NULL, customer STRING NOT NULL, total DECIMAL(10, 2) NOT NULL, at TIMESTAMP NOT NULL"
)

UNREASONABLE = {
    "the total is negative": "total < 0",
    # It becomes a word of a routing key.
    "the customer is no name": "NOT customer RLIKE '^[A-Za-z0-9_-]{1,100}$'",
    # It would make late all that is on time.
    "the order is of tomorrow": "at > received_at + INTERVAL 1 DAY",
}

MUCH = 100
WINDOW = "5 minutes"
PATIENCE = "10 minutes"
"""How much later than the newest an order may come and still be counted."""


def results(messages: DataFrame) -> DataFrame:
    """All that is to be published about these messages: alerts, and what could not be read."""
    orders, poison = poison_split(messages, ORDER, rules=UNREASONABLE)
    in_time = orders.withWatermark("at", PATIENCE)
    counted = totals(in_time.dropDuplicatesWithinWatermark(["order_id"]))
    return alerts(counted).unionByName(dead_letters(poison, DEAD), allowMissingColumns=True)


def totals(orders: DataFrame) -> DataFrame:
    """What each customer has ordered for in each window, as `customer`, `window`, `total` and `orders`."""
    windows = orders.groupBy("customer", F.window("at", WINDOW))
    return windows.agg(F.sum("total").alias("total"), F.count("*").alias("orders"))


def alerts(counted: DataFrame) -> DataFrame:
    """Rows for the sink of the totals that are much. The same window of the same customer has the same id."""
    alert = F.struct(
        "customer", "total", "orders", F.col("window.start").alias("from"), F.col("window.end").alias("to")
    )
    return counted.where(F.col("total") > MUCH).select(
        F.to_json(alert).alias("value"),
        F.lit(ALERTS).alias("exchange"),
        F.concat(F.lit("alert."), "customer").alias("routing_key"),
        F.concat_ws("-", "customer", F.unix_seconds("window.start")).alias("message_id"),
    )


def declare(channel: BlockingChannel) -> None:
    """Exchanges and queues, with a queue behind every exchange: the sink fails over what no queue gets."""
    for exchange, kind, queue, key in (
        (SHOP, "topic", ORDERS, "order.#"),
        (ALERTS, "topic", ALERTS_QUEUE, "alert.#"),
        (DEAD, "fanout", POISON, ""),
    ):
        channel.exchange_declare(exchange, kind, durable=True)
        channel.queue_declare(queue, durable=True)
        channel.queue_bind(queue, exchange, key)


def main() -> None:
    url = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/")
    # Checkpoint and spool belong together, on a disk that outlives the driver.
    state = Path(os.environ.get("STATE_DIR", "order-alerts"))
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        declare(connection.channel())

    # How many tasks keep state and publish, in every batch. The checkpoint holds on to it.
    spark = (
        SparkSession.builder.appName("order-alerts")
        .config("spark.sql.shuffle.partitions", os.environ.get("PARTITIONS", "4"))
        .getOrCreate()
    )
    register(spark)
    broker = spark.readStream.format("amqp").option("amqp.url", url)
    messages = broker.option("queue", ORDERS).option("spoolDir", str(state / "spool")).load()
    writer = results(messages).writeStream.format("amqp").option("amqp.url", url)
    writer = writer.option("checkpointLocation", str(state / "checkpoint")).trigger(
        processingTime="10 seconds"
    )
    writer.start().awaitTermination()


if __name__ == "__main__":
    main()
