"""Finds the choices that make a difference by running the test again with some of them switched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

__all__ = ["Test", "smallest"]

Names: TypeAlias = "tuple[str, ...]"
Test: TypeAlias = Callable[[Names], bool]
"""Whether the difference shows with these choices switched."""


def smallest(names: Sequence[str], shows: Test) -> Names:
    """Some of the choices with which the difference shows, none of which can be left out.

    Halves the choices again and again (the algorithm is known as QuickXplain), so a single cause among n
    choices takes about 2 log2 n runs. The difference must show with all of them, and stay with more of them.

    Args:
        names: the choices.
        shows: runs the test.
    """
    return _needed((), False, tuple(names), shows)


def _needed(beside: Names, changed: bool, names: Names, shows: Test) -> Names:
    """Those of `names` that are needed beside the choices `beside`.

    Args:
        beside: choices that are switched as well.
        changed: whether `beside` has grown since the last run with it.
        names: the candidates.
        shows: runs the test.
    """
    if changed and shows(beside):
        return ()
    if len(names) == 1:
        return names
    middle = len(names) // 2
    left, right = names[:middle], names[middle:]
    from_right = _needed((*beside, *left), True, right, shows)
    from_left = _needed((*beside, *from_right), bool(from_right), left, shows)
    return (*from_left, *from_right)
