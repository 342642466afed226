"""Access realms and the tickets for them (AMQP 0-9).

A realm is a named group of a virtual host's exchanges and queues. Whoever works with one of those shows a
ticket for its realm. What is declared belongs to the realm of the ticket it was declared with; what the
broker made itself, or a client of a protocol without realms, belongs to the first one.
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
"""What a ticket is good for: looking, creating and deleting, publishing, consuming (access.request/*)."""

FIRST_REALM = "/data"
"""The realm of every virtual host: the one that clients know to ask for."""

_NEEDED: dict[Right, Action | None] = {
    "passive": None,
    "active": "configure",
    "write": "write",
    "read": "read",
}
_MAX_TICKETS = 0xFFFF


class Realm:
    """One realm: who may have tickets (None: everybody in the virtual host), and those that are good now."""

    __slots__ = ("name", "tickets", "users")

    def __init__(self, name: str, users: frozenset[str] | None = None) -> None:
        self.name = name
        self.users = users
        self.tickets: dict[Ticket, None] = {}

    def __repr__(self) -> str:
        return f"<Realm {self.name!r} {len(self.tickets)} tickets>"


class Ticket:
    """The right of one holder, a channel, to work with a realm; `version` is that of the access rules."""

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
        self.number = number
        self.realm = realm
        self.holder = holder
        self.rights = rights
        self.exclusive = exclusive
        self.version = version


class Realms(Extension):
    """The realms of one virtual host, and all their tickets."""

    def __init__(self, virtual_host: VirtualHost) -> None:
        super().__init__(virtual_host)
        self._realm_of: WeakKeyDictionary[Exchange | Queue, str] = WeakKeyDictionary()
        self._virtual_host = virtual_host
        self._realms = {FIRST_REALM: Realm(FIRST_REALM)}
        self._tickets: dict[int, Ticket] = {}
        self._latest = 0

    def realm_of(self, entity: Exchange | Queue) -> str:
        """The name of the realm that an exchange or a queue belongs to."""
        return self._realm_of.get(entity, FIRST_REALM)

    def assign(self, entity: Exchange | Queue, realm: str) -> None:
        """Put an exchange or a queue into a realm."""
        self._realm_of[entity] = realm

    def __iter__(self) -> Iterator[Realm]:
        return iter(self._realms.values())

    def add(self, name: str, users: Iterable[str] | None = None) -> None:
        """Add a realm, or say anew who may use it. Tickets expire (access/expire-on-change)."""
        allowed = None if users is None else frozenset(users)
        found = self._realms.setdefault(name, Realm(name))
        found.users = allowed
        self._virtual_host.state.access.changed()

    def grant(
        self, holder: object, user: User, name: str, rights: Iterable[Right], *, exclusive: bool
    ) -> Ticket:
        """A ticket for a realm; the one that its holder has for that realm ends.

        Raises:
            AccessRefused: the user may not use the realm, or there is none, which is answered alike
                (access.request/realm-validity); the user may nowhere do what is asked for, which ends the
                connection (access.request/no-rights); or somebody is in the way of exclusive access, or has
                it (access.request/exclusive-validity).
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
            # A right that the user could use on nothing at all is none.
            if right in rights and action and not (permission and getattr(permission, action)):
                raise AccessRefused(
                    f"{right} access to realm '{realm.name}' refused for user '{user.name}'",
                    ends_connection=True,
                )

    def _number(self) -> int:
        """A number that no ticket has. Numbers go round, so that one that has ended is not soon another's."""
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
        """Whether a ticket is still good (access/always-check)."""
        return ticket in ticket.realm.tickets and ticket.version == self._version

    def end(self, ticket: Ticket) -> None:
        """A ticket is good for nothing any more."""
        ticket.realm.tickets.pop(ticket, None)
        self._tickets.pop(ticket.number, None)

    def _expire(self, realm: Realm) -> None:
        for each in list(realm.tickets):
            if not self.is_valid(each):
                self.end(each)
