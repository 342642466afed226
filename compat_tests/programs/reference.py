"""What RabbitMQ's documents say of queues, as a program that is as simple as can be.

There are lists, and every question is answered by looking through them. Time is one number, in
milliseconds. The reference knows nothing of the broker and shares no code with it.

Where the documents leave it open, things happen in this order: what the client asked for, deliveries to
consumers that got credit back by that, then the dead letters that came of it, in the order of the deaths.

What a client sees is foretold in the words of the client of the cases, but for the text of a close.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from compat_tests.differential.codec import Tagged, shown
from compat_tests.differential.raw_client import described
from compat_tests.differential.script import Call, Pause, named
from compat_tests.programs.program import in_order

__all__ = ["Reference", "Tie"]

_USUAL_DELIVERY_LIMIT = 20


class Tie(Exception):
    """What comes of an operation is nobody's promise.

    Two queues expire messages at one instant, or pass dead letters on to the same third. A channel
    goes with what several consumers held of quorum queues. A consumer of one has the tag of one that was
    cancelled and still holds something. The connection is closed.
    """


@dataclass(frozen=True)
class Death:
    """An entry of x-death. `time` is in seconds since 1970."""

    queue: str
    reason: str
    exchange: str
    routing_key: str
    count: int
    time: int
    expiration: str | None = None

    def tagged(self) -> Tagged:
        """As a client sees it."""
        fields = {
            "original-expiration": self.expiration,
            "count": self.count,
            "reason": self.reason,
            "queue": self.queue,
            "time": Tagged("T", self.time),
            "exchange": self.exchange,
            "routing-keys": Tagged("A", [_tagged(self.routing_key)]),
        }
        return _table({name: value for name, value in fields.items() if value is not None})


@dataclass(frozen=True)
class Place:
    """What x-first-death-* and x-last-death-* say."""

    queue: str
    reason: str
    exchange: str


@dataclass(frozen=True)
class _Message:
    body: bytes
    exchange: str
    routing_key: str
    priority: int | None = None
    expiration: int | None = None
    deaths: tuple[Death, ...] = ()
    first_death: Place | None = None
    last_death: Place | None = None
    failures: int = 0
    """How often clients have failed to deal with it, in quorum queues."""


@dataclass(eq=False)
class _Copy:
    """A message in a queue. `place` is its number there, `dies_at` when its time to live is over.

    `returns` counts how often it came back, and `ahead` says that it stands before all that did not: in
    quorum queues only.
    """

    message: _Message
    place: int
    dies_at: int | None
    redelivered: bool = False
    returns: int = 0
    failures: int = 0
    ahead: bool = False


@dataclass(eq=False)
class _Consumer:
    tag: str
    queue: _Queue
    channel: int
    prefetch: int
    no_ack: bool
    priority: int
    holds: int = 0

    @property
    def may_have_more(self) -> bool:
        return self.no_ack or not self.prefetch or self.holds < self.prefetch


@dataclass(eq=False)
class _Queue:
    name: str
    arguments: Mapping[str, Any]
    used_at: int
    ready: list[_Copy] = field(default_factory=list)
    consumers: list[_Consumer] = field(default_factory=list)
    """As they came."""
    turn: list[_Consumer] = field(default_factory=list)
    """Those that may be sent something, in turn; who is found to have all it may leaves the line."""
    active: _Consumer | None = None
    """The one consumer of a queue with a single active one."""
    places: int = 0
    deleted: bool = False

    @property
    def quorum(self) -> bool:
        return self.arguments.get("x-queue-type") == "quorum"

    @property
    def alone(self) -> bool:
        return bool(self.arguments.get("x-single-active-consumer"))

    @property
    def refuses(self) -> bool:
        return str(self.arguments.get("x-overflow", "")).startswith("reject-publish")

    def level(self, copy: _Copy) -> int:
        most = self.arguments.get("x-max-priority")
        return 0 if most is None else min(copy.message.priority or 0, most)

    def head(self) -> _Copy | None:
        return min(self.ready, key=lambda copy: (-self.level(copy), not copy.ahead, copy.place), default=None)

    def too_long(self, more: Iterable[_Message] = ()) -> bool:
        messages = [copy.message for copy in self.ready] + list(more)
        length = self.arguments.get("x-max-length")
        octets = self.arguments.get("x-max-length-bytes")
        return (length is not None and len(messages) > length) or (
            octets is not None and sum(len(each.body) for each in messages) > octets
        )


@dataclass
class _Held:
    """A message in the hands of a client."""

    queue: _Queue
    copy: _Copy
    consumer: _Consumer | None
    tag: int


@dataclass
class _Channel:
    held: dict[int, _Held] = field(default_factory=dict)
    last_tag: int = 0
    confirms: bool = False
    published: int = 0
    prefetch: int = 0

    def next_tag(self) -> int:
        self.last_tag += 1
        return self.last_tag


class Reference:
    """A broker on which the steps of one program are taken. `start` is in seconds since 1970."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.now = 0
        self.queues: dict[str, _Queue] = {}
        self.exchanges: dict[str, str] = {"": "default"}
        self.bindings: list[tuple[str, str, str]] = []
        """(exchange, routing key, queue)"""
        self.channels: dict[int, _Channel] = {1: _Channel()}
        self.dead_letters: list[tuple[_Message, str]] = []
        """Dead letters on their way, with the reason of their death."""
        self.holding = False
        """Whether dead letters wait until what is being done is done."""
        self.origins: dict[str, str] = {}
        """From which queue dead letters have come to another at this instant."""
        self.seen: list[str] = []

    def perform(self, step: Call | Pause) -> list[str]:
        """What the client sees of a step, by channel.

        Raises:
            Tie: what it sees is nobody's promise.
        """
        self.seen = []
        self.origins = {}
        if isinstance(step, Pause):
            self._pause(step.seconds)
        else:
            arguments = named(step.arguments, "")
            channel = arguments.pop("ch", 1)
            if (channel in self.channels) is (step.method == "channel.open"):
                raise Tie
            method: Callable[..., None] = getattr(self, "_" + step.method.replace(".", "_"))
            method(channel, **arguments)
        return in_order(self.seen)

    # --- helpers ------------------------------------------------------------------------------------

    def _tell(self, channel: int, method: str, **arguments: Any) -> None:
        self.seen.append(described(channel, method, arguments))

    def _tell_content(
        self, channel: int, method: str, message: _Message, headers: dict[str, Any], **arguments: Any
    ) -> None:
        """A method with a message, which has these headers."""
        place = {"exchange": message.exchange, "routing_key": message.routing_key}
        count = {"message_count": arguments.pop("message_count")} if "message_count" in arguments else {}
        properties = [f"headers={_table(headers)!r}"] * bool(headers)
        properties += [f"priority={message.priority}"] * (message.priority is not None)
        properties += [f"expiration='{message.expiration}'"] * (message.expiration is not None)
        text = described(channel, method, {**arguments, **place, **count})
        self.seen.append(f"{text} {{{', '.join(properties)}}} {shown(message.body)}")

    def _close(self, number: int) -> None:
        """A channel ends: its consumers are gone, what it held goes back."""
        channel = self.channels.pop(number)
        queues = list(self.queues.values())
        for queue in queues:
            for consumer in [each for each in queue.consumers if each.channel == number]:
                self._remove(consumer)
        self._go_back(list(channel.held.values()), queues, lost=True)

    def _refuse(self, number: int, code: int) -> None:
        self.seen.append(f"[{number}]channel.close({code})" if number > 1 else f"channel.close({code})")
        self._close(number)

    def _routed(self, exchange: str, routing_key: str) -> list[_Queue]:
        if exchange == "":
            names = [routing_key]
        else:
            kind = self.exchanges[exchange]
            names = [
                queue
                for source, key, queue in self.bindings
                if source == exchange and (kind == "fanout" or key == routing_key)
            ]
        return [self.queues[name] for name in dict.fromkeys(names) if name in self.queues]

    # --- the life of a message in a queue --------------------------------------------------------------

    def _arrive(self, queue: _Queue, message: _Message) -> bool:
        """A message comes to a queue; False where the queue refuses it."""
        if queue.refuses and queue.too_long([message]):
            if queue.arguments["x-overflow"] == "reject-publish-dlx":
                self._die(queue, _Copy(message, 0, None), "maxlen")
            return False
        queue.places += 1
        copy = _Copy(message, queue.places, self._dies_at(queue, message))
        if queue.quorum:
            copy.failures = message.failures
            copy.redelivered = copy.failures > 0
            queue.ready.append(copy)
            self._hand_out(queue)
            return True
        consumer = None if queue.ready else self._whose_turn(queue)
        if consumer is not None:
            self._hand_over(copy, consumer)
        else:
            queue.ready.append(copy)
            self._drop_surplus(queue)
            self._drop_expired(queue)
        return True

    def _dies_at(self, queue: _Queue, message: _Message) -> int | None:
        lives = (queue.arguments.get("x-message-ttl"), message.expiration)
        times = [each for each in lives if each is not None]
        # A quorum queue gives every message the time to be delivered.
        return self.now + max(min(times), int(queue.quorum)) if times else None

    def _drop_surplus(self, queue: _Queue) -> None:
        while not queue.refuses and queue.too_long():
            head = queue.head()
            assert head is not None
            queue.ready.remove(head)
            self._die(queue, head, "maxlen")

    def _drop_expired(self, queue: _Queue) -> None:
        """Messages expire at the head of the queue only."""
        while (head := queue.head()) is not None and head.dies_at is not None and head.dies_at <= self.now:
            queue.ready.remove(head)
            self._die(queue, head, "expired")

    def _whose_turn(self, queue: _Queue) -> _Consumer | None:
        """Who is sent the next message: the first in turn among those of the highest priority."""
        if queue.alone:
            active = queue.active
            return active if active is not None and active.may_have_more else None
        for consumer in sorted(queue.turn, key=lambda each: -each.priority):
            queue.turn.remove(consumer)
            if consumer.may_have_more:
                queue.turn.append(consumer)
                return consumer
        return None

    def _hand_over(self, copy: _Copy, consumer: _Consumer) -> None:
        channel = self.channels[consumer.channel]
        tag = channel.next_tag()
        if not consumer.no_ack:
            consumer.holds += 1
            channel.held[tag] = _Held(consumer.queue, copy, consumer, tag)
        if consumer.queue.quorum and not consumer.may_have_more:
            consumer.queue.turn.remove(consumer)  # There it leaves the line at once.
        self._deliver(consumer.channel, "basic.deliver", copy, consumer_tag=consumer.tag, delivery_tag=tag)

    def _hand_out(self, queue: _Queue) -> None:
        """Send what waits to whoever may have it."""
        while not queue.deleted:
            self._drop_expired(queue)
            self._bury()
            head = queue.head()
            consumer = None if head is None else self._whose_turn(queue)
            if head is None or consumer is None:
                break
            queue.ready.remove(head)
            self._hand_over(head, consumer)
        if queue.quorum:  # Its limits are for what nobody could be sent.
            self._drop_surplus(queue)
            self._drop_expired(queue)

    def _go_back(self, held: list[_Held], queues: Iterable[_Queue] = (), *, lost: bool = False) -> None:
        """Messages return to their places; what waits in the queues is sent to whoever may have it.

        `lost` says that they do because their channel has gone.
        """
        self.holding = True
        if lost and any(each.queue.quorum for each in held) and len(_groups(held)) > 1:
            raise Tie
        for group in [held] if lost else _groups(held):
            for each in group:
                self._credit(each)
                each.copy.redelivered = True
                each.copy.failures += lost and each.queue.quorum
                if not each.queue.deleted:
                    self._return(each.queue, each.copy)
            for queue in _queues_of(group):
                if not queue.quorum:
                    self._drop_surplus(queue)
                    self._drop_expired(queue)
                if not lost:
                    self._hand_out(queue)
        for queue in queues:
            self._hand_out(queue)
        self.holding = False
        self._bury()

    def _return(self, queue: _Queue, copy: _Copy) -> None:
        """Back to its old place; in a quorum queue before all others, unless it has come back too often."""
        if queue.quorum:
            copy.returns += 1
            if copy.returns > queue.arguments.get("x-delivery-limit", _USUAL_DELIVERY_LIMIT):
                return self._die(queue, copy, "delivery_limit")
            queue.places += 1
            copy.place = queue.places
            copy.ahead = True
        queue.ready.append(copy)

    def _credit(self, held: _Held) -> None:
        """The client holds one message less; who had left the line for that stands at its end again.

        Credit goes by the tag: what a cancelled consumer held is credit for the one that has its tag now,
        which may then hold more than its prefetch (RabbitMQ 3.10, 4.0 and 4.3: measured).
        """
        if held.consumer is None:
            return
        name = (held.consumer.channel, held.consumer.tag)
        for consumer in held.queue.consumers:
            if (consumer.channel, consumer.tag) == name:
                consumer.holds -= 1
                if consumer not in held.queue.turn:
                    held.queue.turn.append(consumer)

    # --- death --------------------------------------------------------------------------------------

    def _die(self, queue: _Queue, copy: _Copy, reason: str) -> None:
        message = copy.message
        exchange = queue.arguments.get("x-dead-letter-exchange")
        if exchange is None or exchange not in self.exchanges:
            return
        key = queue.arguments.get("x-dead-letter-routing-key", message.routing_key)
        expiration = None if message.expiration is None else str(message.expiration)
        time = self.start + self.now // 1000
        death = Death(queue.name, reason, message.exchange, message.routing_key, 1, time, expiration)
        earlier = []
        for each in message.deaths:
            if (each.queue, each.reason) == (queue.name, reason):
                death = replace(each, count=each.count + 1)
            else:
                earlier.append(each)
        place = Place(queue.name, reason, message.exchange)
        dead = _Message(
            message.body,
            exchange,
            key,
            message.priority,
            deaths=(death, *earlier),
            first_death=message.first_death or place,
            last_death=place,
            failures=copy.failures if queue.quorum else message.failures,
        )
        self.dead_letters.append((dead, reason))

    def _bury(self) -> None:
        """Deliver dead letters, and those that come of them, in the order of the deaths."""
        if self.holding:
            return
        self.holding = True
        while self.dead_letters:
            dead, reason = self.dead_letters.pop(0)
            for queue in self._routed(dead.exchange, dead.routing_key):
                if reason == "rejected" or not _goes_in_circles(dead, queue.name):
                    origin = dead.deaths[0].queue
                    if self.origins.setdefault(queue.name, origin) != origin:
                        raise Tie
                    self._arrive(queue, dead)
        self.holding = False

    # --- consumers ----------------------------------------------------------------------------------

    def _remove(self, consumer: _Consumer) -> None:
        queue = consumer.queue
        queue.consumers.remove(consumer)
        if consumer in queue.turn:
            queue.turn.remove(consumer)
        if queue.active is consumer:
            queue.active = max(queue.consumers, key=lambda each: each.priority, default=None)
        queue.used_at = self.now

    def consumer(self, tag: str) -> _Consumer | None:
        consumers = [each for queue in self.queues.values() for each in queue.consumers]
        return next((each for each in consumers if each.tag == tag), None)

    # --- channels -----------------------------------------------------------------------------------------

    def _channel_open(self, channel: int) -> None:
        self.channels[channel] = _Channel()
        self._tell(channel, "channel.open-ok")

    def _channel_close(self, channel: int) -> None:
        self._tell(channel, "channel.close-ok")
        self._close(channel)

    def _confirm_select(self, channel: int) -> None:
        self.channels[channel].confirms = True
        self._tell(channel, "confirm.select-ok")

    def _basic_qos(self, channel: int, prefetch_count: int) -> None:
        self.channels[channel].prefetch = prefetch_count
        self._tell(channel, "basic.qos-ok")

    # --- queues and exchanges -----------------------------------------------------------------------------

    def _queue_declare(
        self, channel: int, queue: str, passive: int = 0, durable: int = 0, arguments: Mapping[str, Any] = {}
    ) -> None:
        found = self.queues.get(queue)
        if found is None and passive:
            return self._refuse(channel, 404)
        if found is None:
            found = self.queues[queue] = _Queue(queue, arguments, self.now)
        elif not passive and found.arguments != arguments:
            return self._refuse(channel, 406)
        found.used_at = self.now
        counts = {"message_count": len(found.ready), "consumer_count": self._consumers(found)}
        self._tell(channel, "queue.declare-ok", queue=queue, **counts)

    def _consumers(self, queue: _Queue) -> int:
        """How many consumers there are. A quorum queue counts everybody who holds something of it."""
        count = len(queue.consumers)
        if queue.quorum:
            got = sum(each.consumer is None for each in self._held(queue))
            count += len(self._ended(queue)) + got
        return count

    def _held(self, queue: _Queue) -> list[_Held]:
        held = [each for channel in self.channels.values() for each in channel.held.values()]
        return [each for each in held if each.queue is queue]

    def _ended(self, queue: _Queue) -> set[str]:
        """Consumers that were cancelled and still hold something."""
        holders = [each.consumer for each in self._held(queue)]
        return {each.tag for each in holders if each is not None and each not in queue.consumers}

    def _exchange_declare(self, channel: int, exchange: str, type: str, durable: int = 0) -> None:
        if self.exchanges.setdefault(exchange, type) != type:
            return self._refuse(channel, 406)
        self._tell(channel, "exchange.declare-ok")

    def _queue_bind(self, channel: int, queue: str, exchange: str, routing_key: str) -> None:
        if exchange not in self.exchanges or queue not in self.queues:
            return self._refuse(channel, 404)
        binding = (exchange, routing_key, queue)
        if binding not in self.bindings:
            self.bindings.append(binding)
        self._tell(channel, "queue.bind-ok")

    def _queue_purge(self, channel: int, queue: str) -> None:
        if queue not in self.queues:
            return self._refuse(channel, 404)
        found = self.queues[queue]
        self._tell(channel, "queue.purge-ok", message_count=len(found.ready))
        found.ready.clear()

    def _queue_delete(self, channel: int, queue: str, if_unused: int = 0, if_empty: int = 0) -> None:
        found = self.queues.get(queue)
        if found is None:
            return self._tell(channel, "queue.delete-ok", message_count=0)
        if found.quorum and (if_unused or if_empty):
            raise Tie  # The connection is closed: quorum queues have no such conditions.
        if (if_unused and found.consumers) or (if_empty and found.ready):
            return self._refuse(channel, 406)
        self._tell(channel, "queue.delete-ok", message_count=len(found.ready))
        self._delete(found)

    def _delete(self, queue: _Queue) -> None:
        """A queue goes with what it holds; its consumers are told."""
        del self.queues[queue.name]
        queue.deleted = True
        self.bindings = [each for each in self.bindings if each[2] != queue.name]
        for consumer in sorted(queue.consumers, key=lambda each: each.tag):
            self._tell(consumer.channel, "basic.cancel", consumer_tag=consumer.tag, no_wait=1)
        queue.consumers.clear()
        queue.turn.clear()

    # --- messages -----------------------------------------------------------------------------------------

    def _publish(
        self,
        number: int,
        routing_key: str,
        exchange: str,
        body: str,
        props: Mapping[str, Any] = {},
        mandatory: int = 0,
    ) -> None:
        if exchange not in self.exchanges:
            return self._refuse(number, 404)
        expiration = int(props["expiration"]) if "expiration" in props else None
        message = _Message(body.encode(), exchange, routing_key, props.get("priority"), expiration)
        queues = self._routed(exchange, routing_key)
        if mandatory and not queues:
            reason = {"reply_code": 312, "reply_text": "NO_ROUTE"}
            self._tell_content(number, "basic.return", message, {}, **reason)
        self.holding = len(queues) > 1
        refused = [queue for queue in queues if not self._arrive(queue, message)]
        self.holding = False
        self._bury()
        channel = self.channels[number]
        if channel.confirms:
            channel.published += 1
            # RabbitMQ sets both bits in every nack.
            outcome = {"multiple": 1, "requeue": 1} if refused else {"multiple": 0}
            method = "basic.nack" if refused else "basic.ack"
            self._tell(number, method, delivery_tag=channel.published, **outcome)

    def _basic_get(self, channel: int, queue: str, no_ack: int = 0) -> None:
        found = self.queues.get(queue)
        if found is None:
            return self._refuse(channel, 404)
        found.used_at = self.now
        head = found.head()
        if head is None:
            return self._tell(channel, "basic.get-empty")
        found.ready.remove(head)
        if not found.quorum or no_ack:  # A quorum queue counts before it looks at what comes next.
            self._drop_expired(found)
            self._bury()
        tag = self.channels[channel].next_tag()
        if not no_ack:
            self.channels[channel].held[tag] = _Held(found, head, None, tag)
        left = {"message_count": len(found.ready)}
        self._deliver(channel, "basic.get-ok", head, delivery_tag=tag, **left)
        self._drop_expired(found)
        self._bury()

    def _deliver(self, channel: int, method: str, copy: _Copy, **how: Any) -> None:
        message = copy.message
        headers: dict[str, Any] = {}
        if message.deaths:
            headers["x-death"] = Tagged("A", [each.tagged() for each in message.deaths])
        if count := copy.returns or copy.failures:
            headers["x-delivery-count"] = count
        for which, place in (("first", message.first_death), ("last", message.last_death)):
            for what in ("exchange", "queue", "reason") if place is not None else ():
                headers[f"x-{which}-death-{what}"] = getattr(place, what)
        self._tell_content(channel, method, message, headers, **how, redelivered=int(copy.redelivered))

    def _basic_consume(
        self, number: int, queue: str, consumer_tag: str, no_ack: int = 0, arguments: Mapping[str, Any] = {}
    ) -> None:
        found = self.queues.get(queue)
        if self.consumer(consumer_tag) is not None:
            raise Tie
        if found is None:
            return self._refuse(number, 404)
        if found.quorum and consumer_tag in self._ended(found):
            raise Tie
        prefetch, priority = self.channels[number].prefetch, arguments.get("x-priority", 0)
        consumer = _Consumer(consumer_tag, found, number, prefetch, bool(no_ack), priority)
        found.consumers.append(consumer)
        found.turn.append(consumer)
        found.active = found.active or consumer
        found.used_at = self.now
        self._tell(number, "basic.consume-ok", consumer_tag=consumer_tag)
        self._hand_out(found)

    def _basic_cancel(self, channel: int, consumer_tag: str) -> None:
        consumer = self.consumer(consumer_tag)
        if consumer is None or consumer.channel != channel:
            raise Tie
        self._tell(channel, "basic.cancel-ok", consumer_tag=consumer_tag)
        self._remove(consumer)
        self._hand_out(consumer.queue)

    # --- settlement ---------------------------------------------------------------------------------------

    def _settle(self, channel: int, how: str, tag: int, multiple: int = 0) -> None:
        held = self.channels[channel].held
        if tag not in held:
            return self._refuse(channel, 406)
        chosen = [each for each in sorted(held) if each == tag or (multiple and each < tag)]
        taken = [held.pop(each) for each in chosen]
        if how == "requeue":
            return self._go_back(taken)
        self.holding = how == "reject"
        for group in _groups(taken) if how == "reject" else [taken]:
            for each in group:
                self._credit(each)
            if how == "reject":
                group.sort(key=lambda each: -each.queue.level(each.copy))
            for each in group:
                each.copy.failures += each.queue.quorum
                if how == "reject" and not each.queue.deleted:
                    self._die(each.queue, each.copy, "rejected")
            for queue in _queues_of(group):
                self._hand_out(queue)
        self.holding = False
        self._bury()

    def _basic_ack(self, channel: int, delivery_tag: int, multiple: int = 0) -> None:
        self._settle(channel, "ack", delivery_tag, multiple)

    def _basic_nack(self, channel: int, delivery_tag: int, multiple: int = 0, requeue: int = 0) -> None:
        self._settle(channel, "requeue" if requeue else "reject", delivery_tag, multiple)

    _basic_reject = _basic_nack

    def _basic_recover(self, channel: int, requeue: int) -> None:
        held = self.channels[channel].held
        taken = [held.pop(tag) for tag in sorted(held)]
        self._tell(channel, "basic.recover-ok")
        self._go_back(taken)

    # --- time ---------------------------------------------------------------------------------------------

    def _pause(self, seconds: float) -> None:
        end = self.now + round(seconds * 1000)
        while (due := min(self._dues(), default=end + 1)) <= end:
            if list(self._dues()).count(due) > 1:
                raise Tie
            self.now = due
            self.origins = {}
            for queue in list(self.queues.values()):
                lease = self._lease_end(queue)
                if lease is not None and lease <= due:
                    self._delete(queue)
                else:
                    self._drop_expired(queue)
            self._bury()
        self.now = end

    def _dues(self) -> Iterable[int]:
        """When something is to happen by itself."""
        for queue in self.queues.values():
            head = queue.head()
            if head is not None and head.dies_at is not None:
                yield head.dies_at
            lease = self._lease_end(queue)
            if lease is not None:
                yield lease

    def _lease_end(self, queue: _Queue) -> int | None:
        """When an unused queue goes: in use it is while it has consumers."""
        expires: int | None = queue.arguments.get("x-expires")
        return None if expires is None or queue.consumers else queue.used_at + expires


