"""Deliveries as Arrow: every property in its column, and no message that keeps a batch from being made."""

from __future__ import annotations

import datetime
import inspect
import json
import math
import struct
import sys
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as some

from compat_tests.tools.matrix import cases
from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.amqp_0_9_1.codec.tables import MAX_DEPTH
from fakeamqp.spark.errors import ColumnError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.columns import PROPERTIES, SOURCE_COLUMNS, arrow_schema, chosen_columns
from fakeamqp.spark.rows.record_batches import DeliveredRow, record_batch
from fakeamqp.timestamps import Timestamp

URL = {"amqp.url": "amqp://localhost/", "queue": "orders"}
JSON_HEADERS = chosen_columns(read_options({**URL, "columns": "_error, headers", "headersFormat": "json"}))
ALL = chosen_columns(read_options({**URL, "includeProperties": "true"}))
ROUTE = b"\x04shop\x0aorders.new"


def delivered(body=b"", route=ROUTE, **properties):
    return with_list(BasicProperties(**properties).encode(), body, route)


def with_list(octets, body=b"", route=ROUTE):
    """A message with this property list."""
    return DeliveredRow(1, False, route, octets, body, "orders", 7, 1_000_000)


def with_fields(fields):
    """A message with a header table of these fields."""
    return with_list(b"\x20\x00" + struct.pack(">I", len(fields)) + fields)


def row(message, columns=ALL):
    (only,) = record_batch([message], columns).to_pylist()
    return only


def test_row_has_all_columns_of_message():
    sent_at = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)
    message = delivered(
        b"\xff\x00",
        timestamp=int(sent_at.timestamp()),
        message_id="m1",
        headers={"b": "text", "a": 1, "c": None},
        content_type="application/json",
        delivery_mode=2,
        priority=0,
    )
    assert row(message) == {
        "value": b"\xff\x00",
        "routing_key": "orders.new",
        "exchange": "shop",
        "queue": "orders",
        "offset": 7,
        "timestamp": sent_at,
        "message_id": "m1",
        "redelivered": False,
        "received_at": datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc),
        "headers": [("a", "1"), ("b", "text"), ("c", None)],
        "properties": {
            "content_type": "application/json",
            "content_encoding": None,
            "delivery_mode": 2,
            "priority": 0,
            "correlation_id": None,
            "reply_to": None,
            "expiration": None,
            "type": None,
            "user_id": None,
            "app_id": None,
        },
        "_error": None,
    }


def test_no_properties_are_nulls():
    plain = row(delivered(b"x"))
    assert [plain[name] for name in ("timestamp", "message_id", "headers")] == [None, None, None]


def test_record_batch_has_chosen_columns_in_given_order():
    columns = chosen_columns(read_options({**URL, "columns": "message_id, value"}))
    assert record_batch([delivered(b"x")], columns).schema.names == ["message_id", "value"]


def test_no_messages_are_an_empty_batch_of_the_same_schema():
    assert record_batch([], SOURCE_COLUMNS).schema == arrow_schema(SOURCE_COLUMNS)


@pytest.mark.parametrize("seconds", [253_402_300_800, 1_700_000_000_000, 2**64 - 1])
def test_a_time_after_the_year_9999_is_null_and_an_error(seconds):
    message = delivered(timestamp=seconds, message_id="m1")
    read = row(message)
    assert (read["timestamp"], read["message_id"]) == (None, "m1")
    assert read["_error"] == {
        "reason": f"timestamp is a time after the year 9999: {seconds} s since 1970",
        "octets": message.properties,
    }


def test_non_utf_8_octets_are_replaced_and_reported_in_error_column():
    message = delivered(
        route=b"\x01x\x02k\xff",
        message_id="a\udcffb",
        headers={"k\udcff": "\udcff", "j": {"\udcff": 1}, "s": "\udcff"},
        type="\udcff",
    )
    read = row(message)
    assert (read["routing_key"], read["message_id"]) == ("k\ufffd", "a\ufffdb")
    assert read["headers"] == [("j", '{"\ufffd": 1}'), ("k\ufffd", "\ufffd"), ("s", "\ufffd")]
    assert read["properties"]["type"] == "\ufffd"
    assert read["_error"]["octets"] == message.properties
    assert sorted(read["_error"]["reason"].split("; ")) == [
        "header 'k\ufffd' is not UTF-8",
        "header 's' is not UTF-8",
        "header '\ufffd' is not UTF-8",
        "message_id is not UTF-8: 61ff62 (hexadecimal)",
        "routing_key is not UTF-8: 6bff (hexadecimal)",
        "type is not UTF-8: ff (hexadecimal)",
    ]


