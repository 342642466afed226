"""The figures that the progress of a query has, and the warning of one that falls behind."""

from __future__ import annotations

import functools
import json
from collections import Counter
from types import SimpleNamespace

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.micro_batches import publish
from fakeamqp.spark.lag import FallingBehind, LagClock
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue import query as of_queues
from fakeamqp.spark.queue.channel import ConsumerState
from fakeamqp.spark.stream import query as of_streams


class Hands:
    """A clock that is moved by hand."""

    def __init__(self):
        self.time = 1000.0

    def __call__(self):
        return self.time


@pytest.fixture
def now():
    return Hands()


def test_lag_seconds_are_age_of_first_unread_message(now):
    clock = LagClock(now)
    assert clock.age(0, 0) == 0
    assert clock.age(0, 10) == 0
    now.time += 30
    assert clock.age(0, 10) == 30
    assert clock.age(5, 20) == 30
    now.time += 5
    assert clock.age(10, 20) == 5  # The messages from 10 on were first seen 5 s ago.
    assert clock.age(20, 20) == 0
    assert clock.age(5, 5) == 0  # The queue was purged, and counting starts again.
    now.time += 7
    assert clock.age(5, 6) == 0


def test_lag_clock_keeps_at_most_100_samples(now):
    clock = LagClock(now)
    for number in range(1, 10_000):
        now.time += 0.01
        clock.age(0, number)
    assert len(clock._samples) <= 100
    assert clock.age(0, 10_000) == pytest.approx(100, abs=2)


@pytest.mark.parametrize(("seconds", "warned"), [(4.9, False), (5.0, True)])
def test_lag_samples_less_than_5_seconds_apart_are_ignored(now, caplog, seconds, warned):
    behind = FallingBehind("queue orders", "", 3, now)
    for number in range(4):
        behind.look(number + 1, 1.0)
        now.time += seconds
    assert ("falls behind" in caplog.text) == warned


def test_a_clock_joins_looks_within_a_second(now):
    clock = LagClock(now)
    for seconds, position, end, age in [
        (0.0, 0, 10, 0.0),
        (0.5, 0, 12, 0.5),
        (0.5, 0, 13, 1.0),
        (0.0, 11, 13, 1.0),
        (0.0, 12, 13, 0.0),
        (0.5, 12, 13, 0.5),
        (0.0, 13, 13, 0.0),
    ]:
        now.time += seconds
        assert clock.age(position, end) == age


@pytest.mark.parametrize(
    ("lags", "warned"),
    [
        ([100, 200, 300, 400], True),
        ([100, 200, 300], False),
        ([100, 200, 150, 400, 500], False),
        ([100, 200, 200, 300, 400], False),
        ([1, 2, 3, 4], False),
    ],
    ids=["grows", "too few", "shrank", "stood still", "one batch"],
)
def test_growing_lag_logs_warning(now, caplog, lags, warned):
    behind = FallingBehind("queue orders", "Do something", 50, now)
    for each in lags:
        now.time += 10
        behind.look(each, 33.0)
        behind.look(each + 1000, 33.0)  # Too soon after the last one to mean anything.
    assert (
        "falls behind queue orders: 400 messages wait for it, 300 more than 30 s ago" in caplog.text
    ) == warned
    assert ("waited for 33 s. Do something" in caplog.text) == warned


def test_the_warning_is_not_repeated_at_once(now, caplog):
    behind = FallingBehind("queue orders", "", 0, now)
    for number in range(10):  # 90 s
        behind.look(number + 1, 1.0)
        now.time += 10
    assert caplog.text.count("falls behind") == 2


@pytest.fixture
def clocks(now, monkeypatch):
    """Figures of which a test moves the clock; the looks of their warning."""
    looks = []
    clock = functools.partial(LagClock, now)
    for module in (of_streams, of_queues):
        monkeypatch.setattr(module, "LagClock", clock)
    monkeypatch.setattr(FallingBehind, "_compare", lambda _, *given: looks.append(given))
    monkeypatch.setattr(of_queues, "time", SimpleNamespace(time=lambda: now.time + 1e9))
    return looks


def assert_warns(figures, what, advice):
    """Of more than one batch, with these words."""
    behind = figures._behind
    assert (behind._what, behind._most) == (what, 10_000)
    assert advice in behind._advice


