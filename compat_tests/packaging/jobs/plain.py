"""A job that knows nothing about the Python of its workers, but registers the data source."""

import os

from pyspark.sql import SparkSession

from fakeamqp.spark import register

spark = SparkSession.builder.master(os.environ.get("MASTER", "local[2]")).getOrCreate()
register(spark)
orders = spark.read.format("amqp").options(**{"amqp.url": os.environ["BROKER"], "queue": "orders"}).load()
print("orders:", orders.count())
spark.stop()
