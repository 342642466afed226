"""Users with their secrets and permissions, logins, and the permissions that each action needs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fakeamqp.errors import FakeAMQPError, near_match, nearest
from fakeamqp.model.errors import AccessRefused, AuthenticationFailed, NotAllowed
from fakeamqp.model.limits import UserLimits
from fakeamqp.model.patterns import compiled

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.state import Resets
    from fakeamqp.model.timers import TimeSource

_ALGORITHMS = ("sha256", "sha512")
_SALT = 4


class BadPasswordHash(FakeAMQPError, ValueError):
    """A password hash is not one; the text says what is wrong."""

    __module__ = "fakeamqp.errors"


def check_password_hash(password_hash: object) -> None:
    """Check a pair of algorithm and encoded hash; BadPasswordHash says what is wrong."""
    import base64  # Imported for hashes only: they make importing `Broker` slower.
    import hashlib

    if not isinstance(password_hash, tuple) or [type(each) for each in password_hash] != [str, str]:
        raise BadPasswordHash("must be a pair of str, (algorithm, base64 of salt and digest)")
    algorithm, encoded = password_hash
    if algorithm not in _ALGORITHMS:
        raise BadPasswordHash(f"must name one of the algorithms {', '.join(_ALGORITHMS)}, not {algorithm!r}")
    expected = _SALT + hashlib.new(algorithm).digest_size
    try:
        size = len(base64.b64decode(encoded, validate=True))
        found = f"{size} bytes"
    except ValueError:
        size, found = None, "text that is not base64"
    if size != expected:
        raise BadPasswordHash(
            f"must be base64 of {expected} bytes (four of salt, and the digest of {algorithm}), got {found}"
        )


Action = Literal["configure", "write", "read"]


@dataclass(frozen=True)
class Permission:
    """Regular expressions (searched, as RabbitMQ does) over entity names; an empty one grants nothing.

    Raises:
        InvalidPattern: one is no regular expression.
    """

    configure: str = ".*"
    write: str = ".*"
    read: str = ".*"

    def __post_init__(self) -> None:
        for pattern in (self.configure, self.write, self.read):
            compiled(pattern)

    def grants(self, action: Action, name: str) -> bool:
        """Whether the pattern for `action` admits `name`."""
        return compiled(getattr(self, action) or "^$").search(name)


@dataclass(frozen=True)
class TopicPermission:
    """Regular expressions over the routing keys of one topic exchange.

    Raises:
        InvalidPattern: one is no regular expression.
    """

    write: str = ".*"
    read: str = ".*"

    def __post_init__(self) -> None:
        compiled(self.write)
        compiled(self.read)


@dataclass
class User:
    """One account. Without a password and a hash, only EXTERNAL can authenticate it.

    `password_hash` is (algorithm, base64 of four bytes of salt and the digest), as RabbitMQ exports it; the
    algorithm is "sha256" or "sha512".

    Raises:
        BadPasswordHash: `password_hash` is something else.
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


Accounts: TypeAlias = "Mapping[str, str | Mapping[str, Any] | User] | Iterable[User]"

_KEYS = ("password", "tags", "permissions", "limits")
_PATTERNS = 3


class AccountError(FakeAMQPError):
    """An account's description has an unknown key, or a wrong value; the text says what is expected."""

    __module__ = "fakeamqp.errors"


def accounts(given: Accounts) -> list[User]:
    """The users described by `given`, in its order; the errors are those of `account`."""
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
    "max-channels": 1}. Raises AccountError, LimitsError, or InvalidPattern for a permission.
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


_MOST_REMEMBERED = 10_000
_LONGEST_SHOWN = 100
_MOST_COMPARED = 50
_LOOPBACK = ("127.", "::ffff:127.")
_THIS_PROCESS = ("", "socketpair", "amqp_queue")


