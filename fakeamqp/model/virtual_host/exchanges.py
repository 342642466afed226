"""The exchanges of a virtual host, and their bindings: declaring, deleting, binding and unbinding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from fakeamqp.model.equivalence import check_alternate, check_name, check_same_exchange
from fakeamqp.model.errors import AccessRefused, CommandInvalid, NotAllowed, NotFound, PreconditionFailed
from fakeamqp.model.exchanges import EXCHANGE_TYPES, STANDARD_TYPES, DefaultExchange, Exchange, exchange_class
from fakeamqp.model.limits import check_binding_bound
from fakeamqp.model.operations import STEP, carry_out, in_steps
from fakeamqp.model.queues import Queue
from fakeamqp.model.virtual_host.queues import check_owner

if TYPE_CHECKING:
    from fakeamqp.model.exchanges.exchange import Binding, Destination
    from fakeamqp.model.virtual_host.virtual_host import VirtualHost


class ExchangeRegister(dict[str, Exchange]):
    """The exchanges of a virtual host by name. Declares, creates and deletes them."""

    __slots__ = ("_bindings", "_virtual_host")

    def __init__(self, virtual_host: VirtualHost, bindings: BindingRegister) -> None:
        super().__init__()
        self._virtual_host = virtual_host
        self._bindings = bindings

    def require(self, name: str) -> Exchange:
        """The exchange called `name`; NotFound if there is none."""
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
            self.add_system("amq.system")
        internal = ["amq.rabbitmq.trace"] if personality.has_trace_exchange else []
        if personality.has_log_exchange and virtual_host.name == "/":
            internal.append("amq.rabbitmq.log")
        for name in internal:
            self[name] = STANDARD_TYPES["topic"](virtual_host, name, durable=True, internal=True)

    def add_system(self, name: str) -> Exchange:
        """The exchange `name`, of type system; it is created if it does not exist, on the operator's behalf.

        PreconditionFailed is raised if it is of another type.
        """
        existing = self.get(name)
        if existing is None:
            virtual_host = self._virtual_host
            self[name] = existing = exchange_class("system")(virtual_host, name, durable=True)
            virtual_host.routing.invalidate()
        elif existing.type_name != "system":
            raise PreconditionFailed(self._other_type(existing, "system"))
        return existing

    def _other_type(self, existing: Exchange, asked: str) -> str:
        return (
            f"exchange '{existing.name}' in vhost '{self._virtual_host.name}' is of type "
            f"'{existing.type_name}', not '{asked}'"
        )

    def type_called(self, name: str) -> type[Exchange]:
        """The exchange type called `name` (exchange.declare/type-support).

        If there is none, CommandInvalid or PreconditionFailed is raised, by personality.
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
            NotAllowed: the existing one has another alternate exchange, or type (in personality `spec`).
            NotFound: there is no such alternate exchange.
        """
        virtual_host = self._virtual_host
        personality = virtual_host.state.personality
        flags = {"durable": durable, "auto_delete": auto_delete, "internal": internal}
        if personality.exchange_flags_reserved:
            flags["auto_delete"] = flags["internal"] = False
        if not name:
            raise AccessRefused("operation not permitted on the default exchange")
        check_name(personality, "exchange", name)
        self.type_called(type_name)
        existing = self.get(name)
        if existing is not None:
            if personality.type_mismatch_ends_connection and existing.type_name != type_name:
                raise NotAllowed(self._other_type(existing, type_name))
            check_same_exchange(existing, type_name, flags, arguments or {})
            check_alternate(virtual_host, alternate_exchange, existing)
            return existing
        if name.startswith("amq."):
            raise AccessRefused(f"exchange name '{name}' contains reserved prefix 'amq.*'")
        return self.create(
            name, type_name, **flags, arguments=arguments, alternate_exchange=alternate_exchange
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
        """Create an exchange that does not exist; its name may be reserved. See `declare`."""
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
        """Delete an exchange and its bindings, on a client's behalf."""
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
        """AccessRefused if the exchange is predeclared (exchange/predeclared-permanent)."""
        if exchange.startswith("amq."):
            raise AccessRefused(
                f"deletion of system exchange '{exchange}' in vhost '{self._virtual_host.name}' not allowed"
            )

    def used_as_alternate(self, name: str) -> bool:
        """Whether any queue or exchange has this alternate (exchange.delete/exchange-used-as-alternate)."""
        entities: Iterable[Queue | Exchange] = chain(self.values(), self._virtual_host.queues.values())
        return any(each.alternate_exchange == name for each in entities)

    def remove(self, exchange: Exchange) -> None:
        """Remove an exchange and the bindings from and to it, in steps if they are many."""
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


