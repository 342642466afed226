"""What the machines draw their small decisions from."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

__all__ = ["DICE", "Dice"]


class Dice:
    """Draws small numbers from a large one; 0 always draws the first."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __call__(self, count: int) -> int:
        self._number, drawn = divmod(self._number, count)
        return drawn

    def one(self, *of: Any) -> Any:
        return of[self(len(of))]

    def some(self, of: list[int]) -> list[int]:
        """The first, or a part in any order."""
        if not of:
            return []
        first = self(len(of))
        found = of[first : first + 1 + self(len(of))]
        return found[::-1] if self(2) else found


DICE = st.integers(0, 2**48).map(Dice)
