"""The messages that a batch read of a queue holds, on a connection that the test plays."""

from __future__ import annotations

import os
import socket
from types import SimpleNamespace

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.links import Link, encoded
from fakeamqp.spark.browse import delivery_limit, snapshot as snapshots, turns
from fakeamqp.spark.browse.snapshot import _Held, snapshot
from fakeamqp.spark.errors import ConnectionLost, DeliveryLimit, OptionError, SparkError
from fakeamqp.spark.lease import LeaseRefused, LeaseTaken
from fakeamqp.spark.options import read_options

IDLE, PATIENCE = 2.0, 5.0


class Playing(Link):
    """A connection on which the queue has four messages."""

    def get(self, channel, _queue, receive):
        channel.receive = receive
        self.deliver(b"0")
        return 3


@pytest.fixture
def link(monkeypatch):
    link = Playing()
    monkeypatch.setattr(snapshots, "time", link)
    return link


def held(link, limit=None, **more):
    """A read of which the first message is there, and three are missing."""
    given = {"amqp.url": "amqp://h", "queue": "q", "idleTimeout": "2s", "amqp.connectionTimeout": "5s"}
    found = _Held(read_options({**given, **more}), link, "q", limit)
    found.begin()
    return found


def test_messages_are_consumed_behind_the_first_one(link, monkeypatch):
    """Each consumer has as many as a window may have, and is cancelled before the next one."""
    monkeypatch.setattr(snapshots, "_LARGEST_WINDOW", 2)
    read = held(link)
    assert (read.missing, read.octets, link.calls) == (3, 3, [])
    link.turns = [lambda: link.deliver(b"11", b"2"), lambda: link.deliver(b"3", redelivered=True)]
    assert read.wait_for_more()
    assert (read.missing, read.octets) == (1, 10)
    assert link.calls == [(2, "basic_qos", 2), (2, "consume", "q")]
    link.calls.clear()
    assert read.wait_for_more()
    assert link.calls == [(2, "basic_cancel", "q 2"), (3, "basic_qos", 1), (3, "consume", "q")]
    assert link.pauses == [IDLE, IDLE]
    found = read.take()
    assert [(each.body, each.offset, each.queue, each.tag) for each in found] == [
        (b"0", 0, "q", 1),
        (b"11", 1, "q", 1),
        (b"2", 2, "q", 2),
        (b"3", 3, "q", 1),
    ]
    assert [each.redelivered for each in found] == [False, False, False, True]
    assert {each.received_at for each in found} == {7}
    assert (read.take(), read.octets, read.missing) == ([], 0, 0)


def test_missing_messages_are_waited_for_while_the_queue_has_some(link):
    read = held(link)
    assert read.wait_for_more()  # The first look is after the idle timeout.
    assert link.calls[2:] == []
    link.ready = [2, 2, 2, 2, 2, 0]
    assert [read.wait_for_more() for _ in range(5)] == [True, True, True, True, False]
    assert link.pauses == [IDLE, 0.0, IDLE, 0.0, IDLE, 0.0]


@pytest.mark.parametrize(("seconds", "fails"), [(4.9, False), (5.0, True), (7.26, True)])
def test_messages_that_the_broker_keeps_back_are_an_error_after_the_connection_timeout(link, seconds, fails):
    read = held(link)
    read.wait_for_more()
    link.now = 1000 + seconds
    link.ready = [2]
    if fails:
        text = f"has 2 ready messages, but no message arrived for {seconds:.1f} s: another consumer may be"
        with pytest.raises(SparkError, match=text):
            read.wait_for_more()
    else:
        assert read.wait_for_more()
        assert read._looked_at == link.now
        assert read._moved_at == 1000


def test_messages_that_others_took_end_the_read(link):
    read = held(link)
    assert read.wait_for_more()
    link.now = 1100.0
    link.ready = [9, 0]
    assert not read.wait_for_more()
    assert link.calls[2:] == [(2, "queue_declare", "q", "passive")] * 2


def test_read_continues_if_message_arrives_during_count(link):
    """Whatever the count is, and however long nothing came before."""
    with cases() as case:
        for ready in (0, 2):
            with case(ready):
                read = held(link)
                read.wait_for_more()
                link.now += 100.0
                link.ready = [9, lambda ready=ready: (link.deliver(b"1"), ready)[1]]
                assert read.wait_for_more()
                assert (read._moved_at, read._looked_at, read.missing) == (link.now, link.now, 2)


