"""The lines of the timeline as it grows, and the details of one event.

Events are made of the recorder's entries, which have serial numbers. One entry may stand for several events,
so an event has the serial number of its entry and its place among the events of the entry.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from fakeamqp.trace.events import FrameEvent, ModelEvent
from fakeamqp.trace.folding import fold
from fakeamqp.trace.html.rows import KINDS, Rows, is_problem, kind_of, line_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakeamqp.runtime.engine import Engine
    from fakeamqp.trace import Recorder
    from fakeamqp.trace.events import Event
    from fakeamqp.trace.folding import FoldedLine

_HEARTBEAT = KINDS.index("heartbeat")
_MOST_TEXT = 400
_DIRECTIONS = {"received": 0, "sent": 1}
_MOST_FRAMES = 200
"""Entries after a method among which the frames of its content are looked for."""


class Timeline:
    """The events of one broker, read while it works.

    Args:
        engine: of the broker.
        recorder: of its trace; None if it is off.
    """

    def __init__(self, engine: Engine, recorder: Recorder | None) -> None:
        self._engine = engine
        self._recorder = recorder

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
            the time of its last event, and real time in seconds (None if the broker has no other time).
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
        events, where = [], []
        for at, entry in enumerate(entries):
            for place, event in enumerate(recorder.events_of((entry,), real_times[at : at + 1])):
                events.append(event)
                where.append((first + at, place))
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
            content), `body` (encoding and text, or None) and `size` of the body (-1 without content); see
            `fakeamqp.trace.html.rows`.
        """
        recorder = self._recorder
        if recorder is None:
            return None
        with self._engine.look():
            first, entries = recorder.entries_from(serial)
        if first != serial or not entries:
            return None
        events = islice(recorder.events_of(entries[:_MOST_FRAMES]), place, None)
        event = next(events, None)
        if event is None:
            return None
        rows = Rows([event, *_content_of(event, events)])
        row, pool = rows.rows[0], rows.pool
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
        }


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
    ]


def _content_of(method: Event, following: Iterator[Event]) -> Iterator[Event]:
    """The headers and bodies that belong to a method."""
    if not isinstance(method, FrameEvent):
        return
    place = (method.alias, method.direction, method.channel)
    for event in following:
        if isinstance(event, FrameEvent) and (event.alias, event.direction, event.channel) == place:
            if event.part not in ("header", "body"):
                return
            yield event
