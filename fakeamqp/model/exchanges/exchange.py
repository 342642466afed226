"""What all exchange types share: a name, flags, and bindings in the order of their creation.

`route` returns the destinations of one message with all its keys; for most types these are the `destinations`
of each key. The router follows exchange-to-exchange bindings and alternate exchanges (see `routing`), and
caches the result for types whose routes depend on the key alone. The types here compare keys for equality,
or ignore them, or match the headers of a message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from fakeamqp.model.arguments.exchange_arguments import ExchangeOptions, exchange_options
from fakeamqp.model.equivalence import freeze
from fakeamqp.model.erlang import type_name
from fakeamqp.model.errors import PreconditionFailed
from fakeamqp.timestamps import Timestamp

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.system import Service
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.routing import ReplyAddress
    from fakeamqp.model.virtual_host import VirtualHost

Destination: TypeAlias = "Queue | Exchange"
Target: TypeAlias = "Destination | ReplyAddress | Service"
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
        self.exact: ExactFields | None = _exact_fields(source, arguments)
        self.identity: BindingKey = _binding_key(destination, routing_key, arguments, self.exact)

    @property
    def durable(self) -> bool:
        """True if source and destination survive a restart (queue.bind/durable-exchange)."""
        return self.source.durable and self.destination.durable

    def __repr__(self) -> str:
        return f"<Binding {self.source.name!r} -> {self.destination.name!r} by {self.routing_key!r}>"


def _exact_fields(source: Exchange, arguments: Mapping[str, Any]) -> ExactFields | None:
    """The arguments as the client wrote them: name, value and encoded value of every field, in order.

    None if the personality does not tell integers of several widths apart, or no client wrote them.
    """
    exact: ExactFields | None = getattr(arguments, "exact", None)
    return exact if source.virtual_host.state.personality.compares_widths else None


def _binding_key(
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


class _BindingIndex:
    """Finds bindings by a key; key None leaves one out. It is built by the first search."""

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
        if self._found is not None and (key := self._key(binding)) is not None:
            self._found.setdefault(key, {})[binding] = None

    def remove(self, binding: Binding) -> None:
        if self._found is None or (key := self._key(binding)) is None:
            return
        found = self._found[key]
        del found[binding]
        if not found:
            del self._found[key]


class Exchange:
    """An exchange of a virtual host; each type is a subclass.

    `alternate_exchange` names the exchange for messages that match no binding. It is set by the argument
    `alternate-exchange`, by policy, or by the declaration beside its arguments (`declared_alternate`). In the
    last case it is the only one (exchange.declare/alternate-exchange-double-failure): `alternate_is_last`
    says that its own alternate exchange is not tried. `declared` holds the options that the arguments ask
    for, `options` those in force.
    """

    kind: ClassVar[Literal["exchange"]] = "exchange"
    type_name: ClassVar[str]
    by_key_alone: bool = True
    """Whether the route depends on the routing key alone, so that it can be cached."""
    chooses: ClassVar[bool] = False
    """Whether a message goes to one of several bindings that match it, not to all."""

    def __init__(
        self,
        virtual_host: VirtualHost,
        name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
        alternate_exchange: str | None = None,
    ) -> None:
        self.virtual_host = virtual_host
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments: dict[str, Any] = dict(arguments or {})
        self.declared_alternate = alternate_exchange
        self.alternate_is_last: bool = alternate_exchange is not None
        self.options: ExchangeOptions
        self.declared: ExchangeOptions
        self.options = self.declared = exchange_options(self.type_name, name, virtual_host, self.arguments)
        self.alternate_exchange = alternate_exchange or self.options.alternate_exchange
        self.policy: Policy | None = None
        self.operator_policy: Policy | None = None
        self.bindings: dict[BindingKey, Binding] = {}
        self._by_routing_key = _BindingIndex(lambda binding: (binding.destination, binding.routing_key))
        self._written = _BindingIndex(_written_value)
        self.incoming: dict[Binding, None] = {}
        self._prepare()

    def _prepare(self) -> None:
        """Create the state of this type; the state that all types share is ready."""

    def __repr__(self) -> str:
        return f"<Exchange {self.name!r} type={self.type_name} bindings={len(self.bindings)}>"

    @classmethod
    def check_declaration(
        cls, virtual_host: VirtualHost, name: str, arguments: Mapping[str, Any]
    ) -> ExchangeOptions:
        """Read the arguments of a declaration; PreconditionFailed, CommandInvalid or InternalError."""
        return exchange_options(cls.type_name, name, virtual_host, arguments)

    def apply(self, options: ExchangeOptions) -> None:
        """Put other options in force, because other policies match."""
        self.options = options
        self.alternate_exchange = self.declared_alternate or options.alternate_exchange

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """PreconditionFailed if the key or the arguments of a new binding are illegal for this type."""

    def check_destination(self, destination: Destination) -> None:
        """PreconditionFailed if this type cannot route to the destination of a new binding."""

    def bind(self, destination: Destination, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Add a binding; an identical one changes nothing (queue.bind/duplicates)."""
        binding = Binding(self, destination, routing_key, arguments)
        if self.binding(destination, routing_key, arguments) is not None:
            return
        self.validate(routing_key, arguments)
        self.check_destination(destination)
        self.bindings[binding.identity] = binding
        self.virtual_host.bindings.count += 1
        self._by_routing_key.add(binding)
        self._written.add(binding)
        destination.incoming[binding] = None
        self._added(binding)

    def binding(
        self, destination: Destination, routing_key: str, arguments: Mapping[str, Any]
    ) -> Binding | None:
        """The binding with these properties, or None (queue.unbind/arguments-identify)."""
        exact = _exact_fields(self, arguments)
        found = self.bindings.get(_binding_key(destination, routing_key, arguments, exact))
        if found is not None or not arguments:
            return found
        # One side was not written by a client, as a binding from definitions: the values decide.
        wanted = destination, routing_key, freeze(arguments)
        if exact is None:
            return next(iter(self._written.find(wanted, self.bindings.values())), None)
        found = self.bindings.get(wanted)
        return found if found is not None and found.exact is None else None

    def bindings_between(self, destination: Destination, routing_key: str) -> list[Binding]:
        """All bindings of this destination by this key; there may be one at most
        (exchange.bind/binding-key-identity).
        """
        return [*self._by_routing_key.find((destination, routing_key), self.bindings.values())]

    def is_bound(
        self,
        destination: Destination | None = None,
        routing_key: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether any binding has all given properties; None is not compared (exchange.bound/wildcards)."""
        wanted = None if arguments is None else freeze(arguments)
        candidates = self.bindings.values() if destination is None else destination.incoming
        return any(
            each.source is self
            and (routing_key is None or each.routing_key == routing_key)
            and (wanted is None or freeze(each.arguments) == wanted)
            for each in candidates
        )

    def drop(self, binding: Binding) -> None:
        del self.bindings[binding.identity]
        self.virtual_host.bindings.count -= 1
        self._by_routing_key.remove(binding)
        self._written.remove(binding)
        binding.destination.incoming.pop(binding, None)
        self._removed(binding)

    @property
    def chooser(self) -> Exchange:
        """The exchange whose type routes the messages; for most types the exchange itself."""
        return self

    def delay(self, message: Message) -> float:
        """The delay of a message by `hold_back`, in seconds."""
        return 0.0

    def hold_back(self, message: Message) -> float:
        """Delay a message, in types that do so, for the returned seconds; then it is routed again."""
        return 0.0

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        """The destinations of a message with these keys; one may occur more than once."""
        return [target for key in keys for target in self.destinations(key, message)]

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        raise NotImplementedError

    def restarted(self) -> None:
        """Called on durable exchanges after a restart."""

    def _added(self, binding: Binding) -> None:
        """Update the type's index."""

    def _removed(self, binding: Binding) -> None:
        """Update the type's index."""


def _written_value(binding: Binding) -> BindingKey | None:
    """What finds a binding that a client wrote with arguments, if their fields are not known exactly."""
    if not binding.exact:
        return None
    return binding.destination, binding.routing_key, freeze(binding.arguments)


class DirectExchange(Exchange):
    """Routes a message if the binding key equals the routing key (exchange-type.direct/match)."""

    type_name = "direct"

    def _prepare(self) -> None:
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


class HeadersExchange(Exchange):
    """Routes a message if the binding's arguments match its headers (exchange-type.headers/*)."""

    type_name = "headers"
    by_key_alone = False

    def _prepare(self) -> None:
        self._wanted: dict[Binding, _Wanted] = {}
        personality = self.virtual_host.state.personality
        self._exactly = personality.compares_widths
        self._in_milliseconds = personality.timestamps_match_in_milliseconds
        self._by_value = personality.numbers_match_by_value
        self._in_turn = personality.duplicates_match_in_turn
        self._last = personality.matches_last_header

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
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
        headers = self._received(message)
        return [binding.destination for binding, wanted in self._wanted.items() if wanted.met_by(headers)]

    def differences(self, binding: Binding, message: Message) -> list[str]:
        """The names of the headers that a binding requires and the message does not match."""
        return self._wanted[binding].unmet(self._received(message))

    def asks_for_any(self, binding: Binding) -> bool:
        """Whether one matching header is enough for a binding."""
        return self._wanted[binding].any

    def asked(self, binding: Binding) -> int:
        """How many headers a binding requires."""
        return len(self._wanted[binding].values)

    def _received(self, message: Message) -> dict[str, Any]:
        routed = getattr(message.properties, "routing_headers", None)
        if routed is not None:
            return {name: _matchable(value, self._by_value) for name, value in routed().items()}
        sent = message.properties.last_headers() if self._last else message.headers
        headers = {name: self._sent(value) for name, value in sent.items()}
        if self._in_turn:
            return self._numbered(message, headers)
        if any(isinstance(value, (dict, list)) for value in sent.values()):
            for name, value, octets in message.properties.exact_headers() or ():
                if isinstance(value, (dict, list)) and isinstance(sent[name], (dict, list)):
                    headers[name] = _Nested(value, octets)
        return headers

    def _numbered(self, message: Message, headers: dict[str, Any]) -> dict[str, Any]:
        """The headers with those that share a name: the further ones as `_numbered_names` calls them."""
        exact = message.properties.exact_headers()
        if exact is None:
            return headers
        names = _numbered_names(name for name, *_ in exact)
        return {
            key: _Nested(value, octets)
            if self._exactly and isinstance(value, (dict, list))
            else self._sent(value)
            for key, (_, value, octets) in zip(names, exact, strict=True)
        }

    def _sent(self, value: Any) -> Any:
        """A message's header in comparable form; some personalities compare timestamps in milliseconds."""
        if self._in_milliseconds and isinstance(value, Timestamp):
            return int(value) * 1000
        return _matchable(value, self._by_value)

    def _added(self, binding: Binding) -> None:
        self._wanted[binding] = _Wanted(
            binding.arguments, binding.exact, by_value=self._by_value, in_turn=self._in_turn
        )

    def _removed(self, binding: Binding) -> None:
        del self._wanted[binding]


class _Wanted:
    """The headers that the arguments of one binding require; without x-match all must match.

    Source: exchange-type.headers/default-match. `by_value` and `in_turn` are the choices
    `numbers_match_by_value` and `duplicates_match_in_turn`.
    """

    __slots__ = ("any", "values")

    def __init__(
        self, arguments: Mapping[str, Any], exact: ExactFields | None, *, by_value: bool, in_turn: bool
    ) -> None:
        match = arguments.get("x-match", "all")
        with_x = match.endswith("-with-x")
        self.any: bool = match.startswith("any")
        fields = exact or tuple((name, value, b"") for name, value in arguments.items())
        given = [name for name, *_ in fields]
        keys = _numbered_names(given) if in_turn else given
        # None, the void, matches any value. Of several fields with one name each counts (measured).
        self.values = tuple(
            (key, _Nested(value, octets) if isinstance(value, (dict, list)) else _matchable(value, by_value))
            for key, (name, value, octets) in zip(keys, fields, strict=True)
            if name != "x-match" and (with_x or not name.startswith("x-"))
        )

    def met_by(self, headers: Mapping[str, Any]) -> bool:
        for name, value in self.values:
            met = name in headers and (value is None or headers[name] == value)
            if met is self.any:
                return self.any
        return not self.any

    def unmet(self, headers: Mapping[str, Any]) -> list[str]:
        """The names of the required headers that these, in comparable form, do not match."""
        return [
            name
            for name, value in self.values
            if name not in headers or (value is not None and headers[name] != value)
        ]


class _Nested:
    """A table or an array: equal to one with the same bytes, or if there are none, with the same values.

    In RabbitMQ the order of fields and the width of integers count there (measured).
    """

    __slots__ = ("_octets", "_values")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, octets: bytes) -> None:
        self._octets = octets
        self._values = freeze(value)

    def __eq__(self, other: object) -> bool:
        values: object = self._values
        if not isinstance(other, _Nested):
            return values == other
        if self._octets and other._octets:
            return self._octets == other._octets
        others: object = other._values
        return values == others


def _numbered_names(names: Iterable[str]) -> list[str]:
    """Names that are all different: the second `a` is called `a` with a NUL and its number behind it."""
    seen: Counter[str] = Counter()
    numbered = []
    for name in names:
        numbered.append(f"{name}\0{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return numbered


def _matchable(value: Any, by_value: bool) -> Any:
    """Comparable: text and bytes of the same content are equal (measured), `by_value` 1 and 1.0 as well.

    So are whole numbers, and floating-point numbers, of any width (RabbitMQ: measured on 4.0.5 and 4.3.6).
    """
    if isinstance(value, float):
        return value if by_value else freeze(float(value))
    if isinstance(value, int) and not isinstance(value, (bool, Timestamp)):
        return freeze(int(value))
    return freeze(value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value)


def _erlang(value: Any) -> str:
    if isinstance(value, (str, bytes)):
        text = value if isinstance(value, str) else value.decode("utf-8", "backslashreplace")
        return f'<<"{text}">>' if text else "<<>>"
    if value is None:
        return "undefined"
    return str(value).lower() if isinstance(value, bool) else str(value)
