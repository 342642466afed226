"""One channel that consumes: what comes goes into the store, and is acknowledged when it is safe there."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.records import Delivered
from fakeamqp.spark.spool.store import Store, log
from fakeamqp.spark.spool.target import Target

if TYPE_CHECKING:
    from pika.channel import Channel
    from pika.spec import Basic, BasicProperties

__all__ = ["Course", "Intake", "QueueRefused", "Standing"]

# A segment is written before it grows beyond this: messages in memory are not safe, and Arrow has limits.
_SEGMENT_OCTETS = 32 << 20


class QueueRefused(ConnectionLost):
    """The broker closed the channel in answer: there is no such queue, or it may not be read."""


@dataclass(frozen=True)
class Standing:
    """How things stood when the broker answered.

    Attributes:
        visible: up to where there are rows that Spark may have.
        held: how many messages have come and are not visible yet.
        ready: how many messages were in the queues and not under way to anyone.
        arrived: how many messages have come in the life of this consumer, for `Consumer.wait_for_more`.
    """

    visible: int
    held: int
    ready: int
    arrived: int


@dataclass
class Course:
    """What goes on from one channel to the next.

    Attributes:
        target: where to end; nothing beyond it is taken in.
        unlimited: whether there is always room in the store.
        arrived: how many messages have come.
    """

    target: Target | None = None
    unlimited: bool = False
    arrived: int = 0


class Intake:
    """Consumes the queues of the options on a channel of its own, from now on.

    Raises:
        QueueRefused: if the broker does not let it.
        ConnectionLost: if it cannot for another reason. All methods raise it when the connection, the channel
            or a consumer has ended; what was not in the store then comes again.
    """

    def __init__(self, link: Link, options: ReadOptions, store: Store, course: Course) -> None:
        self._link = link
        self._options = options
        self._store = store
        self._course = course
        # While half of the window is acknowledged, the other half is on its way.
        self._flush_rows = min(options.spool_flush_rows, max(options.prefetch // 2, 1))
        self._buffer: list[Delivered] = []
        self._octets = 0
        self._last_tag = 0
        self._acked_tag = 0
        self._dropped = 0
        self._flush_at: float | None = None
        self._channel: Channel = link.channel()
        link.call(self._channel.basic_qos, prefetch_count=options.prefetch)
        store.new_channel()
        target = course.target
        if target is not None:
            target.starts_again(store.next)
        for queue in options.queues:
            try:
                link.call(self._channel.queue_declare, queue, passive=True)
                link.call(self._channel.basic_consume, queue, self._receiver(queue))
            except ConnectionLost as error:
                kind = QueueRefused if self._channel.connection.is_open else ConnectionLost
                raise kind(f"cannot consume from queue {queue!r}: {error}") from error
        self._channel.add_on_cancel_callback(lambda _frame: _cancelled(link))
        if target is not None and target.pending:
            self.ask(target)

    def keep_up(self) -> None:
        """Do what is due."""
        if not self._store.acks_on_arrival:
            self._acknowledge(self._store.committed_tag)
        if self._buffer or (self._dropped and self._store.acks_on_arrival):
            self._flush_if_due()

    def ask(self, target: Target | None) -> Standing:
        """Ask the broker how many messages are ready, and have in the store what it sent before.

        RabbitMQ's channels may answer the count before they send on what a queue gave them earlier, so a
        second question follows, which they answer after it.

        Args:
            target: is given what is in the queues now, to know when it has come.
        """
        counts = self._count()
        if target is not None:
            while self._moving() and any(counts.values()):
                # What comes now was counted, or was not; what is missing is clear once the window is full.
                counts = self._count()
            target.expect(counts, self._store.next + len(self._buffer))
        if self._store.shows_when_settled:
            self.flush()
        self._settle()
        self.flush()
        visible = self._store.visible
        held = self._store.next + len(self._buffer) - visible
        return Standing(visible, held, sum(counts.values()), self._course.arrived)

    def _count(self) -> dict[str, int]:
        """How many messages are ready in each queue."""
        counts = {}
        for queue in self._options.queues:
            answer = self._link.call(self._channel.queue_declare, queue, passive=True)
            counts[queue] = answer.method.message_count
        return counts

    def _settle(self) -> None:
        """Have an answer to something that changes nothing: what was sent and asked before is through."""
        self._link.call(self._channel.basic_qos, prefetch_count=self._options.prefetch)
        self._store.settled()

    def _moving(self) -> bool:
        """Whether messages come without having been acknowledged for."""
        arrived = self._course.arrived
        self._settle()
        return self._course.arrived != arrived

    def patience(self) -> float | None:
        """How long nothing has to be done unless something happens; None for ever."""
        if self._flush_at is None or self._is_full():
            return None
        return max(self._flush_at - time.monotonic(), 0.0)

    def _is_full(self) -> bool:
        """Whether what comes is left to the broker: there is no room, or nobody will want it."""
        target = self._course.target
        if target is not None and target.rows_left(self._store.next) == 0:
            return True
        return self._store.full and not self._course.unlimited

    def _flush_if_due(self) -> None:
        now = time.monotonic()
        if self._flush_at is None:
            self._flush_at = now + self._options.spool_flush_interval
        if now >= self._flush_at or len(self._buffer) >= self._flush_rows or self._octets >= _SEGMENT_OCTETS:
            self.flush()

    def flush(self) -> None:
        """Store what has come, as far as there is room, and acknowledge what is stored."""
        buffer = self._buffer
        while buffer and not self._is_full():
            segment = buffer[: self._rows_of_segment()]
            target = self._course.target
            if target is not None:
                # Before the rows are visible, so that it is known then whether they are beyond it.
                target.came_all(segment)
                segment = segment[: target.rows_left(self._store.next)]
            self._store.add(segment)
            self._octets -= sum(len(message.body) for message in segment)
            del buffer[: len(segment)]
        if self._store.acks_on_arrival:
            self._acknowledge(buffer[0].deliver.delivery_tag - 1 if buffer else self._last_tag)
        self._flush_at = None
        if self._dropped:
            log.info("left out %d messages that came again", self._dropped)
            self._dropped = 0

    def _acknowledge(self, tag: int) -> None:
        """Acknowledge everything up to a delivery tag."""
        if tag > self._acked_tag:
            self._link.check()
            self._channel.basic_ack(tag, multiple=True)
            self._acked_tag = tag

    def _rows_of_segment(self) -> int:
        rows = min(len(self._buffer), self._options.spool_flush_rows)
        if self._octets <= _SEGMENT_OCTETS:
            return rows
        octets = 0
        for index in range(rows):
            octets += len(self._buffer[index].body)
            if octets > _SEGMENT_OCTETS:
                return max(index, 1)
        return rows

    def _receiver(self, queue: str) -> Callable[..., None]:
        """The callback for deliveries from a queue. It runs for every message: keep it flat."""
        buffer, store, course, now = self._buffer, self._store, self._course, time.time_ns

        def receive(
            _channel: Channel, deliver: Basic.Deliver, properties: BasicProperties, body: bytes
        ) -> None:
            self._last_tag = deliver.delivery_tag
            course.arrived += 1
            if deliver.redelivered and properties.message_id and store.known(queue, properties.message_id):
                self._drop(queue)
                return
            self._octets += len(body)
            buffer.append(
                Delivered(deliver, properties, body, queue, store.next + len(buffer), now() // 1000)
            )

        return receive

    def _drop(self, queue: str) -> None:
        """Leave out a message that the store has: it will be acknowledged with those around it."""
        self._dropped += 1
        target = self._course.target
        if target is not None:
            target.came(queue, self._store.next + len(self._buffer))


def _cancelled(link: Link) -> None:
    if link.lost is None:
        link.lost = "the broker cancelled a consumer; was its queue deleted?"
