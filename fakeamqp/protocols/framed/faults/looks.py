"""What conditions find in a unit of the family."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.units import ABSENT

if TYPE_CHECKING:
    from fakeamqp.protocols.framed.faults.units import FamilyUnit

__all__ = ["look"]


def look(unit: FamilyUnit, name: str) -> tuple[Any, ...]:
    """All values that a unit has for what a condition is about: something of many, a field, or a property."""
    read = _READERS.get(name)
    if read is not None:
        return read(unit)
    value = unit.field(name)
    if value is not ABSENT:
        return (value,)
    return _property(unit, name)


def _reads_address(field: str) -> Callable[[FamilyUnit], tuple[Any, ...]]:
    """Of what exchange or routing key a method speaks, be it by the message that it settles."""

    def read(unit: FamilyUnit) -> tuple[Any, ...]:
        value = unit.field(field)
        if value is not ABSENT:
            return (value,)
        if unit.settles:
            return tuple(publish.field(field) for publish in unit.settles)
        return tuple(getattr(message, field) for _, message in unit.held_messages())

    return read


def _read_queue(unit: FamilyUnit) -> tuple[Any, ...]:
    line = unit.line
    if unit.queues is not None:
        return unit.queues
    if unit.published_to is not None:
        return unit.destinations()
    if unit.settles:
        return tuple(name for publish in unit.settles for name in _read_queue(publish))
    if hasattr(unit.method, "queue"):
        return (unit.method.queue,)
    if unit.consumer is not None:
        queue = line.consumed_queue(unit.channel, unit.consumer)
        return () if queue is None else (queue,)
    return tuple(name for name, _ in unit.held_messages())


def _read_exchange_type(unit: FamilyUnit) -> tuple[Any, ...]:
    if unit.name == "exchange.declare":
        return (unit.method.type,)
    return tuple(
        kind for name in _READERS["exchange"](unit) if (kind := unit.line.exchange_type(name)) is not None
    )


def _read_body(unit: FamilyUnit) -> tuple[Any, ...]:
    if unit.brings_message:
        return (unit.body,)
    if unit.settles:
        return tuple(publish.body for publish in unit.settles)
    return tuple(message.body for _, message in unit.held_messages())


def _property(unit: FamilyUnit, name: str) -> tuple[Any, ...]:
    if unit.brings_message:
        return (getattr(unit.properties, name, ABSENT),)
    if unit.settles:
        return tuple(getattr(publish.properties, name, ABSENT) for publish in unit.settles)
    return tuple(getattr(message.properties, name, ABSENT) for _, message in unit.held_messages())


_READERS: dict[str, Callable[[FamilyUnit], tuple[Any, ...]]] = {
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
