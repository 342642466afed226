"""A stream: messages stay, and everybody reads them from where they like, at their own pace.

Theory of operation. What is published goes to the end of a log and has an offset from then on. Every
subscription has a cursor of its own in it, and after every operation no cursor has a message before it
that its subscription could take. Settling a delivery, in whatever way, only gives its credit back: nothing
is ever taken out for it, comes back, or is dead-lettered (RabbitMQ: documented).

RabbitMQ writes messages in chunks of as many as have arrived meanwhile, and begins, filters and counts by
the chunk. Here every message is a chunk of its own, as there with a publisher that waits for each confirm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from fakeamqp.model.credit import Grant
from fakeamqp.model.delivery import Delivery
from fakeamqp.model.errors import Crash, NotImplementedHere, PreconditionFailed
from fakeamqp.model.long import Long
from fakeamqp.model.queues.log import DEFAULT_SEGMENT_SIZE, Cursor, Log
from fakeamqp.model.queues.queue import NOT_SECURED, Queue, QueuedMessage
from fakeamqp.model.queues.stored import (
    FILTER_VALUE,
    OFFSET,
    size_of_properties,
    stored_properties,
    stored_size,
)

if TYPE_CHECKING:
    from fakeamqp.model.ends import DropReason
    from fakeamqp.model.message import Message, Properties
    from fakeamqp.model.personality import Personality
    from fakeamqp.model.queues.options import QueueOptions
    from fakeamqp.model.subscription import Subscription
    from fakeamqp.model.timers import Timer

__all__ = ["StreamMessage", "StreamQueue"]

_LARGEST_SEGMENT = 3_000_000_000
_FILTER_SIZES = range(16, 256)
_RETENTION_INTERVAL = 3600.0


class StreamMessage(QueuedMessage):
    """A message of a stream, as it is shown and sent. Its position is its offset."""

    __slots__ = ()

    @property
    def offset(self) -> int:
        """Its place in the stream."""
        return self.position


class StreamQueue(Queue):
    """A queue of the type that RabbitMQ calls stream."""

    type_name = "stream"
    replicated = True
    keeps_delivered = True
    shares_windows = False
    reports_consumers = False

    __slots__ = ("_last_properties", "_readers", "_retention_timer", "log")

    def _prepare(self) -> None:
        """See the base class."""
        self.log: Log[Message] = Log()
        self.log.lost = self._retired
        self._readers: dict[Subscription, _Reader] = {}
        self._retention_timer: Timer | None = None
        self._last_properties: tuple[Properties, Properties, int] | None = None
        self._adopt_limits()

    # --- declaration --------------------------------------------------------------------------------

    @classmethod
    def check_arguments(
        cls, name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
    ) -> None:
        """See the base class."""
        size = arguments.get("x-stream-max-segment-size-bytes")
        if isinstance(size, int) and size > _LARGEST_SEGMENT:
            raise PreconditionFailed("Exceeded max value for x-stream-max-segment-size-bytes")
        filter_size = arguments.get("x-stream-filter-size-bytes", _FILTER_SIZES[0])
        if not isinstance(filter_size, int) or filter_size not in _FILTER_SIZES:
            raise PreconditionFailed(personality.stream_filter_size_refusal)

    def check_deletion(self, *, if_unused: bool, if_empty: bool) -> int:
        """See the base class: a stream goes on no condition, and says nothing of what it held."""
        return 0

    # --- options ------------------------------------------------------------------------------------

    def apply(self, options: QueueOptions) -> None:
        """See the base class: limits hold at once."""
        super().apply(options)
        self._adopt_limits()
        self._retain()

    def _adopt_limits(self) -> None:
        options = self.options
        size = options.max_segment_size
        self.log.segment_size = DEFAULT_SEGMENT_SIZE if size is None else size
        self.log.max_bytes = options.max_length_bytes
        self.log.max_age = None if options.max_age is None else options.max_age * 1000

    # --- arrival ------------------------------------------------------------------------------------

    @property
    def ready(self) -> _Shown:
        """All there is, as consumers get it."""
        return _Shown(self)

    def enqueue(self, message: Message) -> bool:
        """See the base class.

        Raises:
            Crash: a header is none that RabbitMQ can store. A dead letter is dropped instead.
        """
        try:
            properties, size = self._stored(message.properties)
        except Crash as crash:
            if message.history is None:
                raise
            self.virtual_host.ends.dropped(message, self.name, "unstorable", str(crash))
            return True
        log = self.log
        begun = log.begun
        log.append(
            message.with_properties(properties),
            stored_size(message) + size,
            self._stamp(),
            noted=message.history is None,
        )
        if log.begun != begun:
            self._watch_age()
        self.dispatch()
        return True

    def has_room(self, messages: Sequence[Message]) -> bool:
        """See the base class: there is for what can be stored at all."""
        try:
            for message in messages:
                self._stored(message.properties)
        except Crash:
            return False
        return True

    def _stored(self, properties: Properties) -> tuple[Properties, int]:
        """The properties as they are kept, and their size. Messages in a row often share theirs."""
        last = self._last_properties
        if last is None or last[0] is not properties:
            rewrites = self.virtual_host.state.personality.streams_rewrite_properties
            stored = stored_properties(properties) if rewrites else properties
            last = self._last_properties = (properties, stored, size_of_properties(stored))
        return last[1], last[2]

    def could_take(self, message: Message) -> bool:
        """See the base class."""
        return any(
            reader.peek() is None and all(limit.admits(message) for limit in reader.subscription.limits)
            for reader in self._readers.values()
        )

    def message_at(self, offset: int, message: Message) -> StreamMessage:
        """A message of the log as it is shown and sent."""
        properties = message.properties.with_headers({OFFSET: Long(offset)})
        return StreamMessage(message.with_properties(properties), offset, None, self.virtual_host.now())

    # --- departure ----------------------------------------------------------------------------------

    def dispatch(self) -> None:
        """See the base class."""
        for reader in tuple(self._readers.values()):
            self._feed(reader)

    def _feed(self, reader: _Reader) -> None:
        """Send a subscription what is before its cursor, as far as its credit goes."""
        subscription = reader.subscription
        while subscription.active:
            found = reader.peek()
            if found is None:
                return
            offset, message = found
            for limit in subscription.limits:
                if not limit.admits(message):
                    return
            reader.cursor.advance()
            queued = self.message_at(offset, message)
            if not subscription.acquires:
                self._let_see(queued, subscription)
                continue
            credits = subscription.credits
            for credit in credits:
                credit.take(message)
            now = self.virtual_host.now()
            delivery = Delivery(self, queued, subscription, subscription.owner, credits, now)
            self.unacked[delivery] = None
            subscription.subscriber.deliver(subscription, queued.message, False, delivery)

    def get(
        self, owner: object, *, no_ack: bool, group: object = None, content_class: str | None = None
    ) -> NoReturn:
        """Streams have no single messages to give away.

        Raises:
            NotImplementedHere: always.
        """
        raise NotImplementedHere(f"basic.get not supported by stream queues {self._place}")

    def purge(self) -> NoReturn:
        """Nothing is taken out of a stream.

        Raises:
            NotImplementedHere: always.
        """
        raise NotImplementedHere(f"queue.purge not supported by stream queues {self._place}")

    def clear(self) -> list[Message]:
        """See the base class: what a stream holds goes with it."""
        return []

    def abandon(self) -> list[Message]:
        """See the base class: what a stream holds goes with it."""
        return []

    def drop_all(self, reason: DropReason, detail: str) -> None:
        """See the base class."""
        self.virtual_host.ends.dropped_all((each.item for each in self.log), self.name, reason, detail)

    @property
    def _place(self) -> str:
        return f"queue '{self.name}' in vhost '{self.virtual_host.name}'"

    # --- settlement ---------------------------------------------------------------------------------

    def forget(self, delivery: Delivery) -> None:
        """See the base class."""
        self.unacked.pop(delivery, None)

    def refuse(self, delivery: Delivery) -> None:
        """See the base class: the same as accepting."""
        self.unacked.pop(delivery, None)

    def take_back(
        self, deliveries: Iterable[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> None:
        """See the base class: what clients hold has never been away."""
        for delivery in deliveries:
            self.unacked.pop(delivery, None)

    def keep_persistent(self, *, crash: bool = False) -> None:
        """See the base class: all is kept. A crash loses what came after the last confirmed message."""
        for delivery in self.keep_in_doubt(crash=crash):
            del self.unacked[delivery]
        if crash:
            lost = self.log.truncate(lambda message: message.secured)
            self.virtual_host.ends.dropped_all(lost, self.name, "crash", NOT_SECURED)

    # --- subscriptions ------------------------------------------------------------------------------

    def check_subscription(self, subscription: Subscription) -> None:
        """See the base class; exclusive access means nothing to a stream.

        Raises:
            PreconditionFailed: there is no prefetch count, and no credit by grants either.
            NotImplementedHere: it would take messages and not acknowledge them, or shares its credit with
                others.
            Crash: its arguments are none that RabbitMQ can start with.
        """
        personality = self.virtual_host.state.personality
        unlimited, automatic = (words.format(self._place) for words in personality.stream_consumer_words)
        granted = any(isinstance(limit, Grant) for limit in subscription.limits)
        if not granted and not any(credit.message_limit for credit in subscription.credits):
            raise PreconditionFailed(f"consumer prefetch count is not set for {unlimited}")
        if subscription.no_ack and subscription.acquires:
            raise NotImplementedHere(f"automatic acknowledgement not supported by {automatic}")
        if subscription.shares_window and personality.prefetch_is_per_consumer:
            raise NotImplementedHere(f"{self._place} does not support global qos")
        options = subscription.options
        if options.stream_offset.kind == "crash":
            raise Crash("x-stream-offset is of a type that means no offset")
        if options.filters == ():
            raise Crash("x-stream-filter holds no text")

    def subscribe(self, subscription: Subscription) -> None:
        """See the base class: the subscription begins where it asks to."""
        try:
            self.check_subscription(subscription)
        except BaseException:
            subscription.end()
            raise
        self.subscriptions[subscription] = None
        self._readers[subscription] = _Reader(subscription, self._cursor_for(subscription))

    def _cursor_for(self, subscription: Subscription) -> Cursor[Message]:
        log = self.log
        start = subscription.options.stream_offset
        # Who looks at a queue is shown what it holds, unless told otherwise (message/acquire-not-acquired).
        browses = not subscription.acquires and "x-stream-offset" not in subscription.arguments
        if start.kind == "first" or browses:
            return log.first()
        if start.kind == "last":
            return log.last()
        if start.kind == "offset":
            return log.at(int(start.number))
        if start.kind == "time":
            return log.since(start.number * 1000)
        if start.kind == "age":
            return log.since(self._stamp() - start.number * 1000)
        return log.end()

    def unsubscribe(self, subscription: Subscription) -> None:
        """See the base class."""
        self._readers.pop(subscription, None)
        super().unsubscribe(subscription)

    def detach_all(self) -> list[Subscription]:
        """See the base class."""
        self._readers.clear()
        if self._retention_timer is not None:
            self._retention_timer.cancel()
        return super().detach_all()

    def next_offset(self, subscription: Subscription) -> int | None:
        """See the base class."""
        reader = self._readers.get(subscription)
        return None if reader is None else reader.cursor.offset

    # --- time ---------------------------------------------------------------------------------------

    def _stamp(self) -> int:
        """Now, in milliseconds since 1970."""
        return int(self.virtual_host.state.clock.time() * 1000)

    def _retired(self, lost: list[Message]) -> None:
        self.virtual_host.ends.dropped_all(
            lost, self.name, "retention", "the stream had become too large or the message too old"
        )

    def _retain(self) -> None:
        self.log.retain(self._stamp())
        self._watch_age()

    def _watch_age(self) -> None:
        """Have old segments dropped.

        RabbitMQ looks every hour, counted from the last segment's beginning or change of limits. All of
        these hours but the first in which there is something to drop are left out here.
        """
        if self._retention_timer is not None:
            self._retention_timer.cancel()
            self._retention_timer = None
        log = self.log
        if log.max_age is None or log.segments == 1:
            return
        too_old_in = (log.oldest_segment_stamp + log.max_age - self._stamp()) / 1000
        hours = max(1, too_old_in // _RETENTION_INTERVAL + 1)
        self._retention_timer = self.virtual_host.call_later(
            hours * _RETENTION_INTERVAL, self._retain, f"q '{self.name}' drops messages past their age"
        )


class _Reader:
    """One subscription's way through the log."""

    __slots__ = ("cursor", "subscription")

    def __init__(self, subscription: Subscription, cursor: Cursor[Message]) -> None:
        self.subscription = subscription
        self.cursor = cursor

    def peek(self) -> tuple[int, Message] | None:
        """The next message for this subscription; what is not for it is passed over."""
        subscription = self.subscription
        found = self.cursor.peek()
        if subscription.options.filters is not None or subscription.picks:
            while found is not None and not self._suits(found[1]):
                self.cursor.advance()
                found = self.cursor.peek()
        return found

    def _suits(self, message: Message) -> bool:
        subscription = self.subscription
        if not subscription.suits(message):
            return False
        filters = subscription.options.filters
        if filters is None:
            return True
        value = message.headers.get(FILTER_VALUE, "")
        return value in filters or (value == "" and subscription.options.match_unfiltered)


class _Shown:
    """The messages of a stream as `Queue.ready` has them."""

    __slots__ = ("_queue",)

    def __init__(self, queue: StreamQueue) -> None:
        self._queue = queue

    def __len__(self) -> int:
        return len(self._queue.log)

    def __iter__(self) -> Iterator[QueuedMessage]:
        for entry in self._queue.log:
            yield self._queue.message_at(entry.offset, entry.item)
