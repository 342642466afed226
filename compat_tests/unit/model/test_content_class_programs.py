"""Random programs on a queue that holds several classes: nothing waits for nothing, and nothing is lost."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import pytest
from hypothesis import given, strategies as st

from compat_tests.fuzz.profile import examples
from compat_tests.unit.model.readers import Reader
from compat_tests.unit.model.test_content_classes import QUEUES, made, octets
from compat_tests.unit.model.transactions.bench import Bench
from fakeamqp.model.deliveries.delivery import accept_all, release_all
from fakeamqp.model.messages.message import Message
from fakeamqp.model.queues import Queue, QueueDeclaration
from fakeamqp.model.queues.qpid import QpidQueue

CLASSES = {"b": "basic", "f": "file", "s": "stream", "*": None}

steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.sampled_from("bbfs"), st.integers(0, 9)),
        st.tuples(st.just("subscribe"), st.sampled_from("bbfs*"), st.integers(0, 3)),
        st.tuples(st.just("look"), st.sampled_from("b*"), st.integers(0, 3)),
        st.tuples(st.just("allow"), st.integers(0, 9), st.integers(1, 3)),
        st.tuples(st.just("accept"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("release"), st.integers(0, 9), st.integers(0, 9)),
        st.tuples(st.just("cancel"), st.integers(0, 9), st.just(0)),
        st.tuples(st.just("get"), st.sampled_from("bfs*"), st.just(0)),
    ),
    max_size=40,
)


class World:
    """One queue, those who take from it, and what became of each message."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.readers: list[Reader] = []
        self.published: list[str] = []
        self.done: list[str] = []
        self._names = count()

    def step(self, what: str, one: Any, other: int) -> None:
        if what == "publish":
            body = f"{one}{next(self._names)}"
            self.published.append(body)
            self.queue.virtual_host.publish(made(one, body, priority=other))
        elif what in ("subscribe", "look"):
            if what == "look" and self.queue.type_name == "quorum":
                return
            terms: dict[str, Any] = {"content_class": CLASSES[one], "acquires": what == "subscribe"}
            self.readers.append(Reader(self.queue, f"r{next(self._names)}", messages=other, **terms))
        elif what == "get":
            taken = self.queue.get("me", no_ack=True, content_class=CLASSES[one])
            if taken is not None:
                assert CLASSES[one] in (None, taken[0].message.content_class)
                self.done.append(taken[0].message.body.decode())
        elif self.readers:
            self._settle(what, self.readers[one % len(self.readers)], other)

    def _settle(self, what: str, reader: Reader, number: int) -> None:
        if what == "allow":
            reader.allow(number)
        elif what == "cancel":
            reader.cancel()
        elif self.held(reader):
            held = self.held(reader)
            delivery = held[number % len(held)]
            if what == "accept":
                self.done.append(delivery.queued.message.body.decode())
                accept_all([delivery])
            else:
                release_all([delivery])

    @staticmethod
    def held(reader: Reader) -> list[Any]:
        return [each for each in reader.deliveries if each.acquired and not each.settled]

    def check(self) -> None:
        waiting = [each.message for each in self.queue.ready]
        held = [each.queued.message for reader in self.readers for each in self.held(reader)]
        bodies = [each.body.decode() for each in (*waiting, *held)] + self.done
        assert Counter(bodies) == Counter(self.published)
        assert octets(self.queue) == sum(len(each.body) for each in waiting)
        for reader in self.readers:
            subscription = reader.subscription
            if subscription.active and subscription.acquires and reader.grant.open:
                assert not any(subscription.suits(message) for message in waiting)
            assert all(self._fits(reader, each) for each in reader.deliveries)

    @staticmethod
    def _fits(reader: Reader, delivery: Any) -> bool:
        message: Message = delivery.queued.message
        return reader.subscription.content_class in (None, message.content_class)


def queue_of(kind: str) -> Queue:
    terms = dict(QUEUES[kind])
    arguments = terms.pop("arguments", None)
    bench = Bench()
    if arguments is None:
        return bench.queue("q", **terms)
    return bench.host.queues.create(
        "q", QueueDeclaration(durable=True, arguments=arguments), special=QpidQueue
    )


@pytest.mark.parametrize("kind", QUEUES)
@examples(100)
@given(program=steps)
def test_random_programs_lose_no_message_and_leave_no_open_consumer_waiting(
    kind: str, program: list[tuple[str, Any, int]]
) -> None:
    world = World(queue_of(kind))
    for each in program:
        world.step(*each)
        world.check()
