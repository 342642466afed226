"""Events of the model in words. Facts are known by their names and attributes alone."""

from __future__ import annotations

from collections.abc import Mapping

from fakeamqp.trace.words import one_line, short

__all__ = ["connection_text", "model_text", "publisher_name"]

_REASONS = {
    "rejected": "it was rejected",
    "expired": "it had expired",
    "maxlen": "the queue was full",
    "delivery_limit": "it was delivered too often",
}


def connection_text(event: str, connection: str, detail: str) -> str:
    """What happened to a connection."""
    if event == "connected":
        detail = f"{connection} {detail}".rstrip()
    return one_line(f"{event}: {detail}" if detail else event)


def model_text(event: str, facts: Mapping[str, object]) -> str:
    """What happened in the model. Of an event not known here, everything it says."""
    try:
        if event == "published":
            return _published(facts)
        if event == "delay over":
            return _delay_over(facts)
        if event == "expired":
            return _expired(facts)
        if event in ("dropped", "dead-lettered"):
            return _died(event, facts)
        words = [event, *(f"{name}={_said(value)}" for name, value in facts.items())]
        return one_line(" ".join(words))
    except Exception as error:  # A line about a broken fact is worth more than no timeline.
        return f"{one_line(event)} (its facts cannot be shown: {type(error).__name__})"


def publisher_name(facts: Mapping[str, object]) -> str | None:
    """The name of the connection that published the message an event is about."""
    name = getattr(getattr(facts.get("message"), "publisher", None), "name", None)
    return name if isinstance(name, str) else None


def _published(facts: Mapping[str, object]) -> str:
    message = facts["message"]
    address = f"exchange={short(getattr(message, 'exchange', None))} "
    address += f"routing_key={short(getattr(message, 'routing_key', None))}"
    where = "" if facts.get("virtual_host") == "/" else f" in virtual host {short(facts.get('virtual_host'))}"
    return one_line(f"message with {address}{where}: {facts['outcome']}")


def _delay_over(facts: Mapping[str, object]) -> str:
    body = short(getattr(facts.get("message"), "body", None))
    exchange = short(facts.get("exchange"))
    return one_line(f"message {body} published by exchange {exchange} after its delay: {facts['outcome']}")


def _expired(facts: Mapping[str, object]) -> str:
    body = short(getattr(facts.get("message"), "body", None))
    return one_line(f"message {body} expired in queue {short(facts.get('queue'))}")


def _died(event: str, facts: Mapping[str, object]) -> str:
    reason = str(facts.get("reason"))
    body = short(getattr(facts.get("message"), "body", None))
    said = _REASONS.get(reason, f"of {reason}")
    return one_line(f"message {body} {event} from queue {short(facts.get('queue'))} because {said}")


def _said(value: object) -> str:
    """Strings and numbers as they are written, anything else as it calls itself."""
    return (
        short(value) if isinstance(value, (str, bytes, int, float, list, dict)) else one_line(str(value), 120)
    )
