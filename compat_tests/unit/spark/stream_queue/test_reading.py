"""Reading of streams on a connection that the test plays: windows, gaps, idle streams, and the end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.links import Attempts, encoded
from fakeamqp.spark import queue_types, retries
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, DataLoss, OptionError, QueueRefused
from fakeamqp.spark.options import read_options
from fakeamqp.spark.stream_queue import reading, tail
from fakeamqp.spark.stream_queue.offsets import StreamMark, StreamPlace, mark_of
from fakeamqp.spark.stream_queue.ranges import Range
from fakeamqp.spark.stream_queue.reading import _Reading, read_range
from fakeamqp.spark.stream_queue.tail import Tail, consume, first_message


class Streams(Attempts):
    """A connection to streams."""

    def send(self, *offsets, channel=-1, body=b"x"):
        for offset in offsets:
            self.deliver(body, properties={"headers": {"x-stream-offset": offset}}, channel=channel)

    def acks(self):
        return [call[2] for call in self.calls if call[1] == "basic_ack"]


@pytest.fixture
def link(monkeypatch):
    link = Streams()
    for module in (reading, tail, retries):
        monkeypatch.setattr(module, "time", link)
    monkeypatch.setattr(reading, "lend", link)
    return link


def options(**more):
    given = {"amqp.url": "amqp://h", "stream": "log", "idleTimeout": "2s", "amqp.connectionTimeout": "5s"}
    return read_options({**given, **more})


def read(link, wanted, **more):
    found = _Reading(options(**more), wanted)
    return found, [[each.offset for each in messages] for messages in found.read(link)]


# --- a range ----------------------------------------------------------------------------------------------


def test_the_window_covers_the_range_and_is_acknowledged_by_halves(link):
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
                link.calls.clear()
                link.pauses.clear()
                link.turns = [lambda each=each: link.send(*each) for each in sent]
                found, offsets = read(link, Range("log", start, stop), prefetch=prefetch)
                assert offsets == [list(range(start, stop))]
                assert [call[1:] for call in link.calls[:2]] == [
                    ("basic_qos", window),
                    ("consume", "log", {"x-stream-offset": start}),
                ]
                assert link.acks() == acks
                assert link.calls[-1][1] == "close"
                assert (found.next, found.served) == (stop, True)
                assert set(link.pauses) == {2.0}


def test_a_window_has_at_most_a_thousand_messages(link):
    link.turns = [lambda: link.send(*range(2000))]
    read(link, Range("log", 0, 2000), prefetch="5000")
    assert link.calls[0][1:] == ("basic_qos", 1000)


def test_messages_come_in_lists_of_so_many_rows_or_bytes(link, monkeypatch):
    size = 1 + len(encoded())
    with cases() as case:
        for rows, octets, expected in [
            (2, 999, [[0, 1], [2, 3], [4, 5]]),
            (4, 999, [[0, 1, 2, 3], [4, 5]]),
            (99, 2 * size, [[0, 1], [2, 3], [4, 5]]),
            (99, 2 * size + 1, [[0, 1, 2], [3, 4, 5]]),
        ]:
            with case(rows, octets):
                monkeypatch.setattr(reading, "_ROWS", rows)
                monkeypatch.setattr(reading, "_OCTETS", octets)
                link.turns = [lambda each=each: link.send(each) for each in range(6)]
                assert read(link, Range("log", 0, 6))[1] == expected


def test_messages_are_as_they_were_published(link):
    link.turns = [lambda: link.send(4, body=b"abc")]
    found = _Reading(options(), Range("log", 4, 5))
    [[message]] = found.read(link)
    assert (message.body, message.queue, message.offset, message.tag) == (b"abc", "log", 4, 1)
    assert (message.redelivered, message.received_at, message.route) == (False, 7, b"\x00\x01q")
    assert queue_types.taken_offset(message.properties)[0] is None


def test_empty_range_sends_no_request(link):
    found, offsets = read(link, Range("log", 5, 5))
    assert (offsets, link.calls, found.served) == ([], [], False)


def test_delivery_without_stream_offset_is_refused_as_no_stream(link):
    link.turns = [lambda: link.deliver(b"x")]
    with pytest.raises(OptionError, match="'log' is no stream"):
        read(link, Range("log", 0, 5))


# --- offsets that do not come -----------------------------------------------------------------------------


@pytest.mark.parametrize("fails", [True, False])
def test_a_gap_is_a_loss_if_the_stream_begins_behind_it(link, monkeypatch, caplog, fails):
    asked = []
    first = [StreamMark(0, "")]

    def find(_link, stream, start, patience, *, sure):
        asked.append((stream, start, patience, sure))
        return first[0]

    monkeypatch.setattr(reading, "first_message", find)
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
                first[0] = StreamMark(begins, "")
                link.turns = [lambda sent=sent: link.send(*sent)]
                text = f"are gone: {missing} was wanted, and it now begins with {begins}"
                if begins > missing and fails:
                    with pytest.raises(
                        DataLoss, match=f"messages of stream 'log' {text}; say failOnDataLoss"
                    ):
                        read(link, Range("log", 0, 5))
                else:
                    assert read(link, Range("log", 0, 5), failOnDataLoss=str(fails))[1] == [offsets]
                    warned = f"{text}; reading on at {found}" in caplog.text
                    assert warned == (begins > missing)
                assert asked == [("log", "first", 5.0, True)]
        with case("no first message"):
            first[0] = None
            link.turns = [lambda: link.send(1, 2, 3, 4)]
            assert read(link, Range("log", 0, 5))[1] == [[1, 2, 3, 4]]


def test_a_gap_before_a_lost_connection_is_looked_into_afterwards(link, monkeypatch):
    monkeypatch.setattr(reading, "first_message", lambda *_, **__: StreamMark(3, ""))
    found = _Reading(options(), Range("log", 0, 5))

    def lose():
        link.send(0, 3)
        link.lost = "maintenance"

    link.turns = [lose]
    with pytest.raises(ConnectionLost, match="maintenance"):
        list(found.read(link))
    link.lost = None
    with pytest.raises(DataLoss, match="1 was wanted, and it now begins with 3"):
        list(found.read(link))


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


def test_idle_stream_raises_connection_lost_or_data_loss_by_its_end(link, ends, caplog):
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
                    link.turns = [lambda: link.send(0), *[None] * len(found)]
                    if offsets == [0, 1, 2, 3, 4]:
                        link.turns.append(lambda: link.send(1, 2, 3, 4))
                    kind = ConnectionLost if text == late else DataLoss
                    if text is not None and (fails or kind is ConnectionLost):
                        with pytest.raises(kind, match=text):
                            read(link, Range("log", 0, 5), failOnDataLoss=str(fails))
                    else:
                        done, lists = read(link, Range("log", 0, 5), failOnDataLoss=str(fails))
                        assert lists == [offsets]
                        assert done.next == 5
                        assert (text or "") in caplog.text
                        assert ("leaving the rest out" in caplog.text) == (text is not None)
                    assert ends == []


def test_a_stream_that_has_all_of_a_range_but_not_the_last_offsets_goes_on(link, ends):
    """They may be notes of the broker's own: then the end is behind them."""
    ends[:] = [5, 7]
    link.turns = [lambda: link.send(0, 1, 2), None, None, lambda: link.send(3, 4)]
    assert read(link, Range("log", 0, 5))[1] == [[0, 1, 2, 3, 4]]


