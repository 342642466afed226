"""Which streaming queries would read their own messages, as far as the metadata of their rows tells."""

from __future__ import annotations

import pytest

types = pytest.importorskip("pyspark.sql.types")
pa = pytest.importorskip("pyarrow")

# ruff: noqa: E402
from fakeamqp.spark.errors import OptionError, PublishError
from fakeamqp.spark.options import write_options
from fakeamqp.spark.sink import BatchWriter, MicroBatchWriter
from fakeamqp.spark.sink.destinations import check_not_fed
from fakeamqp.spark.sink.messages import Encoder
from fakeamqp.spark.source import AmqpDataSource

URL = {"amqp.url": "amqp://localhost/"}
QUEUE = {"queue": "a"}
SUPER = {"superStream": "sales"}
SHARDS = {"queue": "clicks", "shards": "2", "shardExchange": "hashed"}


def read(columns, computed="", **options):
    """The columns of rows of the source, and columns of text that were computed."""
    rows = AmqpDataSource({**URL, **options}).schema()
    text = [types.StructField(name, types.StringType()) for name in computed.split()]
    return types.StructType([*(rows[name] for name in columns.split()), *text])


def sinks(options):
    return write_options({**URL, **options})


@pytest.mark.parametrize(
    ("source", "rows", "options"),
    [
        (QUEUE, ("value exchange routing_key",), {}),
        # To the exchange that the rows came by, such as a fanout exchange.
        (QUEUE, ("value exchange", "routing_key"), {}),
        (
            QUEUE,
            ("value exchange routing_key",),
            {"exchangeColumn": "exchange", "routingKeyColumn": "routing_key"},
        ),
        (QUEUE, ("value",), {"routingKey": "a"}),
        ({"stream": "a"}, ("value",), {"routingKey": "a"}),
        (SUPER, ("value",), {"routingKey": "sales-17"}),
        (SUPER, ("value routing_key",), {"exchange": "sales"}),
        (SUPER, ("value", "key"), {"exchange": "sales", "routingKeyColumn": "key"}),
        (SHARDS, ("value",), {"routingKey": "clicks-1"}),
        (SHARDS, ("value",), {"exchange": "hashed", "routingKey": "any"}),
    ],
)
def test_streaming_write_to_own_source_is_refused_and_batch_write_is_not(source, rows, options):
    schema = read(*rows, **source)
    with pytest.raises(OptionError, match="the query would read its own messages: its rows come from '"):
        MicroBatchWriter(sinks(options), schema)
    # A batch ends: a backup may be written to its queue again.
    BatchWriter(sinks(options), schema)


@pytest.mark.parametrize(
    ("source", "rows", "options"),
    [
        (QUEUE, ("value exchange routing_key",), {"routingKey": "b"}),
        (
            QUEUE,
            ("value exchange routing_key", "target"),
            {"routingKeyColumn": "target", "ignoreUnknownColumns": "true"},
        ),
        (QUEUE, ("value exchange", "routing_key"), {"exchangeColumn": "exchange"}),
        (QUEUE, ("value routing_key", "exchange"), {}),
        (QUEUE, ("value",), {"exchange": "a", "routingKey": "a"}),
        (QUEUE, ("value",), {"routingKey": "a-0"}),
        (SUPER, ("value",), {"routingKey": "sales-archive"}),
        (SUPER, ("value",), {"routingKey": "sales"}),
        (QUEUE, ("value exchange routing_key",), {"amqp.virtualHost": "other"}),
        (QUEUE, ("value exchange routing_key",), {"amqp.url": "amqp://elsewhere/"}),
    ],
)
def test_streaming_write_to_another_destination_is_accepted(source, rows, options):
    MicroBatchWriter(sinks(options), read(*rows, **source))


@pytest.mark.parametrize(
    ("source", "exchange", "key"),
    [(QUEUE, "", "a"), (SUPER, "", "sales-0"), (SUPER, "sales", "0"), (SHARDS, "hashed", "x")],
)
def test_row_routed_to_own_source_of_query_is_refused_with_row_number(source, exchange, key):
    schema = read("value", "exchange routing_key", **source)
    writer = MicroBatchWriter(sinks({}), schema)
    encoder = Encoder(writer._columns, sinks({}), "id", check_not_fed(schema, writer._columns, sinks({})))
    rows = [{"value": b"", "exchange": "x", "routing_key": "a"}] * 2
    batch = pa.RecordBatch.from_pylist([*rows, {"value": b"", "exchange": exchange, "routing_key": key}])
    with pytest.raises(
        PublishError, match=f"row 12 of the task .* exchange '{exchange}' with routing key '{key}'"
    ):
        encoder.messages(batch, 10)
    assert len(encoder.messages(batch.slice(0, 2), 10)) == 2
