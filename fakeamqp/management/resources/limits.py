"""Limits of virtual hosts and of users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.management.access import Role
from fakeamqp.management.errors import absent, bad_request
from fakeamqp.management.resource import NO_CONTENT, InVirtualHost, Resource
from fakeamqp.model.erlang import pairs_term
from fakeamqp.model.limits import LimitsError, UserLimits, VirtualHostLimits

if TYPE_CHECKING:
    from fakeamqp.management.resource import ApiCall
    from fakeamqp.model.state import BrokerState


def _list_vhosts(call: ApiCall) -> object:
    vhost = call.names.get("vhost")

    def question(state: BrokerState) -> list[dict[str, Any]]:
        return [
            {"vhost": name, "value": host.limits.value()}
            for name, host in state.virtual_hosts.items()
            if host.limits.value() and call.visitor.may_see(name) and vhost in (None, name)
        ]

    return call.management.read(question)


def _put_vhost(call: ApiCall) -> object:
    name, value = call.names["limit"], call.fields("value")[0]

    def change(state: BrokerState) -> None:
        host = call.virtual_host(state)
        host.limits = VirtualHostLimits.read(host.name, {**host.limits.value(), name: value})

    call.management.change(change)
    return NO_CONTENT


def _delete_vhost(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        host = call.virtual_host(state)
        left = host.limits.value()
        left.pop(call.names["limit"], None)
        host.limits = VirtualHostLimits.read(host.name, left)

    call.management.change(change)
    return NO_CONTENT


def _list_users(call: ApiCall) -> object:
    wanted = call.names.get("user")

    def question(state: BrokerState) -> list[dict[str, Any]]:
        if wanted is not None and wanted not in state.access.users:
            raise absent()
        return [
            {"user": name, "value": user.limits.value()}
            for name, user in state.access.users.items()
            if user.limits.value() and wanted in (None, name)
        ]

    return call.management.read(question)


def _put_user(call: ApiCall) -> object:
    limit, value = call.names["limit"], call.fields("value")[0]
    name = call.names["user"]

    def change(state: BrokerState) -> None:
        user = state.access.users.get(name)
        if user is None:
            raise bad_request(["no_such_user", name])
        try:
            user.limits = UserLimits.read(name, {**user.limits.value(), limit: value})
        except LimitsError as problem:
            if limit in ("max-connections", "max-channels"):
                raise bad_request(problem.reason.removeprefix("Validation failed\n\n").strip()) from None
            # Without the heading that other texts of this kind have (measured).
            text = f"Unrecognised terms {pairs_term([(limit, value)])} in user-limits"
            raise bad_request(text) from None

    call.management.change(change)
    return NO_CONTENT


def _delete_user(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        user = state.access.users.get(call.names["user"])
        if user is None:
            raise absent()
        left = user.limits.value()
        left.pop(call.names["limit"], None)
        user.limits = UserLimits.read(user.name, left)

    call.management.change(change)
    return NO_CONTENT


RESOURCES = (
    Resource("vhost-limits", get=_list_vhosts),
    Resource("vhost-limits/{vhost}", get=_list_vhosts, vhost=InVirtualHost.SEE),
    Resource(
        "vhost-limits/{vhost}/{limit}",
        put=_put_vhost,
        delete=_delete_vhost,
        role=Role.ADMINISTRATOR,
        vhost=InVirtualHost.SEE,
    ),
    Resource("user-limits", get=_list_users, role=Role.ADMINISTRATOR),
    Resource("user-limits/{user}", get=_list_users, role=Role.ADMINISTRATOR),
    Resource("user-limits/{user}/{limit}", put=_put_user, delete=_delete_user, role=Role.ADMINISTRATOR),
)
