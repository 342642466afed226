"""The record of what happened, as typed events and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.trace.entries import typed
from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    from typing_extensions import Self

    from fakeamqp.trace.entries import Entry

__all__ = ["Trace"]

_ARROWS = {"received": "->", "sent": "<-"}


class Trace:
    """What a recorder had at one moment; immutable.

    Args:
        entries: as recorded; see `fakeamqp.trace.entries`.
        dropped: how many older entries are no longer kept.
        began: the instant that times are counted from.
        capacity: how many events there are at most, the latest, or None for all that the entries stand for.
        aliases: short names of connections by their names, where the entries may not tell them.
        wall_time: what time it was then, in seconds since 1970, or None if that is not known.
        clock: whose time that is: "real", "virtual" or "wall".
    """

    __slots__ = ("_aliases", "_began", "_capacity", "_dropped", "_entries", "_events", "clock", "wall_time")

    def __init__(
        self,
        entries: tuple[Entry, ...],
        dropped: int = 0,
        began: float = 0.0,
        *,
        capacity: int | None = None,
        aliases: Mapping[str, str] | None = None,
        wall_time: float | None = None,
        clock: str = "real",
    ) -> None:
        self._entries = entries
        self._began = began
        self._capacity = capacity
        self._aliases = aliases or {}
        self._events: tuple[Event, ...] | None = None
        self._dropped = dropped
        self.wall_time = wall_time
        self.clock = clock

    @classmethod
    def of(
        cls,
        events: Iterable[Event],
        dropped: int = 0,
        *,
        wall_time: float | None = None,
        clock: str = "real",
    ) -> Self:
        """A trace of these events, such as a part of another one's."""
        trace = cls((), dropped, wall_time=wall_time, clock=clock)
        trace._events = tuple(events)
        return trace

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `jsonl` has written. Messages and outcomes are pictures of what they were.

        Raises:
            RecordingError: the file is no recording, or it is damaged; the text says where.
            OSError: it cannot be opened.
        """
        from fakeamqp.trace.json_lines import read

        header, events = read(path)
        return cls.of(events, header["dropped"], wall_time=header["began"], clock=header["clock"])

    def __len__(self) -> int:
        """How many events there are."""
        return len(self.events)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is kept, in order."""
        if self._events is None:
            events = tuple(typed(self._entries, self._began, self._aliases))
            more = 0 if self._capacity is None else max(0, len(events) - self._capacity)
            self._events = events[more:]
            self._dropped += more
            self._entries = ()
        return self._events

    @property
    def dropped(self) -> int:
        """How many older events are no longer kept, at least: frames sent in one piece may count as one."""
        # How many events the oldest entries stand for, and so how many are left out, is known once they are
        # made.
        _ = self.events
        return self._dropped

    def jsonl(self, path: str | os.PathLike[str], *, redact: bool = True) -> None:
        """Write it to a file as JSON Lines: a recording, which `load` and `fakeamqp replay` read.

        The schema is in `fakeamqp.trace.json_lines` and `fakeamqp.trace.plain`. Bodies of messages are in it.

        Args:
            path: of the file; one that is there is replaced.
            redact: put asterisks in the place of passwords. With False the file holds what clients sent.

        Raises:
            OSError: the file cannot be written.
        """
        from fakeamqp.trace.json_lines import write

        write(self, path, redact=redact)

    def pcapng(self, path: str | os.PathLike[str], *, redact: bool = True) -> None:
        """Write it to a file that Wireshark opens: one TCP stream per connection, dissected as AMQP.

        What happened to connections and messages is in comments on the packets. The broker's port is written
        as 5672, so that Wireshark knows what it sees; what went over TLS is written in plain.

        Args:
            path: of the file; one that is there is replaced.
            redact: put asterisks in the place of passwords.

        Raises:
            OSError: the file cannot be written.
        """
        from fakeamqp.trace.pcapng import write

        write(self, path, redact=redact)

    def parquet(self, path: str | os.PathLike[str]) -> None:
        """Write it to a Parquet file, a row for each event; `fakeamqp.trace.parquet` describes the columns.

        Passwords are not in it, bodies of messages are. Needs pyarrow (extra `trace`).

        Args:
            path: of the file; one that is there is replaced.

        Raises:
            PyarrowMissing: it is not installed.
            OSError: the file cannot be written.
        """
        from fakeamqp.trace.parquet import write

        write(self, path)

    def html(self, path: str | os.PathLike[str] | None = None, *, title: str = "") -> str:
        """One self-contained page: a sequence diagram with filter and search. It loads nothing from anywhere.

        `page.html#e123` opens it at `events[123]`. Passwords are not in it; bodies of messages are, of a long
        one its first 16 KiB.

        Args:
            path: also write it to this file; one that is there is replaced.
            title: what the trace is of, such as the name of a test.

        Raises:
            OSError: the file cannot be written.
        """
        from fakeamqp.trace.html import page

        text = page(self.events, self.dropped, title, self.clock)
        if path is not None:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        return text

    def timeline(self, limit: int | None = None, connection: str | None = None) -> str:
        """What happened, one line per event: time, connection, direction, channel, and what it was.

        `->` is what the broker received and `<-` what it sent. Times are seconds since the broker was made.

        Args:
            limit: show only so many of the latest events.
            connection: show only what concerns this one, by its name or its short name.
        """
        events = list(self.events)
        if connection is not None:
            events = [event for event in events if connection in (event.connection, event.alias)]
        left_out = max(0, len(events) - limit) if limit is not None else 0
        events = events[left_out:]
        notes = []
        if self.dropped:
            notes.append(f"({self.dropped} earlier events are no longer kept)")
        if left_out:
            notes.append(f"({left_out} earlier events left out)")
        return "\n".join((*notes, *_introductions(events), *_lines(events)))

    def __repr__(self) -> str:
        older = f" and {self.dropped} that are no longer kept" if self.dropped else ""
        return f"<Trace of {len(self)} events{older}>"


def _introductions(events: list[Event]) -> Iterator[str]:
    """Who is who, where the line that tells it is not among those shown."""
    told = set()
    for event in events:
        if not event.alias or event.alias in told:
            continue
        told.add(event.alias)
        if not (isinstance(event, ConnectionEvent) and event.event == "connected"):
            yield f"({event.alias} is {event.connection})"


def _lines(events: list[Event]) -> Iterator[str]:
    width = max((len(event.alias) for event in events), default=0)
    for event in events:
        start = f"{event.time:9.3f}  {event.alias:<{width}}"
        if isinstance(event, FrameEvent):
            yield f"{start} {_ARROWS[event.direction]} {event.channel:<4} {event.text}"
        else:
            mark = "--" if isinstance(event, ConnectionEvent) else "=="
            yield f"{start} {mark}      {event.text}"