def test_time_of_busy_spark_does_not_count_as_idle_time(link, ends, monkeypatch):
    monkeypatch.setattr(reading, "_ROWS", 1)
    link.turns = [lambda: link.send(0), lambda: link.send(1)]
    found = []
    for messages in _Reading(options(), Range("log", 0, 2)).read(link):
        found.append(messages[0].offset)
        link.now += 100.0
    assert found == [0, 1]
    assert link.pauses == [2.0, 2.0]


# --- which stream it was ----------------------------------------------------------------------------------


def test_stream_without_marked_message_raises_data_loss_or_logs_warning(link, monkeypatch, caplog):
    properties = link.channel() and b"\x00\x00"
    ours = mark_of(4, properties, b"x")
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

    def find(*given, sure):
        calls.append((*given[1:], sure))
        return found["first"]

    monkeypatch.setattr(reading, "Tail", End)
    monkeypatch.setattr(reading, "first_message", find)
    other, later = StreamMark(4, "other"), StreamMark(9, "later")
    asked, tailed = ("log", 4, 2.0, False), [("log", 5.0), 4, "closed"]
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
                    if lost and fails:
                        with pytest.raises(DataLoss, match="'log' has another message at 4 than before"):
                            now.check_identity(link)
                    else:
                        now.check_identity(link)
                        assert ("keeping what is in it now" in caplog.text) == lost
                    assert calls == expected
                    if lost:
                        now.check_identity(link)
                        assert calls == expected
        calls.clear()
        for body, lost in ((b"x", False), (b"y", True)):
            with case("read", body):
                link.turns = [lambda body=body: link.send(3, 4, 5, body=body)]
                now = _Reading(options(), Range("log", 3, 6, ours))
                [messages] = now.read(link)
                now._mark = mark_of(4, messages[1].properties, b"x")
                link.turns = [lambda body=body: link.send(3, 4, body=body)]
                again = _Reading(options(), Range("log", 3, 5, now._mark))
                list(again.read(link))
                assert again._at_mark is not None
                if lost:
                    with pytest.raises(DataLoss, match="has another message at 4"):
                        again.check_identity(link)
                else:
                    again.check_identity(link)
        with case("no mark"):
            _Reading(options(), Range("log", 3, 5)).check_identity(link)
        assert calls == []