def test_header_names_equal_after_replacement_are_one_header():
    assert row(with_fields(b"\x01\xffS\x00\x00\x00\x01a\x01\xfeV"))["headers"] == [("\ufffd", "a")]


#: A field value with its tag, and what it is in JSON.
EXACT = {
    "t": (b"t\x01", "true"),
    "b": (b"b\xff", "-1"),
    "B": (b"B\xff", "255"),
    "s": (b"s\xff\xfe", "-2"),
    "u": (b"u\xff\xfe", "65534"),
    "I": (b"I\xff\xff\xff\xff", "-1"),
    "i": (b"i\xff\xff\xff\xff", "4294967295"),
    "l": (b"l" + struct.pack(">q", -(2**63)), str(-(2**63))),
    "L": (b"L" + struct.pack(">q", 2**63 - 1), str(2**63 - 1)),
    "f": (b"f" + struct.pack(">f", 2.75), "2.75"),
    "d": (b"d" + struct.pack(">d", 0.1), "0.1"),
    "d, large": (b"d" + struct.pack(">d", 1e300), "1e+300"),
    "NaN": (b"d" + struct.pack(">d", math.nan), '"NaN"'),
    "infinity": (b"f" + struct.pack(">f", math.inf), '"Infinity"'),
    "minus infinity": (b"d" + struct.pack(">d", -math.inf), '"-Infinity"'),
    "D": (b"D\x02" + struct.pack(">I", 314), "3.14"),
    "D, as it was written": (b"D\x03" + struct.pack(">I", 50), "0.050"),
    "D, whole": (b"D\x00" + struct.pack(">I", 2**32 - 1), "4294967295"),
    "D, tiny": (b"D\xff" + struct.pack(">I", 7), f"0.{'0' * 254}7"),
    "S": (b"S\x00\x00\x00\x04" + 'a"\xe9'.encode(), '"a\\"\xe9"'),
    "x, text": (b"x\x00\x00\x00\x02ok", '"ok"'),
    "x": (b"x\x00\x00\x00\x01\xff", '"/w=="'),
    "T": (b"T" + struct.pack(">Q", 1_704_067_200), '"2024-01-01T00:00:00+00:00"'),
    "V": (b"V", "null"),
    "A": (b"A\x00\x00\x00\x04Vt\x00V", "[null, false, null]"),
    "F": (b"F\x00\x00\x00\x07\x01bV\x01at\x00", '{"a": false, "b": null}'),
    "F, empty": (b"F\x00\x00\x00\x00", "{}"),
}


@pytest.mark.parametrize(("octets", "text"), EXACT.values(), ids=EXACT)
def test_every_type_is_exact_at_every_depth(octets, text):
    array = b"A" + struct.pack(">I", len(octets)) + octets
    message = with_fields(b"\x01a" + array + b"\x01v" + octets)
    read = row(message, JSON_HEADERS)
    assert read == {"_error": None, "headers": f'{{"a": [{text}], "v": {text}}}'}
    json.loads(read["headers"], parse_float=Decimal)
    plain = None if text == "null" else json.loads(text) if octets[0] == ord("S") else text
    assert row(message)["headers"] == [("a", f"[{text}]"), ("v", plain)]


def test_a_header_in_milliseconds_is_a_number_and_an_error():
    message = delivered(headers={"at": Timestamp(1_700_000_000_000), "n": 1})
    read = row(message)
    assert read["headers"] == [("at", "1700000000000"), ("n", "1")]
    assert read["_error"]["reason"] == (
        "header 'at' is a time after the year 9999: 1700000000000 s since 1970"
    )


