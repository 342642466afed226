"""The bytes of received messages in memory are bounded, however many messages `prefetch` allows."""

from __future__ import annotations

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import values
from fakeamqp.spark.incoming import IncomingRows
from fakeamqp.spark.spool.channel import ConsumingChannel

SIZE, COUNT = 50_000, 400
LIMIT = 1_000_000
# pika reads up to 100 KiB in a turn, and one read more.
SLACK = (100 << 10) + (64 << 10) + SIZE


@pytest.fixture
def held(monkeypatch):
    """The bytes of bodies in memory, each time that octets have arrived."""
    channels, sizes = [], []
    construct, receive = ConsumingChannel.__init__, IncomingRows.receive

    def constructed(self, *arguments):
        channels.append(self)
        construct(self, *arguments)

    def received(self, octets):
        receive(self, octets)
        sizes.append(sum(len(message.body) for channel in channels for message in channel._buffer))

    monkeypatch.setattr(ConsumingChannel, "__init__", constructed)
    monkeypatch.setattr(IncomingRows, "receive", received)
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
    """The consumer goes on with a smaller window: no row is lost or repeated."""
    publish(broker)
    job = query(ackMode=mode, **OPTIONS).start(available_now=available_now)
    first = job.batch()
    running = job.reader._running
    broker.wait_for(lambda: running.consumer._shared.window, timeout=20)
    window = running.consumer._shared.window
    assert LIMIT // 2 < window * SIZE <= LIMIT
    if mode == "spool":
        broker.queue("orders").wait_for(unacked=window, timeout=20)
    assert running.store.waiting[1] <= 2 * LIMIT + SLACK
    running.consumer.barrier()
    status = job.reader.reportLatestOffset()["metrics"]
    assert status["lag"] == COUNT - len(first)
    assert mode != "spool" or status["unacknowledged"] == window
    broker.queue("orders").wait_for(unacked=status["unacknowledged"], timeout=20)
    assert len(broker.queue("orders").consumers) == 1
    assert values(job.all()) == list(range(COUNT))
    assert LIMIT // 2 < max(held) <= LIMIT + SLACK
    running.consumer.barrier()
    status = job.reader.reportLatestOffset()["metrics"]
    broker.queue("orders").wait_for(unacked=status["unacknowledged"], timeout=20)
    assert mode == "commit" or status["unacknowledged"] == 0


@pytest.mark.parametrize("dedupe", ["none", "message_id"])
def test_messages_in_full_spool_are_acknowledged_and_stored_once_despite_lost_connections(
    broker, query, held, dedupe
):
    publish(broker)
    job = query(dedupe=dedupe, **OPTIONS).start()
    job.batch()
    shared, store = job.reader._running.consumer._shared, job.reader._running.store
    broker.wait_for(lambda: shared.window, timeout=20)
    # The spool is full, and the broker sends no more.
    broker.queue("orders").wait_for(unacked=shared.window, timeout=20)
    window, end = shared.window, store.next
    for _ in range(3):
        [connection] = broker.connections
        connection.close(320, "maintenance")
        broker.wait_for(lambda gone=connection: broker.connections not in ((), (gone,)), timeout=20)
        broker.queue("orders").wait_for(unacked=window, timeout=20)
    assert store.next == end
    job.stop()
    broker.queue("orders").wait_for(unacked=0, ready=COUNT - end)
    assert values(job.start().all()) == list(range(COUNT))


@pytest.mark.parametrize("mode", ["commit", "none"])
def test_several_queues_return_messages_of_a_backlog(broker, query, mode):
    """Everything that was there comes once. A queue may end before the other, and show what came later."""
    for number in range(COUNT // 2):
        for queue in ("orders", "refunds"):
            broker.publish(str(number).rjust(SIZE).encode(), routing_key=queue)
    job = query(queue="orders,refunds", ackMode=mode, **OPTIONS).start(available_now=True)
    job.batch()
    broker.wait_for(lambda: job.reader._running.consumer._shared.window, timeout=20)
    for queue in ("orders", "refunds"):
        broker.publish(b"-1", routing_key=queue)
    found = values(job.all())
    assert found.count(-1) < 2
    assert sorted(number for number in found if number >= 0) == sorted([*range(COUNT // 2)] * 2)


@each_mode
def test_messages_larger_than_byte_limits_are_read(broker, query, mode):
    publish(broker)
    job = query(
        ackMode=mode, spoolMaxBytes=1000, prefetchBytes=1000, maxMessagesPerTrigger=10, prefetch=20
    ).start()
    assert values(job.all()) == list(range(COUNT))


def on_disk(folder):
    return sum(path.stat().st_size for path in folder.glob("*.arrow"))
