"""Counts that a test expects, and what is said about invalid ones."""

from __future__ import annotations

import pytest

from fakeamqp.inspect.errors import BadExpectation, CountRange


@pytest.mark.parametrize(
    ("count", "holding", "words"),
    [
        (0, [0], "exactly 0"),
        (2, [2], "exactly 2"),
        ((1, None), [1, 2, 3, 4], "at least 1"),
        ((2, 3), [2, 3], "2 to 3"),
        ((2, 2), [2], "exactly 2"),
    ],
)
def test_count_range_accepts_its_numbers_and_is_described_in_words(count, holding, words):
    wanted = CountRange.of(count)
    assert [number for number in range(5) if wanted.holds(number)] == holding
    assert str(wanted) == words


def test_count_range_is_passed_only_beyond_its_upper_limit():
    assert [number for number in range(5) if CountRange.of((1, 2)).passed_by(number)] == [3, 4]
    assert not CountRange.of((1, None)).passed_by(1000)


@pytest.mark.parametrize("count", [-1, True, "2", 1.5, (1,), (None, 1), (3, 2), (1, 2, 3), [1, 2, 3]])
def test_invalid_count_is_refused(count):
    with pytest.raises(BadExpectation, match="unacked="):
        CountRange.of(count, "unacked")
