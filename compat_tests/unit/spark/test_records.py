"""Deliveries as Arrow: every property in its column, and no message that keeps a batch from being made."""

from __future__ import annotations

import datetime
import decimal
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

pika = pytest.importorskip("pika")

from fakeamqp.spark.columns import SOURCE_COLUMNS, arrow_schema, chosen_columns  # noqa: E402
from fakeamqp.spark.errors import ColumnError  # noqa: E402
from fakeamqp.spark.options import read_options  # noqa: E402
from fakeamqp.spark.records import Delivered, record_batch  # noqa: E402

URL = {"amqp.url": "amqp://localhost/", "queue": "orders"}
JSON_HEADERS = chosen_columns(read_options({**URL, "columns": "headers", "headersFormat": "json"}))


def delivered(body: bytes = b"", **properties: object) -> Delivered:
    deliver = pika.spec.Basic.Deliver("ctag", 1, False, "shop", "orders.new")
    return Delivered(deliver, pika.BasicProperties(**properties), body, "orders", 7, 1_000_000)


def row(message: Delivered, columns=SOURCE_COLUMNS) -> dict:
    (only,) = record_batch([message], columns).to_pylist()
    return only


def test_every_column():
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
    }


def test_no_properties_are_nulls():
    plain = row(delivered(b"x"))
    assert [plain[name] for name in ("timestamp", "message_id", "headers")] == [None, None, None]


def test_only_what_is_wanted_in_the_order_that_is_wanted():
    columns = chosen_columns(read_options({**URL, "columns": "message_id, value"}))
    assert record_batch([delivered(b"x")], columns).schema.names == ["message_id", "value"]


def test_no_messages_are_an_empty_batch_of_the_same_schema():
    assert record_batch([], SOURCE_COLUMNS).schema == arrow_schema(SOURCE_COLUMNS)


@pytest.mark.parametrize("seconds", [253_402_300_800, 1_700_000_000_000, 2**64 - 1])
def test_a_time_after_the_year_9999_is_null(seconds):
    assert row(delivered(timestamp=seconds))["timestamp"] is None


def test_octets_that_are_no_text_are_replaced():
    message = delivered(message_id=b"a\xffb", headers={b"k\xff": "v", "j": {b"\xff": 1}}, type=b"\xff")
    read = row(message)
    assert read["message_id"] == "a\ufffdb"
    assert read["headers"] == [("j", '{"\ufffd": 1}'), ("k\ufffd", "v")]
    assert read["properties"]["type"] == "\ufffd"


def test_headers_as_json_keep_their_types():
    headers = {
        "n": 1,
        "t": True,
        "d": decimal.Decimal("1.5"),
        "at": datetime.datetime(2024, 1, 1),
        "raw": b"\xff",
        "text": b"ok",
        "x-death": [{"count": 2, "queue": "q"}],
    }
    (text,) = record_batch([delivered(headers=headers)], JSON_HEADERS).column(0).to_pylist()
    assert json.loads(text) == {
        "n": 1,
        "t": True,
        "d": 1.5,
        "at": "2024-01-01T00:00:00+00:00",
        "raw": "/w==",
        "text": "ok",
        "x-death": [{"count": 2, "queue": "q"}],
    }


def test_a_misspelled_column_names_the_near_match():
    with pytest.raises(ColumnError, match="no column 'mesage_id'; did you mean 'message_id'"):
        chosen_columns(read_options({**URL, "columns": "mesage_id"}))


# As pika hands over short strings: bytes where they are no UTF-8.
SHORT = some.text(max_size=20) | some.binary(max_size=20)
FIELD_VALUES = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(2**63), 2**63 - 1)
    | some.floats(allow_nan=False)
    | some.text()
    | some.binary()
    | some.decimals(allow_nan=False, allow_infinity=False)
    | some.datetimes(),
    lambda inner: some.lists(inner) | some.dictionaries(SHORT, inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    body=some.binary(),
    headers=some.none() | some.dictionaries(SHORT, FIELD_VALUES),
    message_id=some.none() | SHORT,
    timestamp=some.none() | some.integers(0, 2**64 - 1),
    priority=some.none() | some.integers(0, 255),
)
def test_no_message_keeps_a_batch_from_being_made(body, headers, message_id, timestamp, priority):
    message = delivered(body, headers=headers, message_id=message_id, timestamp=timestamp, priority=priority)
    for columns in (SOURCE_COLUMNS, JSON_HEADERS):
        batch = record_batch([delivered(b"before"), message], columns)
        batch.validate(full=True)
        assert batch.num_rows == 2
    assert record_batch([message], SOURCE_COLUMNS).column(0) == pa.array([body])
