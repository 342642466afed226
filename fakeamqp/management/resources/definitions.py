"""Definitions, of the whole broker and of one virtual host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fakeamqp.management.access import Role
from fakeamqp.management.bodies import decoded
from fakeamqp.management.errors import Refused, bad_request
from fakeamqp.management.resource import NO_CONTENT, InVirtualHost, Resource
from fakeamqp.management.values import jsonable
from fakeamqp.model.access import Permission
from fakeamqp.model.definitions import DefinitionsError, dump_definitions, loading
from fakeamqp.model.errors import ModelError

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.virtual_host import VirtualHost

_OF_A_VIRTUAL_HOST = ("parameters", "policies", "queues", "exchanges", "bindings")
_VERSIONS = ("rabbit_version", "rabbitmq_version", "product_name", "product_version")


def _dumped(call: ApiCall) -> dict[str, Any]:
    """The definitions as the API exports them, which is not quite as `rabbitmqctl` does (measured)."""
    whole = call.management.read(dump_definitions)
    if call.choices.exports_internal_exchanges:
        for exchange in whole["exchanges"]:
            exchange.setdefault("internal", False)
    else:
        whole["exchanges"] = [each for each in whole["exchanges"] if not each.get("internal")]
    if not call.choices.exports_virtual_hosts:
        whole["vhosts"] = [_repeated(host) for host in whole["vhosts"]]
        for queue in whole["queues"]:
            del queue["type"]
    return whole


def _repeated(host: Mapping[str, Any]) -> dict[str, Any]:
    """A virtual host of definitions, with its metadata twice and without limits."""
    metadata = {"default_queue_type": "classic", **host["metadata"]}
    return {"name": host["name"], "metadata": metadata, **metadata}


def _get(call: ApiCall) -> object:
    return jsonable(_dumped(call))


def _get_of_vhost(call: ApiCall) -> object:
    name = call.names["vhost"]
    _check_virtual_host(call)
    whole = _dumped(call)
    view: dict[str, Any] = {key: whole[key] for key in _VERSIONS}
    for section in _OF_A_VIRTUAL_HOST:
        rows = [row for row in whole[section] if row["vhost"] == name]
        view[section] = [{key: value for key, value in row.items() if key != "vhost"} for row in rows]
    host = next(row for row in whole["vhosts"] if row["name"] == name)
    view |= {
        "rabbitmq_definition_format": "single_virtual_host",
        "original_vhost_name": name,
        "explanation": f"Definitions of virtual host '{name}'",
        "description": host["metadata"]["description"],
        "limits": call.management.read(lambda state: _limits(call.virtual_host(state))),
        "metadata": host["metadata"],
    }
    if call.choices.has_deletion_protection:
        view["metadata"] = {"protected_from_deletion": False, **host["metadata"]}
    if not call.choices.exports_virtual_hosts:
        view["default_queue_type"] = host["default_queue_type"]
    return jsonable(view)


def _limits(host: VirtualHost) -> object:
    limits = host.limits.value()
    return [list(pair) for pair in limits.items()] if host.state.personality.limits_are_pairs else limits


def _check_virtual_host(call: ApiCall) -> None:
    if not call.management.read(lambda state: call.names["vhost"] in state.virtual_hosts):
        raise bad_request("vhost_not_found")


def _parsed(call: ApiCall) -> dict[str, Any]:
    if call.request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "unsupported_media_type", None)  # Measured; other resources take any type.
    try:
        parsed = decoded(call.body)
    except ValueError:
        raise bad_request("failed_to_parse_json") from None
    if not isinstance(parsed, dict):
        raise bad_request("failed_to_parse_json")
    return parsed


def _load(call: ApiCall, definitions: Mapping[str, Any]) -> object:
    known = set(call.management.read(lambda state: tuple(state.virtual_hosts)))
    new = _new_virtual_hosts(definitions) - known
    _check_virtual_hosts(definitions, known | new)
    try:
        call.management.carry_out(lambda state: loading(state, definitions))
    except (DefinitionsError, ModelError) as problem:
        raise bad_request(str(problem)) from None

    def grant(state: BrokerState) -> None:
        user = state.access.users.get(call.visitor.name)
        if user is not None:
            for name in new:
                user.permissions.setdefault(name, Permission())
        state.access.changed()

    # As in RabbitMQ the user that makes a virtual host may use it (measured).
    call.management.change(grant)
    return NO_CONTENT


def _new_virtual_hosts(definitions: Mapping[str, Any]) -> set[str]:
    rows = definitions.get("vhosts")
    return {
        row["name"]
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(row.get("name"), str)
    }


def _check_virtual_hosts(definitions: Mapping[str, Any], known: set[str]) -> None:
    for section in _OF_A_VIRTUAL_HOST:
        rows = definitions.get(section)
        for row in rows if isinstance(rows, list) else ():
            name = row.get("vhost") if isinstance(row, dict) else None
            if isinstance(name, str) and name not in known:
                raise bad_request(f'Please create virtual host "{name}" prior to importing definitions.')


def _post(call: ApiCall) -> object:
    return _load(call, _parsed(call))


def _post_to_vhost(call: ApiCall) -> object:
    parsed = _parsed(call)
    for section in _OF_A_VIRTUAL_HOST:
        rows = parsed.get(section)
        if isinstance(rows, list):
            parsed[section] = [
                {key: value for key, value in row.items() if key != "vhost"} if isinstance(row, dict) else row
                for row in rows
            ]
    return _load(call, {**parsed, "original_vhost_name": call.names["vhost"]})


RESOURCES = (
    Resource("definitions", get=_get, post=_post, role=Role.ADMINISTRATOR),
    Resource(
        "definitions/{vhost}",
        get=_get_of_vhost,
        role=Role.ADMINISTRATOR,
        post=_post_to_vhost,
        vhost=InVirtualHost.ANY,
    ),
    Resource("all-configuration", get=_get, post=_post, role=Role.ADMINISTRATOR),
)
