"""Addresses of both versions.

Version 2 has "/queues/Q", "/exchanges/X" and "/exchanges/X/K", each part percent-encoded. Version 1, which is
deprecated, has "/exchange/X/K", "/topic/K", "/amq/queue/Q", "/queue/Q" and "Q"; there "%2F" alone is decoded.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

QUEUES = "/queues/"
EXCHANGES = "/exchanges/"
MANAGEMENT = "/management"


class BadAddress(Exception):
    """An address that has no meaning."""


class VersionOne(Exception):
    """An address of version 1."""


class BadVersionOne(Exception):
    """An address of version 1 that has no meaning: of this kind, or of none; `shown` is what does not fit."""

    def __init__(self, kind: str | None, shown: str) -> None:
        super().__init__(kind, shown)
        self.kind: str | None = kind
        self.shown: str = shown


class CrashingAddress(BadVersionOne):
    """One of a kind that RabbitMQ's parser takes, and the rest of it does not know."""


class Destination(NamedTuple):
    """Where a message goes; without a routing key its subject is the key."""

    exchange: str
    routing_key: str | None

    def key_for(self, subject: object) -> str:
        """The routing key of a message with this subject."""
        if self.routing_key is not None:
            return self.routing_key
        return subject if isinstance(subject, str) else ""


class AddressedNode(NamedTuple):
    """What an address of version 1 names: a queue, or an exchange.

    `declares` says that the queue is declared where there is none.
    """

    destination: Destination
    queue: str | None = None
    declares: bool = False


# What RabbitMQ's decoder takes (measured on 4.0.5 and 4.3.6).
_is_part = re.compile(r"(?:[A-Za-z0-9!$&'()*+,;=:@._~-]|%[0-9A-Fa-f]{2})*").fullmatch


def _part(text: str) -> str:
    if not _is_part(text):
        raise BadAddress(text)
    return unquote_to_bytes(text).decode("utf-8", "surrogateescape")


def destination_of(address: str) -> Destination:
    """What the address of a target, or the `to` of a message, names. BadAddress, VersionOne."""
    if address.startswith(QUEUES):
        return Destination("", queue_of_source(address))
    if address.startswith(EXCHANGES):
        exchange, slash, key = address[len(EXCHANGES) :].partition("/")
        if not exchange or _part(exchange) == "amq.default":
            raise BadAddress(address)
        return Destination(_part(exchange), _part(key) if slash else "")
    raise VersionOne(address)


def queue_of_source(address: str) -> str:
    """The name of the queue that the address of a source names. BadAddress, VersionOne."""
    if not address.startswith(QUEUES):
        raise VersionOne(address)
    if address == QUEUES:
        raise BadAddress(address)
    return _part(address[len(QUEUES) :])


def quoted(name: str) -> str:
    """A name as a part of an address."""
    return quote(name.encode("utf-8", "surrogateescape"), safe="")


def queue_address(name: str) -> str:
    """The address of a queue."""
    return QUEUES + quoted(name)


# --- version 1 ---------------------------------------------------------------------------------------------

_KINDS: Final = ("exchange", "queue", "topic", "temp-queue")


def version_one_endpoint(address: str, *, of_target: bool) -> AddressedNode:
    """What an address of version 1 names. "/queue" without a name is for targets only. BadVersionOne."""
    match address.split("/"):
        case [name]:
            return _of_queue(name)
        case ["", kind, *rest] if kind in _KINDS:
            return _endpoint(kind.replace("-", "_"), rest, of_target)
        case ["", "amq", "queue", *rest]:
            return _endpoint("amqqueue", rest, of_target)
        case ["", "reply-queue", _, *_]:
            raise CrashingAddress("reply_queue", address)
    raise BadVersionOne(None, address)


def _endpoint(kind: str, rest: list[str], of_target: bool) -> AddressedNode:
    match kind, rest:
        case "exchange", [name] if name:
            return AddressedNode(Destination(_unescaped(name), None if of_target else ""))
        case "exchange", [name, key] if name:
            routing_key = _unescaped(key) or (None if of_target else "")
            return AddressedNode(Destination(_unescaped(name), routing_key))
        case "queue", [] if of_target:
            return AddressedNode(Destination("", None))
        case "topic", [key] if key:
            return AddressedNode(Destination("amq.topic", _unescaped(key)))
        case "queue", [name] if name:
            return _of_queue(name)
        case "amqqueue", [name] if name:
            return _of_queue(name)._replace(declares=False)
        case "temp_queue", [name] if name:
            raise CrashingAddress(kind, name)
    raise BadVersionOne(kind, "".join(f"/{each}" for each in rest))


def _of_queue(name: str) -> AddressedNode:
    name = _unescaped(name)
    return AddressedNode(Destination("", name), name, True)


def _unescaped(text: str) -> str:
    return text.replace("%2F", "/")
