"""Messages that a quorum queue cannot deliver now: they wait for a retry, or are held dead letters.

Dead letters are held until they are delivered (RabbitMQ: documented, `x-dead-letter-strategy` at-least-once).
The queue that a message died in holds the dead letter until every queue that it is routed to has taken it.
One that is unroutable, or refused by a full queue, is sent again after three minutes, and when the options of
the holding queue change. A new exchange or binding does not trigger a retry; but every retry uses the routes
of that time. At most 32 dead letters of a queue are in flight; the others wait (RabbitMQ: measured, and as
documented).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from fakeamqp.model.dead_letters import dead_lettered, is_cycle
from fakeamqp.model.messages.message import Identity
from fakeamqp.model.queues.queue import Deadline
from fakeamqp.model.routing import Outcome
from fakeamqp.model.timers import MARGIN

if TYPE_CHECKING:
    from fakeamqp.model.arguments.queue_arguments import QueueOptions
    from fakeamqp.model.history import DropReason
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues.queue import DeathReason, Queue
    from fakeamqp.model.queues.quorum.queue import QuorumMessage, QuorumQueue

__all__ = ["ParkedMessages"]

_MOST_ON_THEIR_WAY = 32
_RETRY_AFTER = 180.0


class _Held:
    """One dead letter: the message that died, and the message that was made of it once it is in flight."""

    __slots__ = ("failures", "message", "on_its_way", "reached", "reason", "size", "tried_at")

    def __init__(self, message: Message, reason: DeathReason, failures: int, size: int) -> None:
        self.message = message
        self.reason = reason
        self.failures = failures
        self.size = size
        self.on_its_way: Message | None = None
        self.tried_at: float | None = None
        """When it was last sent to a queue; None if it was unroutable so far."""
        self.reached: dict[Any, None] = {}
        """The queues that have taken it."""


class HeldDeadLetters:
    """The dead letters that one queue holds. `fewer` is called when their number has decreased."""

    __slots__ = ("_behind", "_deadline", "_fewer", "_identity", "_pending", "_queue", "octets")

    def __init__(self, queue: Queue, fewer: Callable[[], None]) -> None:
        self.octets: int = 0
        self._queue = queue
        self._fewer = fewer
        self._identity = Identity()
        self._pending: dict[_Held, None] = {}
        """Those in flight, oldest first."""
        self._behind: deque[_Held] = deque()
        self._deadline = Deadline(queue.virtual_host, self.try_again)

    def __len__(self) -> int:
        return len(self._pending) + len(self._behind)

    def messages(self) -> list[Message]:
        return [held.message for held in (*self._pending, *self._behind)]

    def hold(self, message: Message, reason: DeathReason, failures: int, size: int) -> None:
        """Hold a message that has died, after so many failed deliveries; `size` is in bytes."""
        if reason == "expired":
            self._queue.virtual_host.message_outcomes.expired(message, self._queue.name)
        self._behind.append(_Held(message, reason, failures, size))
        self.octets += size
        self._go_on()

    def try_again(self) -> None:
        """Send again what was unroutable, and what some queue refused long enough ago."""
        now = self._queue.virtual_host.now() + MARGIN
        for held in list(self._pending):
            if held in self._pending and (held.tried_at is None or held.tried_at + _RETRY_AFTER <= now):
                self._send(held)
        self._go_on()

    def start_over(self) -> None:
        """Send everything again: a restart loses the record of the queues that were reached."""
        for held in reversed(self._pending):
            held.on_its_way = None
            held.reached.clear()
            self._behind.appendleft(held)
        self._pending.clear()
        self._go_on()

    def clear(self, detail: str, reason: DropReason | None = None) -> int:
        """Drop all, and return their number. By default the reason is that of each message's death."""
        count = len(self)
        outcomes = self._queue.virtual_host.message_outcomes
        for held in (*self._pending, *self._behind):
            if held.reached:
                self._arrived(held)
            else:
                outcomes.dropped(held.message, self._queue.name, reason or held.reason, detail)
        self._pending.clear()
        self._behind.clear()
        self.octets = 0
        self._watch()
        return count

    def _go_on(self) -> None:
        while self._behind and len(self._pending) < _MOST_ON_THEIR_WAY:
            held = self._behind.popleft()
            self._pending[held] = None
            self._send(held)
        self._watch()

    def _send(self, held: _Held) -> None:
        """Send one to the queues that it is routed to now and that have not taken it yet."""
        virtual_host = self._queue.virtual_host
        target = self._queue.options.dead_letter_exchange
        if target is None or target not in virtual_host.exchanges:
            return
        message = self._readdressed(held)
        routed = virtual_host.routing.route(message).queues
        if not routed and held.reached:
            self._done(held)
            return
        missing = [
            each
            for each in routed
            if each not in held.reached and (held.reason == "rejected" or not is_cycle(each.name, message))
        ]
        if not missing:
            return
        held.tried_at = virtual_host.now()
        for queue in missing:
            if queue.enqueue(message):
                held.reached[queue] = None
        if all(queue in held.reached for queue in missing):
            self._done(held)

    def _readdressed(self, held: _Held) -> Message:
        """The message to send, with the current dead-letter exchange and routing key."""
        queue = self._queue
        message = held.on_its_way
        if message is None:
            now = queue.virtual_host.state.clock.time()
            message = dead_lettered(queue, held.message, held.reason, now, held.failures)
            # Full target queues treat it differently from other publishers.
            message.publisher = self._identity
        else:
            key = queue.options.dead_letter_routing_key
            exchange = queue.options.dead_letter_exchange or ""
            routing_key = held.message.routing_key if key is None else key
            if (message.exchange, message.routing_key) != (exchange, routing_key):
                message = message.with_properties(message.properties)
                message.exchange, message.routing_key = exchange, routing_key
                message.copies = held.message.copies if key is None else None
        held.on_its_way = message
        return message

    def _done(self, held: _Held) -> None:
        if held in self._pending:
            del self._pending[held]
            self.octets -= held.size
            self._arrived(held)
            self._fewer()

    def _arrived(self, held: _Held) -> None:
        assert held.on_its_way is not None
        self._queue.virtual_host.message_outcomes.dead_lettered(
            held.message, self._queue.name, held.reason, held.on_its_way, Outcome(tuple(held.reached))
        )

    def _watch(self) -> None:
        if not self._pending:
            self._deadline.set(None, "")
        elif self._deadline.due is None:
            self._deadline.set(
                self._queue.virtual_host.now() + _RETRY_AFTER,
                lambda: f"q '{self._queue.name}' sends {len(self._pending)} held dead letters again",
            )


