"""The schema that a user gives to a reader."""

from __future__ import annotations

import re

import pytest

types = pytest.importorskip("pyspark.sql.types")
pytest.importorskip("pyarrow")

# ruff: noqa: E402
from compat_tests.tools.matrix import cases
from fakeamqp.spark.browse import BrowseReader
from fakeamqp.spark.errors import ColumnError, OptionError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue.reader import QueueStreamReader
from fakeamqp.spark.rows.columns import SOURCE_COLUMNS
from fakeamqp.spark.shards import ShardStreamReader
from fakeamqp.spark.sink import BatchWriter, MicroBatchWriter
from fakeamqp.spark.source import AmqpDataSource
from fakeamqp.spark.stream import StreamMicroBatchReader
from fakeamqp.spark.stream.readers import StreamBatchReader

OPTIONS = {"amqp.url": "amqp://localhost/", "queue": "orders", "spoolDir": "/nowhere"}


def read(*fields, **options):
    """Plan a batch read and a stream of these columns."""
    source = AmqpDataSource({**OPTIONS, **options})
    schema = types.StructType(list(fields))
    source.reader(schema)
    source.streamReader(schema)


def column(name, kind, nullable=True):
    return types.StructField(name, kind, nullable)


VALUE = column("value", types.BinaryType())
ERROR = types.StructType([column("reason", types.StringType(), False), column("octets", types.BinaryType())])
HEADERS = types.MapType(types.StringType(), types.StringType(), False)


def test_schema_is_that_of_the_documented_columns_without_metadata():
    text, number = types.StringType(), types.IntegerType()
    texts = types.MapType(text, text)
    before = ["content_type", "content_encoding", "delivery_mode", "priority"]
    after = ["correlation_id", "reply_to", "expiration", "type", "user_id", "app_id"]
    kinds = dict.fromkeys([*before, *after], text) | {"delivery_mode": number, "priority": number}
    error = {"reason": text, "octets": types.BinaryType()}
    documented = {
        "value": types.BinaryType(),
        "routing_key": text,
        "exchange": text,
        "queue": text,
        "offset": types.LongType(),
        "timestamp": types.TimestampType(),
        "message_id": text,
        "redelivered": types.BooleanType(),
        "received_at": types.TimestampType(),
        "headers": texts,
        "properties": types.StructType([column(*each) for each in kinds.items()]),
        "_error": types.StructType([column(*each) for each in error.items()]),
    }
    whole = types.StructType([column(*each) for each in documented.items()])
    assert AmqpDataSource({**OPTIONS, "includeProperties": "true"}).schema() == whole
    del documented["properties"]
    default = types.StructType([column(*each) for each in documented.items()])
    for given in (OPTIONS, {"amqp.url": "amqp://localhost/", "stream": "events"}):
        assert AmqpDataSource(given).schema() == default


def test_columns_of_the_source_may_be_given():
    ours = AmqpDataSource({**OPTIONS, "includeProperties": "true"}).schema()
    read(*ours.fields)
    read(ours["headers"], VALUE)


def test_the_case_of_the_option_does_not_matter():
    assert AmqpDataSource({**OPTIONS, "columns": "VALUE"}).schema().names == ["value"]
    read(VALUE, columns="VALUE")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            [column("Value", types.BinaryType())],
            "'value' is 'Value' in the given schema; write it in lower case",
        ),
        ([column("value", types.StringType())], "'value' is binary, and the given schema has string"),
        ([column("valu", types.BinaryType())], "no column 'valu'; did you mean 'value'"),
        ([VALUE, VALUE], "names a column twice"),
        ([column("value", types.BinaryType(), False)], "write 'value BINARY', or leave schema() out"),
        ([column("headers", HEADERS)], "write 'headers MAP<STRING, STRING>'"),
        ([column("_error", ERROR)], "write '_error STRUCT<reason: STRING, octets: BINARY>'"),
    ],
    ids=["case", "type", "name", "twice", "not null", "map", "struct"],
)
@pytest.mark.parametrize("reader", ["reader", "streamReader"])
def test_given_schema_different_from_rows_is_refused(reader, fields, said):
    source = AmqpDataSource(OPTIONS)
    with pytest.raises(ColumnError, match=re.escape(said)):
        getattr(source, reader)(types.StructType(fields))


def test_a_source_reads_and_writes_as_its_options_say():
    queue, stream = {"queue": "a"}, {"stream": "a"}
    shards = {"queue": "a", "shards": "2", "spoolDir": "/nowhere"}
    sink = {"routingKey": "q"}
    value = types.StructType([VALUE])
    made = {
        "reader": lambda source: source.reader(value),
        "streamReader": lambda source: source.streamReader(value),
        "writer": lambda source: source.writer(value, False),
        "streamWriter": lambda source: source.streamWriter(value, False),
    }
    with cases() as case:
        for how, given, kind in [
            ("reader", queue, BrowseReader),
            ("reader", stream, StreamBatchReader),
            ("reader", {"superStream": "a"}, StreamBatchReader),
            ("streamReader", {**queue, "spoolDir": "/nowhere"}, QueueStreamReader),
            ("streamReader", stream, StreamMicroBatchReader),
            ("streamReader", shards, ShardStreamReader),
            ("writer", sink, BatchWriter),
            ("streamWriter", sink, MicroBatchWriter),
        ]:
            with case(how, given):
                found = made[how](AmqpDataSource({"amqp.url": "amqp://localhost/", **given}))
                assert type(found) is kind
                if "eader" in how:
                    assert [column.name for column in found._columns] == ["value"]
                    assert found._options.queues == read_options(given | {"amqp.url": "amqp://h"}).queues
                else:
                    assert found._options.routing_key == "q"
        with case("shards"), pytest.raises(OptionError, match="option 'shards' is for readStream"):
            AmqpDataSource({"amqp.url": "amqp://localhost/", **shards}).reader(value)
        for how in ("writer", "streamWriter"):
            with case(how, "overwrite"), pytest.raises(OptionError, match="the sink only appends"):
                getattr(AmqpDataSource({"amqp.url": "amqp://localhost/", **sink}), how)(value, True)
    assert AmqpDataSource.name() == "amqp"


def test_columns_of_the_source_are_those_that_the_options_choose():
    names = [column.name for column in SOURCE_COLUMNS]
    with cases() as case:
        for given, expected in [
            ({}, [name for name in names if name != "properties"]),
            ({"includeProperties": "true"}, names),
            ({"includeHeaders": "false"}, [name for name in names if name not in ("headers", "properties")]),
            ({"columns": "offset,Value", "includeHeaders": "false"}, ["offset", "value"]),
            ({"columns": "headers,properties", "includeHeaders": "false"}, ["headers", "properties"]),
        ]:
            with case(given):
                assert AmqpDataSource({**OPTIONS, **given}).schema().names == expected
    as_json = AmqpDataSource({**OPTIONS, "headersFormat": "json"}).schema()
    assert {field.dataType.simpleString() for field in as_json if field.name == "headers"} == {"string"}
