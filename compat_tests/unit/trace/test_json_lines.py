"""Recordings: whatever is written is read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.unit.trace.recordings import EVENTS, same
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.trace import FrameEvent, Recorder, RecordingError, Trace, load
from fakeamqp.trace.json_form import event_to_json

ANY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@ANY
@given(EVENTS, st.integers(0, 5), st.none() | st.floats(0, 2e9), st.sampled_from(["real", "virtual"]))
def test_recording_is_read_back_unchanged(tmp_path, events, dropped, wall_time, clock):
    path = tmp_path / "trace.jsonl"
    Trace.of(events, dropped, wall_time=wall_time, clock=clock).jsonl(path, redact=False)
    again = load(path)
    assert len(again) == len(events) and all(map(same, again.events, events))
    assert (again.dropped, again.wall_time, again.clock) == (dropped, wall_time, clock)
    assert [event.text for event in again.events] == [event.text for event in events]


@ANY
@given(EVENTS)
def test_recording_has_a_header_line_and_an_object_per_event(tmp_path, events):
    path = tmp_path / "trace.jsonl"
    Trace.of(events).jsonl(path)
    header, *lines = [json.loads(line) for line in path.read_text("ascii").splitlines()]
    assert header == {
        "format": "fakeamqp trace",
        "version": 2,
        "clock": "real",
        "began": None,
        "dropped": 0,
        "events": len(events),
        "redacted": True,
    }
    for number, (line, event) in enumerate(zip(lines, events, strict=True)):
        line.pop("octets", None)
        assert line.pop("number") == number
        assert line == json.loads(json.dumps(event_to_json(event)))


@pytest.fixture
def busy(server: Server, recorder: Recorder) -> Trace:
    """What happened while a client published to a queue with a limit."""
    client = server.client()
    arguments = {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.call(m.QueueDeclare(queue="dead"), m.QueueDeclareOk)
    client.call(m.QueueDeclare(queue="small", arguments=arguments), m.QueueDeclareOk)
    client.publish(b"one", routing_key="small", message_id="m1", headers={"n": 1})
    client.publish(b"\xff" * 10_000, routing_key="small")
    client.publish(b"lost", routing_key="nowhere")
    client.call(m.ConnectionClose(reply_code=200), m.ConnectionCloseOk, channel=0)
    return recorder.trace()


def test_recording_has_the_timeline_of_its_trace(busy: Trace, tmp_path: Path):
    busy.jsonl(tmp_path / "trace.jsonl")
    again = load(tmp_path / "trace.jsonl")
    assert again.timeline() == busy.timeline()
    assert [event_to_json(event) for event in again.events] == [event_to_json(event) for event in busy.events]
    assert {"published", "dead-lettered"} <= {event.name for event in again.events}
    again.jsonl(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "trace.jsonl").read_text()


def test_passwords_are_redacted_unless_redact_is_false(busy: Trace, tmp_path: Path):
    busy.jsonl(tmp_path / "redacted.jsonl")
    busy.jsonl(tmp_path / "whole.jsonl", redact=False)
    redacted, whole = load(tmp_path / "redacted.jsonl"), load(tmp_path / "whole.jsonl")
    changed = [
        (one.method.response, other.method.response)
        for one, other in zip(redacted.events, whole.events, strict=True)
        if isinstance(one, FrameEvent) and not same(one, other)
    ]
    assert changed == [(b"\0guest\0*****", b"\0guest\0guest")]


FRAME = {
    "kind": "frame", "time": 0, "connection": "c", "alias": "c1", "direction": "received", "type": 3,
    "channel": 1, "octets": "", "cut": True, "size": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("\x89PNG\n", "not a recording of fakeamqp"),
        ("[]\n", "not a recording of fakeamqp"),
        ('{"format": "HAR"}\n', "not a recording of fakeamqp"),
        ('{"format": "fakeamqp trace", "version": 3}\n', "version 3; versions up to 2 can be read"),
        ('{"format": "fakeamqp trace", "version": 1}\n', "line 1 is damaged"),
        ("HEADER\n", "1 events are expected and 0 were found"),
        ('HEADER\n{"kind": "frame"', "line 2 is damaged"),
        ('HEADER\n{"kind": "frame"}\n', "line 2 is damaged"),
        (
            'HEADER\n{"kind": "x", "time": 0, "connection": null, "alias": ""}\n',
            "there is no event of kind 'x'",
        ),
        (
            'HEADER\n{"kind": "model", "time": 0, "connection": null, "alias": "", "event": "e", '
            '"facts": {"message": {"message": 1}}}\n',
            "line 2 is damaged",
        ),
        ("HEADER\n" + "[" * 100_000, "line 2 is damaged"),
        *(
            ("HEADER\n" + json.dumps({**FRAME, name: value}), f"{name!r} must be")
            for name, value in [
                ("time", float("nan")),
                ("time", float("inf")),
                ("time", -1e300),
                ("channel", 65536),
                ("type", 65536),
                ("size", 10**12),  # A replay would make up what is not there.
            ]
        ),
    ],
)
def test_unreadable_recording_is_an_error_that_explains_the_problem(tmp_path, text, words):
    header = {"format": "fakeamqp trace", "version": 1, "clock": "real", "began": None}
    header |= {"dropped": 0, "events": 1, "redacted": True}
    path = tmp_path / "trace.jsonl"
    path.write_text(text.replace("HEADER", json.dumps(header)), "latin-1")
    with pytest.raises(RecordingError, match=r"trace\.jsonl") as refusal:
        load(path)
    assert words in str(refusal.value)
