"""Delayed messages, in the order in which their exchanges will publish them.

Messages due in the same millisecond are published exchange by exchange in the order of the names, and within
one exchange in order of arrival (RabbitMQ's delayed-message plugin: documented). A due message gets a
negative x-delay, which prevents a second delay, and is routed by the bindings of that time. One that reaches
no queue is dropped silently. Delayed messages outlive their exchange and a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from fakeamqp.model.messages.message import Int64
from fakeamqp.model.operations import STEP, gathered
from fakeamqp.model.queues.queue import NOT_SECURED

if TYPE_CHECKING:
    from fakeamqp.model.exchanges import Exchange
    from fakeamqp.model.messages.message import Message
    from fakeamqp.model.timers import Timer
    from fakeamqp.model.virtual_host import VirtualHost


_Batch: TypeAlias = "tuple[Timer, list[tuple[Exchange, Message, int]]]"
"""The messages that one exchange publishes in one millisecond, each with its delay in milliseconds."""


def _words(name: str, messages: Sequence[object]) -> str:
    """The description of a batch's timer."""
    count = len(messages)
    return f"exchange '{name}' publishes {'a message' if count == 1 else f'{count} messages'}"


class DelayedMessages:
    """The delayed messages of one virtual host."""

    __slots__ = ("_counts", "_virtual_host", "_waiting")

    def __init__(self, virtual_host: VirtualHost) -> None:
        self._virtual_host = virtual_host
        self._waiting: dict[int, dict[str, _Batch]] = {}
        self._counts: dict[str, int] = {}

    def count(self, exchange: str) -> int:
        """How many messages the exchange of this name is delaying."""
        return self._counts.get(exchange, 0)

    def messages(self, exchange: str) -> list[tuple[Message, float]]:
        """The messages that the exchange of this name is delaying, soonest first, with their due instants."""
        return [
            (message, timer.due)
            for due in sorted(self._waiting)
            for name, (timer, messages) in self._waiting[due].items()
            if name == exchange
            for _, message, _ in messages
        ]

    def add(self, exchange: Exchange, message: Message, delay: int) -> None:
        """Delay a message by `delay` milliseconds."""
        now = self._virtual_host.now()
        due = int(round(now * 1000, 3)) + delay
        batches = self._waiting.setdefault(due, {})
        batch = batches.get(exchange.name)
        if batch is None:
            # The exact instant, not its millisecond: advancing time by the delay must reach it.
            messages: list[tuple[Exchange, Message, int]] = []
            timer = self._virtual_host.call_at(
                now + delay / 1000, partial(self._publish, due), partial(_words, exchange.name, messages)
            )
            batch = batches[exchange.name] = (timer, messages)
        self._virtual_host.state.memory.hold(message)
        batch[1].append((exchange, message, delay))
        self._counts[exchange.name] = self.count(exchange.name) + 1

    def restart(self, *, crash: bool = False) -> None:
        """Keep everything; but a crash loses messages that were not confirmed."""
        if not crash:
            return
        for due, batches in list(self._waiting.items()):
            for name, (timer, messages) in list(batches.items()):
                lost = [message for _, message, _ in messages if not message.secured]
                self._virtual_host.message_outcomes.dropped_all(
                    lost, None, "crash", f"exchange {name!r} delayed it; {NOT_SECURED}"
                )
                messages[:] = [each for each in messages if each[1].secured]
                self._forget(name, len(lost))
                if not messages:
                    timer.cancel()
                    del batches[name]
            if not batches:
                del self._waiting[due]

    def clear(self, why: str) -> None:
        """Drop everything; `why` describes the reason."""
        for batches in self._waiting.values():
            for name, (timer, messages) in batches.items():
                timer.cancel()
                lost = [message for _, message, _ in messages]
                self._virtual_host.message_outcomes.dropped_all(
                    lost, None, "crash", f"exchange {name!r} delayed it; {why}"
                )
        self._waiting.clear()
        self._counts.clear()

    def _publish(self, due: int) -> None:
        """Publish the messages due in this millisecond."""
        batches = self._waiting.pop(due)
        for timer, _ in batches.values():
            timer.cancel()
        self._virtual_host.state.operations.run(self._publishing(batches))

    def _publishing(self, batches: dict[str, _Batch]) -> Iterator[None]:
        """The steps of publishing messages that are due."""
        for name in sorted(batches, key=lambda name: name.encode("utf-8", "surrogateescape")):
            messages = batches.pop(name)[1]
            messages.reverse()
            publishing = (self._passing_on(*messages.pop()) for _ in range(len(messages)))
            yield from gathered(publishing, STEP // 2)

    def _passing_on(self, exchange: Exchange, message: Message, delay: int) -> Iterator[None]:
        """Publish a message: a step for the message, and another one for each queue."""
        yield
        self._forget(exchange.name, 1)
        headers = message.properties.with_headers({"x-delay": Int64(-delay)}, ordered=True)
        message = message.with_properties(headers)
        outcome = self._virtual_host.routing.route(message, exchange)
        tap = self._virtual_host.state.tap
        if tap is not None:
            tap.event("delay over", None, message, exchange.name, outcome)
        if not outcome.queues:
            self._virtual_host.message_outcomes.dropped(
                message, None, "unroutable", f"no queue was there for it after its delay by {exchange.name!r}"
            )
        for queue in outcome.queues:
            yield
            if queue.deleted:
                self._virtual_host.came_too_late(message, queue)
            elif not queue.enqueue(message):
                self._virtual_host.dead_letters.refused(queue, message)

    def _forget(self, name: str, count: int) -> None:
        self._counts[name] -= count
        if not self._counts[name]:
            del self._counts[name]
