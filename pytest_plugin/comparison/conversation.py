"""The conversation of a run: what clients and brokers said, comparable with that of another run.

Clients and the broker do not wait for each other, so the order in which frames of different channels or
directions were recorded differs from run to run. Each direction of a channel is compared by itself. So are
the events of each queue.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fakeamqp import Broker
    from fakeamqp.trace import Event

__all__ = ["Conversation", "Line", "Parting", "Stream", "conversation", "parting", "shows", "steady"]

Stream: TypeAlias = "tuple[int, str, str, object]"
"""Number of the broker, short name of the connection, "received", "sent" or "model", and channel or queue."""
_MODEL = "model"
_ARROWS = {"received": "->", "sent": "<-", _MODEL: "=="}

_UNSTABLE = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"amq\.(gen|ctag)-[\w-]+", r"amq.\1-"),
        (r"amq\.rabbitmq\.reply-to\.[\w.=+/-]+", "amq.rabbitmq.reply-to."),
        (r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
        (r"[0-9a-fA-F]{16,}", "HEX"),
        (r"datetime\.datetime\([^()]*(?:\([^()]*\))?[^()]*\)", "TIME"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?", "TIME"),
        (r"\b1\d{9}(?:\d{3})?(?:\.\d+)?\b", "TIME"),
        (r"(127\.0\.0\.1|localhost|\[::1\]):\d+", r"\1:PORT"),
    )
)
"""Generated names, timestamps and ports, which differ from run to run."""
_START = "connection.start"
"""It announces the version. What follows from an announcement shows in what the client does next."""


@dataclass(frozen=True)
class Line:
    """One event.

    Args:
        place: its number among the events of the run.
        text: as a timeline shows it.
        key: the text without what differs from run to run.
    """

    place: int
    text: str
    key: str


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

    A conversation that only ends earlier has no such line.
    """

    first: Turn | None
    second: Turn | None

    @property
    def at(self) -> tuple[Stream, int, str] | None:
        """The point and what the second conversation says there."""
        turn = self.second
        return None if turn is None else (turn.stream, turn.index, turn.line.key)


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
    found = list(_partings(first, second, steady))
    found = [each for each in found if each[0][2] != _MODEL] or found
    if not found:
        return None
    return Parting(
        _earliest((stream, index, first) for stream, index in found),
        _earliest((stream, index, second) for stream, index in found),
    )


def steady(pairs: Iterable[tuple[Conversation, Conversation]]) -> dict[Stream, int]:
    """For streams that differ from run to run: the number of lines that are the same.

    Args:
        pairs: the conversations of two runs on the same personality.
    """
    counts: dict[Stream, int] = {}
    for first, again in pairs:
        for stream, index in _partings(first, again, {}):
            counts[stream] = min(index, counts.get(stream, index))
    return counts


def shows(conversation: Conversation, parted: Parting) -> bool:
    """Whether a conversation goes on like the second one at the point where two parted."""
    turn = parted.second or parted.first
    assert turn is not None
    line = _at(conversation.get(turn.stream, []), turn.index)
    same = line is not None and line.key == turn.line.key
    return same if parted.second is not None else not same


def _line_of(event: Event, place: int) -> tuple[str, object, Line] | None:
    """The direction, the channel or queue, and the line of an event; None if it is not compared."""
    from fakeamqp.trace import FrameEvent, ModelEvent

    if isinstance(event, FrameEvent) and event.part != "heartbeat":
        text = f"{event.alias} {_ARROWS[event.direction]} {event.channel} {event.text}"
        key = _START if event.name == _START else _stable(text)
        return event.direction, event.channel, Line(place, text, key)
    if isinstance(event, ModelEvent):
        text = f"{event.alias} {_ARROWS[_MODEL]} {event.text}".lstrip()
        return _MODEL, _stable(event.queue or ""), Line(place, text, _stable(text))
    return None


def _stable(text: str) -> str:
    for pattern, replacement in _UNSTABLE:
        text = pattern.sub(replacement, text)
    return text


def _partings(
    first: Conversation, second: Conversation, steady: Mapping[Stream, int]
) -> Iterator[tuple[Stream, int]]:
    """Each stream that parts, and the index of the first line that is not the same."""
    for stream in dict.fromkeys([*first, *second]):
        one, other = first.get(stream, []), second.get(stream, [])
        index = _common(one, other)
        if index < min(max(len(one), len(other)), steady.get(stream, index + 1)):
            yield stream, index


def _common(one: list[Line], other: list[Line]) -> int:
    """The number of lines at the beginning that are the same."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine.key != theirs.key:
            break
        count += 1
    return count


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
