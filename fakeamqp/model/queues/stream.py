"""A stream: messages stay, and each subscription reads them from its own offset, at its own pace.

Theory of operation. A published message goes to the end of a log, which gives it an offset. Every
subscription has its own cursor in the log, and after every operation no cursor has a message ahead that its
subscription could take. Settling a delivery only returns its credit: no message is removed, requeued or
dead-lettered (RabbitMQ: documented).

RabbitMQ writes the messages that have arrived in the meantime as one chunk, and starts, filters and counts by
chunks. Here every message is its own chunk, as in RabbitMQ with a publisher that waits for each confirm.

RabbitMQ stores messages of streams in the format of AMQP 1.0, and converts them back to 0-9-1 for every
consumer. This conversion loses or changes some properties (read in its sources, mostly measured): headers
come out in the order of their names, tables and arrays only under names that begin with `x-`, bytes as text;
`delivery_mode` is always present and `cluster_id` never; timestamps are milliseconds in between (measured).
RabbitMQ 3.10 changes less (measured).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from fakeamqp.model.arguments.queue_arguments import STREAM_OFFSET, QueueOptions, argument_of
from fakeamqp.model.arguments.values import FILTER_SIZES, LARGEST_SEGMENT
from fakeamqp.model.deliveries.subscription import Grant
from fakeamqp.model.errors import ChannelCrash, NotImplementedHere, PreconditionFailed
from fakeamqp.model.messages.message import Int64, Message, ReadableProperties
from fakeamqp.model.operations import STEP, freeing
from fakeamqp.model.queues.queue import NOT_SECURED, Queue
from fakeamqp.model.queues.waiting import QueuedMessage
from fakeamqp.model.timers import Deadline
from fakeamqp.timestamps import Timestamp

if TYPE_CHECKING:
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.deliveries.subscription import Subscription
    from fakeamqp.model.history import DropReason
    from fakeamqp.model.personality import Personality

OFFSET = STREAM_OFFSET
"""The header with a message's offset; it has the name of the consumer argument."""

FILTER_VALUE = "x-stream-filter-value"
"""The header by whose value consumers can filter a stream."""

_LATEST = (2**63 - 1) // 1000  # Seconds: the latest timestamp that does not overflow as milliseconds.
_LONGEST_FILTER_VALUE = 4096
_CHUNK = 52  # Bytes before the message: the header of a chunk, and the length of its only entry.
_ENVELOPE = 96  # Bytes of the message's sections and the names in them (measured on 4.0.5 and 4.3.6).
_LONG = 3  # More bytes for the length of a body of more than 255 bytes.


