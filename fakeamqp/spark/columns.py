"""The columns of the source, with their types in Spark and in Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import ColumnError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from fakeamqp.spark.options import ReadOptions

_TIME = pa.timestamp("us", tz="UTC")

#: The basic properties that have no column of their own in the source, in the order of AMQP 0-9-1.
PROPERTIES = {
    "content_type": pa.string(),
    "content_encoding": pa.string(),
    "delivery_mode": pa.int32(),
    "priority": pa.int32(),
    "correlation_id": pa.string(),
    "reply_to": pa.string(),
    "expiration": pa.string(),
    "type": pa.string(),
    "user_id": pa.string(),
    "app_id": pa.string(),
}


@dataclass(frozen=True)
class Column:
    """A column of the source: its name, its type in Spark's DDL and in Arrow, and its meaning."""

    name: str
    ddl: str
    arrow: pa.DataType
    meaning: str


_SPELLED = {pa.string(): "STRING", pa.int32(): "INT"}
_STRUCT = ", ".join(f"{name}: {_SPELLED[arrow]}" for name, arrow in PROPERTIES.items())

SOURCE_COLUMNS = (
    Column("value", "BINARY", pa.binary(), "the body"),
    Column("routing_key", "STRING", pa.string(), "the routing key of the publish"),
    Column("exchange", "STRING", pa.string(), "the exchange of the publish; empty for the default exchange"),
    Column("queue", "STRING", pa.string(), "the queue or stream it was read from"),
    Column(
        "offset",
        "BIGINT",
        pa.int64(),
        "the position in the spool or stream; for a batch read of a queue, in the queue",
    ),
    Column("timestamp", "TIMESTAMP", _TIME, "the property, in whole seconds; null if there is none"),
    Column("message_id", "STRING", pa.string(), "the property; null if there is none"),
    Column(
        "redelivered", "BOOLEAN", pa.bool_(), "whether the broker had delivered it before, to any consumer"
    ),
    Column("received_at", "TIMESTAMP", _TIME, "when Spark received it, by the wall clock"),
    Column(
        "headers", "MAP<STRING, STRING>", pa.map_(pa.string(), pa.string()), "strings as is, others as JSON"
    ),
    Column(
        "properties", f"STRUCT<{_STRUCT}>", pa.struct(list(PROPERTIES.items())), "the other basic properties"
    ),
    Column(
        "_error",
        "STRUCT<reason: STRING, octets: BINARY>",
        pa.struct([("reason", pa.string()), ("octets", pa.binary())]),
        "what could not be read, and the property list as it came; null if there is nothing",
    ),
)

_BY_NAME = {column.name: column for column in SOURCE_COLUMNS}
_HEADERS_AS_JSON = Column("headers", "STRING", pa.string(), "the header table as one JSON object")


def chosen_columns(options: ReadOptions) -> tuple[Column, ...]:
    """The columns that the options ask for, in the order of the option `columns` or of the table.

    Raises:
        ColumnError: if there is no such column.
    """
    names: Iterable[str]
    if options.columns is not None:
        names = options.columns
    else:
        left_out = {
            name
            for name, included in (
                ("headers", options.include_headers),
                ("properties", options.include_properties),
            )
            if not included
        }
        names = [name for name in _BY_NAME if name not in left_out]
    return tuple(_column(name, options) for name in names)


def wanted_columns(schema: StructType, options: ReadOptions) -> tuple[Column, ...]:
    """The columns of the schema that Spark reads: ours, or one that the user gave.

    Raises:
        ColumnError: if there is no such column, it is there twice, or its name, its type or NOT NULL is other
            than ours.
    """
    columns = tuple(_column(field.name, options) for field in schema.fields)
    if len(set(columns)) < len(columns):
        raise ColumnError("the given schema names a column twice; name each one once")
    for field, column in zip(schema.fields, columns, strict=True):
        ours = column.ddl.lower().replace(" ", "")
        if field.dataType.simpleString() != ours:
            raise ColumnError(
                f"column {column.name!r} is {ours}, and the given schema has "
                f"{field.dataType.simpleString()}; leave schema() out, or cast the column afterwards"
            )
        # Spark compares both with the rows in the task, where messages may be acknowledged already.
        if field.name != column.name:
            raise ColumnError(
                f"column {column.name!r} is {field.name!r} in the given schema; write it in lower case, or "
                "leave schema() out and rename the column afterwards"
            )
        if not (field.nullable and _takes_nulls(field.dataType)):
            raise ColumnError(
                f"column {column.name!r} has NOT NULL in the given schema, and columns of the source are "
                f"nullable; write '{column.name} {column.ddl}', or leave schema() out"
            )
    return columns


def _takes_nulls(kind: DataType) -> bool:
    """Whether all values inside of a map or a struct may be null."""
    from pyspark.sql.types import MapType, StructType

    if isinstance(kind, StructType):
        return all(field.nullable and _takes_nulls(field.dataType) for field in kind.fields)
    return not isinstance(kind, MapType) or (kind.valueContainsNull and _takes_nulls(kind.valueType))


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """The schema of these columns as Arrow's."""
    return pa.schema([pa.field(column.name, column.arrow) for column in columns])


def _column(name: str, options: ReadOptions) -> Column:
    column = _BY_NAME.get(name.lower())
    if column is None:
        raise ColumnError(f"the source has no column {name!r}{near_match(name.lower(), _BY_NAME)}")
    return _HEADERS_AS_JSON if column.name == "headers" and options.headers_format == "json" else column
