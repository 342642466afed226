"""The values that conditions compare in frame groups of 0-10."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.frame_group import ABSENT
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.faults.frame_groups import CommandGroup

__all__ = ["COMMON", "values_of"]

COMMON = (
    "content_type",
    "content_encoding",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
)
"""Properties that messages of all protocols have. They are compared as in 0-9-1."""


def values_of(group: CommandGroup, name: str) -> tuple[Any, ...]:
    """All values of a field: one that every method has, a field of the method, or a property."""
    read = _READERS.get(name)
    if read is not None:
        return read(group)
    method = group.method
    value = getattr(method, name, getattr(method, f"{name}_", ABSENT))
    if value is not ABSENT:
        return (value,)
    return _property(group, name)


def _brings_message(group: CommandGroup) -> bool:
    return group.name == "message.transfer"


def _held_messages(group: CommandGroup) -> tuple[Any, ...]:
    """Queue name and message of each transfer that a settlement concerns."""
    transfers = getattr(group.method, "transfers", None)
    if group.direction == "received" and transfers is not None:
        held: tuple[Any, ...] = group.port.held_messages(group.channel, transfers)
        return held
    return ()


def _delivery(group: CommandGroup) -> DeliveryProperties | None:
    return next((each for each in group.structs if isinstance(each, DeliveryProperties)), None)


def _exchange(group: CommandGroup) -> tuple[Any, ...]:
    """Of a received transfer its destination; of a sent one the exchange of its publish."""
    method = group.method
    if _brings_message(group):
        if group.direction == "received":
            return (method.destination or "",)
        delivery = _delivery(group)
        return (None if delivery is None else delivery.exchange or "",)
    if hasattr(method, "exchange"):
        return (method.exchange or "",)
    if group.name == "exchange.query":
        return (method.name or "",)
    return tuple(message.exchange for _, message in _held_messages(group))


def _routing_key(group: CommandGroup) -> tuple[Any, ...]:
    method = group.method
    if _brings_message(group):
        delivery = _delivery(group)
        return ("" if delivery is None else delivery.routing_key or "",)
    for name in ("routing_key", "binding_key"):
        if hasattr(method, name):
            return (getattr(method, name) or "",)
    return tuple(message.routing_key for _, message in _held_messages(group))


def _queue(group: CommandGroup) -> tuple[Any, ...]:
    """The queues of a transfer, a subscription or settled messages, or the queue that a command names."""
    if group.queues is not None:
        return group.queues
    method = group.method
    if _brings_message(group) and group.direction == "received":
        found: tuple[Any, ...] = group.port.destinations(group.channel, method, group.properties)
        return found
    if hasattr(method, "queue"):
        return (method.queue or "",)
    if hasattr(method, "destination"):
        queue = group.port.consumed_queue(group.channel, method.destination or "")
        return () if queue is None else (queue,)
    return tuple(name for name, _ in _held_messages(group))


def _exchange_type(group: CommandGroup) -> tuple[Any, ...]:
    if group.name == "exchange.declare":
        return (group.method.type,)
    return tuple(kind for name in _exchange(group) if (kind := group.port.exchange_type(name)) is not None)


def _body(group: CommandGroup) -> tuple[Any, ...]:
    if _brings_message(group) or group.has_content:
        return (group.body,)
    return tuple(message.body for _, message in _held_messages(group))


def _session(group: CommandGroup) -> tuple[Any, ...]:
    """The session's name as text: in session controls their own, otherwise that of the channel."""
    if group.name.startswith("session.") and hasattr(group.method, "name"):
        return ((group.method.name or b"").decode("utf-8", "surrogateescape"),)
    name = group.port.session_name(group.channel)
    return () if name is None else (name,)


def _property(group: CommandGroup, name: str) -> tuple[Any, ...]:
    """A property that messages of all protocols have, otherwise a field of a struct in the header."""
    if _brings_message(group) or group.has_content:
        if name in COMMON or name == "headers":
            return (getattr(group.properties, name, ABSENT),)
        return tuple(getattr(each, name) for each in group.structs if hasattr(each, name)) or (ABSENT,)
    return tuple(getattr(message.properties, name, ABSENT) for _, message in _held_messages(group))


_READERS: dict[str, Callable[[CommandGroup], tuple[Any, ...]]] = {
    "exchange": _exchange,
    "routing_key": _routing_key,
    "queue": _queue,
    "exchange_type": _exchange_type,
    "body": _body,
    "headers": lambda group: _property(group, "headers"),
    "channel": lambda group: (group.channel,),
    "session": _session,
}
"""The fields that every command and control has for conditions, besides its own."""
