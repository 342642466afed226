"""What readers do with the limits that Spark gives them."""

from __future__ import annotations

import pytest

import compat_tests.needs_pyspark  # noqa: F401
from fakeamqp.spark.columns import chosen_columns
from fakeamqp.spark.options import read_options
from fakeamqp.spark.shards import ShardStreamReader
from fakeamqp.spark.spool import queue_stream_reader
from fakeamqp.spark.stream_queue import StreamMicroBatchReader


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (queue_stream_reader, {"queue": "orders"}),
        (queue_stream_reader, {"queue": "orders", "ackMode": "commit"}),
        (ShardStreamReader, {"queue": "orders,refunds", "shards": "2"}),
        (StreamMicroBatchReader, {"stream": "log"}),
    ],
    ids=["spool", "commit", "shards", "stream"],
)
def test_a_reader_begins_nothing_when_it_is_prepared_for_available_now(broker, tmp_path, make, options):
    """Spark does not stop it if the preparation of another source of the query fails."""
    spool = tmp_path / "spool"
    options = {"amqp.url": broker.url, "spoolDir": str(spool), **options}
    if options.get("ackMode") or "stream" in options:
        del options["spoolDir"]
    parsed = read_options(options, streaming=True)
    make(parsed, chosen_columns(parsed)).prepareForTriggerAvailableNow()
    broker.wait_until_idle()
    assert not broker.connections
    assert not spool.exists()
