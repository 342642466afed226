"""What a message carries after it died in a queue: the `x-death` history (RabbitMQ: documented).

One entry per (queue, reason), the latest death first; an entry met again counts up and moves to the
front. The first and the last death are repeated in headers of their own.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from fakeamqp.model.message import Message

if TYPE_CHECKING:
    from fakeamqp.model.queue import DeathReason, Queue

__all__ = ["dead_lettered", "is_cycle"]


def dead_lettered(queue: Queue, message: Message, reason: DeathReason, time: float) -> Message:
    """The message as it goes on to the dead-letter exchange of `queue`. `time` is in seconds since 1970."""
    options = queue.options
    headers = message.headers
    keys = [message.routing_key, *carbon_copies(headers.get("CC"))]
    entry: dict[str, Any] = {
        "count": 1,
        "reason": reason,
        "queue": queue.name,
        "time": datetime.fromtimestamp(int(time), timezone.utc),
        "exchange": message.exchange,
        "routing-keys": keys,
    }
    if message.properties.expiration is not None:
        entry["original-expiration"] = message.properties.expiration
    deaths = []
    for death in _deaths(message):
        if death.get("queue") == queue.name and death.get("reason") == reason:
            entry = {**death, "count": int(death.get("count", 0)) + 1}
        else:
            deaths.append(death)
    changes: dict[str, Any] = {"x-death": [entry, *deaths]}
    if "x-first-death-queue" not in headers:
        changes.update(_summary("first", queue.name, reason, message.exchange))
    changes.update(_summary("last", queue.name, reason, message.exchange))
    routing_key = options.dead_letter_routing_key
    # A key of its own replaces all the message had, so the copies' keys go.
    remove = () if routing_key is None else ("CC",)
    properties = message.properties.with_headers(changes, remove).replace(expiration=None)
    dead = Message(
        options.dead_letter_exchange or "",
        message.routing_key if routing_key is None else routing_key,
        properties,
        message.body,
        publisher=message.publisher,
        published_at=time,
    )
    dead.secured = message.secured
    return dead


def is_cycle(queue_name: str, message: Message) -> bool:
    """Whether the message comes back to a queue it died in with no client having rejected it in between."""
    since = []
    for death in _deaths(message):
        since.append(death)
        if death.get("queue") == queue_name:
            return all(each.get("reason") != "rejected" for each in since)
    return False


def carbon_copies(value: Any) -> list[str]:
    """The further routing keys in a CC or BCC header."""
    return [key for key in value if isinstance(key, str)] if isinstance(value, list) else []


def _deaths(message: Message) -> list[dict[str, Any]]:
    deaths = message.headers.get("x-death")
    return [death for death in deaths if isinstance(death, dict)] if isinstance(deaths, list) else []


def _summary(which: str, queue: str, reason: str, exchange: str) -> dict[str, Any]:
    return {
        f"x-{which}-death-exchange": exchange,
        f"x-{which}-death-queue": queue,
        f"x-{which}-death-reason": reason,
    }
