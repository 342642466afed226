"""The columns of the source, with their types in Spark and in Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from fakeamqp.errors import near_match
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.spark.errors import ColumnError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from fakeamqp.spark.options import ReadOptions

_TIME = pa.timestamp("us", tz="UTC")

#: The basic properties that are in the column `properties`, in the order of AMQP 0-9-1.
PROPERTIES = {
    name: pa.string() if kind == "shortstr" else pa.int32()
    for name, kind in BasicProperties.LAYOUT
    if name not in ("headers", "message_id", "timestamp", "cluster_id")
}


@dataclass(frozen=True)
class Column:
    """A column of the source: its name, its type in Arrow, and its meaning."""

    name: str
    arrow: pa.DataType
    meaning: str

    @property
    def ddl(self) -> str:
        """Its type in Spark's DDL."""
        return _ddl(self.arrow)


def _ddl(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"MAP<{_ddl(kind.key_type)}, {_ddl(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {_ddl(field.type)}' for field in kind)}>"
    return _SPELLED[kind]


_SPELLED = {
    pa.binary(): "BINARY",
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.string(): "STRING",
    _TIME: "TIMESTAMP",
}

SOURCE_COLUMNS = (
    Column("value", pa.binary(), "the body"),
    Column("routing_key", pa.string(), "the routing key of the publish"),
    Column("exchange", pa.string(), "the exchange of the publish; empty for the default exchange"),
    Column("queue", pa.string(), "the queue or stream of the message"),
    Column(
        "offset", pa.int64(), "the position in the spool or stream; for a batch read of a queue, in the queue"
    ),
    Column("timestamp", _TIME, "the property, in whole seconds; null if there is none"),
    Column("message_id", pa.string(), "the property; null if there is none"),
    Column("redelivered", pa.bool_(), "whether the broker had delivered the message before, to any consumer"),
    Column("received_at", _TIME, "the time at which Spark received the message, by the wall clock"),
    Column("headers", pa.map_(pa.string(), pa.string()), "strings unchanged, other values as JSON"),
    Column("properties", pa.struct(list(PROPERTIES.items())), "the other basic properties"),
    Column(
        "_error",
        pa.struct([("reason", pa.string()), ("octets", pa.binary())]),
        "the unreadable part, and the property list as it came; null if every part was readable",
    ),
)

#: The column of segments with the digests of messages that have a message id; Spark does not get it.
DIGEST = Column("_digest", pa.binary(), "what tells the content of a message from that of others")

_BY_NAME = {column.name: column for column in SOURCE_COLUMNS}
_HEADERS_AS_JSON = Column("headers", pa.string(), "the header table as one JSON object")


def chosen_columns(options: ReadOptions) -> tuple[Column, ...]:
    """The columns that the options ask for, in the order of the option `columns` or of the table.

    Raises:
        ColumnError: if there is no such column.
    """
    included = {"headers": options.include_headers, "properties": options.include_properties}
    names = options.columns
    if names is None:
        names = tuple(name for name in _BY_NAME if included.get(name, True))
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
