"""Bindings: the relation between an exchange and a queue or exchange that it routes messages to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.model.equivalence import freeze

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue

__all__ = [
    "Binding",
    "BindingIndex",
    "BindingKey",
    "Destination",
    "ExactFields",
    "binding_key",
    "exact_fields",
]

Destination: TypeAlias = "Queue | Exchange"
BindingKey: TypeAlias = "tuple[Destination, str, Any]"
ExactFields: TypeAlias = "tuple[tuple[str, Any, bytes], ...]"


class Binding:
    """One binding; routing key and arguments together identify it (queue.unbind/arguments-identify)."""

    __slots__ = ("arguments", "destination", "exact", "identity", "routing_key", "source")

    def __init__(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Mapping[str, Any]
    ) -> None:
        self.source: Exchange = source
        self.destination: Destination = destination
        self.routing_key: str = routing_key
        self.arguments: dict[str, Any] = dict(arguments)
        self.exact: ExactFields | None = exact_fields(source, arguments)
        self.identity: BindingKey = binding_key(destination, routing_key, arguments, self.exact)

    @property
    def durable(self) -> bool:
        """True if source and destination survive a restart (queue.bind/durable-exchange)."""
        return self.source.durable and self.destination.durable

    def __repr__(self) -> str:
        return f"<Binding {self.source.name!r} -> {self.destination.name!r} by {self.routing_key!r}>"


def exact_fields(source: Exchange, arguments: Mapping[str, Any]) -> ExactFields | None:
    """The arguments as the client wrote them: name, value and encoded value of every field, in order.

    None if the personality does not tell integers of several widths apart, or no client wrote them.
    """
    exact: ExactFields | None = getattr(arguments, "exact", None)
    return exact if source.virtual_host.state.personality.compares_widths else None


def binding_key(
    destination: Destination,
    routing_key: str,
    arguments: Mapping[str, Any],
    exact: ExactFields | None = None,
) -> BindingKey:
    """The identity of a binding among those of one exchange. The order of the arguments does not matter."""
    if not exact:
        return destination, routing_key, freeze(arguments)
    fields = sorted(((name, octets) for name, _, octets in exact), key=itemgetter(0))
    return destination, routing_key, tuple(fields)


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
