"""The messages that a batch read of a queue borrows, on a connection that the test plays."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.wire.played import Channel, Connection, refusal
from fakeamqp.spark.browse import snapshot as snapshots, turns
from fakeamqp.spark.browse.snapshot import _BorrowedMessages, snapshot
from fakeamqp.spark.errors import ConnectionLost, QueueNotFound, QueueRefused, SparkError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.wire import exact
from fakeamqp.spark.wire.lease import LeaseRefused, LeaseTaken


class Played(Channel):
    """A channel that answers basic.get with the first of four messages."""

    def get(self, queue, receive):
        left = self.connection.left
        if isinstance(left, Exception):
            raise left
        if left is not None:
            receive(1, False, b"\x00\x01q", b"\x00\x00", b"0")
        return left


class Playing(Connection):
    """A connection on which the queue has four messages."""

    left = 3

    def channel(self):
        self.check()
        self.channels.append(Played(self, len(self.channels) + 1))
        return self.channels[-1]


@pytest.fixture
def connection(monkeypatch):
    found = Playing()
    monkeypatch.setattr(snapshots, "time", found)
    monkeypatch.setattr(exact, "time", found)
    return found


def borrowed(connection):
    """A read that has the first message, and wants three more."""
    found = _BorrowedMessages(connection, "q")
    found.want_all()
    return found


def test_messages_behind_the_first_one_are_consumed(connection):
    read = borrowed(connection)
    assert (read.arrived, read.missing, connection.calls) == (1, 3, [])
    connection.turns = [lambda: connection.deliver(b"1", b"2")]
    read.turn(2.0)
    assert connection.calls == [(2, "qos", 3), (2, "consume", "q")]
    assert [(row.body, row.offset, row.tag) for row in read.take()] == [
        (b"0", 0, 1),
        (b"1", 1, 1),
        (b"2", 2, 2),
    ]


def test_snapshot_of_empty_queue_has_no_missing_messages(connection):
    connection.left = None
    assert borrowed(connection).missing == 0


def test_quorum_queue_with_single_active_consumer_is_counted_because_it_refuses_get(connection):
    connection.left = refusal(405, "RESOURCE_LOCKED - ... has a single active consumer")
    connection.ready = [9, 4]
    read = borrowed(connection)
    assert (read.arrived, read.missing) == (0, 4)
    read.turn(0.0)
    assert connection.calls[2:4] == [(3, "qos", 4), (3, "consume", "q")]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (refusal(540, "NOT_IMPLEMENTED - basic.get of a stream"), QueueRefused, "540 NOT_IMPLEMENTED"),
        (refusal(404, "NOT_FOUND"), QueueNotFound, "404 NOT_FOUND"),
        (ConnectionLost("single active consumer"), ConnectionLost, "single active consumer"),
    ],
)
def test_refused_get_of_another_cause_is_an_error(connection, error, kind, text):
    connection.left = error
    with pytest.raises(kind, match=f"cannot read queue 'q': .*{text}"):
        borrowed(connection)


# --- the way back -----------------------------------------------------------------------------------------


def consumed(connection, monkeypatch):
    """A read of four messages on three channels."""
    monkeypatch.setattr(exact, "_LARGEST_WINDOW", 2)
    read = borrowed(connection)
    connection.turns = [lambda: connection.deliver(b"1", b"2"), lambda: connection.deliver(b"3")]
    read.turn(2.0)
    read.turn(2.0)
    connection.calls.clear()
    connection.pauses.clear()
    return read


def test_messages_return_in_order_by_nack_since_4_3_and_by_close_before(connection, monkeypatch, caplog):
    cancelled = [(3, "cancel", "q 3"), (3, "discard")]
    closed = [(number, what) for number in (1, 2, 3) for what in ("discard", "close")]
    nacked = [
        (number, *call)
        for number in (1, 2, 3)
        for call in (("discard",), ("nack", 0, "multiple", "requeue"), ("close",))
    ]
    counts = [(3, "count", "q")]
    with cases() as case:
        for version, ended, ready, expected, pauses in [
            ((4, 3), (), [4], [*nacked[:-1], *counts, nacked[-1]], 0),
            ((4, 4), (), [3, 3, 5], [*nacked[:-1], *counts * 3, nacked[-1]], 2),
            ((4, 3), (1, 2, 3), [4], closed, 0),
            ((4, 2), (), [4], closed, 0),
        ]:
            with case(version, ended):
                connection.channels.clear()
                read = consumed(connection, monkeypatch)
                connection.broker_version, connection.ready = version, ready
                for number in ended:
                    connection.channels[number - 1].is_open = False
                read.give_back()
                assert connection.calls == cancelled + expected
                assert connection.pauses == [0.01] * pauses
                assert caplog.text == ""


def test_missing_returned_messages_are_logged_after_a_second(connection, monkeypatch, caplog):
    read = consumed(connection, monkeypatch)
    connection.ready = [3]
    read.give_back()
    assert connection.now == pytest.approx(1001, abs=0.02)
    assert "queue 'q' has only 3 ready messages after this read returned 4: other consumers" in caplog.text
    assert connection.calls[-1] == (3, "close")


def test_messages_of_other_channels_return_if_one_channel_has_ended(connection, monkeypatch):
    read = consumed(connection, monkeypatch)
    connection.channels[2].lost = "the broker cancelled the consumer"
    read.give_back()
    assert [call for call in connection.calls if call[1] in ("nack", "close")] == [
        (1, "nack", 0, "multiple", "requeue"),
        (1, "close"),
        (2, "nack", 0, "multiple", "requeue"),
        (2, "close"),
        (3, "nack", 0, "multiple", "requeue"),
        (3, "close"),
    ]


def test_give_back_on_lost_connection_raises_no_error(connection, monkeypatch):
    read = consumed(connection, monkeypatch)
    connection.lost = "maintenance"
    read.give_back()
    assert connection.pauses == []


# --- a snapshot -------------------------------------------------------------------------------------------


@pytest.fixture
def events(connection, monkeypatch):
    """What a snapshot does with its turn and its connection."""
    events = []

    class Turn:
        def __init__(self, *given):
            events.append(given[1])

        def begin(self, patience):
            events.append(patience)

        def waits_for_spark(self):
            events.append("waits")

        def end(self):
            events.append("ends")

    @contextmanager
    def lend(_options):
        yield connection
        events.append("kept")

    monkeypatch.setattr(snapshots, "Turn", Turn)
    monkeypatch.setattr(snapshots, "lend", lend)
    connection.ready = [4]
    return events


def taken(**more):
    given = {"amqp.url": "amqp://h", "queue": "q", "idleTimeout": "2s", "amqp.connectionTimeout": "5s"}
    return snapshot(read_options({**given, "reconnectTimeout": "9s", **more}), "q")


def test_snapshot_gives_batches_and_returns_messages_before_the_last_one(connection, events, monkeypatch):
    """Spark has all the time it wants for the others."""
    with cases() as case:
        for rows, octets, expected in [
            (2, 999, [[b"0", b"1"], [b"2", b"3"]]),
            (3, 999, [[b"0", b"1", b"2"], [b"3"]]),
            (4, 999, [[b"0", b"1", b"2", b"3"]]),
            (99, 6, [[b"0", b"1"], [b"2", b"3"]]),
            (99, 7, [[b"0", b"1", b"2"], [b"3"]]),
        ]:
            with case(rows, octets):
                events.clear()
                connection.channels.clear()
                monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", rows)
                monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_BYTES", octets)
                connection.turns = [lambda body=body: connection.deliver(body) for body in (b"1", b"2", b"3")]
                found = []
                for messages in taken():
                    found.append([each.body for each in messages])
                    connection.now += 100.0
                assert found == expected
                assert events == ["q", 9.0, *["waits"] * (len(expected) - 1), "ends", "kept"]
                assert not connection.turns


def test_snapshot_ends_when_others_took_the_missing_messages(connection, events):
    connection.ready = [2, 2, 2, 2, 9, 0, 4]
    connection.turns = [None, None, lambda: connection.deliver(b"1")]
    [messages] = taken()
    assert [each.body for each in messages] == [b"0", b"1"]
    assert connection.pauses == [2.0] * 4


@pytest.mark.parametrize(("timeout", "after"), [("3.9s", "4.0"), ("4s", "4.0"), ("4.1s", "6.0")])
def test_messages_that_broker_keeps_back_are_an_error_after_connection_timeout(
    connection, events, timeout, after
):
    connection.ready = [2]
    text = f"queue 'q' has 2 ready messages, but no message arrived for {after} s: another consumer may be"
    with pytest.raises(SparkError, match=text):
        list(taken(**{"amqp.connectionTimeout": timeout}))
    assert events[2:] == ["ends"]
    assert (2, "close") in connection.calls


# --- turns ------------------------------------------------------------------------------------------------


@pytest.fixture
def leases(connection, monkeypatch):
    """What is done with leases: taken, released; those that are held by others."""
    taken, released, held = [], [], []

    def take(of, name, *given):
        taken.append((name, *given))
        of.leases.add(name)

    monkeypatch.setattr(turns, "take_lease", take)
    monkeypatch.setattr(turns, "release_lease", lambda _, name: released.append(name))
    monkeypatch.setattr(turns, "is_held", lambda _, name: name in held)
    return SimpleNamespace(taken=taken, released=released, held=held)


def test_a_read_that_waits_for_spark_has_the_lease_of_its_task_once(connection, leases, monkeypatch):
    task = SimpleNamespace(taskAttemptId=lambda: 7)
    monkeypatch.setattr(turns.TaskContext, "get", lambda: task)
    turn = turns.Turn(connection, "q")
    turn.begin(9.0)
    assert leases.taken == [("amqp.lease.browse.q", 9.0, turn._check_task)]
    own = f"amqp.lease.browse-task.{socket.gethostname()}.{os.getppid()}.7.q"
    turn._check_task()
    leases.held.append(own)
    with pytest.raises(SparkError, match="cannot read queue 'q': the same task already reads it"):
        turn._check_task()
    for _ in range(2):
        turn.waits_for_spark()
    assert leases.taken[1:] == [(own, 0)]
    turn._check_task()
    turn.end()
    assert {*leases.released} == {"amqp.lease.browse.q", own}
    task = None  # Outside of Spark.
    turns.Turn(connection, "q").waits_for_spark()
    assert len(leases.taken) == 2


@pytest.mark.parametrize(
    ("error", "text"),
    [(LeaseTaken("held"), "another batch read of it, .* did not end within 9 s"), (LeaseRefused("403"), "")],
)
def test_held_lease_fails_batch_read_and_refused_lease_is_logged(
    connection, leases, monkeypatch, caplog, error, text
):
    def take(*_):
        raise error

    caplog.set_level("INFO", "fakeamqp.spark")
    monkeypatch.setattr(turns, "take_lease", take)
    turn = turns.Turn(connection, "q")
    if text:
        with pytest.raises(SparkError, match=f"cannot read queue 'q': {text}"):
            turn.begin(9.0)
    else:
        turn.begin(9.0)
        assert (
            "reading queue 'q' without a lease, so other batch reads may miss its messages: 403"
            in caplog.text
        )
    turn._task_lease = "x"
    turn.waits_for_spark()
    assert turn._task_lease is None
    turn.end()
    assert leases.released == []
