"""Immutable dictionaries and lists that equal ordinary ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError(
        "an immutable view of the broker's state cannot be changed; make a copy with dict() or list()"
    )


class FrozenDict(dict[str, Any]):
    """An immutable dictionary. It equals the `dict` with the same items."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return FrozenDict, (dict(self),)

    if not TYPE_CHECKING:  # Their types are those of the base class.
        __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = __ior__ = _refuse


class FrozenList(list[Any]):
    """An immutable list. It equals the `list` with the same items."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return FrozenList, (list(self),)

    if not TYPE_CHECKING:
        __setitem__ = __delitem__ = append = clear = extend = insert = pop = _refuse
        remove = reverse = sort = __iadd__ = __imul__ = _refuse


def frozen(value: Any) -> Any:
    """`value`, with every dictionary and list in it replaced by an immutable one."""
    if isinstance(value, Mapping):
        return FrozenDict({key: frozen(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([frozen(item) for item in value])
    return value
