"""Whether a program means the same on a broker in which time passes and queues work side by side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from compat_tests.differential.script import Call, Pause
from compat_tests.programs.reference import Reference, Tie, _Copy, _Message, _Queue

__all__ = ["MARGIN", "Survey", "survey"]

MARGIN = 240
"""Milliseconds that must lie between anything that is done and anything that happens by itself."""


class _Watch(Reference):
    """A reference that takes note of when things happen, and from where messages come."""

    def __init__(self) -> None:
        super().__init__()
        self.done_at: set[int] = set()
        self.due_at: set[int] = set()
        self.expired: list[tuple[int, str]] = []
        """Queues in which messages expired, and when."""
        self.deaths = 0
        self.deliveries = 0
        self.sources: dict[str, set[str]] = {}
        """From where the messages came that have come to a queue at this instant."""
        self.races = False
        self.avoided = False
        """Whether something is done that is known to differ on RabbitMQ, in a way that shows later."""

    def watch(self, step: Call | Pause) -> None:
        self.done_at.add(self.now)
        self.sources.clear()
        told = self.perform(step)
        self.deliveries += sum("basic.deliver(" in each or "basic.get-ok(" in each for each in told)
        self.done_at.add(self.now)
        for queue in self.queues.values():  # They are all asked for their counts after every step.
            queue.used_at = self.now
            lease = self._lease_end(queue)
            if lease is not None:
                self.due_at.add(lease)

    def _basic_consume(self, number: int, queue: str, consumer_tag: str, **how: Any) -> None:
        found = self.queues.get(queue)
        if found is not None and self.channels[number].prefetch and consumer_tag in self._ended(found):
            self.avoided = True  # What the cancelled consumer of this tag settles gives credit to this one.
        super()._basic_consume(number, queue, consumer_tag, **how)

    def _basic_cancel(self, channel: int, consumer_tag: str) -> None:
        consumer = self.consumer(consumer_tag)
        if consumer is not None and consumer.queue.active is consumer:
            queue = consumer.queue
            if queue.alone and queue.ready and len(queue.consumers) > 1:
                self.avoided = True
        super()._basic_cancel(channel, consumer_tag)

    def _arrive(self, queue: _Queue, message: _Message) -> bool:
        due = self._dies_at(queue, message)
        if due is not None and due != self.now:
            self.due_at.add(due)
            if "x-max-priority" in queue.arguments and queue.ready:
                self.avoided = True
        source = "the client" if message.last_death is None else message.last_death.queue
        sources = self.sources.setdefault(queue.name, set())
        sources.add(source)
        self.races = self.races or len(sources) > 1
        return super()._arrive(queue, message)

    def _die(self, queue: _Queue, copy: _Copy, reason: str) -> None:
        self.deaths += 1
        if reason == "expired":
            self.races = self.races or any(
                name != queue.name and abs(time - self.now) < MARGIN for time, name in self.expired
            )
            self.expired.append((self.now, queue.name))
        super()._die(queue, copy, reason)

    @property
    def robust(self) -> bool:
        return not (self.races or self.avoided) and all(
            abs(done - due) >= MARGIN for done in self.done_at for due in self.due_at
        )


class Survey(NamedTuple):
    """`robust`: nothing depends on who is faster. `deliveries` and `deaths` are how many there are."""

    robust: bool
    deliveries: int = 0
    deaths: int = 0


def survey(program: Iterable[Call | Pause]) -> Survey:
    """What is to be expected of a program."""
    watch = _Watch()
    try:
        for step in program:
            watch.watch(step)
    except Tie:
        return Survey(False)
    return Survey(watch.robust, watch.deliveries, watch.deaths)
