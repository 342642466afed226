"""The job: orders, each counted once, are totalled by customer and five minutes; large totals are alerts."""

from pyspark.sql import functions as F

ORDER = "order_id STRING, customer STRING, total DOUBLE, ts TIMESTAMP"


def _parsed(source):
    text = F.col("value").cast("string")
    return source.select(text.alias("text"), F.from_json(text, ORDER).alias("order"))


def alerts(source):
    orders = _parsed(source).where("order.order_id IS NOT NULL").select("order.*")
    totals = (
        orders.withWatermark("ts", "10 minutes")
        .dropDuplicatesWithinWatermark(["order_id"])
        .groupBy("customer", F.window("ts", "5 minutes"))
        .agg(F.sum("total").alias("total"))
    )
    return totals.where("total > 100").select(
        F.to_json(F.struct("customer", "total")).alias("value"),
        F.concat(F.lit("alert."), "customer").alias("routing_key"),
        F.concat_ws("-", "customer", F.unix_timestamp("window.start")).alias("message_id"),
    )


def dead_letters(source):
    poison = _parsed(source).where("order.order_id IS NULL")
    return poison.select(
        F.col("text").alias("value"),
        F.lit("dead").alias("routing_key"),
        F.create_map(F.lit("x-reason"), F.lit("no order")).alias("headers"),
    )
