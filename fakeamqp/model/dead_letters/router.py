"""The dead-letter router: from the queue that a message died in to its dead-letter exchange, and on.

Rejected messages, and the messages of a deleted queue, may go to the queue's alternate exchange instead,
unchanged and without dead-letter headers. A dead-letter exchange takes precedence over an alternate one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.model.dead_letters.headers import dead_lettered, is_cycle
from fakeamqp.model.errors import NotFound
from fakeamqp.model.operations import gathered

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.queues import DeathReason, Queue
    from fakeamqp.model.virtual_host import VirtualHost

__all__ = ["DeadLetterRouter"]


class _PendingLetter(NamedTuple):
    """`message` has left the queue of this name and is to be routed as `dead`.

    It goes to the exchange that `dead` names, or to `alternate`.
    """

    queue: str
    message: Message
    dead: Message
    reason: DeathReason
    alternate: Exchange | None = None


class DeadLetterRouter:
    """Routes the messages that die in the queues of one virtual host."""

    __slots__ = ("_held", "_routing", "_virtual_host", "_waiting")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._waiting: deque[_PendingLetter] = deque()
        self._held = False
        self._routing = False

    def died(self, queue: Queue, message: Message, reason: DeathReason, failures: int | None = None) -> None:
        """A message died in `queue`: send it to the queue's dead-letter exchange, or drop it.

        `failures` is the number of its failed deliveries, if the queue counts them.
        """
        virtual_host = self._virtual_host
        outcomes = virtual_host.message_outcomes
        target = queue.options.dead_letter_exchange
        if reason == "expired":
            outcomes.expired(message, queue.name)
        if target is None or target not in virtual_host.exchanges:
            if reason == "rejected" and queue.alternate_exchange is not None:
                self.passed_on(queue, message, reason)
            else:
                outcomes.dropped(message, queue.name, reason, _nowhere(target))
            return
        state = virtual_host.state
        dead = dead_lettered(queue, message, reason, state.clock.time(), failures)
        letter = _PendingLetter(queue.name, message, dead, reason)
        if state.races is not None and reason == "rejected":
            state.races.dead_letter(queue, lambda: self._leaves(letter))
        else:
            self._leaves(letter)

    def passed_on(self, queue: Queue, message: Message, reason: DeathReason) -> None:
        """A message leaves `queue` for its alternate exchange, unchanged.

        Source: message.reject/alternate-exchange, queue.declare/alternate-exchange-routing.
        """
        name = queue.alternate_exchange
        alternate = self._virtual_host.exchanges.get(name) if name else None
        if alternate is None:
            detail = f"alternate exchange {name!r} does not exist"
            self._virtual_host.message_outcomes.dropped(message, queue.name, reason, detail)
        else:
            self._leaves(_PendingLetter(queue.name, message, message, reason, alternate))

    def _leaves(self, leaving: _PendingLetter) -> None:
        self._waiting.append(leaving)
        # A full queue dead-letters a message at once, to a queue that may be full as well, and so on. Such
        # chains may exceed the recursion limit, so the outermost call routes what dies meanwhile.
        if not (self._held or self._routing):
            self._route_all()

    def hold(self) -> bool:
        """Queue what dies from now on until `release`; returns False if it is queued already."""
        if self._held or self._routing:
            return False
        self._held = True
        return True

    def release(self) -> None:
        """Undo a `hold` that returned True."""
        self._held = False
        if self._waiting:
            self._route_all()

    def releasing(self) -> Iterator[None]:
        """The steps of `release`, for an operation of the caller's."""
        self._held = False
        if self._waiting:
            self._routing = True
            yield from self._steps()

    def _route_all(self) -> None:
        self._routing = True
        self._virtual_host.state.operations.run(self._steps())

    def _steps(self) -> Iterator[None]:
        try:
            yield from gathered(map(self._route, self._letters()))
        finally:
            self._waiting.clear()  # It is empty, unless there is a bug.
            self._routing = False

    def _letters(self) -> Iterator[_PendingLetter]:
        while self._waiting:
            yield self._waiting.popleft()

    def _route(self, leaving: _PendingLetter) -> Iterator[None]:
        """Route a message that has left its queue: a step, and another one for each further queue."""
        yield
        queue, message, dead, reason, alternate = leaving
        outcomes = self._virtual_host.message_outcomes
        try:
            routed = self._virtual_host.routing.route(dead, alternate)
        except NotFound:  # Deleted since, by another connection.
            outcomes.dropped(message, queue, reason, _nowhere(dead.exchange))
            return
        if not routed.queues and not routed.delays:
            outcomes.dropped(message, queue, reason, _no_way(dead, alternate))
            return
        barred: tuple[Queue, ...] = ()
        for each in routed.queues:
            if each is not routed.queues[0]:
                yield
            cycle = _cycle(each.name, leaving)
            if each.deleted:
                self._virtual_host.came_too_late(dead, each)
            elif cycle is not None:
                outcomes.dropped(dead, each.name, "cycle", cycle)
            elif each.accept(dead) or _passes_on(each):
                continue
            else:
                self.refused(each, dead)
            barred = (*barred, each)
        if barred:
            routed = replace(routed, queues=tuple(each for each in routed.queues if each not in barred))
        if routed.queues or routed.delays:
            exchange = None if alternate is None else alternate.name
            outcomes.dead_lettered(message, queue, reason, dead, routed, exchange)

    def refused(self, queue: Queue, message: Message) -> None:
        """A full queue refused the message: record that it is dropped."""
        if not _passes_on(queue):
            self._virtual_host.message_outcomes.dropped(
                message, queue.name, "maxlen", f"the queue was full and refused it ({queue.options.overflow})"
            )


def _passes_on(queue: Queue) -> bool:
    """Whether the queue dead-letters what it refuses, and so records the outcome itself."""
    return queue.kind == "queue" and queue.options.overflow == "reject-publish-dlx"


def _nowhere(exchange: str | None) -> str:
    """A text that says why a dead letter has no exchange to go to."""
    if exchange is None:
        return "the queue has no dead-letter exchange"
    return f"dead-letter exchange {exchange!r} does not exist"


def _cycle(queue: str, leaving: _PendingLetter) -> str | None:
    """A text that says why a message may not enter the queue of this name; None if it may.

    A message that leaves a queue for its alternate exchange does not return to it, even if the queue is bound
    to that exchange (queue.declare/alternate-exchange-routing). Earlier deaths do not matter then.
    """
    if leaving.alternate is not None:
        return "it had just left that queue" if queue == leaving.queue else None
    if leaving.reason != "rejected" and is_cycle(queue, leaving.dead):
        return "it had died there before, and no client has rejected it since"
    return None


def _no_way(dead: Message, alternate: Exchange | None) -> str:
    """A text that says why the exchange could not route a message."""
    kind, name = ("dead-letter", dead.exchange) if alternate is None else ("alternate", alternate.name)
    return f"{kind} exchange {name!r} found no queue for routing key {dead.routing_key!r}"
