"""The bytes of received messages in memory are bounded, however many messages `prefetch` allows."""

from __future__ import annotations

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import values
from fakeamqp.spark.queue.channel import ConsumingChannel
from fakeamqp.spark.wire.connection import WireConnection

SIZE, COUNT = 50_000, 400
LIMIT = 1_000_000
# A read of the socket, and a message.
SLACK = (64 << 10) + SIZE


@pytest.fixture
def held(monkeypatch):
    """The bytes of bodies in memory, each time that bytes have arrived."""
    channels, sizes = [], []
    construct, receive = ConsumingChannel.__init__, WireConnection._receive

    def constructed(self, *arguments):
        channels.append(self)
        construct(self, *arguments)

    def received(self, octets):
        receive(self, octets)
        sizes.append(sum(len(message.body) for channel in channels[-1:] for message in channel._buffer))

    monkeypatch.setattr(ConsumingChannel, "__init__", constructed)
    monkeypatch.setattr(WireConnection, "_receive", received)
    return sizes


def publish(broker):
    for number in range(COUNT):
        broker.publish(str(number).rjust(SIZE).encode(), routing_key="orders", message_id=f"m{number}")


OPTIONS = {"spoolMaxBytes": LIMIT, "prefetchBytes": LIMIT, "maxMessagesPerTrigger": 10, "prefetch": COUNT}


each_mode = pytest.mark.parametrize("mode", ["spool", "commit", "none"])


@pytest.mark.parametrize("available_now", [False, True])
@each_mode
def test_large_messages_take_neither_memory_nor_disk_and_are_read_in_order(
    broker, query, held, mode, available_now
):
    """The consumer goes on with a smaller window. With `commit` the batch in progress comes again."""
    publish(broker)
    job = query(ackMode=mode, **OPTIONS).start(available_now=available_now)
    first = job.batch()
    running = job.reader._running
    broker.wait_for(lambda: running.consumer.state.window, timeout=20)
    window = running.consumer.state.window
    assert LIMIT // 2 < window * SIZE <= LIMIT
    if mode == "spool":
        broker.queue("orders").wait_for(unacked=window, timeout=20)
    assert running.store.waiting[1] <= 2 * LIMIT + SLACK
    running.consumer.barrier()
    status = job.reader.reportLatestOffset()["metrics"]
    assert mode == "commit" or status["lag"] == COUNT - len(first)
    assert mode != "spool" or status["unacknowledged"] == window
    broker.queue("orders").wait_for(unacked=status["unacknowledged"], timeout=20)
    assert len(broker.queue("orders").consumers) == len(broker.connections) == 1
    found = values(job.all())
    repeated = found[: len(found) - COUNT]
    assert found[len(repeated) :] == list(range(COUNT))
    assert repeated in ([], values(first) if mode == "commit" else [])
    assert LIMIT // 2 < max(held) <= LIMIT + SLACK
    running.consumer.barrier()
    status = job.reader.reportLatestOffset()["metrics"]
    broker.queue("orders").wait_for(unacked=status["unacknowledged"], timeout=20)
    assert mode == "commit" or status["unacknowledged"] == 0


@pytest.mark.parametrize("dedupe", ["none", "content"])
def test_messages_in_full_spool_are_acknowledged_and_stored_once_despite_lost_connections(
    broker, query, held, dedupe
):
    publish(broker)
    job = query(dedupe=dedupe, **OPTIONS).start()
    job.batch()
    state, store = job.reader._running.consumer.state, job.reader._running.store
    broker.wait_for(lambda: state.window, timeout=20)
    # The spool is full, and the broker sends no more.
    broker.queue("orders").wait_for(unacked=state.window, timeout=20)
    window, end = state.window, store.next
    for _ in range(3):
        [connection] = broker.connections
        connection.close(320, "maintenance")
        broker.wait_for(lambda gone=connection: broker.connections not in ((), (gone,)), timeout=20)
        broker.queue("orders").wait_for(unacked=window, timeout=20)
    assert store.next == end
    job.stop()
    broker.queue("orders").wait_for(unacked=0, ready=COUNT - end)
    assert values(job.start().all()) == list(range(COUNT))


@each_mode
def test_available_now_reads_everything_present_at_start_although_window_narrows(broker, query, mode):
    """Of several queues; what comes after the next channel has counted them is left to the next run."""
    for number in range(COUNT // 2):
        for queue in ("orders", "refunds"):
            broker.publish(str(number).rjust(SIZE).encode(), routing_key=queue)
    job = query(queue="orders,refunds", ackMode=mode, **OPTIONS).start(available_now=True)
    first = values(job.batch())
    broker.wait_for(lambda: job.reader._running.consumer.state.window, timeout=20)
    job.reader._running.consumer.barrier()
    for queue in ("orders", "refunds"):
        broker.publish(b"-1", routing_key=queue)
    found = values(job.all())
    assert found.count(-1) < 2, "a queue may end before the other, and show what came later"
    found = sorted(number for number in found if number >= 0)
    assert found in [
        sorted([*range(COUNT // 2)] * 2 + more) for more in ([], first[: len(first) * (mode == "commit")])
    ]


@each_mode
def test_messages_larger_than_byte_limits_are_read(broker, query, mode):
    publish(broker)
    job = query(
        ackMode=mode, spoolMaxBytes=1000, prefetchBytes=1000, maxMessagesPerTrigger=10, prefetch=20
    ).start()
    found = values(job.all())
    assert found[-COUNT:] == list(range(COUNT))
    assert mode == "commit" or len(found) == COUNT
