"""What readers do with the limits that Spark gives them."""

from __future__ import annotations

import pickle

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import ReadAllAvailable, table
from compat_tests.unit.spark.stream_queue.streams import publisher
from fakeamqp.spark.columns import chosen_columns
from fakeamqp.spark.options import read_options
from fakeamqp.spark.read_limits import most_rows
from fakeamqp.spark.shards import ShardStreamReader
from fakeamqp.spark.spool import queue_stream_reader
from fakeamqp.spark.stream_queue import StreamMicroBatchReader

each_reader = pytest.mark.parametrize(
    ("make", "options"),
    [
        (queue_stream_reader, {"queue": "orders"}),
        (queue_stream_reader, {"queue": "orders", "ackMode": "commit"}),
        (ShardStreamReader, {"queue": "orders,refunds", "shards": "2"}),
        (StreamMicroBatchReader, {"stream": "log"}),
    ],
    ids=["spool", "commit", "shards", "stream"],
)


def made(make, options, url, spool):
    """A reader, with a spool if its options need one."""
    needs_spool = not options.get("ackMode") and "stream" not in options
    given = {"amqp.url": url, **options, **({"spoolDir": str(spool)} if needs_spool else {})}
    parsed = read_options(given, streaming=True)
    return make(parsed, chosen_columns(parsed))


@each_reader
def test_preparation_for_available_now_opens_no_connection_and_no_spool(broker, tmp_path, make, options):
    """Spark does not stop it if the preparation of another source of the query fails."""
    spool = tmp_path / "spool"
    reader = made(make, options, broker.url, spool)
    reader.prepareForTriggerAvailableNow()
    assert pickle.loads(pickle.dumps(reader))._available_now is True
    broker.wait_until_idle()
    assert not broker.connections
    assert not spool.exists()


@each_reader
def test_a_batch_has_ten_thousand_rows_or_those_of_the_option(make, options, tmp_path):
    pytest.importorskip("pyspark.sql.streaming.datasource", reason="limits came with PySpark 4.1")
    for more, rows in (({}, 10_000), ({"maxMessagesPerTrigger": "50"}, 50)):
        assert made(make, options | more, "amqp://h", tmp_path).getDefaultReadLimit().max_rows == rows


class ReadMaxRows:
    max_rows = 7.0


class ReadMaxFiles:
    """A limit that counts no rows."""


class ReadMaxBytes:
    max_rows = None


def test_most_rows_is_limit_of_read_max_rows_or_default():
    found = [most_rows(limit, 5) for limit in (ReadMaxRows(), ReadMaxFiles(), ReadMaxBytes(), None)]
    assert found == [7, 5, 5, 5]
    assert most_rows(ReadAllAvailable(), 5) is None


@pytest.mark.parametrize("given", [{"queue": "orders"}, {"queue": "orders,refunds", "shards": "2"}, {}])
def test_the_option_counts_where_a_limit_counts_no_rows(broker, tmp_path, given):
    with publisher(broker.url) as to:
        to.declare("log")
        for queue in ("orders", "log"):
            to.publish(queue, *range(5))
    given = {"spoolDir": str(tmp_path / "spool"), **given} if given else {"stream": "log"}
    parsed = read_options({"amqp.url": broker.url, "maxMessagesPerTrigger": "2", **given}, streaming=True)
    columns = chosen_columns(parsed)
    make = queue_stream_reader if "shards" not in given else ShardStreamReader
    reader = (StreamMicroBatchReader if "stream" in given else make)(parsed, columns)
    try:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadMaxFiles())
        assert len(table(reader, reader.partitions(start, end))) == 2
    finally:
        reader.stop()
