"""Queues that tasks in executors read: segments, leases, and batches that run again."""

from __future__ import annotations

import errno
import json
import os
import stat
from hashlib import sha256
from pathlib import Path

import pika
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.fuzz.profile import examples
from compat_tests.unit.spark.links import Link as PlayedLink
from compat_tests.unit.spark.micro_batches import MOMENTS, Died, Limit, ReadAllAvailable, publish, values
from fakeamqp.spark import lease
from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost, DataLoss, OptionError, SpoolError
from fakeamqp.spark.lease import LeaseRefused, LeaseTaken, is_held, lease_name, take_lease
from fakeamqp.spark.options import read_options
from fakeamqp.spark.shards import filling
from fakeamqp.spark.shards.folder import Segment, SharedFolder, State
from fakeamqp.spark.shards.share import share
from fakeamqp.spark.shards.watch import Watch

BOTH = {"queue": "orders,refunds", "shards": 2}


@pytest.fixture
def sharded(query, tmp_path):
    def make(**options):
        given = {"spoolDir": tmp_path / "spool", **BOTH, "idleTimeout": "200ms", **options}
        # The fixture of the spool gives an option that shards do not have.
        job = query(**given)
        del job.options["spoolFlushInterval"]
        return job

    return make


def to_the_end(job):
    """The rows of all batches, also after one that is empty."""
    for _ in range(10):
        count = len(job.offsets)
        job.batch()
        if len(job.offsets) == count:
            return values(job.seen)
    raise AssertionError("the query does not end")


def planned(job):
    """The tasks of the first batch, which the test runs itself."""
    start = json.loads(job.initial)
    return job.reader.partitions(start, job.reader.latestOffset(start, Limit(4)))


def of(job, task):
    """The rows of a task."""
    return [row for batch in job.reader.read(task) for row in batch.to_pylist()]


def read_shards(job, queue):
    """Start the query again on these shards."""
    job.stop()
    job.options |= {"queue": queue, "shards": str(queue.count(",") + 1)}
    return job.start()


def segments(tmp_path, queue="orders"):
    return sorted(path.name for path in Path(tmp_path, "spool", queue).glob("*.arrow"))


# --- what is read -----------------------------------------------------------------------------------------


def test_every_shard_is_a_task_and_a_segment(broker, sharded, tmp_path):
    publish(broker, 1, 2, 3)
    publish(broker, 4, 5, queue="refunds")
    job = sharded().start()
    assert values(job.batch()) == [1, 2, 3, 4, 5]
    assert segments(tmp_path) == segments(tmp_path, "refunds") == ["000000000000.arrow"]
    assert json.loads(job.end)["next"] == {"orders": 1, "refunds": 1}
    assert broker.queue("orders").messages == broker.queue("refunds").messages == ()
    publish(broker, 6, queue="refunds")
    [row] = job.batch()
    assert (row["queue"], row["offset"], row["redelivered"]) == ("refunds", filling.ROWS, False)
    assert json.loads(job.end)["next"] == {"orders": 1, "refunds": 2}
    assert job.batch() == []


def test_batch_of_shards_reads_message_published_before_batch(broker, sharded):
    job = sharded().start()
    for number in range(20):
        publish(broker, number)
        assert values(job.batch()) == [number]
    assert job.batch() == []


def test_batch_of_shards_takes_at_most_max_messages_from_queues(broker, sharded):
    publish(broker, *range(30))
    publish(broker, *range(30, 40), queue="refunds")
    job = sharded(maxMessagesPerTrigger=20).start()
    assert values(job.batch()) == [*range(14), *range(30, 35)]
    # No delivery returned to its queue: quorum queues would count that.
    assert not any(message.redelivered for message in broker.queue("orders").messages)
    assert sorted(values(job.all())) == list(range(40))


def test_all_messages_of_a_shard_may_be_more_than_a_window(broker, sharded, monkeypatch):
    monkeypatch.setattr(filling, "_LARGEST_WINDOW", 7)
    monkeypatch.setattr(filling, "_BATCH_ROWS", 5)
    publish(broker, *range(40))
    job = sharded(maxMessagesPerTrigger=3, idleTimeout="1min").start()
    consume, arrived = filling.SegmentFiller._consume, []

    def note_and_consume(self):
        arrived.append(self._arrived)
        consume(self)

    monkeypatch.setattr(filling.SegmentFiller, "_consume", note_and_consume)
    assert values(job.batch(limit=ReadAllAvailable())) == list(range(40))
    assert broker.queue("orders").messages == ()
    # One consumer after the other: several at once would mix up the order.
    assert arrived == [0, 7, 14, 21, 28, 35]


