"""Where reading begins and ends, from options: words, offsets and times."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.stream import positions as of_streams
from fakeamqp.spark.stream.offsets import StreamMark, StreamPlace
from fakeamqp.spark.stream.positions import ends, positions, starts, stored_between
from fakeamqp.spark.stream.ranges import Range

BOTH = ["a", "b"]


def test_offsets_are_words_or_json():
    words = ("earliest", "latest")
    last = 2**63 - 1
    with cases() as case:
        for text, found in [
            ("earliest", {"a": "earliest", "b": "earliest"}),
            (" LATEST ", {"a": "latest", "b": "latest"}),
            ('{"b": "Latest", "a": 0}', {"a": 0, "b": "latest"}),
            ('{"a": -2, "b": -1}', {"a": "earliest", "b": "latest"}),
            (f'{{"a": 7, "b": {last}}}', {"a": 7, "b": last}),
        ]:
            with case(text):
                assert positions("starting", text, None, words, BOTH) == found
        for text, said in [
            (
                "earlies",
                "has 'earlies' as an offset; it has to be earliest, latest, or .*; did you mean 'ear",
            ),
            ("x", 'such as {"a": 17, "b": 17}$'),
            ("[1]", r"has '\[1\]' as an offset; it has to be"),
            ("17", "has '17' as an offset; it has to be"),
            ('{"a": 1', "it has to be earliest, latest, or JSON"),
            ('{"a": 1}', "option 'startingOffsets' has nothing for 'b'$"),
            ("{}", "option 'startingOffsets' has nothing for 'a', 'b'$"),
            (
                '{"a": 1, "b": 1, "bb": 1}',
                "names 'bb', which is not among the streams to read; did you mean 'b'",
            ),
            *(
                (f'{{"a": 1, "b": {value}}}', f"has {shown} as an offset; it has to be earliest, latest")
                for value, shown in [
                    ("-3", "-3"),
                    (str(last + 1), str(last + 1)),
                    ("true", "True"),
                    ("1.5", "1.5"),
                    ('"soon"', "'soon'"),
                    ("null", "None"),
                ]
            ),
        ]:
            with case(text), pytest.raises(OptionError, match=said):
                positions("starting", text, None, words, BOTH)
        with (
            case("one word"),
            pytest.raises(OptionError, match="has 'earliest' as an offset; it has to be latest, or"),
        ):
            positions("ending", '{"a": "earliest"}', None, ("latest",), ["a"])
        with case("three"), pytest.raises(OptionError, match=r'such as {"a": 17, "b": 17}$'):
            positions("starting", "x", None, words, ["a", "b", "c"])


def test_times_are_milliseconds_or_iso_8601():
    def utc(*given):
        return datetime(*given, tzinfo=timezone.utc)

    def times(text):
        return positions("starting", "earliest", text, ("earliest",), BOTH)

    with cases() as case:
        for text, found in [
            ("0", utc(1970, 1, 1)),
            (" 1999 ", utc(1970, 1, 1, 0, 0, 1)),
            ("2030-01-31", utc(2030, 1, 31)),
            ("2030-01-31T12:00:00.900Z", utc(2030, 1, 31, 12)),
            ("2030-01-31T12:00:00z", utc(2030, 1, 31, 12)),
            ("2030-01-31 12:00:00+02:00", utc(2030, 1, 31, 10)),
        ]:
            with case(text):
                assert times(text) == {"a": found, "b": found}
        with case("each"):
            given = ' {"a": 5000, "b": "2030-01-31"}'
            assert times(given) == {"a": utc(1970, 1, 1, 0, 0, 5), "b": utc(2030, 1, 31)}
        for text, said in [
            ("noon", "option 'startingTimestamp' is 'noon'; it has to be milliseconds since 1970, ISO 8601"),
            ("9" * 30, f"is '{'9' * 30}'; it has to be milliseconds"),
            ("-5", "it has to be milliseconds"),
            ('{"a": 1}', "option 'startingTimestamp' has nothing for 'b'"),
            ('{"a": 1, "c": 2}', "names 'c', which is not among"),
            ('{"a": "noon", "b": 1}', "option 'startingTimestamp' is 'noon'; it"),
            ("{no", "option 'startingTimestamp' is '{no'; it"),
        ]:
            with case(text), pytest.raises(OptionError, match=said):
                times(text)


@pytest.fixture
def broker(monkeypatch):
    """A stream with the offsets 3 to 8, unless a test says otherwise."""
    found = SimpleNamespace(end=9, first=StreamMark(4, "first"), asked=[], closed=0)

    class End:
        def __init__(self, _connection, stream, patience):
            assert patience == 5.0
            self.stream = stream

        def ask(self):
            return found.end

        def mark(self, offset):
            return StreamMark(offset, self.stream)

        def close(self):
            found.closed += 1

    def first_message(_connection, *given):
        found.asked.append(given)
        return found.first

    def first_offset(_connection, *given):
        found.asked.append(given)
        return 3

    monkeypatch.setattr(of_streams, "Tail", End)
    monkeypatch.setattr(of_streams, "first_message", first_message)
    monkeypatch.setattr(of_streams, "first_offset", first_offset)
    return found


def options(**more):
    given = {"amqp.url": "amqp://h", "stream": "log", "idleTimeout": "2s", "amqp.connectionTimeout": "5s"}
    return read_options({**given, **more})


NOON = datetime(2030, 1, 31, 12, tzinfo=timezone.utc)
AT_NOON = {"startingTimestamp": "2030-01-31T12:00:00Z"}
LATEST = {"startingOffsetsByTimestampStrategy": "latest"}


def test_places_are_found_in_the_stream(broker):
    """With the message before them, by which the stream is known again."""
    with cases() as case:
        for find, given, end, first, at, asked in [
            (starts, {}, 9, None, 3, ("log", 5.0)),
            (starts, {"startingOffsets": "latest"}, 9, None, 9, None),
            (starts, {"startingOffsets": '{"log": 5}'}, 9, None, 5, None),
            (starts, {"startingOffsets": '{"log": 9}'}, 9, None, 9, None),
            (starts, {"startingOffsets": '{"log": 0}'}, 9, None, 0, None),
            (starts, AT_NOON, 9, 4, 4, ("log", NOON, 2.0)),
            (starts, AT_NOON | LATEST, 9, 4, 4, ("log", NOON, 2.0)),
            (starts, AT_NOON | LATEST, 9, None, 9, ("log", NOON, 2.0)),
            (starts, AT_NOON | LATEST, None, None, 0, None),
            (starts, {}, None, None, 0, None),
            (ends, {}, 9, None, 9, None),
            (ends, {"endingOffsets": '{"log": 4}'}, 9, None, 4, None),
            (ends, {"endingOffsets": '{"log": -1}'}, None, None, 0, None),
            (ends, {"endingTimestamp": "2030-01-31T12:00:00Z"}, 9, 6, 6, ("log", NOON, 2.0)),
            (ends, {"endingTimestamp": "2030-01-31T12:00:00Z"}, 9, None, 9, ("log", NOON, 2.0)),
        ]:
            with case(find.__name__, given, end, first):
                broker.asked.clear()
                broker.closed = 0
                broker.end = end
                broker.first = None if first is None else StreamMark(first, "first")
                mark = StreamMark(at - 1, "log") if at else None
                assert find(options(**given), None) == {"log": StreamPlace(at, mark)}
                assert broker.asked == ([] if asked is None else [asked])
                assert broker.closed == 1


@pytest.mark.parametrize("end", [9, None])
def test_a_start_at_a_time_without_a_message_that_new_is_refused(broker, end):
    broker.end, broker.first = end, None
    words = (
        r"^option 'startingTimestamp' is 2030-01-31T12:00:00\+00:00 for 'log', which has no message that "
        "new; set startingOffsetsByTimestampStrategy=latest to start at its end$"
    )
    with pytest.raises(OptionError, match=words):
        starts(options(**AT_NOON), None)


@pytest.mark.parametrize(
    ("find", "key", "end", "shown"), [(starts, "startingOffsets", 9, 9), (ends, "endingOffsets", None, 0)]
)
def test_an_offset_behind_the_end_is_refused(broker, find, key, end, shown):
    broker.end = end
    with pytest.raises(OptionError, match=f"option '{key}' is 10 for 'log', which ends before {shown}$"):
        find(options(**{key: '{"log": 10}'}), None)
    with pytest.raises(OptionError, match=f"option '{key}' has 'no' as an offset; it has to be"):
        find(options(**{key: "no"}), None)


def test_invalid_ending_offsets_and_timestamps_are_refused(broker):
    words = "option 'endingOffsets' has 'earliest' as an offset; it has to be latest, or JSON"
    with pytest.raises(OptionError, match=words):
        ends(options(endingOffsets="earliest"), None)
    for find, key in ((starts, "startingTimestamp"), (ends, "endingTimestamp")):
        with pytest.raises(OptionError, match=f"option '{key}' is 'noon'"):
            find(options(**{key: "noon"}), None)


def test_offset_range_is_narrowed_to_messages_stored_between_two_times(broker, monkeypatch):
    mark = StreamMark(19, "x")
    since, until = datetime(2030, 1, 1, tzinfo=timezone.utc), NOON
    at = {since: 5, until: 12}
    with cases() as case:
        for first, last, found, start, stop, asked in [
            (None, None, at, 2, 20, []),
            (since, None, at, 5, 20, [since]),
            (None, until, at, 2, 12, [until]),
            (since, until, at, 5, 12, [since, until]),
            (since, None, {since: 1}, 2, 20, [since]),
            (None, until, {until: 30}, 2, 20, [until]),
            (since, until, {since: None, until: None}, 2, 20, [since, until]),
            (since, until, {since: 20, until: 3}, 20, 20, [since]),
        ]:
            with case(first, last, found):
                broker.asked.clear()

                def message(_connection, stream, time, patience, found=found):
                    broker.asked.append((stream, time, patience))
                    return None if found[time] is None else StreamMark(found[time], "")

                monkeypatch.setattr(of_streams, "first_message", message)
                narrowed = stored_between(options(), None, Range("log", 2, 20, mark), first, last)
                assert narrowed == Range("log", start, stop, mark)
                assert broker.asked == [("log", each, 2.0) for each in asked]
