"""Views of returned, dead-lettered and dropped messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.inspect.messages import (
    ContentView,
    Recorded,
    V,
    content_of,
    elsewhere,
    instant,
    name_of,
    no_history,
)

if TYPE_CHECKING:
    from datetime import datetime

    from fakeamqp.model.history import History
    from fakeamqp.model.state import BrokerState

__all__ = [
    "DeadLettered",
    "DeadLetteredView",
    "Dropped",
    "DroppedView",
    "Returned",
    "ReturnedView",
    "dead_lettered_views",
    "dropped_views",
    "returned_views",
]


@dataclass(frozen=True, kw_only=True, repr=False)
class ReturnedView(ContentView):
    """One message returned to its publisher (basic.return).

    Args:
        virtual_host: the virtual host of the publish.
        reply_code: the reason as a number: 312 for an unroutable message.
        reply_text: the reason as text: "NO_ROUTE".
        when: the time on the broker's clock; an aware datetime in UTC.
        connection: the name of the publisher's connection.
        channel: the number of the publisher's channel.
    """

    virtual_host: str
    reply_code: int
    reply_text: str
    when: datetime
    connection: str | None = None
    channel: int | None = None

    @property
    def reason(self) -> str:
        """The reply code and text."""
        return f"{self.reply_code} {self.reply_text}"

    def __repr__(self) -> str:
        return f"<returned {self.said()}{elsewhere(self.virtual_host)}: {self.reason}>"


@dataclass(frozen=True, kw_only=True, repr=False)
class DeadLetteredView(ContentView):
    """One dead-lettered message, with the exchange, routing key and properties it had in its queue.

    Args:
        virtual_host: the virtual host of the queue.
        queue: the name of the queue that dead-lettered it.
        reason: "rejected", "expired", "maxlen", "delivery_limit", or "deleted" in personality `spec`.
        when: the time on the broker's clock when the target queues accepted it; an aware datetime in UTC.
        dead_letter_exchange: the exchange that routed it.
        dead_letter_routing_key: the routing key that it was routed with.
        queues: the names of the queues that accepted it.
        connection: the name of the publisher's connection; None if the test published it.
    """

    virtual_host: str
    queue: str
    reason: str
    when: datetime
    dead_letter_exchange: str
    dead_letter_routing_key: str
    queues: tuple[str, ...]
    connection: str | None = None

    def __repr__(self) -> str:
        where = ", ".join(f"queue {name!r}" for name in self.queues) or "nowhere yet"
        return (
            f"<dead-lettered {self.said()}{elsewhere(self.virtual_host)}: {self.reason} in queue "
            f"{self.queue!r}, passed on by exchange {self.dead_letter_exchange!r} to {where}>"
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class DroppedView(ContentView):
    """One message that was lost before a client has settled it.

    Args:
        virtual_host: the virtual host of the message.
        queue: the name of the queue that held or refused it; None without a queue.
        reason: a reason of dead-lettering ("rejected", "expired", "maxlen", "delivery_limit"), or
            "unroutable", "deleted" (with its queue), "purged", "restart", "crash", "cycle" (of dead letters),
            "retention" or "unstorable" (streams), "local" or "replaced" (queues with arguments of Apache's
            brokers).
        detail: the reason as a sentence.
        when: the time on the broker's clock; an aware datetime in UTC.
        connection: the name of the publisher's connection; None if the test published it.
    """

    virtual_host: str
    queue: str | None
    reason: str
    detail: str
    when: datetime
    connection: str | None = None

    def __repr__(self) -> str:
        what = self.reason if self.queue is None else f"{self.reason} in queue {self.queue!r}"
        return f"<dropped {self.said()}{elsewhere(self.virtual_host)}: {what}, because {self.detail}>"


class _Outcomes(Recorded[V, Any]):
    """Outcomes of one kind. A view takes the fields that it declares from the event of the model."""

    __slots__ = ()
    _view: ClassVar[type]
    _names: ClassVar[Mapping[str, str]] = {}
    """The fields of the view by those of the event, where they differ."""

    @classmethod
    def view(cls, record: Any) -> Any:
        """The view of one record."""
        values = record._asdict()
        message = values.pop("message")
        values |= {"when": instant(values["when"]), "connection": name_of(message.publisher)}
        if "outcome" in values:
            values["queues"] = tuple(queue.name for queue in values.pop("outcome").queues)
        facts = {cls._names.get(name, name): value for name, value in values.items()}
        shown = {each.name: facts[each.name] for each in fields(cls._view) if each.name in facts}
        return cls._view(**{**content_of(message), **shown})


class Returned(_Outcomes[ReturnedView]):
    """The returned messages, oldest first; immutable."""

    __slots__ = ()
    word = "returned"
    _view = ReturnedView
    _names: ClassVar[Mapping[str, str]] = {"code": "reply_code", "text": "reply_text"}


class DeadLettered(_Outcomes[DeadLetteredView]):
    """The dead-lettered messages, oldest first; immutable."""

    __slots__ = ()
    word = "dead-lettered"
    _view = DeadLetteredView
    _names: ClassVar[Mapping[str, str]] = {
        "exchange": "dead_letter_exchange",
        "routing_key": "dead_letter_routing_key",
    }


class Dropped(_Outcomes[DroppedView]):
    """The dropped messages, oldest first; immutable."""

    __slots__ = ()
    word = "dropped"
    _view = DroppedView


def returned_views(state: BrokerState) -> Returned:
    """The returns that the history contains.

    Raises:
        NoHistory: the broker keeps none.
    """
    return Returned.of(returns(state))


def dead_lettered_views(state: BrokerState) -> DeadLettered:
    """The dead letters that the history contains.

    Raises:
        NoHistory: the broker keeps none.
    """
    return DeadLettered.of(dead_letters(state))


def dropped_views(state: BrokerState) -> Dropped:
    """The dropped messages that the history contains.

    Raises:
        NoHistory: the broker keeps none.
    """
    return Dropped.of(drops(state))


def returns(state: BrokerState) -> History[Any]:
    """The records of returns; raises NoHistory if there is no history."""
    return _history(state, Returned.word)


def dead_letters(state: BrokerState) -> History[Any]:
    """The records of dead letters; raises NoHistory if there is no history."""
    return _history(state, DeadLettered.word)


def drops(state: BrokerState) -> History[Any]:
    """The records of dropped messages; raises NoHistory if there is no history."""
    return _history(state, Dropped.word)


def _history(state: BrokerState, word: str) -> History[Any]:
    if state.outcome_histories is None:
        raise no_history(word)
    return state.outcome_histories.of(word)
