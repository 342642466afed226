"""One consuming channel: stores messages, and acknowledges them once the store has them safely."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.protocols.amqp_0_9_1.codec.methods import QueueDeclare
from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.queue.store import Store
from fakeamqp.spark.rows.record_batches import DeliveredRow
from fakeamqp.spark.wire.refusals import refused

if TYPE_CHECKING:
    from fakeamqp.spark.wire.channel import Receive
    from fakeamqp.spark.wire.connection import WireConnection

# The size at which a segment is written: messages in memory are not safe, and Arrow has limits.
_SEGMENT_BYTES = 32 << 20


class WindowTooWide(Exception):
    """The messages are so large that the broker sends too many bytes: the next channel has a smaller window.

    The channel is closed, and the broker has processed its acknowledgements. A store on the disk has all that
    was received. With one in memory, messages without an acknowledgement are in their queues again; with
    `ackMode=commit` also those that Spark has got and not committed.
    """


class Status(NamedTuple):
    """The state of queues and store when the broker answered."""

    visible: int  # The end of the rows that Spark may have.
    held: int  # The number of messages that arrived and are not visible yet.
    ready: int  # The number of ready messages in the queues.
    arrived: int  # The number of messages that were received so far, for `QueueConsumer.wait_for_more`.


class Backlog:
    """Counts the arrival of the messages that were in the queues when `expect` was called.

    Messages of a queue arrive in its order, so the backlog of a queue has arrived after as many messages as
    it had. Each queue is counted for itself.

    Attributes:
        row: the end of the backlog, exclusive; None while messages are missing.
    """

    def __init__(self) -> None:
        self.row: int | None = None
        self._missing: dict[str, int] = {}

    def expect(self, counts: Mapping[str, int], next_row: int) -> None:
        """Start counting: the queues have `counts` messages, which arrive as row `next_row` or later."""
        self._missing = {queue: count for queue, count in counts.items() if count}
        self.row = None if self._missing else next_row

    def message_arrived(self, queue: str, end: int) -> None:
        """Count a message that arrived or was dropped as a repetition; `end` is the end of the rows."""
        if self.row is None and queue in self._missing:
            self._missing[queue] -= 1
            if not self._missing[queue]:
                del self._missing[queue]
            if not self._missing:
                self.row = end

    def is_over(self, next_row: int) -> bool:
        """Whether the backlog ends at this row, or before."""
        return self.row is not None and self.row <= next_row

    def restart(self, next_row: int) -> None:
        """Count again on a new channel, unless all is stored: the other messages are redelivered.

        Messages that were published meanwhile are counted as well.
        """
        if not self.is_over(next_row):
            self.row = None

    def end_at(self, row: int) -> None:
        """Set the end, because no more messages of the backlog will arrive."""
        self._missing, self.row = {}, row


@dataclass
class ConsumerState:
    """State that outlives a channel."""

    backlog: Backlog | None = None  # The messages to read: later ones are not stored. None for no limit.
    unlimited: bool = False  # Whether the size limit of the store does not apply.
    window: int | None = None  # The prefetch count, if it is smaller than the option.
    arrived: int = 0  # The number of messages that were received so far.
    redelivered: int = 0  # How many of them had been delivered before, to any consumer.
    dropped: Counter[str] = field(default_factory=Counter)  # How many of those the store had, by queue.
    unacknowledged: int = 0  # The messages of the present channel without an acknowledgement.
    held: int = 0  # How many of them are not in the store.
    depths: dict[str, dict[str, int]] = field(default_factory=dict)  # When the queues were counted last.
    counted_at: float = float("-inf")  # When that was, by the monotonic clock.
    arrived_before: int = 0  # The number of messages that were received until then.


class ConsumingChannel:
    """Consumes the queues of the options on a channel of its own, from its construction on.

    Raises:
        QueueRefused: the broker refuses a consumer.
        WindowTooWide: the store is full, and more than `prefetchBytes` arrived. All methods may raise it.
        ConnectionLost: the connection, the channel or a consumer has ended. All methods may raise it.
        SpoolError: messages cannot be stored. All methods may raise it.
    """

    def __init__(
        self, connection: WireConnection, options: ReadOptions, store: Store, state: ConsumerState
    ) -> None:
        self._connection, self._options, self._store, self._state = connection, options, store, state
        self._window = state.window or options.prefetch
        # Half of the window is acknowledged while the other half arrives.
        self._flush_rows = min(options.spool_flush_rows, self._window // 2)
        self._flush_bytes = min(options.prefetch_bytes, _SEGMENT_BYTES)
        self._flush_at: float | None = None
        # Messages that are not in the store, and their bytes.
        self._buffer: list[DeliveredRow] = []
        self._buffered = 0
        self._last_tag = self._stored_tag = self._acked_tag = 0
        self._counting = False
        store.new_channel()
        # The end of the rows that are acknowledged, and of those of which the broker is known to know it.
        self._first = self._acked = self._settled = store.next
        self._channel = connection.channel()
        self._channel.qos(self._window)
        priority = options.consumer_priority
        arguments = {} if priority is None else {"x-priority": priority}
        for queue in options.queues:
            try:
                self._channel.consume(queue, self._receiver(queue), arguments)
            except ConnectionLost as error:
                raise refused(f"cannot consume from queue {queue!r}", error) from None
        if (backlog := state.backlog) is not None:
            backlog.restart(store.next)
            if backlog.row is None:
                self.ask(backlog)

    def _receiver(self, queue: str) -> Receive:
        """The receiver of a queue's messages. It runs for every message, so it calls little."""
        buffer, store, state, connection = self._buffer, self._store, self._state, self._connection

        def receive(tag: int, redelivered: bool, route: bytes, properties: bytes, body: bytes) -> None:
            self._last_tag = tag
            state.arrived += 1
            row = store.next + len(buffer)
            if redelivered:
                state.redelivered += 1
            if redelivered and store.repeats(queue, properties, body):
                state.dropped[queue] += 1  # It is acknowledged together with its neighbours.
            else:
                at = connection.received_at
                buffer.append(DeliveredRow(tag, redelivered, route, properties, body, queue, row, at))
                self._buffered += len(body) + len(properties)
                row += 1
            if (backlog := state.backlog) is not None:
                backlog.message_arrived(queue, row)

        return receive

    def run_due_work(self) -> float | None:
        """Acknowledge and flush what is due. Returns the seconds until the next flush is; None for never."""
        self._channel.check()
        self._acknowledge()
        if self._last_tag > self._stored_tag:
            now = time.monotonic()
            if self._flush_at is None:
                self._flush_at = now + self._options.spool_flush_interval
            full = len(self._buffer) >= self._flush_rows or self._buffered >= self._flush_bytes
            if full or now >= self._flush_at:
                self.flush()
        if self._store.on_disk and self._settled < self._store.committed:
            self._settle()  # Segments that are not needed any more are kept until then.
        due = None if self._is_full() else self._flush_at
        return due and due - time.monotonic()

    def ask(self, backlog: Backlog | None = None) -> Status:
        """Ask the broker for the number of ready messages, and store what it sent before its answer.

        A channel of RabbitMQ may answer with the count before it sends messages that a queue delivered
        earlier. So a second request follows, which the channel answers after those messages. A backlog starts
        counting the messages that are in the queues now.
        """
        if backlog is None:
            ready = self.count()
        else:
            self._counting = True
            ready = self._count_at_rest()
            backlog.expect(ready, self._store.next + len(self._buffer))
            self._counting = False
        if not self._store.on_disk:  # Acknowledgements that are answered for make rows visible.
            self.flush()
        self._settle()
        self.flush()
        visible = self._store.visible
        held = self._store.next + len(self._buffer) - visible
        return Status(visible, held, sum(ready.values()), self._state.arrived)

    def count(self) -> dict[str, int]:
        """The number of ready messages in each queue."""
        state, queues = self._state, self._options.queues
        declares = [QueueDeclare(queue=queue, passive=True) for queue in queues]
        answers = self._channel.call_all(declares, self._store_much)
        depths = [{"ready": each.message_count, "consumers": each.consumer_count} for each in answers]
        state.depths = dict(zip(queues, depths, strict=True))
        state.counted_at, state.arrived_before = time.monotonic(), state.arrived
        return {queue: depth["ready"] for queue, depth in state.depths.items()}

    def flush(self, *, at_end: bool = False) -> None:
        """Store received messages, and acknowledge them, as far as the store has space.

        A store without space leaves messages in memory. If they exceed `prefetchBytes`, a store on the disk
        takes them all the same, and the channel ends, unless it is `at_end` anyway. It always reads its
        socket, because RabbitMQ closes the connection of a client that does not for 30 seconds.
        """
        store, buffer = self._store, self._buffer
        average = max(self._buffered // max(len(buffer), 1), 1)
        too_wide = False
        while buffer:
            end = None
            if self._is_full():
                exceeded = (
                    self._buffered >= self._options.prefetch_bytes and self._window > store.least_window
                )
                too_wide |= exceeded and not at_end
                if not (too_wide and store.on_disk):
                    break
            elif (backlog := self._state.backlog) is not None:
                end = backlog.row
            segment = self._segment(end)
            store.add(segment)
            del buffer[: len(segment)]
            self._buffered = self._buffered - sum(each.size for each in segment) if buffer else 0
            self._stored_tag = segment[-1].tag
            self._acknowledge()
        if not buffer:
            self._stored_tag = self._last_tag
        self._acknowledge()
        self._flush_at = None
        if too_wide:
            self._end(average)

    def _segment(self, end: int | None) -> list[DeliveredRow]:
        """The messages of the next segment, which ends at row `end` at the latest."""
        most = self._options.spool_flush_rows
        messages = self._buffer[: most if end is None else min(most, max(end - self._store.next, 1))]
        if self._buffered > _SEGMENT_BYTES:
            size = 0
            for index, message in enumerate(messages):
                size += message.size
                if size > _SEGMENT_BYTES:
                    return messages[: max(index, 1)]
        return messages

    def _end(self, average: int) -> None:
        """End the channel, because so many messages of this average size are too many bytes."""
        fitting = self._options.prefetch_bytes // (average * len(self._options.queues))
        window = max(min(fitting, self._window // 2), self._store.least_window)
        self._state.window = window
        self._counting = False
        self._acknowledge()
        self._channel.close()  # Answered when the broker has processed the acknowledgements.
        self._store.settled(self._acked)
        raise WindowTooWide(
            f"enough messages wait for Spark, and further ones have about {average} bytes: the prefetch "
            f"window is {window} instead of {self._window} from now on"
        )

    def _acknowledge(self) -> None:
        """Acknowledge what the store has safely, but nothing while a backlog is counted."""
        store, state = self._store, self._state
        # Tags count the messages of a channel, and a store that waits for Spark has all of them as rows.
        tag = self._stored_tag if store.acks_on_arrival else store.committed - self._first
        if tag > self._acked_tag and not self._counting:
            self._channel.check()
            self._channel.ack(tag, multiple=True)
            self._acked_tag, self._acked = tag, store.next
        state.unacknowledged, state.held = self._last_tag - self._acked_tag, len(self._buffer)

    def _settle(self) -> None:
        """Wait for the answer to a request without effect: everything before it has been processed."""
        acked = self._acked  # Not those that are stored and acknowledged behind the request.
        self._channel.qos(self._window, self._store_much)
        self._settled = acked
        self._store.settled(acked)

    def _store_much(self) -> None:
        """Store what comes before an answer, if that is much."""
        if self._buffered >= self._flush_bytes:
            self.flush()

    def _count_at_rest(self) -> dict[str, int]:
        """The number of ready messages in each queue, while none arrives if there are any.

        It is unknown whether messages that arrive meanwhile are in the counts: one may come right behind the
        answer that counts it. Without acknowledgements the broker soon sends no more.
        """
        while True:
            arrived = self._state.arrived
            ready = self.count()
            self._settle()
            if self._state.arrived == arrived or not any(ready.values()):
                return ready

    def _is_full(self) -> bool:
        """True if messages are left to the broker: the store is full, or the backlog is complete."""
        backlog, store = self._state.backlog, self._store
        is_over = backlog is not None and backlog.is_over(store.next)
        return is_over or (store.full and not self._state.unlimited)
