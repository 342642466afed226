from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from fakeamqp.model.operations import STEP, Values, in_steps


def parts_of(items: Sequence[int], *, owned: bool = False) -> list[list[int]]:
    parts: list[list[int]] = []
    for _ in in_steps(items, lambda part: parts.append(list(part)), owned=owned):
        assert len(parts[-1]) <= STEP
    return parts


@pytest.mark.parametrize("count", [1, STEP, STEP + 1, 3 * STEP, 5 * STEP + 7])
def test_in_steps_puts_every_item_in_one_part_in_order(count: int) -> None:
    items = list(range(count))
    for each in (list(items), tuple(items), Values({number: number for number in items})):
        parts = parts_of(each)
        assert [item for part in parts for item in part] == items
        assert max(map(len, parts)) <= STEP


def test_in_steps_empties_list_only_if_owned() -> None:
    items = list(range(STEP + 1))
    parts_of(items)
    assert items == list(range(STEP + 1))
    parts_of(items, owned=True)
    assert items == []


def test_values_are_a_sequence_until_in_steps_consumes_them() -> None:
    values = Values({each: str(each) for each in range(STEP + 1)})
    assert len(values) == STEP + 1
    assert (values[0], values[-1], values[1:3]) == ("0", str(STEP), ["1", "2"])
    for _ in in_steps(values, lambda part: None):
        pass
    assert list(values) == []


def test_in_steps_empties_dict_of_values_step_by_step() -> None:
    """Freeing a million at once would be a stall of its own."""
    values = Values({each: each for each in range(4 * STEP)})
    lengths = [len(values) for _ in in_steps(values, lambda part: None)]
    assert max(before - after for before, after in pairwise(lengths)) <= STEP
    assert len(values) == 0
