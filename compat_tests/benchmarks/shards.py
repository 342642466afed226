"""How fast a streaming query reads a queue that is divided into shards, on a cluster of processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from compat_tests.benchmarks.spark_routes import Bench
from fakeamqp.spark import local_session

__all__ = ["HEAD", "rows_per_second", "table"]

EXECUTORS = 4
SHARDS = (1, 2, 4)
PER_TRIGGER = 20_000
HEAD = """
## Shards

Rows per second of a streaming query with `shards` on `local-cluster[4,1,1024]`: four executors of one core
each, in processes of their own, which share the processors of the machine. The messages are those of the
routes, divided evenly. A batch has 20,000 messages; the query has run one before the time begins. The first
column is the query without shards.

"""


def rows_per_second(bench: Bench, shards: int, rows: int) -> float:
    """Rows per second from the second batch on; 0 shards is the consumer in the driver."""
    queues = [bench.queue() for _ in range(max(shards, 1))]
    more = {"shards": shards} if shards else {}
    with TemporaryDirectory(dir=bench.folder) as folder:
        for queue in queues:
            bench.fill(queue, (PER_TRIGGER + rows) // len(queues))
        source = bench.read_stream(
            queue=",".join(queues),
            spoolDir=Path(folder, "spool"),
            maxMessagesPerTrigger=PER_TRIGGER,
            **more,
        )
        query = (
            source.writeStream.format("noop")
            .option("checkpointLocation", str(Path(folder, "checkpoint")))
            .trigger(availableNow=True)
            .start()
        )
        while not query.recentProgress:
            time.sleep(0.01)
        begin, done = time.perf_counter(), sum(each.numInputRows for each in query.recentProgress)
        query.awaitTermination()
        took = time.perf_counter() - begin
        read = sum(each.numInputRows for each in query.recentProgress)
    bench.tidy()
    assert read == (PER_TRIGGER + rows) // len(queues) * len(queues)
    return (read - done) / took


def table(urls: dict[str, str], rows: int) -> Iterator[str]:
    """The lines of the table, a row for each broker."""
    yield "| | in the driver | " + " | ".join(f"{n} shard{'s' * (n > 1)}" for n in SHARDS) + " |\n"
    yield "|---|" + "---:|" * (1 + len(SHARDS)) + "\n"
    with ExitStack() as stack:
        spark = stack.enter_context(
            local_session(app_name="shards", master=f"local-cluster[{EXECUTORS},1,1024]")
        )
        folder = Path(stack.enter_context(TemporaryDirectory()))
        for name, url in urls.items():
            bench = Bench(spark, url, folder)
            stack.callback(bench.close)
            rates = [rows_per_second(bench, shards, rows) for shards in (0, *SHARDS)]
            yield f"| {name} | " + " | ".join(f"{rate:,.0f}" for rate in rates) + " |\n"
