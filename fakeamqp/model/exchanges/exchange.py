"""What all exchange types share: a name, flags, and bindings in the order of their creation.

`route` returns the destinations of one message with all its keys; for most types these are the `destinations`
of each key. The router follows exchange-to-exchange bindings and alternate exchanges (see `routing`), and
caches the result for types whose routes depend on the key alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fakeamqp.model.arguments import ExchangeOptions, exchange_options
from fakeamqp.model.equivalence import freeze
from fakeamqp.model.exchanges.binding import (
    Binding,
    BindingIndex,
    BindingKey,
    Destination,
    binding_key,
    exact_fields,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.model.exchanges.system import Service
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.routing import ReplyAddress
    from fakeamqp.model.virtual_host import VirtualHost

    Target: TypeAlias = Destination | ReplyAddress | Service

__all__ = ["Exchange"]


class Exchange:
    """What all exchange types share: a name, flags, and bindings in the order of their creation.

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
        self.options = self.declared = exchange_options(
            self.type_name, name, virtual_host.name, self.arguments
        )
        self.alternate_exchange = alternate_exchange or self.options.alternate_exchange
        self.policy: Policy | None = None
        self.operator_policy: Policy | None = None
        self.bindings: dict[BindingKey, Binding] = {}
        self._by_routing_key = BindingIndex(_place)
        self._written = BindingIndex(_written_value)
        self.incoming: dict[Binding, None] = {}

    def __repr__(self) -> str:
        return f"<Exchange {self.name!r} type={self.type_name} bindings={len(self.bindings)}>"

    @classmethod
    def check_declaration(
        cls, virtual_host: VirtualHost, name: str, arguments: Mapping[str, Any]
    ) -> ExchangeOptions:
        """Read the arguments of a declaration of this type.

        Raises:
            PreconditionFailed, CommandInvalid, InternalError: an exchange cannot be declared with them.
        """
        return exchange_options(cls.type_name, name, virtual_host.name, arguments)

    def apply(self, options: ExchangeOptions) -> None:
        """Put other options in force, because other policies match."""
        self.options = options
        self.alternate_exchange = self.declared_alternate or options.alternate_exchange

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Check the key and the arguments of a new binding.

        Raises:
            PreconditionFailed: they are illegal for this type.
        """

    def check_destination(self, destination: Destination) -> None:
        """Check the destination of a new binding, after its key and arguments.

        Raises:
            PreconditionFailed: this type cannot route to it.
        """

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
        exact = exact_fields(self, arguments)
        found = self.bindings.get(binding_key(destination, routing_key, arguments, exact))
        if found is not None or not arguments:
            return found
        # One side was not written by a client, as a binding from definitions: the values decide.
        wanted = destination, routing_key, freeze(arguments)
        if exact is None:
            return next(iter(self._written.find(wanted, self.bindings.values())), None)
        found = self.bindings.get(wanted)
        return found if found is not None and found.exact is None else None

    def bindings_between(self, destination: Destination, routing_key: str) -> list[Binding]:
        """All bindings of this destination by this key, whatever their arguments.

        Where the key alone identifies a binding (exchange.bind/binding-key-identity) there is one, or none.
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
        """Remove this binding."""
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
        """Delay a message, in types that do so; it is routed again afterwards.

        Returns:
            The delay in seconds; 0.0 where the message is routed at once.
        """
        return 0.0

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        """The destinations of a message with these keys; one may occur more than once."""
        return [target for key in keys for target in self.destinations(key, message)]

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """The destinations of a message with this key."""
        raise NotImplementedError

    def restarted(self) -> None:
        """Called on durable exchanges after a restart."""

    def _added(self, binding: Binding) -> None:
        """Update the type's index."""

    def _removed(self, binding: Binding) -> None:
        """Update the type's index."""


def _place(binding: Binding) -> tuple[Destination, str]:
    return binding.destination, binding.routing_key


def _written_value(binding: Binding) -> BindingKey | None:
    """What finds a binding that a client wrote with arguments, if their fields are not known exactly."""
    if not binding.exact:
        return None
    return binding.destination, binding.routing_key, freeze(binding.arguments)
