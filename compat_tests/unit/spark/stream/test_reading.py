"""Reading of streams on a connection that the test plays: windows, gaps, idle streams, and the end."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.wire.played import NO_PROPERTIES, Attempts, Channel, encoded, refusal
from fakeamqp.spark.errors import (
    AccessRefused,
    BrokerUnreachable,
    ConnectionLost,
    DataLoss,
    OptionError,
    QueueNotFound,
)
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.identity import stream_offset
from fakeamqp.spark.stream import reading, tail
from fakeamqp.spark.stream.offsets import StreamMark, StreamPlace, mark_of
from fakeamqp.spark.stream.ranges import Range
from fakeamqp.spark.stream.reading import _Reading, read_range
from fakeamqp.spark.stream.tail import Tail, consume, first_message
from fakeamqp.spark.wire import retries


class StreamChannel(Channel):
    """A channel with consumers that get messages one by one, as `receivers` in their order."""

    def __init__(self, *given):
        super().__init__(*given)
        self.receivers = []

    def consume(self, queue, receive, arguments=None):
        self.receivers.append(receive)
        return super().consume(queue, receive, arguments)


class Streams(Attempts):
    """A connection to streams."""

    def channel(self):
        self.check()
        self.channels.append(StreamChannel(self, len(self.channels) + 1))
        return self.channels[-1]

    def send(self, *offsets, channel=-1, consumer=-1, body=b"x"):
        to = self.channels[channel]
        to.receive = to.receivers[consumer]
        for offset in offsets:
            self.deliver(body, properties={"headers": {"x-stream-offset": offset}}, channel=channel)

    def acks(self):
        return [call[2] for call in self.calls if call[1] == "ack"]


@pytest.fixture
def connection(monkeypatch):
    connection = Streams()
    for module in (reading, tail, retries):
        monkeypatch.setattr(module, "time", connection)
    monkeypatch.setattr(reading, "lend", connection)
    return connection


def options(**more):
    given = {"amqp.url": "amqp://h", "stream": "log", "idleTimeout": "2s", "amqp.connectionTimeout": "5s"}
    return read_options({**given, **more})


def read(connection, wanted, **more):
    found = _Reading(options(**more), wanted)
    return found, [[each.offset for each in messages] for messages in found.read(connection)]


# --- a range ----------------------------------------------------------------------------------------------


def test_the_window_covers_the_range_and_is_acknowledged_by_halves(connection):
    with cases() as case:
        for prefetch, start, stop, sent, window, acks in [
            ("100", 0, 5, [[0, 1, 2, 3, 4]], 5, []),
            ("2", 0, 5, [[0], [1], [2], [3], [4]], 2, [1, 2, 3]),
            ("4", 0, 5, [[0], [1], [2], [3], [4]], 4, [1]),
            ("3", 0, 9, [[0, 1, 2], [3, 4, 5], [6, 7, 8]], 3, [3, 6]),
            ("100", 3, 6, [[0, 1, 2], [3], [4, 5]], 3, [3]),
            ("1", 3, 5, [[2], [3], [4]], 1, [1, 2]),
            ("100", 0, 2, [[0, 1, 2]], 2, []),
        ]:
            with case(prefetch, start, stop):
                connection.calls.clear()
                connection.pauses.clear()
                connection.turns = [lambda each=each: connection.send(*each) for each in sent]
                found, offsets = read(connection, Range("log", start, stop), prefetch=prefetch)
                assert offsets == [list(range(start, stop))]
                assert [call[1:] for call in connection.calls[:2]] == [
                    ("qos", window),
                    ("consume", "log", {"x-stream-offset": start}),
                ]
                assert connection.acks() == acks
                assert connection.calls[-1][1] == "close"
                assert (found.next, found.served) == (stop, True)
                assert set(connection.pauses) == {2.0}


def test_a_window_has_at_most_a_thousand_messages(connection):
    connection.turns = [lambda: connection.send(*range(2000))]
    read(connection, Range("log", 0, 2000), prefetch="5000")
    assert connection.calls[0][1:] == ("qos", 1000)


def test_messages_come_in_lists_of_so_many_rows_or_bytes(connection, monkeypatch):
    size = 1 + len(encoded())
    with cases() as case:
        for rows, octets, expected in [
            (2, 999, [[0, 1], [2, 3], [4, 5]]),
            (4, 999, [[0, 1, 2, 3], [4, 5]]),
            (99, 2 * size, [[0, 1], [2, 3], [4, 5]]),
            (99, 2 * size + 1, [[0, 1, 2], [3, 4, 5]]),
        ]:
            with case(rows, octets):
                monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", rows)
                monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_BYTES", octets)
                connection.turns = [lambda each=each: connection.send(each) for each in range(6)]
                assert read(connection, Range("log", 0, 6))[1] == expected


def test_messages_are_as_they_were_published(connection):
    connection.turns = [lambda: connection.send(4, body=b"abc")]
    found = _Reading(options(), Range("log", 4, 5))
    [[message]] = found.read(connection)
    assert (message.body, message.queue, message.offset, message.tag) == (b"abc", "log", 4, 1)
    assert (message.redelivered, message.received_at, message.route) == (False, 7, b"\x00\x01q")
    assert stream_offset(message.properties) == (None, message.properties)


def test_empty_range_sends_no_request(connection):
    found, offsets = read(connection, Range("log", 5, 5))
    assert (offsets, connection.calls, found.served) == ([], [], False)


def test_delivery_without_stream_offset_is_refused_as_no_stream(connection):
    connection.turns = [lambda: connection.deliver(b"x")]
    with pytest.raises(OptionError, match="'log' is no stream"):
        read(connection, Range("log", 0, 5))


# --- offsets that do not come -----------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [True, False])
def test_a_gap_is_a_loss_if_the_stream_begins_behind_it(connection, monkeypatch, caplog, fails):
    asked = []
    first = [0]

    def find(_connection, *given):
        asked.append(given)
        return first[0]

    monkeypatch.setattr(reading, "first_offset", find)
    with cases() as case:
        for sent, begins, missing, found, offsets in [
            ([0, 3, 4], 1, 1, 3, [0, 3, 4]),
            ([0, 3, 4], 2, 1, 3, [0, 3, 4]),
            ([2, 3, 4], 0, 0, 2, [2, 3, 4]),
            ([2, 3, 4], 2, 0, 2, [2, 3, 4]),
            ([0, 9], 1, 1, 9, [0]),
            ([0, 9], 9, 1, 9, [0]),
        ]:
            with case(sent, begins):
                asked.clear()
                caplog.clear()
                first[0] = begins
                connection.turns = [lambda sent=sent: connection.send(*sent)]
                text = f"are gone: {missing} was wanted, and it now begins with {begins}"
                if begins > missing and fails:
                    with pytest.raises(
                        DataLoss, match=f"messages of stream 'log' {text}; say failOnDataLoss"
                    ):
                        read(connection, Range("log", 0, 5))
                else:
                    assert read(connection, Range("log", 0, 5), failOnDataLoss=str(fails))[1] == [offsets]
                    warned = f"{text}; reading on at {found}" in caplog.text
                    assert warned == (begins > missing)
                assert asked == [("log", 5.0)]


def test_a_gap_before_a_lost_connection_is_looked_into_afterwards(connection, monkeypatch):
    monkeypatch.setattr(reading, "first_offset", lambda *_: 3)
    found = _Reading(options(), Range("log", 0, 5))
    connection.turns = [lambda: connection.send(0, 3), lambda: setattr(connection, "lost", "maintenance")]
    with pytest.raises(ConnectionLost, match="maintenance"):
        list(found.read(connection))
    connection.lost, connection.turns = None, [lambda: connection.send(4)]
    with pytest.raises(DataLoss, match="1 was wanted, and it now begins with 3"):
        list(found.read(connection))


def test_messages_behind_a_gap_are_not_given_before_its_cause_is_known(connection, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", 2)

    def lose(*_given):
        raise ConnectionLost("maintenance")

    monkeypatch.setattr(reading, "first_offset", lose)
    found = _Reading(options(), Range("log", 0, 9))
    connection.turns = [lambda: connection.send(0, 1), lambda: connection.send(3, 4)]
    given = found.read(connection)
    assert [each.offset for each in next(given)] == [0, 1]
    with pytest.raises(ConnectionLost, match="maintenance"):
        next(given)
    monkeypatch.setattr(reading, "first_offset", lambda *_: 3)
    with pytest.raises(DataLoss, match="2 was wanted, and it now begins with 3"):
        list(found.read(connection))


def test_a_gap_that_comes_while_another_is_looked_into_is_looked_into_as_well(connection, monkeypatch):
    asked = []

    def find(*_given):
        asked.append(True)
        if len(asked) == 1:
            connection.send(4)
        return 4 * (len(asked) - 1)

    monkeypatch.setattr(reading, "first_offset", find)
    monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", 2)
    connection.turns = [lambda: connection.send(0, 2)]
    found = _Reading(options(), Range("log", 0, 9)).read(connection)
    with pytest.raises(DataLoss, match="are gone: 3 was wanted, and it now begins with 4"):
        next(found)
    assert len(asked) == 2


def test_offsets_behind_a_range_are_no_gap_of_it(connection, monkeypatch):
    monkeypatch.setattr(reading, "first_offset", None)
    connection.turns = [lambda: connection.send(0, 1, 7)]
    assert read(connection, Range("log", 0, 2))[1] == [[0, 1]]


def test_a_cancelled_consumer_ends_the_connection(connection):
    def cancel():
        connection.channels[0].lost = "cancelled"

    connection.turns = [lambda: connection.send(0), cancel]
    with pytest.raises(ConnectionLost, match="cancelled"):
        read(connection, Range("log", 0, 5))
    assert connection.pauses == [2.0, 2.0]


@pytest.fixture
def ends(monkeypatch):
    """The ends of the stream that are found one after the other."""
    found = []

    class End:
        def __init__(self, *given):
            assert given[1:] == ("log", 5.0)

        def ask(self):
            return found.pop(0)

        def close(self):
            pass

    monkeypatch.setattr(reading, "Tail", End)
    return found


def test_idle_stream_raises_connection_lost_or_data_loss_by_its_end(connection, ends, caplog):
    late = "has messages from 1 on, and gave none for 6.0 s"
    with cases() as case:
        for found, text, offsets in [
            ([5, 5], None, [0, 1, 2, 3, 4]),
            ([None, None], None, [0, 1, 2, 3, 4]),
            ([2, 5, 5], late, None),
            ([5, 2, 9], late, None),
            ([1], "ends before 1, and messages up to 5 were in it", [0]),
            ([0], "ends before 0, and messages up to 5 were in it", [0]),
            ([None, 1], "ends before 1, and messages up to 5", [0]),
            ([None, None, None], "ends before 0, and messages up to 5", [0]),
        ]:
            for fails in (True, False):
                with case(found, fails):
                    caplog.clear()
                    ends[:] = found
                    connection.turns = [lambda: connection.send(0), *[None] * len(found)]
                    if offsets == [0, 1, 2, 3, 4]:
                        connection.turns.append(lambda: connection.send(1, 2, 3, 4))
                    kind = ConnectionLost if text == late else DataLoss
                    if text is not None and (fails or kind is ConnectionLost):
                        with pytest.raises(kind, match=text):
                            read(connection, Range("log", 0, 5), failOnDataLoss=str(fails))
                    else:
                        done, lists = read(connection, Range("log", 0, 5), failOnDataLoss=str(fails))
                        assert lists == [offsets]
                        assert done.next == 5
                        assert (text or "") in caplog.text
                        assert ("leaving the rest out" in caplog.text) == (text is not None)
                    assert ends == []


def test_a_stream_that_has_all_of_a_range_but_not_the_last_offsets_goes_on(connection, ends):
    """They may be notes of the broker's own: then the end is behind them."""
    ends[:] = [5, 7]
    connection.turns = [lambda: connection.send(0, 1, 2), None, None, lambda: connection.send(3, 4)]
    assert read(connection, Range("log", 0, 5))[1] == [[0, 1, 2, 3, 4]]


