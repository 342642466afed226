"""What conditions find in a unit of 0-9-1."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.units import ABSENT

if TYPE_CHECKING:
    from fakeamqp.faults.amqp_0_9_1.units import MethodUnit

__all__ = ["look"]


def look(unit: MethodUnit, name: str) -> tuple[Any, ...]:
    """All values that a unit has for what a condition is about: something of many, a field, or a property."""
    read = _READERS.get(name)
    if read is not None:
        return read(unit)
    method = unit.method
    value = getattr(method, name, getattr(method, f"{name}_", ABSENT))
    if value is not ABSENT:
        return (value,)
    return _property(unit, name)


def _messages(unit: MethodUnit) -> tuple[Any, ...]:
    """The messages that a settlement is about, as the broker has them."""
    method = unit.method
    if unit.direction == "received" and hasattr(method, "delivery_tag"):
        multiple = getattr(method, "multiple", False)
        return unit.line.held_messages(unit.channel, method.delivery_tag, multiple)
    return ()


def _reads_address(field: str) -> Callable[[MethodUnit], tuple[Any, ...]]:
    """Of what exchange or routing key a method speaks, be it by the message that it settles."""

    def read(unit: MethodUnit) -> tuple[Any, ...]:
        value = getattr(unit.method, field, ABSENT)
        if value is not ABSENT:
            return (value,)
        if unit.settles:
            return tuple(getattr(publish.method, field) for publish in unit.settles)
        return tuple(getattr(message, field) for _, message in _messages(unit))

    return read


def _read_queue(unit: MethodUnit) -> tuple[Any, ...]:
    method = unit.method
    line = unit.line
    if unit.queues is not None:
        return unit.queues
    if unit.name == "basic.publish":
        return line.destinations(unit.channel, method, unit.properties)
    if unit.settles:
        return tuple(name for publish in unit.settles for name in _read_queue(publish))
    if hasattr(method, "queue"):
        return (method.queue,)
    if hasattr(method, "consumer_tag"):
        queue = line.consumed_queue(unit.channel, method.consumer_tag)
        return () if queue is None else (queue,)
    return tuple(name for name, _ in _messages(unit))


def _read_exchange_type(unit: MethodUnit) -> tuple[Any, ...]:
    if unit.name == "exchange.declare":
        return (unit.method.type,)
    return tuple(
        kind for name in _READERS["exchange"](unit) if (kind := unit.line.exchange_type(name)) is not None
    )


def _read_body(unit: MethodUnit) -> tuple[Any, ...]:
    if unit.has_content:
        return (unit.body,)
    if unit.settles:
        return tuple(publish.body for publish in unit.settles)
    return tuple(message.body for _, message in _messages(unit))


def _property(unit: MethodUnit, name: str) -> tuple[Any, ...]:
    if unit.has_content:
        return (getattr(unit.properties, name, ABSENT),)
    if unit.settles:
        return tuple(getattr(publish.properties, name, ABSENT) for publish in unit.settles)
    return tuple(getattr(message.properties, name, ABSENT) for _, message in _messages(unit))


_READERS: dict[str, Callable[[MethodUnit], tuple[Any, ...]]] = {
    "exchange": _reads_address("exchange"),
    "routing_key": _reads_address("routing_key"),
    "queue": _read_queue,
    "exchange_type": _read_exchange_type,
    "body": _read_body,
    "headers": lambda unit: _property(unit, "headers"),
    "channel": lambda unit: (unit.channel,),
    "session": lambda unit: (),
}
"""What can be asked of any method, beside its own fields."""
