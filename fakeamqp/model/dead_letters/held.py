"""Dead letters held until they are delivered (RabbitMQ: documented, `x-dead-letter-strategy` at-least-once).

The queue that a message died in holds the dead letter until every queue that it is routed to has taken it.
One that is unroutable, or refused by a full queue, is sent again after three minutes, and when the options of
the holding queue change. A new exchange or binding does not trigger a retry; but every retry uses the routes
of that time. At most 32 dead letters of a queue are in flight; the others wait (RabbitMQ: measured, and as
documented).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fakeamqp.model.dead_letters.headers import dead_lettered, is_cycle
from fakeamqp.model.messages.message import Identity
from fakeamqp.model.outcome import Outcome

if TYPE_CHECKING:
    from fakeamqp.model.message_outcomes import DropReason
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues.queue import DeathReason, Queue
    from fakeamqp.model.timers import Timer

__all__ = ["HeldDeadLetters"]

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
