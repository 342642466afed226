"""Sets of clients that keep the order in which their elements were added.

The order of a set is that of the hashes of its elements. The hash of an object, a function or a method comes
from its address, which is another one in each process. So a client that has its channels, callbacks or tasks
in sets goes through them in another order in each process: aio-pika opens the channels of a connection again,
aiormq ends tasks. Any order is one that they have to bear, and that of insertion is the same in every run.

In a simulation the modules of these clients find sets of this kind under the names `set`, `frozenset` and
`WeakSet`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from itertools import chain
from types import ModuleType
from typing import Any
from weakref import WeakSet

# The beginnings of the names of modules.
_CLIENTS = (
    "aio_pika",
    "aioamqp",
    "aiormq",
    "anyio._backends._asyncio",
    "faststream._internal.broker.registrator",
)


class _StandsForItsBase(type):
    """The type of a class that `isinstance` takes for its base."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__bases__[0])


class OrderedSet(set[Any], metaclass=_StandsForItsBase):
    """A set in the order of insertion."""

    __slots__ = ("_order",)

    def __init__(self, items: Iterable[Any] = (), /) -> None:
        super().__init__()
        self._order: dict[Any, None] = {}
        self.update(items)

    def __iter__(self) -> Iterator[Any]:
        size = len(self)
        for item in tuple(self._order):
            if len(self) != size:
                break
            if item in self:
                yield item
        if len(self) != size:
            raise RuntimeError("Set changed size during iteration")

    def add(self, item: Any, /) -> None:
        super().add(item)
        self._order[item] = None

    def discard(self, item: Any, /) -> None:
        super().discard(item)
        self._order.pop(item, None)

    def remove(self, item: Any, /) -> None:
        super().remove(item)
        self._order.pop(item, None)

    def pop(self) -> Any:
        """Remove and return the element that was added first."""
        for item in self._order:
            self.remove(item)
            return item
        raise KeyError("pop from an empty set")

    def clear(self) -> None:
        super().clear()
        self._order.clear()

    def update(self, *others: Iterable[Any]) -> None:
        for item in chain(*others):
            self.add(item)

    def copy(self) -> OrderedSet:
        return OrderedSet(self)

    def __ior__(self, other: Any) -> OrderedSet:  # type: ignore[misc]
        if not isinstance(other, Set):
            return NotImplemented
        self.update(other)
        return self


def _in_place(name: str) -> Callable[..., Any]:
    """A method of `set` that changes it, for an `OrderedSet`."""
    change = getattr(set, name)

    def method(self: OrderedSet, *others: Any) -> Any:
        others = tuple(other if isinstance(other, Set) else tuple(other) for other in others)
        result = change(self, *others)
        items = chain(tuple(self._order), *others)
        self._order = {item: None for item in items if item in self}
        return result

    method.__name__ = name
    return method


def _new(name: str) -> Callable[..., Any]:
    """A method of `set` that makes another one, for an `OrderedSet`."""
    make = getattr(set, name)

    def method(self: OrderedSet, *others: Any) -> Any:
        others = tuple(other if isinstance(other, Set) else tuple(other) for other in others)
        result = make(self, *others)
        if result is NotImplemented:
            return result
        return OrderedSet(item for item in chain(self, *others) if item in result)

    method.__name__ = name
    return method


for _name in ("difference", "intersection", "symmetric_difference"):
    setattr(OrderedSet, f"{_name}_update", _in_place(f"{_name}_update"))
    setattr(OrderedSet, _name, _new(_name))
for _name in ("__isub__", "__iand__", "__ixor__"):
    setattr(OrderedSet, _name, _in_place(_name))
for _name in ("union", "__or__", "__and__", "__sub__", "__xor__"):
    setattr(OrderedSet, _name, _new(_name))


class OrderedFrozenSet(frozenset[Any], metaclass=_StandsForItsBase):
    """A frozen set in the order of what it was made of."""

    _order: tuple[Any, ...]

    def __new__(cls, items: Iterable[Any] = (), /) -> OrderedFrozenSet:
        """A set of these elements."""
        order = tuple(dict.fromkeys(items))
        self = super().__new__(cls, order)
        self._order = order
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self._order)


class OrderedWeakSet(WeakSet[Any], metaclass=_StandsForItsBase):
    """A set of weak references in the order of insertion."""

    def __init__(self, items: Iterable[Any] = (), /) -> None:
        super().__init__()
        self.data: OrderedSet = OrderedSet()  # Its references.
        self.update(items)


_ORDERED: dict[str, tuple[type, type]] = {
    "set": (set, OrderedSet),
    "frozenset": (frozenset, OrderedFrozenSet),
    "WeakSet": (WeakSet, OrderedWeakSet),
}


# How many modules there were at the last search, and where those of clients name kinds of sets.
_found: tuple[int, list[tuple[ModuleType, str, Any]]] = (0, [])


def _names_of_sets() -> list[tuple[ModuleType, str, Any]]:
    """The modules of clients with each kind of sets they may name, and what they have by that name.

    The search is repeated when the number of modules has changed.
    """
    global _found
    if len(sys.modules) != _found[0]:
        clients = [module for path, module in list(sys.modules.items()) if path.startswith(_CLIENTS)]
        _found = (
            len(sys.modules),
            [
                # Builtin names are not among those of a module; WeakSet is, where it is imported.
                (module, name, found)
                for module in clients
                for name, (usual, _) in _ORDERED.items()
                if (found := vars(module).get(name)) is usual or (found is None and usual is not WeakSet)
            ],
        )
    return _found[1]


@contextmanager
def keep_order_of_sets() -> Iterator[None]:
    """Have clients that are imported make ordered sets."""
    changed = _names_of_sets()
    for module, name, _ in changed:
        setattr(module, name, _ORDERED[name][1])
    try:
        yield
    finally:
        for module, name, found in changed:
            if found is None:
                delattr(module, name)
            else:
                setattr(module, name, found)
