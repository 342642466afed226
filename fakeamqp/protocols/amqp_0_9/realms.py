"""Access realms and the tickets for them (AMQP 0-9).

A realm is a named group of exchanges and queues of a virtual host. A method on one of them needs a ticket for
its realm. An exchange or queue belongs to the realm of the ticket that it was declared with. Those created by
the broker, or by a client of another protocol, belong to the first realm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakKeyDictionary

from fakeamqp.model.errors import AccessRefused, ResourceError
from fakeamqp.model.extensions import Extension

if TYPE_CHECKING:
    from fakeamqp.model.access import Action, User
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["FIRST_REALM", "Realm", "Realms", "Right", "Ticket"]

Right: TypeAlias = Literal["passive", "active", "write", "read"]
"""The operations that a ticket permits: passive declare; create and delete; publish; consume.

Source: access.request/*.
"""

FIRST_REALM = "/data"
"""The realm that exists in every virtual host, and that clients request by default."""

_NEEDED: dict[Right, Action | None] = {
    "passive": None,
    "active": "configure",
    "write": "write",
    "read": "read",
}
_MAX_TICKETS = 0xFFFF


class Realm:
    """One realm: its permitted users (None: all users of the virtual host), and its valid tickets."""

    __slots__ = ("name", "tickets", "users")

    def __init__(self, name: str, users: frozenset[str] | None = None) -> None:
        self.name: str = name
        self.users: frozenset[str] | None = users
        self.tickets: dict[Ticket, None] = {}

    def __repr__(self) -> str:
        return f"<Realm {self.name!r} {len(self.tickets)} tickets>"


class Ticket:
    """The rights of one holder, a channel, in a realm; `version` is the version of the access rules."""

    __slots__ = ("exclusive", "holder", "number", "realm", "rights", "version")

    def __init__(
        self,
        number: int,
        realm: Realm,
        holder: object,
        rights: frozenset[Right],
        exclusive: bool,
        version: int,
    ) -> None:
        self.number: int = number
        self.realm: Realm = realm
        self.holder: object = holder
        self.rights: frozenset[Right] = rights
        self.exclusive: bool = exclusive
        self.version: int = version


class Realms(Extension):
    """The realms of one virtual host, and their tickets."""

    def __init__(self, virtual_host: VirtualHost) -> None:
        super().__init__(virtual_host)
        self._realm_of: WeakKeyDictionary[Exchange | Queue, str] = WeakKeyDictionary()
        self._virtual_host = virtual_host
        self._realms = {FIRST_REALM: Realm(FIRST_REALM)}
        self._tickets: dict[int, Ticket] = {}
        self._latest = 0

    def realm_of(self, entity: Exchange | Queue) -> str:
        """Return the name of the realm of an exchange or a queue."""
        return self._realm_of.get(entity, FIRST_REALM)

    def assign(self, entity: Exchange | Queue, realm: str) -> None:
        """Put an exchange or a queue into a realm."""
        self._realm_of[entity] = realm

    def __iter__(self) -> Iterator[Realm]:
        return iter(self._realms.values())

    def add(self, name: str, users: Iterable[str] | None = None) -> None:
        """Add a realm, or change its users. All tickets expire (access/expire-on-change)."""
        allowed = None if users is None else frozenset(users)
        found = self._realms.setdefault(name, Realm(name))
        found.users = allowed
        self._virtual_host.state.access.changed()

    def grant(
        self, holder: object, user: User, name: str, rights: Iterable[Right], *, exclusive: bool
    ) -> Ticket:
        """Grant a ticket for a realm; it replaces the ticket that its holder has for the realm.

        Raises:
            AccessRefused: the user may not use the realm, or the realm does not exist
                (access.request/realm-validity); the user lacks a requested right on every object, which
                closes the connection (access.request/no-rights); or another holder has an exclusive ticket,
                or prevents one (access.request/exclusive-validity).
        """
        realm = self._realms.get(name)
        if realm is None or (realm.users is not None and user.name not in realm.users):
            raise AccessRefused(f"access to realm '{name}' refused for user '{user.name}'")
        asked = frozenset(rights)
        self._check_rights(user, realm, asked)
        self._expire(realm)
        others = [each for each in realm.tickets if each.holder is not holder]
        if any(each.exclusive for each in others):
            raise AccessRefused(f"realm '{name}' is in exclusive use by another channel")
        if exclusive and others:
            raise AccessRefused(f"cannot have exclusive access to realm '{name}': others have tickets for it")
        for each in list(realm.tickets):
            if each.holder is holder:
                self.end(each)
        ticket = Ticket(self._number(), realm, holder, asked, exclusive, self._version)
        realm.tickets[ticket] = None
        self._tickets[ticket.number] = ticket
        return ticket

    def _check_rights(self, user: User, realm: Realm, rights: frozenset[Right]) -> None:
        permission = user.permissions.get(self._virtual_host.name)
        for right, action in _NEEDED.items():
            # A right counts as missing if the user has no permission for it on any name.
            if right in rights and action and not (permission and getattr(permission, action)):
                raise AccessRefused(
                    f"{right} access to realm '{realm.name}' refused for user '{user.name}'",
                    ends_connection=True,
                )

    def _number(self) -> int:
        """Return an unused number. Numbers rotate, so that the number of an expired ticket is reused late."""
        if len(self._tickets) == _MAX_TICKETS:
            raise ResourceError("all access tickets are in use")
        while True:
            self._latest = self._latest % _MAX_TICKETS + 1
            if self._latest not in self._tickets:
                return self._latest

    @property
    def _version(self) -> int:
        return self._virtual_host.state.access.version

    def is_valid(self, ticket: Ticket) -> bool:
        """True if a ticket is still valid (access/always-check)."""
        return ticket in ticket.realm.tickets and ticket.version == self._version

    def end(self, ticket: Ticket) -> None:
        """Invalidate a ticket."""
        ticket.realm.tickets.pop(ticket, None)
        self._tickets.pop(ticket.number, None)

    def _expire(self, realm: Realm) -> None:
        for each in list(realm.tickets):
            if not self.is_valid(each):
                self.end(each)
