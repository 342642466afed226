"""Sessions of clients with RabbitMQ 4.3, recorded through a proxy, replayed on the broker."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from compat_tests.trace.sessions import RECORDED, sessions
from fakeamqp.replay import replay
from fakeamqp.trace import FrameEvent, load

FILES = sorted(RECORDED.glob("*.jsonl"))


def test_every_session_has_a_recording() -> None:
    assert {path.stem for path in FILES} == set(sessions())
    assert len(FILES) >= 10


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded_session_with_rabbitmq_is_replayed_as_the_same(path: Path) -> None:
    trace = load(path)
    (start, *_) = [each.method for each in trace.events if each.name == "connection.start"]  # type: ignore[attr-defined]
    assert start.server_properties["version"].startswith("4.3.")
    assert start.server_properties["platform"].startswith("Erlang")
    outcome = replay(trace, personality="rabbitmq-4.3")
    outcome.expect_same()
    assert sum(each.replies for each in outcome.connections) >= 14


def test_recorded_session_differs_on_another_personality() -> None:
    outcome = replay(load(RECORDED / "amqpstorm.jsonl"), personality="spec")
    assert not outcome.same


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_recorded_session_has_no_password_and_no_token(path: Path) -> None:
    text = path.read_text("ascii")
    payloads = b"".join(each.payload for each in load(path).events if isinstance(each, FrameEvent))
    for secret in (b"\0guest\0guest", b"PASSWORDS\0\0\0\5guest", b"Bearer abc", b"tokenS\0\0\0\3abc"):
        assert secret not in payloads
        assert base64.b64encode(secret).decode() not in text
    assert '"abc"' not in text and "Bearer abc" not in text and '"card"' not in text