def test_of_several_headers_of_one_name_the_first_counts():
    message = with_fields(b"\x01at\x01\x01at\x00\x01bF\x00\x00\x00\x08\x01at\x01\x01at\x00")
    assert row(message)["headers"] == [("a", "true"), ("b", '{"a": true}')]


def nested(tag, levels):
    """A header `x` of so many levels: an array in an array, or a table in a field `x` of a table."""
    octets = b""
    for _ in range(levels):
        octets = tag + struct.pack(">I", len(octets)) + octets
        octets = b"\x01x" + octets if tag == b"F" else octets
    return octets if tag == b"F" else b"\x01x" + octets


@pytest.mark.parametrize(("tag", "opening"), [(b"A", "["), (b"F", "{")])
def test_header_is_read_down_to_the_depth_of_the_codec(tag, opening):
    deepest = MAX_DEPTH - 1  # The table of the headers is the first level.
    whole = row(with_fields(nested(tag, deepest)))
    assert whole["_error"] is None
    assert whole["headers"][0][1].count(opening) == deepest
    for levels in (MAX_DEPTH, MAX_DEPTH + 1, 20_000):
        message = with_fields(b"\x01at\x01" + nested(tag, levels))
        for columns in (JSON_HEADERS, ALL):
            read = row(message, columns)
            headers = json.loads(read["headers"]) if columns is JSON_HEADERS else dict(read["headers"])
            text = json.dumps(headers["x"]) if columns is JSON_HEADERS else headers["x"]
            assert (text.count(opening), text.count("null")) == (deepest, 1)
            assert read["_error"] == {
                "reason": f"header 'x' nests deeper than {MAX_DEPTH} levels",
                "octets": message.properties,
            }


def test_deep_stack_of_the_caller_costs_the_headers_only():
    """Whatever of it is left: too little to decode a deep table, or too little to write it."""
    message = with_list(b"\x20\x80" + with_fields(nested(b"F", 150)).properties[2:] + b"\x01m")

    def descend(levels):
        return descend(levels - 1) if levels else row(message)

    used = len(inspect.stack(0))
    seen = set()
    for left in range(100, 600, 20):
        read = descend(sys.getrecursionlimit() - used - left)
        assert read["message_id"] == "m"
        assert (read["headers"] is None) == (read["_error"] is not None)
        seen.add(read["_error"] and read["_error"]["reason"])
    assert seen == {
        None,
        "headers: a field table nests deeper than the caller's stack allows",
        "headers: the values nest deeper than the caller's stack allows",
    }


MALFORMED = {
    "no flags": (b"\x80", ": the payload ends inside the property flags"),
    "flags that go on": (b"\x80\x81", ": the payload ends inside the property flags"),
    "a property that there is not": (
        b"\x80\x82\x01a\x01m\x00",
        ": property flags 0x8082 name a property that does not exist",
    ),
    "a string without end": (
        b"\x80\x80\x01a\x05text",
        ", field message_id: 6 bytes are due at offset 4, the payload ends at 9",
    ),
    "no string": (b"\x80\x80\x01a", ", field message_id: 1 bytes are due at offset 4, the payload ends at 4"),
    "half a time": (
        b"\x80\xc0\x01a\x01m\x00\x00",
        ", field timestamp: 8 bytes are due at offset 6, the payload ends at 8",
    ),
    "a table without end": (
        b"\xa0\x80\x01a\x00\x00\x00\x09\x01m",
        ", field headers: a field table announces 9 bytes, 2 are left",
    ),
    "too many bytes": (b"\x80\x80\x01a\x01m\x00", ": 1 bytes are left over after the last field"),
}


def test_malformed_property_list_is_an_error_and_no_property_is_read():
    none = dict.fromkeys(PROPERTIES)
    with cases() as case:
        for name, (octets, reason) in MALFORMED.items():
            with case(name):
                read = row(with_list(octets, b"body"))
                assert read["_error"] == {"reason": f"basic properties{reason}", "octets": octets}
                assert (read["value"], read["routing_key"]) == (b"body", "orders.new")
                assert (read["message_id"], read["timestamp"], read["headers"]) == (None, None, None)
                assert read["properties"] == none