def test_available_now_of_shards_reads_only_messages_present_at_start(broker, sharded):
    publish(broker, *range(25))
    job = sharded(maxMessagesPerTrigger=10).start(available_now=True)
    seen = []
    while rows := job.batch():
        seen.append(len(rows))
        publish(broker, *range(100, 110))
    assert seen == [10, 10, 5]


def test_available_now_counts_from_the_start_of_the_query(broker, sharded):
    publish(broker, *range(10))
    job = sharded().start()
    job.all()
    job.stop()
    publish(broker, *range(10, 20))
    job.start(available_now=True)
    assert values(job.batch()) == list(range(10, 20))


def test_old_pyspark_has_all_messages_in_first_batch_and_continues_after_last_batch(broker, sharded):
    publish(broker, *range(25))
    job = sharded(maxMessagesPerTrigger=10)
    job.modern = False
    assert len(job.start().batch()) == 25
    for number in range(3):
        publish(broker, number)
        assert values(job.batch()) == [number]
    assert job.batch() == []
    job.stop()
    job.start()
    publish(broker, 3)
    assert values(job.batch()) == [3]


def test_shard_exchange_is_bound_to_shards_and_distributes_messages(broker, sharded):
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.exchange_declare("events", "x-consistent-hash", durable=True)
        job = sharded(queue="events", shards=3, shardExchange="events").start()
        for number in range(60):
            channel.basic_publish("events", f"key {number}", str(number))
    assert sorted(values(job.all())) == list(range(60))
    assert {row["queue"] for row in job.seen} == {"events-0", "events-1", "events-2"}
    job.stop()
    job.start()  # Binding again changes nothing.
    assert len(broker.exchange("events").bindings) == 3


# --- shards that go and come -------------------------------------------------------------------------------


def test_a_shard_that_comes_back_continues_at_its_place(broker, sharded):
    publish(broker, 0, 1)
    publish(broker, 2, 3, queue="refunds")
    job = sharded().start()
    job.batch()
    read_shards(job, "orders")
    publish(broker, 4)
    publish(broker, 5, queue="refunds")
    assert values(job.batch()) == [4]
    read_shards(job, "orders,refunds")
    assert to_the_end(job) == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("moment", ["logged", "planned"])
def test_a_batch_that_runs_again_has_the_shards_that_it_had(broker, sharded, moment, caplog):
    publish(broker, 0, 1)
    publish(broker, 2, 3, queue="refunds")
    job = sharded().start()
    with pytest.raises(Died):
        job.batch(die=moment)
    read_shards(job, "orders")
    assert values(job.seen) == [0, 1, 2, 3]
    publish(broker, 4, queue="refunds")
    assert to_the_end(job) == [0, 1, 2, 3]
    assert broker.queue("refunds").ready == 1
    assert caplog.text.count("shard 'refunds' is no longer read; its place stays in the checkpoint") == 1


def test_segments_of_removed_shard_are_read(broker, sharded):
    publish(broker, 0)
    publish(broker, 1, queue="refunds")
    job = sharded().start()
    job.batch()
    publish(broker, 2, queue="refunds")
    end = job.reader.latestOffset(json.loads(job.end), Limit(10))
    job.rows(job.end, json.dumps(end))  # Spark dies before it writes the offsets down.
    job.kill()
    read_shards(job, "orders")
    assert to_the_end(job) == [0, 1, 2]


# --- crashes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", MOMENTS)
def test_dead_driver_loses_and_repeats_no_message(broker, sharded, moment):
    publish(broker, *range(30))
    publish(broker, *range(30, 60), queue="refunds")
    job = sharded(maxMessagesPerTrigger=10).start()
    job.batch()
    with pytest.raises(Died):
        job.batch(die=moment)
    job.start()
    assert sorted(values(job.all())) == list(range(60))


def test_segments_that_no_checkpoint_knows_are_read(broker, sharded):
    publish(broker, *range(10))
    first = sharded().start()
    with pytest.raises(Died):
        first.batch(die="planned")
    assert broker.queue("orders").messages == ()
    # A query with a new checkpoint.
    assert values(sharded().start().all()) == list(range(10))


