"""A month of the broker's time, in a minute; and the books of it know what is wrong."""

from __future__ import annotations

import os

import pytest

from compat_tests.reliability.soak import Books, Report, _check_memory, soak

MINUTES = float(os.environ.get("FAKEAMQP_SOAK_MINUTES", "1"))
SEED = os.environ.get("FAKEAMQP_SOAK_SEED", "5")


@pytest.mark.long
@pytest.mark.timeout(240 + 120 * MINUTES)
def test_a_month_under_chaos_loses_nothing_and_leaves_nothing() -> None:
    report = soak(30, MINUTES, SEED)
    assert report.problems == [], report
    assert len(report.faults) == 5 and all(report.faults.values()), report.faults
    assert all(counts["confirmed"] > 100 and counts["seen"] > 100 for counts in report.messages.values())


def test_the_books_miss_what_is_confirmed_and_nowhere() -> None:
    books = Books("x")
    books.published = 4
    for number in (0, 1, 2):
        books.mark("confirmed", number)
    books.mark("accepted", 0)
    assert books.unaccounted({1}) == [2]


def test_the_books_see_what_comes_twice_without_a_mark() -> None:
    books = Books("x")
    for queue in ("q", "dead", "q"):
        books.came(9, queue, redelivered=queue == "q" and books.has("seen", 9))
    assert books.wrong == []
    books.came(9, "q", redelivered=False)
    assert books.wrong == ["x:9 came from q once more, not marked as redelivered"]


@pytest.mark.parametrize(("objects", "grows"), [([10, 20, 12, 25, 29], False), ([10, 20, 30, 40, 50], True)])
def test_memory_is_flat_or_grows(objects: list[int], grows: bool) -> None:
    report = Report("1", 5, objects=[each * 100 for each in [20, *objects]])
    _check_memory(report)
    assert bool(report.problems) is grows
