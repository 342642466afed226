"""Exchanges that route to every binding."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.model.exchanges.exchange import Exchange

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.message import Message

__all__ = ["FanoutExchange"]


class FanoutExchange(Exchange):
    """Routes every message to all bound destinations (exchange-type.fanout/unconditional)."""

    type_name = "fanout"

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """See the base class."""
        return [binding.destination for binding in self.bindings.values()]
