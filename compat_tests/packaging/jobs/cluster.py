"""A job for a cluster: a queue as a table, a table as messages, and a stream from a queue to an exchange."""

import os
import sys
import tempfile

from pyspark.sql import SparkSession

broker = {"amqp.url": os.environ["BROKER"]}
folder = tempfile.mkdtemp()
builder = SparkSession.builder
if "--connect" in sys.argv:
    builder = builder.remote("local[2]")
spark = builder.getOrCreate()


def read(reader, queue):
    return reader.format("amqp").options(**broker, queue=queue, spoolDir=f"{folder}/{queue}").load()


def write(writer, queue):
    return writer.format("amqp").options(**broker, routingKey=queue)


def run(writer, checkpoint):
    writer = writer.option("checkpointLocation", f"{folder}/{checkpoint}")
    writer.trigger(availableNow=True).start().awaitTermination()


print("orders:", read(spark.read, "orders").count())
numbers = spark.range(10).selectExpr("CAST(id AS STRING) AS value").repartition(2)
write(numbers.write, "written").mode("append").save()
run(write(read(spark.readStream, "orders").select("value").writeStream, "streamed"), "streams")
if "--connect" in sys.argv:

    def publish(batch, number):
        write(batch.select("value").write, "batches").mode("append").save()

    run(read(spark.readStream, "streamed").writeStream.foreachBatch(publish), "batches")
spark.stop()
