"""Runtime parameters: those of a component in a virtual host, and global ones; the name of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.management.access import Role
from fakeamqp.management.errors import absent, bad_request
from fakeamqp.management.resource import CREATED, NO_CONTENT, InVirtualHost, Resource
from fakeamqp.model.limits import VirtualHostLimits

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost

_LIMITS = "vhost-limits"


def _of_host(host: VirtualHost) -> list[dict[str, Any]]:
    limits = host.limits.value()
    if not limits:
        return []
    return [{"value": limits, "vhost": host.name, "component": _LIMITS, "name": "limits"}]


def _list(call: ApiCall) -> object:
    component, vhost = call.names.get("component"), call.names.get("vhost")

    def question(state: BrokerState) -> list[dict[str, Any]]:
        hosts = [each for name, each in state.virtual_hosts.items() if call.visitor.may_see(name)]
        return [
            row
            for host in hosts
            if vhost in (None, host.name)
            for row in _of_host(host)
            if component in (None, row["component"])
        ]

    return call.management.read(question)


def _get(call: ApiCall) -> object:
    def question(state: BrokerState) -> dict[str, Any]:
        for row in _of_host(call.virtual_host(state)):
            if (row["component"], row["name"]) == (call.names["component"], call.names["name"]):
                return row
        raise absent()

    return call.management.read(question)


def _put(call: ApiCall) -> object:
    value = call.fields("value")[0]
    component = call.names["component"]
    if component == "policy":
        raise bad_request("policies may not be set using this method")
    if component != _LIMITS:
        raise bad_request(f"Validation failed\n\ncomponent {component} not found\n")

    def change(state: BrokerState) -> bool:
        host = call.virtual_host(state)
        new = not host.limits.value()
        host.limits = VirtualHostLimits.read(host.name, value)
        return new

    return CREATED if call.management.change(change) else NO_CONTENT


def _delete(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        host = call.virtual_host(state)
        if (call.names["component"], call.names["name"]) != (_LIMITS, "limits") or not host.limits.value():
            raise absent()
        host.limits = VirtualHostLimits()

    call.management.change(change)
    return NO_CONTENT


# --- global parameters ------------------------------------------------------------------------------------


def _list_global(call: ApiCall) -> object:
    return call.management.read(
        lambda state: [{"name": name, "value": value} for name, value in state.global_parameters.items()]
    )


def _get_global(call: ApiCall) -> object:
    def question(state: BrokerState) -> dict[str, Any]:
        if call.names["name"] not in state.global_parameters:
            raise absent()
        return {"value": state.global_parameters[call.names["name"]], "name": call.names["name"]}

    return call.management.read(question)


def _put_global(call: ApiCall) -> object:
    value = call.fields("value")[0]
    name = call.names["name"]

    def change(state: BrokerState) -> bool:
        new = name not in state.global_parameters
        state.global_parameters[name] = value
        return new

    return CREATED if call.management.change(change) else NO_CONTENT


def _delete_global(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        if call.names["name"] not in state.global_parameters:
            raise absent()
        del state.global_parameters[call.names["name"]]

    call.management.change(change)
    return NO_CONTENT


def _get_cluster_name(call: ApiCall) -> object:
    return {"name": call.management.read(lambda state: state.cluster_name)}


def _put_cluster_name(call: ApiCall) -> object:
    name = call.fields("name")[0]

    def change(state: BrokerState) -> None:
        state.global_parameters["cluster_name"] = name

    call.management.change(change)
    return NO_CONTENT


RESOURCES = (
    Resource("parameters", get=_list, role=Role.POLICYMAKER),
    Resource("parameters/{component}", get=_list, role=Role.POLICYMAKER),
    Resource("parameters/{component}/{vhost}", get=_list, role=Role.POLICYMAKER, vhost=InVirtualHost.SEE),
    Resource(
        "parameters/{component}/{vhost}/{name}",
        get=_get,
        put=_put,
        delete=_delete,
        role=Role.POLICYMAKER,
    ),
    Resource("global-parameters", get=_list_global, role=Role.POLICYMAKER),
    Resource(
        "global-parameters/{name}",
        get=_get_global,
        put=_put_global,
        delete=_delete_global,
        role=Role.POLICYMAKER,
    ),
    Resource("cluster-name", get=_get_cluster_name, put=_put_cluster_name, writes=Role.ADMINISTRATOR),
)