def test_messages_restart_the_idle_timeouts(link):
    read = held(link)
    link.turns = [lambda: (setattr(link, "now", 1001.5), link.deliver(b"1"))]
    read.wait_for_more()
    assert (read._moved_at, read._looked_at) == (1001.5, 1001.5)
    link.deliver(b"2")  # While a consumer of the next window is opened.
    read._not_asked_for = read.missing = 1
    pauses = len(link.pauses)
    link.calls.clear()
    link.channels[-1].receive(3, False, b"", b"\x00\x00", b"x")
    assert read.missing == 0
    assert len(link.pauses) == pauses
    link.lost = "maintenance"
    with pytest.raises(ConnectionLost, match="maintenance"):
        read.wait_for_more()


def test_queue_deleted_during_snapshot_raises_connection_lost(link):
    read = held(link)
    read.wait_for_more()
    link.channels[-1].cancelled(None)
    with pytest.raises(ConnectionLost, match="queue 'q' was deleted during the read"):
        read.wait_for_more()


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            "540 NOT_IMPLEMENTED",
            OptionError,
            r"'q' is a stream: .* \(540 NOT_IMPLEMENTED\)",
        ),
        ("404 NOT_FOUND", ConnectionLost, "cannot read queue 'q': 404 NOT_FOUND"),
        ("405 single active consumer", None, ""),
    ],
)
@pytest.mark.parametrize("is_open", [True, False])
def test_refused_basic_get_raises_error_except_for_single_active_consumer(link, error, kind, text, is_open):
    read = held(link)

    def refuse(channel, *_):
        channel.connection.is_open = is_open
        link.lost = error
        raise ConnectionLost(error)

    link.get = refuse
    link.ready = [9, 4]
    if kind is None and is_open:
        read.begin()
        assert (read.missing, read._not_asked_for, link.lost) == (4, 4, None)
        assert read._channels == [(link.channels[-1], None)]
    else:
        with pytest.raises(kind or ConnectionLost, match=text or "cannot read queue 'q': 405"):
            read.begin()


def test_snapshot_of_empty_queue_has_no_missing_messages(link):
    read = held(link)
    link.get = lambda *_: None
    read.missing = 0
    read.begin()
    assert (read.missing, read._not_asked_for) == (0, 3)


# --- the way back -----------------------------------------------------------------------------------------


def consumed(link, monkeypatch):
    """A read of four messages on three channels."""
    monkeypatch.setattr(snapshots, "_LARGEST_WINDOW", 2)
    read = held(link)
    link.turns = [lambda: link.deliver(b"1", b"2"), lambda: link.deliver(b"3")]
    read.wait_for_more()
    read.wait_for_more()
    link.calls.clear()
    link.pauses.clear()
    return read


def test_messages_return_in_order_without_warning(link, monkeypatch, caplog):
    """As the version counts returns: `basic.nack` from 4.3 on, the end of the channel before."""
    nacked = [(1, "discard"), (1, "basic_nack", 0, "multiple", "requeue"), (1, "close"), (2, "discard")]
    nacked += [(2, "basic_nack", 0, "multiple", "requeue"), (2, "close"), (3, "discard")]
    nacked += [(3, "basic_cancel", "q 3"), (3, "basic_nack", 0, "multiple", "requeue")]
    count = (3, "queue_declare", "q", "passive")
    with cases() as case:
        for version, closed, ready, expected, pauses in [
            ((4, 3), (), [4], [*nacked, count, (3, "close")], 0),
            ((4, 4), (), [3, 3, 5], [*nacked, count, count, count, (3, "close")], 2),
            (
                (4, 3),
                (1, 2, 3),
                [4],
                [(number, what) for number in (1, 2, 3) for what in ("discard", "close")],
                0,
            ),
            (
                (4, 2),
                (),
                [4],
                [(number, what) for number in (1, 2, 3) for what in ("discard", "close")],
                0,
            ),
        ]:
            with case(version, closed):
                link.channels.clear()
                read = consumed(link, monkeypatch)
                link.broker_version, link.ready = version, ready
                for number in closed:
                    link.channels[number - 1].is_open = False
                read.requeue()
                assert link.calls == expected
                assert link.pauses == [0.01] * pauses
                assert caplog.text == ""


def test_missing_returned_messages_are_logged_after_a_second(link, monkeypatch, caplog):
    read = consumed(link, monkeypatch)
    link.ready = [3]
    read.requeue()
    assert link.now == pytest.approx(1001, abs=0.02)
    assert "queue 'q' has only 3 ready messages after this read returned 4: other consumers" in caplog.text
    assert link.calls[-1] == (3, "close")


def test_requeue_on_lost_connection_raises_no_error_and_ends_at_first_request(link, monkeypatch):
    read = consumed(link, monkeypatch)
    link.lost = "maintenance"
    read.requeue()
    assert link.calls[-1] == (3, "discard")
    assert link.pauses == []


# --- the delivery limit -----------------------------------------------------------------------------------

