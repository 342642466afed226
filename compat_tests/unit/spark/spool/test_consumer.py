"""The thread that consumes, run by the test itself: which ends it survives, and what it answers."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.links import Link
from fakeamqp.spark import retries
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, QueueRefused, SparkError, SpoolError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.spool import consumer as consumers
from fakeamqp.spark.spool.backlog import Backlog
from fakeamqp.spark.spool.channel import SpoolStatus, WindowTooWide
from fakeamqp.spark.spool.consumer import SpoolConsumer

STATUS = SpoolStatus(visible=1, held=2, ready=3, arrived=4)


class Channel:
    """Plays the next attempt: an error of its construction, or what happens in each turn."""

    attempts: list[Any]
    made: list[Channel]

    def __init__(self, link, _options, _store, shared):
        attempt = Channel.attempts.pop(0)
        Channel.made.append(self)
        self.calls = []
        self.link, self.shared = link, shared
        if isinstance(attempt, Exception):
            raise attempt
        self.turns = list(attempt)
        link.turns = self.turns

    def ask(self, backlog):
        self.calls.append(("ask", backlog, self.shared.backlog))
        return STATUS

    def count(self):
        self.calls.append("count")

    def run_due_work(self):
        self.calls.append("work")

    def idle_limit(self):
        return 0.5

    def flush(self, *, at_end):
        self.calls.append(("flush", at_end))


class Connected(Link):
    """A link that can be a context, and be woken."""

    opened = 0
    refused: list[Exception]

    def __call__(self, _options):
        return self

    def __enter__(self):
        if self.refused:
            raise self.refused.pop(0)
        self.opened += 1
        self.lost = None
        return self

    def __exit__(self, *_):
        self.calls.append("closed")

    def wake(self):
        self.calls.append("woken")


class Poked:
    """An event whose waits are noted."""

    def __init__(self, link):
        self.pauses = []
        self._link = link

    def set(self): ...
    def clear(self): ...
    def wait(self, pause):
        self.pauses.append(pause)
        self._link.now += pause


@pytest.fixture
def link(monkeypatch):
    link = Connected()
    link.refused = []
    Channel.made, Channel.attempts = [], []
    for module in (consumers, retries):
        monkeypatch.setattr(module, "time", link)
    monkeypatch.setattr(consumers, "Link", link)
    monkeypatch.setattr(consumers, "ConsumingChannel", Channel)
    return link


def consumer(link):
    given = {"amqp.url": "amqp://h", "queue": "q", "prefetch": "8", "reconnectTimeout": "60s"}
    found = SpoolConsumer(read_options(given), SimpleNamespace())
    found._poked = Poked(link)
    return found


def played(found, link, *attempts):
    """Run the thread's part here, and return its failure."""
    Channel.attempts = list(attempts)
    found._run()
    return found._failure


def stop(found, flush=True):
    return lambda: found.stop(flush=flush)


def lose(link, seconds=0.0):
    def happens():
        link.lost = "maintenance"
        link.now += seconds

    return happens


def test_consumer_works_after_each_turn_and_flushes_at_end_if_asked(link):
    for flush in (True, False):
        found = consumer(link)
        assert played(found, link, [None, stop(found, flush)]) is None
        expected = ["work", "work", *([("flush", True)] if flush else [])]
        assert Channel.made[-1].calls == expected
        assert link.pauses[-2:] == [0.5, 0.5]
        assert link.calls[-2:] == ["woken", "closed"]
        assert found._link is None


def test_wait_for_more_sees_messages_that_arrived_during_turn(link):
    found = consumer(link)

    def arrive():
        found._shared.arrived += 3

    played(found, link, [arrive, stop(found)])
    assert found._shown_arrived == 3
    found._stopping = False
    assert found.wait_for_more(2, 0.0)
    assert not found.wait_for_more(3, 0.0)


def test_consumer_answers_status_requests_in_order(link):
    found = consumer(link)
    backlog = Backlog()
    answers = []
    questions = [consumers._Question(), consumers._Question(backlog), consumers._Question()]
    found._questions = list(questions)
    played(found, link, [stop(found)])
    assert [each.answer for each in questions] == [STATUS] * 3
    assert Channel.made[0].calls[:3] == [
        ("ask", None, None),
        ("ask", backlog, backlog),
        ("ask", None, backlog),
    ]
    assert found._questions == answers
    found.forget(Backlog())
    assert found._shared.backlog is backlog
    found.forget(backlog)
    assert found._shared.backlog is None


