"""An index of an exchange's bindings that few exchanges need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.model.binding import Binding

__all__ = ["BindingIndex"]


class BindingIndex:
    """Finds bindings by a key. It is built by the first search, and costs nothing before.

    Args:
        key: the key of a binding; None leaves the binding out.
    """

    __slots__ = ("_found", "_key")

    def __init__(self, key: Callable[[Binding], Hashable | None]) -> None:
        self._key = key
        self._found: dict[Hashable, dict[Binding, None]] | None = None

    def find(self, key: Hashable, bindings: Collection[Binding]) -> Iterable[Binding]:
        """The bindings with a key, in the order of their creation; `bindings` are all of the exchange."""
        if self._found is None:
            self._found = {}
            for binding in bindings:
                self.add(binding)
        return self._found.get(key, ())

    def add(self, binding: Binding) -> None:
        """A binding was made."""
        if self._found is not None and (key := self._key(binding)) is not None:
            self._found.setdefault(key, {})[binding] = None

    def remove(self, binding: Binding) -> None:
        """A binding was removed."""
        if self._found is None or (key := self._key(binding)) is None:
            return
        found = self._found[key]
        del found[binding]
        if not found:
            del self._found[key]
