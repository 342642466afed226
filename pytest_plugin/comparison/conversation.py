"""The conversation of a run: what clients and brokers said, comparable with that of another run.

Clients and the broker do not wait for each other, so the order in which frames of different channels or
directions were recorded differs from run to run. Each direction of a channel is compared by itself. So are
the events of each queue.

Names may differ, too: clients choose them at random, and brokers generate them. Two lines are the same if
each name of one stands where a name of the other stands, and these two stand for each other in all lines,
from where either first appears. So the same name twice is not the same as two names. Words of
bodies and message headers that look like random ids are names in this sense, and so are the texts of
properties.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fakeamqp import Broker
    from fakeamqp.trace import Event, FrameEvent

__all__ = ["Conversation", "Line", "Parting", "Stream", "conversation", "parting", "shows", "steady"]

Stream: TypeAlias = "tuple[int, str, str, object]"
"""Number of the broker, short name of the connection, "received", "sent" or "model", and channel or queue."""
_MODEL = "model"
_ARROWS = {"received": "->", "sent": "<-", _MODEL: "=="}

_NAMES = frozenset(
    (
        *("queue", "exchange", "source", "destination", "alternate_exchange", "virtual_host", "user"),
        *("routing_key", "binding_key", "routing-keys", "CC", "BCC"),
        *("consumer", "consumer_tag", "reply_to", "correlation_id", "message_id", "identifier"),
        *("connection_name", "client_id", "id", "root_id", "parent_id", "origin"),
        *("alternate-exchange", "x-dead-letter-exchange", "x-dead-letter-routing-key"),
        *("x-first-death-queue", "x-first-death-exchange", "x-last-death-queue", "x-last-death-exchange"),
    )
)
"""Fields, headers and arguments whose values are names."""
_PROPERTIES = frozenset(("app_id", "cluster_id", "type", "user_id"))
"""Properties whose values are names, besides those."""
_HEADERS = frozenset(("headers", "application_headers"))
_OF_BROKERS = ("x-death", "x-first-death", "x-last-death", "x-match")
"""How headers begin that mean something to brokers. Of the others, words that look random are names."""
_RANDOM_WORD = re.compile(
    r"(?<![\w-])(?:(?=[A-Za-z_-]*\d)(?=[\d_-]*[A-Za-z])[\w-]{6,}|\d{6,}|[a-z]?[0-9a-f]{6,})(?![\w-])"
)
"""Six letters and digits or more, with both; digits only; or hexadecimal digits, behind a letter or not."""
_SMALLEST_NUMBER = 1000
"""Smaller numbers in headers are no names: as counts, they can tell what differs."""
_NAME = "\0"
"""A placeholder for a name in the text of a line."""
_NAMED = re.compile(
    rf"{_NAME}(\d+){_NAME}"
    r"|amq\.(?:gen|ctag)-[\w-]+"
    r"|amq\.rabbitmq\.reply-to\.[\w.=+/-]+"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|[0-9a-fA-F]{16,}"
)
"""Names wherever they stand: those of fields, those that brokers generate, UUIDs, and long numbers."""
_RESERVED = re.compile(r"(?!amq\.(gen|ctag)-|amq\.rabbitmq\.reply-to\.)amq\.|$")
"""Names that are the same everywhere: those that begin with amq., and the empty one."""
_UNSTABLE = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"datetime\.datetime\([^()]*(?:\([^()]*\))?[^()]*\)", "TIME"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?", "TIME"),
        (r"\b1\d{9}(?:\d{3})?(?:\.\d+)?\b", "TIME"),
        (r"(127\.0\.0\.1|localhost|\[::1\]):\d+", r"\1:PORT"),
    )
)
"""Timestamps and ports, which differ from run to run."""
_START = "connection.start"
"""It announces the version. What follows from an announcement shows in what the client does next."""


@dataclass(frozen=True)
class Line:
    """One event.

    Args:
        place: its number among the events of the run.
        text: as a timeline shows it.
        key: the text without names, and without what else differs from run to run.
        names: those in the text, in order.
    """

    place: int
    text: str
    key: str
    names: tuple[str, ...] = ()


Conversation: TypeAlias = "Mapping[Stream, list[Line]]"


@dataclass(frozen=True)
class Turn:
    """A line and where it is: line `index` of a stream."""

    stream: Stream
    index: int
    line: Line


@dataclass(frozen=True)
class Parting:
    """The point where two conversations part: the first line of each that the other one does not have there.

    A conversation that only ends earlier has no such line. `said` are the conversations.
    """

    first: Turn | None
    second: Turn | None
    said: tuple[Conversation, Conversation] = field(repr=False, compare=False)

    @property
    def at(self) -> tuple[object, int] | None:
        """Where the second conversation differs; None if it ends."""
        turn = self.second
        return None if turn is None else (turn.stream[:3], turn.index)


def conversation(brokers: Iterable[Broker]) -> Conversation:
    """What clients and these brokers said. A broker whose trace is off, or not complete, says nothing."""
    streams: dict[Stream, list[Line]] = {}
    place = 0
    for number, broker in enumerate(brokers):
        if broker._recorder is None or broker.trace.dropped:
            continue
        for event in broker.trace.events:
            told = _line_of(event, place)
            if told is not None:
                direction, what, line = told
                streams.setdefault((number, event.alias, direction, what), []).append(line)
                place += 1
    return streams


def parting(first: Conversation, second: Conversation, steady: Mapping[Stream, int]) -> Parting | None:
    """The first point where the conversations part, or None.

    Frames count before events inside the broker, which clients do not see.

    Args:
        first: a conversation.
        second: another one.
        steady: the number of lines to compare, for streams of which not all lines can be compared.
    """
    found = [
        each
        for each in _partings(first, second)
        if each.index < min(steady.get(stream, each.index + 1) for stream in (each.first, each.second))
    ]
    found = [each for each in found if each.first[2] != _MODEL] or found
    if not found:
        return None
    return Parting(
        _earliest((each.first, each.index, first) for each in found),
        _earliest((each.second, each.index, second) for each in found),
        (first, second),
    )


def steady(pairs: Iterable[tuple[Conversation, Conversation]]) -> dict[Stream, int]:
    """For streams that differ from run to run: the number of lines that are the same.

    Args:
        pairs: the conversations of two runs on the same personality.
    """
    counts: dict[Stream, int] = {}
    for first, again in pairs:
        for each in _partings(first, again):
            counts[each.first] = min(each.index, counts.get(each.first, each.index))
    return counts


def shows(conversation: Conversation, parted: Parting) -> bool:
    """Whether a conversation goes on like the second one at the point where two parted."""
    turn = parted.second or parted.first
    assert turn is not None
    said = parted.said[parted.second is not None]
    same = all(each.first != turn.stream or each.index > turn.index for each in _partings(said, conversation))
    return same if parted.second is not None else not same


def _line_of(event: Event, place: int) -> tuple[str, object, Line] | None:
    """The direction, the channel or queue, and the line of an event; None if it is not compared."""
    from fakeamqp.trace import FrameEvent, ModelEvent

    if isinstance(event, FrameEvent) and event.part != "heartbeat":
        text = f"{event.alias} {_ARROWS[event.direction]} {event.channel} {event.text}"
        if event.name == _START:
            return event.direction, event.channel, Line(place, text, _START)
        return event.direction, event.channel, _line(place, text, _names_in_frame(event))
    if isinstance(event, ModelEvent):
        text = f"{event.alias} {_ARROWS[_MODEL]} {event.text}".lstrip()
        message = event.facts.get("message")
        address = {name: getattr(message, name, None) for name in ("exchange", "routing_key")}
        body = b"" if message is None else getattr(message, "body", b"")
        names = [*_names_in(event.facts), *_names_in(address), *_random_words(body)]
        return _MODEL, event.queue or "", _line(place, text, names)
    return None


def _names_in_frame(event: FrameEvent) -> Iterator[object]:
    from fakeamqp.dialects import dialect_named

    for record in (event.method, event.properties):
        if record is not None:
            yield from _names_in(dict(dialect_named(event.protocol).values(record)))
    if event.properties is not None:
        values = dict(dialect_named(event.protocol).values(event.properties))
        yield from (values[name] for name in _PROPERTIES if isinstance(values.get(name), str))
    if event.part == "body":
        yield from _random_words(event.payload)


def _names_in(value: object, named: bool = False, headers: bool = False) -> Iterator[object]:
    """The values of fields that are names, down to those in tables."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            free = headers and not str(name).startswith(_OF_BROKERS)
            yield from _names_in(item, name in _NAMES, free or name in _HEADERS)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _names_in(item, named, headers)
    elif isinstance(value, int):
        if headers and value >= _SMALLEST_NUMBER:
            yield value
    elif isinstance(value, (str, bytes)):
        if named:
            yield value
        elif headers:
            yield from _random_words(value)


