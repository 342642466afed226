"""Once a night, takes the day's sales out of a queue, looks up prices, and publishes lines for the books.

Run without an argument it does that. `price_sales.py look` only says what is waiting, and takes nothing out.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pyspark.sql import DataFrame, SparkSession, functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from fakeamqp.spark import dead_letters, poison_split, register

SALES = "sales"
BOOKS, BOOKS_QUEUE = "books", "books"
ASIDE, ASIDE_QUEUE = "sales.aside", "sales.aside"

SALE = "sale STRING NOT NULL, product STRING NOT NULL, pieces INT NOT NULL"
PRICES = "product STRING, category STRING, price DECIMAL(10, 2)"


def lines(messages: DataFrame, prices: DataFrame) -> DataFrame:
    """All that is to be published about these sales: lines for the books, and what has to be put aside."""
    sales, poison = poison_split(messages, SALE, rules={"nothing was sold": "pieces = 0"})
    looked_up = sales.join(F.broadcast(prices), "product", "left")
    unknown = looked_up.where("price IS NULL").withColumn(
        "reason", F.concat(F.lit("no price for "), "product")
    )
    line = F.struct("sale", "product", "pieces", (F.col("pieces") * F.col("price")).alias("amount"))
    known = looked_up.where("price IS NOT NULL").select(
        F.to_json(line).alias("value"),
        F.lit(BOOKS).alias("exchange"),
        F.concat(F.lit("sale."), "category").alias("routing_key"),
        # The same sale has the same id, however often this job begins anew: the books take it once.
        F.col("sale").alias("message_id"),
    )
    aside = dead_letters(poison, ASIDE).unionByName(dead_letters(unknown, ASIDE))
    return known.unionByName(aside, allowMissingColumns=True)


def drain(messages: DataFrame, prices: DataFrame, broker: Mapping[str, str]) -> DataStreamWriter:
    """The query that publishes the lines of all that it reads; `broker` are options of the sink."""

    def publish(batch: DataFrame, number: int) -> None:
        # It is read three times: for lines, for poison and for products without a price.
        batch.persist()
        try:
            lines(batch, prices).write.format("amqp").options(**broker).mode("append").save()
        finally:
            batch.unpersist()

    return messages.writeStream.foreachBatch(publish)


def waiting(messages: DataFrame) -> DataFrame:
    """How many sales of each product are in a DataFrame of the queue, as `product` and `sales`."""
    sales, _ = poison_split(messages, SALE)
    return sales.groupBy("product").agg(F.count("*").alias("sales"))


def declare(channel: BlockingChannel) -> None:
    channel.queue_declare(SALES, durable=True)
    for exchange, kind, queue, key in (
        (BOOKS, "topic", BOOKS_QUEUE, "sale.#"),
        (ASIDE, "fanout", ASIDE_QUEUE, ""),
    ):
        channel.exchange_declare(exchange, kind, durable=True)
        channel.queue_declare(queue, durable=True)
        channel.queue_bind(queue, exchange, key)


def main(command: str = "drain") -> None:
    url = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/")
    state = Path(os.environ.get("STATE_DIR", "price-sales"))
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        declare(connection.channel())

    spark = SparkSession.builder.appName("price-sales").getOrCreate()
    register(spark)
    broker = {"amqp.url": url}
    if command == "look":
        waiting(spark.read.format("amqp").options(**broker, queue=SALES).load()).show()
        return
    prices = spark.read.csv(os.environ.get("PRICES", "prices.csv"), PRICES, header=True)
    # A batch read takes nothing out, for Spark would never say that it was through with it. A stream does;
    # with this trigger it ends when it has read what was there.
    source = spark.readStream.format("amqp").options(**broker, queue=SALES, spoolDir=str(state / "spool"))
    writer = drain(source.load(), prices, broker).option("checkpointLocation", str(state / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
