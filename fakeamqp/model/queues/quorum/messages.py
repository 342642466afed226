"""The messages of a quorum queue: those that wait, their limits, and those that it cannot deliver now.

Returned messages go first, and then new ones by priority. There are three ways to order new messages, and a
personality has one of them: a single queue, two priority bands of which the higher goes first most of the
time, or strict levels (RabbitMQ 3.13; 4.0 to 4.2; 4.3).

Above a limit the queue drops from its head, or it blocks publishers: a publisher that finds the queue above a
limit is refused until at most four fifths of the limits are used. The queue remembers this for each
publisher (RabbitMQ: documented).

Parked messages wait for a retry, or are dead letters held until they are delivered (RabbitMQ: documented,
`x-dead-letter-strategy` at-least-once). The queue that a message died in holds the dead letter until every
queue that it is routed to has taken it. One that is unroutable, or refused by a full queue, is sent again
after three minutes, and when the options of the holding queue change. A new exchange or binding does not
trigger a retry; but every retry uses the routes of that time. At most 32 dead letters of a queue are in
flight; the others wait (RabbitMQ: measured, and as documented).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from fakeamqp.model.dead_letters import dead_lettered, is_cycle
from fakeamqp.model.messages.message import Identity
from fakeamqp.model.queues.waiting import joined
from fakeamqp.model.routing import Outcome
from fakeamqp.model.timers import MARGIN, Deadline

if TYPE_CHECKING:
    from fakeamqp.model.arguments.queue_arguments import QueueOptions
    from fakeamqp.model.history import DropReason
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues.queue import DeathReason, Queue
    from fakeamqp.model.queues.quorum.queue import QuorumMessage, QuorumQueue
    from fakeamqp.model.queues.waiting import QueuedMessage


class SingleQueue:
    """New messages: first come, first served; priorities have no effect.

    `every_head` says whether there are several `heads`, each of which is checked for expiry.
    """

    __slots__ = ("_items",)

    every_head: bool = False

    def __init__(self) -> None:
        self._items: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[QueuedMessage]:
        """All of them, in the order in which `pop` would take them."""
        return iter(self._items)

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        self._items.append(queued)

    def head(self) -> QueuedMessage | None:
        """The message that `pop` would take."""
        return self._items[0] if self._items else None

    def heads(self) -> list[QueuedMessage]:
        """All messages that are checked for expiry."""
        head = self.head()
        return [] if head is None else [head]

    def pop(self) -> QueuedMessage:
        return self._items.popleft()

    def remove(self, queued: QueuedMessage) -> None:
        """Take a message from anywhere, out of order."""
        self._items.remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        """Take from each head while the message there passes a test."""
        taken = []
        while (head := self.head()) is not None and test(head):
            taken.append(self.pop())
        return taken

    def clear(self) -> deque[QueuedMessage]:
        """Take all messages, in the order in which `pop` would take them."""
        taken, self._items = self._items, deque()
        return taken


class TwoBands(SingleQueue):
    """Priorities above 4 are high, all others normal.

    High goes first. But every third turn is the normal band's, unless the head of the high band has waited
    longer: so neither band starves. Turns are counted even while a band is empty.
    """

    __slots__ = ("_high", "_turn")

    _HIGHEST_NORMAL = 4
    _TURNS = 3

    def __init__(self) -> None:
        super().__init__()
        self._high: deque[QueuedMessage] = deque()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._high) + len(self._items)

    def __iter__(self) -> Iterator[QueuedMessage]:
        copy = TwoBands()
        copy._high.extend(self._high)
        copy._items.extend(self._items)
        copy._turn = self._turn
        while copy:
            yield copy.pop()

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        high = priority is not None and priority > self._HIGHEST_NORMAL
        (self._high if high else self._items).append(queued)

    def _next(self) -> deque[QueuedMessage]:
        high, normal = self._high, self._items
        if not high:
            return normal
        if normal and self._turn == self._TURNS - 1 and high[0].position > normal[0].position:
            return normal
        return high

    def head(self) -> QueuedMessage | None:
        band = self._next()
        return band[0] if band else None

    def pop(self) -> QueuedMessage:
        queued = self._next().popleft()
        self._turn = (self._turn + 1) % self._TURNS
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        """It counts as no turn."""
        (self._high if queued in self._high else self._items).remove(queued)

    def clear(self) -> deque[QueuedMessage]:
        """The turns restart as well."""
        taken = deque(self)
        self._high.clear()
        self._items.clear()
        self._turn = 0
        return taken


class PriorityLevels(SingleQueue):
    """One level for each priority from 0 to 31, the highest first; more counts as 31, none as 4."""

    __slots__ = ("_count", "_levels", "_used")

    every_head: bool = True

    _HIGHEST = 31
    _DEFAULT = 4

    def __init__(self) -> None:
        self._levels: list[deque[QueuedMessage]] = [deque() for _ in range(self._HIGHEST + 1)]
        self._used = 0
        """A bit for each level that is not empty, which finds the highest at once."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[QueuedMessage]:
        return chain.from_iterable(reversed(self._levels))

    def append(self, queued: QueuedMessage, priority: int | None) -> None:
        level = self._DEFAULT if priority is None else min(priority, self._HIGHEST)
        self._levels[level].append(queued)
        self._used |= 1 << level
        self._count += 1

    def head(self) -> QueuedMessage | None:
        return self._levels[self._used.bit_length() - 1][0] if self._used else None

    def heads(self) -> list[QueuedMessage]:
        return [level[0] for level in reversed(self._levels) if level]

    def pop(self) -> QueuedMessage:
        number = self._used.bit_length() - 1
        queued = self._levels[number].popleft()
        self._left(number)
        return queued

    def remove(self, queued: QueuedMessage) -> None:
        number = next(number for number, level in enumerate(self._levels) if queued in level)
        self._levels[number].remove(queued)
        self._left(number)

    def _left(self, number: int) -> None:
        self._count -= 1
        if not self._levels[number]:
            self._used &= ~(1 << number)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        taken = []
        for number in range(self._HIGHEST, -1, -1):
            level = self._levels[number]
            while level and test(level[0]):
                taken.append(level.popleft())
                self._left(number)
        return taken

    def clear(self) -> deque[QueuedMessage]:
        taken = joined(reversed(self._levels))
        self._levels = [deque() for _ in self._levels]
        self._used = self._count = 0
        return taken


