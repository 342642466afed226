"""Sets with the order in which they were filled, for clients that keep objects in sets.

The order of a set is that of the hashes of its elements, and that of an object is made of its address, unless
its class says otherwise. aio-pika restores the channels of a connection in the order of such a set, so their
order would be another one in each process. So while a simulation with a seed runs, some modules of clients
make these sets instead.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, MutableSet
from contextlib import contextmanager
from typing import Any, TypeVar
from weakref import WeakSet

__all__ = ["OrderedSet", "OrderedWeakSet", "ordered_sets"]

T = TypeVar("T", bound=Hashable)

#: The modules, and the names in each: sets of channels, queues, subscribers, callbacks and scopes.
_MODULES = {
    "aio_pika.robust_connection": ("WeakSet",),
    "aio_pika.robust_channel": ("set",),
    "aio_pika.tools": ("set", "WeakSet"),
    "aiormq.channel": ("set",),
    "anyio._backends._asyncio": ("set",),
    "faststream._internal.broker.registrator": ("WeakSet",),
}


class OrderedSet(MutableSet[T]):
    """A set that iterates in the order in which its elements were added."""

    __slots__ = ("_items",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: dict[T, None] = dict.fromkeys(items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def add(self, value: T) -> None:
        """Add an element at the end, unless it is there."""
        self._items[value] = None

    def discard(self, value: T) -> None:
        """Remove an element, if it is there."""
        self._items.pop(value, None)

    def pop(self) -> T:
        """Remove and return the oldest element.

        Raises:
            KeyError: there is none.
        """
        for item in self._items:
            del self._items[item]
            return item
        raise KeyError("pop from an empty set")

    def clear(self) -> None:
        """Remove all elements."""
        self._items.clear()

    def copy(self) -> OrderedSet[T]:
        """Another set with these elements."""
        return OrderedSet(self)

    def update(self, *others: Iterable[T]) -> None:
        """Add the elements of all others."""
        for other in others:
            self._items.update(dict.fromkeys(other))

    def difference_update(self, *others: Iterable[T]) -> None:
        """Remove the elements of all others."""
        for other in others:
            for item in list(other):
                self._items.pop(item, None)

    def intersection_update(self, *others: Iterable[T]) -> None:
        """Keep only what all others have."""
        for other in others:
            kept = set(other)
            self._items = {item: None for item in self._items if item in kept}

    def symmetric_difference_update(self, other: Iterable[T]) -> None:
        """Keep what only one of the two has."""
        self ^= OrderedSet(other)

    def issubset(self, other: Iterable[T]) -> bool:
        """Whether the other has all these elements."""
        return self <= OrderedSet(other)

    def issuperset(self, other: Iterable[T]) -> bool:
        """Whether all elements of the other are here."""
        return self >= OrderedSet(other)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self)!r})"


class OrderedWeakSet(WeakSet[Any]):
    """A WeakSet that iterates in the order in which its elements were added."""

    def __init__(self, data: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.data: Any = OrderedSet()
        if data is not None:
            self.update(data)


@contextmanager
def ordered_sets() -> Iterator[None]:
    """Let the modules that are imported make ordered sets."""
    ordered = {"set": OrderedSet, "WeakSet": OrderedWeakSet}
    patched: list[tuple[dict[str, Any], str, Any]] = []
    for name, sets in _MODULES.items():
        module = sys.modules.get(name)
        if module is None:
            continue
        names = vars(module)
        for kind in sets:
            # The builtin `set` is replaced by a name of the module.
            own = names.get(kind)
            if own is (None if kind == "set" else WeakSet):
                patched.append((names, kind, own))
                names[kind] = ordered[kind]
    try:
        yield
    finally:
        for names, kind, own in patched:
            if own is None:
                del names[kind]
            else:
                names[kind] = own