class ParkedMessages:
    """The messages of one queue that wait for a retry (RabbitMQ 4.3: documented), and its held dead letters.

    `held` are the dead letters, None if the queue does not hold them until they are delivered. `fewer` is
    called when some of them have left.
    """

    __slots__ = ("_deadline", "_fewer", "_octets", "_queue", "_retries", "held")

    def __init__(self, queue: QuorumQueue, fewer: Callable[[], None]) -> None:
        self._queue = queue
        self._fewer = fewer
        self.held: HeldDeadLetters | None = None
        self._retries: list[tuple[float, int, QuorumMessage]] = []
        """A heap of those that wait for a retry: due time, position, message."""
        self._octets = 0
        """The bytes of those."""
        self._deadline = Deadline(queue.virtual_host, self._retry)

    def adopt(self, options: QueueOptions) -> None:
        # Dropping from the head and holding every dead letter are contradictory: RabbitMQ then drops.
        keeps = (
            options.dead_letter_strategy == "at-least-once"
            and options.overflow == "reject-publish"
            and options.dead_letter_exchange is not None
        )
        if keeps and self.held is None:
            self.held = HeldDeadLetters(self._queue, self._fewer)
        elif not keeps and self.held is not None:
            self.held.clear("the queue no longer keeps dead letters until they have arrived")
            self.held = None

    def amount(self) -> tuple[int, int]:
        """The number of messages, and their bytes."""
        held = self.held
        if held is None:
            return len(self._retries), self._octets
        return len(self._retries) + len(held), self._octets + held.octets

    def messages(self) -> list[Message]:
        """All messages: those for a retry, soonest first, then dead letters."""
        delayed = [queued.message for queued in self.waiting()]
        return [*delayed, *(() if self.held is None else self.held.messages())]

    def waiting(self) -> list[QuorumMessage]:
        """Those that wait for a retry, soonest first."""
        return [queued for _, _, queued in sorted(self._retries)]

    def delay(self, queued: QuorumMessage, *, failed: bool) -> bool:
        """Park a returned message for a retry; False if the options ask for no delay.

        `failed` says whether its return was a failure.
        """
        options = self._queue.options
        shortest, longest = options.delayed_retry_min, options.delayed_retry_max
        if options.delayed_retry_type not in ("all", "failed" if failed else "returned") or shortest is None:
            return False
        delay = min(shortest * max(1, queued.failures), shortest if longest is None else longest)
        heappush(self._retries, (self._queue.virtual_host.now() + delay, queued.position, queued))
        self._octets += queued.size
        self._watch()
        return True

    def clear_retries(self) -> list[QuorumMessage]:
        """Take out those that wait for a retry, soonest first."""
        taken = self.waiting()
        self._retries.clear()
        self._octets = 0
        self._watch()
        return taken

    def stop(self) -> None:
        """The queue has been deleted: no retry is due any more."""
        self._deadline.stop()

    def _watch(self) -> None:
        due = self._retries[0][0] if self._retries else None
        self._deadline.set(due, f"q '{self._queue.name}' retries a message")

    def _retry(self) -> None:
        queue = self._queue
        now = queue.virtual_host.now() + MARGIN
        due = []
        while self._retries and self._retries[0][0] <= now:
            queued = heappop(self._retries)[2]
            self._octets -= queued.size
            due.append(queued)
        self._watch()
        for queued in due:
            queue.put_back(queued)
        queue.dispatch()

    def die(self, queued: QuorumMessage, reason: DeathReason) -> None:
        if self.held is not None:
            self.held.hold(queued.message, reason, queued.failures, queued.size)
        else:
            queue = self._queue
            queue.virtual_host.dead_letters.died(queue, queued.message, reason, queued.failures)
