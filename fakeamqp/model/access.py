"""Access control: users, their secrets and their permissions in each virtual host."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from fakeamqp.errors import near_match
from fakeamqp.model.errors import AccessRefused, AuthenticationFailed, NotAllowed
from fakeamqp.model.limits import UserLimits
from fakeamqp.model.patterns import compiled
from fakeamqp.model.resets import Resets

__all__ = ["AccessControl", "Action", "Permission", "TopicPermission", "User", "check_address"]

Action = Literal["configure", "write", "read"]
_MOST_REMEMBERED = 10_000
_LONGEST_SHOWN = 100
_MOST_COMPARED = 50
_LOOPBACK = ("127.", "::ffff:127.")
_THIS_PROCESS = ("", "socketpair", "amqp_queue")


@dataclass(frozen=True)
class Permission:
    """Regular expressions (searched, as RabbitMQ does) over entity names; an empty one grants nothing.

    Raises:
        InvalidPattern: one is no regular expression; see `model/patterns`.
    """

    configure: str = ".*"
    write: str = ".*"
    read: str = ".*"

    def __post_init__(self) -> None:
        for pattern in (self.configure, self.write, self.read):
            compiled(pattern)

    def grants(self, action: Action, name: str) -> bool:
        """Whether the pattern for `action` admits `name`."""
        pattern: str = getattr(self, action)
        return compiled(pattern or "^$").search(name)


@dataclass(frozen=True)
class TopicPermission:
    """Regular expressions over the routing keys of one topic exchange.

    Raises:
        InvalidPattern: see `Permission`.
    """

    write: str = ".*"
    read: str = ".*"

    def __post_init__(self) -> None:
        for pattern in (self.write, self.read):
            compiled(pattern)


@dataclass
class User:
    """One account. Without a password and a hash, only EXTERNAL can authenticate it.

    `password_hash` is (algorithm, base64 of four bytes of salt and the digest), as RabbitMQ exports it; the
    algorithm is "sha256" or "sha512".

    Raises:
        BadPasswordHash: `password_hash` is something else; see `model/password_hashes.py`.
    """

    name: str
    password: str | None = field(default=None, repr=False)
    tags: tuple[str, ...] = ()
    permissions: dict[str, Permission] = field(default_factory=dict)
    topic_permissions: dict[tuple[str, str], TopicPermission] = field(default_factory=dict)
    password_hash: tuple[str, str] | None = field(default=None, repr=False)
    limits: UserLimits = field(default_factory=UserLimits)

    def __post_init__(self) -> None:
        if self.password_hash is not None:
            from fakeamqp.model.password_hashes import BadPasswordHash, check_password_hash

            try:
                check_password_hash(self.password_hash)
            except BadPasswordHash as problem:
                raise BadPasswordHash(f"user {self.name!r}: password_hash {problem}") from None

    def has_password(self, password: str) -> bool:
        """Whether this is the account's password."""
        # `hmac` has the same function, but loads OpenSSL while the first client waits.
        from _operator import _compare_digest

        if self.password is None:
            return self.fits_hash(password)
        octets = password.encode("utf-8", "surrogateescape")
        return _compare_digest(self.password.encode("utf-8", "surrogateescape"), octets)

    def fits_hash(self, password: str) -> bool:
        """Whether `password_hash` is the hash of this password."""
        import base64
        import hashlib
        import hmac

        if self.password_hash is None:
            return False
        octets = password.encode("utf-8", "surrogateescape")
        algorithm, encoded = self.password_hash
        salted = base64.b64decode(encoded)
        return hmac.compare_digest(hashlib.new(algorithm, salted[:4] + octets).digest(), salted[4:])


def check_address(user: User, host: str, loopback_users: Collection[str]) -> None:
    """Accept some accounts from loopback addresses only, since their passwords are well known.

    Source: RabbitMQ's setting `loopback_users`, by default guest (documented).

    Args:
        user: who has logged in.
        host: the numeric address of the client; "" or "socketpair" for a client without one.
        loopback_users: the names of these accounts.

    Raises:
        AuthenticationFailed: the account is one of them, and the address is not a loopback address.
    """
    if user.name not in loopback_users or host in (*_THIS_PROCESS, "::1") or host.startswith(_LOOPBACK):
        return
    raise AuthenticationFailed(
        f"{user.name} may log in from loopback addresses only",
        f"user {user.name!r} may log in from loopback addresses only, and this is {host} (the option "
        "--loopback-users of serve, and the setting loopback_users, name such users)",
    )


