"""Queues that tasks in executors read: segments, and batches that run again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pika
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import (
    MOMENTS,
    Died,
    Limit,
    ReadAllAvailable,
    publish,
    table,
    values,
)
from fakeamqp.spark.browse import BrowseReader
from fakeamqp.spark.errors import (
    AccessRefused,
    DataLoss,
    OptionError,
    QueueNotFound,
    QueueRefused,
    SpoolError,
)
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.shards import filling
from fakeamqp.spark.shards.folder import SharedFolder
from fakeamqp.spark.shards.query import Watch
from fakeamqp.spark.wire.exact import ExactConsumer

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


def test_batch_of_shards_takes_at_most_max_messages_from_queues(broker, sharded, caplog):
    publish(broker, *range(30))
    publish(broker, *range(30, 40), queue="refunds")
    job = sharded(maxMessagesPerTrigger=20).start()
    assert values(job.batch()) == [*range(15), *range(30, 35)]
    assert caplog.text == ""
    # No delivery returned to its queue: quorum queues would count that.
    assert not any(message.redelivered for message in broker.queue("orders").messages)
    assert sorted(values(job.all())) == list(range(40))


def test_all_messages_of_a_shard_may_be_more_than_a_window(broker, sharded, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.wire.exact._LARGEST_WINDOW", 7)
    monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", 5)
    publish(broker, *range(40))
    job = sharded(maxMessagesPerTrigger=3, idleTimeout="1min").start()
    consume, arrived = ExactConsumer._consume, []

    def note_and_consume(self):
        arrived.append(self.arrived)
        consume(self)

    monkeypatch.setattr(ExactConsumer, "_consume", note_and_consume)
    assert values(job.batch(limit=ReadAllAvailable())) == list(range(40))
    assert broker.queue("orders").messages == ()
    # One consumer after the other: several at once would mix up the order.
    assert arrived == [0, 7, 14, 21, 28, 35]


def test_available_now_of_shards_reads_only_messages_present_at_start_of_each_run(broker, sharded):
    publish(broker, *range(25))
    job = sharded(maxMessagesPerTrigger=10).start(available_now=True)
    seen = []
    while rows := job.batch():
        seen.append(len(rows))
        publish(broker, *range(100, 110))
    assert seen == [10, 10, 5]
    job.stop()
    job.start(available_now=True)
    assert len(to_the_end(job)) == 25 + 3 * 10


def test_old_pyspark_has_all_messages_in_first_batch_and_continues_after_last_batch(broker, sharded):
    publish(broker, *range(25))
    job = sharded(maxMessagesPerTrigger=10)
    job.modern = False
    assert len(job.start().batch()) == 25
    publish(broker, *range(15))
    assert [len(job.batch()) for _ in range(2)] == [10, 5]
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


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("available_now", [True, False])
def test_old_pyspark_reads_unfinished_batch_and_all_messages_behind_it(
    broker, sharded, moment, available_now
):
    publish(broker, *range(5))
    job = sharded(maxMessagesPerTrigger=10)
    job.modern = False
    job.start().batch()
    publish(broker, *range(5, 30))
    publish(broker, *range(30, 60), queue="refunds")
    with pytest.raises(Died):
        job.batch(die=moment)
    publish(broker, *range(60, 65))
    publish(broker, *range(65, 70), queue="refunds")
    job.start(available_now=available_now)
    assert sorted(values(job.all())) == list(range(70))


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


@pytest.mark.parametrize(("owner", "name"), [(filling.SegmentFiller, "_batch"), (SharedFolder, "_publish")])
def test_an_executor_that_dies_before_its_segment_is_complete_leaves_messages_in_the_queue(
    broker, sharded, dies_once, owner, name, tmp_path
):
    publish(broker, *range(10))
    job = sharded().start()
    dies_once(owner, name)
    assert values(tried_again(job)) == list(range(10))
    assert segments(tmp_path) == ["000000000000.arrow"]
    assert broker.queue("orders").messages == ()


@pytest.mark.parametrize(("dedupe", "times"), [("content", 1), ("message_id", 1), ("none", 2)])
def test_messages_of_executor_killed_before_ack_are_read_once_with_dedupe_else_twice(
    broker, sharded, dies_once, dedupe, times
):
    publish(broker, *range(10))
    job = sharded(dedupe=dedupe).start()
    dies_once(ExactConsumer, "acknowledge")
    assert values(tried_again(job)) == list(range(10))
    publish(broker, 10)
    assert sorted(values(job.all())) == sorted([*range(10)] * times + [10])
    assert broker.queue("orders").messages == ()
    metrics = job.reader.reportLatestOffset()["metrics"]
    assert (metrics["redelivered"], metrics["dropped"]) == (10, 10 if times == 1 else 0)


def test_different_messages_with_one_id_are_all_read_after_a_batch_read(broker, sharded):
    """A batch read marks all of them as redelivered."""
    for number in range(60):
        broker.publish(str(number), routing_key="orders", message_id=f"m{number % 3}")
    given = read_options({"amqp.url": broker.url, "queue": "orders"})
    browse = BrowseReader(given, chosen_columns(given))
    assert len(table(browse, browse.partitions())) == 60
    job = sharded(maxMessagesPerTrigger=20).start()
    assert values(job.all()) == list(range(60))
    metrics = job.reader.reportLatestOffset()["metrics"]
    assert (metrics["redelivered"], metrics["dropped"]) == (60, 0)


def test_a_lost_connection_is_opened_again(broker, sharded, monkeypatch):
    publish(broker, *range(10))
    job = sharded().start()
    consume, lost = ExactConsumer._consume, []

    def consume_and_lose(self):
        consume(self)
        if not lost:
            lost.append(True)
            for connection in broker.connections:
                connection.close(320, "gone")

    monkeypatch.setattr(ExactConsumer, "_consume", consume_and_lose)
    assert values(job.batch()) == list(range(10))
    assert job.batch() == []  # The driver connects again, too.


def test_the_first_commit_of_two_attempts_counts(broker, sharded, monkeypatch, tmp_path):
    """A task that the broker gave up, and that does not know it yet, comes too late with its segment."""
    publish(broker, *range(10))
    job = sharded(queue="orders", shards=1).start()
    [task] = planned(job)
    batch, others = filling.SegmentFiller._batch, []

    def wait_for_the_other(self, rows):
        if not others:
            others.append(None)
            [holder] = [each for each in broker.connections if each.channels and each.name != "driver"][-1:]
            holder.close(320, "given up")
            publish(broker, 77)
            others[0] = of(job, task)
        return batch(self, rows)

    monkeypatch.setattr(filling.SegmentFiller, "_batch", wait_for_the_other)
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


# --- what is no shard, and figures ------------------------------------------------------------------------


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
        consume = ExactConsumer._consume

        def consume_and_publish(self):
            consume(self)
            publish(broker, *range(3, 3 + count), queue="alone")

        monkeypatch.setattr(ExactConsumer, "_consume", consume_and_publish)
        with pytest.raises(OptionError, match="'alone' is a stream"):
            job.batch()


def test_shard_exchange_of_another_type_is_refused(broker, sharded):
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        connection.channel().exchange_declare("events", "topic", durable=True)
    with pytest.raises(QueueRefused, match=r"'events' as a durable x-consistent-hash exchange: .*'type'"):
        sharded(queue="events", shards=3, shardExchange="events").start()


def test_missing_or_unreadable_shard_fails_the_start_by_cause(broker, sharded):
    with pytest.raises(QueueNotFound, match="404 NOT_FOUND - no queue 'nowhere'"):
        sharded(queue="orders,nowhere").start()
    broker.admin.add_user("writer", "w", permissions={"/": (r"amqp\.lease\..*", ".*", "")})
    with pytest.raises(AccessRefused, match=r"403 ACCESS_REFUSED.* 'orders'"):
        sharded(**{"amqp.username": "writer", "amqp.password": "w"}).start()


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
        "lag": 17,
        "lagSeconds": found["lagSeconds"],
        "ready": 27,
        "consumers": 0,
        "redelivered": 0,
        "dropped": 0,
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
    monkeypatch.setattr("fakeamqp.spark.shards.query._BEATS", 0.01)
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


def test_sharded_spool_without_sync_calls_no_fsync(broker, sharded, monkeypatch):
    monkeypatch.delattr(os, "fsync")
    publish(broker, 1)
    assert values(sharded(queue="orders", shards=1, spoolSync="none").start().batch()) == [1]
