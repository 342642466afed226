"""The check "unanswered", step by step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakeamqp.trace.checks.invariants import Answers
from fakeamqp.trace.checks.messages import Moment
from fakeamqp.trace.dialogue import Asked, Opened

KEY = ("request", 1)


@pytest.mark.parametrize(
    ("step", "direction", "unanswered"),
    [
        (Asked(1, KEY, "queue.declare"), "sent", True),
        (Asked(1, KEY, "queue.declare"), "received", True),
        (Asked(1, KEY, "connection.close", leaves=True), "received", True),
        (Asked(1, KEY, "connection.close", leaves=True), "sent", False),
    ],
)
def test_only_the_brokers_request_for_an_end_may_stay_unanswered(
    step: Asked, direction: str, unanswered: bool
) -> None:
    reported: list[str] = []
    answers = Answers(lambda _rule, text, _places, **_more: reported.append(text))
    event: Any = SimpleNamespace(alias="a", direction=direction)
    answers.step(Moment(1, event), event, Opened(1))
    answers.step(Moment(2, event), event, step)
    answers.at_end()
    assert reported == ([f"{step.name} has no answer"] if unanswered else [])
