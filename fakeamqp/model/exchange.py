"""Exchanges: what passes messages on, and by what they choose.

`destinations` answers for one routing key and message; the virtual host walks exchange-to-exchange
bindings and alternate exchanges (see `VirtualHost.route`) and remembers the result for the types whose
answer depends on the key alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fakeamqp.model.binding import Binding, BindingKey, Destination, binding_key
from fakeamqp.model.equivalence import freeze, type_name
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.model.topic import TopicTrie

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.model.message import Message
    from fakeamqp.model.reply_to import ReplyAddress
    from fakeamqp.model.virtual_host import VirtualHost

    Target: TypeAlias = Destination | ReplyAddress

__all__ = ["EXCHANGE_TYPES", "DefaultExchange", "Exchange", "topic_matches"]


class Exchange:
    """What all exchange types share: a name, flags, and bindings in the order they were made."""

    kind: ClassVar[Literal["exchange"]] = "exchange"
    type_name: ClassVar[str]
    by_key_alone: ClassVar[bool] = True
    """Whether routing looks at nothing of the message but its routing key, so that it can be remembered."""

    def __init__(
        self,
        virtual_host: VirtualHost,
        name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.virtual_host = virtual_host
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = dict(arguments or {})
        self.alternate_exchange: str | None = self.arguments.get("alternate-exchange")
        self.bindings: dict[BindingKey, Binding] = {}
        self.incoming: dict[Binding, None] = {}

    def __repr__(self) -> str:
        return f"<Exchange {self.name!r} type={self.type_name} bindings={len(self.bindings)}>"

    def validate(self, arguments: Mapping[str, Any]) -> None:
        """Check the arguments of a new binding.

        Raises:
            PreconditionFailed: this type cannot work with them.
        """

    def bind(self, destination: Destination, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Add a binding; an identical one changes nothing (queue.bind/duplicates)."""
        binding = Binding(self, destination, routing_key, arguments)
        if binding.identity in self.bindings:
            return
        self.validate(arguments)
        self.bindings[binding.identity] = binding
        destination.incoming[binding] = None
        self._added(binding)

    def binding(
        self, destination: Destination, routing_key: str, arguments: Mapping[str, Any]
    ) -> Binding | None:
        """The binding like this, or None (queue.unbind/arguments-identify)."""
        return self.bindings.get(binding_key(destination, routing_key, arguments))

    def drop(self, binding: Binding) -> None:
        """Remove this binding."""
        del self.bindings[binding.identity]
        binding.destination.incoming.pop(binding, None)
        self._removed(binding)

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """Where a message with this key goes next; the same destination may be named more than once."""
        raise NotImplementedError

    def _added(self, binding: Binding) -> None:
        """Keep the type's own index."""

    def _removed(self, binding: Binding) -> None:
        """Keep the type's own index."""


class DirectExchange(Exchange):
    """Passes a message where the binding key equals the routing key (exchange-type.direct/match)."""

    type_name = "direct"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._by_key: dict[str, dict[Binding, None]] = {}

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """See the base class."""
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
        """See the base class."""
        queues = self.virtual_host.queues
        implied = queues.get(routing_key) or self.virtual_host.reply_addresses.get(routing_key)
        bound = super().destinations(routing_key, message)
        return bound if implied is None else [implied, *bound]


class FanoutExchange(Exchange):
    """Passes every message to everything bound (exchange-type.fanout/unconditional)."""

    type_name = "fanout"

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """See the base class."""
        return [binding.destination for binding in self.bindings.values()]


class TopicExchange(Exchange):
    """Passes a message where the binding's pattern matches the routing key (exchange-type.topic/*)."""

    type_name = "topic"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._trie: TopicTrie[Binding] = TopicTrie()

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """See the base class."""
        return [binding.destination for binding in self._trie.match(routing_key)]

    def _added(self, binding: Binding) -> None:
        self._trie.add(binding.routing_key, binding)

    def _removed(self, binding: Binding) -> None:
        self._trie.remove(binding.routing_key, binding)


class HeadersExchange(Exchange):
    """Passes a message where the binding's arguments match its headers (exchange-type.headers/*)."""

    type_name = "headers"
    by_key_alone = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._wanted: dict[Binding, _Wanted] = {}

    def validate(self, arguments: Mapping[str, Any]) -> None:
        """Refuse an x-match that is not one of the four known (exchange-type.headers/invalid-match)."""
        match = arguments.get("x-match", "all")
        if not isinstance(match, str):
            raise PreconditionFailed(
                f"Invalid x-match field type {type_name(match)} (value {_erlang(match)}); expected longstr"
            )
        if match not in ("all", "any", "all-with-x", "any-with-x"):
            raise PreconditionFailed(
                f"Invalid x-match field value {_erlang(match)}; expected all, any, all-with-x, or any-with-x"
            )

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """See the base class."""
        headers = {name: _matchable(value) for name, value in message.headers.items()}
        return [binding.destination for binding, wanted in self._wanted.items() if wanted.met_by(headers)]

    def _added(self, binding: Binding) -> None:
        self._wanted[binding] = _Wanted(binding.arguments)

    def _removed(self, binding: Binding) -> None:
        del self._wanted[binding]


class _Wanted:
    """What the arguments of one binding ask of a message's headers; without x-match all must be met.

    Source: exchange-type.headers/default-match.
    """

    __slots__ = ("_any", "_values")

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        match = arguments.get("x-match", "all")
        with_x = match.endswith("-with-x")
        self._any = match.startswith("any")
        # None, the void, is met by any value.
        self._values = tuple(
            (name, None if value is None else _matchable(value))
            for name, value in arguments.items()
            if name != "x-match" and (with_x or not name.startswith("x-"))
        )

    def met_by(self, headers: Mapping[str, Any]) -> bool:
        """Whether these headers, made matchable, will do."""
        for name, value in self._values:
            met = name in headers and (value is None or headers[name] == value)
            if met is self._any:
                return self._any
        return not self._any


def _matchable(value: Any) -> Any:
    """What is compared of a header: text is its octets, whichever of the two it was sent as (measured)."""
    return freeze(value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value)


def _erlang(value: Any) -> str:
    """A value as RabbitMQ writes it into this text."""
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")
        return f'<<"{text}">>' if text else "<<>>"
    if value is None:
        return "undefined"
    return str(value).lower() if isinstance(value, bool) else str(value)


def topic_matches(pattern: str, key: str) -> bool:
    """Whether a topic pattern matches one key."""
    trie: TopicTrie[bool] = TopicTrie()
    trie.add(pattern, True)
    return any(trie.match(key))


EXCHANGE_TYPES: dict[str, type[Exchange]] = {
    each.type_name: each for each in (DirectExchange, FanoutExchange, TopicExchange, HeadersExchange)
}
