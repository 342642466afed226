"""What a replay reads in a recording before it starts: connections, accounts, logins."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Any

from fakeamqp.errors import FakeAMQPError
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_METHOD
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ, encode_table
from fakeamqp.trace import ConnectionEvent, Event, FrameEvent

__all__ = [
    "MECHANISMS",
    "accounts",
    "complete_connections",
    "other_protocols",
    "read_login",
    "refused_logins",
    "wrong_login",
]


def read_login(mechanism: str, response: bytes) -> tuple[str, str] | None:
    """User and password, or None if the response does not contain them."""
    read = _READERS.get(mechanism)
    return None if read is None else read(response)


def wrong_login(mechanism: str, response: bytes) -> bytes:
    """The response with a random password.

    Passwords in a recording are asterisks, so a wrong password can look like the right one. A response that
    cannot be decoded is returned unchanged.
    """
    login = read_login(mechanism, response)
    if login is None:
        return response
    user, password = login[0], secrets.token_hex()
    if mechanism == "PLAIN":
        return f"\0{user}\0{password}".encode("utf-8", "surrogateescape")
    return encode_table({"LOGIN": user, "PASSWORD": password})[_TABLE_SIZE:]


def _plain(response: bytes) -> tuple[str, str] | None:
    parts = response.decode("utf-8", "surrogateescape").split("\0")
    return (parts[1], parts[2]) if len(parts) == 3 else None


def _amqplain(response: bytes) -> tuple[str, str] | None:
    octets = len(response).to_bytes(_TABLE_SIZE, "big") + response
    try:
        table, _ = RABBITMQ.decode(octets, 0, len(octets))
    except FakeAMQPError:
        return None
    return str(table.get("LOGIN")), str(table.get("PASSWORD"))


_TABLE_SIZE = 4
"""The bytes of the size before a table. An AMQPLAIN response has no size."""
_READERS: dict[str, Callable[[bytes], tuple[str, str] | None]] = {"PLAIN": _plain, "AMQPLAIN": _amqplain}
MECHANISMS = tuple(_READERS)
"""The mechanisms whose responses can be decoded."""


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
