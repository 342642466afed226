"""Bindings: the relation between an exchange and a queue or exchange that it routes messages to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.model.equivalence import freeze

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue

__all__ = ["Binding", "BindingKey", "Destination"]

Destination: TypeAlias = "Queue | Exchange"
BindingKey: TypeAlias = "tuple[Destination, str, Any]"


class Binding:
    """One binding; routing key and arguments together identify it (queue.unbind/arguments-identify)."""

    __slots__ = ("arguments", "destination", "identity", "routing_key", "source")

    def __init__(
        self, source: Exchange, destination: Destination, routing_key: str, arguments: Mapping[str, Any]
    ) -> None:
        self.source = source
        self.destination = destination
        self.routing_key = routing_key
        self.arguments = dict(arguments)
        self.identity = binding_key(destination, routing_key, arguments)

    @property
    def durable(self) -> bool:
        """True if source and destination survive a restart (queue.bind/durable-exchange)."""
        return self.source.durable and self.destination.durable

    def __repr__(self) -> str:
        return f"<Binding {self.source.name!r} -> {self.destination.name!r} by {self.routing_key!r}>"


def binding_key(destination: Destination, routing_key: str, arguments: Mapping[str, Any]) -> BindingKey:
    """The identity of a binding among those of one exchange."""
    return destination, routing_key, freeze(arguments)
