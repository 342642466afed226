"""Permissions and topic permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.management.access import Role
from fakeamqp.management.errors import absent, bad_request
from fakeamqp.management.listing import columns_of
from fakeamqp.management.resource import CREATED, NO_CONTENT, InVirtualHost, Resource
from fakeamqp.model.access import Permission, TopicPermission
from fakeamqp.model.patterns import InvalidPattern

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakeamqp.management.resource import ApiCall, Handler
    from fakeamqp.model.access import User
    from fakeamqp.model.state import BrokerState

_Views: TypeAlias = "Callable[[User], list[dict[str, Any]]]"
"""Returns the rows of one user."""


def _views(user: User) -> list[dict[str, Any]]:
    return [
        {
            "user": user.name,
            "vhost": vhost,
            "configure": each.configure,
            "write": each.write,
            "read": each.read,
        }
        for vhost, each in user.permissions.items()
    ]


def _topic_views(user: User) -> list[dict[str, Any]]:
    return [
        {"user": user.name, "vhost": vhost, "exchange": exchange, "write": each.write, "read": each.read}
        for (vhost, exchange), each in user.topic_permissions.items()
    ]


def _list(call: ApiCall, views: _Views, chosen: Callable[[dict[str, Any]], bool]) -> object:
    rows = call.management.read(
        lambda state: [row for user in state.access.users.values() for row in views(user)]
    )
    wanted = sorted(filter(chosen, rows), key=lambda row: (row["vhost"], row["user"]))
    return [columns_of(call, row) for row in wanted]


def _all(views: _Views) -> Handler:
    return lambda call: _list(call, views, lambda _: True)


def _of_user(views: _Views) -> Handler:
    def get(call: ApiCall) -> object:
        name = call.names["user"]
        if not call.management.read(lambda state: name in state.access.users):
            raise absent()
        return _list(call, views, lambda row: bool(row["user"] == name))

    return get


def _of_vhost(views: _Views) -> Handler:
    return lambda call: _list(call, views, lambda row: bool(row["vhost"] == call.names["vhost"]))


def _user(call: ApiCall, state: BrokerState) -> User | None:
    """The user of the path, if the virtual host of the path exists as well."""
    there = call.names["vhost"] in state.virtual_hosts
    return state.access.users.get(call.names["user"]) if there else None


def _known_user(call: ApiCall, state: BrokerState) -> User:
    user = _user(call, state)
    if user is None:
        raise bad_request("vhost_or_user_not_found")
    return user


def _get(call: ApiCall) -> object:
    def question(state: BrokerState) -> dict[str, Any]:
        user = _user(call, state)
        for row in [] if user is None else _views(user):
            if row["vhost"] == call.names["vhost"]:
                return row
        raise absent()

    return call.management.read(question)


def _put(call: ApiCall) -> object:
    patterns = call.fields("configure", "write", "read")
    permission = _checked(Permission, patterns)

    def change(state: BrokerState) -> bool:
        user = _known_user(call, state)
        new = call.names["vhost"] not in user.permissions
        user.permissions[call.names["vhost"]] = permission
        state.access.changed()
        return new

    return CREATED if call.management.change(change) else NO_CONTENT


def _delete(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        user = _user(call, state)
        if user is None or user.permissions.pop(call.names["vhost"], None) is None:
            raise absent()
        state.access.changed()

    call.management.change(change)
    return NO_CONTENT


def _topic_get(call: ApiCall) -> object:
    def question(state: BrokerState) -> list[dict[str, Any]]:
        user = _user(call, state)
        views = [] if user is None else _topic_views(user)
        rows = [row for row in views if row["vhost"] == call.names["vhost"]]
        if not rows:
            raise absent()
        return rows

    return call.management.read(question)


def _topic_put(call: ApiCall) -> object:
    exchange, write, read = call.fields("exchange", "write", "read")
    permission = _checked(TopicPermission, [write, read])
    if not isinstance(exchange, str):
        raise bad_request(["not_string", exchange])

    def change(state: BrokerState) -> bool:
        user = _known_user(call, state)
        vhost = call.names["vhost"]
        if call.choices.checks_topic_exchanges and exchange not in state.virtual_hosts[vhost].exchanges:
            raise bad_request(["no_such_exchange", exchange])
        new = not any(each == vhost for each, _ in user.topic_permissions)
        user.topic_permissions[vhost, exchange] = permission
        state.access.changed()
        return new

    return CREATED if call.management.change(change) else NO_CONTENT


def _topic_delete(call: ApiCall) -> object:
    def change(state: BrokerState) -> None:
        user = _user(call, state)
        vhost = call.names["vhost"]
        keys = [] if user is None else [key for key in user.topic_permissions if key[0] == vhost]
        if user is None or not keys:
            raise absent()
        for key in keys:
            del user.topic_permissions[key]
        state.access.changed()

    call.management.change(change)
    return NO_CONTENT


def _checked(kind: Callable[..., Any], patterns: list[Any]) -> Any:
    for pattern in patterns:
        if not isinstance(pattern, str):
            raise bad_request(["not_string", pattern])
    try:
        return kind(*patterns)
    except InvalidPattern as problem:
        wrong = next(each for each in patterns if not _is_pattern(each))
        # RabbitMQ has lists of characters here (measured).
        raise bad_request(
            ["invalid_regexp", [*wrong.encode()], [[*problem.problem.encode()], problem.place]]
        ) from None


def _is_pattern(text: str) -> bool:
    try:
        TopicPermission(text, "")
    except InvalidPattern:
        return False
    return True


def _resources(path: str, views: _Views, get: Handler, put: Handler, delete: Handler) -> list[Resource]:
    """All permissions of one kind, and those of a user and of a virtual host."""
    one = Resource(
        f"{path}/{{vhost}}/{{user}}",
        get=get,
        put=put,
        delete=delete,
        role=Role.ADMINISTRATOR,
        vhost=InVirtualHost.ANY,
    )
    of_vhost = Resource(
        f"vhosts/{{vhost}}/{path}", get=_of_vhost(views), role=Role.ADMINISTRATOR, vhost=InVirtualHost.SEE
    )
    return [
        Resource(path, get=_all(views), role=Role.ADMINISTRATOR),
        one,
        Resource(f"users/{{user}}/{path}", get=_of_user(views), role=Role.ADMINISTRATOR),
        of_vhost,
    ]


RESOURCES = (
    *_resources("permissions", _views, _get, _put, _delete),
    *_resources("topic-permissions", _topic_views, _topic_get, _topic_put, _topic_delete),
)
