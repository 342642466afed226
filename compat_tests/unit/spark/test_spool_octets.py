"""The bytes of received messages in memory are bounded, however many messages `prefetch` allows."""

from __future__ import annotations

import pytest

import compat_tests.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import values
from fakeamqp.spark.incoming import Incoming
from fakeamqp.spark.spool.channel import ConsumingChannel

SIZE, COUNT = 50_000, 400
LIMIT = 1_000_000
# pika reads up to 100 KiB in a turn, and one read more.
SLACK = (100 << 10) + (64 << 10) + SIZE


@pytest.fixture
def held(monkeypatch):
    """The bytes of bodies in memory, each time that octets have arrived."""
    channels, sizes = [], []
    construct, receive = ConsumingChannel.__init__, Incoming.receive

    def constructed(self, *arguments):
        channels.append(self)
        construct(self, *arguments)

    def received(self, octets):
        receive(self, octets)
        sizes.append(sum(len(message.body) for channel in channels for message in channel._buffer))

    monkeypatch.setattr(ConsumingChannel, "__init__", constructed)
    monkeypatch.setattr(Incoming, "receive", received)
    return sizes


def publish(broker):
    for number in range(COUNT):
        broker.publish(str(number).rjust(SIZE).encode(), routing_key="orders", message_id=f"m{number}")


@pytest.mark.parametrize("available_now", [False, True])
def test_a_full_spool_takes_what_memory_must_not(broker, query, held, available_now):
    publish(broker)
    job = query(spoolMaxBytes=LIMIT, prefetchBytes=LIMIT, maxMessagesPerTrigger=10, prefetch=COUNT)
    job.start(available_now=available_now)
    first = job.batch()
    broker.queue("orders").wait_for(ready=0)
    assert values(first) == list(range(len(first)))
    assert values(job.all()) == list(range(COUNT))
    assert LIMIT // 2 < max(held) <= LIMIT + SLACK
    broker.queue("orders").wait_for(unacked=0)


def test_what_a_full_spool_took_is_acknowledged_at_the_end(broker, query, held):
    publish(broker)
    options = {"spoolMaxBytes": LIMIT, "prefetchBytes": LIMIT, "maxMessagesPerTrigger": 10, "prefetch": COUNT}
    job = query(**options).start()
    job.batch()
    broker.queue("orders").wait_for(ready=0)
    assert broker.queue("orders").unacked > COUNT // 2
    store = job.reader._running.store
    job.stop()
    assert store.next > COUNT // 2
    broker.queue("orders").wait_for(unacked=0, ready=COUNT - store.next)
    assert values(job.start().all()) == list(range(COUNT))


def test_the_bytes_of_a_batch_have_a_limit(query):
    assert query().start().reader._options.max_bytes == 256 << 20
