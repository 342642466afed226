"""A job that knows nothing about the Python of its workers: it registers the data source, and has threads."""

import os
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from fakeamqp.spark import register

spark = SparkSession.builder.master(os.environ.get("MASTER", "local[2]")).getOrCreate()
register(spark)
broker = {"amqp.url": os.environ["BROKER"]}
orders = spark.read.format("amqp").options(**broker, queue="orders").load()
print("orders:", orders.count())


def write():
    orders.select("value").write.format("amqp").options(**broker, routingKey="written").mode("append").save()


with ThreadPoolExecutor(1) as thread:
    thread.submit(write).result()
spark.stop()
