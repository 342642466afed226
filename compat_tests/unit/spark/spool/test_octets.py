"""The bytes of received messages in memory are bounded, however many messages `prefetch` allows."""

from __future__ import annotations

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import ReadAllAvailable, values
from fakeamqp.spark.columns import chosen_columns
from fakeamqp.spark.incoming import IncomingRows
from fakeamqp.spark.options import read_options
from fakeamqp.spark.records import DeliveredRow
from fakeamqp.spark.spool import channel
from fakeamqp.spark.spool.channel import ConsumingChannel
from fakeamqp.spark.spool.spool import Spool

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


def narrowed(broker, job):
    """Wait until the spool is full and the broker sends no more, and return the window."""
    shared = job.reader._running.consumer._shared
    broker.wait_for(lambda: shared.window, timeout=20)
    broker.queue("orders").wait_for(unacked=shared.window, timeout=20)
    return shared.window


@pytest.mark.parametrize("available_now", [False, True])
def test_large_messages_take_neither_memory_nor_disk(broker, query, held, available_now):
    publish(broker)
    job = query(**OPTIONS).start(available_now=available_now)
    first = job.batch()
    window = narrowed(broker, job)
    assert LIMIT // 2 < window * SIZE <= LIMIT
    store = job.reader._running.store
    assert store.waiting[1] <= 2 * LIMIT + SLACK
    job.reader._running.consumer.barrier()
    found = job.reader.reportLatestOffset()["metrics"]
    assert found["lag"] == COUNT - len(first)
    assert found["unacknowledged"] == window
    assert values(job.all()) == list(range(COUNT))
    assert LIMIT // 2 < max(held) <= LIMIT + SLACK
    broker.queue("orders").wait_for(unacked=0)


@pytest.mark.parametrize("dedupe", ["none", "message_id"])
def test_messages_in_full_spool_are_acknowledged_and_stored_once_despite_lost_connections(
    broker, query, held, dedupe
):
    publish(broker)
    job = query(dedupe=dedupe, **OPTIONS).start()
    job.batch()
    window = narrowed(broker, job)
    store = job.reader._running.store
    end = store.next
    for _ in range(3):
        [connection] = broker.connections
        connection.close(320, "maintenance")
        broker.wait_for(lambda gone=connection: broker.connections not in ((), (gone,)), timeout=20)
        broker.queue("orders").wait_for(unacked=window, timeout=20)
    assert store.next == end
    job.stop()
    broker.queue("orders").wait_for(unacked=0, ready=COUNT - end)
    assert values(job.start().all()) == list(range(COUNT))


@pytest.mark.parametrize("available_now", [False, True])
@pytest.mark.parametrize("mode", ["commit", "none"])
def test_messages_beyond_memory_store_limit_are_requeued_and_read_in_order(
    broker, query, held, mode, available_now
):
    """The same consumer goes on with a smaller window: no row is lost or repeated, and all are in order."""
    publish(broker)
    job = query(ackMode=mode, **OPTIONS).start(available_now=available_now)
    first = job.batch()
    running = job.reader._running
    broker.wait_for(lambda: running.consumer._shared.window, timeout=20)
    window = running.consumer._shared.window
    assert LIMIT // 2 < window * SIZE <= LIMIT
    assert running.store.waiting[1] <= 2 * LIMIT + SLACK
    running.consumer.barrier()
    status = job.reader.reportLatestOffset()["metrics"]
    assert status["lag"] == COUNT - len(first)
    broker.queue("orders").wait_for(unacked=status["unacknowledged"], timeout=20)
    assert len(broker.queue("orders").consumers) == 1
    assert values(job.all()) == list(range(COUNT))
    assert LIMIT // 2 < max(held) <= LIMIT + SLACK
    running.consumer.barrier()
    status = job.reader.reportLatestOffset()["metrics"]
    broker.queue("orders").wait_for(unacked=status["unacknowledged"], timeout=20)
    if mode == "none":
        assert status["unacknowledged"] == 0


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


@pytest.mark.parametrize("mode", ["spool", "commit", "none"])
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


@pytest.mark.parametrize("mode", ["spool", "commit", "none"])
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


def test_the_bytes_of_a_batch_have_a_limit(query):
    assert query().start().reader._options.max_bytes == 256 << 20


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


def test_large_committed_segments_are_removed_only_after_settlement(tmp_path):
    options = read_options(
        {"amqp.url": "amqp://host/", "queue": "orders", "spoolDir": str(tmp_path), "spoolMaxBytes": "1000"},
        streaming=True,
    )
    spool = Spool(options, chosen_columns(options))
    spool.new_channel()
    for number in range(20):
        spool.add([DeliveredRow(number, False, bytes(2), bytes(2), bytes(1000), "orders", number, 0)])
    spool.commit(10)
    assert spool.settle_wanted
    assert len(list(tmp_path.glob("*.arrow"))) == 20
    spool.settled(20)
    assert not spool.settle_wanted
    spool.commit(11)
    assert not spool.settle_wanted
    assert 9 <= len(list(tmp_path.glob("*.arrow"))) <= 10
    spool.close()


def test_segments_with_possibly_redelivered_messages_are_kept(broker, query, tmp_path):
    """A channel that was lost has acknowledged messages that the broker may not know of."""
    publish(broker)
    job = query(**OPTIONS).start()
    job.batch()
    store = job.reader._running.store
    store._settled = 0
    store.new_channel()
    kept = on_disk(tmp_path / "spool")
    seen = 10
    while seen < COUNT:
        seen += len(job.batch())
    assert on_disk(tmp_path / "spool") > kept
    assert store._first_kept() == 0


def test_segment_of_several_messages_stays_within_byte_limit(broker, query, monkeypatch):
    segments, add = [], Spool.add

    def adding(self, messages):
        segments.append([len(message.body) for message in messages])
        add(self, messages)

    monkeypatch.setattr(channel, "_SEGMENT_OCTETS", 1000)
    monkeypatch.setattr(Spool, "add", adding)
    sizes = [400, 400, 400, 1500, 400, 500]
    for size in sizes:
        broker.publish(b"x" * size, routing_key="orders")
    assert [len(row["value"]) for row in query().start().all()] == sizes
    assert [size for segment in segments for size in segment] == sizes
    assert all(len(segment) == 1 or sum(segment) <= 1000 for segment in segments)
    assert max(map(len, segments)) == 2
