"""The start and the end of reading, from options: a word such as `earliest`, offsets, or a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone

from fakeamqp.errors import near_match
from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import OptionError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.stream_queue.tail import Tail, check_is_stream, first_offset

__all__ = ["EARLIEST", "LATEST", "ends", "parse_offsets", "parse_timestamp", "starts"]

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
    for stream in given:
        if stream not in streams:
            raise OptionError(
                f"option {key!r} names {stream!r}, and option 'stream' does not{near_match(stream, streams)}"
            )
    missing = [stream for stream in streams if stream not in given]
    if missing:
        raise OptionError(f"option {key!r} has no offset for {', '.join(map(repr, missing))}")
    return {stream: _offset(key, given[stream], words, expected) for stream in streams}


def parse_timestamp(text: str) -> datetime:
    """A time, rounded down to whole seconds, because brokers accept no fractions.

    Raises:
        OptionError: if the text is none.
    """
    try:
        if text.strip().isdecimal():
            time = datetime.fromtimestamp(int(text) // 1000, timezone.utc)
        else:
            # Python 3.10 does not parse the Z.
            time = datetime.fromisoformat(text.strip().replace("Z", "+00:00").replace("z", "+00:00"))
    except (ValueError, OverflowError, OSError):
        raise OptionError(
            f"option 'startingTimestamp' is {text!r}; it has to be milliseconds since 1970, or ISO 8601 such "
            "as 2030-01-31T12:00:00Z"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    return time.astimezone(timezone.utc).replace(microsecond=0)


def starts(options: ReadOptions) -> dict[str, int]:
    """The offset to start with, for every stream. Asks the broker if necessary.

    Raises:
        OptionError: if one is no stream, or the options say no start.
        BrokerUnreachable, ConnectionLost: if the broker cannot be asked.
    """
    if options.starting_timestamp is not None:
        since = parse_timestamp(options.starting_timestamp)
        return _resolve(options, dict.fromkeys(options.streams, since))
    given = parse_offsets("startingOffsets", options.starting_offsets, options.streams, (EARLIEST, LATEST))
    return _resolve(options, given)


def ends(options: ReadOptions) -> dict[str, int]:
    """The offset after the last one to read, for every stream of a batch read.

    Raises:
        OptionError: as `starts`.
        BrokerUnreachable, ConnectionLost: if the broker cannot be asked.
    """
    given = parse_offsets("endingOffsets", options.ending_offsets, options.streams, (LATEST,))
    found = _resolve(options, dict.fromkeys(options.streams, LATEST))
    for stream, end in given.items():
        if isinstance(end, int):
            if end > found[stream]:
                raise OptionError(
                    f"option 'endingOffsets' is {end} for {stream!r}, which ends before {found[stream]}"
                )
            found[stream] = end
    return found


def _resolve(options: ReadOptions, wanted: Mapping[str, int | str | datetime]) -> dict[str, int]:
    found: dict[str, int] = {}
    if all(isinstance(position, int) for position in wanted.values()):
        return {stream: int(str(position)) for stream, position in wanted.items()}
    with Link(options.connection) as link:
        for stream, position in wanted.items():
            found[stream] = position if isinstance(position, int) else _ask(options, link, stream, position)
    return found


def _ask(options: ReadOptions, link: Link, stream: str, position: str | datetime) -> int:
    patience = options.connection.connect_timeout
    tail = Tail(link, stream, patience)
    end = tail.ask()
    tail.close()
    if end is None:
        check_is_stream(options.connection, stream)
        return 0
    if position == LATEST:
        return end
    if position == EARLIEST:
        first = first_offset(link, stream, "first", patience, sure=True)
    else:
        # If no message is as new as this time, the broker sends nothing.
        first = first_offset(link, stream, position, options.idle_timeout, sure=False)
    return end if first is None else first


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
