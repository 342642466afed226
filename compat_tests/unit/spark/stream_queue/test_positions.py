"""Where reading begins and ends, from options: words, offsets and times."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.stream_queue import positions
from fakeamqp.spark.stream_queue.offsets import StreamMark, StreamPlace
from fakeamqp.spark.stream_queue.positions import (
    ends,
    parse_offsets,
    parse_timestamps,
    starts,
    stored_between,
)
from fakeamqp.spark.stream_queue.ranges import Range

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
                assert parse_offsets("key", text, BOTH, words) == found
        for text, said in [
            ("earlies", "is 'earlies'; it has to be earliest, latest, or JSON .*; did you mean 'earliest'"),
            ("x", 'such as {"a": 17, "b": 17}$'),
            ("[1]", r"is '\[1\]'; it has to be"),
            ('{"a": 1', "it has to be earliest, latest, or JSON"),
            ('{"a": 1}', "option 'key' has nothing for 'b'$"),
            ("{}", "option 'key' has nothing for 'a', 'b'$"),
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
                parse_offsets("key", text, BOTH, words)
        with (
            case("one word"),
            pytest.raises(OptionError, match="has 'earliest' as an offset; it has to be latest, or"),
        ):
            parse_offsets("key", '{"a": "earliest"}', ["a", "b", "c"][:1], ("latest",))
        with case("three"), pytest.raises(OptionError, match=r'such as {"a": 17, "b": 17}$'):
            parse_offsets("key", "x", ["a", "b", "c"], words)


def test_times_are_milliseconds_or_iso_8601():
    def utc(*given):
        return datetime(*given, tzinfo=timezone.utc)

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
                assert parse_timestamps("key", text, BOTH) == {"a": found, "b": found}
        with case("each"):
            given = ' {"a": 5000, "b": "2030-01-31"}'
            assert parse_timestamps("key", given, BOTH) == {
                "a": utc(1970, 1, 1, 0, 0, 5),
                "b": utc(2030, 1, 31),
            }
        for text, said in [
            ("noon", "option 'key' is 'noon'; it has to be milliseconds since 1970, ISO 8601"),
            ("9" * 30, f"is '{'9' * 30}'; it has to be milliseconds"),
            ("-5", "it has to be milliseconds"),
            ('{"a": 1}', "option 'key' has nothing for 'b'"),
            ('{"a": 1, "c": 2}', "names 'c', which is not among"),
            ('{"a": "noon", "b": 1}', "option 'key' is 'noon'; it"),
            ("{no", "option 'key' is '{no'; it"),
        ]:
            with case(text), pytest.raises(OptionError, match=said):
                parse_timestamps("key", text, BOTH)


@pytest.fixture
def broker(monkeypatch):
    """A stream with the offsets 3 to 8, unless a test says otherwise."""
    found = SimpleNamespace(end=9, first=StreamMark(3, "first"), asked=[], checked=[], closed=0)

    class End:
        def __init__(self, _link, stream, patience):
            assert patience == 5.0
            self.stream = stream

        def ask(self):
            return found.end

        def mark(self, offset):
            return StreamMark(offset, self.stream)

        def close(self):
            found.closed += 1

    def first_message(_link, *given, patience=None, sure):
        found.asked.append((*given, *([] if patience is None else [patience]), sure))
        return found.first

    monkeypatch.setattr(positions, "Tail", End)
    monkeypatch.setattr(positions, "first_message", first_message)
    monkeypatch.setattr(positions, "check_is_stream", lambda _, stream: found.checked.append(stream))
    return found


def options(**more):
    given = {"amqp.url": "amqp://h", "stream": "log", "idleTimeout": "2s", "amqp.connectionTimeout": "5s"}
    return read_options({**given, **more})


NOON = datetime(2030, 1, 31, 12, tzinfo=timezone.utc)


def test_places_are_found_in_the_stream(broker):
    """With the message before them, by which the stream is known again."""
    with cases() as case:
        for find, given, end, first, at, asked in [
            (starts, {}, 9, 3, 3, ("log", "first", 5.0, True)),
            (starts, {"startingOffsets": "latest"}, 9, 3, 9, None),
            (starts, {"startingOffsets": '{"log": 5}'}, 9, 3, 5, None),
            (starts, {"startingOffsets": '{"log": 9}'}, 9, 3, 9, None),
            (starts, {"startingOffsets": '{"log": 0}'}, 9, 3, 0, None),
            (starts, {"startingTimestamp": "2030-01-31T12:00:00Z"}, 9, 4, 4, ("log", NOON, 2.0, False)),
            (starts, {"startingTimestamp": "2030-01-31T12:00:00Z"}, 9, None, 9, ("log", NOON, 2.0, False)),
            (starts, {"startingTimestamp": "2030-01-31T12:00:00Z"}, None, 3, 0, None),
            (starts, {}, None, 3, 0, None),
            (ends, {}, 9, 3, 9, None),
            (ends, {"endingOffsets": '{"log": 4}'}, 9, 3, 4, None),
            (ends, {"endingOffsets": '{"log": -1}'}, None, 3, 0, None),
            (ends, {"endingTimestamp": "2030-01-31T12:00:00Z"}, 9, 6, 6, ("log", NOON, 2.0, False)),
        ]:
            with case(find.__name__, given, end, first):
                broker.asked.clear()
                broker.checked.clear()
                broker.closed = 0
                broker.end = end
                broker.first = None if first is None else StreamMark(first, "first")
                mark = StreamMark(at - 1, "log") if at else None
                assert find(options(**given), None) == {"log": StreamPlace(at, mark)}
                assert broker.asked == ([] if asked is None else [asked])
                assert broker.checked == ([] if end else ["log"])
                assert broker.closed == 1


@pytest.mark.parametrize(
    ("find", "key", "end", "shown"), [(starts, "startingOffsets", 9, 9), (ends, "endingOffsets", None, 0)]
)
def test_an_offset_behind_the_end_is_refused(broker, find, key, end, shown):
    broker.end = end
    with pytest.raises(OptionError, match=f"option '{key}' is 10 for 'log', which ends before {shown}$"):
        find(options(**{key: '{"log": 10}'}), None)
    assert broker.closed == 1
    with pytest.raises(OptionError, match=f"option '{key}' is 'no'; it has to be"):
        find(options(**{key: "no"}), None)


def test_invalid_ending_offsets_and_timestamps_are_refused(broker):
    with pytest.raises(
        OptionError, match="option 'endingOffsets' is 'earliest'; it has to be latest, or JSON"
    ):
        ends(options(endingOffsets="earliest"), None)
    for find, key in ((starts, "startingTimestamp"), (ends, "endingTimestamp")):
        with pytest.raises(OptionError, match=f"option '{key}' is 'noon'"):
            find(options(**{key: "noon"}), None)


def test_offset_range_is_narrowed_to_messages_stored_between_two_times(broker):
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

                def message(_link, stream, time, *, patience, sure, found=found):
                    broker.asked.append((stream, time, patience, sure))
                    return None if found[time] is None else StreamMark(found[time], "")

                positions.first_message = message
                narrowed = stored_between(None, Range("log", 2, 20, mark), first, last)
                assert narrowed == Range("log", start, stop, mark)
                assert broker.asked == [("log", each, 0, False) for each in asked]
