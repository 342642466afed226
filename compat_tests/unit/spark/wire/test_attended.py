"""A connection that a thread keeps open while Spark is busy."""

from __future__ import annotations

import queue
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import pytest

from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, SparkError, SpoolError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.wire import attended
from fakeamqp.spark.wire.attended import AttendedConnection, with_heartbeat

OPTIONS = SimpleNamespace(reconnect_timeout=60.0, connection=None)


class ShortLived:
    """A connection that lasts for half a minute."""

    opened = 0
    now = 0.0
    lasts = 30.0

    def __init__(self, _options):
        ShortLived.opened += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def check(self):
        pass

    def wake(self):
        pass

    def turn(self, _pause):
        ShortLived.now += self.lasts
        raise ConnectionLost("maintenance")


@pytest.fixture
def connections(monkeypatch):
    monkeypatch.setattr(ShortLived, "opened", 0)
    monkeypatch.setattr(ShortLived, "now", 0.0)
    monkeypatch.setattr(attended, "WireConnection", ShortLived)
    clock = SimpleNamespace(monotonic=lambda: ShortLived.now)
    monkeypatch.setattr(attended, "time", clock)
    monkeypatch.setattr("fakeamqp.spark.wire.retries.time", clock)


def test_the_time_to_try_again_begins_with_each_loss(connections):
    """A batch may take hours, in which nothing is asked."""
    keeper = AttendedConnection(OPTIONS, "keeper", lambda _connection: None)
    keeper.call(lambda _connection: None)
    while ShortLived.opened < 6:
        keeper.wait(0.01)
        assert keeper._thread.is_alive()
    assert keeper.call(lambda _connection: 7) == 7
    keeper.stop()
    with pytest.raises(ConnectionLost, match="the reader was stopped"):
        keeper.call(lambda _connection: 7)


@pytest.mark.parametrize(("lasts", "again"), [(2.0, False), (2.1, True)])
def test_a_connection_that_lasts_for_two_seconds_is_no_success(connections, monkeypatch, lasts, again):
    monkeypatch.setattr("fakeamqp.spark.wire.retries._FIRST_PAUSE", 0.0)
    monkeypatch.setattr(ShortLived, "lasts", lasts)
    keeper = AttendedConnection(OPTIONS, "keeper", lambda _connection: None)
    keeper.call(lambda _connection: None)
    while ShortLived.opened < 100 and keeper._thread.is_alive():
        keeper._thread.join(0.01)
    keeper.stop()
    assert (ShortLived.opened >= 100) == again
    if not again:
        with pytest.raises(ConnectionLost, match=r"maintenance \(tried again for 60\.0 s\)"):
            keeper.call(lambda _connection: 7)


def test_failed_preparation_of_connection_is_raised_by_each_call(connections):
    def refuse(_connection):
        raise SpoolError("in use")

    keeper = AttendedConnection(OPTIONS, "keeper", refuse)
    for _ in range(2):
        with pytest.raises(SpoolError, match="in use"):
            keeper.call(lambda _connection: 7)


def test_first_connection_lost_during_preparation_raises_connection_lost(connections):
    def lose(_connection):
        raise ConnectionLost("no such queue")

    with pytest.raises(ConnectionLost, match="no such queue"):
        AttendedConnection(OPTIONS, "keeper", lose).call(lambda _connection: 7)


class Waiting:
    """A connection on which nothing happens until it is woken."""

    made: ClassVar[list[Waiting]] = []

    def __init__(self, given):
        self.given = given
        self.pauses: queue.Queue[float | None] = queue.Queue()
        self.checks = 0
        self.lost = None
        self.open = False
        self._woken = threading.Event()
        Waiting.made.append(self)

    def __enter__(self):
        self.open = True
        return self

    def __exit__(self, *_):
        self.open = False

    def check(self):
        self.checks += 1
        if self.lost:
            raise ConnectionLost(self.lost)

    def wake(self):
        self._woken.set()

    def turn(self, pause):
        self.pauses.put(pause)
        if pause != 0:
            assert self._woken.wait(10)
            self._woken.clear()


@pytest.fixture
def waiting(monkeypatch):
    monkeypatch.setattr(Waiting, "made", [])
    monkeypatch.setattr(attended, "WireConnection", Waiting)
    monkeypatch.setattr("fakeamqp.spark.wire.retries._FIRST_PAUSE", 0.0)
    keepers = []

    def make(prepare=lambda _connection: None, **more):
        keepers.append(AttendedConnection(OPTIONS, "keeper", prepare, **more))
        return keepers[-1]

    yield make
    for keeper in keepers:
        keeper.stop()
        assert not keeper._thread.is_alive()
    assert not any(connection.open for connection in Waiting.made)


