"""Writing without Spark: record batches handed to a writer in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql import types

from fakeamqp import Broker
from fakeamqp.spark.options import write_options
from fakeamqp.spark.rows.columns import PROPERTIES
from fakeamqp.spark.sink import BatchWriter

TEXT = types.StringType()
TIME = pa.timestamp("us", tz="UTC")
HEADERS = pa.map_(pa.string(), pa.string())

#: Arrow's types and Spark's for the columns that are used here, but those of properties.
KINDS = {
    "value": (pa.binary(), types.BinaryType()),
    "routing_key": (pa.string(), TEXT),
    "exchange": (pa.string(), TEXT),
    "message_id": (pa.string(), TEXT),
    "timestamp": (TIME, types.TimestampType()),
    "headers": (HEADERS, types.MapType(TEXT, TEXT)),
    **{
        name: (kind, types.IntegerType() if kind == pa.int32() else TEXT) for name, kind in PROPERTIES.items()
    },
}


def struct(**kinds: types.DataType) -> types.StructType:
    return types.StructType([types.StructField(name, kind) for name, kind in kinds.items()])


def schema(names: Iterable[str]) -> types.StructType:
    return struct(**{name: KINDS[name][1] for name in names})


def batch(**columns: list) -> pa.RecordBatch:
    arrays = [pa.array(values, KINDS[name][0]) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def options(url: str, **more: str) -> Mapping[str, str]:
    return {"amqp.url": url, "routingKey": "q", **more}


def writer(broker: Broker, first: pa.RecordBatch, kind: type = BatchWriter, **more: str) -> BatchWriter:
    # A null in a column for the destination means the option then.
    columns = {"exchangeColumn": "exchange", "routingKeyColumn": "routing_key"}
    more = {**{key: name for key, name in columns.items() if name in first.schema.names}, **more}
    return kind(write_options(options(broker.url, **more)), schema(first.schema.names))


def write(broker: Broker, *batches: pa.RecordBatch, **more: str):
    return writer(broker, batches[0], **more).write(iter(batches))
