"""A message with a header of every type that goes from the sink to the source."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import table
from fakeamqp.spark.browse import BrowseReader
from fakeamqp.spark.options import read_options, write_options
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.sink import BatchWriter

# isort: split
from pyspark.sql.pandas.types import from_arrow_schema

FIELDS = {
    "text": (pa.string(), "2.75"),
    "bytes": (pa.binary(), b"\xff"),
    "truth": (pa.bool_(), True),
    "int": (pa.int32(), -5),
    "long": (pa.int64(), 2**63 - 1),
    "float": (pa.float32(), 2.75),
    "double": (pa.float64(), 2.5),
    "whole": (pa.float64(), 3.0),
    "decimal": (pa.decimal128(10, 2), Decimal("3.14")),
    "exact": (pa.decimal128(10, 9), Decimal("0.100000000")),
    "time": (pa.timestamp("us", tz="UTC"), datetime(2024, 1, 1, tzinfo=timezone.utc)),
    "list": (pa.list_(pa.float64()), [1.5, None, 2.25]),
    "map": (pa.map_(pa.string(), pa.float64()), [("k", 0.1)]),
    "deep": (pa.struct([("a", pa.list_(pa.float32()))]), {"a": [2.75]}),
}
READ = {
    "text": '"2.75"',
    "bytes": '"/w=="',
    "truth": "true",
    "int": "-5",
    "long": "9223372036854775807",
    "float": "2.75",
    "double": "2.5",
    "whole": "3.0",
    "decimal": "3.14",
    "exact": "0.100000000",
    "time": '"2024-01-01T00:00:00+00:00"',
    "list": "[1.5, null, 2.25]",
    "map": '{"k": 0.1}',
    "deep": '{"a": [2.75]}',
}


def round_trip(url: str, queue: str, headers_format: str):
    """The headers of a message with all `FIELDS` that goes from the sink to the source."""
    headers = pa.struct([(name, kind) for name, (kind, _) in FIELDS.items()])
    row = {"value": b"", "headers": {name: value for name, (_, value) in FIELDS.items()}}
    batch = pa.RecordBatch.from_pylist([row], pa.schema([("value", pa.binary()), ("headers", headers)]))
    schema = from_arrow_schema(batch.schema)
    BatchWriter(write_options({"amqp.url": url, "routingKey": queue}), schema).write(iter([batch]))
    given = {"amqp.url": url, "queue": queue, "columns": "headers, _error", "headersFormat": headers_format}
    options = read_options(given)
    reader = BrowseReader(options, chosen_columns(options))
    (read,) = table(reader, reader.partitions()).to_pylist()
    assert read["_error"] is None
    return read["headers"]


def check(url: str, queue: str, headers_format: str) -> None:
    """Every value comes back exactly."""
    read = round_trip(url, queue, headers_format)
    if headers_format == "json":
        assert read == "{" + ", ".join(f'"{name}": {READ[name]}' for name in sorted(READ)) + "}"
    else:
        assert dict(read) == {**READ, "text": json.loads(READ["text"])}
