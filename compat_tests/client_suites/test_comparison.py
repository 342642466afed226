"""What the comparison of two runs says, and what the list of known differences makes of it."""

from __future__ import annotations

import pytest

from compat_tests.client_suites import differences, running
from compat_tests.client_suites.differences import Difference, problems
from compat_tests.client_suites.running import Comparison, Outcome
from compat_tests.client_suites.suites import SUITES
from compat_tests.client_suites.targets import Target

TARGETS = (Target("RabbitMQ 4.3.6", 1), Target("rabbitmq-4.3", 2))


def compared(**statuses: tuple[str | None, str | None]) -> Comparison:
    """How tests went on both: None for those that were not run."""
    sides = [
        {
            test: Outcome(both[side], "because", 0.5)
            for test, both in statuses.items()
            if both[side] is not None
        }
        for side in (0, 1)
    ]
    return Comparison(SUITES["kombu"], TARGETS, (sides[0], sides[1]))


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[Difference]:
    entries: list[Difference] = []
    monkeypatch.setattr(differences, "known", lambda: tuple(entries))
    return entries


def entry(rabbitmq: str, fakeamqp: str, *, sometimes: bool = False) -> Difference:
    return Difference("kombu", ("4.3",), ("a*",), "a reason", rabbitmq, fakeamqp, sometimes)


def test_equal_results_of_both_brokers_are_no_problem(listed: list[Difference]) -> None:
    both = compared(a=("passed", "passed"), b=("failed", "failed"), c=("skipped", "skipped"))
    assert both.differing() == []
    assert problems("4.3", both) == []
    assert both.counts(0) == "1 passed, 1 failed, 1 skipped"


def test_each_different_result_is_a_problem(listed: list[Difference]) -> None:
    both = compared(a=("passed", "failed"), b=("failed", "passed"), c=("passed", None))
    assert both.differing() == ["a", "b", "c"]
    assert problems("4.3", both) == [
        "a\n  RabbitMQ 4.3.6: passed\n    because\n  rabbitmq-4.3: failed\n    because",
        "b\n  RabbitMQ 4.3.6: failed\n    because\n  rabbitmq-4.3: passed\n    because",
        "c\n  RabbitMQ 4.3.6: passed\n    because\n  rabbitmq-4.3: not run",
    ]


def test_different_result_with_entry_of_its_version_is_no_problem(listed: list[Difference]) -> None:
    listed.append(entry("passed", "failed"))
    assert problems("4.3", compared(a1=("passed", "failed"))) == []
    assert len(problems("4.0", compared(a1=("passed", "failed")))) == 1


def test_entry_that_no_longer_matches_results_is_a_problem(listed: list[Difference]) -> None:
    listed.append(entry("passed", "failed"))
    assert problems("4.3", compared(a1=("passed", "passed"))) == [
        "no longer differs; take it off the list: a*"
    ]
    assert problems("4.3", compared(a1=("failed", "passed")))[0].startswith("differs in another way")


def test_entry_marked_sometimes_matches_equal_and_different_results(listed: list[Difference]) -> None:
    listed.append(entry("", "", sometimes=True))
    for both in (("passed", "passed"), ("passed", "failed"), ("failed", "passed")):
        assert problems("4.3", compared(a1=both)) == []


def test_tests_with_different_results_are_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[str, list[str]]] = []

    def run(suite: object, source: object, target: Target, only: list[str] = (), **_: object) -> object:
        runs.append((target.name, list(only)))
        failed = not only and target is TARGETS[1]
        return {
            test: Outcome("failed" if failed and test == "a" else "passed", "", 0) for test in only or "ab"
        }

    monkeypatch.setattr(running, "run", run)
    (found,) = running.compare([(SUITES["kombu"], None, TARGETS)])  # type: ignore[list-item]
    assert found.differing() == []
    assert sorted(runs) == sorted((target.name, only) for target in TARGETS for only in ([], ["a"]))


def test_left_out_tests_have_reasons_and_are_not_listed_as_slow() -> None:
    for suite in SUITES.values():
        assert all([*suite.left_out.values(), *(suite.not_matching or ())])
        assert not set(suite.slow) & set(suite.left_out)
