"""A trace as a table."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.unit.trace.recordings import EVENTS
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.trace import FrameEvent, ModelEvent, PyarrowMissing, Recorder, Trace

ANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def rows(trace: Trace, path: Path) -> list[dict[str, object]]:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    trace.parquet(path)
    return parquet.read_table(path).to_pylist()


@pytest.fixture
def busy(server: Server) -> Trace:
    recorder = Recorder(server.clock.now, time=server.clock.time)
    server.state.tap = recorder
    client = server.client()
    server.advance(2.5)
    client.call(m.QueueDeclare(queue="q"), m.QueueDeclareOk)
    client.publish(b"body", routing_key="q", message_id="m1")
    client.send(m.BasicGet(queue="q"))
    return recorder.trace()


def test_parquet_rows_have_the_values_of_their_messages(busy: Trace, tmp_path: Path):
    table = rows(busy, tmp_path / "trace.parquet")
    assert [row["number"] for row in table] == list(range(len(busy)))
    (publish,) = [row for row in table if row["name"] == "basic.publish"]
    assert publish["time"] == 2.5
    assert publish["wall_time"] == datetime(2023, 11, 14, 22, 13, 22, 500_000, timezone.utc)
    expected = {
        "alias": "c1",
        "kind": "frame",
        "direction": "received",
        "channel": 1,
        "exchange": "",
        "routing_key": "q",
        "queue": None,
        "delivery_tag": None,
        "message_id": "m1",
        "body_size": 4,
    }
    assert {name: publish[name] for name in expected} == expected
    header = next(row for row in table if row["name"] == "content header")
    assert json.loads(header["fields"])["message_id"] == "m1"
    (got,) = [row for row in table if row["name"] == "basic.get-ok"]
    assert (got["delivery_tag"], got["redelivered"], got["message_id"]) == (1, False, "m1")
    assert json.loads(got["fields"])["message_count"] == 0
    (published,) = [row for row in table if row["kind"] == "model" and row["name"] == "published"]
    assert (published["routing_key"], published["message_id"], published["body_size"]) == ("q", "m1", 4)
    (delivered,) = [row for row in table if row["name"] == "delivered"]
    assert (delivered["message"], delivered["delivery_tag"]) == (published["message"], 1) == (1, 1)
    (body,) = [row for row in table if row["name"] == "content body" and row["direction"] == "sent"]
    assert (json.loads(body["fields"]), body["size"]) == ({"body": "body"}, 4)


@ANY
@given(EVENTS)
def test_any_trace_is_written_as_a_parquet_table(tmp_path, events):
    table = rows(Trace.of(events), tmp_path / "trace.parquet")
    assert [(row["time"], row["name"], row["wall_time"]) for row in table] == [
        (event.time, event.name, None) for event in events
    ]
    for row, event in zip(table, events, strict=True):
        json.loads(row["fields"])
        assert (row["size"] is not None) is isinstance(event, FrameEvent)


def test_each_column_has_the_fact_of_its_name(tmp_path):
    facts = {
        **{"exchange": "e", "routing_key": "k", "queue": "q", "consumer": "t", "delivery_tag": 3},
        **{"redelivered": True, "channel": 2, "code": 404},
    }
    (row,) = rows(Trace.of([ModelEvent(0.0, "c", "c1", "delivered", facts)]), tmp_path / "trace.parquet")
    columns = {"consumer_tag": "consumer", "reply_code": "code"}
    names = ("exchange", "routing_key", "queue", "consumer_tag", "delivery_tag", "redelivered", "channel")
    assert {columns.get(name, name): row[name] for name in (*names, "reply_code")} == facts


def test_facts_of_unexpected_types_are_text_or_null_in_parquet(tmp_path):
    facts = {"queue": 7, "channel": "one", "redelivered": 1, "code": None, "message": "m", "exchange": ["e"]}
    table = {"message": {"message": {"a": 1}, "other": 1}}
    events = [ModelEvent(0.0, None, "", "odd", each) for each in (facts, table)]
    row, other = rows(Trace.of(events), tmp_path / "trace.parquet")
    assert other["exchange"] is None
    assert (row["queue"], row["exchange"]) == ("7", '["e"]')
    assert (row["channel"], row["redelivered"], row["reply_code"]) == (None, None, None)


def test_parquet_without_pyarrow_is_an_error_that_names_the_package(busy, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PyarrowMissing, match=r"pip install 'fakeamqp\[trace\]'"):
        busy.parquet(tmp_path / "trace.parquet")
    assert not (tmp_path / "trace.parquet").exists()