def _groups(held: Iterable[_Held]) -> list[list[_Held]]:
    """What is dealt with together: what one consumer got from a queue; what was got stands for itself."""
    groups: dict[tuple[str, str, int], list[_Held]] = {}
    for each in held:
        tag = ("", each.tag) if each.consumer is None else (each.consumer.tag, 0)
        groups.setdefault((each.queue.name, *tag), []).append(each)
    return [groups[key] for key in sorted(groups)]


def _queues_of(held: Iterable[_Held]) -> list[_Queue]:
    """The queues that are still there, each once."""
    return [queue for queue in {id(each.queue): each.queue for each in held}.values() if not queue.deleted]


def _tagged(value: Any) -> Tagged:
    """A field as RabbitMQ sends it."""
    if isinstance(value, Tagged):
        return value
    return Tagged("l", value) if isinstance(value, int) else Tagged("S", value)


def _table(fields: Mapping[str, Any]) -> Tagged:
    return Tagged("F", [(name, _tagged(value)) for name, value in fields.items()])


def _goes_in_circles(message: _Message, queue: str) -> bool:
    """Whether a message has been in the queue, and nobody has rejected it since it left."""
    for death in message.deaths:
        if death.reason == "rejected":
            return False
        if death.queue == queue:
            return True
    return False
