"""The queues of each method, also if it names none: a delivery by its consumer, an ack by its tag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = ["Queues", "queues_of"]

#: connection, channel, direction
Place: TypeAlias = tuple[int, int, int]

_MOST_WAITING = 200
_CONSUMES = frozenset(("basic.consume", "file.consume", "stream.consume"))
_CONSUMED = frozenset(f"{name}-ok" for name in _CONSUMES)
_WITH_CONSUMER_TAG = frozenset(
    f"{content}.{method}"
    for content in ("basic", "file", "stream")
    for method in ("deliver", "cancel", "cancel-ok")
)
_UNSETTLED = frozenset(("basic.deliver", "basic.get-ok", "file.deliver"))
_SETTLES = frozenset(("basic.ack", "basic.nack", "basic.reject", "file.ack", "file.reject"))
_WITH_DESTINATION = frozenset(("message.subscribe", "message.consume", "message.get"))
"""Commands with a destination and the queue that its messages come from."""


def queues_of(facts: Mapping[str, object]) -> list[str]:
    """The names of the queues in the facts of an event."""
    found: dict[str, None] = {}
    for value in (facts.get("queue"), *(getattr(facts.get("outcome"), "queues", None) or ())):
        name = value if isinstance(value, str) else getattr(value, "name", None)
        if isinstance(name, str):
            found[name] = None
    return list(found)


class Queues:
    """The state of consumers and deliveries, updated method by method."""

    def __init__(self) -> None:
        self._declared: dict[tuple[int, int], str] = {}
        self._asked: dict[tuple[int, int], str] = {}
        self._consumers: dict[tuple[int, int, str], str] = {}
        self._unsettled: dict[tuple[int, int], dict[int, str]] = {}
        self._publishes: dict[int, list[tuple[object, object, list[Any]]]] = {}

    def seen(self, place: Place, method: Any) -> list[str]:
        """The queues of `method`."""
        connection, channel, _ = place
        here = (connection, channel)
        name = method.NAME
        tag = getattr(method, "delivery_tag", 0)
        consumer = (*here, str(getattr(method, "consumer_tag", "")))
        queue = getattr(method, "queue", None)
        if name == "queue.declare-ok" and queue:
            self._declared[here] = queue
        elif name == "basic.publish":
            key = getattr(method, "routing_key", "")
            return [key] if key and not getattr(method, "exchange", "") else []
        elif isinstance(queue, str) and not queue and name != "queue.declare":
            queue = self._declared.get(here)  # an empty name means the queue declared last
        if (name in _CONSUMES or name == "basic.get") and queue:
            self._asked[here] = queue
            if name in _CONSUMES and consumer[2]:
                self._consumers[consumer] = queue
        elif name in ("basic.get-ok", "basic.get-empty"):
            queue = self._asked.get(here)
        elif name in _CONSUMED:
            queue = self._consumers.setdefault(consumer, self._asked.get(here, ""))
        elif name in _WITH_CONSUMER_TAG:
            queue = self._consumers.get(consumer) or queue
        elif name in _SETTLES and place[2] == 0:
            return self._settled(here, tag, bool(getattr(method, "multiple", False)))
        elif name.startswith("message.") and hasattr(method, "destination"):
            consumer = (*here, method.destination or "")
            if name in _WITH_DESTINATION and queue:
                self._consumers[consumer] = queue
            elif name != "message.transfer" or place[2] == 1:
                queue = self._consumers.get(consumer)
        if name in _UNSETTLED and queue:
            self._unsettled.setdefault(here, {})[tag] = queue
        return [queue] if queue else []

    def _settled(self, here: tuple[int, int], tag: int, multiple: bool) -> list[str]:
        unsettled = self._unsettled.get(here, {})
        tags = [other for other in unsettled if other <= tag or not tag] if multiple else [tag]
        return list(dict.fromkeys(unsettled.pop(other) for other in tags if other in unsettled))

    # --- the queues of a publish, which only the event after it tells ---------------------------------

    def published(self, place: Place, method: Any, row: list[Any]) -> None:
        """Remember the row of a publish until its outcome is known."""
        waiting = self._publishes.setdefault(place[0], [])
        del waiting[: len(waiting) - _MOST_WAITING]
        waiting.append((getattr(method, "exchange", ""), getattr(method, "routing_key", ""), row))

    def outcome(self, connection: int, message: object) -> list[Any] | None:
        """Remove and return the row of the oldest publish that `message` may come from."""
        address = (getattr(message, "exchange", None), getattr(message, "routing_key", None))
        waiting = self._publishes.get(connection, [])
        for index, (*published, row) in enumerate(waiting):
            if tuple(published) == address:
                del waiting[: index + 1]
                return row
        return None