@pytest.fixture
def dies_once(monkeypatch):
    """Have a method raise at its first call, as if the executor were gone; the task is tried again."""

    def prepare(owner, name):
        original = getattr(owner, name)
        calls = []

        def method(self, *args):
            calls.append(name)
            if len(calls) > 1:
                return original(self, *args)
            raise MemoryError(name)

        monkeypatch.setattr(owner, name, method)
        return calls

    return prepare


def tried_again(job):
    """A batch whose tasks may fail once."""
    with pytest.raises(MemoryError):
        job.batch()
    job.offsets.pop()
    # Spark tries tasks again without planning them again: what it plans is the same.
    return job.batch()


@pytest.mark.parametrize(("owner", "name"), [(Segment, "write"), (Segment, "commit")])
def test_an_executor_that_dies_before_the_commit_leaves_its_messages_in_the_queue(
    broker, sharded, dies_once, owner, name, tmp_path
):
    publish(broker, *range(10))
    job = sharded().start()
    dies_once(owner, name)
    assert values(tried_again(job)) == list(range(10))
    assert segments(tmp_path) == ["000000000000.arrow"]
    assert broker.queue("orders").messages == ()


@pytest.mark.parametrize(("dedupe", "times"), [("message_id", 1), ("none", 2)])
def test_messages_of_executor_killed_before_ack_are_read_once_with_dedupe_else_twice(
    broker, sharded, dies_once, dedupe, times
):
    publish(broker, *range(10))
    job = sharded(dedupe=dedupe).start()
    dies_once(filling.SegmentFiller, "_acknowledge")
    assert values(tried_again(job)) == list(range(10))
    publish(broker, 10)
    assert sorted(values(job.all())) == sorted([*range(10)] * times + [10])
    assert broker.queue("orders").messages == ()


def test_a_lost_connection_is_opened_again(broker, sharded, monkeypatch):
    publish(broker, *range(10))
    job = sharded().start()
    consume, lost = filling.SegmentFiller._consume, []

    def consume_and_lose(self):
        consume(self)
        if not lost:
            lost.append(True)
            for connection in broker.connections:
                connection.close(320, "gone")

    monkeypatch.setattr(filling.SegmentFiller, "_consume", consume_and_lose)
    assert values(job.batch()) == list(range(10))
    assert job.batch() == []  # The driver connects again, too.


def test_the_first_commit_of_two_attempts_counts(broker, sharded, monkeypatch, tmp_path):
    """A task that the broker gave up, and that does not know it yet, comes too late with its segment."""
    publish(broker, *range(10))
    job = sharded(queue="orders", shards=1).start()
    [task] = planned(job)
    commit, others = Segment.commit, []

    def wait_for_the_other(self):
        if not others:
            others.append(None)
            [holder] = [each for each in broker.connections if each.channels and each.name != "driver"][-1:]
            holder.close(320, "given up")
            publish(broker, 77)
            others[0] = of(job, task)
        return commit(self)

    monkeypatch.setattr(Segment, "commit", wait_for_the_other)
    ours = of(job, task)
    assert ours == others[0]
    assert values(ours) == [0, 1, 2, 3]
    assert segments(tmp_path) == ["000000000000.arrow"]
    broker.queue("orders").wait_for(ready=7, unacked=0)


def test_executor_without_access_to_spool_folder_takes_no_message(broker, sharded, tmp_path):
    """Without a shared file system it would store messages where the query never looks."""
    publish(broker, 1)
    job = sharded().start()
    tasks = planned(job)
    Path(tmp_path, "spool").rename(Path(tmp_path, "on the driver"))
    for other in (None, SharedFolder(str(tmp_path / "spool"))):
        if other is not None:
            other.make()
            other.state()
        with pytest.raises(SpoolError, match=r"an executor does not see spoolDir: on .* has (no )?spool"):
            next(job.reader.read(tasks[0]))
        assert Path(tmp_path, "spool").exists() == (other is not None)
        assert not Path(tmp_path, "spool", "orders").exists()
    broker.queue("orders").wait_for(ready=1, unacked=0)


def test_a_segment_of_a_batch_that_runs_again_is_not_filled_with_other_messages(broker, sharded, tmp_path):
    publish(broker, 1)
    job = sharded().start()
    with pytest.raises(Died):
        job.batch(die="sunk")
    [segment] = Path(tmp_path, "spool", "orders").glob("*.arrow")
    segment.unlink()
    publish(broker, 2)
    with pytest.raises(DataLoss, match=r"segments \[0\] of shard 'orders' are gone"):
        job.start()
    assert broker.queue("orders").ready == 1
    job.stop()
    job.options["failOnDataLoss"] = "false"
    job.planned.clear()
    job.start()
    assert values(job.batch()) == [2]


