"""Facts that a replay needs of a recording before it starts: connections, accounts, refused logins."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_METHOD
from fakeamqp.replay.logins import read_login
from fakeamqp.trace import ConnectionEvent, Event, FrameEvent

__all__ = ["accounts", "complete_connections", "other_protocols", "refused_logins"]

PROTOCOL = "0-9-1"
_REFUSED = "Login was refused"
"""The detail of the event "closed" after a refused login, for clients that get no connection.close."""


def complete_connections(events: Iterable[Event]) -> set[str]:
    """The short names of the connections whose beginning is in the trace."""
    return {
        event.alias for event in events if isinstance(event, ConnectionEvent) and event.event == "connected"
    }


def other_protocols(events: Iterable[Event]) -> dict[str, str]:
    """The protocols of the connections that do not use 0-9-1, by their short names."""
    return {
        event.alias: event.protocol
        for event in events
        if isinstance(event, FrameEvent) and event.protocol != PROTOCOL
    }


def accounts(events: Iterable[Event]) -> tuple[dict[str, str], list[str], bool]:
    """The users with their recorded passwords, the virtual hosts, and whether a login cannot be repeated.

    A login cannot be repeated if its user is not in the recording, as with EXTERNAL.
    """
    users: dict[str, str] = {}
    virtual_hosts: list[str] = []
    pending: dict[str, Any] = {}
    unreadable = False
    for event in events:
        if not isinstance(event, FrameEvent) or event.channel or event.type != FRAME_METHOD:
            continue
        if event.protocol != PROTOCOL:
            continue
        method = event.method
        if isinstance(method, (m.ConnectionStartOk, m.ConnectionOpen)):
            pending[event.alias] = method
        elif isinstance(method, m.ConnectionTune) and event.alias in pending:
            asked = pending.pop(event.alias)
            login = read_login(asked.mechanism, asked.response)
            if login is None:
                unreadable = True
            else:
                users.setdefault(*login)
        elif isinstance(method, m.ConnectionOpenOk) and event.alias in pending:
            virtual_hosts.append(pending.pop(event.alias).virtual_host)
    return users or {"guest": "guest"}, list(dict.fromkeys(virtual_hosts)), unreadable


def refused_logins(events: Iterable[Event]) -> set[str]:
    """The short names of the connections whose login was refused."""
    found = set()
    pending: set[str] = set()
    for event in events:
        if isinstance(event, ConnectionEvent):
            if event.alias in pending and event.event == "closed" and event.detail.startswith(_REFUSED):
                found.add(event.alias)
        elif isinstance(event, FrameEvent) and not event.channel and event.type == FRAME_METHOD:
            method = event.method
            if isinstance(method, m.ConnectionStartOk):
                pending.add(event.alias)
            elif isinstance(method, m.ConnectionTune):
                pending.discard(event.alias)
            elif (
                isinstance(method, m.ConnectionClose) and event.alias in pending and method.reply_code == 403
            ):
                found.add(event.alias)
    return found
