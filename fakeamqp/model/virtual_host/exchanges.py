"""The exchanges of a virtual host: declaration and deletion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import AccessRefused, CommandInvalid, NotAllowed, PreconditionFailed
from fakeamqp.model.exchanges import (
    EXCHANGE_TYPES,
    STANDARD_TYPES,
    DefaultExchange,
    Exchange,
    exchange_class,
)
from fakeamqp.model.operations import STEP, carry_out, in_steps
from fakeamqp.model.virtual_host.bindings import drop_bindings
from fakeamqp.model.virtual_host.redeclaration import check_alternate, check_name, check_same_exchange

if TYPE_CHECKING:
    from fakeamqp.model.virtual_host.bindings import BindingRegister
    from fakeamqp.model.virtual_host.virtual_host import VirtualHost

__all__ = ["SYSTEM_EXCHANGE", "ExchangeRegister"]

SYSTEM_EXCHANGE = "amq.system"
"""The predeclared exchange of type system, where there is one (exchange/required-instances)."""


class ExchangeRegister(dict[str, Exchange]):
    """The exchanges of a virtual host by name. Declares, creates and deletes them."""

    __slots__ = ("_bindings", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost, bindings: BindingRegister) -> None:
        super().__init__()
        self._virtual_host = virtual_host
        self._bindings = bindings

    def require(self, name: str) -> Exchange:
        """The exchange called `name`.

        Raises:
            NotFound: there is none.
        """
        found = self.get(name)
        if found is None:
            raise self._virtual_host.missing("exchange", name)
        return found

    def predeclare(self) -> None:
        """Create the standard exchanges (exchange/required-instances, exchange/required-match)."""
        virtual_host = self._virtual_host
        self[""] = DefaultExchange(virtual_host, "", durable=True)
        for type_name, kind in STANDARD_TYPES.items():
            self[f"amq.{type_name}"] = kind(virtual_host, f"amq.{type_name}", durable=True)
        self["amq.match"] = STANDARD_TYPES["headers"](virtual_host, "amq.match", durable=True)
        personality = virtual_host.state.personality
        if "system" in personality.exchange_types:
            self.add_system(SYSTEM_EXCHANGE)
        logs = personality.has_log_exchange and virtual_host.name == "/"
        for name, there in (
            ("amq.rabbitmq.trace", personality.has_trace_exchange),
            ("amq.rabbitmq.log", logs),
        ):
            if there:
                self[name] = STANDARD_TYPES["topic"](virtual_host, name, durable=True, internal=True)

    def add_system(self, name: str) -> Exchange:
        """The exchange `name`, of type system; it is created if it does not exist, on the operator's behalf.

        Raises:
            PreconditionFailed: it exists, and is of another type.
        """
        existing = self.get(name)
        if existing is None:
            virtual_host = self._virtual_host
            self[name] = existing = exchange_class("system")(virtual_host, name, durable=True)
            virtual_host.routing.invalidate()
        elif existing.type_name != "system":
            raise PreconditionFailed(
                f"exchange '{name}' in vhost '{self._virtual_host.name}' is of type "
                f"'{existing.type_name}', not 'system'"
            )
        return existing

    def type_called(self, name: str) -> type[Exchange]:
        """The exchange type called `name` (exchange.declare/type-support).

        Raises:
            CommandInvalid, PreconditionFailed: there is none, by personality.
        """
        personality = self._virtual_host.state.personality
        if name not in EXCHANGE_TYPES or name not in personality.exchange_types:
            refusal = {"command-invalid": CommandInvalid, "precondition-failed": PreconditionFailed}
            problem = "invalid" if name in personality.invalid_exchange_types else "unknown"
            raise refusal[personality.unknown_exchange_type](f"{problem} exchange type '{name}'")
        return exchange_class(name)

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
        """Create the exchange, or check that the existing one is equivalent.

        `alternate_exchange` takes precedence over the alternate exchange in the arguments.

        Raises:
            AccessRefused: the name is empty or reserved.
            PreconditionFailed: the existing one differs, or an argument or the name is illegal.
            CommandInvalid, PreconditionFailed: the type is unknown, by personality.
            NotAllowed: the existing one is of another type, in personality `spec`; or has another alternate
                exchange.
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
        existing = self.get(name)
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
        """Create an exchange that does not exist; its name may be reserved. See `declare`.

        Raises:
            PreconditionFailed: an argument is illegal.
            CommandInvalid, PreconditionFailed: the type is unknown, by personality.
            NotFound: there is no such alternate exchange.
        """
        virtual_host = self._virtual_host
        arguments = arguments or {}
        kind = self.type_called(type_name)
        kind.check_declaration(virtual_host, name, arguments)
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
        self[name] = exchange
        virtual_host.report("exchange declared", exchange=name, type=type_name)
        virtual_host.policies.adopt_exchange(exchange)
        virtual_host.routing.invalidate()
        return exchange

    def delete(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange and its bindings, on a client's behalf.

        Raises:
            AccessRefused: the exchange is predeclared (exchange/predeclared-permanent).
            PreconditionFailed: it has bindings and `if_unused` is set.
            NotFound: it does not exist, in personality `spec`.
        """
        virtual_host = self._virtual_host
        if not name:
            raise AccessRefused("operation not permitted on the default exchange")
        self.check_deletable(name)
        exchange = self.get(name)
        if exchange is None:
            if virtual_host.state.personality.deleting_missing_is_an_error:
                raise virtual_host.missing("exchange", name)
            return
        if if_unused and exchange.bindings:
            raise PreconditionFailed(f"exchange '{name}' in vhost '{virtual_host.name}' in use")
        self.remove(exchange)

    def check_deletable(self, exchange: str) -> None:
        """Refuse to delete a predeclared exchange (exchange/predeclared-permanent).

        Raises:
            AccessRefused: the name is reserved for predeclared exchanges.
        """
        if exchange.startswith("amq."):
            raise AccessRefused(
                f"deletion of system exchange '{exchange}' in vhost '{self._virtual_host.name}' not allowed"
            )

    def used_as_alternate(self, name: str) -> bool:
        """Whether this is the alternate exchange of any queue or exchange.

        Source: exchange.delete/exchange-used-as-alternate.
        """
        return any(each.alternate_exchange == name for each in self.values()) or any(
            each.alternate_exchange == name for each in self._virtual_host.queues.values()
        )

    def remove(self, exchange: Exchange) -> None:
        """Remove an exchange, the bindings of others to it and its own bindings.

        If these are many, they are removed in steps.
        """
        virtual_host = self._virtual_host
        if self.pop(exchange.name, None) is None:
            return
        virtual_host.report("exchange deleted", exchange=exchange.name)
        unbinding = self._bindings.unbinding(exchange)
        virtual_host.routing.invalidate()
        steps = self._removing(exchange, unbinding)
        if len(exchange.bindings) + len(exchange.incoming) <= STEP:
            carry_out(steps)
        else:
            virtual_host.state.operations.run(steps)

    def _removing(self, exchange: Exchange, unbinding: Iterator[None]) -> Iterator[None]:
        """The steps of removing the bindings of a removed exchange."""
        yield from in_steps(list(exchange.bindings.values()), drop_bindings)
        yield from unbinding
        self._virtual_host.routing.invalidate()
