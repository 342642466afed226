"""The schema that a user gives to a reader."""

from __future__ import annotations

import re

import pytest

types = pytest.importorskip("pyspark.sql.types")
pytest.importorskip("pyarrow")

# ruff: noqa: E402
from fakeamqp.spark.errors import ColumnError
from fakeamqp.spark.source import AmqpDataSource

OPTIONS = {"amqp.url": "amqp://localhost/", "queue": "orders", "spoolDir": "/nowhere"}


def read(*fields: types.StructField, **options: str) -> None:
    """Plan a batch read and a stream of these columns."""
    source = AmqpDataSource({**OPTIONS, **options})
    schema = types.StructType(list(fields))
    source.reader(schema)
    source.streamReader(schema)


def column(name: str, kind: types.DataType, nullable: bool = True) -> types.StructField:
    return types.StructField(name, kind, nullable)


VALUE = column("value", types.BinaryType())
ERROR = types.StructType([column("reason", types.StringType(), False), column("octets", types.BinaryType())])
HEADERS = types.MapType(types.StringType(), types.StringType(), False)


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
def test_a_schema_that_the_rows_would_not_have(reader, fields, said):
    source = AmqpDataSource(OPTIONS)
    with pytest.raises(ColumnError, match=re.escape(said)):
        getattr(source, reader)(types.StructType(fields))