_KINDS = {"none": SingleQueue, "bands": TwoBands, "levels": PriorityLevels}


class ReturnsFirst:
    """Returned messages, in the order in which they returned; then new ones."""

    __slots__ = ("_new", "_returned")

    def __init__(self, priorities: Literal["none", "bands", "levels"] = "none") -> None:
        self._new = _KINDS[priorities]()
        self._returned: deque[QueuedMessage] = deque()

    def __len__(self) -> int:
        return len(self._returned) + len(self._new)

    def __iter__(self) -> Iterator[QueuedMessage]:
        return chain(self._returned, self._new)

    def append(self, queued: QueuedMessage) -> None:
        """Add a new message behind all others of its priority."""
        self._new.append(queued, queued.message.properties.priority)

    def append_plain(self, queued: QueuedMessage) -> None:
        """Add a message behind all others as if it had no priority."""
        self._new.append(queued, None)

    def put_back(self, queued: QueuedMessage) -> None:
        """Add a returned message: before all new ones, behind earlier returned ones."""
        self._returned.append(queued)

    def head(self) -> QueuedMessage | None:
        return self._returned[0] if self._returned else self._new.head()

    def heads(self) -> list[QueuedMessage]:
        """The messages that are checked for expiry: those at a head."""
        if not self._returned:
            return self._new.heads()
        return [self._returned[0], *(self._new.heads() if self._new.every_head else ())]

    def pop(self) -> QueuedMessage:
        return self._returned.popleft() if self._returned else self._new.pop()

    def remove(self, queued: QueuedMessage) -> None:
        """Take a message from anywhere; this may change the order of the others."""
        (self._returned if queued in self._returned else self._new).remove(queued)

    def take_while(self, test: Callable[[QueuedMessage], bool]) -> list[QueuedMessage]:
        returned = self._returned
        taken = []
        while returned and test(returned[0]):
            taken.append(returned.popleft())
        if not returned or self._new.every_head:
            taken += self._new.take_while(test)
        return taken

    def clear(self) -> deque[QueuedMessage]:
        taken = self._new.clear()
        taken.extendleft(reversed(self._returned))
        self._returned.clear()
        return taken


_SOFT_LIMIT = 0.8
"""Publishers are unblocked when at most this part of a limit is used."""


_ANYBODY = Identity()
"""Stands for publishers that are not connections."""


class Overflow:
    """The limits of one queue: `bounded` if there are any, `rejects` if it blocks publishers then."""

    __slots__ = ("_blocked", "_max_bytes", "_max_length", "_queue", "bounded", "rejects")

    def __init__(self, queue: QuorumQueue) -> None:
        self._queue = queue
        self.adopt(queue.options)
        self._blocked: WeakKeyDictionary[object, bool] = WeakKeyDictionary()
        """By publisher, whether it is blocked (overflow reject-publish)."""

    def adopt(self, options: QueueOptions) -> None:
        self._max_length = options.max_length
        self._max_bytes = options.max_length_bytes
        self.bounded: bool = self._max_length is not None or self._max_bytes is not None
        self.rejects: bool = self.bounded and options.overflow == "reject-publish"

    def refuses(self, publisher: object) -> bool:
        """Whether this publisher is blocked; a new one is if the queue is above its limits now."""
        refuses = self.would_refuse(publisher)
        return self._blocked.setdefault(_ANYBODY if publisher is None else publisher, refuses)

    def would_refuse(self, publisher: object) -> bool:
        """The answer of `refuses`. Nothing changes."""
        if not self.rejects:
            return False
        blocked = self._blocked.get(_ANYBODY if publisher is None else publisher)
        return self._above(1) if blocked is None else blocked

    def _above(self, part: float) -> bool:
        """Whether more than this part of a limit is used; parked messages count."""
        queue = self._queue
        count, octets = queue.parked.amount()
        count, octets = count + len(queue.ready), octets + queue.ready_bytes
        return (self._max_length is not None and count > int(self._max_length * part)) or (
            self._max_bytes is not None and octets > int(self._max_bytes * part)
        )

    def check(self) -> None:
        """Drop from the head, or block or unblock publishers."""
        if self.rejects:
            if self._above(1):
                for publisher in self._blocked:
                    self._blocked[publisher] = True
                return
            if self._above(_SOFT_LIMIT):
                return
        elif self.bounded:
            queue = self._queue
            while len(queue.ready) and self._above(1):
                queue.parked.die(queue.pop(), "maxlen")
        for publisher in self._blocked:
            self._blocked[publisher] = False


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
        self._deadline = Deadline(queue.virtual_host.state.timers, self.try_again)

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
            message = dead_lettered(queue, held.message, held.reason, held.failures)
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
            self._deadline.set(None)
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
        self._deadline = Deadline(queue.virtual_host.state.timers, self._retry)

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
        """Park a returned message, `failed` or not, for a retry; False if the options ask for no delay."""
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
