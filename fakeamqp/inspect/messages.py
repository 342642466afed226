"""Views of messages: in queues, published, returned, dead-lettered and dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, overload

from fakeamqp.inspect.errors import NoHistory
from fakeamqp.inspect.frozen import FrozenDict, frozen

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.history import History, HistoryRecord, Publication
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import QueuedMessage
    from fakeamqp.model.routing import Outcome
    from fakeamqp.model.state import BrokerState

_LONGEST_SHOWN = 60


@dataclass(frozen=True, kw_only=True, repr=False)
class ContentView:
    """The body, exchange, routing key and properties of a message. Absent properties are None.

    `content_class` is "basic", or "file" or "stream" for messages published with these classes. `headers` is
    empty if the message has none. `timestamp` is in seconds since 1970, `expiration` in milliseconds, as
    text. `sections` are those of a message of AMQP 1.0, by name: `header`, `annotations`, `properties`,
    `application_properties`, one of `data`, `sequence` and `value`, and `footer`; empty for other messages.
    """

    body: bytes
    exchange: str
    routing_key: str
    content_type: str | None = None
    content_encoding: str | None = None
    headers: FrozenDict
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    content_class: str = "basic"
    sections: FrozenDict = field(default_factory=FrozenDict, repr=False)

    @property
    def text(self) -> str:
        """The body decoded as UTF-8.

        Raises:
            UnicodeDecodeError: it is not valid UTF-8.
        """
        return self.body.decode()

    def json(self) -> Any:
        """The body parsed as JSON.

        Raises:
            ValueError: it is not valid JSON.
        """
        import json

        try:
            return json.loads(self.body)
        except ValueError as error:
            raise ValueError(f"the body is not JSON: {shortened(self.body)!r} ({error})") from None

    @property
    def persistent(self) -> bool:
        """Whether the message is persistent (delivery mode 2)."""
        return self.delivery_mode == 2

    @property
    def properties(self) -> dict[str, Any]:
        """The properties that the message has, by name."""
        present = {name: getattr(self, name) for name in PROPERTIES}
        return {name: value for name, value in present.items() if value is not None and value != {}}

    def said(self) -> str:
        """The part of the representation that all views share."""
        words = [
            repr(shortened(self.body)),
            f"exchange={self.exchange!r}",
            f"routing_key={self.routing_key!r}",
        ]
        words += [f"{name}={value!r}" for name, value in self.properties.items()]
        if self.content_class != "basic":
            words.append(f"content_class={self.content_class!r}")
        return " ".join(words)


PROPERTIES = tuple(each.name for each in fields(ContentView))[3:-2]
"""The names of the properties of a message."""


@dataclass(frozen=True, kw_only=True, repr=False)
class MessageView(ContentView):
    """One message in a queue at one moment.

    Args:
        state: "ready"; "unacked" after a delivery; "set aside" while a quorum queue delays a retry or waits
            for the confirm of a dead letter; "delayed" while an exchange delays it.
        redelivered: whether an earlier delivery failed.
        consumer_tag: the consumer that it was delivered to; None if it is ready, or was got with basic.get.
        connection: the name of the connection that it was delivered to, or None.
        channel: the number of the channel that it was delivered on, or None.
        held_for: seconds since the delivery, or None.
        held_since: the time of the delivery on the broker's clock; an aware datetime in UTC, or None.
        expires_in: seconds until its TTL expires, at least 0.0; None without TTL.
        offset: its offset in a stream; None in other queues.
        due_in: seconds until a delayed-message exchange routes it; None in queues.
    """

    state: Literal["ready", "unacked", "set aside", "delayed"]
    redelivered: bool = False
    consumer_tag: str | None = None
    connection: str | None = None
    channel: int | None = None
    held_for: float | None = None
    held_since: datetime | None = None
    expires_in: float | None = None
    offset: int | None = None
    due_in: float | None = None

    def __repr__(self) -> str:
        words = [f"<message {self.said()}"]
        if self.offset is not None:
            words.append(f"offset={self.offset}")
        if self.redelivered:
            words.append("redelivered")
        if self.expires_in is not None:
            words.append(f"expires_in={self.expires_in:.3f}")
        if self.due_in is not None:
            words.append(f"due_in={self.due_in:.3f}")
        if self.state == "unacked":
            how = "a get" if self.consumer_tag is None else f"consumer {self.consumer_tag!r}"
            where = "" if self.channel is None else f" channel {self.channel}"
            words.append(f"unacked by {how} on {self.connection}{where} for {self.held_for or 0.0:.3f} s")
        else:
            words.append(self.state)
        return " ".join(words) + ">"


@dataclass(frozen=True, kw_only=True, repr=False)
class PublishedView(ContentView):
    """One published message, and its outcome.

    Args:
        virtual_host: the virtual host of the publish.
        queues: the names of the queues that it was routed to.
        refused_by: the names of those of these queues that were full and refused it.
        delayed_for: the seconds for which an exchange delays it, or None; of several exchanges, the maximum.
        outcome: the same as text.
        connection: the name of the publisher's connection; None if the test published it.
    """

    virtual_host: str
    queues: tuple[str, ...] = ()
    refused_by: tuple[str, ...] = ()
    delayed_for: float | None = None
    outcome: str = ""
    connection: str | None = None

    @classmethod
    def of(cls, virtual_host: str, message: Message, outcome: Outcome) -> PublishedView:
        """The view of one publish."""
        return cls(
            **content_of(message),
            virtual_host=virtual_host,
            queues=tuple(queue.name for queue in outcome.queues),
            refused_by=tuple(queue.name for queue in outcome.refused),
            delayed_for=max((delay.seconds for delay in outcome.delays), default=None),
            outcome=str(outcome),
            connection=name_of(message.publisher),
        )

    @property
    def routed(self) -> bool:
        """Whether it was routed to at least one queue immediately."""
        return bool(self.queues)

    @property
    def unroutable(self) -> bool:
        """Whether it was routed to no queue, and no exchange delays it. A proxy does not know that."""
        return self.outcome == "unroutable"

    @property
    def refused(self) -> bool:
        """Whether a full queue refused it, so that its publisher got a nack."""
        return bool(self.refused_by)

    def __repr__(self) -> str:
        where = elsewhere(self.virtual_host)
        return f"<published {self.said()}{where}: {self.outcome}>"


V = TypeVar("V", bound=ContentView)
R = TypeVar("R", bound="HistoryRecord")
K = TypeVar("K", bound="Recorded[Any, Any]")


class Recorded(Sequence[V], Generic[V, R]):
    """An immutable sequence of views of what happened to messages, oldest first. Views are made on access.

    Attributes:
        dropped: the number of older records that the broker no longer keeps.
        records: the records of the model, for searches that need few views.
    """

    __slots__ = ("dropped", "records")
    word: ClassVar[str]
    """The participle of the event, such as "published"."""

    def __init__(self, records: Iterable[R] = (), dropped: int = 0) -> None:
        self.records: tuple[R, ...] = tuple(records)
        self.dropped: int = dropped

    @classmethod
    def of(cls, kept: History[R]) -> Self:
        """The records that a history contains."""
        return cls(kept, kept.count - len(kept))

    @staticmethod
    def view(record: Any) -> Any:
        """The view of one record."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: int) -> V: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> V | Self:
        """One view, or a slice."""
        if isinstance(index, slice):
            return type(self)(self.records[index])
        view: V = self.view(self.records[index])
        return view

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[V]:
        return (self.view(record) for record in self.records)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Recorded):
            return list(self) == list(other)
        return list(self) == other if isinstance(other, list) else NotImplemented

    def __repr__(self) -> str:
        older = f" and {self.dropped} older" if self.dropped else ""
        if not self.records:
            return f"<nothing {self.word}{older}>"
        shown = "".join(f"\n  {view!r}" for view in self[-20:])
        left_out = f"\n  ... {len(self) - 20} more before" if len(self) > 20 else ""
        return f"<{len(self)} {self.word}{older}:{left_out}{shown}\n>"


