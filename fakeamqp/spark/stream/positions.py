"""The start and the end of reading, from options: a word such as `earliest`, offsets, or a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from fakeamqp.errors import near_match
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.stream.offsets import Position, StreamPlace
from fakeamqp.spark.stream.ranges import Range
from fakeamqp.spark.stream.tail import Tail, first_message, first_offset
from fakeamqp.spark.wire.connection import WireConnection

EARLIEST, LATEST = "earliest", "latest"
# As in the Kafka source's JSON.
_KAFKAS = {-2: EARLIEST, -1: LATEST}
_LAST = 2**63 - 1


def starts(options: ReadOptions, connection: WireConnection) -> dict[str, StreamPlace]:
    """The place to start at, for every stream.

    Raises:
        OptionError: if one is no stream, or the options say no start.
        QueueRefused: if one does not exist, or may not be read.
        ConnectionLost: the connection ended before.
    """
    words = EARLIEST, LATEST
    wanted = positions(
        "starting", options.starting_offsets, options.starting_timestamp, words, options.streams
    )
    return {stream: _find(options, connection, stream, at, "starting") for stream, at in wanted.items()}


def ends(options: ReadOptions, connection: WireConnection) -> dict[str, StreamPlace]:
    """The place behind the last message to read, for every stream of a batch read.

    Raises:
        OptionError, QueueRefused, ConnectionLost: as `starts`.
    """
    wanted = positions("ending", options.ending_offsets, options.ending_timestamp, (LATEST,), options.streams)
    return {stream: _find(options, connection, stream, at, "ending") for stream, at in wanted.items()}


def positions(
    which: str, offsets: str, timestamp: str | None, words: Sequence[str], streams: Sequence[str]
) -> dict[str, Position]:
    """A time, or an offset or one of `words`, for every stream. Options begin with `which`, as `starting`.

    Raises:
        OptionError: if the text is neither one value nor JSON with one for every stream.
    """
    key = f"{which}Offsets" if timestamp is None else f"{which}Timestamp"
    text = offsets if timestamp is None else timestamp
    example = json.dumps(dict.fromkeys(streams[:2], 17))
    expected = f"{', '.join(words)}, or JSON with an offset for every stream, such as {example}"

    def parse(value: Any) -> Position:
        return _offset(key, value, words, expected) if timestamp is None else _time(key, str(value))

    try:
        given = json.loads(text)
    except json.JSONDecodeError:
        given = None
    if not isinstance(given, dict):
        return dict.fromkeys(streams, parse(text))
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


def _offset(key: str, value: object, words: Sequence[str], expected: str) -> int | str:
    hint = ""
    if isinstance(value, int) and not isinstance(value, bool):
        value = _KAFKAS.get(value, value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in words:
            return word
        hint = near_match(word, words, most=0)
    elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LAST:
        return value
    raise OptionError(f"option {key!r} has {value!r} as an offset; it has to be {expected}{hint}")


def _time(key: str, text: str) -> datetime:
    """A time, rounded down to whole seconds, because brokers accept no fractions."""
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


def _find(
    options: ReadOptions, connection: WireConnection, stream: str, position: Position, which: str
) -> StreamPlace:
    """The place of a position in a stream."""
    patience = options.connection.connect_timeout
    tail = Tail(connection, stream, patience)
    at = end = tail.ask() or 0
    if isinstance(position, datetime):
        found = _stored_at(options, connection, stream, position) if end else None
        if found is not None:
            at = found
        elif which == "starting" and options.starting_offsets_by_timestamp_strategy != LATEST:
            raise OptionError(
                f"option 'startingTimestamp' is {position.isoformat()} for {stream!r}, which has no message "
                "that new; set startingOffsetsByTimestampStrategy=latest to start at its end"
            )
    elif position == EARLIEST and end:
        at = first_offset(connection, stream, patience)
    elif isinstance(position, int):
        at = position
        if at > end:
            raise OptionError(f"option '{which}Offsets' is {at} for {stream!r}, which ends before {end}")
    place = StreamPlace(at, tail.mark(at - 1) if at else None)
    tail.close()
    return place


def stored_between(
    options: ReadOptions,
    connection: WireConnection,
    wanted: Range,
    since: datetime | None,
    until: datetime | None,
) -> Range:
    """The part of a range that the broker stored from `since` on and before `until`, or a larger one."""
    start, stop = wanted.start, wanted.stop
    if since is not None:
        start = max(start, _stored_at(options, connection, wanted.stream, since) or 0)
    if until is not None and start < stop:
        found = _stored_at(options, connection, wanted.stream, until)
        stop = stop if found is None else min(stop, found)
    return wanted._replace(start=start, stop=stop)


def _stored_at(options: ReadOptions, connection: WireConnection, stream: str, time: datetime) -> int | None:
    """The offset of the first message that was stored at a time or later; None if there is none."""
    found = first_message(connection, stream, time, options.idle_timeout)
    return None if found is None else found.offset