def test_the_lag_of_streams_is_that_of_all_of_them(now, clocks):
    options = read_options({"amqp.url": "amqp://h", "stream": "a,b"})
    figures = of_streams.StreamQuery(options)
    figures._metrics({"a": 5}, {"a": 20})
    now.time += 7
    found = figures._metrics({"a": 5, "b": 12, "c": 3}, {"a": 20, "b": 10, "c": 4, "new": 9})
    assert found == {
        "lag": 16,
        "lagSeconds": 7.0,
        "streams": {
            "a": {"end": 20, "lag": 15, "lagSeconds": 7.0},
            "b": {"end": 10, "lag": 0, "lagSeconds": 0.0},
            "c": {"end": 4, "lag": 1, "lagSeconds": 0.0},
            "new": {"end": 9, "lag": 0, "lagSeconds": 0.0},
        },
    }
    assert figures._metrics({}, {}) == {"lag": 0, "lagSeconds": 0.0, "streams": {}}
    assert clocks == [(15, 0.0), (16, 7.0), (0, 0.0)]
    assert_warns(figures, "stream a, b", "a super stream divides a stream")


def test_queue_lag_counts_ready_messages_and_arrived_unread_messages(now, clocks):
    state = ConsumerState(
        arrived=30,
        arrived_before=26,
        redelivered=2,
        dropped=Counter(a=1),
        unacknowledged=11,
        held=3,
        depths={"a": {"ready": 10, "consumers": 1}, "b": {"ready": 0, "consumers": 2}},
    )
    store = SimpleNamespace(
        waiting=(25, 999), next=27, committed=0, timestamp_of_next=lambda: None, visible=27, offset=str
    )
    options = read_options({"amqp.url": "amqp://h", "queue": "a,b"})
    refreshed = []
    consumer = SimpleNamespace(state=state, refresh=lambda: refreshed.append(now.time))
    figures = of_queues.QueueQuery(options, (), store, consumer)
    figures.progress()["metrics"]
    now.time += 7
    assert figures.progress()["metrics"] == {
        "lag": 34,
        "lagSeconds": 7.0,
        "ready": 10,
        "consumers": 3,
        "unacknowledged": 11,
        "redelivered": 2,
        "dropped": 1,
        "spoolRows": 25,
        "spoolBytes": 999,
        "queues": state.depths,
    }
    assert refreshed == [1000.0, 1007.0]
    with cases() as case:
        for published, seconds in ((now.time + 1e9 - 60.26, 60.3), (now.time + 1e9 - 3, 7.0)):
            with case(seconds):
                store.timestamp_of_next = lambda published=published: published
                assert figures.progress()["metrics"]["lagSeconds"] == seconds
    store.waiting = (10, 999)  # Spark has got 15 rows since.
    assert figures.progress()["metrics"]["lagSeconds"] == 7.0
    state.arrived, state.held, store.waiting = 99, 0, (0, 0)
    found = figures.progress()["metrics"]
    assert [found[name] for name in ("lag", "lagSeconds", "ready")] == [0, 0.0, 10]
    assert clocks == [(34, 0.0), (34, 7.0), (34, 60.3), (34, 7.0), (19, 7.0), (0, 0.0)]
    assert_warns(figures, "queue a, b", "shards divide a queue")


def metrics(job):
    return json.loads(json.dumps(job.reader.reportLatestOffset()))["metrics"]


def settled(broker, job):
    """The figures when all that was asked for has happened."""
    job.reader._query().consumer.barrier()
    job.reader._query().consumer.barrier()
    return metrics(job)


def test_query_on_queues_reports_lag_and_spool_size(broker, query):
    publish(broker, *range(25))
    publish(broker, 1, 2, queue="refunds")
    job = query(queue="orders,refunds", maxMessagesPerTrigger=10).start()
    job.batch()
    found = settled(broker, job)
    size = found.pop("spoolBytes")
    assert size > 0
    assert found == {
        "lag": 17,
        "lagSeconds": found["lagSeconds"],
        "ready": 0,
        "consumers": 2,
        "unacknowledged": 0,
        "redelivered": 0,
        "dropped": 0,
        "spoolRows": 17,
        "queues": {"orders": {"ready": 0, "consumers": 1}, "refunds": {"ready": 0, "consumers": 1}},
    }
    job.all()
    found = metrics(job)
    assert (found["lag"], found["lagSeconds"], found["spoolRows"], found["spoolBytes"]) == (0, 0, 0, 0)
