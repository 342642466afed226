"""The thread that consumes: from the broker into a store, for as long as the query lives.

It runs beside Spark's calls so that heartbeats are answered and messages acknowledged however long a
micro-batch takes, and so that the end of a channel is noticed when it happens. Spark's thread asks it
questions through `Consumer.barrier` and otherwise looks at the store.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, SparkError
from fakeamqp.spark.options import ReadOptions
from fakeamqp.spark.records import Delivered
from fakeamqp.spark.spool.store import Store, log
from fakeamqp.spark.spool.target import Target

if TYPE_CHECKING:
    from pika.channel import Channel
    from pika.spec import Basic, BasicProperties

__all__ = ["Consumer", "Standing"]

# A segment is written before it grows beyond this: messages in memory are not safe, and Arrow has limits.
_SEGMENT_OCTETS = 32 << 20
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
_GOODBYE = 8.0


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
class _Question:
    target: Target | None = None
    answer: Standing | None = None


@dataclass
class _Channel:
    """A channel that is consuming, and what has come on it and is not in the store yet."""

    link: Link
    channel: Channel
    buffer: list[Delivered] = field(default_factory=list)
    octets: int = 0
    last_tag: int = 0
    acked_tag: int = 0
    flush_at: float | None = None
    dropped: int = 0


class Consumer:
    """Consumes the queues of the options into a store, in a thread of its own."""

    def __init__(self, options: ReadOptions, store: Store) -> None:
        self._options = options
        self._store = store
        self._state = threading.Condition()
        self._questions: list[_Question] = []
        self._link: Link | None = None
        self._poked = threading.Event()
        self._failure: BaseException | None = None
        self._stopping = False
        self._flush_at_end = True
        self._target: Target | None = None
        # While half of the window is acknowledged, the other half is on its way.
        self._flush_rows = min(options.spool_flush_rows, max(options.prefetch // 2, 1))
        self._arrived = 0
        self._shown_arrived = 0
        self._proven = False
        self._subscribed_once = False
        self.unlimited = False
        self._thread = threading.Thread(target=self._run, name="amqp consumer", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    # --- Spark's thread -------------------------------------------------------------------------------

    def barrier(self, target: Target | None = None) -> Standing:
        """Have everything in the store that was confirmed to its publisher before, as far as there is room.

        Args:
            target: is given what is in the queues now, to know when it has come; nothing beyond it is taken
                in until it is forgotten.

        Raises:
            ConnectionLost: if the connection was lost and could not be had again in time.
            SparkError: whatever else has ended the consumer.
        """
        question = _Question(target)
        with self._state:
            self._questions.append(question)
        self.poke()
        with self._state:
            while question.answer is None:
                self._check()
                self._state.wait()
        return question.answer

    def forget(self, target: Target) -> None:
        """Take in again what is beyond a target."""
        with self._state:
            if self._target is target:
                self._target = None
        self.poke()

    def wait_for_more(self, arrived: int, timeout: float) -> bool:
        """Wait until more messages have come than `arrived`; whether they have within `timeout` seconds.

        Raises:
            SparkError: as `barrier`.
        """
        with self._state:
            self._state.wait_for(lambda: self._failure is not None or self._shown_arrived > arrived, timeout)
            self._check()
            return self._shown_arrived > arrived

    def poke(self) -> None:
        """Have the thread look again: there is something to do, or room in the store."""
        self._poked.set()
        with self._state:
            if self._link is not None:
                self._link.wake()

    def stop(self, *, flush: bool = True) -> bool:
        """End. What has come is stored and acknowledged, or left to the broker without `flush`.

        Returns:
            whether the thread has ended; a broker that does not answer can keep it.
        """
        self._flush_at_end = flush
        self._stopping = True
        self.poke()
        if self._thread.ident is not None:
            self._thread.join(_GOODBYE)
        return not self._thread.is_alive()

    def _check(self) -> None:
        if self._failure is not None:
            failure = self._failure
            raise (
                failure
                if isinstance(failure, SparkError)
                else SparkError(f"the consumer ended: {type(failure).__name__}: {failure}")
            ) from failure
        if self._stopping:
            raise ConnectionLost("the reader was stopped")

    # --- its own thread: connections ------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._keep_consuming()
        except BaseException as error:
            with self._state:
                self._failure = error
                self._state.notify_all()

    def _keep_consuming(self) -> None:
        lost_at: float | None = None
        pause = _FIRST_PAUSE
        while not self._stopping:
            self._proven = False
            try:
                self._consume()
            except (ConnectionLost, BrokerUnreachable) as error:
                if not self._subscribed_once:
                    raise
                now = time.monotonic()
                if lost_at is None or self._proven:
                    lost_at, pause = now, _FIRST_PAUSE
                tried = now - lost_at
                if tried + pause > self._options.reconnect_timeout:
                    raise ConnectionLost(f"{error} (tried again for {tried:.1f} s)") from error
                log.warning("%s; connecting again", error)
                self._poked.clear()
                if not self._stopping:
                    self._poked.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _consume(self) -> None:
        """Consume until the reader is stopped.

        Raises:
            BrokerUnreachable: if there is no connection to be had.
            ConnectionLost: when the connection, the channel or a consumer ends.
        """
        with Link(self._options.connection) as link:
            try:
                with self._state:
                    self._link = link
                self._loop(_Channel(link, self._subscribe(link)))
            finally:
                with self._state:
                    self._link = None

    def _subscribe(self, link: Link) -> Channel:
        channel = link.channel()
        link.call(channel.basic_qos, prefetch_count=self._options.prefetch)
        self._store.new_channel()
        return channel

    def _loop(self, here: _Channel) -> None:
        link, options = here.link, self._options
        target = self._target
        if target is not None:
            target.starts_again(self._store.next)
        for queue in options.queues:
            try:
                link.call(here.channel.queue_declare, queue, passive=True)
                link.call(here.channel.basic_consume, queue, self._receiver(here, queue))
            except ConnectionLost as error:
                raise ConnectionLost(f"cannot consume from queue {queue!r}: {error}") from error
        here.channel.add_on_cancel_callback(lambda _frame: _cancelled(link))
        self._subscribed_once = True
        if target is not None and target.pending:
            self._ask(here, target)
        while not self._stopping:
            link.check()
            self._serve(here)
            if here.buffer or (here.dropped and self._store.acks_on_arrival):
                self._flush_if_due(here)
            link.turn(self._patience(here))
            if self._arrived != self._shown_arrived:
                self._show_arrived()
        if self._flush_at_end:
            self._flush(here)

    def _receiver(self, here: _Channel, queue: str) -> Callable[..., None]:
        """The callback for deliveries from a queue. It runs for every message: keep it flat."""
        buffer, store, now = here.buffer, self._store, time.time_ns

        def receive(
            _channel: Channel, deliver: Basic.Deliver, properties: BasicProperties, body: bytes
        ) -> None:
            here.last_tag = deliver.delivery_tag
            self._arrived += 1
            if deliver.redelivered and properties.message_id and store.known(queue, properties.message_id):
                self._drop(here, queue)
                return
            here.octets += len(body)
            buffer.append(
                Delivered(deliver, properties, body, queue, store.next + len(buffer), now() // 1000)
            )

        return receive

    def _drop(self, here: _Channel, queue: str) -> None:
        """Leave out a message that the store has: it will be acknowledged with those around it."""
        here.dropped += 1
        target = self._target
        if target is not None:
            target.came(queue, self._store.next + len(here.buffer))

    # --- its own thread: questions --------------------------------------------------------------------

    def _serve(self, here: _Channel) -> None:
        if not self._store.acks_on_arrival:
            self._acknowledge(here, self._store.committed_tag)
        while self._questions:
            question = self._questions[0]
            if question.target is not None:
                self._target = question.target
            answer = self._ask(here, question.target)
            self._show_arrived()
            with self._state:
                self._questions.pop(0)
                question.answer = answer
                self._state.notify_all()

    def _ask(self, here: _Channel, target: Target | None) -> Standing:
        """Ask the broker how many messages are ready, and have in the store what it sent before.

        RabbitMQ's channels may answer the count before they send on what a queue gave them earlier, so a
        second question follows, which they answer after it.
        """
        counts = self._count(here)
        if target is not None:
            while self._moving(here) and any(counts.values()):
                # What comes now was counted, or was not; what is missing is clear once the window is full.
                counts = self._count(here)
            target.expect(counts, self._store.next + len(here.buffer))
        if self._store.shows_when_settled:
            self._flush(here)
        self._settle(here)
        self._flush(here)
        self._proven = True
        visible = self._store.visible
        held = self._store.next + len(here.buffer) - visible
        return Standing(visible, held, sum(counts.values()), self._arrived)

    def _count(self, here: _Channel) -> dict[str, int]:
        """How many messages are ready in each queue."""
        counts = {}
        for queue in self._options.queues:
            answer = here.link.call(here.channel.queue_declare, queue, passive=True)
            counts[queue] = answer.method.message_count
        return counts

    def _settle(self, here: _Channel) -> None:
        """Have an answer to something that changes nothing: what was sent and asked before is through."""
        here.link.call(here.channel.basic_qos, prefetch_count=self._options.prefetch)
        self._store.settled()

    def _moving(self, here: _Channel) -> bool:
        """Whether messages come without having been acknowledged for."""
        arrived = self._arrived
        self._settle(here)
        return self._arrived != arrived

    def _show_arrived(self) -> None:
        with self._state:
            self._shown_arrived = self._arrived
            self._state.notify_all()

    # --- its own thread: into the store ---------------------------------------------------------------

    def _patience(self, here: _Channel) -> float | None:
        """How long nothing has to be done unless something happens; None for ever."""
        if here.flush_at is None or self._is_full():
            return None
        return max(here.flush_at - time.monotonic(), 0.0)

    def _is_full(self) -> bool:
        """Whether what comes is left to the broker: there is no room, or nobody will want it."""
        target = self._target
        if target is not None and target.rows_left(self._store.next) == 0:
            return True
        return self._store.full and not self.unlimited

    def _flush_if_due(self, here: _Channel) -> None:
        now = time.monotonic()
        if here.flush_at is None:
            here.flush_at = now + self._options.spool_flush_interval
        if now >= here.flush_at or len(here.buffer) >= self._flush_rows or here.octets >= _SEGMENT_OCTETS:
            self._flush(here)

    def _flush(self, here: _Channel) -> None:
        """Store what has come, as far as there is room, and acknowledge what is stored."""
        buffer = here.buffer
        while buffer and not self._is_full():
            segment = buffer[: self._rows_of_segment(here)]
            target = self._target
            if target is not None:
                # Before the rows are visible, so that it is known then whether they are beyond it.
                target.came_all(segment)
                segment = segment[: target.rows_left(self._store.next)]
            self._store.add(segment)
            here.octets -= sum(len(message.body) for message in segment)
            del buffer[: len(segment)]
        if self._store.acks_on_arrival:
            self._acknowledge(here, buffer[0].deliver.delivery_tag - 1 if buffer else here.last_tag)
        here.flush_at = None
        if here.dropped:
            log.info("left out %d messages that came again", here.dropped)
            here.dropped = 0

    def _acknowledge(self, here: _Channel, tag: int) -> None:
        """Acknowledge everything up to a delivery tag."""
        if tag > here.acked_tag:
            here.link.check()
            here.channel.basic_ack(tag, multiple=True)
            here.acked_tag = tag

    def _rows_of_segment(self, here: _Channel) -> int:
        rows = min(len(here.buffer), self._options.spool_flush_rows)
        if here.octets <= _SEGMENT_OCTETS:
            return rows
        octets = 0
        for index in range(rows):
            octets += len(here.buffer[index].body)
            if octets > _SEGMENT_OCTETS:
                return max(index, 1)
        return rows


def _cancelled(link: Link) -> None:
    if link.lost is None:
        link.lost = "the broker cancelled a consumer; was its queue deleted?"
