"""User accounts as tests describe them: names with passwords, mappings, or `User` objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.access import Permission, User
from fakeamqp.model.limits import UserLimits

__all__ = ["AccountError", "Accounts", "account", "accounts", "own_copy"]

Accounts: TypeAlias = "Mapping[str, str | Mapping[str, Any] | User] | Iterable[User]"

_KEYS = ("password", "tags", "permissions", "limits")


class AccountError(FakeAMQPError):
    """An account's description has an unknown key."""


def accounts(given: Accounts) -> list[User]:
    """The users described by `given`, in its order.

    Raises:
        AccountError: a key is misspelled; the text names the nearest match.
    """
    if not isinstance(given, Mapping):
        return list(given)
    return [each if isinstance(each, User) else account(name, each) for name, each in given.items()]


def account(name: str, given: str | Mapping[str, Any]) -> User:
    """One user, from a password or from a mapping of `password`, `tags`, `permissions` and `limits`.

    Permissions are {virtual host: (configure, write, read)}, limits {"max-connections": 1,
    "max-channels": 1}.

    Raises:
        AccountError: a key is misspelled; the text names the nearest match.
        LimitsError: the name of a limit is misspelled, or a limit is not a whole number.
    """
    if isinstance(given, str):
        return User(name, given)
    for key in given:
        if key not in _KEYS:
            near = nearest(key, _KEYS)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(_KEYS)}"
            raise AccountError(f"user {name!r}: unknown key {key!r}{hint}")
    permissions = given.get("permissions") or {}
    return User(
        name,
        given.get("password"),
        tuple(given.get("tags", ())),
        {vhost: Permission(*patterns) for vhost, patterns in permissions.items()},
        limits=UserLimits.read(f"user {name!r}", given.get("limits")),
    )


def own_copy(user: User, virtual_hosts: Iterable[str]) -> User:
    """A copy for one broker. A user without any permission gets all permissions in all virtual hosts."""
    permissions = dict(user.permissions) or {name: Permission() for name in virtual_hosts}
    return replace(user, permissions=permissions, topic_permissions=dict(user.topic_permissions))
