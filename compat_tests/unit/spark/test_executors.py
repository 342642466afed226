"""What executors import: a part of the package, without the broker and the tools for tests."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import Limit
from fakeamqp import Broker, spark
from fakeamqp.spark import AmqpDataSource

# An executor unpickles a reader or writer with its partition or rows, and knows nothing else of the package.
EXECUTOR = """
import pickle, sys
reader, partition, writer, batches = pickle.load(sys.stdin.buffer)
if writer is None:
    print(sum(batch.num_rows for batch in reader.read(partition)))
else:
    print(writer.write(iter(batches)).published)
print(*sorted(name for name in sys.modules if name.split(".")[0] in ("fakeamqp", "pytest_fakeamqp", "pika")))
"""

# `import fakeamqp` loads these. Its public names are loaded on first use.
PACKAGE = {
    "fakeamqp",
    "fakeamqp.dialects",
    "fakeamqp.errors",
    "fakeamqp.lazy",
    "fakeamqp.protocols",
    "fakeamqp.protocols.registry",
}
CODEC = {
    "fakeamqp.protocols.amqp_0_9_1",
    "fakeamqp.protocols.base",
    "fakeamqp.protocols.base.codec",
    "fakeamqp.timestamps",
}
PARTS = {path.name for path in Path(spark.__file__).parent.iterdir() if path.is_dir()} - {"options", "rows"}
"""The packages of `fakeamqp.spark`, without those that every route may load."""


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Any]:
    """Makes the data source for a broker with two messages in each queue and stream."""
    names = {"orders": "classic", "refunds": "classic", "log": "stream", "written": "classic"}
    queues = [
        {"name": name, "durable": True, "arguments": {"x-queue-type": kind}} for name, kind in names.items()
    ]
    with Broker(definitions={"queues": queues}) as broker:
        for name in ("orders", "refunds", "log"):
            for body in ("1", "2"):
                broker.publish(body, routing_key=name, message_id=body)

        yield lambda **options: AmqpDataSource({"amqp.url": broker.url, **options})


def executed(*work: Any) -> tuple[int, set[str]]:
    """The number of rows that an executor reads or writes, and the modules that it loads."""
    done = subprocess.run([sys.executable, "-c", EXECUTOR], input=pickle.dumps(work), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    rows, modules = done.stdout.decode().splitlines()
    return int(rows), set(modules.split())


def beyond(modules: set[str], *parts: str) -> set[str]:
    """The modules that a route loads though it needs only these packages of `fakeamqp.spark`."""

    def needed(module: str) -> bool:
        if module.startswith("fakeamqp.spark."):
            return module.split(".")[2] not in PARTS - {*parts}
        of_codec = module.startswith("fakeamqp.protocols.amqp_0_9_1.codec")
        return of_codec or module in {*PACKAGE, *CODEC, "fakeamqp.spark"}

    return {module for module in modules if not needed(module)}


def test_executor_that_browses_a_queue_loads_wire_and_browse_only(source):
    orders = source(queue="orders")
    reader = orders.reader(orders.schema())
    [partition] = reader.partitions()
    rows, modules = executed(reader, partition, None, None)
    assert rows == 2
    assert beyond(modules, "wire", "browse") == set()


def test_executor_that_reads_a_range_of_a_stream_loads_wire_and_stream_only(source):
    log = source(stream="log")
    reader = log.reader(log.schema())
    [partition] = reader.partitions()
    rows, modules = executed(reader, partition, None, None)
    assert rows == 2
    assert beyond(modules, "wire", "stream") == set()


@pytest.mark.parametrize("transport", ["inline", "file"])
def test_executor_that_reads_a_spool_loads_no_client(source, tmp_path, transport):
    orders = source(queue="orders", spoolDir=str(tmp_path), transport=transport)
    reader = orders.streamReader(orders.schema())
    try:
        start = reader.initialOffset()
        [partition] = reader.partitions(start, reader.latestOffset(start, Limit(2)))
        rows, modules = executed(reader, partition, None, None)
    finally:
        reader.stop()
    assert rows == 2
    assert beyond(modules, "queue") == set()


def test_executor_that_fills_a_shard_loads_wire_shards_and_segments_only(source, tmp_path):
    shards = source(queue="orders,refunds", shards="2", spoolDir=str(tmp_path))
    reader = shards.streamReader(shards.schema())
    try:
        start = reader.initialOffset()
        one, other = reader.partitions(start, reader.latestOffset(start, Limit(4)))
        found = [executed(reader, partition, None, None) for partition in (one, other)]
    finally:
        reader.stop()
    assert [rows for rows, _ in found] == [2, 2]
    assert [beyond(modules, "wire", "shards", "queue") for _, modules in found] == [
        set(),
        set(),
    ]


def test_executor_that_publishes_loads_wire_and_sink_only(source):
    batch = pa.RecordBatch.from_pydict({"value": ["1", "2"]})
    from pyspark.sql.pandas.types import from_arrow_schema

    writer = source(routingKey="written").writer(from_arrow_schema(batch.schema), overwrite=False)
    rows, modules = executed(None, None, writer, [batch])
    assert rows == 2
    assert beyond(modules, "wire", "sink") == set()
