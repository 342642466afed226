"""What becomes of messages: the checks "lost", "duplicates" and "unacked"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from fakeamqp.trace.dialogue import Confirmed, Ended, Opened, Publishing, Releasing, Sent
from fakeamqp.trace.events import reason_text
from fakeamqp.trace.truncation import short

if TYPE_CHECKING:
    from fakeamqp.trace.dialogue import Key, Step
    from fakeamqp.trace.events import Event, FrameEvent, ModelEvent

Report: TypeAlias = "Callable[..., None]"
"""Takes a violation: its check, its rule, its text, its story, and what it is about."""


class Moment(NamedTuple):
    """An event and its number."""

    number: int
    event: Event


DROP_REASONS: dict[str, bool] = {
    "unroutable": False,
    "expired": False,
    "maxlen": False,
    "delivery_limit": False,
    "restart": False,
    "crash": False,
    "cycle": False,
    "unstorable": False,
    "rejected": True,
    "purged": True,
    "deleted": True,
    "retention": True,
    "local": True,
    "replaced": True,
    "not sent": False,
    "no trace": False,
}
"""Why a confirmed message can be lost, and whether that is allowed without being asked for: then a client or
an operator has done away with the message or its queue, or the arguments of the queue name what it keeps.
"not sent" and "no trace" are no reasons of the broker: the message left its queue, and was not sent to the
consumer; it was confirmed, and there is no sign that the broker took it."""

_BASIC = "basic"
_STREAM = "stream"
_SETTLED = frozenset(("acked", "rejected", "requeued"))


@dataclass(slots=True)
class _Message:
    text: str
    story: list[Moment]
    reached: bool = False
    returned: bool = False
    confirmed: bool = False
    drops: list[tuple[Moment, str | None, str, str]] = field(default_factory=list)
    unread: dict[str, int] = field(default_factory=dict)
    """By queue: how often it came into it, less the first deliveries of it."""
    first: dict[str, Moment] = field(default_factory=dict)
    """By queue: the latest delivery without `redelivered`."""


@dataclass(slots=True)
class _Publish:
    """What is confirmed at once: a publish, or all that a commit publishes."""

    what: str
    at: Moment
    many: bool
    messages: list[_Message] = field(default_factory=list)
    answered: bool = False


@dataclass(slots=True)
class _Delivery:
    """One message on its way to a client. `settles`: whether the client must settle it, None if unknown."""

    event: ModelEvent
    at: Moment
    message: _Message | None
    settles: bool | None
    sent: Moment | None = None


class _Place:
    """One channel or session of one connection."""

    __slots__ = ("deliveries", "latest", "open", "publishes", "publishing", "releasing", "resumed", "session")

    def __init__(self) -> None:
        self.deliveries: dict[int, _Delivery] = {}
        self.open: dict[int, _Delivery] = {}
        """Those of them that were not sent, or may have to be settled."""
        self.latest: _Delivery | None = None
        """The latest delivery that was sent."""
        self.publishes: dict[Key, _Publish] = {}
        self.publishing: _Publish | None = None
        self.releasing = False
        self.session = False
        """Whether it is a session, which may go on and send what it has not sent."""
        self.resumed = False
        """Whether it is a session that goes on from an earlier connection and may repeat what it sent."""


class TrackedMessages:
    """Follows messages. Only channels whose opening it has seen are checked."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._messages: dict[int, _Message] = {}
        self._places: dict[tuple[str, int | None], _Place] = {}
        self.unknown_places: dict[tuple[str, int | None], None] = {}
        """Channels in use whose opening was not seen."""
        self._received_on: dict[str, int] = {}
        """By connection: the channel of the latest frame from the client."""
        self._consumers: dict[tuple[str, int | None, str | None], tuple[bool | None, bool]] = {}
        """Whether a consumer's deliveries need to be settled, and whether they are taken from the queue."""
        self._kinds: dict[str, str] = {}
        """The types of the queues."""
        self.unknown_kinds: set[str] = set()
        """Queues that delivered a message twice and may be streams."""
        self._doubts: dict[tuple[int, str], tuple[_Message, tuple[Moment, ...]]] = {}
        """Deliveries of messages that are not known to be in the queue. If dead-lettering brought one there,
        the event that says so follows, before anything else is received."""
        self._by_event: dict[str, Callable[[Moment, ModelEvent], None]] = {
            "published": self._published,
            "enqueued": self._enqueued,
            "delivered": self._delivered,
            "dropped": self._dropped,
            "returned": self._returned,
            "queue declared": self._declared,
            "session detached": lambda _, event: self.ended(event.alias, event.channel),
            "consumer added": self._consuming,
            **dict.fromkeys(_SETTLED, self._settled),
        }

    def frame(self, event: FrameEvent) -> None:
        if event.direction == "received":
            self.decide()
            self._received_on[event.alias] = event.channel
            place = self._places.get((event.alias, event.channel))
            if place is not None:
                place.releasing = False

    def model(self, at: Moment, event: ModelEvent) -> None:
        act = self._by_event.get(event.event)
        if act is not None:
            act(at, event)

    # --- publishes ------------------------------------------------------------------------------------

    def _published(self, at: Moment, event: ModelEvent) -> None:
        message = event.facts.get("message")
        serial = serial_of(event)
        if not serial:
            return
        found = self._messages[serial] = _Message(message_text(message), [at])
        outcome = event.facts.get("outcome")
        found.reached = bool(getattr(outcome, "delays", ()) or getattr(outcome, "elsewhere", False))
        channel = self._received_on.get(event.alias)
        place = self._places.get((event.alias, channel))
        if place is not None and place.publishing is not None:
            place.publishing.messages.append(found)
            found.story.insert(0, place.publishing.at)

    def _enqueued(self, at: Moment, event: ModelEvent) -> None:
        message = self._messages.get(serial_of(event))
        if message is not None:
            queue = str(event.facts.get("queue"))
            message.reached = True
            message.unread[queue] = message.unread.get(queue, 0) + 1
            if message.unread[queue] >= 0:
                self._doubts.pop((id(message), queue), None)

    def _returned(self, at: Moment, event: ModelEvent) -> None:
        message = self._messages.get(serial_of(event))
        if message is not None:
            message.returned = True

    def _dropped(self, at: Moment, event: ModelEvent) -> None:
        message = self._messages.get(serial_of(event))
        if message is None:
            return
        facts = event.facts
        reason = str(facts.get("reason"))
        drop = at, event.queue, reason, str(facts.get("detail") or reason_text(reason))
        message.drops.append(drop)
        if message.confirmed:
            self._lost(message, *drop)

    def _lost(self, message: _Message, drop: Moment, queue: str | None, reason: str, detail: str) -> None:
        place = "" if queue is None else f" from queue {short(queue)}"
        self._report(
            "message-lost",
            f"{message.text} was confirmed, and then dropped{place} ({reason}): {detail}",
            (*message.story, drop),
            queue=queue,
            reason=reason,
        )

    # --- confirms -------------------------------------------------------------------------------------

    def step(self, at: Moment, event: FrameEvent, step: Step) -> None:
        key = (event.alias, step.channel)
        if isinstance(step, Opened):
            self._places[key] = _Place()
            return
        place = self._places.get(key)
        if place is None:
            if isinstance(step, (Sent, Publishing)) and step.channel is not None:
                self.unknown_places[key] = None
            return
        if isinstance(step, Sent):
            self._sent(at, event, place, step)
        elif isinstance(step, Publishing):
            place.publishing = None
            if step.key is not None:
                publish = _Publish(step.what, at, step.many)
                place.publishing = place.publishes[step.key] = publish
        elif isinstance(step, Confirmed):
            for each in step.keys:
                publish_ = place.publishes.get(each)
                if publish_ is not None and not publish_.answered:
                    publish_.answered = True
                    if step.accepted:
                        self._confirmed(at, event, publish_, place.resumed)
        elif isinstance(step, Releasing):
            place.releasing = True
        elif isinstance(step, Ended):
            place.publishing = None

    def _confirmed(self, at: Moment, event: FrameEvent, publish: _Publish, resumed: bool) -> None:
        if not publish.many and not resumed and not publish.messages:
            text = f"{publish.what} was confirmed, and the broker has not taken its message"
            self._report("message-lost", text, (publish.at, at), reason="no trace")
        for message in publish.messages:
            message.confirmed = True
            message.story.append(at)
            for drop in message.drops:
                self._lost(message, *drop)
            if not (message.reached or message.returned or message.drops):
                text = f"{message.text} was confirmed; it came into no queue, and was not returned or dropped"
                self._report("message-lost", text, message.story, reason="no trace")

    # --- deliveries -----------------------------------------------------------------------------------

    def _declared(self, at: Moment, event: ModelEvent) -> None:
        name, kind = str(event.facts.get("queue")), str(event.facts.get("type"))
        if self._kinds.get(name) != _STREAM:
            self._kinds[name] = kind

    def _consuming(self, at: Moment, event: ModelEvent) -> None:
        facts = event.facts
        no_ack = facts.get("no_ack")
        settles = None if no_ack is None else not no_ack
        acquires = facts.get("acquires") is not False
        self._consumers[event.alias, event.channel, event.consumer] = settles, acquires

    def _delivered(self, at: Moment, event: ModelEvent) -> None:
        serial, queue = serial_of(event), str(event.facts.get("queue"))
        message = self._messages.get(serial)
        settles, acquires = None, True
        if event.consumer is not None:
            known = self._consumers.get((event.alias, event.channel, event.consumer))
            settles, acquires = (None, True) if known is None else known
        delivery = _Delivery(event, at, message, settles)
        place = self._places.get((event.alias, event.channel))
        tag = event.facts.get("delivery_tag")
        if place is not None and isinstance(tag, int):
            place.deliveries[tag] = delivery
            if acquires:
                place.open[tag] = delivery
        if message is not None and acquires and not event.facts.get("redelivered"):
            self._first(at, event, message, queue)

    def _first(self, at: Moment, event: ModelEvent, message: _Message, queue: str) -> None:
        """A delivery that is not marked as redelivered."""
        if queue not in message.unread:
            return
        before, message.first[queue] = message.first.get(queue), at
        message.unread[queue] -= 1
        if message.unread[queue] >= 0:
            return
        kind = self._kinds.get(queue)
        if kind is None or kind == _STREAM:
            message.unread[queue] = 0
            if kind is None:
                self.unknown_kinds.add(queue)
            return
        story = (*message.story, at) if before is None else (*message.story, before, at)
        self._doubts[id(message), queue] = message, story

    def decide(self) -> None:
        """Report what no further event can explain."""
        if not self._doubts:
            return
        for (_, queue), (message, story) in self._doubts.items():
            message.unread[queue] = 0
            text = f"{message.text} of queue {short(queue)} was delivered again, and not as redelivered"
            self._report("delivered-twice", text, story, queue=queue)
        self._doubts.clear()

    def _sent(self, at: Moment, event: FrameEvent, place: _Place, step: Sent) -> None:
        delivery = place.deliveries.get(step.tag)
        before, place.latest = place.latest, delivery or place.latest
        if delivery is None:
            if not place.resumed:
                self._made_up(at, before, step)
            return
        if delivery.settles is None:
            delivery.settles = step.settles
        if delivery.sent is None:
            delivery.sent = at
            if not delivery.settles:
                place.open.pop(step.tag, None)
            return
        message, queue = delivery.message, delivery.event.queue
        text = message_text(delivery.event.facts.get("message")) if message is None else message.text
        self._report(
            "sent-twice",
            f"{text} of queue {short(queue)} was sent twice in one delivery (tag {step.tag})",
            (*(() if message is None else message.story), delivery.at, delivery.sent, at),
            queue=queue,
        )

    def _made_up(self, at: Moment, before: _Delivery | None, step: Sent) -> None:
        """A delivery was sent that no queue has made."""
        text, queue = "", None
        if before is not None:
            queue = before.event.queue
            text = f"; the delivery before it was of {message_text(before.event.facts.get('message'))}"
            text += f" of queue {short(queue)}"
        self._report(
            "sent-twice",
            f"a delivery (tag {step.tag}) was sent that no queue has made{text}",
            (None if before is None else before.at, None if before is None else before.sent, at),
            queue=queue,
        )

    def _settled(self, at: Moment, event: ModelEvent) -> None:
        place = self._places.get((event.alias, event.channel))
        tag = event.facts.get("delivery_tag")
        if place is None or not isinstance(tag, int):
            return
        delivery = place.deliveries.get(tag)
        message = self._messages.get(serial_of(event))
        if delivery is not None:
            place.open.pop(tag, None)
        elif message is not None and message.confirmed and event.event == "acked" and not place.resumed:
            self._report(
                "message-lost",
                f"{message.text} was confirmed, and acked in queue {short(event.queue)} without a delivery",
                (*message.story, at),
                queue=event.queue,
                reason="not sent",
            )
        if message is not None and event.event == "requeued" and place.releasing:
            queue = str(event.facts.get("queue"))
            if queue in message.unread:
                message.unread[queue] += 1

    def attached(self, alias: str, channel: int, earlier: tuple[str, int] | None) -> None:
        """A session is attached to this channel; it may go on from an earlier place, with its consumers."""
        place = self._places.get((alias, channel))
        if place is not None:
            place.session = True
            place.resumed = earlier is not None
        for key, terms in list(self._consumers.items()):
            if key[:2] == earlier:
                self._consumers[alias, channel, key[2]] = terms

    # --- ends -----------------------------------------------------------------------------------------

    def ended(self, alias: str, channel: int | None = None) -> None:
        """A connection, or the session on one of its channels, is over: it holds nothing any more."""
        for key, place in self._places.items():
            if key[0] == alias and channel in (None, key[1]):
                # What needs no settlement is lost if it was not sent.
                place.open = {
                    tag: each
                    for tag, each in place.open.items()
                    if each.settles is False and not place.session
                }

    def at_end(self) -> None:
        """Report what should not be so when all is done."""
        for place in self._places.values():
            for delivery in place.open.values():
                if delivery.sent is None:
                    # A resumed session sends nothing before the client has told what it got.
                    if not place.resumed:
                        self._not_sent(delivery)
                elif delivery.settles:
                    self._unacked(delivery)

    def _not_sent(self, delivery: _Delivery) -> None:
        message = delivery.message
        content = getattr(delivery.event.facts.get("message"), "content_class", _BASIC)
        # Files wait for the client, and contents of streams may be dropped.
        if message is not None and message.confirmed and content == _BASIC:
            queue = delivery.event.queue
            self._report(
                "message-lost",
                f"{message.text} was confirmed; queue {short(queue)} has delivered it, "
                "and it was not sent to the client",
                (*message.story, delivery.at),
                queue=queue,
                reason="not sent",
            )

    def _unacked(self, delivery: _Delivery) -> None:
        event, message = delivery.event, delivery.message
        whom = "a get" if event.consumer is None else f"consumer {short(event.consumer)}"
        text = message_text(event.facts.get("message")) if message is None else message.text
        self._report(
            "left-unacked",
            f"{text} of queue {short(event.queue)} is held by {whom}, which has not settled it",
            (*(() if message is None else message.story[:1]), delivery.at, delivery.sent),
            queue=event.queue,
        )


def serial_of(event: ModelEvent) -> int:
    """The number of the message that an event is about; 0 if it has none."""
    return getattr(event.facts.get("message"), "number", 0) or 0


def message_text(message: Any) -> str:
    """The message, its address and its ids."""
    said = f"message {short(getattr(message, 'body', None))}"
    exchange = getattr(message, "exchange", None)
    via = f"exchange {short(exchange)}, " if exchange else ""
    said += f" ({via}routing key {short(getattr(message, 'routing_key', None))}"
    for name in ("message_id", "correlation_id"):
        value = getattr(getattr(message, "properties", None), name, None)
        if value:
            said += f", {name} {short(value)}"
    return said + ")"
