"""Virtual hosts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fakeamqp.management.access import Role
from fakeamqp.management.counters import CONSUMING, PUBLISHING
from fakeamqp.management.errors import Refused, absent, bad_request, crashed
from fakeamqp.management.listing import listed
from fakeamqp.management.resource import CREATED, NO_CONTENT, InVirtualHost, Resource
from fakeamqp.model.access import Permission
from fakeamqp.model.arguments.queue_arguments import QUEUE_TYPES
from fakeamqp.model.names import NODE

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost


def _view(call: ApiCall, host: VirtualHost) -> dict[str, Any]:
    metadata = host.metadata
    kind = metadata.default_queue_type or "classic"
    about: dict[str, Any] = {"description": metadata.description, "tags": list(metadata.tags)}
    view: dict[str, Any] = {
        "name": host.name,
        **about,
        "default_queue_type": kind,
        "metadata": {**about, "default_queue_type": kind},
        "tracing": host.firehose is not None,
        "cluster_state": {NODE: "running"},
    }
    if call.choices.has_deletion_protection:
        view["protected_from_deletion"] = metadata.protected_from_deletion
    statistics = call.management.statistics
    counts = statistics.virtual_hosts.get(host.name)
    if counts is not None:
        now, wall = statistics.now(), host.state.clock.time()
        view["message_stats"] = counts.shown((*PUBLISHING, *CONSUMING), now, wall)
        ready = sum(len(queue.ready) for queue in host.queues.values())
        unacked = sum(len(queue.unacked) for queue in host.queues.values())
        for name, number in (
            ("messages", ready + unacked),
            ("messages_ready", ready),
            ("messages_unacknowledged", unacked),
        ):
            view[name] = number
            view[f"{name}_details"] = {"rate": 0.0}
        octets = [
            statistics.connections[each.name]
            for each in host.state.connections
            if each.virtual_host_name == host.name
        ]
        for name in ("send_oct", "recv_oct"):
            view[name] = sum(each.total(name) for each in octets)
            view[f"{name}_details"] = {"rate": 0.0}
    return view


def _list(call: ApiCall) -> object:
    visitor = call.visitor
    rows = call.management.read_each(
        lambda state: [each for each in state.virtual_hosts.values() if visitor.may_see(each.name)],
        lambda host: _view(call, host),
    )
    rows = [{key: value for key, value in row.items() if value is not None} for row in rows]
    if "page" in call.query:
        return listed(call, rows, ("name",))
    return sorted(rows, key=lambda row: str(row["name"]))  # Columns are not chosen here (measured).


def _get(call: ApiCall) -> object:
    return call.management.read(lambda state: _view(call, call.virtual_host(state)))


def _put(call: ApiCall) -> object:
    name = call.names["vhost"]
    fields = call.json
    kind: Any = fields.get("default_queue_type", fields.get("defaultqueuetype"))
    if kind in ("", "undefined"):
        kind = None
    if kind is not None and (not isinstance(kind, str) or kind not in QUEUE_TYPES):
        raise (
            crashed()
            if call.choices.crashes_on_bad_values
            else bad_request(f"{kind} is not a valid queue type")
        )
    tags = call.tags() or ()
    tracing = call.boolean("tracing") if "tracing" in fields else None

    def change(state: BrokerState) -> bool:
        new = name not in state.virtual_hosts
        host = state.add_virtual_host(name)
        if new:
            # As in RabbitMQ the user that makes a virtual host may use it (measured).
            state.access.users[call.visitor.name].permissions[name] = Permission()
            state.access.changed()
        if tracing is not None:
            host.set_firehose(tracing)
        metadata = host.metadata
        host.metadata = replace(
            metadata,
            description=call.text("description", "" if new else metadata.description),
            tags=tags,
            default_queue_type=kind or metadata.default_queue_type,
            protected_from_deletion=call.boolean("protected_from_deletion", metadata.protected_from_deletion),
        )
        return new

    return CREATED if call.management.change(change) else NO_CONTENT


def _delete(call: ApiCall) -> object:
    name = call.names["vhost"]

    def protected(state: BrokerState) -> bool:
        return call.virtual_host(state).metadata.protected_from_deletion

    if call.management.read(protected) and call.choices.has_deletion_protection:
        raise Refused(
            412,
            "precondition_failed",
            f"Refusing to delete virtual host '{name}' because it is protected from deletion",
        )
    call.management.broker.admin.remove_virtual_host(name)
    return NO_CONTENT


def _protect(call: ApiCall, protected: bool) -> object:
    def change(state: BrokerState) -> None:
        host = call.virtual_host(state)
        host.metadata = replace(host.metadata, protected_from_deletion=protected)

    call.management.change(change)
    return NO_CONTENT


def _start(call: ApiCall) -> object:
    """Virtual hosts of this broker run at all times."""
    if call.names["node"] != NODE:
        raise absent()
    return NO_CONTENT


RESOURCES = (
    Resource("vhosts", get=_list),
    Resource(
        "vhosts/{vhost}",
        get=_get,
        put=_put,
        delete=_delete,
        writes=Role.ADMINISTRATOR,
        vhost=InVirtualHost.ANY,
    ),
    Resource(
        "vhosts/{vhost}/deletion/protection",
        post=lambda call: _protect(call, True),
        delete=lambda call: _protect(call, False),
        role=Role.ADMINISTRATOR,
        vhost=InVirtualHost.ANY,
        exists=lambda choices: choices.has_deletion_protection,
    ),
    Resource("vhosts/{vhost}/start/{node}", post=_start, role=Role.ADMINISTRATOR, vhost=InVirtualHost.SEE),
)