COUNTED = {"headers": {"x-delivery-count": 3}}


def test_reads_that_count_are_refused_near_the_limit(link, caplog):
    """A quarter of the limit is left for refused reads, and only the first check keeps it."""
    with cases() as case:
        for limit, count, first, allowed, refused in [
            (20, 14, True, False, False),
            (20, 15, True, False, True),
            (20, 15, True, True, False),
            (20, 19, False, False, False),
            (20, 20, False, False, True),
            (3, 2, True, False, False),
            (3, 3, True, False, True),
            (None, 99, True, False, False),
        ]:
            with case(limit, count, first, allowed):
                caplog.clear()
                read = held(link, limit, **({"allowDeliveryLimit": "true"} if allowed else {}))
                read._highest, read._checked = count, not first
                text = f"messages of quorum queue 'q' were returned up to {count} times"
                if refused:
                    with pytest.raises(
                        DeliveryLimit, match=f"{text}, .* above {limit}: this read is refused"
                    ):
                        read.check_limit()
                else:
                    read.check_limit()
                warned = f"{text}; this read is one more, and above {limit}" in caplog.text
                assert warned == (first and not refused and limit is not None)
                assert read._checked or limit is None
    read = held(link, 3)
    read._highest, read._arrived = 9, 0
    read.check_limit()
    assert not read._checked


def test_messages_at_their_limit_are_published_again(link, monkeypatch, caplog):
    saved = []

    def save(_link, queue, tag, properties, body, channel):
        saved.append((queue, tag, body, channel.channel_number))
        return body == b"1"

    monkeypatch.setattr(snapshots.delivery_limit, "save", save)
    with cases() as case:
        for limit, more, expected in [
            (3, {}, [("q", 1, b"1", 2), ("q", 2, b"2", 2)]),
            (4, {}, []),
            (None, {}, []),
            (3, {"allowDeliveryLimit": "true"}, []),
        ]:
            with case(limit, more):
                saved.clear()
                caplog.clear()
                link.channels.clear()
                read = held(link, limit, **more)
                read._consume()
                link.deliver(b"1", b"2", properties=COUNTED, redelivered=True)
                link.deliver(b"3", properties=COUNTED)
                assert read._highest == (0 if limit is None else 3)
                read.requeue()
                assert saved == expected
                assert ("was returned 3 times, its limit; it was published again" in caplog.text) == bool(
                    saved
                )
                assert ("it could not be published again, so the queue drops" in caplog.text) == bool(saved)


def test_a_read_gives_lists_of_so_many_rows_or_bytes(link, monkeypatch):
    """The messages return before the last list, and Spark has time to process the others."""
    events = []

    class Turn:
        def __init__(self, *given):
            events.append(given[1])

        def begin(self, patience):
            events.append(patience)

        def waits_for_spark(self):
            events.append("waits")

    class Connected:
        def __init__(self, _options): ...
        def __enter__(self):
            return link

        def __exit__(self, *_):
            events.append("closed")

    held(link)
    monkeypatch.setattr(snapshots, "Turn", Turn)
    monkeypatch.setattr(snapshots, "Link", Connected)
    given = {"amqp.url": "amqp://h", "queue": "q", "idleTimeout": "2s", "reconnectTimeout": "9s"}
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
                link.channels.clear()
                link.ready = [4]
                link.turns = [lambda body=body: link.deliver(body) for body in (b"1", b"2", b"3")]
                found = []
                for messages in snapshot(read_options(given), "q", rows, octets):
                    found.append([each.body for each in messages])
                    link.now += 100.0
                assert found == expected
                assert events == ["q", 9.0, *["waits"] * (len(expected) - 1), "closed"]
                assert not link.turns


