"""The objects of this process that are still in memory, for tests of what must not be kept."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


def alive(*kinds: type[T], but: Iterable[object] = ()) -> list[T]:
    """All objects of `kinds`, `but` those that were there before: other tests may have some to keep."""
    gc.collect()
    known = {id(each) for each in but}
    return [each for each in gc.get_objects() if isinstance(each, kinds) and id(each) not in known]


@contextmanager
def only_new_objects() -> Iterator[None]:
    """In the block, `alive` and the collector look only at objects made in the block.

    Looking at all objects of a process that has run thousands of tests takes seconds.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