def test_a_barrier_waits_for_its_answer(link):
    found = consumer(link)
    asked = threading.Event()
    found._poked = SimpleNamespace(set=asked.set)

    def answer():
        asked.wait(10)
        with found._state:
            found._questions[0].answer = STATUS
            found._state.notify_all()

    thread = threading.Thread(target=answer)
    thread.start()
    assert found.barrier() is STATUS
    thread.join()


def test_queues_are_counted_again_when_the_count_is_old(link):
    found = consumer(link)
    shared, pokes = found._shared, []
    found.poke = lambda: pokes.append(None)
    with cases() as case:
        for age, wanted in ((4.9, False), (5.0, True)):
            with case(age):
                found._count_wanted = False
                shared.counted_at = link.now - age
                assert found.depths() is shared
                assert found._count_wanted == wanted == bool(pokes)
    played(found, link, [None, stop(found)])
    assert Channel.made[0].calls == ["count", "work", "work", ("flush", True)]


def test_consumer_window_is_narrowed_window_if_set(link):
    found = consumer(link)
    assert found.window == 8
    found._shared.window = 3
    assert found.window == 3
    for limited in (False, True):
        found.limit(limited)
        assert found._shared.unlimited is not limited


@pytest.mark.parametrize("error", [QueueRefused("404"), BrokerUnreachable("no route")])
def test_refused_queue_or_unreachable_broker_at_start_fails_without_retry(link, error):
    found = consumer(link)
    if isinstance(error, BrokerUnreachable):
        link.refused = [error]
    assert played(found, link, error) is error
    assert found._poked.pauses == []
    with pytest.raises(type(error), match=str(error)):
        found.barrier()


def test_a_lost_connection_is_opened_again(link, caplog):
    """Also where the queue is away for a while once it was consumed."""
    found = consumer(link)
    attempts = [
        ConnectionLost("while it begins"),
        [lose(link)],
        QueueRefused("404 NOT_FOUND"),
        [stop(found)],
    ]
    assert played(found, link, *attempts) is None
    assert found._poked.pauses == [0.05, 0.1, 0.2]
    for text in ("while it begins", "maintenance", "404 NOT_FOUND"):
        assert f"{text}; connecting again" in caplog.text


def test_reconnect_pause_is_reset_after_connection_longer_than_2_seconds_or_answered_request(link):
    with cases() as case:
        for seconds, asks, pauses in [
            (2.0, False, [0.05, 0.1, 0.2, 0.4]),
            (2.1, False, [0.05, 0.1, 0.2, 0.05]),
            (0.0, True, [0.05, 0.1, 0.2, 0.05]),
        ]:
            with case(seconds, asks):
                found = consumer(link)

                def ask(found=found):
                    found._questions.append(consumers._Question())

                last = [*([ask] if asks else []), lose(link, seconds)]
                played(found, link, *([lose(link)] for _ in range(3)), last, [stop(found)])
                assert found._poked.pauses == pauses


def test_too_wide_window_reconnects_without_pause(link, caplog):
    found = consumer(link)

    def narrow():
        raise WindowTooWide("too wide")

    assert played(found, link, [narrow], [stop(found)]) is None
    assert found._poked.pauses == []
    assert "too wide" in caplog.text
    assert "connecting again" not in caplog.text


def test_a_connection_that_stays_away_fails_all_calls(link):
    found = consumer(link)
    gone = BrokerUnreachable("no route")
    link.refused = []
    Channel.attempts = [[lambda: (lose(link)(), setattr(link, "refused", [gone] * 99))]]
    found._run()
    for call in (found.barrier, lambda: found.wait_for_more(0, 1.0)):
        with pytest.raises(BrokerUnreachable, match=r"no route \(tried again for 60.0 s\)"):
            call()
    assert not found._thread.is_alive()


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (SpoolError("disk full"), SpoolError, "^disk full$"),
        (ValueError("on purpose"), SparkError, "^the consumer ended: ValueError: on purpose$"),
    ],
)
def test_unexpected_error_ends_consumer_thread_and_is_raised_by_barrier(link, error, kind, text):
    def fail():
        raise error

    found = consumer(link)
    assert played(found, link, [fail]) is error
    with pytest.raises(kind, match=text) as caught:
        found.barrier()
    assert type(caught.value) is kind
    assert found._link is None


def test_stopped_reader_raises_connection_lost_without_connecting(link):
    found = consumer(link)
    assert found.stop()
    with pytest.raises(ConnectionLost, match="the reader was stopped"):
        found.barrier()
    with pytest.raises(ConnectionLost, match="the reader was stopped"):
        found.wait_for_more(-1, 0.0)
    assert played(found, link) is None
    assert link.opened == 0
    assert (found._thread.name, found._thread.daemon) == ("amqp consumer", True)
