"""The columns of the sink: their types, their places in a DataFrame, and which of them say where rows go.

Options come before columns, as in Spark's sink for Kafka. `exchangeColumn` and `routingKeyColumn` name the
columns in which rows choose for themselves; where one is null, `exchange` and `routingKey` count. An option
for the routing key alone means the default exchange.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import types

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import ColumnError, OptionError
from fakeamqp.spark.rows.columns import PROPERTIES

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

    from fakeamqp.spark.options import WriteOptions

#: The place of a value in a record batch: the index of its column, and in a struct also that of its field.
Path: TypeAlias = tuple[int, ...]

# Names of types, as `DataType.typeName` returns them.
_TEXT = ("string", "varchar", "char")
_WHOLE = ("byte", "short", "integer", "long")
_IN_HEADERS = {*_TEXT, *_WHOLE, "binary", "boolean", "float", "double", "decimal", "timestamp", "void"}

_STRING = _TEXT, "STRING"
_NUMBER = _WHOLE, "TINYINT, SMALLINT, INT or BIGINT"


@dataclass(frozen=True)
class SinkColumn:
    """A column of the sink: its name, its types, their documented form, and its meaning."""

    name: str
    types: tuple[str, ...]
    spelled: str
    meaning: str = "the property"


SINK_COLUMNS = (
    SinkColumn("value", ("binary", *_TEXT), "BINARY or STRING", "the body; null is an empty body. Required"),
    SinkColumn(
        "routing_key", *_STRING, "the routing key, if [the options](#destinations) leave it to the rows"
    ),
    SinkColumn(
        "exchange",
        *_STRING,
        "the exchange, if [the options](#destinations) leave it to the rows; empty and null are the default "
        "exchange",
    ),
    SinkColumn(
        "headers",
        ("map", "struct", *_TEXT),
        "MAP<STRING, ...>, STRUCT, or STRING of a JSON object",
        "the header table; a null in a map is sent as void, a null field of a struct is not sent",
    ),
    SinkColumn("message_id", *_STRING, "the property; see the option `messageId`"),
    SinkColumn("timestamp", ("timestamp",), "TIMESTAMP", "the property, truncated to whole seconds"),
    SinkColumn("content_type", *_STRING),
    SinkColumn("content_encoding", *_STRING),
    SinkColumn(
        "delivery_mode",
        *_NUMBER,
        "the property: 1 transient, 2 persistent; null means the option `persistent`",
    ),
    SinkColumn("priority", *_NUMBER, "the property, 0 to 255"),
    SinkColumn("correlation_id", *_STRING),
    SinkColumn("reply_to", *_STRING),
    SinkColumn("expiration", *_STRING, "the property: milliseconds, as text"),
    SinkColumn("type", *_STRING),
    SinkColumn("user_id", *_STRING),
    SinkColumn("app_id", *_STRING),
    SinkColumn(
        "properties",
        ("struct",),
        "STRUCT of basic properties",
        "properties that have no column of their own, as the source reads them",
    ),
)

#: The column of the source with the queue or stream that a row was read from.
QUEUE = "queue"
#: Columns of the source that are not part of a message. The sink does not send them.
NOT_SENT = (QUEUE, "offset", "redelivered", "received_at", "_error")

_SAME_NAME = "there are two columns {!r}, whose names differ by case only: drop or rename one of them"
_BY_NAME = {column.name: column for column in SINK_COLUMNS}


def find_columns(schema: StructType, options: WriteOptions) -> Mapping[str, tuple[Path, ...]]:
    """The places of each column of the sink in a DataFrame; the first value that is not null counts.

    Raises:
        ColumnError: a column is missing, unknown or of another type.
        OptionError: the options need a column that is missing, or neither options nor columns give an
            exchange or a routing key.
    """
    destination = _destination_columns(schema, options)
    found: dict[str, tuple[Path, ...]] = {}
    for name, index in destination.items():
        _check_type(schema.fields[index], _BY_NAME[name])
        found[name] = ((index,),)
    for index, field in enumerate(schema.fields):
        name = field.name.lower()
        if name in ("exchange", "routing_key"):
            continue
        if name not in _BY_NAME:
            if not (name in NOT_SENT or index in destination.values() or options.ignore_unknown_columns):
                raise ColumnError(
                    f"the sink has no column {field.name!r}{near_match(name, _BY_NAME)}; select the columns "
                    "to be sent, or set ignoreUnknownColumns=true"
                )
            continue
        if name in found:
            raise ColumnError(_SAME_NAME.format(name))
        _check_type(field, _BY_NAME[name])
        found[name] = ((index,),)
    for (index,) in found.pop("properties", ()):
        for name, path in _fields_of_properties(schema.fields[index], index, options).items():
            found[name] = (*found.get(name, ()), path)
    if "value" not in found:
        hint = near_match("value", [name.lower() for name in schema.fieldNames()], most=0)
        raise ColumnError(f"there is no column 'value' for the body (BINARY or STRING){hint}")
    if options.message_id == "column" and "message_id" not in found:
        raise OptionError("option 'messageId' is column, but there is no column 'message_id'")
    return found


def queue_not_to_feed(schema: StructType, options: WriteOptions) -> tuple[Path, ...]:
    """The places of the column `queue` of the source: a streaming query publishes no row to its own queue.

    Otherwise it would read its own messages, without an end. The column does not tell the broker, nor where
    exchanges lead. So these loops are not noticed: rows without the column; an exchange that leads back to
    the queue, as that of a super stream or of shards does; and a batch write in `foreachBatch`.

    Raises:
        OptionError: there is such a column, and no option says where rows go, so that the columns `exchange`
            and `routing_key` may be those that the rows were read with.
    """
    found = [
        (index,)
        for index, field in enumerate(schema.fields)
        if field.name.lower() == QUEUE and field.dataType.typeName() == "string"
    ]
    said = options.exchange, options.routing_key, options.exchange_column, options.routing_key_column
    if found and all(option is None for option in said):
        raise OptionError(
            "the query may read its own messages: its rows have the column 'queue' of the source, and no "
            "option says where they go. Set 'exchange' or 'routingKey'; or 'exchangeColumn' or "
            "'routingKeyColumn', to say that the rows choose; or drop the column 'queue'"
        )
    return tuple(found)


def _destination_columns(schema: StructType, options: WriteOptions) -> Mapping[str, int]:
    """The indexes of the columns with the exchange and the routing key, by `exchange` and `routing_key`.

    Raises:
        ColumnError: an option names a column that is not there, or there are two columns of a name.
        OptionError: neither options nor columns give a destination.
    """
    names = [name.lower() for name in schema.names]
    by_rows = options.routing_key is None and options.routing_key_column is None
    wanted = {
        "exchange": (options.exchange_column, "exchangeColumn", options.exchange is None and by_rows),
        "routing_key": (options.routing_key_column, "routingKeyColumn", by_rows),
    }
    found = {}
    for name, (chosen, key, left_to_rows) in wanted.items():
        if chosen is None and not left_to_rows:
            continue
        column = name if chosen is None else chosen.lower()
        if names.count(column) > 1:
            raise ColumnError(_SAME_NAME.format(column))
        if column in names:
            found[name] = names.index(column)
        elif chosen is not None:
            raise ColumnError(
                f"option {key!r}: there is no column {chosen!r}{near_match(column, set(names))}"
            )
    if not (found or options.exchange or options.routing_key):
        hint = "; column 'queue' is the queue that a row was read from, not a destination"
        raise OptionError(
            "the rows have no destination: set the option 'exchange' or 'routingKey' (for the default "
            "exchange, the name of a queue), or add the columns 'exchange' and 'routing_key'"
            f"{hint if QUEUE in names else ''}"
        )
    return found


def _fields_of_properties(field: StructField, index: int, options: WriteOptions) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    fields = field.dataType.fields if isinstance(field.dataType, types.StructType) else []
    for position, inner in enumerate(fields):
        name = inner.name.lower()
        if name in PROPERTIES:
            _check_type(inner, _BY_NAME[name], within=field.name)
            paths[name] = (index, position)
        elif not options.ignore_unknown_columns:
            raise ColumnError(
                f"column {field.name!r} has a field {inner.name!r}, which is not a basic property"
                f"{near_match(name, PROPERTIES)}"
            )
    return paths


def _check_type(field: StructField, column: SinkColumn, within: str = "") -> None:
    name = f"{within}.{field.name}" if within else field.name
    if field.dataType.typeName() not in (*column.types, "void"):
        raise ColumnError(f"column {name!r} is {_spelled(field.dataType)}; it must be {column.spelled}")
    if column.name == "headers":
        _check_header(field.dataType, name)


def _check_header(kind: DataType, name: str) -> None:
    """Refuse types that a header table cannot contain, at any depth."""
    if isinstance(kind, types.MapType):
        if kind.keyType.typeName() not in _TEXT:
            raise ColumnError(f"column {name!r} has keys of {_spelled(kind.keyType)}; they must be STRING")
        _check_header(kind.valueType, f"{name}[...]")
    elif isinstance(kind, types.ArrayType):
        _check_header(kind.elementType, f"{name}[]")
    elif isinstance(kind, types.StructType):
        for field in kind.fields:
            _check_header(field.dataType, f"{name}.{field.name}")
    elif kind.typeName() not in _IN_HEADERS:
        raise ColumnError(
            f"column {name!r} is {_spelled(kind)}, a type that headers cannot have: cast it to STRING"
        )


def _spelled(kind: DataType) -> str:
    return kind.simpleString().upper()
