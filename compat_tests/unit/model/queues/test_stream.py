"""The log of a stream: segments, what is dropped of them, and cursors that read it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from compat_tests.fuzz.profile import examples
from fakeamqp.model.queues.stream import Cursor, Log

HEADER = 8
NOTE = 82


def filled(count: int, *, octets: int = 10, **limits: int) -> Log[int]:
    """A log of numbers, one written every second."""
    log: Log[int] = Log()
    for name, limit in limits.items():
        setattr(log, name, limit)
    for number in range(count):
        log.append(number, octets, number * 1000)
    return log


def rest(cursor: Cursor[int]) -> list[int]:
    """What a cursor has before it."""
    items = []
    while (found := cursor.peek()) is not None:
        items.append(found[1])
        cursor.advance()
    return items


# --- writing -----------------------------------------------------------------------------------------------


def test_stream_offsets_count_from_zero() -> None:
    log: Log[str] = Log()
    assert [log.append(item, 1, 0) for item in "abc"] == [0, 1, 2]
    assert list(log) == [(0, "a"), (1, "b"), (2, "c")]
    assert len(log) == 3


def test_item_after_full_segment_begins_new_segment() -> None:
    log = filled(2, segment_size=HEADER + 20)
    assert log.segments == 1
    log.append(2, 10, 0)
    assert log.segments == 2


def test_publisher_note_takes_one_offset_in_every_segment_after_first() -> None:
    log = filled(0, segment_size=HEADER + NOTE + 20)
    for number in range(20):
        log.append(number, 10, 0, noted=True)
    # The first segment has no note, and so has room for more.
    offsets = [offset for offset, _ in log]
    assert offsets == [*range(11), *range(12, 14), *range(15, 17), *range(18, 20), *range(21, 23), 24]


def test_segments_without_named_publishers_have_no_note() -> None:
    log = filled(10, segment_size=HEADER + 20)
    assert [offset for offset, _ in log] == list(range(10))


# --- retention ---------------------------------------------------------------------------------------------


def test_log_without_limits_drops_no_items() -> None:
    log = filled(100, segment_size=HEADER + 20)
    assert log.retain(10**12) == 0
    assert len(log) == 100


def test_max_bytes_drops_only_whole_segments() -> None:
    log = filled(10, segment_size=HEADER + 20, max_bytes=2 * (HEADER + 20))
    # 8 and 9 in the newest, 6 and 7 before it: as much as may be.
    assert [item for _, item in log] == [6, 7, 8, 9]
    log.append(10, 10, 0)
    assert [item for _, item in log] == [8, 9, 10]  # Together 28 and 18, and 28 more would be too much.


def test_newest_segment_larger_than_max_bytes_is_kept() -> None:
    log = filled(100, max_bytes=1)
    assert log.retain(0) == 0
    log.segment_size = HEADER
    log.append(100, 10, 0)
    assert [item for _, item in log] == [100]


def test_max_age_drops_segment_by_age_of_its_last_item() -> None:
    log = filled(6, segment_size=HEADER + 20, max_age=10_000)
    assert log.retain(1000 + 10_000) == 0  # The first segment was last written to at 1000.
    assert log.retain(1000 + 10_001) == 2
    assert [item for _, item in log] == [2, 3, 4, 5]
    assert log.retain(10**9) == 2
    assert [item for _, item in log] == [4, 5]  # Old as they are.


def test_max_age_is_applied_when_new_segment_begins() -> None:
    log = filled(3, segment_size=HEADER + 20, max_age=1)
    assert [item for _, item in log] == [2]


# --- reading -----------------------------------------------------------------------------------------------


def test_cursor_begins_at_first_last_end_offset_or_time() -> None:
    log = filled(10, segment_size=HEADER + 30)
    assert rest(log.first()) == list(range(10))
    assert rest(log.last()) == [9]
    assert rest(log.end()) == []
    for offset in range(12):
        assert rest(log.at(offset)) == list(range(offset, 10))
    assert rest(log.at(-5)) == list(range(10))
    for second in range(10):
        assert rest(log.since(second * 1000)) == list(range(second, 10))
        assert rest(log.since(second * 1000 - 1)) == list(range(second, 10))
    assert rest(log.since(9001)) == []


def test_cursor_at_end_reads_items_written_later() -> None:
    log = filled(3, segment_size=HEADER + 20)
    cursors = [log.end(), log.since(10**9), log.at(3)]
    later = log.at(5)
    for number in range(3, 8):
        log.append(number, 10, 0)
    assert [rest(cursor) for cursor in cursors] == [[3, 4, 5, 6, 7]] * 3
    assert rest(later) == [5, 6, 7]


def test_last_cursor_of_empty_log_reads_next_item() -> None:
    log: Log[int] = Log()
    cursor = log.last()
    log.append(1, 1, 0)
    assert rest(cursor) == [1]


def test_cursor_in_dropped_segment_continues_at_first_remaining_item() -> None:
    log = filled(10, segment_size=HEADER + 20)
    start, inside = log.first(), log.at(1)
    log.max_bytes = 2 * (HEADER + 20)
    log.retain(0)
    assert rest(start) == rest(inside) == [6, 7, 8, 9]


def test_cursor_offset_is_offset_of_next_read() -> None:
    log = filled(3)
    assert [log.first().offset, log.last().offset, log.end().offset, log.at(7).offset] == [0, 2, 3, 7]


# --- losing the end ----------------------------------------------------------------------------------------


def test_truncate_cuts_items_after_last_kept_item() -> None:
    log = filled(10, segment_size=HEADER + 20)
    log.truncate(lambda item: item == 3)
    assert [item for _, item in log] == [0, 1, 2, 3]
    assert log.append(4, 10, 0) == 4
    log.truncate(lambda item: False)
    assert (len(log), log.next_offset, log.segments) == (0, 0, 1)


# --- against a plain list ----------------------------------------------------------------------------------


@dataclass
class Line:
    """What the plain list knows of one item."""

    offset: int
    item: int
    stamp: int
    segment: int


@dataclass
class Reader:
    """A cursor, and the offset from which the plain list is read."""

    cursor: Cursor[int]
    offset: int


class AgainstAList(RuleBasedStateMachine):
    """Every item in one list with the number of its segment; segments as a list of sizes."""

    readers = Bundle("readers")

    def __init__(self) -> None:
        super().__init__()
        self.log = filled(0, segment_size=100)
        self.lines: list[Line] = []
        self.sizes = {0: HEADER}
        self.touched = {0: 0}
        self.next_offset = 0
        self.written = 0
        self.now = 0

    def _newest(self) -> int:
        return max(self.sizes)

    def _begin(self, size: int) -> None:
        number = self._newest() + 1
        self.sizes[number] = size
        self.touched[number] = self.now

    def _drop(self, segments: list[int]) -> None:
        for number in segments:
            del self.sizes[number]
            del self.touched[number]
        self.lines = [line for line in self.lines if line.segment in self.sizes]

    def _retain(self) -> None:
        limit = self.log.max_bytes
        if limit is not None:
            numbers = sorted(self.sizes)
            fitting = [
                each
                for each in numbers
                if sum(self.sizes[later] for later in numbers if later >= each) <= limit
            ]
            least = min([*fitting, numbers[-1]])
            self._drop([each for each in numbers if each < least])
        age = self.log.max_age
        if age is not None:
            while len(self.sizes) > 1 and self.touched[min(self.sizes)] < self.now - age:
                self._drop([min(self.sizes)])

    @rule(octets=st.integers(0, 60), later=st.integers(0, 5), noted=st.booleans())
    def append(self, octets: int, later: int, noted: bool) -> None:
        self.now += later
        begun = False
        if noted and self.sizes[self._newest()] >= self.log.segment_size:
            self._begin(HEADER + NOTE)
            self.next_offset += 1
            begun = True
        if self.sizes[self._newest()] >= self.log.segment_size:
            self._begin(HEADER)
            begun = True
        newest = self._newest()
        self.lines.append(Line(self.next_offset, self.written, self.now, newest))
        self.sizes[newest] += octets
        self.touched[newest] = self.now
        assert self.log.append(self.written, octets, self.now, noted=noted) == self.next_offset
        self.next_offset += 1
        self.written += 1
        if begun:
            self._retain()

    @rule(
        size=st.integers(0, 300),
        octets=st.none() | st.integers(0, 600),
        age=st.none() | st.integers(0, 30),
    )
    def limit(self, size: int, octets: int | None, age: int | None) -> None:
        self.log.segment_size, self.log.max_bytes, self.log.max_age = size, octets, age

    @rule(later=st.integers(0, 20))
    def retain(self, later: int) -> None:
        self.now += later
        before = len(self.lines)
        self._retain()
        assert self.log.retain(self.now) == before - len(self.lines)

    @rule(target=readers)
    def from_first(self) -> Reader:
        return Reader(self.log.first(), 0)

    @rule(target=readers)
    def from_last(self) -> Reader:
        return Reader(self.log.last(), self.lines[-1].offset if self.lines else self.next_offset)

    @rule(target=readers)
    def from_end(self) -> Reader:
        return Reader(self.log.end(), self.next_offset)

    @rule(target=readers, offset=st.integers(-2, 60))
    def from_offset(self, offset: int) -> Reader:
        return Reader(self.log.at(offset), offset)

    @rule(target=readers, ago=st.integers(-3, 40))
    def from_time(self, ago: int) -> Reader:
        found = [line.offset for line in self.lines if line.stamp >= self.now - ago]
        return Reader(self.log.since(self.now - ago), found[0] if found else self.next_offset)

    @rule(reader=readers, most=st.integers(1, 10))
    def read(self, reader: Reader, most: int) -> None:
        for _ in range(most):
            found = next(
                ((each.offset, each.item) for each in self.lines if each.offset >= reader.offset), None
            )
            assert reader.cursor.peek() == found
            if found is None:
                return
            reader.cursor.advance()
            reader.offset = found[0] + 1

    @invariant()
    def holds_the_same(self) -> None:
        assert list(self.log) == [(line.offset, line.item) for line in self.lines]
        stamps = [stamp for segment in self.log._segments for stamp in segment.stamps]
        assert stamps == [line.stamp for line in self.lines]
        assert len(self.log) == len(self.lines)
        assert self.log.segments == len(self.sizes)

    @precondition(lambda self: len(self.lines) > 0)
    @invariant()
    def knows_its_oldest_segment(self) -> None:
        assert self.log.oldest_segment_stamp == self.touched[min(self.sizes)]


def test_log_behaves_like_plain_list_in_random_programs() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        AgainstAList, settings=examples(100, stateful_step_count=60)
    )
