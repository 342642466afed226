"""Recordings as views: what is read, what is refused, and the page."""

from __future__ import annotations

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from compat_tests.docs.pages import ROOT
from compat_tests.unit.faults.server import FaultServer
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
def rows(spark_amqp, folder):
    """What the view says of one recording."""
    return traces.load(spark_amqp, folder / "one.jsonl").events.drop("run").orderBy("number").collect()


def test_columns_and_queries_of_traces_are_documented(spark, folder):
    loaded = traces.load(spark, folder / "one.jsonl")
    types = {name: column.type for name, column in traces.COLUMNS.items()}
    assert {field.name: field.dataType.simpleString().upper() for field in loaded.events.schema} == types
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


class Page(HTMLParser):
    """What a page shows, and what it would load."""

    def __init__(self, text):
        super().__init__()
        self.shown = []
        self.tags = []
        self.loads = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attributes if name in ("src", "href")]

    def handle_data(self, data):
        self.shown.append(data)


def test_report_page_escapes_text_and_counts_violations_and_damaged_lines(spark, folder, tmp_path):
    with (tmp_path / "one.jsonl").open("w") as file:
        file.write((folder / "one.jsonl").read_text() + '{"cut off')
    traces.report(spark, tmp_path / "one.jsonl", tmp_path / "page.html", title="<i>all</i>")
    page = Page((tmp_path / "page.html").read_text())
    assert page.loads == [f"#{name}" for name in traces.QUERIES]
    assert not {"script", "b", "i", "img", "link"} & set(page.tags)
    assert "<i>all</i>" in page.shown and "<b>&q" in page.shown and "delivery-made-up" in page.shown
    for label in ("Violations of the protocol", "Damaged lines"):
        assert page.shown[page.shown.index(label) + 1] == "1"


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
