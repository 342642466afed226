"""Recordings with one wrong value: an error that names the field, and never Python's own."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compat_tests.scripted.amqp_0_9_1 import Server
from compat_tests.tools.matrix import cases
from fakeamqp.errors import FakeAMQPError
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.trace import Recorder, load

VALUES: tuple[Any, ...] = (None, True, 5, -1, 1.5, "text", "", [], [1], {}, {"a": 1})


@pytest.fixture
def lines(server: Server, recorder: Recorder, tmp_path: Path) -> list[dict[str, Any]]:
    """A recording with frames, events of connections and of messages; one line of each kind and name."""
    client = server.client()
    arguments = {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    client.declare("dead")
    client.declare("small", arguments=arguments)
    client.bind("small", "amq.topic", "#")
    client.fill("small", b"one", b"two" * 5000, headers={"n": 1}, expiration="5")
    client.publish(b"lost", routing_key="nowhere", mandatory=True)
    client.expect_content(m.BasicReturn)
    client.consume("dead", no_ack=True)
    client.bodies()
    client.get("small")
    client.ack(2)
    client.call(m.ConnectionClose(reply_code=200), m.ConnectionCloseOk, channel=0)
    recorder.trace().jsonl(tmp_path / "whole.jsonl")
    header, *events = map(json.loads, (tmp_path / "whole.jsonl").read_text().splitlines())
    kinds = {(each["kind"], each.get("event", each.get("name", ""))): each for each in reversed(events)}
    chosen = [each for each in kinds.values() if each["kind"] != "frame" or "declare" in each["name"]]
    return [{**header, "events": len(chosen)}, *chosen]


def mutations(lines: list[dict[str, Any]]) -> Iterator[tuple[tuple[Any, ...], Any, list[dict[str, Any]]]]:
    """Each field with each other value, and without it."""
    for path, found in _paths(lines):
        for value in (*VALUES, ...):
            if value is ... or json.dumps(value) != json.dumps(found):
                mutated = copy.deepcopy(lines)
                place: Any = mutated
                for step in path[:-1]:
                    place = place[step]
                if value is ...:
                    del place[path[-1]]
                else:
                    place[path[-1]] = value
                yield path, value, mutated


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if len(path) > 1:
        yield path, value
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, each in steps:
        yield from _paths(each, (*path, step))


@pytest.mark.parametrize("server", ["rabbitmq-4.2"], indirect=True)
def test_recording_with_a_changed_field_is_read_or_refused_with_the_field_name(
    lines: list[dict[str, Any]], tmp_path: Path
) -> None:
    refused = 0
    path_of_file = tmp_path / "mutated.jsonl"
    with cases() as case:
        for path, value, mutated in mutations(lines):
            path_of_file.write_text("".join(json.dumps(each) + "\n" for each in mutated))
            with case(".".join(map(str, path)), "gone" if value is ... else json.dumps(value)):
                try:
                    trace = load(path_of_file)
                except FakeAMQPError as problem:
                    refused += 1
                    assert str(path[1]) in str(problem) or path == (0, "format")
                else:
                    trace.timeline()
                    if "facts" in path and value in (5, [1]):
                        trace.html()
                    for event in trace.events:
                        assert repr(event) and event.name is not None
    assert refused > 500