def test_time_of_busy_spark_does_not_count_as_idle_time(connection, ends, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", 1)
    connection.turns = [lambda: connection.send(0), lambda: connection.send(1)]
    found = []
    for messages in _Reading(options(), Range("log", 0, 2)).read(connection):
        found.append(messages[0].offset)
        connection.now += 100.0
    assert found == [0, 1]
    assert connection.pauses == [2.0, 2.0]


# --- a filter of the broker -------------------------------------------------------------------------------


def filtered(connection, wanted, *turns, **more):
    """What a range has with a filter; a turn is (offsets of the filter, whether its end comes)."""

    def happen(sent, reached):
        connection.send(*sent, channel=0, consumer=0)
        if reached:
            connection.send(wanted.stop - 1, channel=0, consumer=1)

    connection.turns = [lambda each=each: happen(*each) for each in turns]
    return read(connection, wanted, **{"streamFilter": "a", **more})[1]


def test_a_filter_and_the_end_of_the_range_are_two_consumers_of_one_channel(connection, monkeypatch):
    monkeypatch.setattr(reading, "first_offset", lambda *_: 0)
    offsets = filtered(
        connection, Range("log", 3, 9), ([5], True), streamFilter='["a", "b"]', streamMatchUnfiltered="true"
    )
    assert offsets == [[5]]
    wanted = {"x-stream-filter": ["a", "b"], "x-stream-match-unfiltered": True}
    assert connection.calls[:4] == [
        (1, "qos", 6),
        (1, "consume", "log", {"x-stream-offset": 3, **wanted}),
        (1, "qos", 1),
        (1, "consume", "log", {"x-stream-offset": 8}),
    ]


def test_a_filtered_range_ends_when_its_end_has_come_and_an_empty_window_brings_nothing(
    connection, monkeypatch
):
    """The broker is asked, twice at a time, if no message has come for 0.02 s."""

    def answer(*offsets):
        connection.send(*offsets, channel=0, consumer=0)
        return 9

    monkeypatch.setattr(reading, "first_offset", lambda *_: 0)
    with cases() as case:
        for turns, answers, offsets, asked, waits in [
            ([([], True)], [], [], 2, 0),
            ([([3, 5], True)], [], [[3, 5]], 2, 1),
            ([([3], False), ([5], True)], [], [[3, 5]], 2, 1),
            ([([3], True), ([5], False)], [], [[3, 5]], 2, 1),
            ([([3], True)], [[6]], [[3, 6]], 4, 2),
            ([([3], True)], [[], [6], [7]], [[3, 6, 7]], 6, 3),
            ([([9], True)], [], [[9]], 0, 0),
            ([([3], True)], [[9]], [[3, 9]], 2, 1),
            ([([3, 12], True)], [], [[3]], 0, 0),
        ]:
            with case(turns, answers):
                connection.calls.clear()
                connection.channels.clear()
                connection.now = 1000.0
                connection.ready = [*(lambda each=each: answer(*each) for each in answers), 9]
                found = filtered(connection, Range("log", 0, 10), *turns, prefetch="2")
                assert found == offsets
                assert [call[1] for call in connection.calls].count("count") == asked
                assert connection.now == pytest.approx(1000.0 + 0.02 * waits)


def test_a_full_window_is_acknowledged_before_a_filtered_range_ends(connection, monkeypatch):
    monkeypatch.setattr(reading, "first_offset", lambda *_: 0)
    for prefetch in ("1", "4", "100"):
        connection.calls.clear()
        connection.channels.clear()
        turns = ([3, 5], False), ([], True)
        assert filtered(connection, Range("log", 0, 10), *turns, prefetch=prefetch) == [[3, 5]]
        assert connection.acks()[-1] == 2
        calls = [call[1] for call in connection.calls]
        assert calls.index("count") > calls.index("ack")


@pytest.mark.parametrize("fails", [True, False])
def test_messages_that_retention_dropped_in_a_filtered_range_are_a_loss(
    connection, monkeypatch, caplog, fails
):
    with cases() as case:
        for sent, begins, missing in [([3], 1, 0), ([0], 2, 1), ([0, 1, 2, 3], 5, 4), ([], 1, 0)]:
            for first in (begins, missing):
                with case(sent, first):
                    connection.channels.clear()
                    caplog.clear()
                    monkeypatch.setattr(reading, "first_offset", lambda *_, first=first: first)
                    turns = [(sent, True)]
                    text = f"are gone: {missing} was wanted, and it now begins with {first}"
                    if first > missing and fails:
                        with pytest.raises(DataLoss, match=text):
                            filtered(connection, Range("log", 0, 10), *turns)
                    else:
                        found = filtered(connection, Range("log", 0, 10), *turns, failOnDataLoss=str(fails))
                        assert found == ([sent] if sent else [])
                        assert (text in caplog.text) == (first > missing)


def test_a_filtered_range_whose_end_does_not_come_is_a_loss_or_a_lost_connection(connection, ends):
    for end in (0, 1, 4):
        ends[:] = [end]
        connection.channels.clear()
        with pytest.raises(DataLoss, match=f"ends before {end}, and messages up to 10 were in it"):
            filtered(connection, Range("log", 0, 10), ([0], False))
    ends[:] = [10, 10, 10]
    connection.channels.clear()
    with pytest.raises(ConnectionLost, match=r"has messages from 1 on, and gave none for 6\.0 s"):
        filtered(connection, Range("log", 0, 10), ([0], False))


def test_brokers_without_filters_are_refused_before_they_send_everything(connection):
    with cases() as case:
        for product, version in [("RabbitMQ", (3, 12)), ("another", (0, 0))]:
            with case(product, version):
                connection.product, connection.broker_version = product, version
                with pytest.raises(OptionError, match=r"'streamFilter' needs RabbitMQ 3\.13 or later"):
                    filtered(connection, Range("log", 0, 10))
                assert connection.channels == []


# --- which stream it was ----------------------------------------------------------------------------------


def test_stream_without_marked_message_raises_data_loss_or_logs_warning(connection, monkeypatch, caplog):
    ours = mark_of(4, NO_PROPERTIES, b"x")
    found = {}
    calls = []

    class End:
        def __init__(self, *given):
            calls.append(given[1:])

        def ask(self):
            return found["end"]

        def mark(self, offset):
            calls.append(offset)
            return found["mark"]

        def close(self):
            calls.append("closed")

    def find(*given):
        calls.append(given[1:])
        return found["first"]

    monkeypatch.setattr(reading, "Tail", End)
    monkeypatch.setattr(reading, "first_message", find)
    other, later = StreamMark(4, "other"), StreamMark(9, "later")
    asked, tailed = ("log", 4, 2.0), [("log", 5.0), 4, "closed"]
    with cases() as case:
        for first, end, mark, expected, lost in [
            (ours, 0, None, [asked], False),
            (other, 0, None, [asked], True),
            (later, 0, None, [asked], False),  # Retention has removed it.
            (None, 9, ours, [asked, *tailed], False),
            (None, 9, other, [asked, *tailed], True),
            (None, 9, None, [asked, *tailed], True),
            (None, None, ours, [asked, tailed[0], "closed"], True),
        ]:
            for fails in (True, False):
                with case(first, end, mark, fails):
                    calls.clear()
                    caplog.clear()
                    found |= {"first": first, "end": end, "mark": mark}
                    now = _Reading(options(failOnDataLoss=str(fails)), Range("log", 9, 9, ours))
                    assert list(now.read(connection)) == []
                    if lost and fails:
                        with pytest.raises(DataLoss, match="'log' has another message at 4 than before"):
                            now.check_identity()
                    else:
                        now.check_identity()
                        assert ("keeping what is in it now" in caplog.text) == lost
                    assert calls == expected
                    if lost:
                        now.check_identity()
                        assert calls == expected
        calls.clear()
        for body, lost in ((b"x", False), (b"y", True)):
            with case("read", body):
                connection.turns = [lambda body=body: connection.send(3, 4, 5, body=body)]
                now = _Reading(options(), Range("log", 3, 6, ours))
                [messages] = now.read(connection)
                now._mark = mark_of(4, messages[1].properties, b"x")
                connection.turns = [lambda body=body: connection.send(3, 4, body=body)]
                again = _Reading(options(), Range("log", 3, 5, now._mark))
                list(again.read(connection))
                assert again._at_mark is not None
                if lost:
                    with pytest.raises(DataLoss, match="has another message at 4"):
                        again.check_identity()
                else:
                    again.check_identity()
        with case("no mark"):
            now = _Reading(options(), Range("log", 3, 3))
            assert list(now.read(connection)) == []
            now.check_identity()
        assert calls == []


# --- lost connections -------------------------------------------------------------------------------------


def offsets_of(wanted, **more):
    given = {"reconnectTimeout": "60s", **more}
    return [each.offset for messages in read_range(options(**given), wanted) for each in messages]


def test_read_reconnects_with_growing_pauses_and_continues_at_next_offset(connection, caplog):
    def lose(*offsets):
        return lambda: (connection.send(*offsets), setattr(connection, "lost", "maintenance"))

    gone = BrokerUnreachable("no route")
    connection.attempts = [[lose(0, 1)], gone, gone, [lose(2)], [lose()], [lambda: connection.send(3, 4)]]
    assert offsets_of(Range("log", 0, 5)) == [0, 1, 2, 3, 4]
    assert connection.options.heartbeat == 600
    assert [call[1] for call in connection.calls if call[0] == "sleep"] == [0.05, 0.1, 0.2, 0.05, 0.1]
    starts = [call[3]["x-stream-offset"] for call in connection.calls if call[1] == "consume"]
    assert starts == [0, 2, 3, 3]
    assert "maintenance; connecting again" in caplog.text
    connection.attempts = [gone] * 99
    with pytest.raises(BrokerUnreachable, match=r"no route \(tried again for 60.0 s\)"):
        offsets_of(Range("log", 0, 5))


def test_stream_refused_at_first_attempt_fails_without_retry(connection):
    connection.refuses = {"log": refusal(404, "NOT_FOUND")}
    connection.attempts = [[]]
    with pytest.raises(QueueNotFound, match="cannot read stream 'log': the broker closed the channel: 404"):
        offsets_of(Range("log", 0, 5))
    assert not [call for call in connection.calls if call[0] == "sleep"]

    def lose():
        connection.refuses = {"log": refusal(404, "NOT_FOUND")}
        connection.lost = "maintenance"

    connection.refuses = {}
    connection.attempts = [[lose], [], []]
    with pytest.raises(IndexError):  # It may come back after a restart of the broker.
        offsets_of(Range("log", 0, 5))


# --- the end of a stream ----------------------------------------------------------------------------------


def test_the_end_of_a_stream_is_behind_its_last_message(connection):
    found = Tail(connection, "log", 5.0)
    assert [call[1:] for call in connection.calls] == [
        ("qos", 8192),
        ("consume", "log", {"x-stream-offset": "last"}),
    ]
    connection.calls.clear()
    assert found.ask() is None
    assert [call[1] for call in connection.calls] == ["count"] * 2
    connection.send(3, 4)
    assert found.ask() == 5
    assert connection.acks() == [2]
    assert (1, "ack", 2, "multiple") in connection.calls
    connection.send(2)  # Not the last one, whatever comes.
    assert found.ask() == 5
    assert connection.acks() == [2, 3]
    assert found.ask() == 5
    assert connection.acks() == [2, 3]
    found.close()
    assert connection.calls[-1] == (1, "close")


def test_the_first_messages_of_a_stream_are_waited_for(connection):
    found = Tail(connection, "log", 5.0)
    connection.ready = [2]
    connection.turns = [None, lambda: connection.send(0, 1)]
    assert found.ask() == 2
    assert connection.pauses == [0.1, 0.1]
    late = Tail(connection, "log", 5.0)
    connection.now = 1000.0
    with pytest.raises(ConnectionLost, match="did not deliver from the stream within 5 s"):
        late.ask()
    assert connection.now == pytest.approx(1005.0, abs=0.11)
    with pytest.raises(OptionError, match="'log' is no stream"):
        connection.deliver(b"x")


def test_full_window_of_tail_consumes_again_at_end_of_stream(connection, monkeypatch):
    monkeypatch.setattr(tail, "_WINDOW", 3)
    found = Tail(connection, "log", 5.0)
    connection.send(0, 1)
    assert found.ask() == 2
    assert len(connection.channels) == 1
    connection.send(2, 3, 4)
    connection.calls.clear()
    rounds = iter([[7, 8, 9], [10, 11, 12], [13]])

    def settled():
        if (
            len(connection.channels) == 2
            and (count := sum(call[1] == "count" for call in connection.calls)) % 2
        ):
            connection.send(*(next(rounds, []) if count > 2 else []))
        return 9

    connection.ready = [settled]
    assert found.ask() == 14
    assert [call[:2] for call in connection.calls if call[1] in ("close", "consume", "ack")] == [
        (1, "close"),
        (2, "consume"),
        (2, "ack"),
        (2, "ack"),
        (2, "ack"),
    ]
    assert connection.acks() == [3, 6, 7]


def test_mark_of_earlier_offset_is_read_from_stream_and_of_last_offset_is_known(connection, monkeypatch):
    asked = []

    def find(_connection, *given, sure):
        asked.append((*given, sure))
        return StreamMark(2, "found")

    monkeypatch.setattr(tail, "first_message", find)
    found = Tail(connection, "log", 5.0)
    assert found.mark(0) is None
    connection.send(4, body=b"last")
    assert found.ask() == 5
    assert found.mark(4) == mark_of(4, found._latest[0], b"last")
    assert found.mark(5) is None
    assert asked == []
    assert found.mark(3) == StreamMark(2, "found")
    assert asked == [("log", 3, 5.0, True)]
    connection.channels[0].lost = "the broker cancelled a consumer"
    with pytest.raises(ConnectionLost, match="cancelled"):
        found.mark(3)  # It may have been a message of another stream.


def test_tail_of_a_deleted_stream_acknowledges_nothing(connection):
    found = Tail(connection, "log", 5.0)
    connection.send(4)
    connection.channels[0].lost = "the broker cancelled a consumer"
    with pytest.raises(ConnectionLost, match="cancelled"):
        found.acknowledge()
    assert connection.acks() == []


def test_a_stream_is_replaced_if_it_has_another_message(connection, monkeypatch):
    marks = []
    monkeypatch.setattr(
        Tail, "mark", lambda _self, offset: marks.append(StreamMark(offset, "asked")) or now[0]
    )
    now = [None]
    with cases() as case:
        for before, there, replaced, known in [
            (None, StreamMark(3, "a"), False, False),
            (StreamMark(3, "a"), StreamMark(3, "a"), False, True),
            (StreamMark(3, "a"), StreamMark(4, "b"), False, True),
            (StreamMark(3, "a"), StreamMark(3, "b"), True, False),
            (StreamMark(3, "a"), None, False, False),
        ]:
            with case(before, there):
                marks.clear()
                now[0] = there
                found = Tail(connection, "log", 5.0)
                assert found.replaced(StreamPlace(4, before)) == replaced
                assert marks == ([StreamMark(3, "asked")] if before else [])
                assert found._known == known
                found.replaced(StreamPlace(4, before))
                assert len(marks) == (0 if before is None else 1 if known else 2)
                assert not found.replaced(StreamPlace(4))


def test_the_first_message_is_waited_for(connection):
    with cases() as case:
        for start, sure, sent, expected in [
            ("first", True, [[7]], 7),
            (3, True, [[], [3]], 3),
            (3, False, [[5]], 5),
            (3, False, [], None),
        ]:
            with case(start, sent, sure):
                connection.calls.clear()
                connection.now = 1000.0
                connection.turns = [lambda each=each: connection.send(*each) for each in sent]
                found = first_message(connection, "log", start, 5.0, sure=sure)
                assert (found and found.offset) == expected
                assert [call[1:] for call in connection.calls] == [
                    ("qos", 1),
                    ("consume", "log", {"x-stream-offset": start}),
                    ("close",),
                ]
                assert connection.now == (1005.0 if expected is None else 1000.0)
    with pytest.raises(ConnectionLost, match="did not deliver from stream 'log' within 5 s"):
        first_message(connection, "log", "first", 5.0, sure=True)
    connection.turns = [lambda: connection.deliver(b"x")]
    with pytest.raises(OptionError, match="'log' is no stream"):
        first_message(connection, "log", "first", 5.0)
    connection.turns = [lambda: setattr(connection, "lost", "maintenance")]
    with pytest.raises(ConnectionLost, match="maintenance"):
        first_message(connection, "log", 3, 5.0)


def test_the_last_message_and_an_answer_tell_that_none_is_as_new_as_a_time(connection):
    noon = datetime(2030, 1, 31, 12, tzinfo=timezone.utc)

    def both():
        connection.send(9, consumer=1)
        connection.ready = [lambda: connection.send(4, consumer=0), 9]

    with cases() as case:
        for product, happens, expected, seconds in [
            ("RabbitMQ", lambda: connection.send(4, consumer=0), 4, 0),
            ("RabbitMQ", both, 4, 0),
            ("RabbitMQ", lambda: connection.send(9, consumer=1), None, 0),
            ("RabbitMQ", None, None, 5),
            ("another", None, None, 5),
            ("another", lambda: connection.send(4), 4, 0),
        ]:
            with case(product, expected, seconds):
                connection.calls.clear()
                connection.now, connection.product, connection.ready = 1000.0, product, [9]
                connection.turns = [happens]
                found = first_message(connection, "log", noon, 5.0)
                assert (found and found.offset) == expected
                assert connection.now == 1000.0 + seconds
                starts = [call[3]["x-stream-offset"] for call in connection.calls if call[1] == "consume"]
                assert starts == ([noon, "last"] if product == "RabbitMQ" else [noon])


def test_refusal_of_a_consumer_is_an_error_by_its_cause(connection):
    with cases() as case:
        for code, text, kind, said in [
            (404, "NOT_FOUND", QueueNotFound, "cannot read stream 'log': .* 404 NOT_FOUND. Declare it first"),
            (
                403,
                "ACCESS_REFUSED",
                AccessRefused,
                "cannot read stream 'log': .* needs the permission 'read'",
            ),
            (406, "invalid arg 'x-stream-offset' for queue", OptionError, "'log' is no stream"),
        ]:
            with case(code):
                connection.refuses = {"log": refusal(code, text)}
                with pytest.raises(kind, match=said) as caught:
                    consume(connection.channel(), "log", "last", 1, lambda *_: None)
                assert type(caught.value) is kind
    channel, connection.lost = connection.channel(), "maintenance"
    with pytest.raises(ConnectionLost, match="cannot read stream 'log': maintenance"):
        consume(channel, "log", "last", 1, lambda *_: None)
