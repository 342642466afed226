"""The micro-batches of streams, whose ends a test plays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.micro_batches import Limit
from compat_tests.unit.spark.stream.streams import EVERYTHING
from compat_tests.unit.spark.wire.played import Connection, refusal
from fakeamqp.spark import micro_batches
from fakeamqp.spark.errors import AccessRefused, BrokerUnreachable, ConnectionLost, DataLoss, OptionError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.stream import StreamMicroBatchReader, discovery, query as queries, tails as of_tails
from fakeamqp.spark.stream.offsets import StreamMark, StreamPlace, from_json, to_json
from fakeamqp.spark.stream.tails import StreamState


class Tails:
    """Streams with these ends, of which each first message is at 2; `losses` are in words."""

    def __init__(self, **ends):
        self.ends, self.losses = ends, dict[str, str]()
        self.asked = []
        self.waits = []
        self.later = []
        self.stopped = 0
        self.takes = 0.0

    def ask(self, begin):
        self.asked.append(dict(begin))
        clock[0], self.takes = clock[0] + self.takes, 0.0
        return {stream: self.state(stream, end, begin.get(stream)) for stream, end in self.ends.items()}

    def state(self, stream, end, place):
        if place is None:
            return StreamState(end, None if end is None else 2, None)
        if (end or 0) < place.next:
            return StreamState(end, 0 if end is None else 2, "has less")
        if stream in self.losses:
            return StreamState(end, 2, self.losses[stream])
        return StreamState(end, None, None)

    def marks(self, begin, stops):
        assert stops.keys() <= begin.keys()
        return {stream: StreamMark(stop - 1, stream) for stream, stop in stops.items()}

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
    monkeypatch.setattr(queries, "now", lambda: clock[0])

    def make(tails, **more):
        given = {"amqp.url": "amqp://h", "stream": "a,b", "idleTimeout": "2s", "amqp.connectionTimeout": "5s"}
        found = read_options({**given, **more}, streaming=True)
        reader = StreamMicroBatchReader(found, chosen_columns(found))
        reader._query()._tails = tails
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
                assert reader._query()._last == found


def test_streams_that_end_before_their_place_are_asked_again(follow, caplog):
    """For as long as an answer may come before its messages; then they are other ones, or have lost some."""
    with cases() as case:
        for ends, waits in [(2, 40), (None, 100)]:
            for fails in (True, False):
                with case(ends, fails):
                    caplog.clear()
                    clock[0] = 1000.0
                    tails = Tails(a=ends, b=4)
                    reader = follow(tails, failOnDataLoss=str(fails))
                    start = at(a=place("a", 3), b=place("b", 4))
                    text = "stream 'a' was read up to 3 and has less"
                    if fails:
                        with pytest.raises(DataLoss, match=f"^{text}; say failOnDataLoss=false to read what"):
                            reader.latestOffset(start, EVERYTHING)
                    else:
                        found = from_json(reader.latestOffset(start, EVERYTHING))
                        assert f"{text}; reading what is in it now" in caplog.text
                        at_first = ends or 0
                        assert found == {"a": StreamPlace(at_first, None, at_first), "b": place("b", 4)}
                    assert len(tails.waits) == pytest.approx(waits, abs=1)
                    assert set(tails.waits) == {0.05}
    tails = Tails(a=2)
    tails.takes = 60.0  # The connection was lost, and the answer came late.
    tails.later = [{"a": 2}, {"a": 5}]
    assert from_json(follow(tails).latestOffset(at(a=place("a", 3)), EVERYTHING)) == {"a": place("a", 5)}
    assert len(tails.waits) == 2


@pytest.mark.parametrize("fails", [True, False])
def test_replaced_stream_raises_data_loss_or_is_read_with_warning(follow, caplog, fails):
    tails = Tails(a=9, b=4)
    tails.losses = {"a": "has others"}
    reader = follow(tails, failOnDataLoss=str(fails))
    start = at(a=place("a", 3), b=place("b", 4))
    text = "stream 'a' was read up to 3 and has others"
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
    reader._query()._available = {"a": 5, "b": 3}
    start = at(a=place("a", 3), b=place("b", 4), c=StreamPlace(2))
    assert from_json(reader.latestOffset(start, EVERYTHING)) == {
        "a": place("a", 5),
        "b": place("b", 4),
        "c": StreamPlace(2),
    }


def test_old_versions_of_pyspark_name_neither_start_nor_limit(follow):
    """The first answer is for everything, the next ones honour the option."""
    reader = follow(Tails(a=30), maxMessagesPerTrigger="10")
    reader._query()._last = at(a=place("a", 3))
    assert from_json(reader.latestOffset()) == {"a": place("a", 30)}
    reader._query()._tails.ends = {"a": 60}
    assert from_json(reader.latestOffset()) == {"a": place("a", 40)}
    assert not reader._query()._asked_without_start
    unknown = follow(Tails(a=30))
    assert from_json(unknown.latestOffset()) == {"a": place("a", 30)}
    assert unknown._query()._asked_without_start
    [task] = unknown.partitions(at(a=place("a", 5)), at(a=place("a", 30)))
    assert (task.range.start, task.range.stop, task.range.mark) == (5, 30, StreamMark(29, "a"))
    assert unknown._query()._tails.asked == [{}, {"a": place("a", 5)}]
    assert not unknown._query()._asked_without_start


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
                assert reader._query()._last == at(**end)


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
                reader._query()._triggered_at = clock[0]
                clock[0] += seconds
                found = from_json(reader.latestOffset(at(a=place("a", 3)), EVERYTHING))
                assert found == {"a": place("a", end if due else 3)}
                assert reader._query()._triggered_at == (clock[0] if due and end > 3 else clock[0] - seconds)
    reader = follow(Tails(a=4), minOffsetsPerTrigger="10")
    running = reader._query()
    running._available, running._triggered_at = {"a": 4}, clock[0]
    assert from_json(reader.latestOffset(at(a=place("a", 3)), EVERYTHING)) == {"a": place("a", 4)}


def test_progress_has_the_ends_and_the_lag(follow):
    reader = follow(Tails(a=7, b=8))
    reader.latestOffset(at(a=place("a", 3), b=place("b", 8)), Limit(1))
    found = reader.reportLatestOffset()
    assert found["offset"] == {"a": 7, "b": 8}
    assert (found["metrics"]["lag"], found["metrics"]["streams"]["a"]["lag"]) == (3, 3)
    reader._query()._last = None
    assert reader.reportLatestOffset()["metrics"]["lag"] == 0
    reader._query()._tails = Tails()
    assert reader.reportLatestOffset() is None


def test_second_stop_of_reader_has_no_effect_on_tails(follow):
    tails = Tails()
    reader = follow(tails)
    restored = []
    reader._restore_signal = lambda: restored.append(True)
    reader.stop()
    reader.stop()
    assert tails.stopped == 1
    assert restored == [True]
    assert reader.commit({}) is None


def test_available_now_asks_for_the_ends_first(monkeypatch, follow):
    made = []

    def tails(options):
        made.append(Tails(a=7))
        return made[-1]

    monkeypatch.setattr(queries, "Tails", tails)
    monkeypatch.setattr(micro_batches, "exit_on_sigterm", lambda: SimpleNamespace)
    for available_now in (True, False):
        reader = follow(None)
        reader._running = None
        made.clear()
        if available_now:
            reader.prepareForTriggerAvailableNow()
        found = reader._query()
        assert reader._query() is found
        assert found._available == ({"a": 7} if available_now else None)
        assert made[0].asked == ([{}] if available_now else [])
        assert reader._restore_signal is SimpleNamespace
        assert len(made) == 1


# --- the ends of the streams ------------------------------------------------------------------------------


class Attended:
    """Runs jobs at once, on the connection that it has at the time."""

    connection: Any = "connection"

    def __init__(self, _options, name, prepare, due):
        self.name, self.prepare, self.due = name, prepare, due

    def call(self, job):
        return job(self.connection)

    def wait(self, seconds):
        self.waited = seconds

    def stop(self):
        self.stopped = True


class Tail:
    """The end of a stream, of which each has a hundred times as many messages as letters before it."""

    made: list[tuple[Any, ...]]
    replaces: frozenset[str]

    def __init__(self, connection, stream, patience):
        Tail.made.append((connection, stream, patience))
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
    clock[0] = 1000.0
    monkeypatch.setattr(of_tails, "AttendedConnection", Attended)
    monkeypatch.setattr(of_tails, "Tail", Tail)
    monkeypatch.setattr(of_tails, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(of_tails, "first_offset", lambda *given: len(given[1]))

    def make(**more):
        given = {"amqp.url": "amqp://h", "amqp.connectionTimeout": "5s", **more}
        return of_tails.Tails(read_options(given, streaming=True))

    return make


def test_state_of_a_stream_says_where_it_begins_if_it_is_new_or_another(tails):
    """Its end, and its first offset: here as many as its name has letters."""
    found = tails(stream="a,bb,cc,dd")
    Tail.replaces = frozenset({"dd"})
    anew = ": it was deleted and declared anew"
    with cases() as case:
        for stream, begin, end, first, loss in [
            ("a", None, None, None, None),
            ("a", StreamPlace(0), None, None, None),
            ("a", place("a", 3), None, 0, f"is empty{anew}, or has lost what it had"),
            ("bb", None, 100, 2, None),
            ("bb", place("bb", 7), 100, None, None),
            ("bb", place("bb", 100), 100, None, None),
            ("bb", place("bb", 101), 100, 2, f"ends before 100{anew}, or has lost what it had"),
            ("dd", place("dd", 7), 300, 2, f"has other messages now{anew}"),
        ]:
            with case(stream, begin):
                states = found.ask({stream: begin} if begin else {})
                assert list(states) == ["a", "bb", "cc", "dd"]
                assert states[stream] == StreamState(end, first, loss)
    assert found.known == {"bb": 100, "cc": 200, "dd": 300}
    assert Tail.made == [("connection", stream, 5.0) for stream in ("a", "bb", "cc", "dd")]
    found._attended.prepare(None)  # Another connection.
    found.ask({})
    assert len(Tail.made) == 8


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


@pytest.fixture
def found_streams(tails, monkeypatch):
    """The looks of discoveries, of which each finds one more stream: NAME-0, NAME-1 and so on."""
    looks = []

    class Discovery:
        def __init__(self, options, name):
            self.name, self.streams = name or "pattern", list[str]()

        def look(self, connection):
            looks.append((self.name, connection))
            self.streams.append(f"{self.name}-{len(self.streams)}")
            return self.streams

    monkeypatch.setattr(discovery, "Discovery", Discovery)
    return looks


def test_partitions_of_super_streams_are_listed_before_streams_read_earlier(tails, found_streams):
    found = tails(superStream="b,c")
    assert [*found.ask({})] == ["b-0", "c-0"]
    before = {"d-0": StreamPlace(1), "c-0": StreamPlace(2)}
    assert [*found.ask(before)] == ["b-0", "b-1", "c-0", "c-1", "d-0"]
    assert found_streams == [("b", "connection"), ("c", "connection")] * 2


def test_streams_read_earlier_are_asked_as_long_as_the_pattern_matches(tails, found_streams):
    found = tails(streamPattern="p.*-[0-9]", managementUrl="http://h")
    assert [*found.ask({})] == ["pattern-0"]
    before = {"p-7": StreamPlace(1), "p-17": StreamPlace(1), "q-1": StreamPlace(1)}
    assert [*found.ask(before)] == ["pattern-0", "pattern-1", "p-7"]
    assert found_streams == [("pattern", "connection")] * 2


# --- streams that the broker knows ------------------------------------------------------------------------


def test_partitions_of_super_stream_are_its_bound_or_numbered_streams(monkeypatch, caplog):
    """The broker is asked less and less often for more of them."""
    clock[0] = 1000.0
    there = []
    asked = []
    looked = []
    bound = [""]

    def queue_type(_connection, name):
        asked.append(name)
        return {"1": "quorum", "2": None}.get(name[-1], "stream")

    def exists(_connection, name):
        looked.append(clock[0])
        return name in there

    def bound_queues(url, _options, exchange):
        looked.append(clock[0])
        assert (url, exchange) == ("http://h", "b")
        if isinstance(bound[0], Exception):
            raise bound.pop(0)
        return list(there)

    monkeypatch.setattr(discovery, "queue_type", queue_type)
    monkeypatch.setattr(discovery, "_exists", exists)
    monkeypatch.setattr(discovery, "bound_queues", bound_queues)
    monkeypatch.setattr(discovery, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with cases() as case:
        for more in ({}, {"managementUrl": "http://h"}):
            with case(more):
                clock[0], bound[:] = 1000.0, [""]
                for each in (there, asked, looked):
                    each.clear()
                caplog.clear()
                given = read_options({"amqp.url": "amqp://h", "superStream": "b", **more})
                [found] = discovery.discoveries(given)
                text = "has no partitions: there is no exchange" if more else "has no partition 'b-0'; if its"
                with pytest.raises(OptionError, match=f"^super stream 'b' {text}"):
                    found.look(None)
                there += ["b-0", "b-1", "b-2"]
                assert found.look(None) == ["b-0", "b-2"]
                assert "'b-1' is no stream, so it is no partition of 'b': left out" in caplog.text
                assert asked == ["b-0", "b-1", "b-2"]
                looked.clear()
                for _ in range(215):
                    clock[0] += 1
                    if clock[0] == 1020:
                        bound.insert(0, BrokerUnreachable("no route"))
                    if clock[0] == 1090:
                        there.append("b-3")
                    found.look(None)
                expected = [1005, 1010, 1020, 1040, 1080, 1140, 1200, 1205, 1215]
                assert sorted(set(looked)) == expected
                assert found.look(None) == ["b-0", "b-2", "b-3"]
                assert asked == ["b-0", "b-1", "b-2", "b-3"]
                assert ("'b': new streams are not found: no route" in caplog.text) == bool(more)


def test_partition_that_was_found_before_a_lost_connection_stays_found(monkeypatch):
    [found] = discovery.discoveries(read_options({"amqp.url": "amqp://h", "superStream": "b"}))
    answers = [True, ConnectionLost("maintenance"), True, False]

    def exists(_connection, _name):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(discovery, "_exists", exists)
    monkeypatch.setattr(discovery, "queue_type", lambda *_: "stream")
    with pytest.raises(ConnectionLost):
        found.look(None)
    assert found.look(None) == ["b-0", "b-1"]


def test_streams_that_match_are_those_that_the_http_api_names(monkeypatch):
    names = []

    def streams_matching(url, options, pattern):
        assert (url, options.client_name, pattern) == ("http://h", "spark", "b.*")
        return list(names)

    monkeypatch.setattr(discovery, "streams_matching", streams_matching)
    monkeypatch.setattr(discovery, "_FIRST_PAUSE", 0.0)
    given = {"amqp.url": "amqp://h", "streamPattern": "b.*", "managementUrl": "http://h"}
    [found] = discovery.discoveries(read_options(given))
    words = r"^option 'streamPattern' is 'b\.\*', and matches the whole name of no stream$"
    with pytest.raises(OptionError, match=words):
        found.look(None)
    names += ["b2", "b1"]
    assert found.look(None) == ["b2", "b1"]
    names.insert(0, "b0")
    del names[1]
    found.look(None)
    assert found.look(None) == ["b2", "b1", "b0"]


def test_options_have_the_streams_of_all_discoveries(monkeypatch):
    everything = read_options({"amqp.url": "amqp://h", "superStream": "b,c"})
    names = {"b": ["b-0"], "c": ["c-0", "c-1"]}
    monkeypatch.setattr(discovery.Discovery, "look", lambda self, _connection: names[self._super_stream])
    assert discovery.with_found_streams(everything, None).streams == ("b-0", "c-0", "c-1")
    streams = read_options({"amqp.url": "amqp://h", "stream": "a"})
    assert discovery.with_found_streams(streams, None) == streams


def test_queue_exists_if_a_passive_declaration_of_it_is_accepted():
    connection = Connection()
    assert discovery._exists(connection, "b-0")
    assert [call[1:] for call in connection.calls] == [("count", "b-0"), ("close",)]
    connection.ready = [refusal(404, "NOT_FOUND")]
    assert not discovery._exists(connection, "b-0")
    connection.ready = [refusal(403, "ACCESS_REFUSED")]
    with pytest.raises(AccessRefused, match="cannot look for partition 'b-0': "):
        discovery._exists(connection, "b-0")
