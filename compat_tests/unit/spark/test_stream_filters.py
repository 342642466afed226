"""Filters of Spark on a batch read of streams: fewer offsets are read, and never too few."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import compat_tests.needs_pyspark  # noqa: F401
from fakeamqp.spark.stream_queue.filters import Bounds, PushFilters
from fakeamqp.spark.stream_queue.ranges import Range

datasource = pytest.importorskip("pyspark.sql.datasource")
if not hasattr(datasource, "EqualTo"):
    pytest.skip("filters came with PySpark 4.1", allow_module_level=True)

PREDICATES = {
    "EqualTo": operator.eq,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "In": lambda value, values: value in values,
}
RANGES = [Range("a", 0, 20), Range("b", 5, 15)]


def a_filter(column, kind, value):
    return getattr(datasource, kind)(attribute=(column,), value=value)


def left(filters):
    """What is read with these filters, after a check that Spark applies all of them again."""
    bounds = Bounds()
    assert PushFilters(bounds)(filters) == filters
    return [(each.stream, offset) for each in bounds.narrowed(RANGES) for offset in range(*each[1:3])]


numbers = st.integers(-5, 25)
comparisons = st.one_of(
    st.tuples(st.sampled_from([kind for kind in PREDICATES if kind != "In"]), numbers),
    st.tuples(st.just("In"), st.lists(numbers).map(tuple)),
)


@given(st.lists(comparisons, max_size=4))
def test_nothing_that_the_filters_want_is_left_out(wanted):
    found = left([a_filter("offset", *each) for each in wanted])
    for stream, start, stop, _mark in RANGES:
        for offset in range(start, stop):
            if all(PREDICATES[kind](offset, value) for kind, value in wanted):
                assert (stream, offset) in found


def test_a_range_is_narrowed():
    filters = [a_filter("offset", "GreaterThan", 7), a_filter("offset", "LessThanOrEqual", 9)]
    assert left(filters) == [("a", 8), ("a", 9), ("b", 8), ("b", 9)]
    assert left([a_filter("offset", "EqualTo", 17)]) == [("a", 17)]
    assert left([a_filter("offset", "GreaterThan", 99)]) == []


def test_streams_are_left_out():
    everything = left([])
    assert left([a_filter("queue", "EqualTo", "b")]) == [each for each in everything if each[0] == "b"]
    assert left([a_filter("queue", "In", ("b", "c")), a_filter("queue", "EqualTo", "a")]) == []


@pytest.mark.parametrize(
    "other",
    [
        ("timestamp", "GreaterThan", 10),
        ("queue", "GreaterThan", "a"),
        ("offset", "EqualTo", 1.5),
        ("offset", "EqualTo", None),
        ("value", "EqualTo", b"x"),
    ],
)
def test_other_filters_leave_all(other):
    negated = datasource.Not(a_filter("offset", "EqualTo", 3))
    missing = datasource.IsNotNull(attribute=("offset",))
    assert left([a_filter(*other), negated, missing]) == left([])