class _Word(str):
    """A part of a text, which stands in the line as it is."""

    __slots__ = ()


def _random_words(text: str | bytes) -> Iterator[object]:
    """The words of a text that look like random ids; bytes that are no text are one name."""
    if not isinstance(text, str):
        try:
            text = bytes(text).decode()
        except UnicodeDecodeError:
            yield text
            return
    yield from map(_Word, _RANDOM_WORD.findall(text))


def _line(place: int, text: str, names: Iterable[object]) -> Line:
    from fakeamqp.trace.truncation import short

    # A long name is shown by its beginning; its place is that of what is shown. No text has the mark itself.
    shown = {
        name if isinstance(name, _Word) else short(name): name if isinstance(name, str) else short(name)
        for name in names
        if not (isinstance(name, str) and _RESERVED.match(name))
    }
    quoted = sorted(shown, key=len, reverse=True)
    key = text
    for number, each in enumerate(quoted):
        if each.isdecimal():
            key = re.sub(rf"(?<![\w.-]){each}(?![\w.-])", f"{_NAME}{number}{_NAME}", key)
        else:
            key = key.replace(each, f"{_NAME}{number}{_NAME}")
    found: list[str] = []

    def take(match: re.Match[str]) -> str:
        number = match[1]
        found.append(match[0] if number is None else shown[quoted[int(number)]])
        return _NAME

    key = _NAMED.sub(take, key)
    for pattern, replacement in _UNSTABLE:
        key = pattern.sub(replacement, key)
    return Line(place, text, key, tuple(found))


