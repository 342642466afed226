"""The text of connection events and model events. Facts are read by their names and attributes only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from fakeamqp.trace.rendering import one_line, short

__all__ = ["connection_text", "model_text", "publisher_name", "reason_text"]

Facts: TypeAlias = Mapping[str, object]

_REASONS = {
    "rejected": "it was rejected",
    "expired": "it had expired",
    "maxlen": "the queue was full",
    "delivery_limit": "it was delivered too often",
    "deleted": "the queue was deleted",
    "unroutable": "no queue was there for it",
    "cycle": "it had died there before",
    "purged": "the queue was purged",
    "restart": "the broker restarted",
    "crash": "the broker crashed",
    "retention": "the stream had become too large or the message too old",
    "unstorable": "the stream cannot store it",
    "local": "it came over the connection that the queue is exclusive to",
    "replaced": "a newer message with the same value came",
}
_DEATHS = frozenset(("rejected", "expired", "maxlen", "delivery_limit"))


def connection_text(event: str, connection: str, detail: str) -> str:
    """The line of a connection event."""
    if event == "connected":
        detail = f"{connection} {detail}".rstrip()
    return one_line(f"{event}: {detail}" if detail else event)


def model_text(event: str, facts: Facts, alias: str = "") -> str:
    """The line of a model event. An unknown event is shown with all of its facts.

    Args:
        event: its name.
        facts: what the broker reported, by name.
        alias: the short name of the client's connection.
    """
    try:
        say = _WORDS.get(event)
        if say is not None:
            return one_line(say(event, facts, alias))
        words = [event, *(f"{name}={_said(value)}" for name, value in facts.items())]
        return one_line(" ".join(words))
    except Exception as error:  # One broken fact must not prevent the timeline.
        return f"{one_line(event)} (its facts cannot be shown: {type(error).__name__})"


def publisher_name(facts: Facts) -> str | None:
    """The name of the connection that published the message an event is about."""
    name = getattr(getattr(facts.get("message"), "publisher", None), "name", None)
    return name if isinstance(name, str) else None


def reason_text(reason: str) -> str:
    """Why a message was dropped or dead-lettered, as the end of a sentence with "because"."""
    return _REASONS.get(reason, f"of {reason}")


# --- messages -----------------------------------------------------------------------------------------


def _published(_event: str, facts: Facts, _alias: str) -> str:
    message = facts["message"]
    address = f"exchange={short(getattr(message, 'exchange', None))} "
    address += f"routing_key={short(getattr(message, 'routing_key', None))}"
    return f"message with {address}{_elsewhere(facts)}: {facts['outcome']}"


def _enqueued(event: str, facts: Facts, _alias: str) -> str:
    return f"{_message(facts)} {event} in queue {short(facts['queue'])}{_elsewhere(facts)}"


def _delivered(event: str, facts: Facts, alias: str) -> str:
    consumer = facts["consumer"]
    whom = "a get" if consumer is None else f"consumer {short(consumer)}"
    again = ", redelivered" if facts["redelivered"] else ""
    return f"{_message(facts)} {event} from queue {short(facts['queue'])} to {whom}{_on(facts, alias)}{again}"


def _settled(event: str, facts: Facts, alias: str) -> str:
    consumer = facts.get("consumer")
    whom = "" if consumer is None else f" by consumer {short(consumer)}"
    why = f" because {facts['detail']}" if facts.get("detail") else ""
    return f"{_message(facts)} of queue {short(facts['queue'])} {event}{whom}{_on(facts, alias)}{why}"


def _delay_over(_event: str, facts: Facts, _alias: str) -> str:
    exchange = short(facts.get("exchange"))
    place = f"exchange {exchange}{_elsewhere(facts)}"
    return f"{_message(facts)} published by {place} after its delay: {facts['outcome']}"


def _expired(event: str, facts: Facts, _alias: str) -> str:
    return f"{_message(facts)} {event} in queue {short(facts['queue'])}{_elsewhere(facts)}"


def _died(event: str, facts: Facts, _alias: str) -> str:
    reason = str(facts.get("reason"))
    queue = facts.get("queue")
    place = "" if queue is None and reason != "None" else f" from queue {short(queue)}"
    if event == "dead-lettered" and "exchange" in facts:
        place += f" to exchange {short(facts['exchange'])}"
    why = reason_text(reason)
    detail = str(facts.get("detail") or why)
    # `detail` tells why the message was not dead-lettered.
    why = f"{why}, and {detail}" if reason in _DEATHS and not detail.startswith(why) else detail
    return f"{_message(facts)} {event}{place}{_elsewhere(facts)} because {why}"


def _returned(event: str, facts: Facts, _alias: str) -> str:
    return f"{_message(facts)} {event} to its publisher: {facts['code']} {facts['text']}"


# --- other events -----------------------------------------------------------------------------------------


def _declared(event: str, facts: Facts, _alias: str) -> str:
    kind = event.partition(" ")[0]
    return f"{kind} {short(facts[kind])} of type {facts['type']} declared{_elsewhere(facts)}"


def _deleted(event: str, facts: Facts, _alias: str) -> str:
    kind = event.partition(" ")[0]
    detail = facts.get("detail")
    why = f": {detail}" if detail and detail != "the queue was deleted" else ""
    return f"{kind} {short(facts[kind])} deleted{_elsewhere(facts)}{why}"


def _purged(_event: str, facts: Facts, _alias: str) -> str:
    count = facts["messages"]
    what = f"{count} message{'' if count == 1 else 's'}"
    return f"queue {short(facts['queue'])} purged of {what}{_elsewhere(facts)}"


def _bound(event: str, facts: Facts, _alias: str) -> str:
    what = f"queue {short(facts['queue'])}" if "queue" in facts else f"exchange {short(facts['to'])}"
    link = "to" if event == "bound" else "from"
    key = short(facts["routing_key"])
    return (
        f"{what} {event} {link} exchange {short(facts['exchange'])} by routing key {key}{_elsewhere(facts)}"
    )


def _consumer(event: str, facts: Facts, alias: str) -> str:
    consumer, queue = short(facts["consumer"]), short(facts["queue"])
    what = f"added to queue {queue}" if event == "consumer added" else f"of queue {queue} ended"
    return f"consumer {consumer} {what}{_on(facts, alias)}{_elsewhere(facts)}"


def _session(event: str, facts: Facts, alias: str) -> str:
    detail = facts.get("detail")
    why = f": {detail}" if detail else ""
    what = event.partition(" ")[2]
    return f"session {short(facts['session'])} {what}{_on(facts, alias)}{_elsewhere(facts)}{why}"


# --- parts of sentences -------------------------------------------------------------------------------


def _message(facts: Facts) -> str:
    return f"message {short(getattr(facts.get('message'), 'body', None))}"


def _on(facts: Facts, alias: str) -> str:
    """The connection and the channel, if known."""
    channel = facts.get("channel")
    words = [alias] if alias else []
    if channel is not None:
        words.append(f"channel {channel}")
    return f" on {' '.join(words)}" if words else ""


def _elsewhere(facts: Facts) -> str:
    """The virtual host, unless it is "/"."""
    name = facts.get("virtual_host", "/")
    return "" if name == "/" else f" in virtual host {short(name)}"


def _said(value: object) -> str:
    """Strings, numbers and collections as source code, any other value by its `str`."""
    return (
        short(value) if isinstance(value, (str, bytes, int, float, list, dict)) else one_line(str(value), 120)
    )


_WORDS: dict[str, Callable[[str, Facts, str], str]] = {
    "published": _published,
    "enqueued": _enqueued,
    "delivered": _delivered,
    "acked": _settled,
    "rejected": _settled,
    "requeued": _settled,
    "delay over": _delay_over,
    "expired": _expired,
    "dead-lettered": _died,
    "dropped": _died,
    "returned": _returned,
    "queue declared": _declared,
    "queue deleted": _deleted,
    "queue purged": _purged,
    "exchange declared": _declared,
    "exchange deleted": _deleted,
    "bound": _bound,
    "unbound": _bound,
    "consumer added": _consumer,
    "consumer ended": _consumer,
    "session attached": _session,
    "session detached": _session,
    "session failed": _session,
}
