"""A month of the broker's time, in a minute; and the books of it know what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.reliability.soak import Books, Report, _check_memory

ROOT = Path(__file__).parents[2]

MINUTES = float(os.environ.get("FAKEAMQP_SOAK_MINUTES", "1"))
SEED = os.environ.get("FAKEAMQP_SOAK_SEED", "5")


@pytest.mark.long
@pytest.mark.timeout(240 + 120 * MINUTES)
def test_simulated_month_with_faults_reports_no_problem() -> None:
    """In a process of its own: what earlier tests have left there would count as left by the soak."""
    command = [sys.executable, "-m", "compat_tests.reliability.soak", "--no-record"]
    command += ["--days", "30", "--minutes", str(MINUTES), "--seed", SEED]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout, done.stderr
    report = Report(**json.loads(done.stdout))
    assert report.problems == [], report
    assert done.returncode == 0, done.stderr
    assert len(report.faults) == 5 and all(report.faults.values()), report.faults
    assert all(counts["confirmed"] > 100 and counts["seen"] > 100 for counts in report.messages.values())


def test_books_report_missing_confirmed_message() -> None:
    books = Books("x")
    books.published = 4
    for number in (0, 1, 2):
        books.mark("confirmed", number)
    books.mark("accepted", 0)
    assert books.unaccounted({1}) == [2]


def test_books_report_second_delivery_not_marked_redelivered() -> None:
    books = Books("x")
    for queue in ("q", "dead", "q"):
        books.came(9, queue, redelivered=queue == "q" and books.has("seen", 9))
    assert books.wrong == []
    books.came(9, "q", redelivered=False)
    assert books.wrong == ["x:9 came from q once more, not marked as redelivered"]


@pytest.mark.parametrize(("objects", "grows"), [([10, 20, 12, 25, 29], False), ([10, 20, 30, 40, 50], True)])
def test_soak_reports_problem_only_when_object_count_grows(objects: list[int], grows: bool) -> None:
    report = Report("1", 5, objects=[each * 100 for each in [20, *objects]])
    _check_memory(report)
    assert bool(report.problems) is grows