def test_all_calls_run_on_one_prepared_connection_until_stop(waiting):
    prepared = []
    keeper = waiting(prepared.append)
    assert [keeper.call(lambda connection, number=number: (number, connection)) for number in range(3)] == [
        (number, prepared[0]) for number in range(3)
    ]
    [connection] = Waiting.made
    assert (prepared, connection.given, connection.open) == ([connection], OPTIONS.connection, True)
    assert keeper._thread.daemon
    keeper.stop()
    assert not keeper._thread.is_alive()
    assert not connection.open
    with pytest.raises(ConnectionLost, match=r"^the reader was stopped$"):
        keeper.call(lambda _connection: 7)


def test_connection_that_was_stopped_before_it_began_is_not_opened(waiting):
    keeper = waiting()
    assert keeper.stop()
    keeper.start()
    for call in (lambda: keeper.call(lambda _connection: 7), lambda: keeper.wait(0.0, lambda: True)):
        with pytest.raises(ConnectionLost, match=r"^the reader was stopped$"):
            call()
    assert (keeper._thread.ident, Waiting.made) == (None, [])


def test_calls_fail_at_once_after_a_stop_that_the_thread_does_not_notice(waiting, monkeypatch):
    monkeypatch.setattr(attended, "_GOODBYE", 0.0)
    answers = threading.Event()
    keeper = waiting(lambda _connection: answers.wait(10))
    keeper.start()
    assert not keeper.stop()
    with pytest.raises(ConnectionLost, match=r"^the reader was stopped$"):
        keeper.call(lambda _connection: 7)
    answers.set()
    keeper._thread.join(10)


def test_wait_ends_when_the_thread_has_done_it_or_has_failed(waiting):
    done = []

    def due():
        done.append(1)
        if len(done) == 3:
            raise SpoolError("disk full")

    keeper = waiting(due=due)
    keeper.start()
    assert keeper.wait(10.0, lambda: len(done) == 1)
    assert not keeper.wait(0.01, lambda: len(done) == 2)
    keeper.wake()
    assert keeper.wait(10.0, lambda: len(done) == 2)
    keeper.wake()
    with pytest.raises(SpoolError, match=r"^disk full$"):
        keeper.wait(10.0)


def test_end_is_called_with_the_connection_open_and_only_by_a_stop(waiting):
    ends = []
    keeper = waiting(end=lambda: ends.append([connection.open for connection in Waiting.made]))
    keeper.call(lambda _connection: 7)
    Waiting.made[0].lost = "maintenance"
    keeper.wake()
    assert keeper.call(lambda _connection: 7) == 7
    assert ends == []
    keeper.stop()
    assert ends == [[False, True]]


def test_result_of_due_function_is_pause_before_next_run(waiting):
    pauses = iter([5.0, 3.0, None])
    keeper = waiting(due=lambda: next(pauses))
    for expected in (5.0, 3.0, None):
        keeper.call(lambda _connection: None)
        assert Waiting.made[0].pauses.get(timeout=10) == expected
    keeper.stop()
    assert Waiting.made[0].pauses.empty()


def test_a_job_begins_again_if_its_connection_is_lost(waiting):
    """Also if the loss is noticed only behind it: what it found may be wrong."""

    def job(connection):
        if len(Waiting.made) == 2:
            raise ConnectionLost("maintenance")
        if len(Waiting.made) == 3:
            connection.lost = "maintenance"
        return len(Waiting.made)

    connections = []
    keeper = waiting(lambda _connection: connections.append(keeper._connection))
    assert keeper.call(lambda _connection: 0) == 0
    Waiting.made[0].lost = "maintenance"
    assert keeper.call(job) == 4
    assert connections == [None] * 4
    assert [connection.open for connection in Waiting.made] == [False, False, False, True]


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ValueError("on purpose"), SparkError, "^the keeper ended: ValueError: on purpose$"),
        (SpoolError("in use"), SpoolError, "^in use$"),
        (KeyboardInterrupt(), SparkError, "^the keeper ended: KeyboardInterrupt: $"),
    ],
)
def test_the_failure_of_a_job_is_that_of_all_calls(waiting, error, kind, text):
    def fail(_connection):
        raise error

    keeper = waiting()
    keeper.call(lambda _connection: None)
    raised = []
    for job in (fail, lambda _connection: 7):
        with pytest.raises(kind, match=text) as caught:
            keeper.call(job)
        assert type(caught.value) is kind
        raised.append(caught.value)
    assert raised[0] is not raised[1]


def test_a_loss_before_the_first_result_is_not_tried_again(waiting):
    def lose(_connection):
        raise BrokerUnreachable("no route")

    keeper = waiting()
    with pytest.raises(BrokerUnreachable, match=r"^no route$"):
        keeper.call(lose)
    assert len(Waiting.made) == 1


def test_a_heartbeat_of_the_options_stays():
    given = read_options({"amqp.url": "amqp://localhost/", "queue": "q"})
    assert given.connection.heartbeat is None
    longer = with_heartbeat(given, 600)
    assert longer == replace(given, connection=replace(given.connection, heartbeat=600))
    assert with_heartbeat(longer, 60) is longer
