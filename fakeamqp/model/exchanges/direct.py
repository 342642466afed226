"""Exchanges that compare keys for equality (direct, and the nameless default exchange), and fanout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.binding import Binding, Destination
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.messages.message import Message

__all__ = ["DefaultExchange", "DirectExchange", "FanoutExchange"]


class DirectExchange(Exchange):
    """Routes a message if the binding key equals the routing key (exchange-type.direct/match)."""

    type_name = "direct"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._by_key: dict[str, dict[Binding, None]] = {}

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        return [binding.destination for binding in self._by_key.get(routing_key, ())]

    def _added(self, binding: Binding) -> None:
        self._by_key.setdefault(binding.routing_key, {})[binding] = None

    def _removed(self, binding: Binding) -> None:
        filed = self._by_key[binding.routing_key]
        del filed[binding]
        if not filed:
            del self._by_key[binding.routing_key]


class DefaultExchange(DirectExchange):
    """The nameless exchange: every queue is bound to it under its own name (queue.declare/default-binding).

    These bindings are implied by the queues, and by the addresses of direct reply-to; explicit ones exist
    only where the personality allows them.
    """

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        queues = self.virtual_host.queues
        implied = queues.get(routing_key) or self.virtual_host.reply_addresses.get(routing_key)
        bound = super().destinations(routing_key, message)
        return bound if implied is None else [implied, *bound]

    def is_bound(
        self,
        destination: Destination | None = None,
        routing_key: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> bool:
        """Every queue is, under its own name and with no arguments."""
        queues = self.virtual_host.queues
        name = routing_key if destination is None or routing_key is not None else destination.name
        implied = bool(queues) if name is None else name in queues
        if implied and destination is not None and name is not None:
            implied = queues[name] is destination
        return (implied and not arguments) or super().is_bound(destination, routing_key, arguments)


class FanoutExchange(Exchange):
    """Routes every message to all bound destinations (exchange-type.fanout/unconditional)."""

    type_name = "fanout"

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        return [binding.destination for binding in self.bindings.values()]
