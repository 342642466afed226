"""When all messages have arrived that were in the queues at one moment."""

from __future__ import annotations

from types import SimpleNamespace

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp.spark.spool.backlog import Backlog


def message(offset, queue="a"):
    return SimpleNamespace(queue=queue, offset=offset)


def test_the_backlog_ends_behind_the_last_message_of_each_queue():
    backlog = Backlog()
    backlog.expect({"a": 2, "b": 1, "empty": 0}, 5)
    assert (backlog.pending, backlog.rows_left(5)) == (True, None)
    for queue, end in (("a", 6), ("empty", 7), ("b", 8), ("b", 9)):
        backlog.message_arrived(queue, end)
        assert backlog.pending
    backlog.message_arrived("a", 10)
    backlog.message_arrived("a", 11)
    assert (backlog.pending, backlog.row) == (False, 10)
    assert [backlog.rows_left(row) for row in (8, 10, 11)] == [2, 0, 0]


def test_the_backlog_of_empty_queues_ends_at_once():
    backlog = Backlog()
    backlog.expect({"a": 0}, 4)
    assert (backlog.pending, backlog.row) == (False, 4)


def test_messages_from_before_are_not_of_the_backlog():
    backlog = Backlog()
    backlog.expect({"a": 1}, 5)
    backlog.messages_arrived([message(4)])
    assert backlog.pending
    backlog.messages_arrived([message(5), message(6)])
    assert backlog.row == 6


def test_messages_that_went_back_are_expected_again_if_they_are_of_the_backlog():
    backlog = Backlog()
    backlog.expect({"a": 2}, 0)
    backlog.messages_arrived([message(0), message(1)])
    backlog.returned([message(2)], 2)
    assert backlog.row == 2, "it came later"
    backlog.returned([message(1), message(2)], 1)
    assert backlog.pending
    backlog.messages_arrived([message(0)])
    assert backlog.pending, "only rows from the next one on come again"
    backlog.messages_arrived([message(1)])
    assert backlog.row == 2


def test_messages_that_went_back_before_the_end_is_known_are_added():
    backlog = Backlog()
    backlog.expect({"a": 1}, 5)
    backlog.returned([message(4), message(5)], 4)
    backlog.messages_arrived([message(4)])
    assert backlog.pending
    backlog.messages_arrived([message(5)])
    assert backlog.row == 6


def test_new_channel_makes_backlog_end_unknown_unless_end_is_stored():
    backlog = Backlog()
    backlog.expect({}, 8)
    backlog.restart(8)
    assert backlog.row == 8
    backlog.restart(7)
    assert backlog.pending
    backlog.restart(6)
    assert backlog.pending


def test_explicit_backlog_end_stays_when_missing_message_arrives():
    backlog = Backlog()
    backlog.expect({"a": 1}, 0)
    backlog.end_at(3)
    backlog.message_arrived("a", 4)
    assert backlog.row == 3
