"""Exchanges, one module per type: what passes messages on, and by what it chooses."""

from fakeamqp.model.exchanges.direct import DefaultExchange, DirectExchange
from fakeamqp.model.exchanges.exchange import Exchange
from fakeamqp.model.exchanges.fanout import FanoutExchange
from fakeamqp.model.exchanges.headers import HeadersExchange
from fakeamqp.model.exchanges.topic import TopicExchange, topic_matches

__all__ = ["EXCHANGE_TYPES", "DefaultExchange", "Exchange", "topic_matches"]

EXCHANGE_TYPES: dict[str, type[Exchange]] = {
    each.type_name: each for each in (DirectExchange, FanoutExchange, TopicExchange, HeadersExchange)
}
"""The exchange types by the name that exchange.declare has for them."""
