"""Queues that tasks in executors read: segments, leases, and batches that run again."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pika
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compat_tests.needs_pyspark  # noqa: F401
from compat_tests.fuzz.profile import examples
from compat_tests.unit.spark.micro_batches import MOMENTS, Died, Limit, ReadAllAvailable, publish, values
from fakeamqp.spark.connection import Link
from fakeamqp.spark.errors import ConnectionLost, DataLoss, OptionError, SpoolError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.shards import intake
from fakeamqp.spark.shards.folder import Segment, SharedFolder, State
from fakeamqp.spark.shards.lease import lease_name, take_lease
from fakeamqp.spark.shards.share import share

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


def segments(tmp_path, queue="orders"):
    return sorted(path.name for path in Path(tmp_path, "spool", queue).iterdir())


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
    assert (row["queue"], row["offset"], row["redelivered"]) == ("refunds", intake.ROWS, False)
    assert json.loads(job.end)["next"] == {"orders": 1, "refunds": 2}
    assert job.batch() == []


def test_what_was_published_before_is_there(broker, sharded):
    job = sharded().start()
    for number in range(20):
        publish(broker, number)
        assert values(job.batch()) == [number]
    assert job.batch() == []


def test_a_batch_has_at_most_so_many_messages_and_no_other_one_is_taken(broker, sharded):
    publish(broker, *range(30))
    publish(broker, *range(30, 40), queue="refunds")
    job = sharded(maxMessagesPerTrigger=20).start()
    assert values(job.batch()) == [*range(14), *range(30, 35)]
    # No delivery returned to its queue: quorum queues would count that.
    assert not any(message.redelivered for message in broker.queue("orders").messages)
    assert sorted(values(job.all())) == list(range(40))


def test_all_messages_of_a_shard_may_be_more_than_a_window(broker, sharded, monkeypatch):
    monkeypatch.setattr(intake, "_LARGEST_WINDOW", 7)
    monkeypatch.setattr(intake, "_BATCH_ROWS", 5)
    publish(broker, *range(40))
    job = sharded(maxMessagesPerTrigger=3).start()
    assert values(job.batch(limit=ReadAllAvailable())) == list(range(40))
    assert broker.queue("orders").messages == ()


def test_available_now_reads_what_there_was(broker, sharded):
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


def test_old_versions_ask_once(broker, sharded):
    publish(broker, *range(25))
    job = sharded(maxMessagesPerTrigger=10)
    job.modern = False
    assert len(job.start().batch()) == 25


def test_messages_that_others_take_leave_an_empty_segment(broker, sharded, monkeypatch):
    publish(broker, 1)
    job = sharded().start()
    consume = intake._Intake._consume

    def too_late(self):
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as other:
            other.channel().queue_purge("orders")
        consume(self)

    monkeypatch.setattr(intake._Intake, "_consume", too_late)
    assert job.batch() == []
    monkeypatch.undo()
    publish(broker, 2)
    assert values(job.batch()) == [2]


def test_the_exchange_of_shards(broker, sharded):
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


# --- crashes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_driver_that_dies_loses_nothing_and_repeats_nothing(broker, sharded, moment):
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

    def prepare(owner, name, *, after=False):
        original = getattr(owner, name)
        calls = []

        def method(self, *args):
            calls.append(name)
            if len(calls) > 1:
                return original(self, *args)
            if after:
                original(self, *args)
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
def test_an_executor_that_dies_before_the_acknowledgement(broker, sharded, dies_once, dedupe, times):
    publish(broker, *range(10))
    job = sharded(dedupe=dedupe).start()
    dies_once(intake._Intake, "_acknowledge")
    assert values(tried_again(job)) == list(range(10))
    publish(broker, 10)
    assert sorted(values(job.all())) == sorted([*range(10)] * times + [10])
    assert broker.queue("orders").messages == ()


def test_a_lost_connection_is_opened_again(broker, sharded, monkeypatch):
    publish(broker, *range(10))
    job = sharded().start()
    consume, lost = intake._Intake._consume, []

    def consume_and_lose(self):
        consume(self)
        if not lost:
            lost.append(True)
            for connection in broker.connections:
                connection.close(320, "gone")

    monkeypatch.setattr(intake._Intake, "_consume", consume_and_lose)
    assert values(job.batch()) == list(range(10))
    assert job.batch() == []  # The driver connects again, too.


def test_the_first_commit_of_two_attempts_counts(broker, sharded, monkeypatch, tmp_path):
    """A task that the broker gave up, and that does not know it yet, comes too late with its segment."""
    publish(broker, *range(10))
    job = sharded(queue="orders", shards=1, maxMessagesPerTrigger=4).start()
    end = job.reader.latestOffset(json.loads(job.initial), Limit(4))
    [task] = job.reader.partitions(json.loads(job.initial), end)
    commit, others = Segment.commit, []

    def wait_for_the_other(self):
        if not others:
            others.append(None)
            [holder] = [each for each in broker.connections if each.channels and each.name != "driver"][-1:]
            holder.close(320, "given up")
            publish(broker, 77)
            others[0] = [row for batch in job.reader.read(task) for row in batch.to_pylist()]
        return commit(self)

    monkeypatch.setattr(Segment, "commit", wait_for_the_other)
    ours = [row for batch in job.reader.read(task) for row in batch.to_pylist()]
    assert ours == others[0]
    assert values(ours) == [0, 1, 2, 3]
    assert segments(tmp_path) == ["000000000000.arrow"]
    broker.queue("orders").wait_for(ready=7, unacked=0)


# --- leases -----------------------------------------------------------------------------------------------


def test_a_task_waits_for_the_lease_of_its_shard(broker, sharded, monkeypatch):
    publish(broker, 1, 2)
    job = sharded().start()
    spool = json.loads(job.initial)["spool"]
    options = read_options({"amqp.url": broker.url, "queue": "orders"})
    with Link(options.connection) as holder:
        take_lease(holder, lease_name(spool, "orders"), 0)
        found = []
        task = threading.Thread(target=lambda: found.extend(job.batch()))
        task.start()
        deadline = time.monotonic() + 20
        while len(broker.connections) < 3:  # The driver, the holder, the task.
            assert time.monotonic() < deadline
        holder.turn(0.2)
        assert broker.queue("orders").ready == 2
    task.join(20)
    assert values(found) == [1, 2]


def test_a_lease_that_is_not_free_in_time(broker):
    options = read_options({"amqp.url": broker.url, "queue": "orders"})
    with Link(options.connection) as holder, Link(options.connection) as other:
        take_lease(holder, "lease", 0)
        with pytest.raises(ConnectionLost, match=r"'lease' was held by another connection for 0\.1 s"):
            take_lease(other, "lease", 0.1)
        holder.close()
        take_lease(other, "lease", 10)


def test_a_spool_has_one_query(broker, sharded, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.shards.watch._PATIENCE", 0.1)
    sharded().start()
    with pytest.raises(SpoolError, match="spoolDir is in use by another query"):
        sharded().start()


def test_names_of_leases():
    assert lease_name("id") == "amqp.lease.id"
    assert lease_name("id", "orders") == "amqp.lease.id.orders"
    long, longer = lease_name("id", "x" * 255), lease_name("id", "x" * 254)
    assert long != longer
    assert len(long) <= 255


# --- the spool --------------------------------------------------------------------------------------------


def test_segments_are_kept_as_long_as_their_messages_may_come_again(broker, sharded, tmp_path):
    job = sharded(queue="orders", shards=1).start()
    for number in range(intake.KEPT + 5):
        publish(broker, number)
        job.batch()
    # The last batch is not committed: Spark does that when it plans the next one.
    assert [int(name[:12]) for name in segments(tmp_path)] == list(range(4, intake.KEPT + 5))
    assert len([path for path in Path(tmp_path, "spool").iterdir() if path.is_file()]) == 1


def test_a_spool_that_is_gone_is_a_loss(broker, sharded, tmp_path):
    publish(broker, 1)
    job = sharded().start()
    job.batch()
    job.stop()
    for path in sorted(Path(tmp_path, "spool").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    job.start()
    with pytest.raises(DataLoss, match="the checkpoint belongs to spool"):
        job.batch()


def test_a_segment_that_is_gone_is_a_loss_and_not_filled_again(broker, sharded):
    job = sharded(queue="orders", shards=1).start()
    for number in range(intake.KEPT + 3):
        publish(broker, number)
        job.batch()
    job.stop()
    del job.offsets[2:]  # An old copy of the checkpoint.
    job.committed = 1
    publish(broker, 99)
    with pytest.raises(DataLoss, match=r"segments \[1\] of shard 'orders' are gone"):
        job.start()
    assert broker.queue("orders").ready == 1


FOLDERS = {"local": "{}", "uri": "file://{}", "another file system": "mock:/spool"}


@pytest.fixture(params=FOLDERS.values(), ids=FOLDERS)
def folder(request, tmp_path):
    return SharedFolder(request.param.format(tmp_path / "spool"))


SCHEMA = pa.schema([("value", pa.int64())])


def batch(*numbers):
    return pa.record_batch([pa.array(numbers, pa.int64())], SCHEMA)


def numbers_of(folder, shard, number):
    return [value for part in folder.read(shard, number) for value in part.column(0).to_pylist()]


def test_the_first_of_two_segments_stays(folder):
    first, second = folder.new("a/b", 3, SCHEMA), folder.new("a/b", 3, SCHEMA)
    first.write(batch(1, 2))
    second.write(batch(3))
    second.write(batch(4))
    assert not folder.has("a/b", 3)
    assert folder.numbers("a/b") == []
    assert second.commit()
    assert not first.commit()
    first.discard()
    second.discard()
    assert folder.numbers("a/b") == [3]
    assert numbers_of(folder, "a/b", 3) == [3, 4]
    assert folder.rows("a/b", 3) == 2
    folder.remove("a/b", [3, 4])
    assert folder.numbers("a/b") == []


def test_a_segment_that_is_given_up_leaves_nothing(folder):
    segment = folder.new("a", 0, SCHEMA)
    segment.write(batch(1))
    segment.discard()
    assert not folder.has("a", 0)


def test_the_state_of_a_spool(folder):
    state = folder.state()
    assert state.committed == {}
    assert folder.state() == state
    folder.save(State(state.spool, {"a": 3}))
    folder.save(State(state.spool, {"a": 4}))
    assert folder.state() == State(state.spool, {"a": 4})


def test_a_spool_without_its_state(folder):
    segment = folder.new("a", 0, SCHEMA)
    segment.commit()
    with pytest.raises(SpoolError, match="has segments and no state"):
        folder.state()


def test_a_file_system_that_is_unknown():
    with pytest.raises(SpoolError, match="cannot use spoolDir 'ftp://somewhere/spool'"):
        SharedFolder("ftp://somewhere/spool")


# --- shares and options -----------------------------------------------------------------------------------


@examples(200)
@given(
    st.dictionaries(st.text(max_size=3), st.integers(0, 10**7), max_size=8),
    st.none() | st.integers(1, 10**6),
)
def test_shares(ready, most):
    found = share(ready, most)
    assert set(found) == {shard for shard, count in ready.items() if count}
    assert all(1 <= count <= ready[shard] for shard, count in found.items())
    if most is None:
        assert sum(found.values()) == sum(ready.values())
    else:
        assert sum(found.values()) <= max(most, len(found))


@pytest.mark.parametrize(
    ("given", "queues"),
    [
        ({"queue": "orders", "shards": "3"}, ("orders-0", "orders-1", "orders-2")),
        ({"queue": "orders-{2..4}", "shards": "3"}, ("orders-2", "orders-3", "orders-4")),
        ({"queue": "a,b", "shards": "2"}, ("a", "b")),
        ({"queue": "orders", "shards": "1"}, ("orders",)),
        ({"queue": "x{08..10}y,z"}, ("x08y", "x09y", "x10y", "z")),
        ({"queue": '["x{0..1}"]'}, ("x{0..1}",)),
    ],
)
def test_the_names_of_shards(given, queues):
    assert read_options({"amqp.url": "amqp://localhost", **given}).queues == queues


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"queue": "a,b", "shards": "3"}, "'shards' is 3, and option 'queue' names 2"),
        ({"queue": "a", "shards": "2", "prefetch": "3"}, "'prefetch' does not go with 'shards'"),
        ({"queue": "a", "shards": "2", "ackMode": "commit"}, "is for ackMode=spool"),
        ({"queue": "a", "shardExchange": "x"}, "'shardExchange' is for 'shards'"),
        ({"queue": "a{3..1}"}, "a range such as"),
        ({"queue": "a1,a{0..1}"}, "all different"),
    ],
)
def test_what_does_not_go_together(given, text):
    with pytest.raises(OptionError, match=text):
        read_options({"amqp.url": "amqp://localhost", **given})
