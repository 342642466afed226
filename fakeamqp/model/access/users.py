"""Users with their secrets and permissions, and the forms in which tests describe them.

A password hash is what RabbitMQ exports: base64 of four bytes of salt, and of the digest of both salt and
password.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from fakeamqp.errors import FakeAMQPError, nearest
from fakeamqp.model.limits.limits import UserLimits
from fakeamqp.model.patterns import compiled

__all__ = [
    "ALGORITHMS",
    "AccountError",
    "Accounts",
    "Action",
    "BadPasswordHash",
    "Permission",
    "TopicPermission",
    "User",
    "account",
    "accounts",
    "check_password_hash",
    "own_copy",
]

ALGORITHMS = ("sha256", "sha512")
SALT = 4


class BadPasswordHash(FakeAMQPError, ValueError):
    """A password hash is not one; the text says what is wrong."""


def check_password_hash(password_hash: object) -> None:
    """Check a pair of algorithm and encoded hash.

    Raises:
        BadPasswordHash: it is no such pair, the algorithm is unknown, or the hash is not one of it.
    """
    import base64  # Imported for hashes only: they make importing `Broker` slower.
    import hashlib

    if not isinstance(password_hash, tuple) or [type(each) for each in password_hash] != [str, str]:
        raise BadPasswordHash("must be a pair of str, (algorithm, base64 of salt and digest)")
    algorithm, encoded = password_hash
    if algorithm not in ALGORITHMS:
        raise BadPasswordHash(f"must name one of the algorithms {', '.join(ALGORITHMS)}, not {algorithm!r}")
    expected = SALT + hashlib.new(algorithm).digest_size
    try:
        size = len(base64.b64decode(encoded, validate=True))
    except ValueError:
        size = None
    if size != expected:
        found = "text that is not base64" if size is None else f"{size} bytes"
        raise BadPasswordHash(
            f"must be base64 of {expected} bytes (four of salt, and the digest of {algorithm}), got {found}"
        )


Action = Literal["configure", "write", "read"]


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
        BadPasswordHash: `password_hash` is something else; see `model/access/users.py`.
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
