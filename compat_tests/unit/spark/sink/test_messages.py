"""Rows become messages: every column in its place, nulls by their rules, and no half of a message."""

from __future__ import annotations

import datetime
import decimal
import json
import string

import pytest

pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")

# ruff: noqa: E402
from hypothesis import given, strategies as some
from pyspark.sql import types

from compat_tests.fuzz.profile import examples
from compat_tests.unit.spark.sink import sink
from fakeamqp import Broker
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ, Timestamp
from fakeamqp.spark.errors import PublishError
from fakeamqp.spark.options import write_options
from fakeamqp.spark.sink.columns import find_columns
from fakeamqp.spark.sink.messages import SinkRows

UTC = datetime.timezone.utc
TEXT = types.StringType()


@pytest.fixture(scope="module")
def broker():
    definitions = {
        "queues": [{"name": "q", "durable": True}],
        "exchanges": [{"name": name, "type": "fanout"} for name in ("one", "two")],
        "bindings": [
            {"source": name, "destination": "q", "destination_type": "queue", "routing_key": ""}
            for name in ("one", "two")
        ],
    }
    with Broker(definitions=definitions) as broker:
        yield broker


SHORT = some.text(some.characters(codec="utf-8"), max_size=60)
NAMES = some.text(string.ascii_letters, min_size=1, max_size=10)
VALUES = {
    "value": some.binary(max_size=40),
    "routing_key": SHORT,
    "exchange": some.sampled_from(["one", "two"]),
    "message_id": SHORT,
    "timestamp": some.integers(0, 253_402_300_799_999_999),
    "headers": some.dictionaries(NAMES, some.none() | SHORT, max_size=3).map(lambda table: [*table.items()]),
    "content_type": SHORT,
    "content_encoding": SHORT,
    "delivery_mode": some.sampled_from([1, 2]),
    "priority": some.integers(0, 255),
    "correlation_id": SHORT,
    "reply_to": SHORT,
    "expiration": some.just("60000"),
    "type": SHORT,
    "user_id": some.just("guest"),
    "app_id": SHORT,
}


@some.composite
def columns(draw):
    names = draw(some.lists(some.sampled_from(sorted(VALUES)), unique=True))
    count = draw(some.integers(1, 4))
    return {
        name: draw(some.lists(some.none() | VALUES[name], min_size=count, max_size=count))
        for name in {**dict.fromkeys(names), "value": None}
    }


@examples(80)
@given(columns(), some.booleans())
def test_message_fields_equal_row_values_or_defaults(broker, columns, persistent):
    broker.queue("q").purge()
    done = sink.write(
        broker, sink.batch(**columns), exchange="one", messageId="auto", persistent=str(persistent)
    )
    messages = broker.queue("q").messages
    assert len(messages) == done.confirmed == len(columns["value"])
    for row, message in enumerate(messages):
        given = {name: values[row] for name, values in columns.items() if values[row] is not None}
        assert message.body == given.pop("value", b"")
        assert message.exchange == given.pop("exchange", "one")
        assert message.routing_key == given.pop("routing_key", "q")
        if "message_id" not in given:
            assert message.message_id.endswith(f"-0-{row}")
            given["message_id"] = message.message_id
        if "timestamp" in given:
            given["timestamp"] //= 1_000_000
        given["headers"] = dict(given.get("headers", ()))
        given.setdefault("delivery_mode", 2 if persistent else 1)
        assert message.properties == {name: value for name, value in given.items() if value != {}}


def encode(kind, spark, values, name="headers", **more):
    """The properties of rows with one column beside the value."""
    array = values if isinstance(values, pa.Array) else pa.array(values, kind)
    batch = pa.RecordBatch.from_arrays([pa.array([b""] * len(array)), array], names=["value", name])
    if name in ("exchange", "routing_key"):
        more[{"exchange": "exchangeColumn", "routing_key": "routingKeyColumn"}[name]] = name
    options = write_options(sink.options("amqp://localhost/", **more))
    columns = find_columns(sink.struct(value=types.BinaryType(), **{name: spark}), options)
    messages = SinkRows(batch, 0, columns, options, "job").messages()
    return [BasicProperties.decode(properties, 0, RABBITMQ) for _, _, properties, _ in messages]


