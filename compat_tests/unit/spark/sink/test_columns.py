"""What a DataFrame has to be like to be published; the rest is refused before a task starts."""

from __future__ import annotations

import pytest

types = pytest.importorskip("pyspark.sql.types")

# ruff: noqa: E402
from compat_tests.unit.spark.sink.sink import struct
from fakeamqp.spark.errors import ColumnError, OptionError
from fakeamqp.spark.options import write_options
from fakeamqp.spark.rows.columns import PROPERTIES, SOURCE_COLUMNS
from fakeamqp.spark.sink.columns import NOT_SENT, SINK_COLUMNS, find_columns

TEXT = types.StringType()
STRUCT_OF_PROPERTIES = struct(
    **{name: types.IntegerType() if str(kind) == "int32" else TEXT for name, kind in PROPERTIES.items()}
)
OF_THE_SOURCE = {
    "value": types.BinaryType(),
    "offset": types.LongType(),
    "timestamp": types.TimestampType(),
    "redelivered": types.BooleanType(),
    "received_at": types.TimestampType(),
    "headers": types.MapType(TEXT, TEXT),
    "properties": STRUCT_OF_PROPERTIES,
}


def find(columns, **options):
    schema = types.StructType([types.StructField(name, kind) for name, kind in columns])
    given = {"amqp.url": "amqp://localhost/", "exchange": "events", **options}
    return find_columns(
        schema, write_options({key: value for key, value in given.items() if value is not None})
    )


def test_every_column_is_found_in_any_case():
    first = {
        "binary": types.BinaryType(),
        "string": TEXT,
        "byte": types.ByteType(),
        "timestamp": types.TimestampType(),
        "map": types.MapType(TEXT, TEXT),
    }
    columns = [
        (column.name.upper(), first.get(column.types[0], STRUCT_OF_PROPERTIES)) for column in SINK_COLUMNS
    ]
    found = find(columns, exchangeColumn="Exchange")
    assert set(found) == {column.name for column in SINK_COLUMNS} - {"properties"}
    assert found["value"] == ((0,),)


def test_sink_accepts_source_columns_and_finds_all_properties():
    found = find([(column.name, OF_THE_SOURCE.get(column.name, TEXT)) for column in SOURCE_COLUMNS])
    assert not set(found) & set(NOT_SENT)
    assert set(PROPERTIES) <= set(found)


def test_a_column_comes_before_the_field_of_properties():
    properties = struct(app_id=TEXT, Type=TEXT)
    found = find([("properties", properties), ("value", TEXT), ("type", TEXT)])
    assert found == {"value": ((1,),), "type": ((2,), (0, 1)), "app_id": ((0, 0),)}


@pytest.mark.parametrize("kind", [TEXT, types.BinaryType(), types.VarcharType(9), types.NullType()])
def test_value_column_may_be_string_binary_varchar_or_void(kind):
    assert find([("value", kind)]) == {"value": ((0,),)}


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("value", types.IntegerType(), "'value' is INT; it must be BINARY or STRING"),
        ("routing_key", types.BinaryType(), "'routing_key' is BINARY; it must be STRING"),
        ("Exchange", types.LongType(), "'Exchange' is BIGINT; it must be STRING"),
        ("priority", TEXT, "'priority' is STRING; it must be TINYINT, SMALLINT, INT or BIGINT"),
        ("timestamp", types.LongType(), "'timestamp' is BIGINT; it must be TIMESTAMP"),
        ("timestamp", types.TimestampNTZType(), "'timestamp' is TIMESTAMP_NTZ; it must be TIMESTAMP"),
        ("headers", types.BinaryType(), "'headers' is BINARY; it must be MAP<STRING, ...>, STRUCT"),
        ("headers", types.MapType(types.LongType(), TEXT), "'headers' has keys of BIGINT; they must be"),
        ("headers", types.MapType(TEXT, types.DateType()), r"'headers\[...\]' is DATE, a type that headers"),
        (
            "headers",
            struct(a=types.ArrayType(types.DateType())),
            r"'headers.a\[\]' is DATE, a type that headers cannot have: cast it to STRING",
        ),
        ("properties", struct(priority=TEXT), "'properties.priority' is STRING; it must be TINYINT"),
        (
            "properties",
            struct(contenttype=TEXT),
            "a field 'contenttype', .*; did you mean 'content_type'",
        ),
        ("properties", TEXT, "'properties' is STRING; it must be STRUCT of basic properties"),
        ("rooting_key", TEXT, "no column 'rooting_key'; did you mean 'routing_key'.*ignoreUnknownColumns"),
        ("fruit", TEXT, "no column 'fruit'; select the columns to be sent"),
        ("VALUE", TEXT, "two columns 'value', whose names differ by case only: drop or rename one of them"),
    ],
)
def test_column_with_invalid_type_or_name_is_refused(name, kind, expected):
    columns = [(name, kind)] if name == "value" else [("value", TEXT), (name, kind)]
    with pytest.raises(ColumnError, match=expected):
        find(columns, exchange=None if name == "Exchange" else "events")


