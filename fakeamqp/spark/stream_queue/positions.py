"""The start and the end of reading, from options: a word such as `earliest`, offsets, or a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, TypeVar

from fakeamqp.errors import near_match
from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue_types import check_is_stream
from fakeamqp.spark.stream_queue.offsets import StreamPlace
from fakeamqp.spark.stream_queue.ranges import Range
from fakeamqp.spark.stream_queue.tail import Tail, first_message

T = TypeVar("T")

EARLIEST, LATEST = "earliest", "latest"
# As in the Kafka source's JSON.
_KAFKAS = {-2: EARLIEST, -1: LATEST}
_LAST = 2**63 - 1


def parse_offsets(key: str, text: str, streams: Sequence[str], words: Sequence[str]) -> dict[str, int | str]:
    """An offset, or one of `words`, for every stream.

    Raises:
        OptionError: if the text is nothing of the kind.
    """
    word = text.strip().lower()
    if word in words:
        return dict.fromkeys(streams, word)
    expected = f"{', '.join(words)}, or JSON with an offset for every stream, such as {_example(streams)}"
    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        hint = near_match(word, words, most=0)
        raise OptionError(f"option {key!r} is {text!r}; it has to be {expected}{hint}")
    return _for_each(key, given, streams, lambda value: _offset(key, value, words, expected))


def parse_timestamps(key: str, text: str, streams: Sequence[str]) -> dict[str, datetime]:
    """A time for every stream, rounded down to whole seconds, because brokers accept no fractions.

    Raises:
        OptionError: if the text is neither one time nor JSON with one for every stream.
    """
    if text.lstrip().startswith("{"):
        try:
            given = json.loads(text)
        except json.JSONDecodeError:
            given = dict.fromkeys(streams, text)
        return _for_each(key, given, streams, lambda value: _time(key, str(value)))
    return dict.fromkeys(streams, _time(key, text))


def _for_each(
    key: str, given: Mapping[str, Any], streams: Sequence[str], parse: Callable[[Any], T]
) -> dict[str, T]:
    for stream in given:
        if stream not in streams:
            raise OptionError(
                f"option {key!r} names {stream!r}, which is not among the streams to read"
                f"{near_match(stream, streams)}"
            )
    missing = [stream for stream in streams if stream not in given]
    if missing:
        raise OptionError(f"option {key!r} has nothing for {', '.join(map(repr, missing))}")
    return {stream: parse(given[stream]) for stream in streams}


def _time(key: str, text: str) -> datetime:
    try:
        if text.strip().isdecimal():
            time = datetime.fromtimestamp(int(text) // 1000, timezone.utc)
        else:
            # Python 3.10 does not parse the Z.
            time = datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
    except (ValueError, OverflowError, OSError):
        raise OptionError(
            f"option {key!r} is {text!r}; it has to be milliseconds since 1970, ISO 8601 such as "
            "2030-01-31T12:00:00Z, or JSON with one of them for every stream"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    return time.astimezone(timezone.utc).replace(microsecond=0)


def starts(options: ReadOptions, link: Link) -> dict[str, StreamPlace]:
    """The place to start at, for every stream.

    Raises:
        OptionError: if one is no stream, or the options say no start.
        BrokerUnreachable, ConnectionLost: if the broker cannot be asked.
    """
    wanted: Mapping[str, int | str | datetime]
    if options.starting_timestamp is not None:
        wanted = parse_timestamps("startingTimestamp", options.starting_timestamp, options.streams)
    else:
        words = (EARLIEST, LATEST)
        wanted = parse_offsets("startingOffsets", options.starting_offsets, options.streams, words)
    return {stream: _find(options, link, stream, at, "startingOffsets") for stream, at in wanted.items()}


def ends(options: ReadOptions, link: Link) -> dict[str, StreamPlace]:
    """The place behind the last message to read, for every stream of a batch read.

    Raises:
        OptionError, BrokerUnreachable, ConnectionLost: as `starts`.
    """
    wanted: Mapping[str, int | str | datetime]
    if options.ending_timestamp is not None:
        wanted = parse_timestamps("endingTimestamp", options.ending_timestamp, options.streams)
    else:
        wanted = parse_offsets("endingOffsets", options.ending_offsets, options.streams, (LATEST,))
    return {stream: _find(options, link, stream, at, "endingOffsets") for stream, at in wanted.items()}


def stored_between(link: Link, wanted: Range, since: datetime | None, until: datetime | None) -> Range:
    """The part of a range that the broker stored from `since` on and before `until`, or a larger one.

    Raises:
        ConnectionLost: the connection or the stream is gone.
    """
    start, stop = wanted.start, wanted.stop
    if since is not None:
        start = max(start, _stored_at(link, wanted.stream, since) or 0)
    if until is not None and start < stop:
        found = _stored_at(link, wanted.stream, until)
        stop = stop if found is None else min(stop, found)
    return wanted._replace(start=start, stop=stop)


def _stored_at(link: Link, stream: str, time: datetime) -> int | None:
    """The offset of the first message from a time on; None if there is none, or the broker is slow."""
    found = first_message(link, stream, time, patience=0, sure=False)
    return None if found is None else found.offset


def _find(
    options: ReadOptions, link: Link, stream: str, position: int | str | datetime, key: str
) -> StreamPlace:
    """The place of a position, which the stream reaches; `key` is the option of an offset."""
    patience = options.connection.connect_timeout
    tail = Tail(link, stream, patience)
    try:
        end = tail.ask()
        if end is None:
            check_is_stream(options.connection, stream)
            end = 0
        if isinstance(position, int):
            if position > end:
                raise OptionError(f"option {key!r} is {position} for {stream!r}, which ends before {end}")
            at = position
        elif position == LATEST or not end:
            at = end
        else:
            # If no message is as new as a time, the broker sends nothing.
            start, sure = ("first", True) if isinstance(position, str) else (position, False)
            wait = patience if sure else options.idle_timeout
            found = first_message(link, stream, start, wait, sure=sure)
            at = end if found is None else found.offset
        return StreamPlace(at, tail.mark(at - 1) if at else None)
    finally:
        tail.close()


def _offset(key: str, value: object, words: Sequence[str], expected: str) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = _KAFKAS.get(value, value)
    if isinstance(value, str) and value.lower() in words:
        return value.lower()
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LAST:
        return value
    raise OptionError(f"option {key!r} has {value!r} as an offset; it has to be {expected}")


def _example(streams: Sequence[str]) -> str:
    return json.dumps(dict.fromkeys(streams[:2], 17))