class Published(Recorded[PublishedView, "Publication"]):
    """The published messages, oldest first; immutable. Publishes that caused an error are not included."""

    __slots__ = ("_of_all",)
    word = "published"
    _of_all: Published

    @property
    def with_own(self) -> Published:
        """These, and what the test itself has published: by `publish` and by services."""
        return getattr(self, "_of_all", self)

    @staticmethod
    def view(record: Publication) -> PublishedView:
        """The view of one publish."""
        return PublishedView.of(*record)


def published_views(state: BrokerState) -> Published:
    """The publishes of clients that the history contains; raises NoHistory."""
    kept = history(state, Published.word)
    made = Published((each for each in kept if by_client(each)), kept.count - len(kept))
    made._of_all = Published.of(kept)
    return made


def views(kind: type[K], state: BrokerState) -> K:
    """All that the history contains of one kind; raises NoHistory."""
    return kind.of(history(state, kind.word))


def by_client(record: Publication) -> bool:
    """Whether a client published it, and not the test itself."""
    return record.message.publisher is not None


def history(state: BrokerState, word: str) -> History[Any]:
    """The records of what is "published", "returned", "dead-lettered" or "dropped"; raises NoHistory."""
    if state.published is None or state.outcome_histories is None:
        raise NoHistory(
            f"this broker keeps no record of what is {word}; create it with history=100_000, for example"
        )
    return state.published if word == Published.word else state.outcome_histories.of(word)