def test_unknown_columns_may_be_left_out():
    columns = [("fruit", TEXT), ("value", TEXT), ("properties", struct(more=TEXT, app_id=TEXT))]
    assert find(columns, ignoreUnknownColumns="true") == {"value": ((1,),), "app_id": ((2, 1),)}


def test_rows_without_value_column_are_refused():
    with pytest.raises(ColumnError, match=r"no column 'value' for the body .*; did you mean 'values'"):
        find([("values", TEXT)], ignoreUnknownColumns="true")
    with pytest.raises(ColumnError, match=r"no column 'value' for the body \(BINARY or STRING\)$"):
        find([("fruit", TEXT)], ignoreUnknownColumns="true")


def test_message_id_option_column_without_message_id_column_is_refused():
    with pytest.raises(OptionError, match="'messageId' is column, but there is no column 'message_id'"):
        find([("value", TEXT)], messageId="column")


def test_rows_without_exchange_or_routing_key_are_refused():
    with pytest.raises(OptionError, match=r"the rows have no destination.*'exchange' or 'routingKey'"):
        find([("value", TEXT)], routingKey="", exchange="")
    with pytest.raises(OptionError, match="column 'queue' is the queue that a row was read from"):
        find([("value", TEXT), ("queue", TEXT)], exchange="")


ROWS = [("value", TEXT), ("exchange", TEXT), ("routing_key", TEXT), ("message_id", TEXT), ("To", TEXT)]
EXCHANGE, KEY, ID, TO = ((1,),), ((2,),), ((3,),), ((4,),)


@pytest.mark.parametrize(
    ("options", "exchange", "key"),
    [
        ({}, EXCHANGE, KEY),
        ({"exchange": "events"}, None, KEY),
        ({"exchange": ""}, None, KEY),
        ({"routingKey": "q"}, None, None),
        ({"exchange": "events", "routingKey": "q"}, None, None),
        ({"routingKey": "q", "exchangeColumn": "exchange"}, EXCHANGE, None),
        ({"routingKeyColumn": "to"}, None, TO),
        ({"routingKeyColumn": "to", "exchangeColumn": "exchange"}, EXCHANGE, TO),
        ({"exchangeColumn": "to"}, TO, KEY),
        ({"routingKey": "q", "routingKeyColumn": "TO"}, None, TO),
        ({"exchangeColumn": "to", "routingKeyColumn": "message_id"}, TO, ID),
    ],
)
def test_options_come_before_columns(options, exchange, key):
    """As on the page: the options count, and an option for the routing key means the default exchange."""
    found = find(ROWS, **{"exchange": None, "ignoreUnknownColumns": "true", **options})
    assert (found.get("exchange"), found.get("routing_key")) == (exchange, key)
    assert found["message_id"] == ID


@pytest.mark.parametrize(
    ("options", "twice"),
    [
        ({}, "routing_key"),
        ({}, "exchange"),
        ({"routingKeyColumn": "TO"}, "to"),
        ({"exchangeColumn": "to"}, "to"),
    ],
)
def test_columns_differing_only_in_case_are_refused_if_options_use_them(options, twice):
    given = {"exchange": None, "ignoreUnknownColumns": "true", **options}
    with pytest.raises(ColumnError, match=f"two columns '{twice}'"):
        find([*ROWS, (twice.upper(), TEXT)], **given)
    # They are no problem where the options do not use them.
    assert find(
        [*ROWS, (twice.upper(), TEXT)],
        **{**given, "exchange": "x", "routingKey": "q", **dict.fromkeys(options)},
    )


def test_a_column_that_an_option_names_is_there_and_is_text():
    with pytest.raises(ColumnError, match="'routingKeyColumn': there is no column 'too'; did you mean 'to'"):
        find(ROWS, routingKeyColumn="too")
    with pytest.raises(ColumnError, match="column 'to' is INT; it must be STRING"):
        find([("value", TEXT), ("to", types.IntegerType())], exchangeColumn="to")
    with pytest.raises(OptionError, match="no option 'routingKeyColum'; did you mean 'routingKeyColumn'"):
        find(ROWS, routingKeyColum="to")
