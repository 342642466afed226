"""Where a micro-batch ends: the planner with a consumer and a store that a test plays."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue.channel import Backlog, ConsumerState, Status
from fakeamqp.spark.queue.query import QueueQuery


def status(visible, held=0, ready=0, arrived=0):
    return Status(visible=visible, held=held, ready=ready, arrived=arrived)


@dataclass
class Store:
    """Has rows up to `visible`, and hands out all that it is asked for, but those that are `lost` first."""

    acks_on_arrival: bool = True
    visible: int = 0
    lost: list[int] = field(default_factory=list)
    committed: int = 0
    processed_up_to: list[int] = field(default_factory=list)
    handed: list[tuple[int, int, int | None]] = field(default_factory=list)

    def offset(self, row):
        return row

    def position(self, offset):
        return offset

    def processed(self, start):
        self.processed_up_to.append(start)

    def hand_out(self, start, end, max_bytes):
        self.handed.append((start, end, max_bytes))
        return self.lost.pop(0) if self.lost else end


class Consumer:
    """Answers each barrier with the next status. `more` has the answers of `wait_for_more`."""

    def __init__(self, store, *statuses, more=()):
        self.state = ConsumerState(window=8)
        self._store, self._statuses, self._more = store, list(statuses), list(more)
        self.calls = []

    def barrier(self, backlog=None):
        self.calls.append(backlog or ("unlimited barrier" if self.state.unlimited else B))
        found = self._statuses.pop(0)
        self._store.visible = found.visible
        self.state.backlog = backlog or self.state.backlog
        return found

    def wait_for_more(self, arrived, timeout):
        self.calls.append((arrived, timeout))
        return self._more.pop(0)

    def poke(self):
        self.calls.append("limit" if self.state.unlimited else "poke")

    @property
    def through(self):
        """Whether all answers were asked for."""
        return not self._statuses and not self._more


OPTIONS = {
    "amqp.url": "amqp://localhost",
    "queue": "q,r",
    "spoolDir": "/x",
    "idleTimeout": "3s",
    "maxBytesPerTrigger": "99",
}
B, UNLIMITED, WAIT = "barrier", "unlimited barrier", (7, 3.0)


def planner(store, *statuses, more=()):
    consumer = Consumer(store, *statuses, more=more)
    return QueueQuery(read_options(OPTIONS, streaming=True), (), store, consumer), consumer


@pytest.mark.parametrize(
    ("visible", "barriers"), [([12, 13, 14, 15], 3), ([12, 17, 18], 2), ([14, 15], 1), ([9, 10, 14], 3)]
)
def test_batch_without_a_limit_ends_where_half_of_the_window_is_visible(visible, barriers):
    """The broker sends no more before Spark commits: the planner does not wait for it."""
    batches, consumer = planner(Store(False), *(status(each, held=1, ready=1) for each in visible))
    assert batches.advance(10, None) == 14
    assert sum(isinstance(each, Backlog) or each == UNLIMITED for each in consumer.calls) == barriers
    assert consumer.state.unlimited is False


def test_batch_with_a_limit_waits_only_for_rows_that_may_come():
    """From row 10, with 5 rows at most."""
    with cases() as case:
        for name, visible, statuses, more, calls, end in [
            ("more than enough", 20, [], (), [], 15),
            ("just enough", 15, [], (), [], 15),
            ("some come", 14, [status(16)], (), [B], 15),
            ("the next", 10, [status(11)], (), [B], 11),
            ("nothing is there", 10, [status(10)], (), [B], 10),
            ("held rows are about to be visible", 10, [status(10, held=1), status(12)], (), [B, B], 12),
            (
                "ready messages come",
                10,
                [status(10, ready=1, arrived=7), status(11)],
                (True,),
                [B, WAIT, B],
                11,
            ),
            ("others get them", 10, [status(10, ready=1, arrived=7)], (False,), [B, WAIT], 10),
        ]:
            with case(name):
                store = Store(visible=visible)
                batches, consumer = planner(store, *statuses, more=more)
                assert batches.advance(10, 5) == end
                assert consumer.calls == ["poke", *calls]
                assert consumer.through
                assert store.processed_up_to == [10]
                assert store.handed[-1] == (10, end, 99)


def test_batch_ends_at_the_backlog_of_available_now(caplog):
    """The row behind it is known, or becomes known when nothing more comes."""
    with cases() as case:
        for name, row, visible, statuses, more, calls, end in [
            ("within a batch", 13, 20, [], (), [], 13),
            ("behind a batch", 20, 20, [], (), [], 15),
            ("some of it", 13, 11, [status(12, ready=9)], (), [B], 12),
            ("over", 10, 20, [], (), [], 10),
            ("over before", 9, 10, [status(20, held=1)], (), [B], 9),
            (
                "others get it",
                None,
                10,
                [status(10, ready=2, arrived=7)],
                (False,),
                [B, WAIT],
                10,
            ),
            ("it expired", None, 10, [status(10)], (), [B], 10),
        ]:
            with case(name):
                caplog.clear()
                store = Store(visible=visible)
                batches, consumer = planner(store, status(visible), *statuses, more=more)
                batches.limit_to_available()
                [backlog] = consumer.calls
                backlog.row = row
                assert batches.advance(10, 5) == max(end, 10)
                assert consumer.calls[2:] == calls
                assert consumer.through
                assert backlog.row == (10 if row is None else row)
                warned = "'q', 'r': 2 messages are ready, and the broker delivers none of them" in caplog.text
                assert warned == (name == "others get it")


def test_batch_of_a_store_that_keeps_messages_unacknowledged_is_half_of_the_window():
    store = Store(False, visible=30)
    batches, _ = planner(store)
    assert batches.advance(10, 20) == 14
    assert store.handed == [(10, 14, 99)]


def test_planner_waits_for_rows_lost_with_their_channel():
    store = Store(visible=15, lost=[10, 10])
    batches, consumer = planner(store, status(12))
    consumer.calls.clear()
    store.visible = 12
    assert batches.advance(10, 2) == 12
    assert len(store.handed) == 3
    store.lost, store.visible = [11], 15
    assert batches.advance(10, 5) == 11


def test_batch_without_start_begins_at_end_of_last_batch():
    store = Store(visible=30, committed=4)
    batches, _ = planner(store)
    assert batches.advance(None, 5) == 9
    assert batches.advance(None, 5) == 14
    batches.plan(20, 20)
    assert batches.advance(None, 5) == 25
    batches.plan(20, 20)
    assert batches.advance(None, 5) == 30
    assert store.processed_up_to == [4, 9, 20, 25]


def test_batch_without_limit_lifts_store_limit_and_ends_at_backlog_end(caplog):
    with cases() as case:
        for name, row, statuses, more, waits, end in [
            ("everything", 13, [status(13)], (), [], 13),
            ("what came later is left out", 13, [status(20)], (), [], 13),
            ("held rows follow", 13, [status(11, held=2), status(13)], (), [UNLIMITED], 13),
            (
                "ready ones follow",
                13,
                [status(11, ready=2, arrived=7), status(13)],
                (True,),
                [WAIT, UNLIMITED],
                13,
            ),
            ("others get them", None, [status(11, ready=2, arrived=7)], (False,), [WAIT], 11),
            ("they are gone", None, [status(11)], (), [], 11),
        ]:
            for available_now in (False, True):
                with case(name, available_now):
                    caplog.clear()
                    store = Store(visible=0)
                    before = [status(0)] if available_now else []
                    batches, consumer = planner(store, *before, *statuses, more=more)
                    if available_now:
                        batches.limit_to_available()
                        backlog = consumer.calls.pop()
                        backlog.row = row
                        assert batches.advance(10, None) == end
                        assert consumer.calls == ["poke", UNLIMITED, *waits, "poke"]
                        assert consumer.state.backlog is backlog
                    else:
                        barrier = consumer.barrier

                        def first(given=None, ask=barrier, row=row):
                            if given is not None:
                                given.row = row
                            return ask(given)

                        consumer.barrier = first
                        assert batches.advance(10, None) == end
                        poke, backlog, *others, last = consumer.calls
                        assert (poke, last) == ("poke", "poke")
                        assert others == waits
                        assert consumer.state.backlog is None
                    assert consumer.state.unlimited is False
                    assert consumer.through
                    assert backlog.row == (end if row is None else row)
                    assert store.handed == [(10, end, None)]
                    assert ("2 messages are ready" in caplog.text) == (name == "others get them")


def test_limit_of_the_store_applies_again_after_an_error():
    batches, consumer = planner(Store())
    with pytest.raises(IndexError):
        batches.advance(0, None)
    assert consumer.state.unlimited is False
    assert consumer.calls[-1] == "poke"


def test_dropped_messages_are_logged_once_per_batch_with_queue_count_and_option(caplog):
    batches, consumer = planner(Store(visible=99))
    consumer.state.dropped.update(q=3)
    batches.advance(0, 5)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "that the spool has already: 3 of queue 'q'. By option dedupe=content" in caplog.text
    caplog.clear()
    batches.advance(5, 5)
    assert caplog.text == ""
    consumer.state.dropped.update(q=1, r=2)
    batches.advance(10, 5)
    assert "has already: 1 of queue 'q', 2 of queue 'r'. By" in caplog.text
