"""Collections: what a broker has of one kind at one moment, such as `broker.queues`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Generic, SupportsIndex, TypeVar, overload

from fakeamqp.inspect.errors import NoSuchVirtualHost, nearest
from fakeamqp.inspect.hints import first_of
from fakeamqp.lazy import raise_if_renamed

T = TypeVar("T")

_NAMES = ("name", "connection_name", "tag", "number")
"""The attributes by which an entry has a name."""


if TYPE_CHECKING:

    class Views(Generic[T]):
        """A tuple, but no Container of views: otherwise mypy refuses to look for a name in it."""

        def __iter__(self) -> Iterator[T]: ...

        def __reversed__(self) -> Iterator[T]: ...

        def __len__(self) -> int: ...

        @overload
        def __getitem__(self, index: SupportsIndex) -> T: ...
        @overload
        def __getitem__(self, index: slice) -> tuple[T, ...]: ...
        def __getitem__(self, index: SupportsIndex | slice) -> T | tuple[T, ...]: ...

        def __contains__(self, item: object) -> bool: ...

        def __eq__(self, other: object) -> bool: ...

        def __hash__(self) -> int: ...

        def index(self, view: T) -> int: ...

        def count(self, view: T) -> int: ...

else:
    Views = tuple


class Collection(Views[T]):
    """What a broker has of one kind, at one moment: an immutable tuple of views, in order.

    `name in collection` asks for a name, `view in collection` for an equal view.
    """

    _word: str
    _hosts: tuple[str | None, ...]
    """The virtual host of each entry."""
    _known: tuple[str, ...]

    if not TYPE_CHECKING:
        __getattr__ = raise_if_renamed

        def __call__(self, virtual_host=None):
            """Tell what replaces the methods that were called so."""
            of = "" if virtual_host is None else f".of({virtual_host!r})"
            raise TypeError(f"broker.{self._word} is no method: write broker.{self._word}{of}")

    @classmethod
    def _made(cls, word: str, entries: Iterable[tuple[str | None, T]], known: Iterable[str]) -> Collection[T]:
        """A collection of pairs of a virtual host and a view; `known` are all virtual hosts."""
        pairs = tuple(entries)
        made: Collection[T] = tuple.__new__(cls, [view for _, view in pairs])  # type: ignore[type-var]
        made._word, made._known = word, tuple(known)
        made._hosts = tuple(host for host, _ in pairs)
        return made

    def _only(self, chosen: Iterable[bool]) -> Collection[T]:
        pairs = zip(self._hosts, self, strict=True)
        wanted = (pair for pair, each in zip(pairs, chosen, strict=True) if each)
        return self._made(self._word, wanted, self._known)

    def of(self, virtual_host: str) -> Collection[T]:
        """Those of one virtual host.

        Raises:
            NoSuchVirtualHost: the virtual host does not exist; the text names the nearest match.
        """
        if virtual_host not in self._known:
            raise NoSuchVirtualHost(
                f"there is no virtual host {virtual_host!r}{nearest(virtual_host, self._known)}"
            )
        return self._only(each == virtual_host for each in self._hosts)

    def named(self, name: str | int) -> Collection[T]:
        """Those of one name: of a consumer the tag, of a channel the number.

        A connection has the name that its client gave it as well. Several virtual hosts, and several
        connections, may have one of the same name.
        """
        return self._only(name in _names(each) for each in self)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, (str, int)):
            return any(item in _names(each) for each in self)
        return super().__contains__(item)

    def __repr__(self) -> str:
        if not self:
            return f"<no {self._word}>"
        return "\n".join([f"<{len(self)} {self._word}:", *first_of([repr(each) for each in self]), ">"])


def _names(view: object) -> Iterator[object]:
    return (getattr(view, name) for name in _NAMES if hasattr(view, name))