# --- lost connections -------------------------------------------------------------------------------------


def offsets_of(wanted, **more):
    given = {"reconnectTimeout": "60s", **more}
    return [each.offset for messages in read_range(options(**given), wanted) for each in messages]


def test_read_reconnects_with_growing_pauses_and_continues_at_next_offset(link, caplog):
    def lose(*offsets):
        return lambda: (link.send(*offsets), setattr(link, "lost", "maintenance"))

    gone = BrokerUnreachable("no route")
    link.attempts = [[lose(0, 1)], gone, gone, [lose(2)], [lose()], [lambda: link.send(3, 4)]]
    assert offsets_of(Range("log", 0, 5)) == [0, 1, 2, 3, 4]
    assert link.options.heartbeat == 600
    assert [call[1] for call in link.calls if call[0] == "sleep"] == [0.05, 0.1, 0.2, 0.05, 0.1]
    starts = [call[3]["x-stream-offset"] for call in link.calls if call[1] == "consume"]
    assert starts == [0, 2, 3, 3]
    assert "maintenance; connecting again" in caplog.text
    link.attempts = [gone] * 99
    with pytest.raises(BrokerUnreachable, match=r"no route \(tried again for 60.0 s\)"):
        offsets_of(Range("log", 0, 5))


def test_stream_refused_at_first_attempt_fails_without_retry(link):
    link.refuses = {"log": "404 NOT_FOUND"}
    link.attempts = [[]]
    with pytest.raises(QueueRefused, match="cannot read stream 'log': 404 NOT_FOUND"):
        offsets_of(Range("log", 0, 5))
    assert not [call for call in link.calls if call[0] == "sleep"]

    def lose():
        link.refuses = {"log": "404 NOT_FOUND"}
        link.lost = "maintenance"

    link.refuses = {}
    link.attempts = [[lose], [], []]
    with pytest.raises(IndexError):  # It may come back after a restart of the broker.
        offsets_of(Range("log", 0, 5))


# --- the end of a stream ----------------------------------------------------------------------------------


def test_the_end_of_a_stream_is_behind_its_last_message(link):
    found = Tail(link, "log", 5.0)
    assert [call[1:] for call in link.calls] == [
        ("basic_qos", 8192),
        ("consume", "log", {"x-stream-offset": "last"}),
    ]
    link.calls.clear()
    assert found.ask() is None
    assert [call[1] for call in link.calls] == ["queue_declare"] * 2
    link.send(3, 4)
    assert found.ask() == 5
    assert link.acks() == [2]
    assert (1, "basic_ack", 2, "multiple") in link.calls
    link.send(2)  # Not the last one, whatever comes.
    assert found.ask() == 5
    assert link.acks() == [2, 3]
    assert found.ask() == 5
    assert link.acks() == [2, 3]
    found.close()
    assert link.calls[-1] == (1, "close")


def test_the_first_messages_of_a_stream_are_waited_for(link):
    found = Tail(link, "log", 5.0)
    link.ready = [2]
    link.turns = [None, lambda: link.send(0, 1)]
    assert found.ask() == 2
    assert link.pauses == [0.1, 0.1]
    late = Tail(link, "log", 5.0)
    link.now = 1000.0
    with pytest.raises(ConnectionLost, match="did not deliver from the stream within 5 s"):
        late.ask()
    assert link.now == pytest.approx(1005.0, abs=0.11)
    link.deliver(b"x")
    with pytest.raises(OptionError, match="'log' is no stream"):
        late.ask()


def test_full_window_of_tail_consumes_again_at_end_of_stream(link, monkeypatch):
    monkeypatch.setattr(tail, "_WINDOW", 3)
    found = Tail(link, "log", 5.0)
    link.send(0, 1)
    assert found.ask() == 2
    assert len(link.channels) == 1
    link.send(2, 3, 4)
    link.calls.clear()
    rounds = iter([[7, 8, 9], [10, 11, 12], [13]])

    def settled():
        if len(link.channels) == 2 and (count := sum(call[1] == "queue_declare" for call in link.calls)) % 2:
            link.send(*(next(rounds, []) if count > 2 else []))
        return 9

    link.ready = [settled]
    assert found.ask() == 14
    assert [call[:2] for call in link.calls if call[1] in ("close", "consume", "basic_ack")] == [
        (1, "close"),
        (2, "consume"),
        (2, "basic_ack"),
        (2, "basic_ack"),
        (2, "basic_ack"),
    ]
    assert link.acks() == [3, 6, 7]


