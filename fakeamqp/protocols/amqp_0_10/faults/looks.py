"""What conditions find in a unit of 0-10."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.units import ABSENT
from fakeamqp.protocols.amqp_0_10.codec.structs import DeliveryProperties

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_10.faults.units import CommandUnit

__all__ = ["COMMON", "look"]

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
"""Properties that messages of all protocols have. They are compared as 0-9-1 has them."""


def look(unit: CommandUnit, name: str) -> tuple[Any, ...]:
    """All values that a unit has for what a condition is about: something of many, a field, or a property."""
    read = _READERS.get(name)
    if read is not None:
        return read(unit)
    method = unit.method
    value = getattr(method, name, getattr(method, f"{name}_", ABSENT))
    if value is not ABSENT:
        return (value,)
    return _property(unit, name)


def _brings_message(unit: CommandUnit) -> bool:
    return unit.name == "message.transfer"


def _held(unit: CommandUnit) -> tuple[Any, ...]:
    """Queue and message of what a settlement is about, as the broker has them."""
    transfers = getattr(unit.method, "transfers", None)
    if unit.direction == "received" and transfers is not None:
        held: tuple[Any, ...] = unit.line.held(unit.channel, transfers)
        return held
    return ()


def _delivery(unit: CommandUnit) -> DeliveryProperties | None:
    return next((each for each in unit.structs if isinstance(each, DeliveryProperties)), None)


def _exchange(unit: CommandUnit) -> tuple[Any, ...]:
    """A transfer names it as its destination; one to the client says where the message came from."""
    method = unit.method
    if _brings_message(unit):
        if unit.direction == "received":
            return (method.destination or "",)
        delivery = _delivery(unit)
        return (None if delivery is None else delivery.exchange or "",)
    if hasattr(method, "exchange"):
        return (method.exchange or "",)
    if unit.name == "exchange.query":
        return (method.name or "",)
    return tuple(message.exchange for _, message in _held(unit))


def _routing_key(unit: CommandUnit) -> tuple[Any, ...]:
    method = unit.method
    if _brings_message(unit):
        delivery = _delivery(unit)
        return ("" if delivery is None else delivery.routing_key or "",)
    for name in ("routing_key", "binding_key"):
        if hasattr(method, name):
            return (getattr(method, name) or "",)
    return tuple(message.routing_key for _, message in _held(unit))


def _queue(unit: CommandUnit) -> tuple[Any, ...]:
    """Where a transfer goes, where one to the client comes from, whose credit it is, or what it names."""
    if unit.queues is not None:
        return unit.queues
    method = unit.method
    if _brings_message(unit) and unit.direction == "received":
        found: tuple[Any, ...] = unit.line.destinations(unit.channel, method, unit.properties)
        return found
    if hasattr(method, "queue"):
        return (method.queue or "",)
    if hasattr(method, "destination"):
        queue = unit.line.consumed_queue(unit.channel, method.destination or "")
        return () if queue is None else (queue,)
    return tuple(name for name, _ in _held(unit))


def _exchange_type(unit: CommandUnit) -> tuple[Any, ...]:
    if unit.name == "exchange.declare":
        return (unit.method.type,)
    return tuple(kind for name in _exchange(unit) if (kind := unit.line.exchange_type(name)) is not None)


def _body(unit: CommandUnit) -> tuple[Any, ...]:
    if _brings_message(unit) or unit.has_content:
        return (unit.body,)
    return tuple(message.body for _, message in _held(unit))


def _session(unit: CommandUnit) -> tuple[Any, ...]:
    """The name of the session, as text: what an attach names, or whose channel it is."""
    if unit.name.startswith("session.") and hasattr(unit.method, "name"):
        return ((unit.method.name or b"").decode("utf-8", "surrogateescape"),)
    name = unit.line.session_name(unit.channel)
    return () if name is None else (name,)


def _property(unit: CommandUnit, name: str) -> tuple[Any, ...]:
    """What messages of all protocols have, else a field of a struct in the header."""
    if _brings_message(unit) or unit.has_content:
        if name in COMMON or name == "headers":
            return (getattr(unit.properties, name, ABSENT),)
        return tuple(getattr(each, name) for each in unit.structs if hasattr(each, name)) or (ABSENT,)
    return tuple(getattr(message.properties, name, ABSENT) for _, message in _held(unit))


_READERS: dict[str, Callable[[CommandUnit], tuple[Any, ...]]] = {
    "exchange": _exchange,
    "routing_key": _routing_key,
    "queue": _queue,
    "exchange_type": _exchange_type,
    "body": _body,
    "headers": lambda unit: _property(unit, "headers"),
    "channel": lambda unit: (unit.channel,),
    "session": _session,
}
"""What can be asked of any command or control, beside its own fields."""
