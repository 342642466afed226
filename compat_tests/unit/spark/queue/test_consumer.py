"""The consumer, whose thread the test itself runs: which ends it survives, and what it answers."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.wire.played import Attempts
from fakeamqp.spark.errors import (
    BrokerUnreachable,
    ConnectionLost,
    OptionError,
    QueueNotFound,
    SparkError,
    SpoolError,
)
from fakeamqp.spark.options import read_options
from fakeamqp.spark.queue import consumer as consumers
from fakeamqp.spark.queue.channel import Backlog, Status, WindowTooWide
from fakeamqp.spark.queue.consumer import QueueConsumer
from fakeamqp.spark.wire import attended, retries

STATUS = Status(visible=1, held=2, ready=3, arrived=4)


class Channel:
    """A consuming channel. `refusals` are raised by the next ones, and `narrows` by their work."""

    made: list[Channel]
    refusals: list[Exception]
    narrows: list[Exception]

    def __init__(self, connection, _options, _store, state):
        Channel.made.append(self)
        self.calls: list[Any] = []
        self.connection, self.state = connection, state
        if Channel.refusals:
            raise Channel.refusals.pop(0)

    def ask(self, backlog):
        self.calls.append(("ask", backlog, self.state.backlog))
        return STATUS

    def count(self):
        self.calls.append("count")

    def run_due_work(self):
        self.connection.check()
        if Channel.narrows:
            raise Channel.narrows.pop()
        self.calls.append("work")
        return 0.5

    def flush(self, *, at_end):
        self.calls.append(("flush", at_end))


class Poked(threading.Event):
    """An event whose waits are noted."""

    def __init__(self, clock):
        super().__init__()
        self.pauses = []
        self._clock = clock

    def wait(self, pause=None):
        self.pauses.append(pause)
        self._clock.now += pause


@pytest.fixture
def connection(monkeypatch):
    connection = Attempts()
    connection.wake = lambda: connection.calls.append("woken")
    Channel.made, Channel.refusals, Channel.narrows = [], [], []
    for module in (consumers, attended, retries):
        monkeypatch.setattr(module, "time", connection)
    monkeypatch.setattr(attended, "WireConnection", connection)
    monkeypatch.setattr(consumers, "ConsumingChannel", Channel)
    monkeypatch.setattr(
        consumers, "check_is_no_stream", lambda _, queue: connection.calls.append(("no stream?", queue))
    )
    return connection


def consumer(connection):
    given = {"amqp.url": "amqp://h", "queue": "q", "spoolDir": "/x", "reconnectTimeout": "60s"}
    found = QueueConsumer(read_options(given, streaming=True), SimpleNamespace())
    found._attended._woken = Poked(connection)
    return found


def played(found, connection, *attempts):
    """Run the thread's part here, and return how it failed."""
    connection.attempts = list(attempts)
    found._attended._run()
    return found._attended._failure


def pauses(found):
    return found._attended._woken.pauses


def stop(found, flush=True):
    return lambda: found.stop(flush=flush)


def lose(connection, seconds=0.0):
    def happens():
        connection.lost = "maintenance"
        connection.now += seconds

    return happens


def asked(found, backlog=None):
    """Ask a question as Spark's thread does, without waiting. Returns the list that gets the answer."""
    answers, attended = [], found._attended

    def call(job):
        attended._job = lambda connection: answers.append(job(connection))

    attended.call = call
    found.barrier(backlog)
    del attended.call
    return answers


# --- what the thread does ---------------------------------------------------------------------------------


def test_consumer_works_after_each_turn_and_flushes_at_end_if_asked(connection):
    for flush in (True, False):
        found = consumer(connection)
        failure = played(found, connection, [None, stop(found, flush)])
        assert str(failure) == "the reader was stopped"
        assert Channel.made[-1].calls == ["work", "work", *([("flush", True)] if flush else [])]
        assert connection.pauses[-2:] == [0.5, 0.5]
        assert connection.calls[-2:] == ["woken", (0, "closed")]
        assert connection.options == found._options.connection


def test_queues_are_checked_once_per_connection_and_streams_refused(connection, monkeypatch):
    def refuse(_connection, queue):
        raise OptionError(f"{queue} is a stream")

    found = consumer(connection)
    played(found, connection, [narrow, lose(connection)], [stop(found)])
    assert connection.calls.count(("no stream?", "q")) == 2
    assert len(Channel.made) == 3
    monkeypatch.setattr(consumers, "check_is_no_stream", refuse)
    assert str(played(consumer(connection), connection, [])) == "q is a stream"


def test_poke_during_work_is_noticed_although_the_work_took_its_wake(connection):
    """A query would hang until something else happens."""
    found = consumer(connection)

    def work(self):
        Channel.run_due_work(self)
        if self.calls == ["work"]:
            found.poke()
        else:
            connection.turns = [stop(found)]
        return 0.5

    Channel.made = SimpleNamespace(
        append=lambda channel: setattr(channel, "run_due_work", lambda: work(channel))
    )
    played(found, connection, [])
    assert connection.pauses == [0.0, 0.5]


def test_consumer_answers_question_after_its_backlog_is_set(connection):
    found, backlog = consumer(connection), Backlog()
    answers = [asked(found)]

    def ask_again():
        answers.append(asked(found, backlog))

    played(found, connection, [ask_again, stop(found)])
    assert answers == [[STATUS]] * 2
    assert [call for call in Channel.made[0].calls if call[0] == "ask"] == [
        ("ask", None, None),
        ("ask", backlog, backlog),
    ]


