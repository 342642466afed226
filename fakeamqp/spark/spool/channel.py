"""One consuming channel: stores messages, and acknowledges them once the store has them safely."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost, QueueRefused
from fakeamqp.spark.incoming import Receive
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.property_lists import value_of
from fakeamqp.spark.queue_types import check_is_no_stream
from fakeamqp.spark.records import DeliveredRow
from fakeamqp.spark.spool.backlog import Backlog
from fakeamqp.spark.spool.store import Store, log

if TYPE_CHECKING:
    from pika.channel import Channel

# The size at which a segment is written: messages in memory are not safe, and Arrow has limits.
_SEGMENT_OCTETS = 32 << 20
# How long consumers with a smaller window wait for messages that return to their queues.
_RETURN_SECONDS = 1.0


class WindowTooWide(ConnectionLost):
    """The messages are so large that the broker sends too many bytes: a new channel has a smaller window.

    Only a channel with a store on the disk ends this way. Rows in memory would be lost with their channel.
    """


@dataclass(frozen=True)
class SpoolStatus:
    """The state of queues and store when the broker answered.

    Attributes:
        visible: the end of the rows that Spark may have.
        held: the number of messages that arrived and are not visible yet.
        ready: the number of ready messages in the queues.
        arrived: the number of messages that this consumer has received so far, for `Consumer.wait_for_more`.
    """

    visible: int
    held: int
    ready: int
    arrived: int


@dataclass
class SharedState:
    """State that outlives a channel.

    Attributes:
        backlog: the messages to read; later ones are not stored. None means no limit.
        unlimited: True if the size limit of the store does not apply.
        window: the prefetch count, if it is smaller than the option because messages are large.
        arrived: the number of messages received so far.
        redelivered: how many of them had been delivered before, to any consumer.
        unacknowledged: the number of messages of the present channel without an acknowledgement.
        held: how many of them are not in the store.
        depths: the ready messages and consumers of each queue, when they were counted last.
        counted_at: when that was, by the monotonic clock.
        arrived_before: the number of messages received until then.
    """

    backlog: Backlog | None = None
    unlimited: bool = False
    window: int | None = None
    arrived: int = 0
    redelivered: int = 0
    unacknowledged: int = 0
    held: int = 0
    depths: dict[str, dict[str, int]] = field(default_factory=dict)
    counted_at: float = float("-inf")
    arrived_before: int = 0


class ConsumingChannel:
    """Consumes the queues of the options on a channel of its own, from its construction on.

    Raises:
        QueueRefused: the broker refuses a consumer.
        WindowTooWide: the store is full, and more than `prefetchBytes` arrived. Most methods raise it.
        ConnectionLost: the connection, the channel or a consumer has ended. All methods raise it; messages
            that are not in the store are redelivered.
    """

    def __init__(self, link: Link, options: ReadOptions, store: Store, shared: SharedState) -> None:
        self._link = link
        self._options = options
        self._store = store
        self._shared = shared
        self._window = shared.window or options.prefetch
        # Half of the window is acknowledged while the other half arrives.
        self._flush_octets = min(options.prefetch_bytes, _SEGMENT_OCTETS)
        self._flush_rows = min(options.spool_flush_rows, self._window // 2)
        self._buffer: list[DeliveredRow] = []
        # Messages that arrived after the buffer was too large, without their bodies.
        self._surplus: list[DeliveredRow] = []
        self._octets = 0
        self._last_tag = 0
        self._stored_tag = 0
        self._acked_tag = 0
        self._acked_rows = 0
        self._dropped = 0
        # Where messages went back to their queues: the last delivery tag of a gap, and how many it has.
        self._gaps: list[tuple[int, int]] = []
        self._counting = False
        self._flush_at: float | None = None
        self._channel: Channel = link.channel()
        store.new_channel()
        backlog = shared.backlog
        if backlog is not None:
            backlog.restart(store.next)
        for queue in options.queues:
            check_is_no_stream(options.connection, queue)
            with self._refusals(queue):
                link.call(self._channel.queue_declare, queue, passive=True)
        self._consumers = self._consume()
        self._channel.add_on_cancel_callback(lambda _frame: _cancelled(link))
        if backlog is not None and backlog.pending:
            self.ask(backlog)

    def _consume(self) -> dict[str, str]:
        """Open a consumer of every queue with the window as it is now, and return their tags by queue."""
        link, tags = self._link, {}
        link.call(self._channel.basic_qos, prefetch_count=self._window)
        for queue in self._options.queues:
            with self._refusals(queue):
                tags[queue] = link.consume(self._channel, queue, self._receiver(queue))
        return tags

    @contextmanager
    def _refusals(self, queue: str) -> Iterator[None]:
        """Raise errors about a queue as what they are."""
        try:
            yield
        except ConnectionLost as error:
            kind = QueueRefused if self._channel.connection.is_open else ConnectionLost
            raise kind(f"cannot consume from queue {queue!r}: {error}") from None

    def run_due_work(self) -> None:
        """Acknowledge and flush what is due."""
        on_arrival = self._store.acks_on_arrival
        self._acknowledge(self._stored_tag if on_arrival else self._store.committed_tag)
        if self._buffer or self._surplus or (self._dropped and on_arrival):
            self._flush_if_due()
        if self._store.settle_wanted:
            self._settle()
        self._count_unacknowledged()

    def ask(self, backlog: Backlog | None) -> SpoolStatus:
        """Ask the broker for the number of ready messages, and store what it sent before its answer.

        A channel of RabbitMQ may answer with the count before it sends messages that a queue delivered
        earlier. So a second request follows, which the channel answers after those messages.

        Args:
            backlog: starts counting the messages that are in the queues now.
        """
        if backlog is None:
            counts = self.count()
        else:
            self._counting = True
            counts = self._count_at_rest()
            backlog.expect(counts, self._next_offset)
            self._counting = False
        if self._store.shows_when_settled:
            self.flush()
        self._settle()
        self.flush()
        visible = self._store.visible
        held = self._next_offset - visible
        return SpoolStatus(visible, held, sum(counts.values()), self._shared.arrived)

    def _call(self, method: Callable[..., Any], *args: Any, **arguments: Any) -> Any:
        """`Link.call`, which stores what comes before the answer if that is much."""
        answers: list[Any] = []

        def answered() -> bool:
            if self._octets >= self._flush_octets:
                self.flush()
            return bool(answers)

        self._link.check()
        method(*args, callback=answers.append, **arguments)
        timeout = self._options.connection.connect_timeout
        self._link.wait_for(answered, timeout, f"answer {method.__name__}")
        return answers[0]

    def count(self) -> dict[str, int]:
        """The number of ready messages in each queue."""
        shared, counts = self._shared, {}
        for queue in self._options.queues:
            answer = self._call(self._channel.queue_declare, queue, passive=True).method
            counts[queue] = answer.message_count
            shared.depths[queue] = {"ready": answer.message_count, "consumers": answer.consumer_count}
        shared.counted_at, shared.arrived_before = time.monotonic(), shared.arrived
        return counts

    def _settle(self) -> None:
        """Wait for the answer to a request without effect: everything before it has been processed."""
        acked = self._acked_rows  # Not those that are stored and acknowledged behind the request.
        self._call(self._channel.basic_qos, prefetch_count=self._window)
        self._store.settled(acked)

    def _count_at_rest(self) -> dict[str, int]:
        """The number of ready messages in each queue, while none arrives if there are any.

        It is unknown whether messages that arrive meanwhile are in the counts: one may come right behind the
        answer that counts it. Without acknowledgements the broker soon sends no more.
        """
        while True:
            arrived = self._shared.arrived
            counts = self.count()
            self._settle()
            if self._shared.arrived == arrived or not any(counts.values()):
                return counts

    def idle_limit(self) -> float | None:
        """The seconds until the next flush is due; None if none is."""
        if self._flush_at is None or self._is_full():
            return None
        return max(self._flush_at - time.monotonic(), 0.0)

    def _is_full(self) -> bool:
        """True if messages are left to the broker: the store is full, or the backlog is complete."""
        backlog = self._shared.backlog
        if backlog is not None and backlog.rows_left(self._store.next) == 0:
            return True
        return self._store.full and not self._shared.unlimited

    def _flush_if_due(self) -> None:
        now = time.monotonic()
        if self._flush_at is None:
            self._flush_at = now + self._options.spool_flush_interval
        full = len(self._buffer) >= self._flush_rows or self._octets >= self._flush_octets
        if full or now >= self._flush_at:
            self.flush()

    def flush(self, *, at_end: bool = False) -> None:
        """Store received messages, and acknowledge them, as far as the store has space.

        A store without space leaves messages in memory. If they exceed `prefetchBytes`, a store on the disk
        takes them all the same, and the channel ends, for a new one with a smaller window. With a store in
        memory, the channel returns them and all later messages to their queues. The channel always reads its
        socket, because RabbitMQ closes the connection of a client that does not for 30 seconds.

        Args:
            at_end: whether the channel is about to close.
        """
        buffer, rows, octets = self._buffer, len(self._buffer), self._octets
        narrow = False
        while buffer:
            backlog = self._shared.backlog
            if self._is_full():
                narrow = narrow or (not at_end and self._too_wide())
                if not (narrow and self._store.on_disk):
                    break
            segment = buffer[: self._rows_of_segment()]
            if backlog is not None:
                # Count them before they are visible, so that the end of the backlog is known then.
                backlog.messages_arrived(segment)
                if not narrow:
                    segment = segment[: backlog.rows_left(self._store.next)]
            self._store.add(segment)
            self._octets -= sum(message.octets for message in segment)
            del buffer[: len(segment)]
            self._stored_tag = buffer[0].tag - 1 if buffer else self._last_tag
            self._acknowledge_stored(narrow)
        if not buffer:
            self._stored_tag = self._last_tag  # Dropped messages are acknowledged with the stored ones.
        self._acknowledge_stored(narrow)
        self._flush_at = None
        if self._dropped:
            log.info("dropped %d redelivered messages that the spool has already", self._dropped)
            self._dropped = 0
        if narrow and not self._store.on_disk:
            self._note_only()
            narrow = False
        # Messages that return during a count would be missing from it, or counted twice.
        if narrow or (self._surplus and not self._counting and not at_end):
            self._narrow(max(octets // max(rows, 1), 1))

    def _too_wide(self) -> bool:
        """True if too many bytes are in memory, and a smaller window helps."""
        return self._octets >= self._options.prefetch_bytes and self._window > self._store.least_window

    def _narrow(self, average: int) -> None:
        """Make the window smaller, because so many messages of this average size are too many bytes."""
        fitting = self._options.prefetch_bytes // (average * len(self._options.queues))
        window = max(min(fitting, self._window // 2), self._store.least_window)
        what = (
            f"enough messages wait for Spark, and further ones have about {average} bytes: the prefetch "
            f"window is {window} instead of {self._window} from now on"
        )
        self._shared.window = window
        if self._store.on_disk:
            self._link.discard(self._channel)
            # What is stored does not come again to the next channel.
            self._link.call(self._channel.basic_qos, prefetch_count=window)
            self._store.settled(self._acked_rows)
            raise WindowTooWide(what)
        log.warning("%s", what)
        self._window = window
        self._flush_rows = min(self._options.spool_flush_rows, window // 2)
        self._replace_consumers()

    def _note_only(self) -> None:
        """Keep only tag and queue of messages that arrive from now on, to return them later."""
        for queue, tag in self._consumers.items():
            self._link.redirect(self._channel, tag, self._noter(queue))

    def _replace_consumers(self) -> None:
        """Return the messages that are not stored to their queues, and consume with the present window.

        RabbitMQ applies basic.qos to later consumers only. Counts from RabbitMQ 4.3 right after basic.nack
        were too small (measured), so the channel waits until the queues have the messages. Then the broker
        delivers them in the order of their queue, unless another consumer takes them.
        """
        link, channel = self._link, self._channel
        for consumer in self._consumers.values():
            link.call(channel.basic_cancel, consumer)
        link.call(channel.basic_qos, prefetch_count=self._window)  # Answered behind the last deliveries.
        returned = [*self._buffer, *self._surplus]
        for message in returned:
            channel.basic_nack(message.tag, requeue=True)
        if self._shared.backlog is not None:
            self._shared.backlog.returned(returned, self._store.next)
        self._buffer.clear()
        self._surplus.clear()
        self._octets = 0
        self._gaps.append((returned[-1].tag, len(returned)))
        self._last_tag = self._stored_tag
        until = time.monotonic() + _RETURN_SECONDS
        while sum(self.count().values()) < len(returned) and time.monotonic() < until:
            link.turn(_RETURN_SECONDS / 100)
        self._consumers = self._consume()
        self._count_unacknowledged()

    def _acknowledge_stored(self, at_once: bool) -> None:
        if self._store.acks_on_arrival and (at_once or not self._counting):
            self._acknowledge(self._stored_tag)

    def _acknowledge(self, tag: int) -> None:
        """Acknowledge everything up to a delivery tag."""
        if tag > self._acked_tag:
            self._link.check()
            self._channel.basic_ack(tag, multiple=True)
            self._acked_tag = tag
            if tag == self._stored_tag:
                self._acked_rows = self._store.next
            self._gaps = [gap for gap in self._gaps if gap[0] > tag]
        self._count_unacknowledged()

    def _count_unacknowledged(self) -> None:
        returned = sum(count for last, count in self._gaps if last < self._last_tag)
        unacknowledged = self._last_tag - self._acked_tag - returned
        self._shared.unacknowledged = unacknowledged + len(self._surplus)
        self._shared.held = len(self._buffer) + len(self._surplus)

    def _rows_of_segment(self) -> int:
        rows = min(len(self._buffer), self._options.spool_flush_rows)
        if self._octets <= _SEGMENT_OCTETS:
            return rows
        octets = 0
        for index in range(rows):
            octets += self._buffer[index].octets
            if octets > _SEGMENT_OCTETS:
                return max(index, 1)
        return rows

    def _receiver(self, queue: str) -> Receive:
        """The receiver of a queue's messages. It runs for every message, so it calls little."""
        buffer, store, shared, link = self._buffer, self._store, self._shared, self._link

        def receive(tag: int, redelivered: bool, route: bytes, properties: bytes, body: bytes) -> None:
            self._last_tag = tag
            shared.arrived += 1
            if redelivered:
                shared.redelivered += 1
                if self._is_known(queue, properties):
                    self._drop(queue)
                    return
            self._octets += len(body) + len(properties)
            offset = store.next + len(buffer)
            buffer.append(
                DeliveredRow(tag, redelivered, route, properties, body, queue, offset, link.received_at)
            )

        return receive

    def _noter(self, queue: str) -> Receive:
        """The receiver of messages that go back to their queue: it keeps neither properties nor bodies."""

        def receive(tag: int, redelivered: bool, _route: bytes, _properties: bytes, _body: bytes) -> None:
            self._shared.arrived += 1
            offset, at = self._next_offset, self._link.received_at
            self._surplus.append(DeliveredRow(tag, redelivered, b"", b"", b"", queue, offset, at))

        return receive

    @property
    def _next_offset(self) -> int:
        """The offset of the next message to arrive."""
        return self._store.next + len(self._buffer) + len(self._surplus)

    def _is_known(self, queue: str, properties: bytes) -> bool:
        message_id = value_of(properties, "message_id")
        return bool(message_id) and self._store.known(queue, message_id.decode("utf-8", "replace"))

    def _drop(self, queue: str) -> None:
        """Drop a message that the store already has. It is acknowledged together with its neighbours."""
        self._dropped += 1
        backlog = self._shared.backlog
        if backlog is not None:
            backlog.message_arrived(queue, self._store.next + len(self._buffer))


def _cancelled(link: Link) -> None:
    if link.lost is None:
        link.lost = "the broker cancelled a consumer; was its queue deleted?"
