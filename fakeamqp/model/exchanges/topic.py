"""Exchanges that match routing keys against patterns of words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.exchanges.exchange import Exchange
from fakeamqp.model.exchanges.trie import TopicTrie

if TYPE_CHECKING:
    from fakeamqp.model.binding import Binding
    from fakeamqp.model.exchanges.exchange import Target
    from fakeamqp.model.message import Message

__all__ = ["TopicExchange", "topic_matches"]


class TopicExchange(Exchange):
    """Routes a message if the binding's pattern matches the routing key (exchange-type.topic/*)."""

    type_name = "topic"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._trie: TopicTrie[Binding] = TopicTrie()

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a pattern with more `#` than the personality has (RabbitMQ: documented, since 4.3.5)."""
        most = self.virtual_host.state.personality.most_topic_wildcards
        count = routing_key.split(".").count("#")
        if most and count > most:
            raise PreconditionFailed(
                f"Topic binding key '{routing_key}' uses {count} '#' wildcards, at most {most} are allowed"
            )

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """See the base class."""
        return [binding.destination for binding in self._trie.match(routing_key)]

    def _added(self, binding: Binding) -> None:
        self._trie.add(binding.routing_key, binding)

    def _removed(self, binding: Binding) -> None:
        self._trie.remove(binding.routing_key, binding)


def topic_matches(pattern: str, key: str) -> bool:
    """Whether a topic pattern matches one key."""
    trie: TopicTrie[bool] = TopicTrie()
    trie.add(pattern, True)
    return any(trie.match(key))