MALFORMED_TABLES = {
    "an unknown tag": (b"\x01bz", "field 'b' has the unknown tag 'z'"),
    "a name without end": (b"\x05b", "a field table ends inside the value of field 'b'"),
    "no tag": (b"\x01b", "a field table ends inside the value of field 'b'"),
    "a number without end": (b"\x01bI\x00", "a field table ends inside the value of field 'b'"),
    "a string without end": (
        b"\x01bS\x00\x00\x00\x02x",
        "a field table ends inside the value of field 'b'",
    ),
}


def test_malformed_header_table_is_an_error_and_other_properties_are_read():
    with cases() as case:
        for name, (field, reason) in MALFORMED_TABLES.items():
            inner = b"\x01at\x01" + field
            for fields in (inner, b"\x01zt\x00\x01nF" + struct.pack(">I", len(inner)) + inner):
                with case(name, fields is inner):
                    table = struct.pack(">I", len(fields)) + fields
                    read = row(with_list(b"\x20\x80" + table + b"\x01m"))
                    assert (read["headers"], read["message_id"]) == (None, "m")
                    assert read["_error"]["reason"] == f"headers: {reason}"


def test_equal_headers_are_noted_in_each_row():
    broken, other = with_fields(b"\x01bz"), delivered(headers={"a": 1})
    rows = record_batch([broken, other, broken, delivered()], ALL).to_pylist()
    assert [each["headers"] for each in rows] == [None, [("a", "1")], None, None]
    assert [each["_error"] is None for each in rows] == [False, True, False, True]


def test_only_selected_columns_are_read():
    columns = chosen_columns(read_options({**URL, "columns": "value, _error"}))
    assert row(delivered(b"x", timestamp=2**64 - 1), columns) == {"value": b"x", "_error": None}


def test_a_misspelled_column_names_the_near_match():
    with pytest.raises(ColumnError, match="no column 'mesage_id'; did you mean 'message_id'"):
        chosen_columns(read_options({**URL, "columns": "mesage_id"}))


SHORT = some.binary(max_size=20).map(lambda octets: octets.decode("utf-8", "surrogateescape"))
FIELD_VALUES = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(2**63), 2**63 - 1)
    | some.floats()
    | SHORT
    | some.binary()
    | some.integers(0, 2**64 - 1).map(Timestamp),
    lambda inner: some.lists(inner) | some.dictionaries(SHORT, inner),
    max_leaves=8,
)


def check_rows(message):
    """The message makes a row between two others, which stay as they are."""
    other = delivered(b"before", headers={"a": 1})
    for columns in (ALL, JSON_HEADERS):
        batch = record_batch([other, message, other], columns)
        batch.validate(full=True)
        assert batch.num_rows == 3
        assert batch.slice(0, 1) == batch.slice(2, 1) == record_batch([other], columns)
    text = record_batch([message], JSON_HEADERS).to_pylist()[0]["headers"]
    assert text is None or isinstance(json.loads(text), dict)


@settings(deadline=None)
@given(
    body=some.binary(),
    headers=some.none() | some.dictionaries(SHORT, FIELD_VALUES),
    message_id=some.none() | SHORT,
    timestamp=some.none() | some.integers(0, 2**64 - 1),
    priority=some.none() | some.integers(0, 255),
)
def test_record_batch_is_made_of_any_message(body, headers, message_id, timestamp, priority):
    message = delivered(body, headers=headers, message_id=message_id, timestamp=timestamp, priority=priority)
    check_rows(message)
    assert record_batch([message], SOURCE_COLUMNS).column(0) == pa.array([body])


@settings(deadline=None)
@given(octets=some.binary(max_size=80) | some.binary(max_size=60).map(lambda rest: b"\xff\xfc" + rest))
def test_no_property_list_keeps_a_batch_from_being_made(octets):
    check_rows(with_list(octets))


@settings(deadline=None)
@given(fields=some.binary(max_size=80))
def test_no_header_table_keeps_a_batch_from_being_made(fields):
    check_rows(with_fields(fields))
