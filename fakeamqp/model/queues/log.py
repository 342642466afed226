"""The log behind a stream: items by offset, kept in segments that are dropped whole.

Theory of operation. Items are only added at the end, and each has an offset one above the last. They are kept
in segments; a full segment is followed by a new one with the next item. Retention drops whole segments from
the front, but never the newest one (RabbitMQ: documented retention). Readers hold cursors. A cursor knows its
segment and its place in it, and segments are linked, so reading the next item has constant cost. A cursor
whose segment was dropped continues with the first item of the log.

A new segment may begin with a note that names the publishers so far, which takes one offset (RabbitMQ:
measured). So offsets within a segment have no gaps; between two segments there may be one.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["DEFAULT_SEGMENT_SIZE", "Cursor", "Log", "LogEntry"]

T = TypeVar("T")

DEFAULT_SEGMENT_SIZE = 500_000_000
"""Bytes after which a segment is full (RabbitMQ: documented)."""

_SEGMENT_HEADER = 8
_NOTE = 82  # Bytes of a note that names one publisher.


@dataclass(frozen=True)
class LogEntry(Generic[T]):
    """One item of the log. `stamp` is the time of its writing, in milliseconds since 1970."""

    offset: int
    item: T
    stamp: int


class _Segment(Generic[T]):
    """Items with consecutive offsets from `first` on."""

    __slots__ = ("dropped", "first", "following", "items", "octets", "stamp", "stamps")

    def __init__(self, first: int) -> None:
        self.first: int = first
        self.items: list[T] = []
        self.stamps: array[int] = array("q")
        self.stamp: int = 0
        self.octets: int = _SEGMENT_HEADER
        self.following: _Segment[T] | None = None
        self.dropped: bool = False


class Log(Generic[T]):
    """Items by offset.

    Args:
        segment_size: bytes after which a segment is full.
        max_bytes: limit of the log without its newest segment; None means no limit.
        max_age: limit in milliseconds of the age of a segment's newest item; None means no limit.
    """

    __slots__ = (
        "_count",
        "_segments",
        "begun",
        "lost",
        "max_age",
        "max_bytes",
        "next_offset",
        "segment_size",
    )

    def __init__(
        self,
        segment_size: int = DEFAULT_SEGMENT_SIZE,
        max_bytes: int | None = None,
        max_age: float | None = None,
    ) -> None:
        self.segment_size: int = segment_size
        self.max_bytes: int | None = max_bytes
        self.max_age: float | None = max_age
        self.next_offset: int = 0
        self.begun: int = 1
        """How many segments have been begun."""
        self.lost: Callable[[list[T]], None] = lambda items: None
        """Called with the items that retention drops."""
        self._count = 0
        self._segments: list[_Segment[T]] = [_Segment(0)]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[LogEntry[T]]:
        for segment in self._segments:
            yield from map(LogEntry, range(segment.first, self.next_offset), segment.items, segment.stamps)

    def __repr__(self) -> str:
        return f"<Log of {self._count} items in {len(self._segments)} segments, next is {self.next_offset}>"

    # --- writing ------------------------------------------------------------------------------------

    def append(self, item: T, octets: int, stamp: int, *, noted: bool = False) -> int:
        """Write an item at the end. If that begins a new segment, apply retention.

        Args:
            item: the item.
            octets: its size.
            stamp: the time, in milliseconds since 1970.
            noted: whether its publisher is named in the notes of new segments.

        Returns:
            Its offset.
        """
        begun = self.begun
        if noted and self._full:
            self._begin_segment(stamp, note=True)
        if self._full:
            self._begin_segment(stamp)
        segment = self._segments[-1]
        offset = self.next_offset
        segment.items.append(item)
        segment.stamps.append(stamp)
        segment.stamp = stamp
        segment.octets += octets
        self.next_offset = offset + 1
        self._count += 1
        if self.begun != begun:
            self.retain(stamp)
        return offset

    @property
    def _full(self) -> bool:
        return self._segments[-1].octets >= self.segment_size

    def _begin_segment(self, stamp: int, *, note: bool = False) -> None:
        if note:
            self.next_offset += 1
        segment: _Segment[T] = _Segment(self.next_offset)
        segment.stamp = stamp
        if note:
            segment.octets += _NOTE
        self._segments[-1].following = segment
        self._segments.append(segment)
        self.begun += 1

    def truncate(self, keep: Callable[[T], bool]) -> list[T]:
        """Remove items from the end, back to the last one that is to be kept.

        There must be no cursors. Offsets are given again. Returns the removed items, oldest first.
        """
        taken: list[T] = []
        while True:
            segment = self._segments[-1]
            while segment.items and not keep(segment.items[-1]):
                taken.append(segment.items.pop())
                segment.stamps.pop()
                self._count -= 1
            self.next_offset = segment.first + len(segment.items)
            if segment.items or len(self._segments) == 1:
                return taken[::-1]
            self._segments.pop()
            self._segments[-1].following = None

    def discard(self) -> list[list[T]]:
        """Remove all items, for good. Returns those of each segment."""
        self.lost = lambda items: None
        self._count = 0
        items = [segment.items for segment in self._segments]
        for segment in self._segments:
            segment.items = []
        return items

    # --- retention ----------------------------------------------------------------------------------

    @property
    def segments(self) -> int:
        """The number of segments."""
        return len(self._segments)

    @property
    def oldest_segment_stamp(self) -> int:
        """The time of the last write to the oldest segment."""
        return self._segments[0].stamp

    def retain(self, now: int) -> int:
        """Drop segments beyond the limits at `now` (milliseconds since 1970). Returns how many items."""
        before = self._count
        segments = self._segments
        if self.max_bytes is not None:
            allowed = self.max_bytes - segments[-1].octets
            kept = 1
            for segment in reversed(segments[:-1]):
                if segment.octets > allowed:
                    break
                allowed -= segment.octets
                kept += 1
            self._drop(len(segments) - kept)
        if self.max_age is not None:
            old = 0
            while old < len(segments) - 1 and segments[old].stamp < now - self.max_age:
                old += 1
            self._drop(old)
        return before - self._count

    def _drop(self, count: int) -> None:
        for segment in self._segments[:count]:
            self._count -= len(segment.items)
            segment.dropped = True
            lost, segment.items = segment.items, []
            segment.following = None
            self.lost(lost)
        del self._segments[:count]

    # --- reading ------------------------------------------------------------------------------------

    def first(self) -> Cursor[T]:
        """A cursor at the first item."""
        return Cursor(self, self._segments[0])

    def last(self) -> Cursor[T]:
        """A cursor at the last item, or at the next one if the log is empty."""
        for segment in reversed(self._segments):
            if segment.items:
                return Cursor(self, segment, len(segment.items) - 1)
        return self.end()

    def end(self) -> Cursor[T]:
        """A cursor at the next item that will be written."""
        segment = self._segments[-1]
        return Cursor(self, segment, len(segment.items))

    def at(self, offset: int) -> Cursor[T]:
        """A cursor at this offset, or at the first present or future item after it."""
        place = bisect_left(self._segments, offset + 1, key=lambda segment: segment.first) - 1
        return Cursor(self, self._segments[max(0, place)], least=offset)

    def since(self, stamp: float) -> Cursor[T]:
        """A cursor at the first item that was written then or later, or at the next one."""
        for segment in self._segments:
            if segment.items and segment.stamp >= stamp:
                return Cursor(self, segment, bisect_left(segment.stamps, stamp))
        return self.end()


class Cursor(Generic[T]):
    """A reader's place in a log."""

    __slots__ = ("_index", "_least", "_log", "_segment")

    def __init__(self, log: Log[T], segment: _Segment[T], index: int = 0, least: int = 0) -> None:
        self._log = log
        self._segment = segment
        self._index = index
        self._least = least

    @property
    def offset(self) -> int:
        """The offset of the next item, or the lowest that it can have."""
        found = self.peek()
        return max(self._log.next_offset, self._least) if found is None else found[0]

    def peek(self) -> tuple[int, T] | None:
        """The next item with its offset, not yet passed; None if there is none yet."""
        segment = self._segment
        while True:
            if segment.dropped:
                segment = self._segment = self._log._segments[0]
                self._index = 0
            index = self._index
            if index < len(segment.items):
                offset = segment.first + index
                if offset >= self._least:
                    return offset, segment.items[index]
                self._index = min(self._least - segment.first, len(segment.items))
            elif segment.following is None:
                return None
            else:
                segment = self._segment = segment.following
                self._index = 0

    def advance(self) -> None:
        """Pass the item that `peek` returned."""
        self._index += 1