SCALARS = [
    (pa.string(), TEXT, "pärs", "pärs"),
    (pa.large_string(), TEXT, "x" * 300, "x" * 300),
    (pa.binary(), types.BinaryType(), b"\xff\x00", b"\xff\x00"),
    (pa.large_binary(), types.BinaryType(), b"\xff", b"\xff"),
    (pa.bool_(), types.BooleanType(), True, True),
    (pa.bool_(), types.BooleanType(), False, False),
    (pa.int8(), types.ByteType(), -128, -128),
    (pa.int32(), types.IntegerType(), -(1 << 31), -(1 << 31)),
    (pa.int64(), types.LongType(), 1 << 31, 1 << 31),
    (pa.int64(), types.LongType(), -(1 << 63), -(1 << 63)),
    (pa.float32(), types.FloatType(), 0.5, 0.5),
    (pa.float64(), types.DoubleType(), 1e300, 1e300),
    (pa.decimal128(10, 2), types.DecimalType(10, 2), decimal.Decimal("1.50"), decimal.Decimal("1.50")),
    (
        sink.TIME,
        types.TimestampType(),
        datetime.datetime(2024, 2, 29, 12, 0, 0, 999_999, UTC),
        Timestamp(datetime.datetime(2024, 2, 29, 12, tzinfo=UTC).timestamp()),
    ),
]


@pytest.mark.parametrize(("arrow", "spark", "value", "read"), SCALARS)
def test_headers_from_map_struct_and_list_keep_values_of_each_type(arrow, spark, value, read):
    of_map = encode(
        pa.map_(pa.string(), arrow),
        types.MapType(TEXT, spark),
        [[("a", value), ("b", None)], []],
    )
    assert [each.headers for each in of_map] == [{"a": read, "b": None}, {}]
    of_struct = encode(
        pa.struct([("a", arrow), ("b", arrow)]),
        sink.struct(a=spark, b=spark),
        [{"a": value, "b": None}, None, {"a": None, "b": value}],
    )
    assert [each.headers for each in of_struct] == [{"a": read}, None, {"b": read}]
    of_lists = encode(
        pa.map_(pa.string(), pa.list_(arrow)),
        types.MapType(TEXT, types.ArrayType(spark)),
        [[("a", [value, None, value])], [("a", []), ("b", None)]],
    )
    assert [each.headers for each in of_lists] == [{"a": [read, None, read]}, {"a": [], "b": None}]


def test_structs_and_maps_inside_of_headers_keep_their_nulls():
    inner = pa.struct([("x", pa.int32()), ("y", pa.map_(pa.string(), pa.bool_()))])
    spark = sink.struct(x=types.IntegerType(), y=types.MapType(TEXT, types.BooleanType()))
    values = [[("a", {"x": None, "y": [("z", True)]}), ("b", None)], None, [("c", {"x": 1, "y": None})]]
    read = encode(pa.map_(pa.string(), inner), types.MapType(TEXT, spark), values)
    assert [each.headers for each in read] == [
        {"a": {"x": None, "y": {"z": True}}, "b": None},
        None,
        {"c": {"x": 1, "y": None}},
    ]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_a_part_of_an_array_has_only_its_own_headers(start):
    tables = [[("a", ["1"])], None, [("b", ["2", "3"])], [("c", [])]]
    whole = pa.array(tables, pa.map_(pa.string(), pa.list_(pa.string())))
    read = encode(None, types.MapType(TEXT, types.ArrayType(TEXT)), whole.slice(start, 2))
    assert [each.headers for each in read] == [
        None if table is None else dict(table) for table in tables[start : start + 2]
    ]


