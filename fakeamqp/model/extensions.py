"""The one place where a protocol keeps state of its own with an object of the model.

The model knows no protocol. A protocol that keeps something with a broker or a virtual host declares a class
for it, an `Extension`, and asks the object's `Extensions` for the instance.
"""

from __future__ import annotations

from typing import Any, TypeVar


class Extension:
    """What a protocol keeps with one object of the model; made on first use with that object."""

    def __init__(self, owner: Any) -> None:
        pass

    def restarted(self) -> None:
        """The broker restarts: drop what a restart loses."""


E = TypeVar("E", bound=Extension)


class Extensions:
    """The extensions of one object of the model, at most one of each class."""

    __slots__ = ("_kept", "_owner")

    def __init__(self, owner: object) -> None:
        self._owner = owner
        self._kept: dict[type[Extension], Extension] = {}

    def __getitem__(self, kind: type[E]) -> E:
        """The extension of this class, made now if there is none."""
        found = self._kept.get(kind)
        if found is None:
            found = self._kept[kind] = kind(self._owner)
        assert isinstance(found, kind)
        return found

    def restarted(self) -> None:
        """Tell every extension that the broker restarts."""
        for extension in self._kept.values():
            extension.restarted()
