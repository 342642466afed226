"""Each query about violations returns what the check of this name finds in the same events without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from compat_tests.benchmarks.soak import soak
from compat_tests.fuzz.profile import examples
from compat_tests.programs.strategies import programs
from compat_tests.unit.trace.records import TRACES, Record, lines, mutated, traced, write_runs
from fakeamqp.spark import traces
from fakeamqp.trace import checks

VIOLATIONS = ("conformance", "fifo_violations", "unacked_high_water")
Rows = list[dict[str, Any]]


def drawn(strategy: Any, count: int) -> list[Any]:
    """So many examples, the same at every run. One job of Spark is asked about all of them."""
    found: list[Any] = []

    @settings(examples(1), max_examples=count, derandomize=True)
    @given(strategy)
    def keep(example: Any) -> None:
        found.append(example)

    keep()
    return found


@pytest.fixture(scope="module")
def runs() -> dict[str, list[list[Record]]]:
    """Traces there could be, real ones with mistakes, and real ones."""
    chance = Random(1)
    return {
        "any": drawn(TRACES, 200),
        "mistaken": [mutated(lines(soak(1, seed, publishes=12)), chance) for seed in range(120)],
        "programs": [lines(trace) for trace in map(traced, drawn(programs(), 80)) if trace is not None],
        "soak": [lines(soak(10))],
    }


@pytest.fixture(scope="module")
def loaded(amqp_spark, runs, tmp_path_factory) -> Iterator[traces.Traces]:
    """All of them in one file: a job of Spark takes its time."""
    path = tmp_path_factory.mktemp("traces") / "all.jsonl"
    write_runs(path, {f"{kind} {number}": each for kind in runs for number, each in enumerate(runs[kind])})
    found = traces.load(amqp_spark, path)
    events = found.events.cache()
    yield traces.of(events)
    events.unpersist()


@pytest.fixture(scope="module")
def answers(loaded) -> dict[str, dict[str, Rows]]:
    """By question and by run, what the queries find."""
    found: dict[str, dict[str, Rows]] = {}
    for question in VIOLATIONS:
        rows = found[question] = {}
        for row in getattr(loaded, question)().collect():
            rows.setdefault(row["run"], []).append(row.asDict())
    return found


@pytest.mark.parametrize("question", VIOLATIONS)
def test_queries_return_the_rows_of_their_checks(runs, answers, question):
    ask = getattr(checks, question)
    differ = []
    for kind in runs:
        for number, records in enumerate(runs[kind]):
            run = f"{kind} {number}"
            found, expected = answers[question].get(run, []), [{**row, "run": run} for row in ask(records)]
            if found != expected:
                differ.append((len(records), run, found, expected, records))
    if differ:
        _, _, found, expected, records = min(differ, key=lambda each: each[:2])
        shown = "\n".join(map(str, records))
        assert found == expected, f"{len(differ)} runs differ, such as\n{shown}"


def test_reference_recordings_contain_violations_of_each_rule(answers):
    rules = Counter(row["rule"] for rows in answers["conformance"].values() for row in rows)
    assert [rule for rule in checks.RULES if rules[rule] < 2] == []
    assert len(answers["fifo_violations"]) > 2
    levels = [row for rows in answers["unacked_high_water"].values() for row in rows]
    assert sum(row["exceedances"] > 0 for row in levels) > 10


@pytest.mark.parametrize("kind", ["programs", "soak"])
def test_the_broker_breaks_no_rule(answers, kind):
    of_kind = {
        question: [row for run, rows in answers[question].items() if run.startswith(kind) for row in rows]
        for question in VIOLATIONS
    }
    assert of_kind["fifo_violations"] == []
    assert sum(row["exceedances"] for row in of_kind["unacked_high_water"]) == 0
    # Consumers of the programs may have no limit; those of the soak all have one.
    limits = {row["prefetch"] for row in of_kind["unacked_high_water"]}
    assert limits > ({0, 1} if kind == "programs" else {1, 20})
    # Programs settle a tag that there is not.
    broken = {(row["rule"], row["broken_by"]) for row in of_kind["conformance"]}
    assert broken == ({("settles-nothing", "client")} if kind == "programs" else set())
