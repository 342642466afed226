"""Which streaming queries would read their own messages, as far as the column `queue` of their rows tells."""

from __future__ import annotations

import pytest

types = pytest.importorskip("pyspark.sql.types")
pa = pytest.importorskip("pyarrow")

# ruff: noqa: E402
from compat_tests.unit.spark.sink import sink
from fakeamqp.spark.errors import OptionError, PublishError
from fakeamqp.spark.options import write_options
from fakeamqp.spark.sink import BatchWriter, MicroBatchWriter
from fakeamqp.spark.sink.messages import SinkRows
from fakeamqp.spark.source import AmqpDataSource

URL = {"amqp.url": "amqp://localhost/"}
BY_ROWS = [
    {"exchangeColumn": "exchange", "routingKeyColumn": "routing_key"},
    {"exchangeColumn": "exchange"},
    {"routingKeyColumn": "routing_key"},
    {"exchange": "events"},
    {"exchange": ""},
    {"routingKey": "b"},
]


def as_read(*dropped):
    """The columns of rows of the source."""
    rows = AmqpDataSource({**URL, "queue": "a"}).schema()
    return types.StructType([field for field in rows if field.name not in dropped])


def sinks(options):
    return write_options({**URL, **options})


def test_streaming_write_of_rows_with_their_queue_needs_an_option_for_the_destination():
    said = "'queue' of the source, .* Set 'exchange' or .* or 'exchangeColumn' .* or drop the column 'queue'"
    upper = types.StructType([types.StructField(field.name.upper(), field.dataType) for field in as_read()])
    for schema in (as_read(), upper, as_read("exchange"), as_read("routing_key")):
        with pytest.raises(OptionError, match=f"the query may read its own messages: .*{said}"):
            MicroBatchWriter(sinks({}), schema)
    for options in BY_ROWS:
        MicroBatchWriter(sinks(options), as_read())
    MicroBatchWriter(sinks({}), as_read("queue"))
    MicroBatchWriter(sinks({}), sink.struct(value=sink.TEXT, exchange=sink.TEXT, queue=types.IntegerType()))


def test_batch_write_of_rows_with_their_queue_needs_no_option():
    """A batch ends: a backup may be written to its queue again."""
    BatchWriter(sinks({}), as_read())


ROWS = [
    {"value": b"", "exchange": "", "routing_key": "b", "queue": "a"},
    {"value": b"", "exchange": "x", "routing_key": "a", "queue": "a"},
    {"value": b"", "exchange": None, "routing_key": None, "queue": None},
    {"value": b"", "exchange": "", "routing_key": "a", "queue": None},
    {"value": b"", "exchange": "", "routing_key": "a", "queue": "a"},
]


def encode(kind, rows, **options):
    schema = sink.struct(value=types.BinaryType(), exchange=sink.TEXT, routing_key=sink.TEXT, queue=sink.TEXT)
    writer = kind(sinks(options), schema)
    batch = pa.RecordBatch.from_pylist(rows)
    return SinkRows(batch, 10, writer._columns, sinks(options), "id").messages()


def test_row_of_a_stream_that_goes_to_its_own_queue_is_refused_with_row_number():
    by_rows = {"exchangeColumn": "exchange", "routingKeyColumn": "routing_key"}
    said = "row 14 of the task .* back to the queue 'a' .* Drop the column 'queue' if this is another broker"
    with pytest.raises(PublishError, match=said):
        encode(MicroBatchWriter, ROWS, **by_rows)
    assert len(encode(MicroBatchWriter, ROWS[:-1], **by_rows)) == 4
    with pytest.raises(PublishError, match=r"row 10 of the task .* back to the queue 'a'"):
        encode(MicroBatchWriter, ROWS, routingKey="a")


def test_loops_that_the_queue_does_not_tell_are_accepted():
    """As of an exchange that leads back, and of batch writes, such as those in `foreachBatch`."""
    assert len(encode(MicroBatchWriter, ROWS, exchange="leads-back")) == len(ROWS)
    assert len(encode(BatchWriter, ROWS, routingKey="a")) == len(ROWS)
