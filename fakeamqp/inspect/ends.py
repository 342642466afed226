"""Messages that no client has dealt with: returned, dead-lettered, dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakeamqp.inspect.messages import (
    ContentView,
    Recorded,
    content_of,
    elsewhere,
    instant,
    name_of,
    no_history,
)
from fakeamqp.model import message_outcomes

if TYPE_CHECKING:
    from datetime import datetime

    from fakeamqp.model.history import History
    from fakeamqp.model.message_outcomes import OutcomeHistories
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
    """One message that its publisher was sent back (basic.return).

    Args:
        virtual_host: where it was published.
        reply_code: why, as a number: 312 where no queue was there for it.
        reply_text: why, in a word: "NO_ROUTE".
        when: on the broker's clock; an aware datetime in UTC.
        connection: the name of the connection that published it.
        channel: the number of the channel.
    """

    virtual_host: str
    reply_code: int
    reply_text: str
    when: datetime
    connection: str | None = None
    channel: int | None = None

    @property
    def reason(self) -> str:
        """Code and text."""
        return f"{self.reply_code} {self.reply_text}"

    def __repr__(self) -> str:
        return f"<returned {self.said()}{elsewhere(self.virtual_host)}: {self.reason}>"


@dataclass(frozen=True, kw_only=True, repr=False)
class DeadLetteredView(ContentView):
    """One message that died in a queue and was passed on; `exchange` and so on are as they were there.

    Args:
        virtual_host: where that was.
        queue: the name of the queue it died in.
        reason: "rejected", "expired", "maxlen", "delivery_limit", or "deleted" in personality `spec`.
        when: it came to where it is now, on the broker's clock; an aware datetime in UTC.
        dead_letter_exchange: the exchange that passed it on.
        dead_letter_routing_key: the routing key it has from there on.
        queues: the names of the queues that have it now.
        connection: the name of the connection that published it; None where the test did.
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
    """One message that is gone without a client having dealt with it.

    Args:
        virtual_host: where that was.
        queue: the name of the queue that had it, or would not have it; None where there was none.
        reason: what it died of, as of dead letters ("rejected", "expired", "maxlen", "delivery_limit"), or
            "unroutable", "deleted" (with its queue), "purged", "restart", "crash", "cycle" (of dead letters),
            "retention" or "unstorable" (streams), "local" or "replaced" (queues with arguments of Apache's
            brokers).
        detail: the same in words.
        when: on the broker's clock; an aware datetime in UTC.
        connection: the name of the connection that published it; None where the test did.
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


class Returned(Recorded[ReturnedView, message_outcomes.Returned]):
    """What publishers were sent back, oldest first; immutable."""

    __slots__ = ()
    word = "returned"

    @staticmethod
    def view(record: message_outcomes.Returned) -> ReturnedView:
        """The view of one return."""
        return ReturnedView(
            **content_of(record.message),
            virtual_host=record.virtual_host,
            reply_code=record.code,
            reply_text=record.text,
            when=instant(record.when),
            connection=name_of(record.message.publisher),
            channel=record.channel,
        )


class DeadLettered(Recorded[DeadLetteredView, message_outcomes.DeadLettered]):
    """What was dead-lettered, oldest first; immutable."""

    __slots__ = ()
    word = "dead-lettered"

    @staticmethod
    def view(record: message_outcomes.DeadLettered) -> DeadLetteredView:
        """The view of one dead letter."""
        return DeadLetteredView(
            **content_of(record.message),
            virtual_host=record.virtual_host,
            queue=record.queue,
            reason=record.reason,
            when=instant(record.when),
            dead_letter_exchange=record.exchange,
            dead_letter_routing_key=record.routing_key,
            queues=tuple(queue.name for queue in record.outcome.queues),
            connection=name_of(record.message.publisher),
        )


class Dropped(Recorded[DroppedView, message_outcomes.Dropped]):
    """What was dropped, oldest first; immutable."""

    __slots__ = ()
    word = "dropped"

    @staticmethod
    def view(record: message_outcomes.Dropped) -> DroppedView:
        """The view of one loss."""
        return DroppedView(
            **content_of(record.message),
            virtual_host=record.virtual_host,
            queue=record.queue,
            reason=record.reason,
            detail=record.detail,
            when=instant(record.when),
            connection=name_of(record.message.publisher),
        )


def returned_views(state: BrokerState) -> Returned:
    """What was returned and is still kept.

    Raises:
        NoHistory: the broker keeps nothing.
    """
    return Returned.of(returns(state))


def dead_lettered_views(state: BrokerState) -> DeadLettered:
    """What was dead-lettered and is still kept.

    Raises:
        NoHistory: the broker keeps nothing.
    """
    return DeadLettered.of(dead_letters(state))


def dropped_views(state: BrokerState) -> Dropped:
    """What was dropped and is still kept.

    Raises:
        NoHistory: the broker keeps nothing.
    """
    return Dropped.of(drops(state))


def returns(state: BrokerState) -> History[message_outcomes.Returned]:
    """The returns the broker keeps; raises NoHistory where it keeps none."""
    return _histories(state, Returned.word).returned


def dead_letters(state: BrokerState) -> History[message_outcomes.DeadLettered]:
    """The dead letters the broker keeps; raises NoHistory where it keeps none."""
    return _histories(state, DeadLettered.word).dead_lettered


def drops(state: BrokerState) -> History[message_outcomes.Dropped]:
    """The losses the broker keeps; raises NoHistory where it keeps none."""
    return _histories(state, Dropped.word).dropped


def _histories(state: BrokerState, word: str) -> OutcomeHistories:
    if state.outcome_histories is None:
        raise no_history(word)
    return state.outcome_histories
