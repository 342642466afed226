"""Filters of Spark on a batch read of streams: fewer offsets are read, and never too few."""

from __future__ import annotations

import operator
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, strategies as st

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.fuzz.profile import examples
from compat_tests.unit.spark.stream.streams import batch_reader, publisher, rows
from fakeamqp import Broker
from fakeamqp.spark.stream.filters import FilterBounds
from fakeamqp.spark.stream.offsets import StreamMark
from fakeamqp.spark.stream.ranges import Range

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


def bounds_of(filters):
    bounds = FilterBounds()
    for each in filters:
        bounds.add(each)
    return bounds


def left(filters):
    """What is read with these filters."""
    bounds = bounds_of(filters)
    return [(each.stream, offset) for each in bounds.narrowed(RANGES) for offset in range(*each[1:3])]


numbers = st.integers(-5, 25)
comparisons = st.one_of(
    st.tuples(st.sampled_from([kind for kind in PREDICATES if kind != "In"]), numbers),
    st.tuples(st.just("In"), st.lists(numbers).map(tuple)),
)


@given(st.lists(comparisons, max_size=4))
def test_narrowed_ranges_keep_all_offsets_matching_filters(wanted):
    found = left([a_filter("offset", *each) for each in wanted])
    for stream, start, stop, _mark in RANGES:
        for offset in range(start, stop):
            if all(PREDICATES[kind](offset, value) for kind, value in wanted):
                assert (stream, offset) in found


@pytest.mark.parametrize(
    ("filters", "start", "stop"),
    [
        ([("EqualTo", 7)], 7, 8),
        ([("EqualNullSafe", 7)], 7, 8),
        ([("In", (9, 7))], 7, 10),
        ([("In", ())], 0, 20),
        ([("In", (7, None))], 0, 20),
        ([("EqualTo", True)], 0, 20),
        ([("GreaterThan", 7)], 8, 20),
        ([("GreaterThan", -3)], 0, 20),
        ([("GreaterThanOrEqual", 7)], 7, 20),
        ([("LessThan", 7)], 0, 7),
        ([("LessThanOrEqual", 7)], 0, 8),
        ([("LessThan", 99)], 0, 20),
        ([("GreaterThan", 7), ("LessThanOrEqual", 9)], 8, 10),
        ([("GreaterThan", 9), ("GreaterThan", 7), ("LessThan", 15), ("LessThan", 17)], 10, 15),
        ([("LessThan", 17), ("LessThan", 15)], 0, 15),
    ],
)
def test_offset_filters_narrow_range(filters, start, stop):
    bounds = bounds_of([a_filter("offset", *each) for each in filters])
    mark = StreamMark(19, "x")
    assert list(bounds.narrowed([Range("a", 0, 20, mark)])) == [Range("a", start, stop, mark)]


def test_queue_filters_leave_out_other_streams():
    everything = left([])
    assert left([a_filter("queue", "EqualTo", "b")]) == [each for each in everything if each[0] == "b"]
    assert left([a_filter("queue", "EqualNullSafe", "b")]) == left([a_filter("queue", "In", ("b", "c"))])
    assert left([a_filter("queue", "In", ("b", "c")), a_filter("queue", "EqualTo", "a")]) == []
    assert left([a_filter("queue", "In", ("b", "a")), a_filter("queue", "In", ("b", "c"))]) == left(
        [a_filter("queue", "EqualTo", "b")]
    )


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
def test_unsupported_filters_do_not_narrow_ranges(other):
    negated = datasource.Not(a_filter("offset", "EqualTo", 3))
    missing = datasource.IsNotNull(attribute=("offset",))
    assert left([a_filter(*other), negated, missing]) == left([])


def test_reader_takes_filters_only_if_the_option_says_so():
    """Spark refuses a reader that does, unless its setting is on."""
    for options, takes in [({}, False), ({"filterPushdown": "true"}, True)]:
        reader = batch_reader("amqp://host", **options)
        assert (type(reader).pushFilters is not datasource.DataSourceReader.pushFilters) == takes


# --- times ------------------------------------------------------------------------------------------------

NOON = datetime(2030, 1, 31, 12, tzinfo=timezone.utc)


def seconds(count):
    return NOON + timedelta(seconds=count)


