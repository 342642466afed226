"""Runs a test on both personalities, and reports both runs to pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import chosen, runs
from .findings import investigate

if TYPE_CHECKING:
    import pytest

    from .findings import Finding
    from .runs import Run

__all__ = ["finding_of", "outcome_word", "run_on_both"]

_FINDING = "amqp_comparison"
"""The attribute of a report that holds the finding of its test."""
_PERSONALITY = "amqp_personality"
"""The attribute of a report that holds the personality of its run."""


def run_on_both(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run `item` on both personalities and find out what makes the difference.

    pytest gets the reports of the first and of the second run, so a failure in either fails the session. It
    does not get those of the runs that look for a cause.
    """
    pair = chosen.pair(item.config)
    both = []
    for personality in pair:
        run = runs.run(item, personality)
        _report(item, run, personality.name)
        both.append(run)
    finding = investigate(item, pair, *both)
    last = runs.end(item, nextitem)
    setattr(last, _FINDING, finding.as_data())
    item.ihook.pytest_runtest_logreport(report=last)


def _report(item: pytest.Item, run: Run, name: str) -> None:
    file, line, test = item.location
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in run.reports:
        # For the headline of a failure, and for `-v`. The id of the test stays the same.
        report.location = (file, line, f"{test} on {name}")
        setattr(report, _PERSONALITY, name)
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def outcome_word(report: object, plain: str | tuple[str, Any]) -> str | tuple[str, Any]:
    """The word that `-v` shows for a report, with the personality of the run: "PASSED on rabbitmq-4.3"."""
    name = getattr(report, _PERSONALITY, None)
    if name is None or not plain:
        return plain
    return f"{plain} on {name}" if isinstance(plain, str) else (f"{plain[0]} on {name}", *plain[1:])


def finding_of(report: object) -> Finding | None:
    """The finding in a report of pytest, or None."""
    from .findings import Finding

    data = getattr(report, _FINDING, None)
    return None if data is None else Finding.of_data(data)
