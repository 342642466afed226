"""The declarations of events: what the model reports is declared, and readers follow the declaration."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import fakeamqp
from fakeamqp.model.events import EVENTS, EventDeclaration
from fakeamqp.trace import ModelEvent, Recorder, Trace

PACKAGE = Path(fakeamqp.__file__).parent


def reports() -> list[tuple[str, int, str, int | None]]:
    """The calls of `Tap.event` with a literal name: module, line, event, and the number of other values."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if "spark" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            name = node.args[0]
            if node.func.attr == "event" and isinstance(name, ast.Constant) and len(node.args) > 2:
                starred = any(isinstance(each, ast.Starred) for each in node.args)
                count = None if starred else len(node.args) - 3
                found.append((path.name, node.lineno, str(name.value), count))
    return found


def test_events_are_reported_with_as_many_values_as_their_declaration_has() -> None:
    calls = reports()
    assert {event for _, _, event, _ in calls} >= {"published", "refused", "delivered", "expired", "dropped"}
    wrong = []
    for module, line, event, count in calls:
        declared = EVENTS[event]
        given = set(declared.fields + declared.kept) - {"message"}
        if event == "delivered":
            given.remove("connection")
        if count is not None and count != len(given):
            wrong.append((module, line, event, count))
    assert wrong == []


def test_undeclared_event_field_is_refused() -> None:
    with pytest.raises(TypeError, match="event 'queue deleted' has no field reson"):
        EVENTS["queue deleted"].values({"queue": "q", "reson": "?"})


def test_new_event_field_appears_in_trace_recording_and_text(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fields = " ".join(EVENTS["memory alarm over"].fields)
    declared = EventDeclaration("memory alarm over", f"{fields} seconds", "With one more field.")
    monkeypatch.setitem(EVENTS, "memory alarm over", declared)
    recorder = Recorder(lambda: 0.0)
    recorder.event("memory alarm over", None, None, 90, 100, 2.5)
    (event,) = recorder.trace().events
    assert isinstance(event, ModelEvent)
    assert event.facts == {"octets": 90, "limit": 100, "seconds": 2.5}
    assert event.text == "memory alarm over octets=90 limit=100 seconds=2.5"
    recorder.trace().jsonl(tmp_path / "trace.jsonl")
    line = json.loads((tmp_path / "trace.jsonl").read_text("utf-8").splitlines()[1])
    assert line["facts"]["seconds"] == 2.5
    assert Trace.load(tmp_path / "trace.jsonl").events == (event,)


def test_new_event_field_appears_in_parquet_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    fields = " ".join(EVENTS["expired"].fields)
    monkeypatch.setitem(
        EVENTS, "expired", EventDeclaration("expired", f"{fields} seconds", "One more field.")
    )
    recorder = Recorder(lambda: 0.0)
    message: Any = SimpleNamespace(body=b"m", exchange="", routing_key="q", publisher=None, properties=None)
    recorder.event("expired", None, message, "q", "/", 60.0)
    recorder.trace().parquet(tmp_path / "trace.parquet")
    (row,) = parquet.read_table(tmp_path / "trace.parquet").to_pylist()
    assert json.loads(row["fields"])["seconds"] == 60.0
    assert row["queue"] == "q"
