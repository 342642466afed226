"""The bytes of received messages in memory are bounded, however many messages `prefetch` allows."""

from __future__ import annotations

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import ReadAllAvailable, values
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


def test_the_backlog_is_counted_while_a_publisher_keeps_up(broker, query, monkeypatch):
    """Acknowledgements let further messages come, so there are none before the count is known."""
    settle, calls = ConsumingChannel._settle, []

    def publish_more(self):
        if self._counting:
            calls.append(None)
            if len(calls) < 30:
                for number in range(4):
                    broker.publish(b"x" * SIZE, routing_key="orders", message_id=f"{len(calls)} {number}")
        settle(self)

    publish(broker)
    monkeypatch.setattr(ConsumingChannel, "_settle", publish_more)
    job = query(prefetch=4, prefetchBytes=SIZE, maxMessagesPerTrigger=2).start()
    rows = job.batch(limit=ReadAllAvailable())
    assert len(calls) < 5
    assert COUNT <= len(rows) <= COUNT + 4 * len(calls)


@each_mode
def test_a_message_that_comes_right_behind_its_count_is_expected_once(broker, query, monkeypatch, mode):
    """A queue answers how many messages it has, and then delivers one of them."""
    counted, calls = ConsumingChannel.count, []

    def count(self):
        counts = counted(self)
        calls.append(None)
        if len(calls) == 1:
            counts["orders"] += 1
            broker.publish(b"0", routing_key="orders")
            while not self._buffer:
                self._link.turn(1)
        return counts

    monkeypatch.setattr(ConsumingChannel, "count", count)
    job = query(ackMode=mode).start(available_now=True)
    broker.publish(b"1", routing_key="orders")
    assert values(job.all()) == [0]


def on_disk(folder):
    return sum(path.stat().st_size for path in folder.glob("*.arrow"))


def test_kept_segments_use_less_than_half_of_all_message_bytes_on_disk(broker, query, tmp_path):
    """Kept segments only tell which messages come again; the broker has processed their acknowledgements."""
    publish(broker)
    job = query(**OPTIONS).start()
    seen, sizes = [], []
    while len(seen) < COUNT:
        seen += values(job.batch())
        sizes.append(on_disk(tmp_path / "spool"))
    assert seen == list(range(COUNT))
    # The spool itself, the segments that are kept, and what arrives until the broker has answered.
    assert max(sizes[5:]) < COUNT * SIZE // 2
