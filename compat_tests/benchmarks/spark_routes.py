"""How fast rows go each route between Spark and a broker.

The messages are those of a small shop: 200 bytes of JSON, a message id, a timestamp and two headers. A time
is from the start of the query to its end, in a session that has run such a query before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pika

from compat_tests.benchmarks import load
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import content_frames, method_frame
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

__all__ = ["PLAIN", "ROUTES", "Bench", "Route", "rate"]

_HEAD = '{"order_id": "'
_TAIL = f'", "customer": "ann", "item": "apples", "amount": 1.5, "note": "{"x" * 112}"}}'
# Class and method of basic.deliver, which bodies of text and their properties do not contain.
_DELIVER = m.BasicDeliver.INDEX.to_bytes(4, "big")
_SCHEMA = "order_id STRING, customer STRING, item STRING, amount DOUBLE, note STRING"


@dataclass
class Bench:
    """A session and a broker, with what every route needs of them."""

    spark: SparkSession
    url: str
    folder: Path

    def __post_init__(self) -> None:
        self._runs = 0
        self._queues: list[str] = []
        parameters = pika.URLParameters(self.url)
        parameters.heartbeat = 0  # pika answers none while a query runs.
        self.connection = pika.BlockingConnection(parameters)
        self.channel = self.connection.channel()
        self._address = load.Address("", parameters.host, parameters.port)
        self._publisher = self.client()

    def close(self) -> None:
        self._publisher.close()
        self.connection.close()

    def client(self) -> load.Connection:
        """A client with an open channel that knows nothing of messages but bytes."""
        client = load.Connection(self._address)
        client.open(1)
        return client

    def name(self) -> str:
        """A name that nobody has used before."""
        self._runs += 1
        return f"bench-{time.monotonic_ns()}-{self._runs}"

    def queue(self, **arguments: Any) -> str:
        """A new durable queue."""
        name = self.name()
        self.channel.queue_declare(name, durable=True, arguments=arguments)
        self._queues.append(name)
        return name

    def tidy(self) -> None:
        """Delete all queues: what several runs leave in them would raise the memory alarm."""
        while self._queues:
            self.channel.queue_delete(self._queues.pop())

    def fill(self, queue: str, rows: int) -> None:
        """Put messages into a queue."""
        publish = m.BasicPublish(exchange="", routing_key=queue).encode()
        for first in range(0, rows, load.BATCH):
            octets = bytearray()
            for number in range(first, min(first + load.BATCH, rows)):
                properties = BasicProperties(
                    message_id=f"m-{number:08d}",
                    timestamp=1_700_000_000 + number // 1000,
                    headers={"source": "shop", "attempt": 1},
                    delivery_mode=2,
                )
                octets += method_frame(1, publish)
                octets += b"".join(content_frames(1, 60, properties.encode(), body(number), 100_000))
            self._publisher.socket.sendall(octets)
        while self.count(queue) < rows:
            self.connection.process_data_events(0.01)

    def count(self, queue: str) -> int:
        return self.channel.queue_declare(queue, passive=True).method.message_count

    def read(self, **options: object) -> DataFrame:
        return self._with(self.spark.read, options).load()

    def read_stream(self, **options: object) -> DataFrame:
        return self._with(self.spark.readStream, options).load()

    def rows(self, rows: int) -> DataFrame:
        """What the sink is given, in two partitions."""
        number = "lpad(CAST(id AS STRING), 8, '0')"
        return self.spark.range(0, rows, numPartitions=2).selectExpr(
            f"""concat('{_HEAD}', {number}, '{_TAIL}') AS value""",
            f"concat('m-', {number}) AS message_id",
            "timestamp_seconds(1700000000 + id DIV 1000) AS timestamp",
            "map('source', 'shop', 'attempt', '1') AS headers",
        )

    def run(self, writer: DataStreamWriter, folder: Path) -> None:
        """Run a streaming query until everything that was there has gone through."""
        query = (
            writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
        )
        query.awaitTermination()

    def _with(self, reader: Any, options: dict[str, object]) -> Any:
        reader = reader.format("amqp").option("amqp.url", self.url)
        for key, value in options.items():
            reader = reader.option(key, str(value))
        return reader


def body(number: int) -> bytes:
    """An order."""
    return f"{_HEAD}{number:08d}{_TAIL}".encode()


def plain_consumer(bench: Bench, rows: int) -> Callable[[], None]:
    """pika alone: a consumer that is acknowledged automatically, and counts. No source can be faster."""
    queue = bench.queue()
    bench.fill(queue, rows)

    def run() -> None:
        left = rows

        def receive(channel: Any, *_message: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                channel.stop_consuming()

        with pika.BlockingConnection(pika.URLParameters(bench.url)) as connection:
            channel = connection.channel()
            channel.basic_consume(queue, receive, auto_ack=True)
            channel.start_consuming()

    return run


def counting_client(*, requeues: bool) -> Callable[[Bench, int], Callable[[], None]]:
    """A client that takes all messages and only counts them: what the broker itself needs for them.

    A batch read of a queue does this and more: it takes the messages without acknowledging them, and returns
    them by closing the channel.
    """

    def prepare(bench: Bench, rows: int) -> Callable[[], None]:
        queue = bench.queue()
        bench.fill(queue, rows)

        def run() -> None:
            client = bench.client()
            client.send(m.BasicConsume(queue=queue, consumer_tag="counts", no_ack=not requeues))
            left, tail = rows, b""
            while left > 0:
                assert client.connection.wait(), (
                    "the broker closed the connection before all messages had come"
                )
                octets = tail + client.take_bytes()
                left -= octets.count(_DELIVER)
                tail = octets[1 - len(_DELIVER) :]
            assert left == 0
            if requeues:
                client.send(m.ChannelClose(reply_code=200))
                while bench.count(queue) < rows:
                    bench.connection.process_data_events(0.01)
            client.close()

        return run

    return prepare


def batch_read(bench: Bench, rows: int) -> Callable[[], None]:
    queue = bench.queue()
    bench.fill(queue, rows)
    return lambda: _discard(bench.read(queue=queue))


def batch_write(bench: Bench, rows: int) -> Callable[[], None]:
    queue = bench.queue()
    frame = bench.rows(rows)

    def run() -> None:
        frame.write.format("amqp").option("amqp.url", bench.url).option("routingKey", queue).mode(
            "append"
        ).save()
        assert bench.count(queue) == rows

    return run


def stream_read(per_trigger: int) -> Callable[[Bench, int], Callable[[], None]]:
    def prepare(bench: Bench, rows: int) -> Callable[[], None]:
        queue = bench.queue()
        bench.fill(queue, rows)

        def run() -> None:
            with TemporaryDirectory(dir=bench.folder) as folder:
                source = bench.read_stream(
                    queue=queue, spoolDir=Path(folder, "spool"), maxMessagesPerTrigger=per_trigger
                )
                bench.run(source.writeStream.format("noop"), Path(folder))
            assert bench.count(queue) == 0

        return run

    return prepare


def pipeline(bench: Bench, rows: int) -> Callable[[], None]:
    """Orders are parsed, priced and published: only the columns that the pipeline uses are read."""
    queue, results = bench.queue(), bench.queue()
    bench.fill(queue, rows)

    def run() -> None:
        from pyspark.sql import functions as f

        with TemporaryDirectory(dir=bench.folder) as folder:
            source = bench.read_stream(
                queue=queue,
                spoolDir=Path(folder, "spool"),
                maxMessagesPerTrigger=50_000,
                columns="value, message_id",
                minPartitions=2,
            )
            order = f.from_json(f.col("value").cast("string"), _SCHEMA)
            priced = source.select("message_id", order.alias("order")).select(
                f.to_json(
                    f.struct("order.order_id", "order.customer", (f.col("order.amount") * 2).alias("amount"))
                ).alias("value"),
                "message_id",
            )
            writer = priced.writeStream.format("amqp").option("amqp.url", bench.url)
            bench.run(writer.option("routingKey", results), Path(folder))
        assert bench.count(results) == rows

    return run


def stream_queue(per_trigger: int) -> Callable[[Bench, int], Callable[[], None]]:
    def prepare(bench: Bench, rows: int) -> Callable[[], None]:
        stream = bench.queue(**{"x-queue-type": "stream"})
        bench.fill(stream, rows)

        def run() -> None:
            with TemporaryDirectory(dir=bench.folder) as folder:
                source = bench.read_stream(stream=stream, maxMessagesPerTrigger=per_trigger)
                bench.run(source.writeStream.format("noop"), Path(folder))

        return run

    return prepare


@dataclass(frozen=True)
class Route:
    """A route from a broker to Spark or back: `prepare` makes what is measured.

    `least` is the share of the rate of pika's plain consumer that it is to have with many messages.
    """

    name: str
    prepare: Callable[[Bench, int], Callable[[], None]]
    least: float | None = None


PLAIN = Route("pika's plain consumer", plain_consumer)
ROUTES = (
    Route("a client that only counts", counting_client(requeues=False)),
    Route("a client that only counts and requeues", counting_client(requeues=True)),
    Route("batch read", batch_read, 1.2),
    Route("batch write, confirmed", batch_write),
    Route("streaming read by a spool, 10,000 a batch", stream_read(10_000), 1.0),
    Route("streaming read by a spool, 50,000 a batch", stream_read(50_000), 1.0),
    Route("queue, Spark, exchange", pipeline, 0.5),
    Route("stream queue, 20,000 a batch", stream_queue(20_000)),
    Route("stream queue, one batch", stream_queue(10**9)),
)


def rate(bench: Bench, route: Route, rows: int) -> float:
    """Rows per second of one run."""
    run = route.prepare(bench, rows)
    start = time.perf_counter()
    run()
    took = time.perf_counter() - start
    bench.tidy()
    return rows / took


def _discard(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
