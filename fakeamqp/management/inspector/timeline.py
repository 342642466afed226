"""The lines of the timeline as it grows, and the details of one event.

Events are made of the recorder's entries, which have serial numbers. One entry may stand for several events,
so an event has the serial number of its entry and its place among the events of the entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.trace.events import FrameEvent, ModelEvent
from fakeamqp.trace.folding import fold
from fakeamqp.trace.html.rows import KINDS, Rows, is_problem, kind_of, line_of, message_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakeamqp.runtime.engine import Engine
    from fakeamqp.trace import Recorder
    from fakeamqp.trace.events import Event
    from fakeamqp.trace.folding import FoldedLine

_HEARTBEAT = KINDS.index("heartbeat")
_MOST_TEXT = 400
_DIRECTIONS = {"received": 0, "sent": 1}
_MOST_FRAMES = 200
"""Entries around a method among which its content, and the events of its message, are looked for."""
_MOST_SEARCHED = 16_384
"""Characters of an event that are searched."""


class Timeline:
    """The events of one broker, read while it works.

    Args:
        engine: of the broker.
        recorder: of its trace; None if it is off.
    """

    def __init__(self, engine: Engine, recorder: Recorder | None) -> None:
        self._engine = engine
        self._recorder = recorder
        self._texts: list[tuple[int, int, str]] = []
        """What is searched: the serial number and the place of each line, and all of its text."""
        self._texts_clears: int | None = None

    def lines(self, serial: int, most: int, clears: int | None = None) -> dict[str, Any] | None:
        """The lines of the events from a serial number on; None if there are none.

        Args:
            serial: of the first event wanted.
            most: the number of entries to read at most, the latest.
            clears: the value that came with this number; another one says that numbers have begun again.

        Returns:
            `next` and `clears`, with which to continue; `cleared`, whether the trace has begun again;
            `skipped`, the number of entries left out before the first line; `lines`, as lists of serial
            number, place, time in seconds, short name of the connection, kind, direction, channel, name, the
            rest of the line, whether it is a problem, how many heartbeats it stands for (0 for other lines),
            the time of its last event, real time in seconds (None if the broker has no other time), and the
            number of the message that it is about, or 0.
        """
        recorder = self._recorder
        if recorder is None:
            return None
        with self._engine.look():
            cleared = clears not in (None, recorder.clears)
            wanted = 0 if cleared else serial
            first, entries = recorder.entries_from(wanted, most)
            count, clears = recorder.count, recorder.clears
            real_times = recorder.real_times(len(entries))
        if count == wanted and not cleared:
            return None
        events, where = _events_of(recorder, first, entries, real_times)
        lines = [
            [*where[line.numbers[0]], *_line(line)]
            for line in fold(events)
            # The rest of a content whose method came before.
            if not (isinstance(line.first, FrameEvent) and line.first.part in ("header", "body"))
        ]
        return {
            "next": count,
            "clears": clears,
            "cleared": cleared,
            "skipped": first - wanted,
            "lines": lines,
        }

    def detail(self, serial: int, place: int) -> dict[str, Any] | None:
        """Everything about one event; None if it is no longer kept.

        Returns:
            `name`, `text`, `time`, `connection` (its name) and `fields`, `properties` (None without
            content), `body` (encoding and text, or None), `size` of the body (-1 without content) and
            `message`, the number of the message that it is about, or 0; see
            `fakeamqp.trace.html.rows`.
        """
        recorder = self._recorder
        if recorder is None:
            return None
        with self._engine.look():
            first, entries = recorder.entries_from(max(0, serial - _MOST_FRAMES))
        if not first <= serial < first + len(entries):
            return None
        events, where = _events_of(recorder, first, entries[: serial - first + _MOST_FRAMES], ())
        if (serial, place) not in where:
            return None
        # The events before and after tell which message a publish, a delivery or an ack is about.
        at = where.index((serial, place))
        rows = Rows(events)
        pool = rows.pool
        row = next(row for row in rows.rows if at in row[0])
        event = events[at]
        return {
            "name": pool[row[6]],
            "text": pool[row[7]],
            "time": row[1],
            "connection": event.connection,
            "kind": KINDS[row[3]],
            "channel": row[5],
            "direction": row[4],
            "fields": pool[row[10]],
            "properties": None if row[11] < 0 else pool[row[11]],
            "body": None if row[12] < 0 else pool[row[12]],
            "size": row[13],
            "message": row[15],
        }

    def story(self, message: int, until: int | None = None) -> dict[str, Any]:
        """What happened to one message, as far as the trace still has it.

        Args:
            message: its number.
            until: the serial number of the first event that is left out.

        Returns:
            `rows`, `pool` and `connections` as `fakeamqp.trace.html.rows` has them; the rows have the serial
            number and the place of their event instead of its number.
        """
        rows, where = Rows(()), []
        if self._recorder is not None:
            with self._engine.look():
                first, entries = self._recorder.entries_from(0)
                real_times = self._recorder.real_times(len(entries))
            some = [
                (at, entry)
                for at, entry in enumerate(entries)
                if len(entry) > _MESSAGE and getattr(entry[_MESSAGE], "number", 0) == message
            ]
            events: list[Event] = []
            for at, entry in some:
                if until is None or first + at < until:
                    found, places = _events_of(self._recorder, first + at, (entry,), real_times[at : at + 1])
                    events += found
                    where += places
            rows = Rows(events)
        return {
            "rows": [[list(where[row[0][0]]), *row[1:]] for row in rows.rows],
            "pool": rows.pool,
            "connections": rows.connections,
        }

    def search(self, text: str, serial: int, until: int | None = None) -> list[tuple[int, int]]:
        """The serial numbers and places of lines that have a text anywhere: in fields, headers or the body.

        Args:
            text: in any case.
            serial: of the first event that is searched.
            until: the serial number of the first event that is left out.
        """
        recorder = self._recorder
        if recorder is None:
            return []
        texts = self._texts
        with self._engine.look():
            if self._texts_clears != recorder.clears or (texts and serial < texts[0][0]):
                texts.clear()
                self._texts_clears = recorder.clears
            # The content of a method may have come since the latest search.
            again = texts[-1][0] - _MOST_FRAMES if texts else serial
            first, entries = recorder.entries_from(max(0, again))
        while texts and texts[-1][0] >= first:
            texts.pop()
        events, where = _events_of(recorder, first, entries, ())
        texts += [(*where[line.numbers[0]], _searched(line)) for line in fold(events)]
        oldest = recorder.count - recorder.capacity
        if texts and texts[0][0] < oldest - recorder.capacity:
            self._texts = texts = [each for each in texts if each[0] >= oldest]
        wanted = text.casefold()
        end = recorder.count if until is None else until
        return [(at, place) for at, place, found in texts if serial <= at < end and wanted in found]


_MESSAGE = 3
"""The place of the message in an entry of the recorder about a message."""


def _events_of(
    recorder: Recorder, first: int, entries: Sequence[Any], real_times: Sequence[float]
) -> tuple[list[Event], list[tuple[int, int]]]:
    """The events of entries, and for each the serial number of its entry and its place there."""
    events: list[Event] = []
    where: list[tuple[int, int]] = []
    for at, entry in enumerate(entries):
        for place, event in enumerate(recorder.events_of((entry,), real_times[at : at + 1])):
            events.append(event)
            where.append((first + at, place))
    return events, where


def _searched(line: FoldedLine) -> str:
    event = line.first
    words = [event.alias, event.connection or "", event.name, line.text]
    for each in line.events:
        if isinstance(each, FrameEvent):
            words.append(each.redacted.payload.decode(errors="replace"))
        elif isinstance(each, ModelEvent):
            message = each.facts.get("message")
            for octets in (getattr(message, "body", b""), getattr(message, "properties_bytes", b"")):
                words.append(bytes(octets).decode(errors="replace"))
            words += (str(value) for value in each.facts.values() if isinstance(value, (str, int)))
    return "\n".join(words)[:_MOST_SEARCHED].casefold()


def _line(line: FoldedLine) -> list[Any]:
    event = line.first
    name, text = line_of(event, line.text)
    heartbeats = len(line.events) if kind_of(event) == _HEARTBEAT else 0
    direction, channel = -1, -1
    if isinstance(event, FrameEvent):
        direction, channel = _DIRECTIONS[event.direction], event.channel
    elif isinstance(event, ModelEvent) and event.channel is not None:
        channel = event.channel
    return [
        round(event.time, 6),
        event.alias,
        kind_of(event),
        direction,
        channel,
        name,
        text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "...",
        int(is_problem(event)),
        heartbeats,
        round(line.events[-1].time, 6),
        None if event.real_time is None else round(event.real_time, 6),
        message_number(event),
    ]
