"""Exchanges, one module per type: how they route messages."""

from fakeamqp.model.exchanges.delayed import DelayedMessageExchange
from fakeamqp.model.exchanges.direct import DefaultExchange, DirectExchange
from fakeamqp.model.exchanges.exchange import Exchange
from fakeamqp.model.exchanges.fanout import FanoutExchange
from fakeamqp.model.exchanges.hashing import ConsistentHashExchange, ModulusHashExchange
from fakeamqp.model.exchanges.headers import HeadersExchange
from fakeamqp.model.exchanges.random import LocalRandomExchange, RandomExchange
from fakeamqp.model.exchanges.topic import TopicExchange, topic_matches

__all__ = ["EXCHANGE_TYPES", "STANDARD_TYPES", "DefaultExchange", "Exchange", "topic_matches"]

STANDARD_TYPES: dict[str, type[Exchange]] = {
    each.type_name: each for each in (DirectExchange, FanoutExchange, TopicExchange, HeadersExchange)
}
"""The exchange types of the AMQP specifications; every virtual host has one exchange of each."""

EXCHANGE_TYPES: dict[str, type[Exchange]] = STANDARD_TYPES | {
    each.type_name: each
    for each in (
        ConsistentHashExchange,
        DelayedMessageExchange,
        LocalRandomExchange,
        ModulusHashExchange,
        RandomExchange,
    )
}
"""The exchange types by their name in exchange.declare; the personality selects the available ones."""
