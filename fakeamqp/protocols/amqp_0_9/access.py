"""Class access: tickets for the realms of a virtual host, and the checks of methods that carry a ticket.

A realm is a named group of exchanges and queues of a virtual host. A method on one of them needs a ticket for
its realm. An exchange or queue belongs to the realm of the ticket that it was declared with. Those created by
the broker, or by a client of another protocol, belong to the first realm.

A ticket is valid on one channel. If the personality checks tickets, every method that carries a ticket calls
`use_ticket`, and every declare method calls `assign_realm`. Otherwise both do nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakKeyDictionary

from fakeamqp.model.errors import AccessRefused, NotAllowed, ResourceError
from fakeamqp.model.extensions import Extension
from fakeamqp.protocols.amqp_0_9.codec import methods as m

if TYPE_CHECKING:
    from fakeamqp.model.access import Action, User
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.model.virtual_host import VirtualHost
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

_LENIENT = 1

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


@dataclass(eq=False, repr=False)
class Realm:
    """One realm: its permitted users (None: all users of the virtual host), and its valid tickets."""

    name: str
    users: frozenset[str] | None = None
    tickets: dict[Ticket, None] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Realm {self.name!r} {len(self.tickets)} tickets>"


@dataclass(eq=False)
class Ticket:
    """The rights of one holder, a channel, in a realm; `version` is the version of the access rules."""

    number: int
    realm: Realm
    holder: object
    rights: frozenset[Right]
    exclusive: bool
    version: int


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
        self._realms.setdefault(name, Realm(name)).users = allowed
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
        for each in list(realm.tickets):
            if not self.is_valid(each):
                self.end(each)
        others = [each for each in realm.tickets if each.holder is not holder]
        if any(each.exclusive for each in others):
            raise AccessRefused(f"realm '{name}' is in exclusive use by another channel")
        if exclusive and others:
            raise AccessRefused(f"cannot have exclusive access to realm '{name}': others have tickets for it")
        for each in list(realm.tickets):
            if each.holder is holder:
                self.end(each)
        ticket = Ticket(
            self._number(), realm, holder, asked, exclusive, self._virtual_host.state.access.version
        )
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

    def is_valid(self, ticket: Ticket) -> bool:
        """True if a ticket is still valid (access/always-check)."""
        return ticket in ticket.realm.tickets and ticket.version == self._virtual_host.state.access.version

    def end(self, ticket: Ticket) -> None:
        """Invalidate a ticket."""
        ticket.realm.tickets.pop(ticket, None)
        self._tickets.pop(ticket.number, None)


class Tickets:
    """The tickets of one channel."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self._channel = channel
        self._granted: dict[int, Ticket] = {}
        self.waived = False
        """True while checks are off, for what the channel was permitted before its interruption."""

    def request(self, method: m.AccessRequest) -> int:
        """Grant a ticket, and return its number; raises the errors of `Realms.grant`."""
        rights = [right for right in _NEEDED if getattr(method, right)]
        realms = self._channel.virtual_host.extensions[Realms]
        ticket = realms.grant(self, self._channel.user, method.realm, rights, exclusive=method.exclusive)
        self._granted[ticket.number] = ticket
        return ticket.number

    def shown(self, number: int) -> Ticket:
        """Return the valid ticket with this number.

        Raises:
            AccessRefused: the number is 0 (domain.access-ticket/non-zero), or the ticket has expired: it was
                replaced, or the access rules changed (access.request/replaces, access/expire-on-change).
            NotAllowed: the ticket was not granted on this channel (access.request-ok/per-channel).
        """
        if number == 0:
            raise AccessRefused("an access ticket is needed; access.request gives one")
        ticket = self._granted.get(number)
        if ticket is None:
            raise NotAllowed(f"access ticket {number} was not granted on channel {self._channel.number}")
        if not self._channel.virtual_host.extensions[Realms].is_valid(ticket):
            raise AccessRefused(f"access ticket {number} for realm '{ticket.realm.name}' has expired")
        return ticket

    def released(self) -> None:
        """Expire the tickets of the channel, which is closing (channel.close/tickets-expire)."""
        for ticket in self._granted.values():
            self._channel.virtual_host.extensions[Realms].end(ticket)
        self._granted.clear()


def use_ticket(
    channel: Amqp09Channel,
    ticket: int,
    right: Literal["passive", "active", "write", "read"],
    kind: Literal["exchange", "queue"],
    name: str,
) -> None:
    """Check that a method's ticket permits an operation on an exchange or queue.

    An exchange or queue that does not exist passes with a ticket for any realm: it can be declared, and other
    methods report that it is missing. A blank name of a queue has been replaced by the current
    queue.

    Raises:
        AccessRefused: there is no ticket, or it is for another realm or lacks the right.
        NotAllowed: the ticket belongs to another channel.
    """
    if not channel.choices.checks_tickets:
        return
    tickets = channel.class_state(Tickets)
    if tickets.waived:
        return
    shown = tickets.shown(ticket)
    realm = shown.realm.name
    if right not in shown.rights:
        raise AccessRefused(f"access ticket {ticket} gives no {right} access to realm '{realm}'")
    entity = _entity(channel, kind, name)
    if entity is None:
        return
    own = channel.virtual_host.extensions[Realms].realm_of(entity)
    if own != realm:
        raise AccessRefused(
            f"{kind} '{name}' is in realm '{own}', and access ticket {ticket} is for '{realm}'"
        )


def assign_realm(channel: Amqp09Channel, ticket: int, kind: Literal["exchange", "queue"], name: str) -> None:
    """Put a declared exchange or queue into the realm of the ticket (queue.declare/ticket-realm).

    One that existed before stays in its realm, which is the same: `use_ticket` has checked that.
    """
    if not channel.choices.checks_tickets:
        return
    entity = _entity(channel, kind, name)
    if entity is not None:
        realm = channel.class_state(Tickets).shown(ticket).realm.name
        channel.virtual_host.extensions[Realms].assign(entity, realm)


def _entity(channel: Amqp09Channel, kind: Literal["exchange", "queue"], name: str) -> Exchange | Queue | None:
    virtual_host = channel.virtual_host
    return virtual_host.exchanges.get(name) if kind == "exchange" else virtual_host.queues.get(name)


def request(channel: Amqp09Channel, method: m.AccessRequest) -> None:
    """Grant a ticket (access/grammar); if tickets are not checked, always the same number."""
    strict = channel.choices.checks_tickets
    ticket = channel.class_state(Tickets).request(method) if strict else _LENIENT
    channel.send(m.AccessRequestOk(ticket=ticket))
