"""What all exchange types share: a name, flags, and bindings in the order they were made.

`route` answers for one message with all the keys it has, which for most types is what `destinations` answers
for each key; the router walks exchange-to-exchange bindings and alternate exchanges (see `routing`) and
remembers the result for the types whose answer depends on the key alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from fakeamqp.model.binding import Binding, BindingKey, Destination, binding_key
from fakeamqp.model.equivalence import freeze

if TYPE_CHECKING:
    from typing import TypeAlias

    from fakeamqp.model.message import Message
    from fakeamqp.model.policies import Policy
    from fakeamqp.model.reply_to import ReplyAddress
    from fakeamqp.model.virtual_host import VirtualHost

    Target: TypeAlias = Destination | ReplyAddress

__all__ = ["Exchange"]


class Exchange:
    """What all exchange types share: a name, flags, and bindings in the order they were made.

    `alternate_exchange` names where a message goes that finds no way: by the argument `alternate-exchange`,
    or by policy, or as it was declared with the exchange beside its arguments (`declared_alternate`). The
    last kind leads one step only (exchange.declare/alternate-exchange-double-failure): `alternate_is_last`
    says that the alternate exchange of that one is not tried.
    """

    kind: ClassVar[Literal["exchange"]] = "exchange"
    type_name: ClassVar[str]
    by_key_alone: bool = True
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
        alternate_exchange: str | None = None,
    ) -> None:
        self.virtual_host = virtual_host
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = dict(arguments or {})
        self.declared_alternate = alternate_exchange
        self.alternate_is_last = alternate_exchange is not None
        self.alternate_exchange: str | None = alternate_exchange or self.arguments.get("alternate-exchange")
        self.policy: Policy | None = None
        self.operator_policy: Policy | None = None
        self.bindings: dict[BindingKey, Binding] = {}
        self.incoming: dict[Binding, None] = {}

    def __repr__(self) -> str:
        return f"<Exchange {self.name!r} type={self.type_name} bindings={len(self.bindings)}>"

    @classmethod
    def check_declaration(cls, virtual_host: VirtualHost, arguments: Mapping[str, Any]) -> None:
        """May an exchange of this type be declared with these arguments?

        Raises:
            PreconditionFailed, CommandInvalid, InternalError: no.
        """

    def validate(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Check the key and the arguments of a new binding.

        Raises:
            PreconditionFailed: this type cannot work with them.
        """

    def check_destination(self, destination: Destination) -> None:
        """May this be bound, once key and arguments are right?

        Raises:
            PreconditionFailed: this type cannot pass messages to it.
        """

    def bind(self, destination: Destination, routing_key: str, arguments: Mapping[str, Any]) -> None:
        """Add a binding; an identical one changes nothing (queue.bind/duplicates)."""
        binding = Binding(self, destination, routing_key, arguments)
        if binding.identity in self.bindings:
            return
        self.validate(routing_key, arguments)
        self.check_destination(destination)
        self.bindings[binding.identity] = binding
        destination.incoming[binding] = None
        self._added(binding)

    def binding(
        self, destination: Destination, routing_key: str, arguments: Mapping[str, Any]
    ) -> Binding | None:
        """The binding like this, or None (queue.unbind/arguments-identify)."""
        return self.bindings.get(binding_key(destination, routing_key, arguments))

    def bindings_between(self, destination: Destination, routing_key: str) -> list[Binding]:
        """All bindings of this destination by this key, whatever their arguments.

        Where the key alone identifies a binding (exchange.bind/binding-key-identity) there is one, or none.
        """
        incoming = destination.incoming
        return [each for each in incoming if each.source is self and each.routing_key == routing_key]

    def is_bound(
        self,
        destination: Destination | None = None,
        routing_key: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> bool:
        """Whether any binding has all that is given; None is not compared (exchange.bound/wildcards)."""
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
        binding.destination.incoming.pop(binding, None)
        self._removed(binding)

    @property
    def chooser(self) -> Exchange:
        """The exchange whose type decides where messages go: for most types it itself."""
        return self

    def delay(self, message: Message) -> float:
        """For how many seconds `hold_back` would keep a message."""
        return 0.0

    def hold_back(self, message: Message) -> float:
        """Keep a message for later, where the type does such a thing; `message` is routed another time.

        Returns:
            For how many seconds; 0.0 where it goes on at once.
        """
        return 0.0

    def route(self, keys: Sequence[str], message: Message) -> Iterable[Target]:
        """Where a message with these keys goes next; the same destination may be named more than once."""
        return [target for key in keys for target in self.destinations(key, message)]

    def destinations(self, routing_key: str, message: Message) -> Iterable[Target]:
        """Where a message with this one key goes next."""
        raise NotImplementedError

    def restarted(self) -> None:
        """The broker has been restarted, and this exchange is durable."""

    def _added(self, binding: Binding) -> None:
        """Keep the type's own index."""

    def _removed(self, binding: Binding) -> None:
        """Keep the type's own index."""
