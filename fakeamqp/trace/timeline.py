"""The record of what happened, as typed events and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.trace.events import ConnectionEvent, Event, FrameEvent, ModelEvent
from fakeamqp.trace.model_events import publisher_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Entry", "Trace"]

Entry: TypeAlias = "tuple[Any, ...]"
"""One event as recorded. A peer is (name, alias).

Of a frame: (instant, peer, direction, type, channel, payload); of a connection: (instant, peer, event,
detail); of the model: (instant, None, event, facts).
"""

_ARROWS = {"received": "->", "sent": "<-"}


class Trace:
    """What a recorder had at one moment; immutable.

    Args:
        entries: as recorded.
        dropped: how many older events are no longer kept.
        began: the instant that times are counted from.
    """

    __slots__ = ("_began", "_entries", "dropped")

    def __init__(self, entries: tuple[Entry, ...], dropped: int = 0, began: float = 0.0) -> None:
        self._entries = entries
        self._began = began
        self.dropped = dropped

    def __len__(self) -> int:
        """How many events there are."""
        return len(self._entries)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that is kept, in order."""
        return tuple(_typed(self._entries, self._began))

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


def _typed(entries: Iterable[Entry], began: float) -> Iterator[Event]:
    """The events that the entries stand for. The model's go to the connection of the publisher."""
    aliases: dict[str, str] = {}
    for instant, peer, *rest in entries:
        if peer is not None:
            name, alias = peer
            aliases[name] = alias
            yield (FrameEvent if len(rest) == 4 else ConnectionEvent)(instant - began, name, alias, *rest)
        else:
            event, facts = rest
            publisher = publisher_name(facts)
            yield ModelEvent(instant - began, publisher, aliases.get(publisher or "", ""), event, facts)


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
