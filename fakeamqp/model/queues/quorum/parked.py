"""Messages that return to a quorum queue, and those that it cannot deliver now.

A parked message waits for a delayed retry (RabbitMQ 4.3: documented), or is a held dead letter.

Returned messages do not take their old place: they go before all new messages, or behind them, or wait for a
retry, or are dead-lettered. That depends on the outcome of the delivery and on the delivery limit (RabbitMQ:
measured).

Dead letters held until they are delivered (RabbitMQ: documented, `x-dead-letter-strategy` at-least-once).

The queue that a message died in holds the dead letter until every queue that it is routed to has taken it.
One that is unroutable, or refused by a full queue, is sent again after three minutes, and when the options of
the holding queue change. A new exchange or binding does not trigger a retry; but every retry uses the routes
of that time. At most 32 dead letters of a queue are in flight; the others wait (RabbitMQ: measured, and as
documented).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, cast

from fakeamqp.model.dead_letters import dead_lettered, is_cycle
from fakeamqp.model.deliveries.delivery import by_consumer, grouped
from fakeamqp.model.messages.message import Identity
from fakeamqp.model.operations import in_steps
from fakeamqp.model.outcome import Outcome
from fakeamqp.model.queues.quorum.expiry import MARGIN, Deadline

if TYPE_CHECKING:
    from fakeamqp.model.arguments import QueueOptions
    from fakeamqp.model.deliveries.delivery import Delivery
    from fakeamqp.model.history import DropReason
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues.queue import DeathReason, Queue
    from fakeamqp.model.queues.quorum.queue import QuorumMessage, QuorumQueue
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["HeldDeadLetters", "ParkedMessages", "Requeueing", "Retries", "retry_delay"]

_MOST_ON_THEIR_WAY = 32
_RETRY_AFTER = 180.0
_TIMER_MARGIN = 1e-9


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
    """The dead letters that one queue holds.

    Args:
        queue: the queue that the messages died in.
        fewer: called when their number has decreased.
    """

    __slots__ = ("_behind", "_fewer", "_identity", "_pending", "_queue", "_timer", "octets")

    def __init__(self, queue: Queue, fewer: Callable[[], None]) -> None:
        self.octets: int = 0
        self._queue = queue
        self._fewer = fewer
        self._identity = Identity()
        self._pending: dict[_Held, None] = {}
        """Those in flight, oldest first."""
        self._behind: deque[_Held] = deque()
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._pending) + len(self._behind)

    def messages(self) -> list[Message]:
        """The messages that died, oldest first."""
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
        now = self._queue.virtual_host.now() + _TIMER_MARGIN
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
        """Send as many as may be in flight."""
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
        missing = [each for each in routed if each not in held.reached and not _cycles(each, held)]
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
        """Record that a dead letter has reached its queues."""
        assert held.on_its_way is not None
        self._queue.virtual_host.message_outcomes.dead_lettered(
            held.message, self._queue.name, held.reason, held.on_its_way, Outcome(tuple(held.reached))
        )

    def _watch(self) -> None:
        """Keep a timer running while something is in flight."""
        if not self._pending:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        elif self._timer is None:
            self._timer = self._queue.virtual_host.call_later(
                _RETRY_AFTER,
                self._timer_is_due,
                lambda: f"q '{self._queue.name}' sends {len(self._pending)} held dead letters again",
            )

    def _timer_is_due(self) -> None:
        self._timer = None
        self.try_again()


def _cycles(queue: Any, held: _Held) -> bool:
    """Whether the dead letter has died in this queue before, and no client has rejected it since."""
    assert held.on_its_way is not None
    return held.reason != "rejected" and is_cycle(queue.name, held.on_its_way)


def retry_delay(options: QueueOptions, failures: int, *, failed: bool) -> float | None:
    """The delay of a returned message in seconds; None means no delay.

    `failures` counts its failures so far, `failed` says whether the last return was one.
    """
    shortest = options.delayed_retry_min
    if options.delayed_retry_type not in ("all", "failed" if failed else "returned") or shortest is None:
        return None
    longest = shortest if options.delayed_retry_max is None else options.delayed_retry_max
    return min(shortest * max(1, failures), longest)


class Retries:
    """The messages of one queue that wait for a retry, in `heap`; `octets` is their total size.

    Args:
        virtual_host: its clock is used.
        name: of the queue, for the timer's label.
        again: called with the messages whose retry is due.
    """

    __slots__ = ("_again", "_deadline", "_name", "_virtual_host", "heap", "octets")

    def __init__(
        self, virtual_host: VirtualHost, name: str, again: Callable[[list[QuorumMessage]], None]
    ) -> None:
        self.octets: int = 0
        self._virtual_host = virtual_host
        self._name = name
        self._again = again
        self._deadline = Deadline(virtual_host, self._is_due)
        self.heap: list[tuple[float, int, QuorumMessage]] = []
        """Due time, position, message."""

    def waiting(self) -> list[QuorumMessage]:
        """All of them, soonest first."""
        return [queued for _, _, queued in sorted(self.heap)]

    def add(self, queued: QuorumMessage, delay: float) -> None:
        """Add a message that is redelivered after `delay` seconds."""
        heappush(self.heap, (self._virtual_host.now() + delay, queued.position, queued))
        self.octets += queued.size
        self._watch()

    def clear(self) -> list[QuorumMessage]:
        """Take out all of them, soonest first."""
        taken = self.waiting()
        self.heap.clear()
        self.octets = 0
        self._watch()
        return taken

    def stop(self) -> None:
        """The queue has been deleted."""
        self._deadline.stop()

    def _watch(self) -> None:
        due = self.heap[0][0] if self.heap else None
        self._deadline.set(due, f"q '{self._name}' retries a message")

    def _is_due(self) -> None:
        now = self._virtual_host.now() + MARGIN
        due = []
        while self.heap and self.heap[0][0] <= now:
            queued = heappop(self.heap)[2]
            self.octets -= queued.size
            due.append(queued)
        self._watch()
        self._again(due)


class Requeueing:
    """Places the messages that return to one queue."""

    __slots__ = ("_queue", "limit")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.limit: float | None = None
        """How often a message may return; None means any number of times."""

    def adopt(self, options: QueueOptions) -> None:
        """Apply new options."""
        choices = self._queue.choices
        limit = choices.delivery_limit if options.delivery_limit is None else options.delivery_limit
        if limit is not None and limit < 0 and choices.negative_limit_is_none:
            limit = None
        self.limit = limit

    def taking_back(self, deliveries: Sequence[Delivery], *, redelivered: bool) -> Iterator[None]:
        """Requeue deliveries that were not accepted, in steps; the queue dispatches between groups.

        `redelivered` says whether messages are marked so.
        """
        queue = self._queue

        def requeue(part: Sequence[Delivery]) -> None:
            for delivery in part:
                if not queue.end(delivery):
                    continue
                queued = cast("QuorumMessage", delivery.queued)
                if queue.deleted:
                    queue._too_late((queued,), "deleted")
                else:
                    marked = queued.redelivered or redelivered
                    self.requeue(queued, delivery.ending or "lost")
                    queued.redelivered = marked

        groups = yield from self._in_order(deliveries)
        del deliveries
        while groups:
            yield from in_steps(groups.pop(), requeue)
            if not queue.deleted:
                queue.consumers.elect(returned=True)
                queue.dispatch()

    def _in_order(self, deliveries: Sequence[Delivery]) -> Generator[None, None, list[Sequence[Delivery]]]:
        """The order in which deliveries return: groups, the first at the end of the list."""
        by_age: dict[tuple[int, Any], list[Delivery]] = {}
        lost = True

        def enter(part: Sequence[Delivery]) -> None:
            nonlocal lost
            lost = lost and all(delivery.ending == "lost" for delivery in part)
            if lost:
                for delivery in part:
                    by_age.setdefault(self._age_of_holder(delivery), []).append(delivery)

        yield from in_steps(deliveries, enter)
        if not lost:
            return (yield from grouped(deliveries))
        return [[delivery for age in sorted(by_age) for delivery in by_age[age]]]

    def _age_of_holder(self, delivery: Delivery) -> tuple[int, Any]:
        """The sort key of deliveries that return because their channel was lost."""
        holder = delivery.holder
        if not self._queue.choices.losses_by_age:
            return by_consumer(delivery)
        return (1, delivery.tag) if holder is None else (0, holder.age)

    def requeue(self, queued: QuorumMessage, ending: str) -> None:
        """Place a message whose delivery was not accepted."""
        queue = self._queue
        choices = queue.choices
        limit = self.limit
        queued.returns += 1
        queued.redelivered = True
        if limit is None and ending in choices.back_without_limit:
            queued.position = queue.next_position()
            queue.ready.append_plain(queued)
            queue.ready_bytes += queued.size
            return
        failed = ending in choices.failures
        if failed:
            queued.failures += 1
        count = queued.returns if choices.limit_counts == "returns" else queued.failures
        if limit is not None and count > limit:
            queue.parked.die(queued, "delivery_limit")
            return
        delay = retry_delay(queue.options, queued.failures, failed=failed)
        if delay is None:
            queue.ready.put_back(queued)
            queue.ready_bytes += queued.size
        else:
            queue.parked.retries.add(queued, delay)


class ParkedMessages:
    """The parked messages of one queue: `retries`, and dead letters if it holds them until they arrive.

    Args:
        queue: the queue of the messages.
        fewer: called when dead letters have left.
    """

    __slots__ = ("_fewer", "_held", "_queue", "retries")

    def __init__(
        self,
        queue: QuorumQueue,
        fewer: Callable[[], None],
    ) -> None:
        self.retries: Retries = Retries(queue.virtual_host, queue.name, self._again)
        self._queue = queue
        self._fewer = fewer
        self._held: HeldDeadLetters | None = None

    def adopt(self, options: QueueOptions) -> None:
        """Apply new options."""
        # Dropping from the head and holding every dead letter are contradictory: RabbitMQ then drops.
        keeps = (
            options.dead_letter_strategy == "at-least-once"
            and options.overflow == "reject-publish"
            and options.dead_letter_exchange is not None
        )
        if keeps and self._held is None:
            self._held = HeldDeadLetters(self._queue, self._fewer)
        elif not keeps and self._held is not None:
            self._held.clear("the queue no longer keeps dead letters until they have arrived")
            self._held = None

    def amount(self) -> tuple[int, int]:
        """The number of messages, and their bytes."""
        retries, held = self.retries, self._held
        if held is None:
            return len(retries.heap), retries.octets
        return len(retries.heap) + len(held), retries.octets + held.octets

    def messages(self) -> list[Message]:
        """All messages: those for a retry, soonest first, then dead letters."""
        delayed = [queued.message for queued in self.retries.waiting()]
        return [*delayed, *(() if self._held is None else self._held.messages())]

    def _again(self, due: list[QuorumMessage]) -> None:
        """Return messages whose retry is due."""
        queue = self._queue
        for queued in due:
            queue.ready.put_back(queued)
            queue.ready_bytes += queued.size
        queue.dispatch()

    def die(self, queued: QuorumMessage, reason: DeathReason) -> None:
        """Dead-letter a message."""
        if self._held is not None:
            self._held.hold(queued.message, reason, queued.failures, queued.size)
        else:
            queue = self._queue
            queue.virtual_host.dead_letters.died(queue, queued.message, reason, queued.failures)

    def try_again(self) -> None:
        """Publish held dead letters again, because options changed."""
        if self._held is not None:
            self._held.try_again()

    def start_over(self) -> None:
        """Publish held dead letters again after a restart."""
        if self._held is not None:
            self._held.start_over()

    def clear_dead_letters(self, reason: DropReason, detail: str) -> int:
        """Drop the held dead letters. Returns how many there were."""
        return 0 if self._held is None else self._held.clear(detail, reason)