class BindingRegister:
    """Binds and unbinds. Each exchange keeps its outgoing bindings, each destination its incoming ones."""

    __slots__ = ("_virtual_host", "count", "loose")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self.count: int = 0
        """How many bindings there are; exchanges keep it."""
        self.loose: set[object] = set()
        """Deleted queues and exchanges whose bindings are being removed. Nothing is routed to them."""

    def bindable(self, source: str, *, permits_default: bool = False) -> Exchange:
        """The exchange called `source`, to bind a queue or exchange to; NotFound if there is none.

        AccessRefused: the default exchange, unless the personality or `permits_default` allows it.
        """
        self._check_bindable(source, permits_default)
        return self._virtual_host.exchanges.require(source)

    def bind(
        self,
        source: str,
        destination: Destination,
        routing_key: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        permits_default: bool = False,
    ) -> None:
        """Bind a queue or exchange to the exchange called `source`; see `bindable`.

        PreconditionFailed is raised if the exchange does not accept the arguments, and there is a bound.
        """
        exchange = self.bindable(source, permits_default=permits_default)
        arguments = arguments or {}
        known = exchange.binding(destination, routing_key, arguments)
        if known is None:
            check_binding_bound(self._virtual_host)
        exchange.bind(destination, routing_key, arguments)
        self._virtual_host.routing.invalidate()
        if known is None:
            self._report_binding("bound", source, destination, routing_key)

    def unbind(
        self,
        source: str,
        destination: Destination | None,
        routing_key: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        owner: object = None,
        permits_default: bool = False,
    ) -> None:
        """Undo `bind`, for `owner` (queue.unbind/01). A destination that does not exist is given as None."""
        virtual_host = self._virtual_host
        self._check_bindable(source, permits_default)
        strict = virtual_host.state.personality.unbinding_missing_is_an_error
        exchange = virtual_host.exchanges.get(source)
        if exchange is None:
            if strict:
                raise virtual_host.missing("exchange", source)
            return
        if destination is None:
            return
        binding = exchange.binding(destination, routing_key, arguments or {})
        if binding is not None:
            if isinstance(destination, Queue):
                check_owner(destination, owner)
            exchange.drop(binding)
            virtual_host.routing.invalidate()
            self._report_binding("unbound", source, destination, routing_key)
            if exchange.auto_delete and not exchange.bindings:
                virtual_host.exchanges.remove(exchange)
        elif strict:
            raise NotFound(
                f"no binding '{routing_key}' between exchange '{source}' in vhost '{virtual_host.name}' and "
                f"'{destination.name}' in vhost '{virtual_host.name}'"
            )

    def _check_bindable(self, source: str, permits_default: bool) -> None:
        permits_default = permits_default or self._virtual_host.state.personality.default_exchange_bindable
        if not source and not permits_default:
            raise AccessRefused("operation not permitted on the default exchange")

    def unbinding(self, destination: Destination, *, keep_sources: bool = False) -> Iterator[None]:
        """The steps of removing all bindings to a deleted queue or exchange, to which nothing is routed now.

        An auto-delete exchange is deleted with its last binding (RabbitMQ: documented), unless `keep_sources`
        says otherwise, and then the bindings to it are removed, and so on. The loop is not recursive: such
        chains may exceed the recursion limit.
        """
        return self._unbinding(destination, self._loosen(destination), keep_sources)

    def _loosen(self, destination: Destination) -> dict[Exchange, None]:
        """From now on nothing is routed to a deleted queue or exchange. Returns what it is bound to."""
        self.loose.add(destination)
        sources = dict.fromkeys(binding.source for binding in destination.incoming)
        # An exchange that chooses one of its bindings must not choose this destination meanwhile.
        if any(source.chooser.chooses for source in sources):
            drop_bindings([each for each in destination.incoming if each.source.chooser.chooses])
        return sources

    def _unbinding(
        self, destination: Destination, sources: Iterable[Exchange], keep_sources: bool
    ) -> Iterator[None]:
        gone = [(destination, sources)]
        for each, its_sources in gone:
            yield from in_steps(list(each.incoming), drop_bindings)
            self.loose.discard(each)
            for source in its_sources:
                if source.auto_delete and not source.bindings and not keep_sources:
                    if self._virtual_host.exchanges.get(source.name) is not source:
                        continue  # A client has deleted it meanwhile.
                    del self._virtual_host.exchanges[source.name]
                    self._virtual_host.report("exchange deleted", exchange=source.name)
                    gone.append((source, self._loosen(source)))

    def all(self) -> list[Binding]:
        """All explicit bindings, by exchange."""
        exchanges = self._virtual_host.exchanges.values()
        return [binding for exchange in exchanges for binding in exchange.bindings.values()]

    def _report_binding(self, event: str, source: str, destination: Destination, routing_key: str) -> None:
        whose = {"queue": destination.name} if destination.kind == "queue" else {"to": destination.name}
        self._virtual_host.report(event, **whose, exchange=source, routing_key=routing_key)


def drop_bindings(bindings: Sequence[Binding]) -> None:
    """Remove those of these bindings that are still there."""
    for binding in bindings:
        # Its source or its destination may have been deleted meanwhile, which removes it as well.
        if binding in binding.destination.incoming:
            binding.source.drop(binding)
