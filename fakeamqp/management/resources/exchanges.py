"""Exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.management.acting import authorise, exchange_name, exchange_of
from fakeamqp.management.errors import bad_request, not_authorised
from fakeamqp.management.history import history_of
from fakeamqp.management.listing import columns_of, listed
from fakeamqp.management.resource import CREATED, NO_CONTENT, Resource, check_name
from fakeamqp.management.values import jsonable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.state import BrokerState

_COUNTED = ("publish_in", "publish_out")


def _view(call: ApiCall, exchange: Exchange) -> dict[str, Any]:
    host = exchange.virtual_host
    predeclared = not exchange.name or exchange.name.startswith("amq.")
    view = {
        "arguments": jsonable(exchange.arguments),
        "auto_delete": exchange.auto_delete,
        "durable": exchange.durable,
        "internal": exchange.internal,
        "name": exchange.name,
        "type": exchange.type_name,
        "user_who_performed_action": "rmq-internal" if predeclared else call.visitor.name,
        "vhost": host.name,
    }
    if exchange.policy is not None:
        view["policy"] = exchange.policy.name
    statistics = call.management.statistics
    counts = statistics.exchanges.get((host.name, exchange.name))
    if counts is not None and exchange.name:
        view["message_stats"] = counts.shown(
            _COUNTED, statistics.now(), host.state.clock.time(), history_of(call, "msg_rates")
        )
    return view


def _list(call: ApiCall) -> object:
    def exchanges(state: BrokerState) -> Iterable[Exchange]:
        return [exchange for host in call.virtual_hosts(state) for exchange in host.exchanges.values()]

    return listed(call, call.management.read_each(exchanges, lambda each: _view(call, each)))


def _get(call: ApiCall) -> object:
    def question(state: BrokerState) -> dict[str, Any]:
        # RabbitMQ counts by channel and by queue with rates_mode=detailed only, which is not the default.
        return {**_view(call, exchange_of(call, state)), "incoming": [], "outgoing": []}

    return columns_of(call, call.management.read(question))


def _put(call: ApiCall) -> object:
    name = call.names["name"]
    check_name("exchange", name)
    kind = call.json.get("type", "direct")
    if not isinstance(kind, str):
        raise bad_request(["not_string", kind])
    durable, auto_delete, internal = map(call.boolean, ("durable", "auto_delete", "internal"))

    def change(state: BrokerState) -> bool:
        host = call.virtual_host(state)
        authorise(call, state, "configure", exchange_name(name))
        new = exchange_name(name) not in host.exchanges
        host.exchanges.declare(
            exchange_name(name),
            kind,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=call.arguments,
        )
        return new

    return CREATED if call.management.change(change) else NO_CONTENT


def _delete(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        exchange = exchange_of(call, state)
        if not exchange.name:
            raise not_authorised("Access refused.")
        authorise(call, state, "configure", exchange.name)
        exchange.virtual_host.exchanges.delete(exchange.name, if_unused=call.flag("if-unused"))

    call.management.change(change)
    return NO_CONTENT


RESOURCES = (
    Resource("exchanges", get=_list),
    Resource("exchanges/{vhost}", get=_list),
    Resource("exchanges/{vhost}/{name}", get=_get, put=_put, delete=_delete),
)
