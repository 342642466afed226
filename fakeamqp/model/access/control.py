"""Access control: logins, the permissions that each action needs, and failed logins by address."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

from fakeamqp.errors import near_match
from fakeamqp.model.access.users import Action, User
from fakeamqp.model.errors import AccessRefused, AuthenticationFailed, NotAllowed
from fakeamqp.model.patterns import compiled

if TYPE_CHECKING:
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.state import Resets
    from fakeamqp.model.timers import TimeSource

__all__ = ["AccessControl", "FailedLogins", "check_address"]

_MOST_REMEMBERED = 10_000
_LONGEST_SHOWN = 100
_MOST_COMPARED = 50
_LOOPBACK = ("127.", "::ffff:127.")
_THIS_PROCESS = ("", "socketpair", "amqp_queue")


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


_MOST_ADDRESSES = 10_000


@dataclass
class _Address:
    """The failures of one address. It is blocked once `count` has reached the limit, until `ends`."""

    count: int
    ends: float


class FailedLogins:
    """The failed logins of one broker (security/log-and-block).

    An address is blocked for `Personality.login_block_time` seconds with the failure that makes
    `Personality.most_failed_logins`. A successful login, or this time without another failure, sets its count
    to zero. Attempts of a blocked address fail, and do not extend the time. The latest 10 000 addresses are
    counted.
    """

    __slots__ = ("_addresses", "_clock", "_most", "_seconds")

    def __init__(self, clock: TimeSource, personality: Personality) -> None:
        self._clock = clock
        self._most = personality.most_failed_logins
        self._seconds = personality.login_block_time
        self._addresses: dict[str, _Address] = {}

    def check(self, host: str) -> None:
        """Refuse a login from an address that is blocked.

        Raises:
            AuthenticationFailed: it is.
        """
        found = self._current(host)
        if found is not None and found.count >= self._most:
            remaining = found.ends - self._clock.now()
            raise AuthenticationFailed(
                f"{host or 'the address'} is blocked for another {remaining:g} s after {found.count} failed "
                "logins"
            )

    def failed(self, host: str) -> None:
        """Count a failed login, unless the address is blocked."""
        if self._most <= 0:
            return
        found = self._current(host)
        if found is not None and found.count >= self._most:
            return
        count = 1 if found is None else found.count + 1
        self._addresses.pop(host, None)
        if len(self._addresses) >= _MOST_ADDRESSES:
            del self._addresses[next(iter(self._addresses))]
        self._addresses[host] = _Address(count, self._clock.now() + self._seconds)
        if count == self._most:
            import logging  # On demand, since importing `Broker` must be fast.

            logging.getLogger("fakeamqp").warning(
                "%s is blocked for %g s after %d failed logins", host or "an address", self._seconds, count
            )

    def succeeded(self, host: str) -> None:
        """Forget the failures of an address."""
        self._addresses.pop(host, None)

    def clear(self) -> None:
        """Forget all failures."""
        self._addresses.clear()

    def _current(self, host: str) -> _Address | None:
        """The failures of an address that still count."""
        found = self._addresses.get(host)
        if found is not None and self._clock.now() >= found.ends:
            del self._addresses[host]
            return None
        return found