def _has_decimal(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return any(map(_has_decimal, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Decimal)


def stored_properties(properties: ReadableProperties, *, annotates: bool = True) -> ReadableProperties:
    """The properties as consumers will see them, with a placeholder for the offset;
    `Personality.streams_annotate` says how. ChannelCrash for a header that RabbitMQ cannot convert.
    """
    headers = properties.headers or {}
    if annotates and FILTER_VALUE in headers and not _is_filter_value(headers[FILTER_VALUE]):
        raise ChannelCrash(f"header {FILTER_VALUE} is not a text of at most {_LONGEST_FILTER_VALUE} bytes")
    changes: dict[str, Any] = {OFFSET: Int64(0)}
    removed = []
    for name, value in headers.items():
        swallowed = name.startswith("x-basic-") or (annotates and name in ("x-exchange", "x-routing-key"))
        annotation = annotates and (name == "CC" or name.startswith("x-"))
        if isinstance(value, Decimal) or (annotation and _has_decimal(value)):
            raise ChannelCrash(f"header {name!r} is a decimal, which streams cannot store")
        if swallowed or (isinstance(value, (list, dict)) and not annotation):
            removed.append(name)
        elif isinstance(value, bytes) and annotates:
            changes[name] = value.decode("utf-8", "surrogateescape")
        elif isinstance(value, Timestamp) and value > _LATEST:
            changes[name] = Timestamp(_overflown(value))
    stored = properties.with_headers(changes, removed, ordered=True)
    kept: dict[str, Any] = {}
    timestamp = properties.timestamp
    if timestamp is not None and timestamp > _LATEST:
        kept["timestamp"] = _overflown(timestamp)
    if getattr(properties, "cluster_id", None) is not None:
        kept["cluster_id"] = None
    if not annotates:
        return stored.replace(**kept) if kept else stored
    kept["delivery_mode"] = 2 if properties.delivery_mode == 2 else 1
    expiration = properties.expiration
    if expiration is not None and expiration.isdecimal():
        kept["expiration"] = str(int(expiration))
    return stored.replace(**kept)


def stored_size(message: Message) -> int:
    """The approximate bytes of a message in a stream, without its properties."""
    names = len(message.exchange) + len(message.routing_key)
    size = len(message.body)
    return _CHUNK + _ENVELOPE + names + size + (_LONG if size > 255 else 0)


def size_of_properties(properties: ReadableProperties) -> int:
    """The approximate bytes of properties in a stream."""
    headers = properties.headers or {}
    size = sum(len(name) + 4 + len(str(value)) for name, value in headers.items() if name != OFFSET)
    texts = (
        properties.content_type,
        properties.content_encoding,
        properties.correlation_id,
        properties.reply_to,
        properties.expiration,
        properties.message_id,
        properties.type,
        properties.user_id,
        properties.app_id,
    )
    return size + sum(len(text) + 2 for text in texts if text is not None)


def _overflown(seconds: int) -> int:
    """A timestamp beyond the latest one, after AMQP 1.0 had it as a signed 64-bit number of milliseconds."""
    milliseconds = (seconds * 1000 + 2**63) % 2**64 - 2**63
    towards_zero = abs(milliseconds) // 1000
    return (towards_zero if milliseconds >= 0 else -towards_zero) % 2**64


def _is_filter_value(value: object) -> bool:
    """Whether RabbitMQ accepts this as a filter value."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        return len(value.encode()) <= _LONGEST_FILTER_VALUE
    except UnicodeEncodeError:  # The bytes were not UTF-8.
        return False


_SEGMENT_SIZE: Final = argument_of("max_segment_size")
_FILTER_SIZE: Final = QueueOptions.stream_filter_size.name
_RETENTION_INTERVAL = 3600.0

DEFAULT_SEGMENT_SIZE = 500_000_000
"""Bytes after which a segment is full (RabbitMQ: documented)."""

_SEGMENT_HEADER = 8
_NOTE = 82  # Bytes of a note that names one publisher.

T = TypeVar("T")


class _Segment(Generic[T]):
    """Items with consecutive offsets from `first` on."""

    __slots__ = ("dropped", "first", "following", "items", "octets", "stamp", "stamps")

    def __init__(self, first: int) -> None:
        self.first: int = first
        self.items: list[T] = []
        self.stamps: array[int] = array("q")
        self.stamp: int = 0
        self.octets: int = _SEGMENT_HEADER
        self.following: _Segment[T] | None = None
        self.dropped: bool = False


class Log(Generic[T]):
    """The items by offset, kept in segments that are dropped whole.

    Items are only added at the end, and each has an offset one above the last. A full segment is followed by
    a new one with the next item. Retention drops whole segments from the front, but never the newest one
    (RabbitMQ: documented retention). Readers hold cursors. A cursor knows its segment and its place in it,
    and segments are linked, so reading the next item has constant cost. A cursor whose segment was dropped
    continues with the first item of the log.

    A new segment may begin with a note that names the publishers so far, which takes one offset (RabbitMQ:
    measured). So offsets within a segment have no gaps; between two segments there may be one.

    Attributes:
        segment_size: bytes after which a segment is full.
        max_bytes: limit of the log without its newest segment; None means no limit.
        max_age: limit in milliseconds of the age of a segment's newest item; None means no limit.
        begun: how many segments have been begun.
        lost: called with the items that retention drops.
    """

    def __init__(self) -> None:
        self.segment_size: int = DEFAULT_SEGMENT_SIZE
        self.max_bytes: int | None = None
        self.max_age: float | None = None
        self.next_offset: int = 0
        self.begun: int = 1
        self.lost: Callable[[list[T]], None] = lambda items: None
        self._count = 0
        self._segments: list[_Segment[T]] = [_Segment(0)]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[int, T]]:
        """The items with their offsets."""
        for segment in self._segments:
            yield from enumerate(segment.items, segment.first)

    def append(self, item: T, octets: int, stamp: int, *, noted: bool = False) -> int:
        """Write an item at the end, and return its offset. If that begins a new segment, apply retention.

        `stamp` is in milliseconds since 1970. `noted`: notes of new segments name the item's publisher.
        """
        begun = self.begun
        if noted and self._full:
            self._begin_segment(stamp, note=True)
        if self._full:
            self._begin_segment(stamp)
        segment = self._segments[-1]
        offset = self.next_offset
        segment.items.append(item)
        segment.stamps.append(stamp)
        segment.stamp = stamp
        segment.octets += octets
        self.next_offset = offset + 1
        self._count += 1
        if self.begun != begun:
            self.retain(stamp)
        return offset

    @property
    def _full(self) -> bool:
        return self._segments[-1].octets >= self.segment_size

    def _begin_segment(self, stamp: int, *, note: bool = False) -> None:
        if note:
            self.next_offset += 1
        segment: _Segment[T] = _Segment(self.next_offset)
        segment.stamp = stamp
        if note:
            segment.octets += _NOTE
        self._segments[-1].following = segment
        self._segments.append(segment)
        self.begun += 1

    def truncate(self, keep: Callable[[T], bool]) -> list[T]:
        """Remove items from the end, back to the last one that is to be kept.

        There must be no cursors. Offsets are given again. Returns the removed items, oldest first.
        """
        taken: list[T] = []
        while True:
            segment = self._segments[-1]
            while segment.items and not keep(segment.items[-1]):
                taken.append(segment.items.pop())
                segment.stamps.pop()
                self._count -= 1
            self.next_offset = segment.first + len(segment.items)
            if segment.items or len(self._segments) == 1:
                return taken[::-1]
            self._segments.pop()
            self._segments[-1].following = None

    def discard(self) -> list[list[T]]:
        """Remove all items, for good. Returns those of each segment."""
        self.lost = lambda items: None
        self._count = 0
        items = [segment.items for segment in self._segments]
        for segment in self._segments:
            segment.items = []
        return items

    @property
    def segments(self) -> int:
        return len(self._segments)

    @property
    def oldest_segment_stamp(self) -> int:
        return self._segments[0].stamp

    def retain(self, now: int) -> int:
        """Drop segments beyond the limits at `now` (milliseconds since 1970). Returns how many items."""
        before = self._count
        segments = self._segments
        if self.max_bytes is not None:
            allowed = self.max_bytes - segments[-1].octets
            kept = 1
            for segment in reversed(segments[:-1]):
                if segment.octets > allowed:
                    break
                allowed -= segment.octets
                kept += 1
            self._drop(len(segments) - kept)
        if self.max_age is not None:
            old = 0
            while old < len(segments) - 1 and segments[old].stamp < now - self.max_age:
                old += 1
            self._drop(old)
        return before - self._count

    def _drop(self, count: int) -> None:
        for segment in self._segments[:count]:
            self._count -= len(segment.items)
            segment.dropped = True
            lost, segment.items = segment.items, []
            segment.following = None
            self.lost(lost)
        del self._segments[:count]

    def first(self) -> Cursor[T]:
        return Cursor(self, self._segments[0])

    def last(self) -> Cursor[T]:
        """A cursor at the last item, or at the next one if the log is empty."""
        for segment in reversed(self._segments):
            if segment.items:
                return Cursor(self, segment, len(segment.items) - 1)
        return self.end()

    def end(self) -> Cursor[T]:
        segment = self._segments[-1]
        return Cursor(self, segment, len(segment.items))

    def at(self, offset: int) -> Cursor[T]:
        """A cursor at this offset, or at the first present or future item after it."""
        place = bisect_left(self._segments, offset + 1, key=lambda segment: segment.first) - 1
        return Cursor(self, self._segments[max(0, place)], least=offset)

    def since(self, stamp: float) -> Cursor[T]:
        """A cursor at the first item that was written then or later, or at the next one."""
        for segment in self._segments:
            if segment.items and segment.stamp >= stamp:
                return Cursor(self, segment, bisect_left(segment.stamps, stamp))
        return self.end()


class Cursor(Generic[T]):
    """A reader's place in a log."""

    __slots__ = ("_index", "_least", "_log", "_segment")

    def __init__(self, log: Log[T], segment: _Segment[T], index: int = 0, least: int = 0) -> None:
        self._log = log
        self._segment = segment
        self._index = index
        self._least = least

    @property
    def offset(self) -> int:
        """The offset of the next item, or the lowest that it can have."""
        found = self.peek()
        return max(self._log.next_offset, self._least) if found is None else found[0]

    def peek(self) -> tuple[int, T] | None:
        """The next item with its offset, not yet passed; None if there is none yet."""
        segment = self._segment
        while True:
            if segment.dropped:
                segment = self._segment = self._log._segments[0]
                self._index = 0
            index = self._index
            if index < len(segment.items):
                offset = segment.first + index
                if offset >= self._least:
                    return offset, segment.items[index]
                self._index = min(self._least - segment.first, len(segment.items))
            elif segment.following is None:
                return None
            else:
                segment = self._segment = segment.following
                self._index = 0

    def advance(self) -> None:
        self._index += 1


class LogMessage(QueuedMessage):
    """A message of a stream as consumers get it. Its position is its offset."""

    __slots__ = ()

    @property
    def offset(self) -> int:
        return self.position


class StreamQueue(Queue):
    """A queue of RabbitMQ's type stream."""

    type_name = "stream"
    replicated = True
    keeps_delivered = True
    shares_windows = False
    reports_consumers = False

    __slots__ = ("_last_properties", "_readers", "_retention", "log", "refuses_returns")

    def _prepare(self) -> None:
        self.log: Log[Message] = Log()
        detail = "the stream had become too large or the message too old"
        self.log.lost = lambda lost: self._lost(lost, "retention", detail)
        self._readers: dict[Subscription, _Reader] = {}
        self.refuses_returns: bool = self.virtual_host.state.personality.streams_refuse_rejects
        self._retention = Deadline(self.virtual_host.state.timers, self._retain)
        self._last_properties: tuple[ReadableProperties, ReadableProperties, int] | None = None
        self._adopt_limits()

    # --- declaration --------------------------------------------------------------------------------

    @classmethod
    def check_arguments(
        cls, name: str, virtual_host: str, arguments: Mapping[str, Any], personality: Personality
    ) -> None:
        size = arguments.get(_SEGMENT_SIZE)
        if isinstance(size, int) and size > LARGEST_SEGMENT:
            raise PreconditionFailed(f"Exceeded max value for {_SEGMENT_SIZE}")
        filter_size = arguments.get(_FILTER_SIZE, FILTER_SIZES[0])
        if not isinstance(filter_size, int) or filter_size not in FILTER_SIZES:
            raise PreconditionFailed(personality.stream_filter_size_refusal)

    def check_deletion(self, *, if_unused: bool, if_empty: bool) -> int:
        """A stream checks no condition and reports no messages."""
        return 0

    def apply(self, options: QueueOptions) -> None:
        """Limits apply at once."""
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
        return _Shown(self)

    def enqueue(self, message: Message, dead_letter: bool = False) -> bool:
        """ChannelCrash for a header that RabbitMQ cannot store; a dead letter is dropped instead."""
        try:
            properties, size = self._stored(message.properties)
        except ChannelCrash as crash:
            if message.history is None:
                raise
            self.virtual_host.message_outcomes.dropped(message, self.name, "unstorable", str(crash))
            return True
        self.virtual_host.state.memory.hold(message)  # The copy in the log shares the charge.
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
        """There is space for every message that can be stored."""
        try:
            for message in messages:
                self._stored(message.properties)
        except ChannelCrash:
            return False
        return True

    def _stored(self, properties: ReadableProperties) -> tuple[ReadableProperties, int]:
        """The stored properties, and their size. Consecutive messages often share theirs."""
        last = self._last_properties
        if last is None or last[0] is not properties:
            personality = self.virtual_host.state.personality
            stored = properties
            if getattr(properties, "stored_as_is", False):
                if properties.unwritable:  # type: ignore[attr-defined]
                    raise ChannelCrash("a message that RabbitMQ cannot write")
            elif personality.streams_rewrite_properties:
                stored = stored_properties(properties, annotates=personality.streams_annotate)
            last = self._last_properties = (properties, stored, size_of_properties(stored))
        return last[1], last[2]

    def could_take(self, message: Message) -> bool:
        readers = tuple(self._readers.values())  # A test of messages may end its subscription.
        return any(reader.peek() is None and reader.subscription.admits(message) for reader in readers)

    def message_at(self, offset: int, message: Message) -> LogMessage:
        properties = message.properties.with_headers(
            {OFFSET: Int64(offset)}, ordered=self.virtual_host.state.personality.sorts_headers
        )
        return LogMessage(message.with_properties(properties), offset, None)

    # --- departure ----------------------------------------------------------------------------------

    def dispatch(self) -> None:
        for reader in tuple(self._readers.values()):
            if reader.subscription.passes is None:
                while self._feed(reader):
                    pass
            elif not reader.scanning:
                reader.scanning = True
                self.virtual_host.state.operations.run(self._scan(reader))

    def _scan(self, reader: _Reader) -> Iterator[None]:
        """Steps that feed a subscription which tests messages; without credit it tests none."""
        subscription = reader.subscription
        try:
            while subscription.active and not subscription.paused:
                if reader.skip(STEP):
                    yield
                elif not self._feed(reader):
                    return
        finally:
            reader.scanning = False

    def _feed(self, reader: _Reader) -> bool:
        """Send a subscription the message ahead of its cursor. False if there is none, or no credit."""
        subscription = reader.subscription
        found = reader.peek() if subscription.active else None
        if found is None:
            return False
        offset, message = found
        for limit in subscription.limits:
            if not limit.admits(message):
                return False
        reader.cursor.advance()
        queued = self.message_at(offset, message)
        if subscription.acquires:
            self.hand_over(queued, subscription)
        else:
            self.show(queued, subscription)
        return True

    def get(
        self, owner: object, *, no_ack: bool, group: object = None, content_class: str | None = None
    ) -> NoReturn:
        raise NotImplementedHere(f"basic.get not supported by stream queues {self.place}")

    def purge(self) -> NoReturn:
        raise NotImplementedHere(f"queue.purge not supported by stream queues {self.place}")

    def clear(self) -> list[Message]:
        """A stream's messages are deleted with it."""
        return []

    abandon = clear

    def drop_all(self, reason: DropReason, detail: str) -> None:
        for messages in self.log.discard():
            self._lost(messages, reason, detail)

    def _lost(self, messages: list[Message], reason: DropReason, detail: str) -> None:
        """Report the messages of a segment that the log has dropped, and free them, in steps."""
        reporting = self.virtual_host.message_outcomes.dropping(messages, self.name, reason, detail)
        self.virtual_host.state.operations.run(chain(reporting, freeing(messages)))

    # --- settlement ---------------------------------------------------------------------------------

    def reject(self, delivery: Delivery) -> None:
        """It has the effect of accepting."""
        self.forget(delivery)

    def taking_back(
        self, deliveries: Sequence[Delivery], *, avoid: object = None, redelivered: bool = True
    ) -> Iterator[None]:
        """Delivered messages never left the stream."""
        for delivery in deliveries:
            self.forget(delivery)
        return iter(())

    def keep_persistent(self, *, crash: bool = False) -> None:
        """A crash loses the messages after the last confirmed one, a restart none."""
        for delivery in self.keep_in_doubt(crash=crash):
            del self.unacked[delivery]
        if crash:
            lost = self.log.truncate(lambda message: message.secured)
            self.virtual_host.message_outcomes.dropped_all(lost, self.name, "crash", NOT_SECURED)

    # --- subscriptions ------------------------------------------------------------------------------

    def check_subscription(self, subscription: Subscription) -> None:
        """A stream ignores exclusive access."""
        personality = self.virtual_host.state.personality
        unlimited, automatic = (words.format(self.place) for words in personality.stream_consumer_terms)
        granted = any(isinstance(limit, Grant) for limit in subscription.limits)
        if not granted and not any(credit.message_limit for credit in subscription.credits):
            raise PreconditionFailed(f"consumer prefetch count is not set for {unlimited}")
        if subscription.no_ack and subscription.acquires:
            raise NotImplementedHere(f"automatic acknowledgement not supported by {automatic}")
        if subscription.shares_window and personality.prefetch_is_per_consumer:
            raise NotImplementedHere(f"{self.place} does not support global qos")
        options = subscription.options
        if options.stream_offset.kind == "crash":
            raise ChannelCrash("x-stream-offset is of a type that means no offset")
        if options.filters == ():
            raise ChannelCrash("x-stream-filter holds no text")

    def _enter(self, subscription: Subscription) -> None:
        """The subscription begins at the requested offset."""
        self._readers[subscription] = _Reader(subscription, self._cursor_for(subscription))

    def _leave(self, subscription: Subscription) -> None:
        self._readers.pop(subscription, None)

    def _cursor_for(self, subscription: Subscription) -> Cursor[Message]:
        log = self.log
        start = subscription.options.stream_offset
        # By default a browser begins with the first message (message/acquire-not-acquired).
        browses = not subscription.acquires and STREAM_OFFSET not in subscription.arguments
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

    def detach_all(self) -> list[Subscription]:
        self._readers.clear()
        self._retention.stop()
        return super().detach_all()

    def next_offset(self, subscription: Subscription) -> int | None:
        reader = self._readers.get(subscription)
        return None if reader is None else reader.cursor.offset

    def count_for(self, subscription: Subscription) -> int:
        """Those ahead of it, whether or not it selects them (RabbitMQ: measured on 4.3.6)."""
        return max(0, self.log.next_offset - (self.next_offset(subscription) or 0))

    # --- time ---------------------------------------------------------------------------------------

    def _stamp(self) -> int:
        return int(self.virtual_host.state.clock.time() * 1000)

    def _retain(self) -> None:
        self.log.retain(self._stamp())
        self._watch_age()

    def _watch_age(self) -> None:
        """Set the timer that drops old segments.

        RabbitMQ checks every hour, counted from the beginning of the last segment or a change of limits. Here
        the timer skips the hours in which there is nothing to drop.
        """
        log = self.log
        self._retention.set(None)
        if log.max_age is None or log.segments == 1:
            return
        too_old_in = (log.oldest_segment_stamp + log.max_age - self._stamp()) / 1000
        hours = max(1, too_old_in // _RETENTION_INTERVAL + 1)
        due = self.virtual_host.now() + hours * _RETENTION_INTERVAL
        self._retention.set(due, f"q '{self.name}' drops messages past their age")


class _Reader:
    """The position of one subscription in the log."""

    __slots__ = ("_passed", "_selects", "cursor", "scanning", "subscription")

    def __init__(self, subscription: Subscription, cursor: Cursor[Message]) -> None:
        self.subscription = subscription
        self.cursor = cursor
        self.scanning: bool = False
        """Whether an operation takes it through the log."""
        self._selects = bool(
            subscription.options.filters is not None or subscription.picks or subscription.passes
        )
        self._passed = -1
        """The offset of the next message, once it has passed the test."""

    def peek(self) -> tuple[int, Message] | None:
        """The next message that suits the subscription; others are skipped."""
        if self._selects:
            while self.skip(STEP):
                pass
        return self.cursor.peek()

    def skip(self, most: int) -> bool:
        """Skip messages that do not suit the subscription. True if they are `most`, and there may be more."""
        found = self.cursor.peek()
        for _ in range(most):
            if found is None or self._suits(*found):
                return False
            self.cursor.advance()
            found = self.cursor.peek()
        return True

    def _suits(self, offset: int, message: Message) -> bool:
        subscription = self.subscription
        options = subscription.options
        if options.filters is not None:
            value = message.headers.get(FILTER_VALUE, "")
            if value not in options.filters and (value != "" or not options.match_unfiltered):
                return False
        if not subscription.suits(message):
            return False
        if subscription.passes is not None and offset != self._passed:
            if not subscription.passes(message):
                return False
            self._passed = offset
        return True


class _Shown:
    """The messages of a stream in the form of `Queue.ready`."""

    __slots__ = ("_queue",)

    def __init__(self, queue: StreamQueue) -> None:
        self._queue = queue

    def __len__(self) -> int:
        return len(self._queue.log)

    def __iter__(self) -> Iterator[QueuedMessage]:
        for offset, message in self._queue.log:
            yield self._queue.message_at(offset, message)
