"""Filters of a source and properties of a link that become arguments of a consumer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from fakeamqp.protocols.amqp_1_0.codec.types import Array, Described, Int, Milliseconds, Symbol, UInt
from fakeamqp.timestamps import Timestamp

if TYPE_CHECKING:
    from fakeamqp.model.queues import Queue
    from fakeamqp.protocols.amqp_1_0.session import Amqp10Session

_FILTERS: Final[Mapping[str, str]] = {
    "rabbitmq:stream-offset-spec": "x-stream-offset",
    "rabbitmq:stream-filter": "x-stream-filter",
    "rabbitmq:stream-match-unfiltered": "x-stream-match-unfiltered",
}
"""Descriptor of a filter -> argument of a consumer."""
_PRIORITY: Final = "rabbitmq:priority"
_TIMEOUT: Final = "rabbitmq:consumer-timeout"


def consumer_arguments(
    session: Amqp10Session, queue: Queue, filters: Mapping[Any, Any], properties: Mapping[Any, Any]
) -> tuple[dict[str, Any], dict[Any, Any]]:
    """The arguments of the consumer, and the filters that are in force.

    A filter that the queue does not have is left out, without an error.
    """
    arguments: dict[str, Any] = {}
    effective: dict[Any, Any] = {}
    bare = not session.choices.filters_need_descriptors or _permitted(session)
    for key, value in filters.items():
        if isinstance(value, Described):
            name, content = value.descriptor, value.value
        elif bare:
            name, content = key, value
        else:
            continue
        argument = _FILTERS.get(name) if isinstance(name, str) else None
        if argument is None or not queue.keeps_delivered:
            continue
        arguments[argument] = _plain(content)
        effective[key] = value
    priority = properties.get(_PRIORITY)
    if type(priority) is Int:  # Other numbers are ignored (RabbitMQ: measured on 4.3.6).
        arguments["x-priority"] = int(priority)
    timeout = properties.get(_TIMEOUT)
    if (
        type(timeout) is UInt
        and "x-consumer-timeout" in session.connection.personality.consumer_arguments[queue.type_name]
    ):
        arguments["x-consumer-timeout"] = int(timeout)
    return arguments, effective


def _permitted(session: Amqp10Session) -> bool:
    return session.broker.features.permitted("amqp_filter_set_bug")


def _plain(value: Any) -> Any:
    """The value of a filter as an argument of 0-9-1."""
    if isinstance(value, Milliseconds):
        return Timestamp(value // 1000)
    if isinstance(value, (list, Array)):
        return [_plain(each) for each in value]
    if isinstance(value, Symbol):
        return str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return value
