"""The objects of this process that are still in memory, for tests of what must not be kept."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def alive(*kinds: type[T], but: Iterable[object] = ()) -> list[T]:
    """All objects of `kinds`, `but` those that were there before: other tests may have some to keep."""
    gc.collect()
    known = {id(each) for each in but}
    return [each for each in gc.get_objects() if isinstance(each, kinds) and id(each) not in known]