def test_question_is_asked_again_if_its_connection_or_channel_ends(connection):
    found = consumer(connection)
    ends = [WindowTooWide("too wide"), ConnectionLost("maintenance")]

    def ask(_backlog):
        if ends:
            raise ends.pop(0)
        return STATUS

    Channel.made = SimpleNamespace(append=lambda channel: setattr(channel, "ask", ask))
    answer = asked(found)
    played(found, connection, [], [stop(found)])
    assert answer == [STATUS]


def test_queues_are_counted_again_when_the_count_is_old(connection):
    found = consumer(connection)
    with cases() as case:
        for age, wanted in ((4.9, False), (5.0, True)):
            with case(age):
                found._attended._woken.clear()
                found.state.counted_at = connection.now - age
                found.refresh()
                assert found._count_wanted == found._attended._woken.is_set() == wanted
    played(found, connection, [None, stop(found)])
    assert Channel.made[0].calls == ["count", "work", "work", ("flush", True)]


# --- what Spark's thread sees -----------------------------------------------------------------------------


def test_barrier_returns_answer_of_the_thread(connection):
    found = consumer(connection)
    connection.attempts = [[]]
    connection.turn = lambda _: None
    found.start()
    assert found.barrier() is STATUS
    assert found.stop()
    assert (found._attended._thread.name, found._attended._thread.daemon) == ("consumer", True)


def test_wait_for_more_sees_messages_that_arrived_before_and_during_turns(connection):
    found = consumer(connection)
    found.state.arrived = 2
    assert found.wait_for_more(1, 0.0)
    assert not found.wait_for_more(2, 0.0)
    arrives = threading.Event()

    def turn(_pause):
        if arrives.wait(0.01):
            arrives.clear()
            found.state.arrived += 1

    connection.attempts, connection.turn = [[]], turn
    found.start()
    assert not found.wait_for_more(2, 0.01)
    arrives.set()
    assert found.wait_for_more(2, 10.0)
    assert found.stop()


# --- ends -------------------------------------------------------------------------------------------------


def narrow():
    Channel.narrows.append(WindowTooWide("too wide"))


@pytest.mark.parametrize("error", [QueueNotFound("404"), BrokerUnreachable("no route")])
def test_refused_queue_or_unreachable_broker_at_start_fails_without_retry(connection, error):
    found = consumer(connection)
    if isinstance(error, QueueNotFound):
        Channel.refusals = [error]
    assert played(found, connection, [] if Channel.refusals else error) is error
    assert pauses(found) == []
    for call in (found.barrier, lambda: found.wait_for_more(-1, 1.0)):
        with pytest.raises(type(error), match=str(error)):
            call()


def test_a_lost_connection_is_opened_again(connection, caplog):
    """Also where the queue is away for a while once it was consumed."""
    found = consumer(connection)
    Channel.refusals = [ConnectionLost("while it begins")]

    def lose_queue():
        Channel.refusals = [QueueNotFound("404 NOT_FOUND")]
        lose(connection)()

    assert isinstance(played(found, connection, [], [lose_queue], [], [stop(found)]), ConnectionLost)
    assert pauses(found) == [0.05, 0.1, 0.2]
    for text in ("while it begins", "maintenance", "404 NOT_FOUND"):
        assert f"{text}; connecting again" in caplog.text


def test_reconnect_pause_is_reset_after_connection_longer_than_2_seconds_or_answered_request(connection):
    with cases() as case:
        for seconds, asks, expected in [
            (2.0, False, [0.05, 0.1, 0.2, 0.4]),
            (2.1, False, [0.05, 0.1, 0.2, 0.05]),
            (0.0, True, [0.05, 0.1, 0.2, 0.05]),
        ]:
            with case(seconds, asks):
                found = consumer(connection)
                ask = [lambda found=found: asked(found)] if asks else []
                last = [*ask, lose(connection, seconds)]
                played(found, connection, *([lose(connection)] for _ in range(3)), last, [stop(found)])
                assert pauses(found) == expected


def test_too_wide_window_opens_another_channel_of_the_same_connection(connection, caplog):
    found = consumer(connection)
    played(found, connection, [narrow, stop(found)])
    assert pauses(found) == []
    assert len(Channel.made) == 2
    assert connection.attempts == []
    assert "too wide" in caplog.text
    assert "connecting again" not in caplog.text


def test_a_connection_that_stays_away_fails_all_calls(connection):
    found = consumer(connection)
    gone = BrokerUnreachable("no route")
    failure = played(found, connection, [lose(connection)], *[gone] * 99)
    assert str(failure) == "no route (tried again for 60.0 s)"
    for call in (found.barrier, lambda: found.wait_for_more(0, 1.0)):
        with pytest.raises(BrokerUnreachable, match=r"no route \(tried again for 60.0 s\)"):
            call()


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (SpoolError("disk full"), SpoolError, "^disk full$"),
        (ValueError("on purpose"), SparkError, "^the consumer ended: ValueError: on purpose$"),
    ],
)
def test_unexpected_error_ends_consumer_thread_and_is_raised_by_barrier(connection, error, kind, text):
    def fail():
        raise error

    found = consumer(connection)
    played(found, connection, [fail])
    with pytest.raises(kind, match=text) as caught:
        found.barrier()
    assert type(caught.value) is kind
    assert caught.value.__cause__ is (error if kind is SparkError else None)
    assert connection.calls[-1] == (0, "closed")


def test_stopped_reader_raises_connection_lost_without_connecting(connection):
    found = consumer(connection)
    assert found.stop()
    with pytest.raises(ConnectionLost, match="the reader was stopped"):
        found.barrier()
    with pytest.raises(ConnectionLost, match="the reader was stopped"):
        found.wait_for_more(-1, 0.0)
    played(found, connection)
    assert connection.calls == []
