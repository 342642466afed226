"""Exchanges: how each type routes messages."""

from importlib import import_module

from fakeamqp.model.exchanges.exchange import (
    DefaultExchange,
    DirectExchange,
    Exchange,
    FanoutExchange,
    HeadersExchange,
)
from fakeamqp.model.exchanges.topic import TopicExchange, topic_matches

__all__ = [
    "EXCHANGE_TYPES",
    "STANDARD_TYPES",
    "DefaultExchange",
    "Exchange",
    "exchange_class",
    "topic_matches",
]

STANDARD_TYPES: dict[str, type[Exchange]] = {
    each.type_name: each for each in (DirectExchange, FanoutExchange, TopicExchange, HeadersExchange)
}
"""The exchange types that every broker has; every virtual host has one exchange of each."""

_ON_DEMAND = {
    "system": ("system", "SystemExchange"),
    "x-consistent-hash": ("hashing", "ConsistentHashExchange"),
    "x-delayed-message": ("delayed", "DelayedMessageExchange"),
    "x-local-random": ("hashing", "LocalRandomExchange"),
    "x-modulus-hash": ("hashing", "ModulusHashExchange"),
    "x-random": ("hashing", "RandomExchange"),
}
"""Type "system" of the specifications, and the types of RabbitMQ's plugins: module and class."""

EXCHANGE_TYPES = frozenset((*STANDARD_TYPES, *_ON_DEMAND))
"""The exchange types by their name in exchange.declare; the personality selects the available ones."""


def exchange_class(type_name: str) -> type[Exchange]:
    """The class of an exchange type. Types that few brokers have are imported with their first exchange."""
    if type_name in STANDARD_TYPES:
        return STANDARD_TYPES[type_name]
    module, name = _ON_DEMAND[type_name]
    found: type[Exchange] = getattr(import_module(f"{__name__}.{module}"), name)
    return found
