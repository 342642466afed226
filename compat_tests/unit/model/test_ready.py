from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.unit.model.fakes import positions, queued
from fakeamqp.model.queues.waiting import Fifo, MessagesOf, PriorityFifo


@pytest.mark.parametrize("ready", [Fifo(), PriorityFifo(9)], ids=["plain", "priority"])
def test_empty_ready_list_has_no_head_and_accepts_returned_message(ready: Fifo | PriorityFifo) -> None:
    assert len(ready) == 0
    assert not ready
    assert ready.head() is None
    assert not ready.clear()
    ready.put_back([queued(1)])
    assert positions(ready) == [1]
    ready.clear()


def test_fifo_pops_messages_in_order_of_arrival() -> None:
    ready = Fifo()
    for position in (1, 2, 3):
        ready.append(queued(position))
    head = ready.head()
    assert head is not None
    assert head.position == 1
    assert [ready.pop().position, ready.pop_lowest().position, ready.pop().position] == [1, 2, 3]


@given(st.lists(st.sampled_from(["waits", "returned", "returns"]), max_size=30))
def test_put_in_front_accepts_only_messages_that_belong_to_the_front(kinds: list[str]) -> None:
    items = [queued(position) for position in range(1, len(kinds) + 1)]
    by_kind = {
        kind: [item for item, each in zip(items, kinds, strict=True) if each == kind]
        for kind in ("waits", "returned", "returns")
    }
    ready = Fifo()
    for item in by_kind["waits"]:
        ready.append(item)
    ready.put_back(by_kind["returned"])
    before = positions(ready)
    if not by_kind["returns"]:
        return
    if ready.put_in_front(deque(by_kind["returns"])):
        assert positions(ready) == list(range(1, len(kinds) + 1))
        assert [ready.pop().position for _ in range(len(kinds))] == list(range(1, len(kinds) + 1))
    else:
        assert positions(ready) == before
        assert by_kind["returned"] or before[0] < by_kind["returns"][-1].position


@given(st.lists(st.booleans(), max_size=30), st.randoms(use_true_random=False))
def test_fifo_puts_returned_messages_back_into_their_positions(taken: list[bool], random: object) -> None:
    items = [queued(position) for position in range(len(taken))]
    ready = Fifo()
    for item, gone in zip(items, taken, strict=True):
        if not gone:
            ready.append(item)
    returned = [item for item, gone in zip(items, taken, strict=True) if gone]
    random.shuffle(returned)  # type: ignore[attr-defined]
    half = len(returned) // 2
    for some in (returned[:half], returned[half:]):
        if some:
            ready.put_back(some)
    assert positions(ready) == list(range(len(items)))


def test_message_can_be_removed_from_middle_of_fifo_and_put_back() -> None:
    ready = Fifo()
    items = [queued(position) for position in range(5)]
    for item in items:
        ready.append(item)
    ready.remove(items[2])
    assert positions(ready) == [0, 1, 3, 4]
    ready.put_back([items[2]])
    assert positions(ready) == [0, 1, 2, 3, 4]


@given(st.lists(st.one_of(st.none(), st.integers(0, 255)), max_size=40), st.integers(0, 12))
def test_priority_fifo_pops_by_priority_and_then_in_order_of_arrival(
    given_: list[int | None], most: int
) -> None:
    ready = PriorityFifo(most)
    for position, priority in enumerate(given_):
        ready.append(queued(position, priority))
    expected = sorted(range(len(given_)), key=lambda at: (-min(given_[at] or 0, most), at))
    assert positions(ready) == expected
    assert len(ready) == len(given_)
    popped = []
    while ready:
        head = ready.head()
        popped.append(ready.pop())
        assert popped[-1] is head
    assert positions(popped) == expected


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.data())
def test_priority_fifo_puts_returned_messages_back_into_their_positions(
    priorities: list[int], data: st.DataObject
) -> None:
    ready = PriorityFifo(3)
    items = [queued(position, priority) for position, priority in enumerate(priorities)]
    for item in items:
        ready.append(item)
    before = positions(ready)
    chosen = data.draw(st.lists(st.sampled_from(items), unique_by=id))
    for item in chosen:
        ready.remove(item)
    assert len(ready) == len(items) - len(chosen)
    ready.put_back(chosen)
    assert positions(ready) == before
    assert len(ready) == len(items)


@given(st.lists(st.integers(0, 5), max_size=20), st.data())
def test_gathered_messages_return_to_same_positions_as_single_ones(
    priorities: list[int], data: st.DataObject
) -> None:
    items = [queued(position, priority) for position, priority in enumerate(priorities)]
    chosen = data.draw(st.lists(st.sampled_from(items), unique_by=id)) if items else []
    found = []
    for together in (True, False):
        ready = PriorityFifo(3)
        for item in items:
            ready.append(item)
        for item in chosen:
            ready.remove(item)
        if together:
            gathered = ready.returning()
            for item in chosen:
                gathered.append(item)
            assert len(gathered) == len(chosen)
            assert sorted(positions(gathered)) == sorted(each.position for each in chosen)
            ready.put_back(gathered)
        else:
            for item in chosen:
                ready.put_back((item,))
        assert len(ready) == len(items)
        found.append([ready.pop().position for _ in items])
        assert not ready
    assert found[0] == found[1]


def test_pop_lowest_takes_oldest_message_of_lowest_priority() -> None:
    ready = PriorityFifo(9)
    for position, priority in enumerate((5, 1, 9, 1, 5)):
        ready.append(queued(position, priority))
    assert [ready.pop_lowest().position for _ in range(5)] == [1, 3, 0, 4, 2]
    assert len(ready) == 0


@given(st.lists(st.integers(0, 3), max_size=20), st.data())
def test_clear_takes_all_messages_in_delivery_order(priorities: list[int], data: st.DataObject) -> None:
    for ready in (Fifo(), PriorityFifo(3)):
        items = [queued(position, priority) for position, priority in enumerate(priorities)]
        for item in items:
            ready.append(item)
        returned = data.draw(st.lists(st.sampled_from(items), unique_by=id)) if items else []
        for item in returned:
            ready.remove(item)
        ready.put_back(returned)
        expected = positions(ready)
        assert positions(ready.clear()) == expected
        assert (len(ready), positions(ready), ready.head()) == (0, [], None)
        ready.append(queued(1))
        assert positions(ready.clear()) == [1]


@given(st.integers(0, 6), st.slices(8) | st.integers(-8, 8))
def test_messages_of_queued_messages_are_a_sequence(count: int, index: Any) -> None:
    those = [queued(each) for each in range(count)]
    expected = [each.message for each in those]
    for kind in (list, tuple, deque):
        messages = MessagesOf(kind(those))
        assert [*messages] == expected
        assert len(messages) == count
        if isinstance(index, slice) or -count <= index < count:
            assert messages[index] == expected[index]
        else:
            with pytest.raises(IndexError):
                messages[index]