def test_the_limit_of_a_queue_is_in_the_refusal_of_another_declaration(link, monkeypatch):
    """The broker names one difference after the other."""

    def differs(name, value):
        current = "none" if value is None else f"the value '{value}' of type 'long'"
        return f"406 PRECONDITION_FAILED - inequivalent arg '{name}' for queue 'q': but current is {current}"

    limit, other = "x-delivery-limit", ("x-max-length", "100")
    asked = []
    refusals = []

    def refuse(_link, queue, arguments):
        assert queue == "q"
        asked.append(dict(arguments))
        return refusals.pop(0)

    monkeypatch.setattr(delivery_limit, "_refusal", refuse)
    unlike = {"x-queue-type": "quorum", limit: 2**31 - 19}
    with cases() as case:
        for version, said, found, questions in [
            ((0, 0), [], None, []),
            ((4, 3), [], None, []),
            ((4, 2), [None], None, [unlike]),
            ((4, 2), ["403 ACCESS_REFUSED"], 20, [unlike]),
            ((4, 0), [differs(limit, None)], 20, [unlike]),
            ((3, 13), ["403 ACCESS_REFUSED"], None, [unlike]),
            ((3, 13), [differs(limit, None)], None, [unlike]),
            ((4, 2), ["541 INTERNAL_ERROR"], None, [unlike]),
            ((4, 2), [differs(limit, "6")], 6, [unlike]),
            ((4, 2), [differs(limit, "0")], 0, [unlike]),
            ((4, 2), [differs(limit, "-1")], None, [unlike]),
            ((3, 13), [differs(limit, "-1")], 0, [unlike]),
            ((4, 2), [differs("x-queue-type", "classic")], None, [unlike]),
            ((4, 2), [differs("durable", "false")], None, [unlike]),
            ((4, 2), [differs(*other), differs(limit, "7")], 7, [unlike, {**unlike, other[0]: 100}]),
        ]:
            with case(version, said):
                asked.clear()
                refusals[:] = said
                link.broker_version = version
                assert delivery_limit.limit_of_reads(link, "q") == found
                assert asked == questions
                assert refusals == []
        texts = {"true": True, "false": False, "12": 12, "-3": -3, "1a": "1a", "": "", None: None}
        for text, value in texts.items():
            with case(text):
                assert delivery_limit._argument(text) == value


def test_the_count_of_a_message_is_in_its_headers():
    for name, value, count in [
        ("x-delivery-count", 3, 3),
        ("x-delivery-count", 1 << 40, 1 << 40),
        ("x-other", 3, 0),
    ]:
        octets = encoded(headers={name: value})
        assert delivery_limit.delivery_count(octets) == count
    assert delivery_limit.delivery_count(encoded(headers={"x-delivery-count": "123456789"})) == 0
    assert [delivery_limit.reserve(limit) for limit in (20, 7, 3)] == [5, 1, 0]


@pytest.mark.parametrize(
    ("answer", "saved"), [("Basic.Ack", True), ("Basic.Nack", False), ("return", False), ("loss", False)]
)
def test_a_message_is_acknowledged_once_its_copy_is_confirmed(answer, saved):
    sent = []

    class Publishing(Link):
        frame_max = 4096

        def channel(self):
            found = super().channel()
            found.confirm_delivery = self.confirm
            found.add_on_return_callback = lambda on_return: setattr(self, "returned", on_return)
            return found

        def confirm(self, on_answer, callback):
            self.answer = on_answer
            callback(None)

        def send(self, octets):
            sent.append(octets)
            if answer == "return":
                self.returned(None, None, None, None)
            elif answer == "loss":
                self.lost = "maintenance"
            else:
                self.answer(SimpleNamespace(method=SimpleNamespace(NAME=answer)))

    link = Publishing()
    ours = link.channel()
    octets = encoded(headers={"x-delivery-count": 3, "a": "b"})
    assert delivery_limit.save(link, "q", 7, octets, b"body", ours) is saved
    assert b"body" in sent[0]
    assert b"x-delivery-count" not in sent[0]
    acked = [(1, "basic_ack", 7), (1, "queue_declare", "q", "passive")]
    assert link.calls == (acked if saved else [])


def test_a_read_that_waits_for_spark_has_the_lease_of_its_task_once(link, monkeypatch):
    taken = []
    held = []
    task = SimpleNamespace(taskAttemptId=lambda: 7)
    monkeypatch.setattr(turns.TaskContext, "get", lambda: task)
    monkeypatch.setattr(turns, "take_lease", lambda _, *given: taken.append(given))
    monkeypatch.setattr(turns, "is_held", lambda _, name: name in held)
    turn = turns.Turn(link, "q")
    turn.begin(9.0)
    assert taken == [("amqp.lease.browse.q", 9.0, turn._check_task)]
    own = f"amqp.lease.browse-task.{socket.gethostname()}.{os.getppid()}.7.q"
    turn._check_task()
    held.append(own)
    with pytest.raises(SparkError, match="cannot read queue 'q': the same task already reads it"):
        turn._check_task()
    taken.clear()
    for _ in range(2):
        turn.waits_for_spark()
    assert taken == [(own, 0)]
    turn._check_task()
    task = None  # Outside of Spark.
    turns.Turn(link, "q").waits_for_spark()
    assert len(taken) == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [(LeaseTaken("held"), "another batch read of it, .* did not end within 9 s"), (LeaseRefused("403"), "")],
)
def test_held_lease_fails_batch_read_and_refused_lease_is_logged(link, monkeypatch, caplog, error, text):
    def take(*_):
        raise error

    caplog.set_level("INFO", "fakeamqp.spark")
    monkeypatch.setattr(turns, "take_lease", take)
    turn = turns.Turn(link, "q")
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
