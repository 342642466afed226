"""The lines of a timeline: events that belong together are one line, in all views that people read.

- A method, its headers and its bodies are one line, at the place of the method.
- Heartbeats of one connection in one direction are one line, until the connection carries something else.
  What happens to messages meanwhile does not matter.

Formats for machines have each event by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.dialects import dialect_named
from fakeamqp.trace.events import ConnectionEvent, FrameEvent
from fakeamqp.trace.truncation import Truncated, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fakeamqp.trace.events import Event

_MOST_BODY = 16_384
"""Bytes of a body that a line keeps."""

Place: TypeAlias = "tuple[str, int, str]"
"""Connection, channel and direction."""


class FoldedContent:
    """The headers and bodies behind a method, as far as they have come.

    Attributes:
        header: the outermost header, or None.
        properties: decoded from it, or None.
        size: of the outermost body, in bytes: the size that the header announces, or else what has come; -1
            before a header or a body.
        kept: the beginning of this body.
        inside: the headers and bodies of the contents inside this one (0-9).
        complete: whether all has come.
    """

    __slots__ = ("_levels", "_whole", "complete", "header", "inside", "kept", "properties", "size")

    def __init__(self) -> None:
        self._levels: list[list[int]] = []
        """Missing nested contents and missing octets: of the content, of the one inside it, and so on."""
        self._whole = True
        self.header: FrameEvent | None = None
        self.properties: Any = None
        self.size: int = -1
        self.kept: bytearray = bytearray()
        self.inside: list[FrameEvent] = []
        self.complete: bool = False

    def takes(self, event: FrameEvent) -> bool:
        """Add a header or a body frame, if the content may go on with it."""
        reader = dialect_named(event.protocol)
        ends = reader.ends_content(event.type)
        outermost = len(self._levels) <= 1
        if event.part == "header":
            if self.header is not None and not (self._levels and self._levels[-1][0]):
                return False
            properties = event.properties
            if properties is None and ends is None:
                return False
            size = (reader.body_size(event.type, event.payload) or 0) if ends is None else 0
            if self.header is None:
                self.header, self.properties, self.size = event, properties, size
            else:
                self.inside.append(event)
            if ends is None:
                if self._levels:
                    self._levels[-1][0] -= 1
                self._levels.append([reader.contents_within(event.type, event.payload), size])
        else:
            if ends is None:
                if not self._levels or self._levels[-1][0] or event.size > self._levels[-1][1]:
                    return False
                self._levels[-1][1] -= event.size
            else:
                self.size = max(0, self.size) + event.size
            if outermost:
                if self._whole and len(self.kept) < _MOST_BODY:
                    self.kept += event.payload[: _MOST_BODY - len(self.kept)]
                self._whole = self._whole and event.size == len(event.payload)
            else:
                self.inside.append(event)
        while self._levels and not any(self._levels[-1]):
            self._levels.pop()
        self.complete = bool(ends or (ends is None and not self._levels))
        return True

    @property
    def words(self) -> str:
        """The properties and the body, for the line of the method."""
        words = [] if self.header is None else [_fields(self.header)]
        if self.inside:
            words.append(f"[inside: {', '.join(map(_fields, self.inside))}]")
        if self.kept or self.complete:
            words.append(f"body={short(Truncated.of(bytes(self.kept), max(0, self.size)))}")
        if not self.complete:
            words.append("(the rest of the content has not come)")
        return " ".join(filter(None, words))


def _fields(event: FrameEvent) -> str:
    """The text of a header or a body without its name."""
    text = event.text.removeprefix(event.name).lstrip(": ")
    return text if event.part == "header" else f"body={text}"


class FoldedLine:
    """One line: an event, or several that belong together, in order. The first has its place and its time.

    `numbers` are the places of the events in the trace, `content` is that of a method that has one.
    """

    __slots__ = ("content", "events", "numbers")

    def __init__(self, number: int, event: Event, content: FoldedContent | None = None) -> None:
        self.events: list[Event] = [event]
        self.numbers: list[int] = [number]
        self.content: FoldedContent | None = content

    @property
    def first(self) -> Event:
        return self.events[0]

    @property
    def text(self) -> str:
        """The text of the line after connection, direction and channel."""
        text = self.first.text
        if self.content is not None:
            return f"{text} {self.content.words}"
        count = len(self.events)
        return text if count == 1 else f"{count} heartbeats until {self.events[-1].time:.3f}"

    def add(self, number: int, event: Event) -> None:
        self.events.append(event)
        self.numbers.append(number)


def is_fault(event: Event) -> bool:
    """Whether an event is a fault of the test."""
    return isinstance(event, ConnectionEvent) and event.event == "fault"


def fold(events: Iterable[Event]) -> list[FoldedLine]:
    """The lines of some events, in the order of their first events."""
    lines: list[FoldedLine] = []
    contents: dict[Place, FoldedLine] = {}
    heartbeats: dict[str, dict[object, FoldedLine]] = {}
    for number, event in enumerate(events):
        connection = event.alias or event.connection or ""
        if not isinstance(event, FrameEvent):
            if isinstance(event, ConnectionEvent):
                heartbeats.pop(connection, None)
            lines.append(FoldedLine(number, event))
            continue
        part = event.part
        if part == "heartbeat":
            known = heartbeats.setdefault(connection, {})
            alike = (event.direction, event.channel, event.payload)
            if alike in known:
                known[alike].add(number, event)
                continue
            known[alike] = FoldedLine(number, event)
            lines.append(known[alike])
            continue
        heartbeats.pop(connection, None)
        place = (connection, event.channel, event.direction)
        if part in ("header", "body"):
            method = contents.get(place)
            if method is not None and method.content is not None and method.content.takes(event.redacted):
                method.add(number, event)
                if method.content.complete:
                    del contents[place]
                continue
        line = FoldedLine(number, event)
        if part == "method" and dialect_named(event.protocol).begins_content(event.type, event.payload):
            line.content = FoldedContent()
            contents[place] = line
        lines.append(line)
    return lines


def latest(lines: list[FoldedLine], limit: int | None) -> Iterator[FoldedLine | int]:
    """The latest lines, and before them the latest faults, as many of each at most.

    Yields numbers of events in the places of what is left out.
    """
    if limit is None:
        yield from lines
        return
    start = max(0, len(lines) - limit)
    faults = [at for at in range(start) if is_fault(lines[at].first)]
    kept = set(faults[len(faults) - min(limit, len(faults)) :])
    left_out = 0
    for at, line in enumerate(lines):
        if at < start and at not in kept:
            left_out += len(line.events)
            continue
        if left_out:
            yield left_out
            left_out = 0
        yield line
    if left_out:
        yield left_out
