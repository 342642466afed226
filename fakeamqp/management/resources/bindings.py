"""Bindings of queues and exchanges to exchanges."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from fakeamqp.management.acting import DEFAULT_EXCHANGE, authorise, exchange_name
from fakeamqp.management.errors import absent
from fakeamqp.management.listing import columns_of, listed
from fakeamqp.management.resource import NO_CONTENT, HttpAnswer, Resource, check_name
from fakeamqp.management.values import jsonable
from fakeamqp.model.erlang import Atom
from fakeamqp.model.errors import NotFound
from fakeamqp.model.exchanges.hashing import Term, phash2

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.exchanges.exchange import Binding, Destination
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost


def properties_key(routing_key: str, arguments: Mapping[str, Any]) -> str:
    """What identifies a binding between two ends in a path, as RabbitMQ makes it.

    It is the routing key, "~" for an empty one, and a hash of the arguments.
    """
    quoted = quote_plus(routing_key, errors="surrogateescape").replace("~", "%7E")
    if not arguments:
        return quoted or "~"
    return f"{quoted}~{_hash(arguments)}"


def _hash(arguments: Mapping[str, Any]) -> str:
    """Erlang's portable hash of the sorted table (measured for texts, integers and flags)."""
    table: list[Term] = [(name.encode(), *_typed(arguments[name])) for name in sorted(arguments)]
    return base64.urlsafe_b64encode(phash2(table, 32).to_bytes(4, "big")).decode().rstrip("=")


def _typed(value: Any) -> tuple[Any, Any]:
    """A value of a table with its type, as Erlang has it."""
    if isinstance(value, bool):
        return Atom("bool"), Atom(str(value).lower())
    if isinstance(value, int):
        return Atom("long"), value
    if isinstance(value, float):
        return Atom("double"), value
    if isinstance(value, Mapping):
        return Atom("table"), [(name.encode(), *_typed(value[name])) for name in sorted(value)]
    if isinstance(value, (list, tuple)):
        return Atom("array"), [_typed(item) for item in value]
    if value is None:
        return Atom("void"), Atom("undefined")
    octets = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    return Atom("longstr"), octets


def _view(binding: Binding) -> dict[str, Any]:
    return {
        "source": binding.source.name,
        "vhost": binding.source.virtual_host.name,
        "destination": binding.destination.name,
        "destination_type": binding.destination.kind,
        "routing_key": binding.routing_key,
        "arguments": jsonable(binding.arguments),
        "properties_key": properties_key(binding.routing_key, binding.arguments),
    }


def _implicit(vhost: str, queue: str) -> dict[str, Any]:
    """The binding that every queue has to the default exchange."""
    return {
        "source": "",
        "vhost": vhost,
        "destination": queue,
        "destination_type": "queue",
        "routing_key": queue,
        "arguments": {},
        "properties_key": properties_key(queue, {}),
    }


def _of_host(host: VirtualHost) -> list[Binding | tuple[str, str]]:
    return [*((host.name, name) for name in host.queues), *host.bindings.all()]


def _list(call: ApiCall) -> object:
    def bindings(state: BrokerState) -> Iterable[Binding | tuple[str, str]]:
        return [each for host in call.virtual_hosts(state) for each in _of_host(host)]

    rows = call.management.read_each(
        bindings, lambda each: _implicit(*each) if isinstance(each, tuple) else _view(each)
    )
    return listed(call, rows, ("vhost", "source", "destination", "routing_key"))


def _ends(call: ApiCall, state: BrokerState) -> tuple[str, Destination | None]:
    """The name of the source and the destination of the path."""
    host = call.virtual_host(state)
    known: Mapping[str, Destination] = host.queues if call.names["kind"] == "q" else host.exchanges
    return exchange_name(call.names["source"]), known.get(exchange_name(call.names["destination"]))


def _between(call: ApiCall, state: BrokerState) -> list[Binding]:
    source, destination = _ends(call, state)
    exchange = call.virtual_host(state).exchanges.get(source)
    if exchange is None or destination is None:
        return []
    return [each for each in destination.incoming if each.source is exchange]


