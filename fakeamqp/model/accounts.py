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
_PATTERNS = 3


class AccountError(FakeAMQPError):
    """An account's description has an unknown key, or a wrong value; the text says what is expected."""


def accounts(given: Accounts) -> list[User]:
    """The users described by `given`, in its order.

    Raises:
        AccountError, LimitsError: see `account`.
    """
    if isinstance(given, Mapping):
        return [each if isinstance(each, User) else account(name, each) for name, each in given.items()]
    users = list(given)
    for each in users:
        if not isinstance(each, User):
            raise AccountError(
                f"users: {each!r} has no password; give a mapping of names to passwords, such as "
                '{"alice": "secret"}, or User(...) objects'
            )
    return users


def account(name: str, given: str | Mapping[str, Any]) -> User:
    """One user, from a password or from a mapping of `password`, `tags`, `permissions` and `limits`.

    Permissions are {virtual host: (configure, write, read)}, limits {"max-connections": 1,
    "max-channels": 1}.

    Raises:
        AccountError: a key is misspelled, or a value is wrong.
        LimitsError: the name of a limit is misspelled, or a limit is not a whole number.
        InvalidPattern: a permission is no regular expression.
    """
    if not isinstance(name, str) or not name:
        raise AccountError(f"user {name!r}: a name is a text")
    if isinstance(given, str):
        return User(name, given)
    if not isinstance(given, Mapping):
        raise AccountError(
            f"user {name!r}: give a password, or a mapping with {', '.join(_KEYS)}, not {given!r}"
        )
    for key in given:
        if key not in _KEYS:
            near = nearest(key, _KEYS)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(_KEYS)}"
            raise AccountError(f"user {name!r}: unknown key {key!r}{hint}")
    password, tags = given.get("password"), given.get("tags", ())
    if password is not None and not isinstance(password, str):
        raise AccountError(f"user {name!r}: a password is a text, not {type(password).__name__}")
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise AccountError(f'user {name!r}: tags must be a list, such as ["administrator"], not {tags!r}')
    return User(
        name,
        password,
        tuple(tags),
        _permissions(name, given.get("permissions") or {}),
        limits=UserLimits.read(f"user {name!r}", given.get("limits")),
    )


def _permissions(user: str, given: object) -> dict[str, Permission]:
    permissions = {}
    for vhost, patterns in given.items() if isinstance(given, Mapping) else [("", given)]:
        if isinstance(patterns, Permission):
            permissions[vhost] = patterns
        elif vhost and isinstance(patterns, (list, tuple)) and len(patterns) == _PATTERNS:
            permissions[vhost] = Permission(*patterns)
        else:
            raise AccountError(
                f"user {user!r}: permissions must be {{virtual host: (configure, write, read)}}, "
                f"not {given!r}"
            )
    return permissions


def own_copy(user: User, virtual_hosts: Iterable[str]) -> User:
    """A copy for one broker. A user without any permission gets all permissions in all virtual hosts."""
    permissions = dict(user.permissions) or {name: Permission() for name in virtual_hosts}
    return replace(user, permissions=permissions, topic_permissions=dict(user.topic_permissions))
