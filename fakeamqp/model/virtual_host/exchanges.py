"""How the exchanges of a virtual host come and go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from fakeamqp.model.declarations import check_alternate, check_name, check_same_exchange
from fakeamqp.model.equivalence import type_name as type_of
from fakeamqp.model.errors import AccessRefused, CommandInvalid, NotAllowed, NotFound, PreconditionFailed
from fakeamqp.model.exchanges import EXCHANGE_TYPES, STANDARD_TYPES, DefaultExchange, Exchange

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host.bindings import BindingRegister
    from fakeamqp.model.virtual_host.virtual_host import VirtualHost

__all__ = ["ExchangeProperties", "ExchangeRegister"]


class ExchangeProperties(TypedDict, total=False):
    """What a declaration may say of an exchange beside its name and type."""

    durable: bool
    auto_delete: bool
    internal: bool
    arguments: Mapping[str, Any] | None
    alternate_exchange: str | None


class ExchangeRegister:
    """Declares, creates and deletes exchanges; `VirtualHost.exchanges` is what there is."""

    __slots__ = ("_bindings", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost, bindings: BindingRegister) -> None:
        self._virtual_host = virtual_host
        self._bindings = bindings

    def predeclare(self) -> None:
        """The instances every virtual host has (exchange/required-instances, exchange/required-match)."""
        virtual_host = self._virtual_host
        exchanges = virtual_host.exchanges
        exchanges[""] = DefaultExchange(virtual_host, "", durable=True)
        for type_name, kind in STANDARD_TYPES.items():
            exchanges[f"amq.{type_name}"] = kind(virtual_host, f"amq.{type_name}", durable=True)
        exchanges["amq.match"] = EXCHANGE_TYPES["headers"](virtual_host, "amq.match", durable=True)
        if virtual_host.state.personality.has_trace_exchange:
            trace = EXCHANGE_TYPES["topic"](virtual_host, "amq.rabbitmq.trace", durable=True, internal=True)
            exchanges[trace.name] = trace

    def type_called(self, name: str) -> type[Exchange]:
        """The exchange type called `name` (exchange.declare/type-support).

        Raises:
            CommandInvalid, PreconditionFailed: there is none, by personality.
        """
        personality = self._virtual_host.state.personality
        kind = EXCHANGE_TYPES.get(name)
        if kind is None or name not in personality.exchange_types:
            refusal = {"command-invalid": CommandInvalid, "precondition-failed": PreconditionFailed}
            problem = "invalid" if name in personality.invalid_exchange_types else "unknown"
            raise refusal[personality.unknown_exchange_type](f"{problem} exchange type '{name}'")
        return kind

    def declare(
        self,
        name: str,
        type_name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
        alternate_exchange: str | None = None,
    ) -> Exchange:
        """Create the exchange, or confirm that the one there is means the same.

        `alternate_exchange` names one beside the arguments; it is that of the exchange, whatever they say.

        Raises:
            AccessRefused: the name is empty or reserved.
            PreconditionFailed: there is one that differs, or an argument or the name is illegal.
            CommandInvalid, PreconditionFailed: the type is unknown, by personality.
            NotAllowed: there is one of another type, in personality `spec`; or another alternate exchange.
            NotFound: there is no such alternate exchange.
        """
        virtual_host = self._virtual_host
        personality = virtual_host.state.personality
        arguments = arguments or {}
        if personality.exchange_flags_reserved:
            auto_delete = internal = False
        if not name:
            raise AccessRefused("operation not permitted on the default exchange")
        check_name(personality, "exchange", name)
        self.type_called(type_name)
        existing = virtual_host.exchanges.get(name)
        if existing is not None:
            if personality.type_mismatch_ends_connection and existing.type_name != type_name:
                raise NotAllowed(
                    f"exchange '{name}' in vhost '{virtual_host.name}' is of type '{existing.type_name}', "
                    f"not '{type_name}'"
                )
            check_same_exchange(
                existing,
                type_name,
                durable=durable,
                auto_delete=auto_delete,
                internal=internal,
                arguments=arguments,
            )
            check_alternate(virtual_host, alternate_exchange, existing)
            return existing
        if name.startswith("amq."):
            raise AccessRefused(f"exchange name '{name}' contains reserved prefix 'amq.*'")
        return self.create(
            name,
            type_name,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=arguments,
            alternate_exchange=alternate_exchange,
        )

    def create(
        self,
        name: str,
        type_name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
        alternate_exchange: str | None = None,
    ) -> Exchange:
        """Create the exchange, whose name nothing has and may be reserved; see `declare`.

        Raises:
            PreconditionFailed: an argument is illegal.
            CommandInvalid, PreconditionFailed: the type is unknown, by personality.
            NotFound: there is no such alternate exchange.
        """
        virtual_host = self._virtual_host
        arguments = arguments or {}
        kind = self.type_called(type_name)
        alternate = arguments.get("alternate-exchange")
        if "alternate-exchange" in arguments and not isinstance(alternate, str):
            raise PreconditionFailed(
                f"invalid type '{type_of(alternate)}' for arg 'alternate-exchange' in exchange '{name}' "
                f"in vhost '{virtual_host.name}'"
            )
        kind.check_declaration(virtual_host, arguments)
        check_alternate(virtual_host, alternate_exchange)
        exchange = kind(
            virtual_host,
            name,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=arguments,
            alternate_exchange=alternate_exchange,
        )
        virtual_host.exchanges[name] = exchange
        virtual_host.note("exchange declared", exchange=name, type=type_name)
        virtual_host.policies.adopt_exchange(exchange)
        virtual_host.routing.forget()
        return exchange

    def delete(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange and its bindings.

        Raises:
            AccessRefused: it is one of those the broker itself declared (exchange/predeclared-permanent).
            PreconditionFailed: it has bindings and `if_unused` is set.
            NotFound: there is none, in personality `spec`.
        """
        virtual_host = self._virtual_host
        if not name:
            raise AccessRefused("operation not permitted on the default exchange")
        self.check_deletable(name)
        exchange = virtual_host.exchanges.get(name)
        if exchange is None:
            if virtual_host.state.personality.deleting_missing_is_an_error:
                raise NotFound(f"no exchange '{name}' in vhost '{virtual_host.name}'")
            return
        if if_unused and exchange.bindings:
            raise PreconditionFailed(f"exchange '{name}' in vhost '{virtual_host.name}' in use")
        self.remove(exchange)

    def check_deletable(self, exchange: str) -> None:
        """Refuse to delete what the broker itself declared (exchange/predeclared-permanent).

        Raises:
            AccessRefused: the name is one of those reserved for such exchanges.
        """
        if exchange.startswith("amq."):
            raise AccessRefused(
                f"deletion of system exchange '{exchange}' in vhost '{self._virtual_host.name}' not allowed"
            )

    def used_as_alternate(self, name: str) -> bool:
        """Whether this is the alternate exchange of any queue or exchange.

        Source: exchange.delete/exchange-used-as-alternate.
        """
        return any(each.alternate_exchange == name for each in self._virtual_host.exchanges.values()) or any(
            each.alternate_exchange == name for each in self._virtual_host.queues.values()
        )

    def remove(self, exchange: Exchange) -> None:
        """Take an exchange out with everything bound to it or by it."""
        virtual_host = self._virtual_host
        if virtual_host.exchanges.pop(exchange.name, None) is None:
            return
        virtual_host.note("exchange deleted", exchange=exchange.name)
        for binding in list(exchange.bindings.values()):
            exchange.drop(binding)
        self._bindings.cut_off(exchange)
        virtual_host.routing.forget()
