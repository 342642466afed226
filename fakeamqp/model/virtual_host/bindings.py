"""The bindings of a virtual host: binding and unbinding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fakeamqp.model.errors import AccessRefused, NotFound
from fakeamqp.model.limits import check_binding_bound
from fakeamqp.model.operations import in_steps
from fakeamqp.model.queues import Queue
from fakeamqp.model.virtual_host.queues import check_owner

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.exchanges.exchange import Binding, Destination
    from fakeamqp.model.virtual_host.virtual_host import VirtualHost

__all__ = ["BindingRegister", "drop_bindings"]


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
        """The exchange called `source`, to bind a queue or exchange to.

        `permits_default` allows the default exchange even if the personality forbids that.

        Raises:
            NotFound: there is no such exchange.
            AccessRefused: it is the default exchange, and the personality forbids that.
        """
        if not permits_default:
            self._check_bindable(source)
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

        Raises:
            NotFound: there is no such exchange.
            AccessRefused: it is the default exchange, and the personality forbids that.
            PreconditionFailed: the exchange does not accept the arguments.
            PreconditionFailed, ResourceError: the virtual host has too many bindings.
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
        """Undo `bind`, on behalf of `owner`. A destination that does not exist is given as None.

        Raises:
            AccessRefused: it is the default exchange, and the personality forbids that.
            NotFound: there is no such exchange or binding, in personality `spec` (queue.unbind/01).
            ResourceLocked: the queue is exclusive to another owner.
        """
        virtual_host = self._virtual_host
        if not permits_default:
            self._check_bindable(source)
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

    def _check_bindable(self, source: str) -> None:
        if not source and not self._virtual_host.state.personality.default_exchange_bindable:
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
