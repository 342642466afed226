"""Every attempt on the broker ends as docs/attempts.md says."""

from __future__ import annotations

import pytest

from compat_tests.attempts import page
from compat_tests.attempts.every import ATTEMPTS
from compat_tests.attempts.targets import NAMES, broker_process

BAD = ("crashed", "no answer", "no end", "kept", "control characters", "never taken", "busy", "MB more")
"""Words of ends that no page may have for the broker."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(each.name, marks=pytest.mark.long if each.long else ()) for each in ATTEMPTS.values()],
)
def test_attempt_on_broker_has_recorded_outcome(name: str) -> None:
    attempt = ATTEMPTS[name]
    with broker_process(tls=attempt.tls, most=attempt.descriptors) as target:
        rows = attempt.make(target)
    happened = {row: made.happened for row, made in rows.items()}
    expected = page.recorded()[name][NAMES[0]]
    assert happened == {row: each[0] for row, each in expected.items()}


def test_attempts_page_equals_results_and_has_no_bad_outcome_of_broker() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(), "run python -m compat_tests.attempts"
    results = page.recorded()
    assert set(results) == set(ATTEMPTS)
    bad = [
        (name, row, happened)
        for name, targets in results.items()
        for row, (happened, _) in targets[NAMES[0]].items()
        if any(word in happened for word in BAD)
    ]
    assert not bad