class AccessControl:
    """The accounts of one broker. Granted permissions are cached until an account changes.

    `resets` learns which accounts were missed; `names_permission` says whether a refusal names the permission
    that is missing.
    """

    def __init__(self, resets: Resets, *, names_permission: bool = True) -> None:
        self._resets = resets
        self._names_permission = names_permission
        self.users: dict[str, User] = {}
        self.version: int = 0
        """Incremented with every change, so that other caches know when to check again."""
        self._granted: set[tuple[str, str, Action, str]] = set()

    def add(self, user: User) -> None:
        """Add an account, or replace the one of the same name.

        The password of an account that has only a hash becomes known if it is that of the replaced account,
        or for the account guest "guest".
        """
        if user.password is None and user.password_hash is not None:
            before = self.users.get(user.name)
            known = [None if before is None else before.password, "guest" if user.name == "guest" else None]
            user.password = next((each for each in known if each is not None and user.fits_hash(each)), None)
        self.users[user.name] = user
        self.changed()

    def remove(self, name: str) -> None:
        """Remove an account; does nothing if it does not exist."""
        self.users.pop(name, None)
        self.changed()

    def forget_virtual_host(self, name: str) -> None:
        """Remove all permissions in a virtual host that is removed."""
        for user in self.users.values():
            user.permissions.pop(name, None)
            for virtual_host, exchange in list(user.topic_permissions):
                if virtual_host == name:
                    del user.topic_permissions[virtual_host, exchange]
        self.changed()

    def changed(self) -> None:
        """Clear the caches after an account was changed in place."""
        self.version += 1
        self._granted.clear()

    def authenticate(self, name: str, password: str) -> User:
        """The account with this name and password. A blank password is none, even if the account's is blank.

        Sources: RFC 4616 (a password has at least one character); RabbitMQ (measured for PLAIN and AMQPLAIN).

        Raises:
            AuthenticationFailed: there is none.
        """
        user = self.users.get(name)
        if user is None or not password or not user.has_password(password):
            raise AuthenticationFailed(name, self._why_not(name, user, password))
        return user

    def _why_not(self, name: str, user: User | None, password: str) -> str:
        """Why a user may not log in with a password."""
        shown = repr(name[:_LONGEST_SHOWN])
        if user is None:
            self._resets.miss("user", "", name)
            # Any client can cause this comparison, so it is bounded.
            known = islice(self.users, _MOST_COMPARED)
            return f"there is no user {shown}{near_match(name[:_LONGEST_SHOWN], known)}"
        if not password:
            return f"user {shown} gave no password"
        if user.password is None and user.password_hash is None:
            return f"user {shown} has no password here, and can only log in with EXTERNAL"
        return f"the password of user {shown} is wrong"

    def known(self, name: str) -> User:
        """The account of a user that was authenticated by other means, such as a certificate.

        Raises:
            AuthenticationFailed: there is none.
        """
        user = self.users.get(name)
        if user is None:
            raise AuthenticationFailed(name, self._why_not(name, None, ""))
        return user

    def check_virtual_host(self, user: User, virtual_host: str) -> None:
        """Refuse a user without permissions in the virtual host (connection.open/virtual-host-security).

        Raises:
            NotAllowed: the user has no permissions there.
        """
        if virtual_host not in user.permissions:
            self._resets.miss("permissions of user", virtual_host, user.name)
            raise NotAllowed(f"access to vhost '{virtual_host}' refused for user '{user.name}'")

    def check(self, user: User, virtual_host: str, action: Action, kind: str, name: str) -> None:
        """Refuse an action that the user's permission does not grant; `kind` is "queue" or "exchange".

        Raises:
            AccessRefused: the pattern does not match.
        """
        key = (user.name, virtual_host, action, name)
        if key in self._granted:
            return
        permission = user.permissions.get(virtual_host)
        # RabbitMQ checks the nameless exchange under the name amq.default.
        if permission is None or not permission.grants(action, name or "amq.default"):
            raise AccessRefused(
                f"{self._named(action)}access to {kind} '{name or 'amq.default'}' in vhost '{virtual_host}' "
                f"refused for user '{user.name}'"
            )
        if len(self._granted) >= _MOST_REMEMBERED:
            self._granted.clear()
        self._granted.add(key)

    def check_topic(
        self, user: User, virtual_host: str, action: Literal["write", "read"], exchange: str, routing_key: str
    ) -> None:
        """Refuse a routing key on a topic exchange that the user's topic permission, if any, does not match.

        Raises:
            AccessRefused: the pattern does not match.
        """
        permission = user.topic_permissions.get((virtual_host, exchange))
        if permission is None:
            return
        pattern = permission.write if action == "write" else permission.read
        expanded = pattern.replace("{username}", re.escape(user.name)).replace(
            "{vhost}", re.escape(virtual_host)
        )
        if not compiled(expanded or "^$").search(routing_key):
            raise AccessRefused(
                f"{self._named(action)}access to topic '{routing_key}' in exchange '{exchange}' "
                f"in vhost '{virtual_host}' refused for user '{user.name}'"
            )

    def _named(self, action: Action) -> str:
        """The beginning of the text for a refused action."""
        return f"{action} " if self._names_permission else ""
