"""Reads and replaces the logins of recorded clients."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from fakeamqp.errors import FakeAMQPError
from fakeamqp.protocols.amqp_0_9_1.codec.tables import RABBITMQ, encode_table

__all__ = ["MECHANISMS", "read_login", "wrong_login"]


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
