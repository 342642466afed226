"""The objects of this process that are still in memory, for tests of what must not be kept."""

from __future__ import annotations

import gc
import sys
from types import FrameType, ModuleType
from typing import TypeVar

T = TypeVar("T")


def alive(*kinds: type[T]) -> list[T]:
    """All objects of `kinds`; other tests may have some to keep, see `ignore_older_objects`."""
    for _ in range(5):  # What a finalizer lets go is found the next time.
        if not gc.collect():
            break
    return [each for each in gc.get_objects() if isinstance(each, kinds)]


def held_by(thing: object, most: int = 12) -> str:
    """What keeps an object in memory: a chain of objects, each held by the next, to be shown by a failure."""
    chain, seen = [thing], {id(thing)}
    mine = sys._getframe()
    while len(chain) < most and not isinstance(chain[-1], ModuleType | FrameType):
        seen |= {id(chain), id(seen), id(mine)}
        holders = [each for each in gc.get_referrers(chain[-1]) if id(each) not in seen and each is not mine]
        if not holders:
            break
        chain.append(holders[0])
        seen.add(id(holders[0]))
        del holders
    return " <- ".join(f"{type(each).__name__} {repr(each)[:100]}" for each in chain)


def ignore_older_objects() -> None:
    """From now on `alive` and the collector look only at objects made later.

    Looking at all objects of a process that has run thousands of tests takes a second.
    """
    gc.collect()
    gc.freeze()