def test_mark_of_earlier_offset_is_read_from_stream_and_of_last_offset_is_known(link, monkeypatch):
    asked = []

    def find(_link, *given, sure):
        asked.append((*given, sure))
        return StreamMark(2, "found")

    monkeypatch.setattr(tail, "first_message", find)
    found = Tail(link, "log", 5.0)
    assert found.mark(0) is None
    link.send(4, body=b"last")
    assert found.ask() == 5
    assert found.mark(4) == mark_of(4, found._latest[0], b"last")
    assert found.mark(5) is None
    assert asked == []
    assert found.mark(3) == StreamMark(2, "found")
    assert asked == [("log", 3, 5.0, True)]


def test_a_stream_is_replaced_if_it_has_another_message(link, monkeypatch):
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
                found = Tail(link, "log", 5.0)
                assert found.replaced(StreamPlace(4, before)) == replaced
                assert marks == ([StreamMark(3, "asked")] if before else [])
                assert found._known == known
                found.replaced(StreamPlace(4, before))
                assert len(marks) == (0 if before is None else 1 if known else 2)
                assert not found.replaced(StreamPlace(4))


def test_the_first_message_at_an_offset_or_a_time(link):
    with cases() as case:
        for start, sent, sure, expected, acks in [
            ("first", [[7]], True, 7, []),
            (3, [[1], [2], [3]], True, 3, [1, 2]),
            (3, [[1], [5]], False, 5, [1]),
            ("first", [], False, None, []),
            (3, [[1]], False, None, [1]),
        ]:
            with case(start, sent, sure):
                link.calls.clear()
                link.now = 1000.0
                link.turns = [lambda each=each: link.send(*each) for each in sent]
                found = first_message(link, "log", start, 5.0, sure=sure)
                assert (found and found.offset) == expected
                assert link.acks() == acks
                assert [call[1:] for call in link.calls[:2]] == [
                    ("basic_qos", 1),
                    ("consume", "log", {"x-stream-offset": start}),
                ]
                assert [call[1] for call in link.calls].count("queue_declare") == 2
                assert link.calls[-1][1] == "close"
                assert link.now == (1005.0 if expected is None else 1000.0)
        with (
            case("none comes"),
            pytest.raises(ConnectionLost, match="did not deliver from the stream within 5"),
        ):
            first_message(link, "log", "first", 5.0, sure=True)
        for sure in (True, False):
            link.turns = [lambda: link.deliver(b"x")]
            with case("no stream", sure), pytest.raises(OptionError, match="'log' is no stream"):
                first_message(link, "log", "first", 5.0, sure=sure)
        with case("lost"):
            link.turns = [lambda: setattr(link, "lost", "maintenance")]
            with pytest.raises(ConnectionLost, match="maintenance"):
                first_message(link, "log", "first", 5.0, sure=False)


@pytest.mark.parametrize(
    ("error", "is_open", "kind", "text"),
    [
        ("404 NOT_FOUND", True, QueueRefused, "cannot read stream 'log': 404 NOT_FOUND"),
        ("404 NOT_FOUND", False, ConnectionLost, "cannot read stream 'log': 404 NOT_FOUND"),
        ("invalid arg x-stream-offset", True, OptionError, "'log' is no stream"),
    ],
)
def test_refused_or_cancelled_stream_consumer_raises_matching_error(
    link, monkeypatch, error, is_open, kind, text
):
    link.refuses = {"log": error}
    open_channel = link.channel

    def channel():
        found = open_channel()
        found.connection = SimpleNamespace(is_open=is_open)
        return found

    monkeypatch.setattr(link, "channel", channel)
    with pytest.raises(kind, match=text) as caught:
        consume(link, "log", "last", 1, lambda *_: None)
    assert type(caught.value) is kind
    link.refuses = {}
    consume(link, "log", "last", 1, lambda *_: None)
    link.channels[-1].cancelled(None)
    assert link.lost == "the broker cancelled a consumer; was stream 'log' deleted?"
    link.lost = "maintenance"
    link.channels[-1].cancelled(None)
    assert link.lost == "maintenance"