def _list_between(call: ApiCall) -> object:
    def question(state: BrokerState) -> list[dict[str, Any]]:
        source, destination = _ends(call, state)
        if not source and destination is not None and destination.kind == "queue":
            return [_implicit(call.names["vhost"], destination.name)]
        return [_view(each) for each in _between(call, state)]

    return [columns_of(call, row) for row in call.management.read(question)]


def _post(call: ApiCall) -> object:
    routing_key = str(call.json.get("routing_key", ""))
    check_name("routing_key", routing_key)
    name = call.names["destination"]
    source = exchange_name(call.names["source"])

    def change(state: BrokerState) -> None:
        host = call.virtual_host(state)
        is_queue = call.names["kind"] == "q"
        kind = "queue" if is_queue else "exchange"
        authorise(call, state, "write", name)
        if source not in host.exchanges:
            raise NotFound(f"no exchange '{source}' in vhost '{host.name}'")
        _, destination = _ends(call, state)
        if destination is None:
            raise NotFound(f"no {kind} '{name}' in vhost '{host.name}'")
        authorise(call, state, "read", source)
        host.bindings.bind(source, destination, routing_key, call.arguments)

    call.management.change(change)
    key = properties_key(routing_key, call.arguments)
    where = f"{quote(name, safe='')}/{quote(key, safe='~')}"
    return HttpAnswer(201, headers={"location": where})


def _found(call: ApiCall, state: BrokerState) -> Binding:
    wanted = call.names["props"]
    for binding in _between(call, state):
        key = properties_key(binding.routing_key, binding.arguments)
        if wanted in (key, unquote(key), unquote_plus(key)):
            return binding
    raise absent()


def _get(call: ApiCall) -> object:
    def question(state: BrokerState) -> dict[str, Any]:
        source, destination = _ends(call, state)
        if not source and destination is not None and call.names["props"] == destination.name:
            return _implicit(call.names["vhost"], destination.name)
        return _view(_found(call, state))

    return call.management.read(question)


def _delete(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        binding = _found(call, state)
        authorise(call, state, "write", binding.destination.name)
        authorise(call, state, "read", binding.source.name)
        call.virtual_host(state).bindings.unbind(
            binding.source.name,
            binding.destination,
            binding.routing_key,
            binding.arguments,
            owner=getattr(binding.destination, "exclusive_owner", None),
        )

    call.management.change(change)
    return NO_CONTENT


def _of_queue(call: ApiCall) -> object:
    def question(state: BrokerState) -> list[dict[str, Any]]:
        name = call.names["name"]
        queue = call.virtual_host(state).queues.get(name)
        # RabbitMQ has the binding to the default exchange also for a queue that does not exist (measured).
        bindings = () if queue is None else queue.incoming
        return [_implicit(call.names["vhost"], name), *map(_view, bindings)]

    return [columns_of(call, row) for row in call.management.read(question)]


def _from_exchange(call: ApiCall) -> object:
    def question(state: BrokerState) -> list[dict[str, Any]]:
        host = call.virtual_host(state)
        if call.names["name"] == DEFAULT_EXCHANGE:
            return [_implicit(host.name, name) for name in host.queues]
        exchange = host.exchanges.get(call.names["name"])
        return [] if exchange is None else [_view(each) for each in exchange.bindings.values()]

    return [columns_of(call, row) for row in call.management.read(question)]


def _to_exchange(call: ApiCall) -> object:
    def question(state: BrokerState) -> list[dict[str, Any]]:
        exchange = call.virtual_host(state).exchanges.get(exchange_name(call.names["name"]))
        return [] if exchange is None else [_view(each) for each in exchange.incoming]

    return [columns_of(call, row) for row in call.management.read(question)]


RESOURCES = (
    Resource("bindings", get=_list),
    Resource("bindings/{vhost}", get=_list),
    Resource("bindings/{vhost}/e/{source}/{kind:bound}/{destination}", get=_list_between, post=_post),
    Resource("bindings/{vhost}/e/{source}/{kind:bound}/{destination}/{props}", get=_get, delete=_delete),
    Resource("queues/{vhost}/{name}/bindings", get=_of_queue),
    Resource("exchanges/{vhost}/{name}/bindings/source", get=_from_exchange),
    Resource("exchanges/{vhost}/{name}/bindings/destination", get=_to_exchange),
)
