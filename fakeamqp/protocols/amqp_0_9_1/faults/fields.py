"""The values that conditions compare in frame groups of 0-9-x."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.faults.frame_group import ABSENT

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.faults.frame_groups import MethodGroup091

__all__ = ["values_of"]


def values_of(group: MethodGroup091, name: str) -> tuple[Any, ...]:
    """All values of a field: one that every method has, a field of the method, or a property."""
    read = _READERS.get(name)
    if read is not None:
        return read(group)
    value = group.field(name)
    if value is not ABSENT:
        return (value,)
    return _property(group, name)


def _reads_address(field: str) -> Callable[[MethodGroup091], tuple[Any, ...]]:
    """Reads the exchange or routing key: of the method, or of the messages that it settles."""

    def read(group: MethodGroup091) -> tuple[Any, ...]:
        value = group.field(field)
        if value is not ABSENT:
            return (value,)
        if group.settles:
            return tuple(publish.field(field) for publish in group.settles)
        return tuple(getattr(message, field) for _, message in group.held_messages())

    return read


def _read_queue(group: MethodGroup091) -> tuple[Any, ...]:
    port = group.port
    if group.queues is not None:
        return group.queues
    if group.published_to is not None:
        return group.destinations()
    if group.settles:
        return tuple(name for publish in group.settles for name in _read_queue(publish))
    if hasattr(group.method, "queue"):
        return (group.method.queue,)
    if group.consumer is not None:
        queue = port.consumed_queue(group.channel, group.consumer)
        return () if queue is None else (queue,)
    return tuple(name for name, _ in group.held_messages())


def _read_exchange_type(group: MethodGroup091) -> tuple[Any, ...]:
    if group.name == "exchange.declare":
        return (group.method.type,)
    return tuple(
        kind for name in _READERS["exchange"](group) if (kind := group.port.exchange_type(name)) is not None
    )


def _read_body(group: MethodGroup091) -> tuple[Any, ...]:
    if group.brings_message:
        return (group.body,)
    if group.settles:
        return tuple(publish.body for publish in group.settles)
    return tuple(message.body for _, message in group.held_messages())


def _property(group: MethodGroup091, name: str) -> tuple[Any, ...]:
    if group.brings_message:
        return (getattr(group.properties, name, ABSENT),)
    if group.settles:
        return tuple(getattr(publish.properties, name, ABSENT) for publish in group.settles)
    return tuple(getattr(message.properties, name, ABSENT) for _, message in group.held_messages())


_READERS: dict[str, Callable[[MethodGroup091], tuple[Any, ...]]] = {
    "exchange": _reads_address("exchange"),
    "routing_key": _reads_address("routing_key"),
    "queue": _read_queue,
    "exchange_type": _read_exchange_type,
    "body": _read_body,
    "headers": lambda group: _property(group, "headers"),
    "channel": lambda group: (group.channel,),
    "session": lambda group: (),
}
"""The fields that every method has for conditions, besides its own."""