def test_json_text_in_headers_column_becomes_headers():
    table = {"a": 1, "b": 1.5, "c": None, "d": [True, {"e": "f"}], "g": 1 << 40}
    read = encode(pa.string(), TEXT, [json.dumps(table), None, "{}"])
    assert [each.headers for each in read] == [table, None, {}]


def test_headers_of_type_void_are_left_out_and_sent_within_others():
    void = types.NullType()
    kind = sink.struct(a=void, b=sink.struct(c=void), d=types.ArrayType(void))
    inner = pa.struct([("c", pa.null())])
    array = pa.struct([("a", pa.null()), ("b", inner), ("d", pa.list_(pa.null()))])
    [read] = encode(array, kind, [{"a": None, "b": {"c": None}, "d": [None, None]}], "headers")
    assert read.headers == {"b": {"c": None}, "d": [None, None]}


def test_column_of_null_type_sets_no_headers_or_priority():
    for name, kind in (("headers", types.NullType()), ("priority", types.NullType())):
        [read] = encode(pa.null(), kind, [None], name)
        assert (read.headers, read.priority) == (None, None)


def encode_beside(name, column, field):
    """The properties of rows with a column and a field of `properties`: each Spark's type and an array."""
    names = ["value", name, "properties"]
    (outer, array), (inner, fields) = column, field
    batch = pa.RecordBatch.from_arrays(
        [pa.array([b""] * len(array)), array, pa.StructArray.from_arrays([fields], [name])], names=names
    )
    schema = sink.struct(value=types.BinaryType(), **{name: outer}, properties=sink.struct(**{name: inner}))
    options = write_options(sink.options("amqp://localhost/"))
    messages = SinkRows(batch, 0, find_columns(schema, options), options, "job").messages()
    return [BasicProperties.decode(properties, 0, RABBITMQ) for _, _, properties, _ in messages]


def test_fields_of_properties_count_where_the_column_is_null():
    column, field = pa.array(["a", None, None]), pa.array(["b", "c", None])
    assert [each.type for each in encode_beside("type", (TEXT, column), (TEXT, field))] == ["a", "c", None]


def test_a_field_of_properties_may_have_larger_numbers_than_the_column():
    column = types.ByteType(), pa.array([9, None, None], pa.int8())
    found = encode_beside("priority", column, (types.IntegerType(), pa.array([1, 200, None], pa.int32())))
    assert [each.priority for each in found] == [9, 200, None]
    with pytest.raises(
        PublishError, match=r"row 1 of the task .* priority is 1099511627776; it must be 0 to"
    ):
        encode_beside("priority", column, (types.LongType(), pa.array([1, 1 << 40, None])))


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("auto", ["mine", "job-1"]),
        ("column", ["mine", None]),
        ("deterministic", ["job-0", "job-1"]),
    ],
)
def test_message_id_option_selects_ids_of_column_or_of_task(kind, ids):
    read = encode(pa.string(), TEXT, ["mine", None], "message_id", messageId=kind)
    assert [each.message_id for each in read] == ids


TOO_LONG = "x" * 256
DEEP = '{"a": ' * 50_000 + "1" + "}" * 50_000
BEFORE_1970 = datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)


def map_of(arrow, spark):
    """Headers with values of this type."""
    return "headers", pa.map_(pa.string(), arrow), types.MapType(TEXT, spark)


JSON = "headers", pa.string(), TEXT
TIMES = map_of(sink.TIME, types.TimestampType())
DECIMALS = map_of(pa.decimal128(20, 2), types.DecimalType(20, 2))
NUMBERS = map_of(pa.list_(pa.float64()), types.ArrayType(types.DoubleType()))
LARGE, TOO_LARGE = decimal.Decimal("42949672.95"), decimal.Decimal("42949672.96")