def stored(tolerance, *filters):
    """The seconds after noon between which the broker stored what the filters want."""
    bounds = bounds_of([a_filter("timestamp", *each) for each in filters])
    return [time and (time - NOON).total_seconds() for time in bounds.stored(tolerance)]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([("GreaterThan", seconds(20))], [10, None]),
        ([("GreaterThanOrEqual", seconds(20.9))], [10, None]),
        ([("LessThan", seconds(20))], [None, 31]),
        ([("LessThanOrEqual", seconds(20.9))], [None, 31]),
        ([("EqualTo", seconds(20))], [10, 31]),
        ([("In", (seconds(40), seconds(20)))], [10, 51]),
        ([("GreaterThan", seconds(30)), ("GreaterThan", seconds(20))], [20, None]),
        ([("LessThan", seconds(20)), ("LessThan", seconds(30)), ("GreaterThan", seconds(0))], [-10, 31]),
        ([("In", ())], [None, None]),
        ([("EqualNullSafe", None)], [None, None]),
        ([("GreaterThan", datetime(2030, 1, 31))], [None, None]),
        ([("GreaterThan", 1)], [None, None]),
        ([("GreaterThan", datetime(1, 1, 1, tzinfo=timezone.utc))], [None, None]),
        ([("LessThan", datetime.max.replace(tzinfo=timezone.utc))], [None, None]),
    ],
)
def test_timestamp_filters_become_time_bounds_with_tolerance(filters, expected):
    assert stored(10, *filters) == expected


def test_a_time_before_1970_is_the_first_time_of_all():
    found = stored(10, ("LessThan", datetime(1, 1, 1, tzinfo=timezone.utc)))
    assert found == [None, (datetime(1970, 1, 1, tzinfo=timezone.utc) - NOON).total_seconds()]


@pytest.fixture
def minutes(broker):
    """`log` with a message for each of ten minutes; the time of a minute."""
    broker.clock.advance(-broker.clock.time() % 60)
    begin = int(broker.clock.time())
    with publisher(broker.url) as log:
        log.declare("log")
        for minute in range(10):
            log.publish("log", minute, timestamp=begin + 60 * minute)
            broker.clock.advance(60)
    return lambda minute: datetime.fromtimestamp(begin + 60 * minute, timezone.utc)


def offsets_read(broker, *filters, **options):
    reader = batch_reader(broker.url, filterPushdown="true", **options)
    pushed = [a_filter("timestamp", *each) for each in filters]
    assert reader.pushFilters(pushed) == pushed  # Spark applies all of them again.
    return [row["offset"] for row in rows(reader)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [*range(10)]),
        ({"timestampTolerance": "0s"}, [4, 5]),
        ({"timestampTolerance": "59s"}, [4, 5, 6]),
        ({"timestampTolerance": "2 minutes"}, [*range(2, 8)]),
        ({"timestampTolerance": "1h"}, [*range(10)]),
        ({"timestampTolerance": "0", "startingOffsets": {"log": 5}}, [5]),
        ({"timestampTolerance": "0", "startingOffsets": {"log": 8}}, []),
        ({"timestampTolerance": "0", "endingOffsets": {"log": 5}}, [4]),
        ({"timestampTolerance": "0", "endingOffsets": {"log": 2}}, []),
    ],
)
def test_fewer_offsets_are_read(broker, minutes, options, expected):
    filters = [("GreaterThanOrEqual", minutes(4)), ("LessThan", minutes(6) - timedelta(seconds=1))]
    assert offsets_read(broker, *filters, **options) == expected


def test_timestamp_filters_after_last_message_do_not_narrow_range(broker, minutes):
    """The broker sends nothing then, as one does that is slow."""
    filters = [("GreaterThan", minutes(20)), ("LessThan", minutes(30))]
    assert offsets_read(broker, *filters, timestampTolerance="0s") == [*range(10)]


@examples(40)
@given(
    st.lists(st.tuples(st.sampled_from([0, 0.4, 1, 2.5]), st.integers(-5, 5)), min_size=1, max_size=8),
    st.lists(
        st.tuples(st.sampled_from([kind for kind in PREDICATES if kind != "In"]), st.integers(-8, 25)),
        min_size=1,
        max_size=2,
    ),
)
def test_no_message_that_the_filters_want_is_left_out(messages, wanted):
    """Whatever the publishers' clocks say, within the tolerance."""
    with Broker(clock="virtual") as broker, publisher(broker.url) as log:
        log.declare("log")
        broker.clock.advance(-broker.clock.time() % 1)
        begin, stamps, tolerance = round(broker.clock.time()), [], 0.0
        for number, (pause, difference) in enumerate(messages):
            broker.clock.advance(pause)
            stamps.append(int(broker.clock.time() + difference))
            tolerance = max(tolerance, abs(stamps[-1] - broker.clock.time()))
            log.publish("log", number, timestamp=stamps[-1])
        filters = [(kind, datetime.fromtimestamp(begin + at, timezone.utc)) for kind, at in wanted]
        found = offsets_read(broker, *filters, timestampTolerance=f"{tolerance + 0.001:.3f}s")
    for offset, stamp in enumerate(stamps):
        if all(PREDICATES[kind](stamp - begin, at) for kind, at in wanted):
            assert offset in found
