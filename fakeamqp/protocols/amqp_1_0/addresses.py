"""Addresses of version 2: "/queues/Q", "/exchanges/X" and "/exchanges/X/K", each part percent-encoded.

Version 1 ("/queue/Q", "/exchange/X/K", "Q") is deprecated; it is not spoken here.
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote, unquote_to_bytes

QUEUES = "/queues/"
EXCHANGES = "/exchanges/"
MANAGEMENT = "/management"


class BadAddress(Exception):
    """An address that has no meaning; the text is the address."""


class VersionOne(Exception):
    """An address of version 1."""


class Destination(NamedTuple):
    """Where a message goes."""

    exchange: str
    routing_key: str


def _part(text: str) -> str:
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


def destination_of(address: str) -> Destination:
    """What the address of a target, or the `to` of a message, names. BadAddress, VersionOne."""
    if address.startswith(QUEUES):
        queue = address[len(QUEUES) :]
        if not queue or "/" in queue:
            raise BadAddress(address)
        return Destination("", _part(queue))
    if address.startswith(EXCHANGES):
        exchange, slash, key = address[len(EXCHANGES) :].partition("/")
        if not exchange or "/" in key or _part(exchange) == "amq.default":
            raise BadAddress(address)
        return Destination(_part(exchange), _part(key) if slash else "")
    raise VersionOne(address)


def queue_of_source(address: str) -> str:
    """The name of the queue that the address of a source names. BadAddress, VersionOne."""
    if not address.startswith(QUEUES):
        raise VersionOne(address)
    if not address[len(QUEUES) :] or "/" in address[len(QUEUES) :]:
        raise BadAddress(address)
    return _part(address[len(QUEUES) :])


def queue_of_address(address: str) -> str | None:
    """The name of the queue of an address; None if it is no address of a queue."""
    name = address[len(QUEUES) :]
    return _part(name) if address.startswith(QUEUES) and name and "/" not in name else None


def quoted(name: str) -> str:
    """A name as a part of an address."""
    return quote(name.encode("utf-8", "surrogateescape"), safe="")


def queue_address(name: str) -> str:
    """The address of a queue."""
    return QUEUES + quoted(name)
