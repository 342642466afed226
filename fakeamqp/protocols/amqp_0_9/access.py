"""Class access: tickets for the realms of a virtual host, and what is looked at where one is shown.

A ticket is of one channel. Where the personality checks tickets, every method that carries one goes through
`use_ticket`, and whatever is declared is told by `assign_realm` which realm it is in. Otherwise both do nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from fakeamqp.model.errors import AccessRefused, NotAllowed
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.realms import Realms

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_0_9.realms import Right, Ticket
    from fakeamqp.protocols.amqp_0_9.server_channel import Amqp09Channel

__all__ = ["HANDLERS", "assign_realm", "use_ticket", "waive_tickets"]

_LENIENT = 1


class _Tickets:
    """The tickets of one channel."""

    def __init__(self, channel: Amqp09Channel) -> None:
        self._channel = channel
        self._granted: dict[int, Ticket] = {}
        self.waived = False
        """Whether nothing is asked for: see `waive_tickets`."""

    def request(self, method: m.AccessRequest) -> int:
        """The number of a new ticket, as asked for; see `Realms.grant` for what is raised."""
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
        """The ticket of this number, which is good.

        Raises:
            AccessRefused: it is none (domain.access-ticket/non-zero), or is good no more: it was replaced, or
                the access rules have changed (access.request/replaces, access/expire-on-change).
            NotAllowed: it is none of this channel's (access.request-ok/per-channel).
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
        """The channel is over, and its tickets with it (channel.close/tickets-expire)."""
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
    """May the channel do this to an exchange or queue, by the ticket it shows?

    What is not there yet can be declared with a ticket for any realm; that there is nothing to work with
    otherwise is for the work itself to find.

    Args:
        channel: where.
        ticket: the number that the method carries.
        right: what the method needs.
        kind: what `name` is the name of.
        name: never blank for a queue: the current one has been put in.

    Raises:
        AccessRefused: there is no ticket, or a ticket for another realm, or one without this right.
        NotAllowed: the ticket is another channel's.
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
    """What has just been declared with this ticket is in its realm (queue.declare/ticket-realm).

    What was there already is where it was: `use_ticket` has seen to it that this is the same.
    """
    if not channel.choices.checks_tickets:
        return
    entity = _entity(channel, kind, name)
    if entity is not None:
        realm = channel.class_state(_Tickets).shown(ticket).realm.name
        channel.virtual_host.extensions[Realms].assign(entity, realm)


@contextmanager
def waive_tickets(channel: Amqp09Channel) -> Iterator[None]:
    """What is done meanwhile the channel was allowed before: it shows no ticket for it again."""
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
    """Grant a ticket (access/grammar); where nobody looks at tickets, always the same one."""
    strict = channel.choices.checks_tickets
    ticket = channel.class_state(_Tickets).request(method) if strict else _LENIENT
    channel.send(m.AccessRequestOk(ticket=ticket))


HANDLERS = {m.AccessRequest: request}
