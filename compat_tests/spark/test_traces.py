"""Recordings as views: what is read, what is refused, and the page."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from compat_tests.docs.pages import ROOT
from compat_tests.unit.faults.server import FaultServer
from compat_tests.unit.trace.pages import elements_of
from compat_tests.unit.trace.records import lines
from fakeamqp.spark import traces
from fakeamqp.trace import RecordingError, checks


@pytest.fixture(scope="module")
def recording():
    """A queue with a name that a page must not take for its own, and a fault."""
    server = FaultServer()
    client = server.client(channels=2)
    client.declare("<b>&q")
    client.qos(5)
    client.consume("<b>&q", "tag")
    server.faults.on("basic.deliver", direction="sent").duplicate().once()
    for number in range(4):
        client.publish(b"x", routing_key="<b>&q", message_id=f"m{number}", priority=number)
    server.advance(2)
    client.ack(3, multiple=True)
    client.nack(4, requeue=True)
    assert server.recorder is not None
    return server.recorder.trace()


@pytest.fixture(scope="module")
def folder(recording, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    (folder / "deep" / "er").mkdir(parents=True)
    recording.jsonl(folder / "one.jsonl")
    shutil.copy(folder / "one.jsonl", folder / "deep" / "er" / "two.jsonl")
    recording.parquet(folder / "deep" / "one.parquet")
    (folder / "notes.txt").write_text("not a trace")
    return folder


@pytest.fixture(scope="module")
def rows(amqp_spark, folder):
    """What the view says of one recording."""
    return traces.load(amqp_spark, folder / "one.jsonl").events.drop("run").orderBy("number").collect()


def test_columns_and_queries_of_traces_are_documented(spark, folder):
    loaded = traces.load(spark, folder / "one.jsonl")
    types = {field.name: field.dataType.simpleString().upper() for field in loaded.events.schema}
    assert types == traces.COLUMNS
    page = (ROOT / "docs" / "spark-traces.md").read_text()
    loaded.create_views()
    for name in {*traces.COLUMNS, *spark.table("deliveries").columns}:
        assert f"`{name}`" in page
    for name in traces.QUERIES:
        assert f"| `{name}` |" in page


def test_trace_row_has_fields_of_its_event(rows, recording):
    assert len(rows) == len(recording)
    assert [(row.name, row.time, row.alias, row.text) for row in rows] == [
        (event.name, event.time, event.alias, event.text) for event in recording.events
    ]
    delivered = next(row for row in rows if row.name == "delivered" and row.delivery_tag == 4)
    assert (delivered.queue, delivered.consumer_tag, delivered.channel) == ("<b>&q", "tag", 1)
    assert (delivered.session, delivered.virtual_host, delivered.redelivered) == (1, "/", False)
    assert (delivered.message, delivered.message_id, delivered.priority) == (3, "m2", 2)
    added = next(row for row in rows if row.name == "consumer added")
    assert (added.no_ack, added.prefetch, added.shared) == (False, 5, True)
    ack = next(row for row in rows if row.name == "basic.ack")
    assert (ack.delivery_tag, ack.multiple, ack.direction) == (3, True, "received")


def test_traces_loaded_from_parquet_or_saved_table_have_same_rows(spark, folder, rows, tmp_path, monkeypatch):
    recorded = traces.load(spark, folder / "deep" / "one.parquet")
    assert recorded.events.drop("run").orderBy("number").collect() == rows
    monkeypatch.chdir(tmp_path)
    recorded.save("saved")
    again = traces.load(spark, "saved")
    assert again.events.drop("run").orderBy("number").collect() == rows
    (run,) = again.events.select("run").distinct().collect()
    assert run["run"] == str(folder / "deep" / "one.parquet")
    assert again.damaged.isEmpty()


def test_traces_are_loaded_from_files_folders_and_patterns(spark, folder, tmp_path):
    def runs(*paths):
        found = traces.load(spark, paths).events.select("run").distinct().collect()
        return sorted(Path(row["run"]).name for row in found)

    assert runs(folder / "*.jsonl") == ["one.jsonl"]
    assert runs(folder / "one.jsonl", folder / "deep" / "*" / "*.jsonl") == ["one.jsonl", "two.jsonl"]
    assert runs(folder / "deep" / "er") == ["two.jsonl"]
    assert runs(folder) == ["one.parquet"]  # The same traces in two formats are read once.
    (tmp_path / "packed.json.gz").write_bytes(gzip.compress((folder / "one.jsonl").read_bytes()))
    assert runs(tmp_path) == ["packed.json.gz"]


def test_a_fault_shows_as_a_violation(spark, recording, folder):
    loaded = traces.load(spark, folder / "one.jsonl")
    found = [row.asDict() for row in loaded.conformance().collect()]
    assert [(row["rule"], row["broken_by"], row["name"]) for row in found] == [
        ("delivery-made-up", "broker", "basic.deliver")
    ]
    assert [{**row, "run": ""} for row in found] == checks.conformance(lines(recording))


def test_latency_redelivery_rate_and_unacked_age_are_computed(spark, folder):
    loaded = traces.load(spark, folder / "one.jsonl")
    (latency,) = loaded.latency_by_queue().collect()
    assert (latency.queue, latency.messages, latency.max) == ("<b>&q", 4, 0)
    (rate,) = loaded.redelivery_rate().collect()
    assert (rate.deliveries, rate.redelivered, rate.rate, rate.acked, rate.requeued) == (5, 1, 0.2, 2, 1)
    (age,) = loaded.unacked_age().collect()
    assert (age.settled, age.max, age.unsettled, age.oldest_unsettled) == (3, 2, 2, 2)
    ages = loaded.sql("SELECT settled, settled_time - time AS held FROM deliveries ORDER BY number").collect()
    assert [tuple(row) for row in ages] == [
        ("acked", 2.0),
        ("acked", 2.0),
        ("requeued", 2.0),
        (None, None),
        (None, None),
    ]


def test_report_page_has_rows_of_all_queries_and_counts_of_runs_and_damaged_lines(spark, folder, tmp_path):
    with (tmp_path / "one.jsonl").open("w") as file:
        file.write((folder / "one.jsonl").read_text() + '{"cut off')
    shutil.copy(folder / "one.jsonl", tmp_path / "two.jsonl")
    traces.report(spark, tmp_path / "*.jsonl", tmp_path / "page.html", title="<i>all</i>")
    page = elements_of((tmp_path / "page.html").read_text())
    assert [attributes["href"] for attributes, _ in page.all("a")] == [f"#{name}" for name in traces.QUERIES]
    assert [text for _, text in page.all("h1")] == ["<i>all</i>"]
    numbers = dict(zip(*([text for _, text in page.all(tag)] for tag in ("dt", "dd")), strict=True))
    events = (folder / "one.jsonl").read_text().count("\n") - 1
    assert numbers == {
        "Events": str(2 * events),
        "Runs": "2",
        "Connections": "2",
        "Longest run": "2.000 s",
        "Damaged lines": "1",
        "Deliveries out of order": "0",
        "Violations of the protocol": "2",
        "Beyond their prefetch": "0",
    }
    cells = [text for _, text in page.all("td")]
    assert {"<b>&q", "delivery-made-up", "consumer"} <= set(cells)


def test_damaged_lines_are_left_out_and_kept(spark, folder, tmp_path):
    text = (folder / "one.jsonl").read_text()
    (tmp_path / "cut.jsonl").write_text(text[:-30])
    loaded = traces.load(spark, tmp_path / "cut.jsonl")
    assert loaded.events.count() == text.count("\n") - 2
    (damaged,) = loaded.damaged.collect()
    assert (damaged.run, damaged.line) == (str(tmp_path / "cut.jsonl"), text.splitlines()[-1][:-29])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("odd.jsonl", '{"log": "x"}\n', "the first line is not its header"),
        ("odd.jsonl", "", "the file is empty"),
        (
            "odd.jsonl",
            json.dumps({"format": "fakeamqp trace", "version": 3}) + "\n",
            "has version 3; versions up to 2 can be",
        ),
        ("odd.txt", "", "set format='jsonl'"),
    ],
)
def test_file_without_valid_recording_is_refused(spark, tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(RecordingError, match=words):
        traces.load(spark, tmp_path / name)


def test_empty_path_list_and_unrelated_table_are_refused(spark, tmp_path):
    with pytest.raises(RecordingError, match="no path"):
        traces.load(spark, [])
    spark.range(3).write.parquet(str(tmp_path / "numbers"))
    with pytest.raises(RecordingError, match="columns alias, body_size"):
        traces.load(spark, tmp_path / "numbers")