def queued_view(queued: QueuedMessage, now: float) -> MessageView:
    """The view of a ready message. `now` is the instant of the broker's clock."""
    return MessageView(
        **content_of(queued.message),
        state="ready",
        redelivered=queued.redelivered,
        expires_in=_expires_in(queued, now),
        offset=queued.offset,
    )


def aside_view(message: Message) -> MessageView:
    """The view of a message that a queue has set aside."""
    return MessageView(**content_of(message), state="set aside", redelivered=True)


def unacked_view(delivery: Delivery, now: float, time: float) -> MessageView:
    """The view of an unacked message. `now` is the instant of the broker's clock, `time` its wall time."""
    holder = delivery.holder
    held_for = now - delivery.delivered_at
    return MessageView(
        **content_of(delivery.queued.message),
        state="unacked",
        redelivered=delivery.queued.redelivered,
        consumer_tag=None if holder is None else holder.tag,
        connection=name_of(delivery.owner),
        channel=_getter(delivery) if holder is None else number_of(holder.group),
        held_for=held_for,
        held_since=instant(time - held_for),
        expires_in=_expires_in(delivery.queued, now),
    )


def _getter(delivery: Delivery) -> int | None:
    """The number of the channel that got a message with basic.get."""
    for channel in getattr(delivery.owner, "open_channels", ()):
        if any(ledger.outstanding.get(delivery.tag) is delivery for ledger in channel.ledgers):
            return number_of(channel)
    return None


def instant(seconds: float) -> datetime:
    """A time of the broker's clock as an aware datetime in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc)


def elsewhere(virtual_host: str) -> str:
    """The virtual host for a representation; empty for "/"."""
    return "" if virtual_host == "/" else f" in virtual host {virtual_host!r}"


def name_of(owner: object) -> str | None:
    """The name of a connection or session, known to the model only as the owner of something."""
    name = getattr(owner, "name", None)
    return name if isinstance(name, str) else None


def number_of(group: object) -> int | None:
    """The number of a channel, known to the model only as a group of subscriptions."""
    number = getattr(group, "number", None)
    return number if isinstance(number, int) else None


def shortened(body: bytes) -> bytes:
    """The body, shortened to fit into one line."""
    return body if len(body) <= _LONGEST_SHOWN else body[: _LONGEST_SHOWN - 3] + b"..."


def _expires_in(queued: QueuedMessage, now: float) -> float | None:
    return None if queued.expires_at is None else max(0.0, queued.expires_at - now)


def content_of(message: Message) -> dict[str, Any]:
    """The fields that all views of a message share."""
    properties = message.properties
    values = {name: getattr(properties, name) for name in PROPERTIES if name != "headers"}
    sections = getattr(properties, "sections", None)
    return {
        "sections": FrozenDict() if sections is None else frozen(sections(message.body)),
        "body": message.body,
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "headers": frozen(properties.headers or {}),
        "content_class": message.content_class,
        **values,
    }


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
