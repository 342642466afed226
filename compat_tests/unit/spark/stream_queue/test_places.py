"""The micro-batches of streams, whose ends a test plays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.micro_batches import Limit
from compat_tests.unit.spark.stream_queue.streams import EVERYTHING
from fakeamqp.spark.columns import chosen_columns
from fakeamqp.spark.errors import BrokerUnreachable, DataLoss, OptionError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.stream_queue import micro_batch, super_stream, tails as of_tails
from fakeamqp.spark.stream_queue.micro_batch import StreamMicroBatchReader
from fakeamqp.spark.stream_queue.offsets import StreamMark, StreamPlace, from_json, to_json
from fakeamqp.spark.stream_queue.tails import Answer


class Tails:
    """Streams with these ends, of which each first message is at 2."""

    def __init__(self, **ends):
        self.ends, self.replaced = ends, frozenset[str]()
        self.asked = []
        self.waits = []
        self.later = []
        self.stopped = 0

    def ask(self, begin):
        self.asked.append(dict(begin))
        return Answer(tuple(self.ends), self.known, self.replaced)

    def marks(self, begin, stops):
        assert stops.keys() <= begin.keys()
        return {stream: StreamMark(stop - 1, stream) for stream, stop in stops.items()}

    def firsts(self, streams):
        return dict.fromkeys(streams, 2)

    @property
    def known(self):
        return {stream: end for stream, end in self.ends.items() if end is not None}

    def wait(self, seconds):
        self.waits.append(seconds)
        clock[0] += seconds
        if self.later:
            self.ends = self.later.pop(0)

    def stop(self):
        self.stopped += 1


clock = [1000.0]


@pytest.fixture
def follow(monkeypatch):
    """A function that makes a reader of streams with these ends."""
    clock[0] = 1000.0
    monkeypatch.setattr(micro_batch, "now", lambda: clock[0])

    def make(tails, **more):
        given = {"amqp.url": "amqp://h", "stream": "a,b", "idleTimeout": "2s", "amqp.connectionTimeout": "5s"}
        found = read_options({**given, **more}, streaming=True)
        reader = StreamMicroBatchReader(found, chosen_columns(found))
        reader._tails = tails
        return reader

    return make


def place(stream, following, first=None):
    return StreamPlace(following, StreamMark(following - 1, stream), first)


def at(**places):
    return to_json(
        {stream: StreamPlace(each) if isinstance(each, int) else each for stream, each in places.items()}
    )


def test_a_batch_ends_at_the_ends_of_the_streams(follow):
    """With a mark for each stream that has messages; the others keep their places."""
    a3, b4 = place("a", 3), place("b", 4)
    with cases() as case:
        for ends, start, most, expected in [
            ({"a": 7, "b": 4}, {"a": a3, "b": b4}, 99, {"a": place("a", 7), "b": b4}),
            ({"a": 3, "b": 4}, {"a": a3, "b": b4}, 99, {"a": a3, "b": b4}),
            ({"a": 7, "b": 8}, {"a": a3, "b": b4}, 4, {"a": place("a", 5), "b": place("b", 6)}),
            (
                {"a": 7, "b": None},
                {"a": a3, "b": StreamPlace(0)},
                99,
                {"a": place("a", 7), "b": StreamPlace(0)},
            ),
            # A stream that is new in the batch begins at its first message.
            ({"a": 7, "b": 8}, {"a": a3}, 99, {"a": place("a", 7), "b": place("b", 8, 2)}),
            # One that the options do not name any more keeps its place.
            ({"a": 7}, {"a": a3, "b": b4}, 99, {"a": place("a", 7), "b": b4}),
        ]:
            with case(ends, most):
                tails = Tails(**ends)
                reader = follow(tails)
                found = reader.latestOffset(to_json(start), Limit(most))
                assert from_json(found) == expected
                assert tails.asked == [start]
                assert reader._last == found


def test_streams_that_end_before_their_place_are_asked_again(follow, caplog):
    """For as long as an answer may come before its messages; then they are other ones, or have lost some."""
    with cases() as case:
        for ends, waits, text in [
            (
                2,
                40,
                "stream 'a' was read up to 3 and ends before 2: it was deleted and declared anew, or has",
            ),
            (None, 100, "stream 'a' was read up to 3 and is empty: it was deleted and declared anew, or has"),
        ]:
            for fails in (True, False):
                with case(ends, fails):
                    caplog.clear()
                    clock[0] = 1000.0
                    tails = Tails(a=ends, b=4)
                    reader = follow(tails, failOnDataLoss=str(fails))
                    start = at(a=place("a", 3), b=place("b", 4))
                    if fails:
                        with pytest.raises(DataLoss, match=f"^{text} lost what it had; say failOnDataLoss"):
                            reader.latestOffset(start, EVERYTHING)
                    else:
                        found = from_json(reader.latestOffset(start, EVERYTHING))
                        assert f"{text} lost what it had; reading what is in it now" in caplog.text
                        at_first = ends or 0
                        assert found == {"a": StreamPlace(at_first, None, at_first), "b": place("b", 4)}
                    assert len(tails.waits) == pytest.approx(waits, abs=1)
                    assert set(tails.waits) == {0.05}
    tails = Tails(a=2)
    tails.later = [{"a": 2}, {"a": 5}]
    assert from_json(follow(tails).latestOffset(at(a=place("a", 3)), EVERYTHING)) == {"a": place("a", 5)}
    assert len(tails.waits) == 2


@pytest.mark.parametrize("fails", [True, False])
def test_replaced_stream_raises_data_loss_or_is_read_with_warning(follow, caplog, fails):
    tails = Tails(a=9, b=4)
    tails.replaced = frozenset({"a"})
    reader = follow(tails, failOnDataLoss=str(fails))
    start = at(a=place("a", 3), b=place("b", 4))
    text = "stream 'a' was read up to 3 and has other messages now: it was deleted and declared anew"
    if fails:
        with pytest.raises(DataLoss, match=f"^{text}; say failOnDataLoss=false"):
            reader.latestOffset(start, EVERYTHING)
    else:
        found = from_json(reader.latestOffset(start, EVERYTHING))
        assert found == {"a": place("a", 9, 2), "b": place("b", 4)}
        assert f"{text}; reading what is in it now" in caplog.text
    assert tails.waits == []


def test_available_now_ends_at_offsets_prepared_at_start(follow):
    reader = follow(Tails(a=7, b=8, c=9))
    reader._available = {"a": 5, "b": 3}
    start = at(a=place("a", 3), b=place("b", 4), c=StreamPlace(2))
    assert from_json(reader.latestOffset(start, EVERYTHING)) == {
        "a": place("a", 5),
        "b": place("b", 4),
        "c": StreamPlace(2),
    }


def test_old_versions_of_pyspark_name_neither_start_nor_limit(follow):
    """The first answer is for everything, the next ones honour the option."""
    reader = follow(Tails(a=30), maxMessagesPerTrigger="10")
    reader._last = at(a=place("a", 3))
    assert from_json(reader.latestOffset()) == {"a": place("a", 30)}
    reader._tails.ends = {"a": 60}
    assert from_json(reader.latestOffset()) == {"a": place("a", 40)}
    assert not reader._asked_without_start
    unknown = follow(Tails(a=30))
    assert from_json(unknown.latestOffset()) == {"a": place("a", 30)}
    assert unknown._asked_without_start
    [task] = unknown.partitions(at(a=place("a", 5)), at(a=place("a", 30)))
    assert (task.range.start, task.range.stop, task.range.mark) == (5, 30, StreamMark(29, "a"))
    assert unknown._tails.asked == [{}, {"a": place("a", 5)}]
    assert not unknown._asked_without_start


def test_partitions_of_batch_cover_offsets_from_start_to_end(follow):
    reader = follow(Tails(), minPartitions="1")
    with cases() as case:
        for start, end, ranges in [
            ({"a": 3}, {"a": place("a", 7)}, [("a", 3, 7)]),
            ({}, {"a": place("a", 7)}, [("a", 0, 7)]),
            ({}, {"a": place("a", 7, 2)}, [("a", 2, 7)]),
            ({"a": 3}, {"a": place("a", 7, 2)}, [("a", 2, 7)]),
            ({"a": place("a", 7, 2)}, {"a": place("a", 7, 2)}, []),
            ({"a": 9}, {"a": place("a", 7)}, [("a", 0, 7)]),
            ({"a": 7}, {"a": place("a", 7)}, []),
            ({"a": 3, "b": 4}, {"a": place("a", 7), "b": place("b", 6)}, [("a", 3, 7), ("b", 4, 6)]),
        ]:
            with case(start, end):
                found = reader.partitions(at(**start), at(**end))
                assert [task.range[:3] for task in found] == ranges
                assert [task.range.mark for task in found] == [end[each[0]].mark for each in ranges]
                assert reader._last == at(**end)


def test_a_batch_waits_for_enough_messages_but_not_for_long(follow):
    with cases() as case:
        for end, seconds, due in [
            (12, 0, False),
            (13, 0, True),
            (4, 59.875, False),
            (4, 60, True),
            (3, 99, True),
        ]:
            with case(end, seconds):
                reader = follow(Tails(a=end), minOffsetsPerTrigger="10", maxTriggerDelay="60s")
                reader._triggered_at = clock[0]
                clock[0] += seconds
                found = from_json(reader.latestOffset(at(a=place("a", 3)), EVERYTHING))
                assert found == {"a": place("a", end if due else 3)}
                assert reader._triggered_at == (clock[0] if due and end > 3 else clock[0] - seconds)
    reader = follow(Tails(a=4), minOffsetsPerTrigger="10")
    reader._available, reader._triggered_at = {"a": 4}, clock[0]
    assert from_json(reader.latestOffset(at(a=place("a", 3)), EVERYTHING)) == {"a": place("a", 4)}


def test_progress_has_the_ends_and_the_lag(follow):
    reader = follow(Tails(a=7, b=8))
    reader.latestOffset(at(a=place("a", 3), b=place("b", 8)), Limit(1))
    found = reader.reportLatestOffset()
    assert found["offset"] == {"a": 7, "b": 8}
    assert (found["metrics"]["lag"], found["metrics"]["streams"]["a"]["lag"]) == (3, 3)
    reader._last = None
    assert reader.reportLatestOffset()["metrics"]["lag"] == 0
    reader._tails = Tails()
    assert reader.reportLatestOffset() is None
    reader._tails = None
    assert reader.reportLatestOffset() is None


def test_second_stop_of_reader_has_no_effect_on_tails(follow):
    tails = Tails()
    reader = follow(tails)
    restored = []
    reader._restore_signal = lambda: restored.append(True)
    reader.stop()
    reader.stop()
    assert tails.stopped == 1
    assert restored == [True, True]
    assert reader.commit({}) is None
    follow(None).stop()


def test_the_bytes_of_a_batch_of_streams_are_not_known():
    given = {"amqp.url": "amqp://h", "stream": "a", "maxBytesPerTrigger": "1"}
    with pytest.raises(OptionError, match="option 'maxBytesPerTrigger' is for 'queue'"):
        StreamMicroBatchReader(read_options(given, streaming=True), ())


def test_available_now_asks_for_the_ends_first(monkeypatch, follow):
    made = []

    def tails(options):
        made.append(options)
        return Tails(a=7)

    monkeypatch.setattr("fakeamqp.spark.stream_queue.tails.Tails", tails)
    monkeypatch.setattr(micro_batch, "exit_on_sigterm", lambda: SimpleNamespace)
    for available_now in (True, False):
        reader = follow(None)
        if available_now:
            reader.prepareForTriggerAvailableNow()
        found = reader._connected()
        assert reader._connected() is found
        assert reader._available == ({"a": 7} if available_now else None)
        assert found.asked == ([{}] if available_now else [])
        assert reader._restore_signal is SimpleNamespace
    assert len(made) == 2


# --- the ends of the streams ------------------------------------------------------------------------------


class Attended:
    """Runs jobs at once, on the link that it has at the time."""

    link: Any = "link"

    def __init__(self, _options, name, prepare, due):
        self.name, self.prepare, self.due = name, prepare, due

    def call(self, job):
        return job(self.link)

    def wait(self, seconds):
        self.waited = seconds

    def stop(self):
        self.stopped = True


class Tail:
    """The end of a stream, of which each has a hundred times as many messages as letters before it."""

    made: list[tuple[Any, ...]]
    replaces: frozenset[str]

    def __init__(self, link, stream, patience):
        Tail.made.append((link, stream, patience))
        self.stream, self.calls = stream, list[Any]()

    def ask(self):
        self.calls.append("ask")
        return (ord(self.stream[0]) - ord("a")) * 100 or None

    def replaced(self, place):
        self.calls.append(place)
        return self.stream in Tail.replaces

    def mark(self, offset):
        return StreamMark(offset, f"{self.stream} at {len(Tail.made)}")

    def acknowledge(self):
        self.calls.append("acknowledge")


@pytest.fixture
def tails(monkeypatch):
    """A function that makes the ends of streams."""
    Tail.made, Tail.replaces = [], frozenset()
    checked = []
    clock[0] = 1000.0
    monkeypatch.setattr(of_tails, "AttendedLink", Attended)
    monkeypatch.setattr(of_tails, "Tail", Tail)
    monkeypatch.setattr(of_tails, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(of_tails, "check_is_stream", lambda _, stream: checked.append(stream))

    def make(**more):
        given = {"amqp.url": "amqp://h", "amqp.connectionTimeout": "5s", **more}
        found = of_tails.Tails(read_options(given, streaming=True))
        found.checked = checked
        return found

    return make


def test_all_streams_are_asked_and_empty_ones_checked_once(tails):
    found = tails(stream="a,b,c")
    Tail.replaces = frozenset({"c"})
    begin = {"b": place("b", 7)}
    assert found.known == {}
    answer = found.ask(begin)
    assert answer == Answer(("a", "b", "c"), {"b": 100, "c": 200}, frozenset({"c"}))
    assert found.known == {"b": 100, "c": 200}
    assert found.checked == ["a"]
    assert [each.calls for each in found._tails.values()] == [
        ["ask", StreamPlace(0)],
        ["ask", begin["b"]],
        ["ask", StreamPlace(0)],
    ]
    found.ask({})
    assert Tail.made == [("link", stream, 5.0) for stream in ("a", "b", "c")]
    assert found.checked == ["a"]
    found._attended.prepare(None)  # Another connection.
    found.ask({})
    assert len(Tail.made) == 6


def test_marks_on_new_connection_keep_old_mark_of_replaced_stream(tails):
    found = tails(stream="b,c")
    begin = {"b": place("b", 7), "c": place("c", 8)}
    found.ask(begin)
    assert found.marks(begin, {"b": 50}) == {"b": StreamMark(49, "b at 2")}
    assert found._tails["b"].calls == ["ask", begin["b"]]
    found._attended.prepare(None)
    Tail.replaces = frozenset({"c"})
    assert found.marks(begin, {"b": 50, "c": 60}) == {"b": StreamMark(49, "b at 3"), "c": StreamMark(7, "c")}
    assert found._tails["b"].calls == ["ask", begin["b"]]


def test_deliveries_are_acknowledged_once_a_minute(tails):
    found = tails(stream="b")
    found.ask({})
    with cases() as case:
        for seconds, due, acknowledged in [(0, 60.0, 1), (59, 1.0, 1), (1, 60.0, 2), (30, 30.0, 2)]:
            with case(seconds):
                clock[0] += seconds
                assert found._attended.due() == due
                assert found._tails["b"].calls.count("acknowledge") == acknowledged
    found.wait(0.5)
    found.stop()
    assert (found._attended.waited, found._attended.stopped) == (0.5, True)
    assert found._attended.name == "reader of streams"


def test_firsts_returns_first_offset_of_each_stream(tails, monkeypatch):
    def first(link, stream, start, patience, *, sure):
        assert (link, start, patience, sure) == ("link", "first", 5.0, True)
        return StreamMark(len(stream), "")

    monkeypatch.setattr(of_tails, "first_message", first)
    assert tails(stream="b").firsts(["a", "bb"]) == {"a": 1, "bb": 2}


def test_partitions_of_super_streams_are_listed_before_streams_read_earlier(tails, monkeypatch):
    calls = []

    class Partitions:
        def __init__(self, name, _options):
            self.name, self.streams = name, list[str]()

        def find(self, link):
            calls.append(("find", self.name, link))
            self.streams = [f"{self.name}-0"]

        def look_for_more(self, link):
            calls.append(("more", self.name, link))
            self.streams.append(f"{self.name}-1")

    monkeypatch.setattr(of_tails, "Partitions", Partitions)
    found = tails(superStream="b,c")
    assert found.ask({}).streams == ("b-0", "c-0")
    assert found.ask({"d-0": StreamPlace(1), "c-0": StreamPlace(2)}).streams == (
        "b-0",
        "b-1",
        "c-0",
        "c-1",
        "d-0",
    )
    assert calls == [(what, name, "link") for what in ("find", "more") for name in "bc"]


# --- partitions of super streams --------------------------------------------------------------------------


def test_partitions_of_super_stream_are_its_bound_or_numbered_streams(monkeypatch, caplog):
    """The broker is asked less and less often for more of them."""
    clock[0] = 1000.0
    there = []
    asked = []
    looked = []
    bound = []

    def is_stream(_link, name):
        asked.append(name)
        return not name.endswith("1")

    def exists(_link, name):
        looked.append(clock[0])
        return name in there

    def bound_queues(url, _connection, exchange):
        looked.append(clock[0])
        assert (url, exchange) == ("http://h", "b")
        if isinstance(bound[0], Exception):
            raise bound.pop(0)
        return list(there)

    monkeypatch.setattr(super_stream, "is_stream", is_stream)
    monkeypatch.setattr(super_stream, "_exists", exists)
    monkeypatch.setattr(super_stream, "bound_queues", bound_queues)
    monkeypatch.setattr(super_stream, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with cases() as case:
        for more in ({}, {"managementUrl": "http://h"}):
            with case(more):
                clock[0], bound[:] = 1000.0, ["", BrokerUnreachable("no route"), ""]
                for each in (there, asked, looked):
                    each.clear()
                caplog.clear()
                given = read_options({"amqp.url": "amqp://h", "superStream": "b", **more})
                found = super_stream.Partitions("b", given)
                bound[:] = [""]
                text = "has no partitions: there is no exchange" if more else "has no partition 'b-0'; if its"
                with pytest.raises(OptionError, match=f"^super stream 'b' {text}"):
                    found.find(None)
                there += ["b-0", "b-1", "b-2"]
                assert found.find(None) == ["b-0", "b-2"]
                assert "'b-1' is no stream, so it is no partition of 'b': left out" in caplog.text
                assert asked == ["b-0", "b-1", "b-2"]
                looked.clear()
                for _ in range(215):
                    clock[0] += 1
                    if clock[0] == 1020:
                        bound.insert(0, BrokerUnreachable("no route"))
                    if clock[0] == 1090:
                        there.append("b-3")
                    found.look_for_more(None)
                expected = [1005, 1010, 1020, 1040, 1080, 1140, 1200, 1205, 1215]
                assert sorted(set(looked)) == expected
                assert found.streams == ["b-0", "b-2", "b-3"]
                assert asked == ["b-0", "b-1", "b-2", "b-3"]
                warned = "super stream 'b': new partitions are not found: no route" in caplog.text
                assert warned == bool(more)
    everything = read_options({"amqp.url": "amqp://h", "superStream": "b,c"})
    names = {"b": ["b-0"], "c": ["c-0", "c-1"]}
    monkeypatch.setattr(super_stream.Partitions, "find", lambda self, _link: names[self._name])
    assert super_stream.with_partitions(everything, None).streams == ("b-0", "c-0", "c-1")
    streams = read_options({"amqp.url": "amqp://h", "stream": "a"})
    assert super_stream.with_partitions(streams, None) == streams
