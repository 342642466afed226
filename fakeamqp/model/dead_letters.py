"""Dead letters: their headers, and their way from the queue that they died in to its dead-letter exchange.

Rejected messages, and the messages of a deleted queue, may go to the queue's alternate exchange instead,
unchanged and without dead-letter headers. A dead-letter exchange takes precedence over an alternate one.

The header `x-death` has the history of a message's deaths (RabbitMQ: documented). The broker keeps the
history beside the headers, so a client's own x-death is overwritten; by personality the history begins with
it instead. There is one entry for each queue and reason, the latest death first. A further death in the same
queue for the same reason increments the entry's count and moves it to the front. The first and the last death
are repeated in headers of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from fakeamqp.model.errors import InternalError, NotFound
from fakeamqp.model.messages.message import Int64, Message
from fakeamqp.model.operations import gathered

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.memory import Charge
    from fakeamqp.model.messages.message import ReadableProperties
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.queues.queue import DeathReason, Queue
    from fakeamqp.model.virtual_host import VirtualHost

_ORDER = ("original-expiration", "count", "reason", "queue", "time", "exchange", "routing-keys")
_ORDER_AS_ADDED = (*_ORDER[1:], _ORDER[0])
_ORDER_BY_NAME = tuple(sorted(_ORDER))
"""The orders of the fields in an entry of x-death; see `Personality.sorts_deaths`."""

_REASONS = ("rejected", "expired", "maxlen", "delivery_limit")
_LATEST = 253402300799
"""The last second of the year 9999; a later time is invalid."""


class Death(NamedTuple):
    """The deaths of a message in one queue for one reason.

    `times` counts them; `time` is that of the first one, in seconds since 1970, and `began` and `latest` are
    the exact times of the first and the last one; `order` is that of the fields in the entry of x-death.
    `claimed` is the entry as a client sent it.
    """

    queue: str
    reason: DeathReason
    exchange: str
    routing_keys: tuple[str, ...]
    time: int
    expiration: str | None = None
    times: int = 1
    order: tuple[str, ...] = _ORDER
    claimed: Mapping[str, Any] | None = None
    began: float = 0.0
    latest: float = 0.0

    def table(self) -> dict[str, Any]:
        if self.claimed is not None:
            return self._claimed_table(self.claimed)
        from datetime import datetime, timezone

        fields = {
            "original-expiration": self.expiration,
            "count": Int64(self.times),
            "reason": self.reason,
            "queue": self.queue,
            "time": datetime.fromtimestamp(self.time, timezone.utc),
            "exchange": self.exchange,
            "routing-keys": list(self.routing_keys),
        }
        return {name: fields[name] for name in self.order if fields[name] is not None}

    def _claimed_table(self, claimed: Mapping[str, Any]) -> dict[str, Any]:
        """The entry of a client: as it was sent, until a death in the same queue is counted in it."""
        if self.order is _ORDER_BY_NAME:
            return dict(sorted({**claimed, "count": Int64(self.times)}.items()))
        count = claimed.get("count")
        return {**claimed, "count": Int64(count)} if type(count) is int else dict(claimed)


class Deaths(NamedTuple):
    """All deaths of a message, the latest first; and the very first one, unless a client claimed it."""

    deaths: tuple[Death, ...]
    first: Death | None


class DeadLetter(Message):
    """A message that has died at least once.

    Its headers are created when they are first read: most dead letters are only counted, or die again, before
    that. Measured with a million that expire: 4.5 times the messages per second, a fifth of the memory.
    """

    __slots__ = ("_death", "_personality", "_written", "original")

    def __init__(
        self,
        exchange: str,
        routing_key: str,
        original: ReadableProperties,
        death: Death,
        message: Message,
        time: float,
        personality: Personality,
    ) -> None:
        self._death = death
        self.original: ReadableProperties = original
        """The properties before its first death."""
        super().__init__(
            exchange, routing_key, original, message.body, publisher=message.publisher, published_at=time
        )
        self._written: ReadableProperties | None = None
        self._personality = personality
        self.secured: bool = message.secured
        self.number: int = message.number
        self.charge: Charge | None = message.charge
        self.history: Deaths = _with(death, message.history)

    @property
    def properties(self) -> ReadableProperties:
        """The properties with the deaths in the headers, and without an expiration."""
        if self._written is None:
            history = self.history
            headers = {
                "x-death": [each.table() for each in history.deaths],
                **({} if history.first is None else _summary("first", history.first)),
                **(_summary("last", self._death) if self._personality.tells_last_death else {}),
            }
            written = self.original.with_headers(headers, ordered=self._personality.sorts_headers)
            self._written = written.replace(expiration=None)
        return self._written

    @properties.setter
    def properties(self, properties: ReadableProperties) -> None:
        self._written = properties

    @property
    def persistent(self) -> bool:
        return self.original.delivery_mode == 2

    @property
    def priority(self) -> int:
        return self.original.priority or 0


class DeadContent(DeadLetter):
    """A dead letter of another class than basic, or with child contents; both are set after its creation."""

    # Without __slots__, instances can override the class attributes `content_class` and `children`.


def dead_lettered(
    queue: Queue, message: Message, reason: DeathReason, failures: int | None = None
) -> Message:
    """The dead letter that `queue` sends to its dead-letter exchange.

    `failures` are the failed deliveries, if the queue counts them.
    """
    options = queue.options
    state = queue.virtual_host.state
    personality = state.personality
    time = state.clock.time()
    shown = message.copies.shown if message.copies is not None else ()
    died_before = isinstance(message, DeadLetter)
    original = message.original if isinstance(message, DeadLetter) else message.properties
    death = Death(
        queue.name,
        reason,
        message.exchange,
        (message.routing_key, *shown),
        int(time),
        None if died_before else original.expiration,
        began=time,
        latest=time,
    )
    if personality.sorts_deaths:
        death = death._replace(order=_ORDER_AS_ADDED if message.history is None else _ORDER_BY_NAME)
    key = options.dead_letter_routing_key
    plain = message.content_class == "basic" and not message.children
    dead = (DeadLetter if plain else DeadContent)(
        options.dead_letter_exchange or "",
        message.routing_key if key is None else key,
        original,
        death,
        message,
        time,
        personality,
    )
    if isinstance(dead, DeadContent):
        dead.content_class, dead.children = message.content_class, message.children
    dead.further_bytes = message.further_bytes
    dead.failures = message.failures if failures is None else failures
    # x-dead-letter-routing-key replaces all routing keys, including those in the header CC.
    dead.copies = message.copies if key is None else None
    return dead


def _with(death: Death, history: Deaths | None) -> Deaths:
    """The history with one more death; one whose entry is sorted turns the order of the others around."""
    if history is None:
        return Deaths((death,), death)
    others = []
    latest = death
    for each in history.deaths:
        if (each.queue, each.reason) == (death.queue, death.reason):
            latest = each._replace(times=each.times + 1, order=death.order, latest=death.latest)
        else:
            others.append(each)
    if death.order is _ORDER_BY_NAME:
        others.reverse()
    return Deaths((latest, *others), history.first)


def claimed_deaths(headers: Mapping[str, Any], *, kept: bool = False) -> Deaths | None:
    """The history in a client's x-death header, or None if the header is absent or is not a list.

    Incomplete entries are ignored (RabbitMQ: up to 3.13), unless entries are `kept` as they are; then only
    the first one of a queue and a reason counts (RabbitMQ: measured on 3.10.8).

    Raises:
        InternalError: an entry has an unknown reason; not if they are kept.
    """
    entries = headers.get("x-death")
    if not isinstance(entries, list):
        return None
    if kept:
        first: dict[object, Death] = {}
        for entry in entries:
            if isinstance(entry, Mapping):
                first.setdefault((entry.get("queue"), entry.get("reason")), _kept_death(entry))
        return Deaths(tuple(first.values()), None)
    deaths = (_claimed_death(entry) for entry in entries)
    return Deaths(tuple(death for death in deaths if death is not None), None)


def _kept_death(entry: Mapping[str, Any]) -> Death:
    """An entry of which only the queue, the reason and the count matter."""
    queue, reason, count = entry.get("queue"), entry.get("reason"), entry.get("count")
    return Death(
        queue if isinstance(queue, str) else "",
        cast("DeathReason", reason if isinstance(reason, str) else ""),
        "",
        (),
        0,
        times=int(count) if isinstance(count, int) else 0,
        claimed=entry,
    )


def _claimed_death(entry: Any) -> Death | None:
    if not isinstance(entry, Mapping):
        return None
    queue, exchange, reason = entry.get("queue"), entry.get("exchange"), entry.get("reason")
    keys, count, time = entry.get("routing-keys"), entry.get("count"), entry.get("time")
    if not (isinstance(queue, str) and isinstance(exchange, str) and isinstance(reason, str)):
        return None
    if not (isinstance(keys, list) and type(count) is int and isinstance(time, int)):
        return None
    if not 0 <= time <= _LATEST:
        return None
    if reason not in _REASONS:
        raise InternalError("")
    expiration = entry.get("original-expiration")
    return Death(
        queue,
        cast("DeathReason", reason),
        exchange,
        tuple(key for key in keys if isinstance(key, str)),
        int(time),
        expiration if isinstance(expiration, str) else None,
        count,
    )


def is_cycle(queue_name: str, message: Message) -> bool:
    """Whether the message died in this queue before, and no client has rejected it since."""
    if message.history is None:
        return False
    deaths = message.history.deaths
    since = list(takewhile(lambda death: death.queue != queue_name, deaths))
    if len(since) == len(deaths):
        return False
    return all(death.reason != "rejected" for death in (*since, deaths[len(since)]))


def _summary(which: str, death: Death) -> dict[str, Any]:
    return {
        f"x-{which}-death-exchange": death.exchange,
        f"x-{which}-death-queue": death.queue,
        f"x-{which}-death-reason": death.reason,
    }


class _PendingLetter(NamedTuple):
    """`message` has left the queue of this name and is to be routed as `dead`.

    It goes to the exchange that `dead` names, or to `alternate`.
    """

    queue: str
    message: Message
    dead: Message
    reason: DeathReason
    alternate: Exchange | None = None


class DeadLetterRouter:
    """Routes the messages that die in the queues of one virtual host."""

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._waiting: deque[_PendingLetter] = deque()
        self._held = False
        self._routing = False

    def died(self, queue: Queue, message: Message, reason: DeathReason, failures: int | None = None) -> None:
        """A message died in `queue`: send it to the queue's dead-letter exchange, or drop it.

        `failures` is the number of its failed deliveries, if the queue counts them.
        """
        virtual_host = self._virtual_host
        outcomes = virtual_host.message_outcomes
        target = queue.options.dead_letter_exchange
        if reason == "expired":
            outcomes.expired(message, queue.name)
        if target is None or target not in virtual_host.exchanges:
            if reason == "rejected" and queue.alternate_exchange is not None:
                self.passed_on(queue, message, reason)
            else:
                outcomes.dropped(message, queue.name, reason, _nowhere(target))
            return
        dead = dead_lettered(queue, message, reason, failures)
        letter = _PendingLetter(queue.name, message, dead, reason)
        races = virtual_host.state.races
        if races is not None and reason == "rejected":
            races.dead_letter(queue, lambda: self._leaves(letter))
        else:
            self._leaves(letter)

    def passed_on(self, queue: Queue, message: Message, reason: DeathReason) -> None:
        """A message leaves `queue` for its alternate exchange, unchanged.

        Source: message.reject/alternate-exchange, queue.declare/alternate-exchange-routing.
        """
        name = queue.alternate_exchange
        alternate = self._virtual_host.exchanges.get(name) if name else None
        if alternate is None:
            detail = f"alternate exchange {name!r} does not exist"
            self._virtual_host.message_outcomes.dropped(message, queue.name, reason, detail)
        else:
            self._leaves(_PendingLetter(queue.name, message, message, reason, alternate))

    def _leaves(self, leaving: _PendingLetter) -> None:
        self._waiting.append(leaving)
        # A full queue dead-letters a message at once, to a queue that may be full as well, and so on. Such
        # chains may exceed the recursion limit, so the outermost call routes what dies meanwhile.
        if not (self._held or self._routing):
            self._route_all()

    def hold(self) -> bool:
        """Queue what dies from now on until `release`; returns False if it is queued already."""
        if self._held or self._routing:
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Undo a `hold` that returned True."""
        self._held = False
        if self._waiting:
            self._route_all()

    def holding(self, steps: Iterator[None]) -> Iterator[None]:
        """Steps during which what dies is queued, and then those of routing it."""
        if not self.hold():
            yield from steps
            return
        try:
            yield from steps
        except BaseException:
            self.release()
            raise
        self._held = False
        if self._waiting:
            self._routing = True
            yield from self._steps()

    def _route_all(self) -> None:
        self._routing = True
        self._virtual_host.state.operations.run(self._steps())

    def _steps(self) -> Iterator[None]:
        def routes() -> Iterator[Iterator[None]]:
            while self._waiting:
                yield self._route(self._waiting.popleft())

        try:
            yield from gathered(routes())
        finally:
            self._waiting.clear()  # It is empty, unless there is a bug.
            self._routing = False

    def _route(self, leaving: _PendingLetter) -> Iterator[None]:
        """Route a message that has left its queue: a step, and another one for each further queue."""
        yield
        queue, message, dead, reason, alternate = leaving
        outcomes = self._virtual_host.message_outcomes
        try:
            routed = self._virtual_host.routing.route(dead, alternate)
        except NotFound:  # Deleted since, by another connection.
            outcomes.dropped(message, queue, reason, _nowhere(dead.exchange))
            return
        if not routed.queues and not routed.delays:
            outcomes.dropped(message, queue, reason, _no_way(dead, alternate))
            return
        barred: tuple[Queue, ...] = ()
        for each in routed.queues:
            if each is not routed.queues[0]:
                yield
            cycle = _cycle(each.name, leaving)
            if each.deleted:
                self._virtual_host.came_too_late(dead, each)
            elif cycle is not None:
                outcomes.dropped(dead, each.name, "cycle", cycle)
            elif each.enqueue(dead, True) or _passes_on(each):
                continue
            else:
                self.refused(each, dead)
            barred = (*barred, each)
        if barred:
            routed = replace(routed, queues=tuple(each for each in routed.queues if each not in barred))
        if routed.queues or routed.delays:
            exchange = None if alternate is None else alternate.name
            outcomes.dead_lettered(message, queue, reason, dead, routed, exchange)

    def refused(self, queue: Queue, message: Message) -> None:
        """A full queue refused the message: record that it is dropped."""
        if not _passes_on(queue):
            self._virtual_host.message_outcomes.dropped(
                message, queue.name, "maxlen", f"the queue was full and refused it ({queue.options.overflow})"
            )


def _passes_on(queue: Queue) -> bool:
    """Whether the queue dead-letters what it refuses, and so records the outcome itself."""
    return queue.kind == "queue" and queue.options.overflow == "reject-publish-dlx"


def _nowhere(exchange: str | None) -> str:
    if exchange is None:
        return "the queue has no dead-letter exchange"
    return f"dead-letter exchange {exchange!r} does not exist"


def _cycle(queue: str, leaving: _PendingLetter) -> str | None:
    """A text that says why a message may not enter the queue of this name; None if it may.

    A message that leaves a queue for its alternate exchange does not return to it, even if the queue is bound
    to that exchange (queue.declare/alternate-exchange-routing). Earlier deaths do not matter then.
    """
    if leaving.alternate is not None:
        return "it had just left that queue" if queue == leaving.queue else None
    if leaving.reason != "rejected" and is_cycle(queue, leaving.dead):
        return "it had died there before, and no client has rejected it since"
    return None


def _no_way(dead: Message, alternate: Exchange | None) -> str:
    kind, name = ("dead-letter", dead.exchange) if alternate is None else ("alternate", alternate.name)
    return f"{kind} exchange {name!r} found no queue for routing key {dead.routing_key!r}"