def test_a_folder_is_on_the_disk_before_its_segments_are(monkeypatch, tmp_path):
    synced = []
    monkeypatch.setattr(SharedFolder, "sync", lambda _self, path: synced.append(path))
    folder = SharedFolder(str(tmp_path / "spool"))
    folder.make()
    assert synced == [str(tmp_path)]
    folder.new("a", 0, SCHEMA)
    assert synced == [str(tmp_path), str(tmp_path / "spool")]


def test_segment_commit_fails_if_folder_cannot_be_synced(monkeypatch, tmp_path):
    """The name is given by then, and only the folder's own entry may be lost."""
    folder = SharedFolder(str(tmp_path / "spool"))
    folder.make()
    segment = folder.new("a", 0, SCHEMA)
    fsync = os.fsync

    def fails(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(SpoolError, match="Input/output error"):
        segment.commit()


# --- what is no shard --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 3])
def test_a_shard_that_becomes_a_stream_while_the_query_runs(broker, sharded, monkeypatch, count):
    """A consumer of a stream gets what is published later, and the stream counts what it has."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("alone", durable=True)
        job = sharded(queue="orders,alone").start()
        publish(broker, 1, queue="alone")
        assert values(job.batch()) == [1]
        channel.queue_delete("alone")
        channel.queue_declare("alone", durable=True, arguments={"x-queue-type": "stream"})
        publish(broker, 2, queue="alone")
        broker.queue("alone").wait_for(ready=1, timeout=20)  # RabbitMQ counts in streams every five seconds.
        consume = filling.SegmentFiller._consume

        def consume_and_publish(self):
            consume(self)
            publish(broker, *range(3, 3 + count), queue="alone")

        monkeypatch.setattr(filling.SegmentFiller, "_consume", consume_and_publish)
        with pytest.raises(OptionError, match="shard 'alone' is a stream"):
            job.batch()


def test_shard_exchange_of_another_type_is_refused(broker, sharded):
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        connection.channel().exchange_declare("events", "topic", durable=True)
    with pytest.raises(ConnectionLost, match=r"'events' as a durable x-consistent-hash exchange: .*'type'"):
        sharded(queue="events", shards=3, shardExchange="events").start()


# --- figures -----------------------------------------------------------------------------------------------


def test_query_on_shards_reports_lag_ready_messages_and_spool_size(broker, sharded, tmp_path):
    def metrics():
        return job.reader.reportLatestOffset()["metrics"]

    def size():
        return sum(path.stat().st_size for path in Path(tmp_path, "spool").rglob("*.arrow"))

    publish(broker, *range(25))
    publish(broker, 1, 2, queue="refunds")
    job = sharded(maxMessagesPerTrigger=10).start()
    job.batch()
    found = metrics()
    assert found == {
        "lag": 18,
        "lagSeconds": found["lagSeconds"],
        "ready": 27,
        "consumers": 0,
        "redelivered": 0,
        "spoolBytes": found["spoolBytes"],
        "queues": {"orders": {"ready": 25, "consumers": 0}, "refunds": {"ready": 2, "consumers": 0}},
    }
    assert found["spoolBytes"] == size() > 0
    assert job.reader.reportLatestOffset()["offset"] == json.loads(job.end)
    job.all()
    found = metrics()
    assert (found["lag"], found["lagSeconds"], found["ready"]) == (0, 0, 0)
    assert found["spoolBytes"] == size()
    assert job.reader.reportLatestOffset()["offset"] == json.loads(job.end)


# --- leases -----------------------------------------------------------------------------------------------


def test_second_query_on_same_sharded_spool_is_refused(broker, sharded, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.shards.watch._BEATS", 0.01)
    sharded().start()
    with pytest.raises(SpoolError, match="spoolDir is in use by another query, or by another source of"):
        sharded().start()


@pytest.mark.parametrize("shards_first", [True, False])
def test_queries_with_shards_and_without_use_no_spool_of_each_other(broker, sharded, query, shards_first):
    one, other = sharded(), query(queue="orders", spoolDir=sharded().options["spoolDir"])
    if not shards_first:
        one, other = other, one
    one.start()
    whose = "a query with 'shards'" if shards_first else "a query without 'shards'"
    with pytest.raises(SpoolError, match=f"has the spool of {whose}: .* needs a spoolDir of its own"):
        other.start()


def test_the_lease_is_kept_while_spark_is_busy(broker, sharded):
    """The connection of the driver answers heartbeats between the questions for depths."""
    sharded(**{"amqp.heartbeat": 1}).start()
    [driver] = broker.connections
    beats = []
    with broker.faults.on("heartbeat", direction="received").call(beats.append):
        broker.wait_for(lambda: len(beats) >= 3, timeout=20)
    assert broker.connections == (driver,)


def test_query_sees_commit_made_by_previous_query_before_its_lease_ended(
    broker, sharded, tmp_path, monkeypatch
):
    """The previous query may commit a batch while the next query waits for its lease."""
    first = sharded(queue="orders", shards=1).start()
    publish(broker, 1)
    first.batch()
    construct = Watch.__init__

    def commit_meanwhile(self, *arguments):
        first.reader.commit(json.loads(first.end))
        first.stop()
        construct(self, *arguments)

    monkeypatch.setattr(Watch, "__init__", commit_meanwhile)
    second = sharded(queue="orders", shards=1).start()
    assert json.loads(second.initial)["next"] == {"orders": 1}
    publish(broker, 2)
    assert values(second.batch()) == [2]


def test_a_lease_is_waited_for_with_growing_pauses(monkeypatch):
    link, between = PlayedLink(), []
    monkeypatch.setattr(lease, "time", link)
    refusals = ["405 RESOURCE_LOCKED"] * 6
    monkeypatch.setattr(lease, "_refusal", lambda *_: refusals.pop(0) if refusals else None)
    take_lease(link, "name", 9.0, lambda: between.append(link.now))
    assert link.pauses == [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]
    assert len(between) == 6
    link.pauses.clear()
    refusals[:] = ["405 RESOURCE_LOCKED"] * 99
    with pytest.raises(LeaseTaken, match=r"the lease 'name' was held by another connection for 0\.25 s"):
        take_lease(link, "name", 0.25)
    assert link.pauses == pytest.approx([0.05, 0.1, 0.1])
    refusals[:] = ["403 ACCESS_REFUSED", "405 RESOURCE_LOCKED"]
    with pytest.raises(LeaseRefused, match="cannot declare the lease 'name': 403 ACCESS_REFUSED"):
        take_lease(link, "name", 9.0)


def test_a_lease_is_an_exclusive_queue_of_its_connection(broker):
    options = read_options({"amqp.url": broker.url, "queue": "orders"}).connection
    with Link(options) as link:
        with Link(options) as other:
            take_lease(other, "amqp.lease.x", 0)
            assert is_held(link, "amqp.lease.x")
            assert not is_held(link, "amqp.lease.y")
            assert not is_held(other, "amqp.lease.x")
            with pytest.raises(LeaseTaken):
                take_lease(link, "amqp.lease.x", 0)
            assert link.lost is None
        take_lease(link, "amqp.lease.x", 10)
        broker.connections[0].close(320, "maintenance")
        with pytest.raises(ConnectionLost, match="maintenance"):
            take_lease(link, "amqp.lease.z", 10)


def test_lease_name_has_id_and_queue_or_hash_of_long_queue_name():
    assert lease_name("id") == "amqp.lease.id"
    assert lease_name("id", "orders") == "amqp.lease.id.orders"
    assert lease_name("id", "x" * 241) == "amqp.lease.id." + "x" * 241
    assert lease_name("id", "x" * 242) == f"amqp.lease.id.{sha256(b'x' * 242).hexdigest()}"
    assert len(lease_name("id", "é" * 200)) < 100
    long, longer = lease_name("id", "x" * 255), lease_name("id", "x" * 254)
    assert long != longer
    assert len(long) <= 255


# --- the spool --------------------------------------------------------------------------------------------


FOLDERS = {"local": "{}", "uri": "file://{}", "another file system": "mock:/spool"}


@pytest.fixture(params=FOLDERS.values(), ids=FOLDERS)
def folder(request, tmp_path):
    found = SharedFolder(request.param.format(tmp_path / "spool"))
    found.make()
    return found


SCHEMA = pa.schema([("value", pa.int64())])


def batch(*numbers):
    return pa.record_batch([pa.array(numbers, pa.int64())], SCHEMA)


def numbers_of(folder, shard, number):
    return [value for part in folder.read(shard, number) for value in part.column(0).to_pylist()]


def test_first_committed_segment_of_two_attempts_is_kept_and_discarded_one_is_not(folder):
    discarded = folder.new("a/b", 3, SCHEMA)
    discarded.write(batch(0))
    discarded.discard()
    first, second = folder.new("a/b", 3, SCHEMA), folder.new("a/b", 3, SCHEMA)
    first.write(batch(1, 2))
    second.write(batch(3))
    second.write(batch(4))
    assert not folder.has("a/b", 3)
    assert folder.contents("a/b").end == 0
    assert second.commit()
    assert not first.commit()
    first.discard()
    second.discard()
    there = folder.contents("a/b")
    assert list(there.sizes) == [3]
    assert there.sizes[3] > 0
    assert there.end == 4
    assert numbers_of(folder, "a/b", 3) == [3, 4]
    folder.note("a/b", 3, 5, 1)
    assert folder.tidy("a/b", folder.contents("a/b"), 3, 3).filled == {3: (5, 1)}
    assert folder.has("a/b", 3)
    assert folder.tidy("a/b", folder.contents("a/b"), 4, 3).end == 0
    assert folder.contents("a/b").end == 0


def test_saved_state_of_shared_folder_is_read_again(folder):
    state = folder.state()
    assert state.committed == {}
    assert folder.state() == state
    folder.save(State(state.spool, {"a": 3}))
    folder.save(State(state.spool, {"a": 4}))
    assert folder.state() == State(state.spool, {"a": 4})


def test_shared_folder_with_segments_but_no_state_is_refused(folder):
    segment = folder.new("a", 0, SCHEMA)
    segment.commit()
    with pytest.raises(SpoolError, match="has segments and no state"):
        folder.state()


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (b'{"format": 2, "spool": "x", "committed": {}}', "has format 2, this version reads 1"),
        (b'{"format": 1, "spool": "x"}', r"cannot read .*state-000000000003.json: KeyError\('committed'\)"),
        (b'{"format": 1, "spool": "x", "committed": []}', "AttributeError"),
        (b'{"format": 1, "spool": "x", "committed": {"a": "b"}}', "ValueError"),
        (b"[]", "TypeError"),
        (b"{", "JSONDecodeError"),
    ],
)
def test_unreadable_state_of_shared_folder_is_refused(tmp_path, state, said):
    folder = SharedFolder(str(tmp_path))
    folder.save(State("x", {"a": 1}))
    (tmp_path / "state-000000000003.json").write_bytes(state)
    (tmp_path / "state-000000000004.json.tmp").write_bytes(b"{}")
    for read in (folder.state, lambda: folder.require("x")):
        with pytest.raises(SpoolError, match=said):
            read()


def test_the_last_state_counts_and_one_query_saves_it(tmp_path):
    def names():
        return sorted(path.name for path in tmp_path.iterdir())

    folder, other = SharedFolder(str(tmp_path)), SharedFolder(str(tmp_path))
    folder.save(State("x", {"a": 1}))
    assert other.state() == State("x", {"a": 1})
    other.save(State("x", {"a": 2}))
    assert names() == ["state-000000000001.json"]
    with pytest.raises(SpoolError, match="is in use by another query"):
        folder.save(State("x", {"a": 3}))
    assert folder.state() == State("x", {"a": 2})
    folder.save(State("x", {"a": 3}))
    assert names() == ["state-000000000002.json"]
    # The state of a new spool that another query makes first counts.
    third = SharedFolder(str(tmp_path))
    third._state_number = 1
    SharedFolder(str(tmp_path)).require("x")
    with pytest.raises(SpoolError, match=r"has spool x, and the driver has spool y\. With 'shards'"):
        folder.require("y")
    with pytest.raises(SpoolError, match=r"has no spool, and the driver has spool y\."):
        SharedFolder(str(tmp_path / "nowhere")).require("y")


def test_two_queries_that_make_a_spool_at_once_have_the_same(tmp_path, monkeypatch):
    first, second = SharedFolder(str(tmp_path)), SharedFolder(str(tmp_path))
    publish_file = SharedFolder.publish

    def publish_after_the_other(self, temporary, path):
        monkeypatch.setattr(SharedFolder, "publish", publish_file)
        second.state()
        return self.publish(temporary, path)

    monkeypatch.setattr(SharedFolder, "publish", publish_after_the_other)
    assert first.state() == second.state() == SharedFolder(str(tmp_path)).state()
    assert [path.name for path in tmp_path.iterdir()] == ["state-000000000000.json"]


def test_state_replaced_during_read_is_read_as_newer_state(tmp_path, monkeypatch):
    folder, driver = SharedFolder(str(tmp_path)), SharedFolder(str(tmp_path))
    driver.save(State("x", {"a": 1}))
    state_path = SharedFolder._state_path

    def save_meanwhile(self, number):
        monkeypatch.setattr(SharedFolder, "_state_path", state_path)
        driver.save(State("x", {"a": 2}))
        return state_path(self, number)

    monkeypatch.setattr(SharedFolder, "_state_path", save_meanwhile)
    assert folder.state() == State("x", {"a": 2})


def test_the_files_of_a_shard_are_known_by_their_names(tmp_path):
    folder = SharedFolder(str(tmp_path))
    shard = tmp_path / "a%2Fb"
    shard.mkdir()
    names = (
        *("000000000001.arrow", "000000000003.arrow", "000000000001-5-2.filled", "000000000007-1-0.filled"),
        *("000000000003.arrow.x.tmp", "000000000004.arrow.x.tmp", "000000000009.arrow.x.tmp"),
        *("1.arrow", "000000000008.arrow.gz", "000000000008-1.filled", "x"),
    )
    for name in names:
        (shard / name).write_bytes(b"1234")
    there = folder.contents("a/b")
    assert there.sizes == {1: 4, 3: 4}
    assert there.filled == {1: (5, 2), 7: (1, 0)}
    assert {Path(path).name: number for path, number in there.temporaries.items()} == {
        "000000000003.arrow.x.tmp": 3,
        "000000000004.arrow.x.tmp": 4,
        "000000000009.arrow.x.tmp": 9,
    }
    assert there.end == 8
    assert folder.contents("nothing").end == 0
    left = folder.tidy("a/b", there, 3, 4)
    assert (left.sizes, left.filled, left.temporaries) == ({3: 4}, {7: (1, 0)}, {})
    gone = {"000000000001.arrow", "000000000001-5-2.filled", "000000000003.arrow.x.tmp"}
    assert {path.name for path in shard.iterdir()} == {*names} - gone


def test_only_files_of_this_machine_are_brought_to_the_disk(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "fsync")
    SharedFolder(str(tmp_path), sync=False).sync(str(tmp_path))
    SharedFolder("mock:/spool").sync("/spool")
    with pytest.raises(AttributeError, match="fsync"):
        SharedFolder(str(tmp_path)).sync(str(tmp_path))


def test_sharded_spool_without_sync_calls_no_fsync(broker, sharded, monkeypatch):
    monkeypatch.delattr(os, "fsync")
    publish(broker, 1)
    assert values(sharded(queue="orders", shards=1, spoolSync="none").start().batch()) == [1]


def test_spool_dir_on_unknown_file_system_is_refused():
    with pytest.raises(SpoolError, match="cannot use spoolDir 'ftp://somewhere/spool'"):
        SharedFolder("ftp://somewhere/spool")


# --- shares and options -----------------------------------------------------------------------------------


@examples(200)
@given(
    st.dictionaries(st.text(max_size=3), st.integers(0, 10**7), max_size=8),
    st.none() | st.integers(1, 10**6),
)
def test_each_shard_with_messages_gets_share_within_limit(ready, most):
    found = share(ready, most)
    assert set(found) == {shard for shard, count in ready.items() if count}
    assert all(1 <= count <= ready[shard] for shard, count in found.items())
    if most is None:
        assert sum(found.values()) == sum(ready.values())
    else:
        assert sum(found.values()) <= max(most, len(found))


@pytest.mark.parametrize(
    ("most", "found"),
    [
        (None, {"a": 1, "b": 11, "c": 31}),
        (43, {"a": 1, "b": 11, "c": 31}),
        (42, {"a": 1, "b": 10, "c": 30}),
        (23, {"a": 1, "b": 6, "c": 16}),
        (3, {"a": 1, "b": 1, "c": 1}),
        (2, {"a": 1, "b": 1, "c": 1}),
    ],
)
def test_shares_of_three_shards_are_proportional_to_ready_messages(most, found):
    assert share({"a": 1, "b": 11, "none": 0, "c": 31}, most) == found
    assert share({}, most) == {}