class _Names:
    """Which names of two conversations stand for each other."""

    def __init__(self) -> None:
        self.of_first: dict[str, str] = {}
        self._of_second: dict[str, str] = {}

    def same(self, first: Line, second: Line) -> bool:
        """Whether two lines are the same; if so, their names stand for each other from now on."""
        if len(first.names) != len(second.names):
            return False
        if first.key != second.key and self._translated(first.key) != second.key:
            return False
        mine: dict[str, str] = {}
        theirs: dict[str, str] = {}
        for one, other in zip(first.names, second.names, strict=True):
            if self.of_first.get(one, other) != other or mine.setdefault(one, other) != other:
                return False
            if self._of_second.get(other, one) != one or theirs.setdefault(other, one) != one:
                return False
        self.of_first.update(mine)
        self._of_second.update(theirs)
        return True

    def _translated(self, text: str) -> str:
        """A text with the names of the second conversation, such as that of an error or a body."""
        others = [mine for mine, theirs in self.of_first.items() if mine != theirs]
        if not others:
            return text
        names = "|".join(map(re.escape, sorted(others, key=len, reverse=True)))
        return re.sub(rf"(?<![\w.-])(?:{names})(?![\w.-])", lambda match: self.of_first[match[0]], text)


@dataclass(frozen=True)
class _Parted:
    """A stream of each conversation, and the index of the first line that is not the same."""

    first: Stream
    second: Stream
    index: int


def _partings(first: Conversation, second: Conversation) -> Iterator[_Parted]:
    """The streams that part. Frames are compared before events inside the broker, and tell which queue is
    which.
    """
    names = _Names()
    frames = {stream: stream for stream in [*first, *second] if stream[2] != _MODEL}
    yield from _parted(first, second, frames, names)
    yield from _parted(first, second, _queues(first, second, names.of_first), names)


def _queues(first: Conversation, second: Conversation, names: Mapping[str, str]) -> dict[Stream, Stream]:
    """For each stream of a queue that of the same queue in the other conversation."""
    pairs: dict[Stream, Stream] = {}
    rest = {stream: None for stream in second if stream[2] == _MODEL}
    for stream in first:
        if stream[2] == _MODEL:
            number, alias, direction, queue = stream
            pairs[stream] = other = (number, alias, direction, names.get(str(queue), queue))
            rest.pop(other, None)
    for stream, other in pairs.items():
        if other not in second:  # Its name is in no frame.
            pairs[stream] = next((each for each in rest if each[:3] == stream[:3]), other)
            rest.pop(pairs[stream], None)
    return {**pairs, **{stream: stream for stream in rest if stream not in pairs}}


def _parted(
    first: Conversation, second: Conversation, pairs: Mapping[Stream, Stream], names: _Names
) -> Iterator[_Parted]:
    turns = [
        (line.place, stream, index) for stream in pairs for index, line in enumerate(first.get(stream, []))
    ]
    parted: dict[Stream, int] = {}
    for _, stream, index in sorted(turns, key=lambda turn: turn[0]):
        if stream not in parted:
            line = _at(second.get(pairs[stream], []), index)
            if line is None or not names.same(first[stream][index], line):
                parted[stream] = index
    for stream, other in pairs.items():
        mine, theirs = len(first.get(stream, [])), len(second.get(other, []))
        if stream in parted:
            yield _Parted(stream, other, parted[stream])
        elif mine != theirs:
            yield _Parted(stream, other, min(mine, theirs))


def _earliest(places: Iterable[tuple[Stream, int, Conversation]]) -> Turn | None:
    """The first of the lines at these places."""
    turns = []
    for stream, index, said in places:
        line = _at(said.get(stream, []), index)
        if line is not None:
            turns.append(Turn(stream, index, line))
    return min(turns, key=lambda turn: turn.line.place, default=None)


def _at(lines: list[Line], index: int) -> Line | None:
    return lines[index] if index < len(lines) else None
