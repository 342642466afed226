"""Every event of the model, declared once: its name, its fields in order, and when it happens.

The model reports an event with `Tap.event`, by its name and with the values of its fields. The entries of
traces, their recordings and tables, the histories of outcomes and the counts of the HTTP API read the values
by the names of the fields, so a new field is one word here, and a value where the event is reported.

This module imports nothing, so that traces can read it without the model.
"""

from __future__ import annotations


class _Absent:
    """The type of `ABSENT`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()
"""The value of a field that an event does not have this time."""


class EventDeclaration:
    """One event of the model.

    Args:
        name: its name, as in a trace.
        fields: the names of its fields, separated by spaces; `message` first, if the event is about one.
        happens: when it happens.
        kept: the names of further fields, which the history of outcomes has and a trace does not.
    """

    __slots__ = ("_given", "fields", "happens", "kept", "name", "of_message")

    def __init__(self, name: str, fields: str, happens: str, *, kept: str = "") -> None:
        self.name: str = name
        self.fields: tuple[str, ...] = tuple(fields.split())
        self.kept: tuple[str, ...] = tuple(kept.split())
        self.happens: str = happens
        self.of_message: bool = "message" in self.fields
        self._given: frozenset[str] = frozenset(self.fields + self.kept)

    def values(self, facts: dict[str, object]) -> tuple[object, ...]:
        """The values for `Tap.event` after the message, from values by name; TypeError for a wrong name."""
        if unknown := facts.keys() - self._given:
            raise TypeError(f"event {self.name!r} has no field {', '.join(sorted(unknown))}")
        return tuple([facts.get(name, ABSENT) for name in self.fields if name != "message"])

    def facts(self, connection: str | None, message: object, values: tuple[object, ...]) -> dict[str, object]:
        """The values by name, from what `Tap.event` was called with, and the connection's name."""
        facts: dict[str, object] = {}
        others = iter(values)
        for name in self.fields:
            if name == "message":
                value = message
            elif name == "connection" and connection is not None:
                value = connection
            else:
                value = next(others, ABSENT)
            if value is not ABSENT:
                facts[name] = value
        return facts


_DELIVERY = "message queue consumer connection channel delivery_tag"
"""A delivery. The consumer is None for a get; in 0-10 it is the destination, and the tag a command id."""
_SETTLEMENT = f"{_DELIVERY} detail virtual_host"
_CONSUMER = "queue consumer connection channel no_ack prefetch shares_prefetch acquires virtual_host"
_SESSION = "session connection channel detail code virtual_host"
_BINDING = "queue to exchange routing_key virtual_host"

EVENTS: dict[str, EventDeclaration] = {
    each.name: each
    for each in (
        # --- messages -----------------------------------------------------------------------------------
        EventDeclaration(
            "published",
            "message outcome virtual_host",
            "A message was published and routed; the queues in `outcome` get it next.",
        ),
        EventDeclaration(
            "refused",
            "message outcome virtual_host",
            "Full queues refused the message: this outcome replaces the one of its event `published`.",
        ),
        EventDeclaration(
            "enqueued",
            "message queue virtual_host",
            "A message reached a queue. The model reports late ones only.",
        ),
        EventDeclaration(
            "delivered",
            f"{_DELIVERY} redelivered",
            "A message goes from a queue to a consumer or a get. The frames follow.",
        ),
        EventDeclaration("acked", _SETTLEMENT, "A client is about to accept a delivery."),
        EventDeclaration("rejected", _SETTLEMENT, "A client is about to reject a delivery."),
        EventDeclaration(
            "requeued",
            _SETTLEMENT,
            "A delivery is about to return to its queue: its client released it or held it too long, or its "
            "channel, session or connection ended.",
        ),
        EventDeclaration(
            "expired",
            "message queue virtual_host",
            "The time to live of a message is over. `dead-lettered` or `dropped` follows.",
        ),
        EventDeclaration(
            "dead-lettered",
            "message queue reason exchange outcome virtual_host",
            "A message left a queue as a dead letter, and the exchange routed it as `outcome` says.",
            kept="routing_key",
        ),
        EventDeclaration("delay over", "message exchange outcome", "An exchange routed a delayed message."),
        EventDeclaration(
            "dropped",
            "message queue reason detail virtual_host",
            "A message was dropped. `queue` held or refused it, None where there was none.",
        ),
        EventDeclaration(
            "returned",
            "message code text virtual_host",
            "A message was returned to its publisher.",
            kept="channel",
        ),
        # --- entities -----------------------------------------------------------------------------------
        EventDeclaration("queue declared", "queue type connection virtual_host", "A queue was created."),
        EventDeclaration("queue deleted", "queue detail virtual_host", "A queue was deleted."),
        EventDeclaration(
            "queue purged", "queue messages connection channel virtual_host", "A client purged a queue."
        ),
        EventDeclaration("exchange declared", "exchange type virtual_host", "An exchange was created."),
        EventDeclaration("exchange deleted", "exchange virtual_host", "An exchange was deleted."),
        EventDeclaration("bound", _BINDING, "A queue, or the exchange `to`, was bound to an exchange."),
        EventDeclaration("unbound", _BINDING, "A binding was removed."),
        EventDeclaration("consumer added", _CONSUMER, "A consumer began; `acquires` is False for a browser."),
        EventDeclaration("consumer ended", _CONSUMER, "A consumer was cancelled, or has lost its queue."),
        EventDeclaration("session attached", _SESSION, "A session of 0-10 was attached to a connection."),
        EventDeclaration("session detached", _SESSION, "A session of 0-10 was detached."),
        EventDeclaration("session failed", _SESSION, "A session of 0-10 ended with an exception."),
        # --- distributed transactions -------------------------------------------------------------------
        EventDeclaration("branch started", "branch virtual_host", "A branch was started."),
        EventDeclaration("branch prepared", "branch virtual_host", "A branch was prepared."),
        EventDeclaration("branch committed", "branch virtual_host", "A branch was committed."),
        EventDeclaration("branch rolled back", "branch virtual_host", "A branch was rolled back."),
        EventDeclaration(
            "branch forgotten", "branch virtual_host", "A heuristically completed branch was removed."
        ),
        EventDeclaration("branch timed out", "branch virtual_host", "A branch was undone after its timeout."),
        EventDeclaration(
            "branch completed heuristically", "branch outcome virtual_host", "A test completed a branch."
        ),
        EventDeclaration(
            "branch answered", "branch outcome virtual_host", "A request about a branch had another result."
        ),
        # --- the broker ---------------------------------------------------------------------------------
        EventDeclaration(
            "memory alarm", "octets limit most", "Messages take more bytes than the limit; publishers wait."
        ),
        EventDeclaration("memory alarm over", "octets limit", "Messages take fewer bytes again."),
    )
}