@pytest.mark.parametrize(
    ("name", "arrow", "spark", "good", "bad", "said"),
    [
        ("routing_key", pa.string(), TEXT, "a", "ä" * 128, "must be at most 255 bytes"),
        ("exchange", pa.string(), TEXT, "a", TOO_LONG, "exchange is 'xxx"),
        ("message_id", pa.string(), TEXT, "a", TOO_LONG, "message_id is 'xxx"),
        ("app_id", pa.string(), TEXT, "a", TOO_LONG, "app_id is 'xxx"),
        ("priority", pa.int64(), types.LongType(), 255, 256, "priority is 256; it must be 0 to 255"),
        ("delivery_mode", pa.int8(), types.ByteType(), 1, 0, "delivery_mode is 0; it must be 1 or 2"),
        ("timestamp", sink.TIME, types.TimestampType(), None, BEFORE_1970, "must be a time since 1970"),
        (*JSON, "{}", "[]", "headers: the JSON is a list, not an object"),
        (*JSON, "{}", "{", "headers: the text is not JSON: "),
        (*JSON, "{}", DEEP, "headers: the values nest too deep"),
        (*JSON, "{}", f'{{"a": {1 << 70}}}', "headers: field 'a': .* out of range"),
        *(
            (*JSON, '{"a": 1e3}', text, "a number that headers cannot have")
            for text in ('{"a": NaN}', '{"a": [-Infinity]}', '{"a": 1e999}')
        ),
        (
            *map_of(pa.string(), TEXT),
            [("a", "b")],
            [(TOO_LONG, "b")],
            "headers: .* at most 255 bytes, not 256",
        ),
        (
            *DECIMALS,
            [("a", LARGE)],
            [("a", TOO_LARGE)],
            "42949672.96 does not fit.* Cast it to STRING",
        ),
        (
            *TIMES,
            [("a", datetime.datetime(1970, 1, 1, tzinfo=UTC))],
            [("a", BEFORE_1970)],
            "headers: a time is before 1970",
        ),
        *(
            (
                *NUMBERS,
                [("a", [1.5])],
                [("a", [0.0, number])],
                f"headers: {number} is a number that headers cannot have: cast it to STRING",
            )
            for number in (float("nan"), float("-inf"))
        ),
    ],
)
def test_row_with_invalid_value_is_refused_with_row_number(name, arrow, spark, good, bad, said):
    assert encode(arrow, spark, [good], name)
    with pytest.raises(PublishError, match=f"^row 1 of the task cannot be sent: .*{said}"):
        encode(arrow, spark, [good, bad, good], name)


NOT_UTF_8 = pa.array([b"a", None, b"\xff", b"a"]).view(pa.string())


@pytest.mark.parametrize("name", ["routing_key", "exchange"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_row_with_non_utf_8_routing_key_or_exchange_is_refused_with_row_number(name, kind):
    """As of `CAST(X'ff' AS STRING)`."""
    with pytest.raises(
        PublishError,
        match=rf"^row 2 of the task .* {name} is b'\\xff'; it must be at most 255 bytes of UTF-8",
    ):
        encode(None, TEXT, NOT_UTF_8.cast(kind), name)


def test_non_utf_8_app_id_over_255_bytes_and_non_utf_8_headers_are_refused():
    long = pa.array([b"\xff" * 256]).view(pa.string())
    with pytest.raises(
        PublishError, match=r"row 0 .* its app_id is b'(\\xff)+\.\.\.; it must be at most 255"
    ):
        encode(None, TEXT, long, "app_id")
    with pytest.raises(PublishError, match="row 2 of the task cannot be sent: headers: 'utf-8' codec can't"):
        encode(None, TEXT, pa.array([b"{}", None, b"\xff"]).view(pa.string()), "headers")


def test_a_time_that_python_has_no_value_for_is_shown_in_microseconds():
    early = pa.array([0, -(1 << 60)], sink.TIME)
    with pytest.raises(
        PublishError, match=r"row 1 .* its timestamp is -1152921504606846976; it must be a time"
    ):
        encode(None, types.TimestampType(), early, "timestamp")
