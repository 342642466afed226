"""The containers of quorum queues: what is next, by priority and by what came back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.unit.model.fakes import positions, queued
from fakeamqp.model.queues.quorum.messages import PriorityLevels, ReturnsFirst, SingleQueue, TwoBands

KINDS = (SingleQueue, TwoBands, PriorityLevels)
priorities = st.lists(st.none() | st.integers(0, 255), max_size=30)


def filled(kind: Any, *asked: int | None) -> Any:
    """Messages in positions 1, 2, … with these priorities."""
    bands = kind()
    for position, priority in enumerate(asked, 1):
        bands.append(queued(position, priority), priority)
    return bands


def popped(bands: Any) -> list[int]:
    found = []
    while len(bands):
        head = bands.head()
        found.append(bands.pop().position)
        assert head is not None and head.position == found[-1]
    return found


def test_single_queue_ignores_priorities() -> None:
    assert popped(filled(SingleQueue, 1, 9, None)) == [1, 2, 3]


def test_two_bands_deliver_two_high_messages_for_each_normal_message() -> None:
    assert popped(filled(TwoBands, 0, 0, 0, 9, 9, 9, 9, 9)) == [4, 5, 1, 6, 7, 2, 8, 3]


def test_two_bands_deliver_older_high_messages_before_normal_messages() -> None:
    assert popped(filled(TwoBands, 9, 9, 9, 0, 0)) == [1, 2, 3, 4, 5]


def test_two_bands_keep_count_of_turns_while_empty() -> None:
    bands = filled(TwoBands, 0)
    bands.pop()
    for position, priority in ((2, 0), (3, 9), (4, 9)):
        bands.append(queued(position, priority), priority)
    assert popped(bands) == [3, 2, 4]


def test_purge_resets_turns_of_two_bands() -> None:
    bands = filled(TwoBands, 0)
    bands.pop()
    bands.clear()
    for position, priority in ((2, 0), (3, 9), (4, 9)):
        bands.append(queued(position, priority), priority)
    assert popped(bands) == [3, 4, 2]


def test_priority_levels_are_strict_up_to_level_31() -> None:
    assert popped(filled(PriorityLevels, 0, None, 31, 4, 255, 5)) == [3, 5, 6, 2, 4, 1]


@pytest.mark.parametrize("kind", KINDS)
@given(asked=priorities, taken=st.integers(0, 5))
def test_iteration_order_equals_pop_order(kind: Any, asked: list[int | None], taken: int) -> None:
    bands = filled(kind, *asked)
    for _ in range(min(taken, len(bands))):
        bands.pop()
    expected = positions(bands)
    assert len(expected) == len(bands)
    assert popped(bands) == expected


@pytest.mark.parametrize("kind", KINDS)
@given(asked=priorities, dead=st.sets(st.integers(1, 30)))
def test_take_while_takes_matching_messages_until_no_head_matches(
    kind: Any, asked: list[int | None], dead: set[int]
) -> None:
    bands = filled(kind, *asked)
    taken = positions(bands.take_while(lambda each: each.position in dead))
    assert set(taken) <= dead
    assert not {each.position for each in bands.heads()} & dead
    assert sorted(taken + popped(bands)) == list(range(1, len(asked) + 1))


@pytest.mark.parametrize("kind", ["none", "bands", "levels"])
@given(asked=priorities, back=st.integers(0, 5))
def test_purge_takes_all_messages_in_delivery_order(kind: Any, asked: list[int | None], back: int) -> None:
    ready = ReturnsFirst(kind)
    for position, priority in enumerate(asked, 1):
        ready.append(queued(position, priority))
    for position in range(back):
        ready.put_back(queued(100 + position))
    expected = positions(ready)
    assert positions(ready.clear()) == expected
    assert (len(ready), positions(ready), ready.head(), positions(ready.clear())) == (0, [], None, [])
    ready.append(queued(1))
    assert popped(ready) == [1]


@pytest.mark.parametrize("kind", ["none", "bands", "levels"])
def test_requeued_messages_go_first_in_order_of_their_return(kind: Any) -> None:
    ready = ReturnsFirst(kind)
    ready.append(queued(3, 9))
    for position in (2, 1):
        ready.put_back(queued(position))
    ready.append_plain(queued(4, 9))
    assert positions(ready) == [2, 1, 3, 4]
    assert len(ready) == 4
    assert [ready.pop().position for _ in range(4)] == [2, 1, 3, 4]
    assert ready.head() is None


def test_message_appended_plain_loses_its_priority() -> None:
    ready = ReturnsFirst("levels")
    ready.append_plain(queued(1, 9))
    ready.append(queued(2, 5))
    assert positions(ready) == [2, 1]


@pytest.mark.parametrize(("kind", "heads"), [("none", [1]), ("bands", [1]), ("levels", [1, 3, 2])])
def test_heads_behind_requeued_message_exist_only_with_priority_levels(kind: Any, heads: list[int]) -> None:
    ready = ReturnsFirst(kind)
    ready.append(queued(2, 1))
    ready.append(queued(3, 9))
    ready.put_back(queued(1))
    assert positions(ready.heads()) == heads


@pytest.mark.parametrize(("kind", "left"), [("none", [1, 2]), ("levels", [1])])
def test_requeued_message_hides_messages_behind_it_except_with_priority_levels(
    kind: Any, left: list[int]
) -> None:
    ready = ReturnsFirst(kind)
    ready.put_back(queued(1))
    ready.append(queued(2))
    ready.take_while(lambda each: each.position == 2)
    assert positions(ready) == left
    assert positions(ready.clear()) == left
    assert not len(ready)