def check_address(user: User, host: str, loopback_users: Collection[str]) -> None:
    """Accept some accounts from loopback addresses only, since their passwords are well known.

    Source: RabbitMQ's setting `loopback_users`, by default guest (documented). The host is a numeric address,
    or "" or "socketpair" for a client without one. Raises AuthenticationFailed.
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

    `names_permission` says whether a refusal names the permission that is missing.
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
        self.users.pop(name, None)
        self.changed()

    def forget_virtual_host(self, name: str) -> None:
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
        """The account with this name and password, else AuthenticationFailed. A blank password never fits.

        Sources: RFC 4616 (a password has at least one character); RabbitMQ (measured for PLAIN and AMQPLAIN).
        """
        user = self.users.get(name)
        if user is None or not password or not user.has_password(password):
            raise AuthenticationFailed(name, self._why_not(name, user, password))
        return user

    def _why_not(self, name: str, user: User | None, password: str) -> str:
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
        """The account of a user that was authenticated by other means, such as a certificate."""
        user = self.users.get(name)
        if user is None:
            raise AuthenticationFailed(name, self._why_not(name, None, ""))
        return user

    def check_virtual_host(self, user: User, virtual_host: str) -> None:
        """NotAllowed for a user without permissions there (connection.open/virtual-host-security)."""
        if virtual_host not in user.permissions:
            self._resets.miss("permissions of user", virtual_host, user.name)
            raise NotAllowed(f"access to vhost '{virtual_host}' refused for user '{user.name}'")

    def check(self, user: User, virtual_host: str, action: Action, kind: str, name: str) -> None:
        """AccessRefused unless the user's permission grants an action; `kind` is "queue" or "exchange"."""
        key = (user.name, virtual_host, action, name)
        if key in self._granted:
            return
        permission = user.permissions.get(virtual_host)
        # RabbitMQ checks the nameless exchange under the name amq.default.
        shown = name or "amq.default"
        if permission is None or not permission.grants(action, shown):
            raise self._refused(action, f"{kind} '{shown}'", virtual_host, user)
        if len(self._granted) >= _MOST_REMEMBERED:
            self._granted.clear()
        self._granted.add(key)

    def check_topic(
        self, user: User, virtual_host: str, action: Literal["write", "read"], exchange: str, routing_key: str
    ) -> None:
        """AccessRefused for a routing key that the user's topic permission, if any, does not match."""
        permission = user.topic_permissions.get((virtual_host, exchange))
        if permission is None:
            return
        pattern = permission.write if action == "write" else permission.read
        expanded = pattern.replace("{username}", re.escape(user.name)).replace(
            "{vhost}", re.escape(virtual_host)
        )
        if not compiled(expanded or "^$").search(routing_key):
            raise self._refused(action, f"topic '{routing_key}' in exchange '{exchange}'", virtual_host, user)

    def _refused(self, action: Action, what: str, virtual_host: str, user: User) -> AccessRefused:
        named = f"{action} " if self._names_permission else ""
        return AccessRefused(
            f"{named}access to {what} in vhost '{virtual_host}' refused for user '{user.name}'"
        )


class FailedLogins:
    """The failed logins of one broker (security/log-and-block), counted for the latest 10 000 addresses.

    An address is blocked for `Personality.login_block_time` seconds with the failure that makes
    `Personality.most_failed_logins`. A successful login, or this time without another failure, sets its count
    to zero. Attempts of a blocked address fail, and do not extend the time.
    """

    __slots__ = ("_addresses", "_clock", "_most", "_seconds")

    def __init__(self, clock: TimeSource, personality: Personality) -> None:
        self._clock = clock
        self._most = personality.most_failed_logins
        self._seconds = personality.login_block_time
        self._addresses: dict[str, tuple[int, float]] = {}
        """The failures of an address, and the instant from which on they do not count."""

    def check(self, host: str) -> None:
        """AuthenticationFailed for a login from an address that is blocked."""
        count, ends = self._current(host)
        if count and count >= self._most:
            raise AuthenticationFailed(
                f"{host or 'the address'} is blocked for another {ends - self._clock.now():g} s after "
                f"{count} failed logins"
            )

    def failed(self, host: str) -> None:
        count = self._current(host)[0] + 1
        if count > self._most:
            return
        self._addresses.pop(host, None)
        if len(self._addresses) >= _MOST_REMEMBERED:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[host] = count, self._clock.now() + self._seconds
        if count == self._most:
            import logging  # On demand, since importing `Broker` must be fast.

            logging.getLogger("fakeamqp").warning(
                "%s is blocked for %g s after %d failed logins", host or "an address", self._seconds, count
            )

    def succeeded(self, host: str) -> None:
        self._addresses.pop(host, None)

    def clear(self) -> None:
        self._addresses.clear()

    def _current(self, host: str) -> tuple[int, float]:
        count, ends = self._addresses.get(host, (0, 0.0))
        if count and self._clock.now() >= ends:
            del self._addresses[host]
            return 0, 0.0
        return count, ends
