"""Class access: tickets for the realms of a virtual host, and the checks of methods that carry a ticket.

A ticket is valid on one channel. If the personality checks tickets, every method that carries a ticket calls
`use_ticket`, and every declare method calls `assign_realm`. Otherwise both do nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from fakeamqp.model.errors import AccessRefused, NotAllowed
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.realms import Realms

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_9.realms import Right, Ticket
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["HANDLERS", "assign_realm", "use_ticket", "waive_tickets"]

_LENIENT = 1


class _Tickets:
    """The tickets of one channel."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self._channel = channel
        self._granted: dict[int, Ticket] = {}
        self.waived = False
        """True while checks are off: see `waive_tickets`."""

    def request(self, method: m.AccessRequest) -> int:
        """Grant a ticket, and return its number; raises the errors of `Realms.grant`."""
        asked: tuple[Right, ...] = ("passive", "active", "write", "read")
        channel = self._channel
        ticket = channel.virtual_host.extensions[Realms].grant(
            self,
            channel.user,
            method.realm,
            [right for right in asked if getattr(method, right)],
            exclusive=method.exclusive,
        )
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
    methods report that it is missing.

    Args:
        channel: the channel that received the method.
        ticket: the ticket number in the method.
        right: the right that the method needs.
        kind: the kind of object that `name` names.
        name: the name; for a queue never blank, since the caller has replaced it by the current queue.

    Raises:
        AccessRefused: there is no ticket, or it is for another realm or lacks the right.
        NotAllowed: the ticket belongs to another channel.
    """
    if not channel.choices.checks_tickets:
        return
    tickets = channel.class_state(_Tickets)
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
        realm = channel.class_state(_Tickets).shown(ticket).realm.name
        channel.virtual_host.extensions[Realms].assign(entity, realm)


@contextmanager
def waive_tickets(channel: Amqp09Channel) -> Iterator[None]:
    """Switch ticket checks off, for operations that the channel was permitted before its interruption."""
    tickets = channel.class_state(_Tickets)
    tickets.waived = True
    try:
        yield
    finally:
        tickets.waived = False


def _entity(channel: Amqp09Channel, kind: Literal["exchange", "queue"], name: str) -> Exchange | Queue | None:
    virtual_host = channel.virtual_host
    return virtual_host.exchanges.get(name) if kind == "exchange" else virtual_host.queues.get(name)


def request(channel: Amqp09Channel, method: m.AccessRequest) -> None:
    """Grant a ticket (access/grammar); if tickets are not checked, always the same number."""
    strict = channel.choices.checks_tickets
    ticket = channel.class_state(_Tickets).request(method) if strict else _LENIENT
    channel.send(m.AccessRequestOk(ticket=ticket))


HANDLERS: dict[type[Method], Callable[[Amqp09Channel, Any], None]] = {m.AccessRequest: request}
