"""The columns of the sink: their types, and their places in a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import types

from fakeamqp.errors import near_match
from fakeamqp.spark.columns import PROPERTIES
from fakeamqp.spark.errors import ColumnError, OptionError
from fakeamqp.spark.sink.destinations import SAME_NAME, destination_columns

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

    from fakeamqp.spark.options import WriteOptions

#: The place of a value in a record batch: the index of its column, and in a struct also that of its field.
Path: TypeAlias = tuple[int, ...]

# Names of types, as `DataType.typeName` returns them.
_TEXT = ("string", "varchar", "char")
_WHOLE = ("byte", "short", "integer", "long")
_IN_HEADERS = {*_TEXT, *_WHOLE, "binary", "boolean", "float", "double", "decimal", "timestamp", "void"}


@dataclass(frozen=True)
class SinkColumn:
    """A column of the sink: its name, its types, their documented form, and its meaning."""

    name: str
    types: tuple[str, ...]
    spelled: str
    meaning: str


def _property(name: str) -> SinkColumn:
    if name in ("delivery_mode", "priority"):
        return SinkColumn(name, _WHOLE, "TINYINT, SMALLINT, INT or BIGINT", _MEANINGS[name])
    return SinkColumn(name, _TEXT, "STRING", _MEANINGS.get(name, "the property"))


_MEANINGS = {
    "delivery_mode": "the property: 1 transient, 2 persistent; null means the option `persistent`",
    "priority": "the property, 0 to 255",
    "expiration": "the property: milliseconds, as text",
}

SINK_COLUMNS = (
    SinkColumn("value", ("binary", *_TEXT), "BINARY or STRING", "the body; null is an empty body. Required"),
    SinkColumn(
        "routing_key",
        _TEXT,
        "STRING",
        "the routing key, if [the options](#destinations) leave it to the rows",
    ),
    SinkColumn(
        "exchange",
        _TEXT,
        "STRING",
        "the exchange, if [the options](#destinations) leave it to the rows; empty and null are the default "
        "exchange",
    ),
    SinkColumn(
        "headers",
        ("map", "struct", *_TEXT),
        "MAP<STRING, ...>, STRUCT, or STRING of a JSON object",
        "the header table; a null in a map is sent as void, a null field of a struct is not sent",
    ),
    SinkColumn("message_id", _TEXT, "STRING", "the property; see the option `messageId`"),
    SinkColumn("timestamp", ("timestamp",), "TIMESTAMP", "the property, truncated to whole seconds"),
    *map(_property, PROPERTIES),
    SinkColumn(
        "properties",
        ("struct",),
        "STRUCT of basic properties",
        "properties that have no column of their own, as the source reads them",
    ),
)

#: Columns of the source that are not part of a message. The sink does not send them.
NOT_SENT = ("queue", "offset", "redelivered", "received_at", "_error")

_BY_NAME = {column.name: column for column in SINK_COLUMNS}


def find_columns(schema: StructType, options: WriteOptions) -> Mapping[str, tuple[Path, ...]]:
    """The places of each column of the sink in a DataFrame; the first value that is not null counts.

    Raises:
        ColumnError: a column is missing, unknown or of another type.
        OptionError: the options need a column that is missing, or neither options nor columns give an
            exchange or a routing key.
    """
    destination = destination_columns(schema, options)
    found: dict[str, tuple[Path, ...]] = {}
    nested: dict[str, Path] = {}
    for name, index in destination.items():
        _check_type(schema.fields[index], _BY_NAME[name])
        found[name] = ((index,),)
    for index, field in enumerate(schema.fields):
        name = field.name.lower()
        if name in ("exchange", "routing_key"):
            continue
        column = _BY_NAME.get(name)
        if column is None:
            known = name in NOT_SENT or index in destination.values()
            if not known and not options.ignore_unknown_columns:
                raise ColumnError(
                    f"the sink has no column {field.name!r}{near_match(name, _BY_NAME)}; select the columns "
                    "to be sent, or set ignoreUnknownColumns=true"
                )
            continue
        if name in found or (name == "properties" and nested):
            raise ColumnError(SAME_NAME.format(name))
        _check_type(field, column)
        if name == "properties":
            nested = _fields_of_properties(field, index, options)
        else:
            found[name] = ((index,),)
    for name, path in nested.items():
        found[name] = (*found.get(name, ()), path)
    _check_complete(found, schema, options)
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


def _check_complete(found: Mapping[str, object], schema: StructType, options: WriteOptions) -> None:
    if "value" not in found:
        hint = near_match("value", [name.lower() for name in schema.fieldNames()], most=0)
        raise ColumnError(f"there is no column 'value' for the body (BINARY or STRING){hint}")
    if options.message_id == "column" and "message_id" not in found:
        raise OptionError("option 'messageId' is column, but there is no column 'message_id'")
