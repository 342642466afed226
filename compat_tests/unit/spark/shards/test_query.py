"""The driver's side of a query on shards: what it plans from a folder, and how it asks for depths."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.wire.played import Channel, Connection, refusal
from fakeamqp.protocols.amqp_0_9_1.codec.methods import ExchangeDeclare, QueueBind, QueueDeclare
from fakeamqp.spark.errors import ConnectionLost, DataLoss, OptionError, QueueNotFound, QueueRefused
from fakeamqp.spark.lag import FallingBehind
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.shards import query as queries
from fakeamqp.spark.shards.filling import KEPT
from fakeamqp.spark.shards.folder import Filled, SharedFolder, State
from fakeamqp.spark.shards.query import ShardQuery, Watch
from fakeamqp.spark.shards.reader import ShardStreamReader


class Depths:
    """What the driver sees of the queues."""

    def __init__(self, options, spool):
        self.spool, self.ready, self.closed = spool, dict.fromkeys(options.queues, 0), False
        self.consumers = 1
        made.append(self)

    def depths(self):
        return {
            shard: {"ready": count, "consumers": self.consumers}
            for shard, count in {**self.ready, **waiting}.items()
        }

    def close(self):
        self.closed = True


made: list[Depths] = []
waiting: dict[str, int] = {}


@pytest.fixture
def folder(tmp_path):
    found = SharedFolder(str(tmp_path / "spool"))
    found.state()
    return found


def options(folder, queues="a,b", **more):
    given = {"amqp.url": "amqp://h", "queue": queues, "shards": str(queues.count(",") + 1)}
    return read_options({**given, "spoolDir": folder.path, "maxMessagesPerTrigger": "10", **more})


@pytest.fixture
def query(folder, monkeypatch):
    """A function that makes the driver's side of a query on the shards a and b."""
    monkeypatch.setattr(queries, "Watch", Depths)
    made.clear()
    waiting.clear()

    def make(queues="a,b", available_now=False, **more):
        found = ShardQuery(options(folder, queues, **more))
        if available_now:
            found.limit_to_available()
        return found

    return make


def complete(folder, shard, number, *counts):
    folder.write(shard, number, pa.schema([]), [])
    folder.note(shard, number, Filled(*(counts or (1,))))


def at(folder, **numbers):
    """The offset at these numbers of segments."""
    return {"spool": folder.state().spool, "next": numbers}


def tasks(found):
    assert len({each.spool for each in found}) <= 1
    return [(each.shard, each.segments, each.most) for each in found]


def metrics(query):
    return query.progress()["metrics"]


# --- batches ----------------------------------------------------------------------------------------------


def test_a_batch_has_a_segment_of_each_shard_with_messages(query, folder):
    running = query()
    assert made[0].spool == folder.state().spool
    start = running.first()
    with cases() as case:
        for ready, most, expected, shares in [
            ({"a": 3, "b": 0}, 10, {"a": 1, "b": 0}, {"a": 3}),
            ({"a": 3, "b": 1}, None, {"a": 1, "b": 1}, {"a": 3, "b": 1}),
            ({"a": 30, "b": 10}, 22, {"a": 1, "b": 1}, {"a": 17, "b": 5}),
            ({"a": 0, "b": 0}, 10, {"a": 0, "b": 0}, {}),
        ]:
            with case(ready, most):
                made[0].ready = ready
                end = running.advance(start, most)
                assert end == running.last() == at(folder, **expected)
                found = running.plan(start, end)
                assert tasks(found) == [(shard, (0,), count) for shard, count in shares.items()]
    running.close()
    assert made[0].closed


def test_shards_without_a_new_segment_are_not_listed(query, folder, monkeypatch):
    running = query()
    monkeypatch.delattr(SharedFolder, "contents")
    start = at(folder, a=0, b=0)
    assert running.advance(start, 10) == start
    assert running.plan(start, start) == []
    assert metrics(running)["spoolBytes"] == 0


def test_complete_segments_of_spool_are_read_before_new_segments(query, folder):
    """A batch that runs again has the ones that it had, and the tasks fill those that are missing."""
    complete(folder, "a", 0)
    complete(folder, "a", 1)
    running = query()
    made[0].ready = {"a": 5, "b": 0}
    start, end = at(folder, a=0, b=0), at(folder, a=1, b=0)
    assert running.advance(start, 10) == end
    assert tasks(running.plan(start, end)) == [("a", (0,), 5)]
    assert metrics(running)["lag"] == 5
    assert running.advance(at(folder, a=2, b=0), 10) == at(folder, a=3, b=0)
    assert metrics(running)["lag"] == 0
    running = query()
    end = at(folder, a=3, b=1)
    assert tasks(running.plan(start, end)) == [("a", (0, 1, 2), 5), ("b", (0,), 5)]
    assert running.last() == end
    assert running.plan(end, end) == []


@pytest.mark.parametrize("fails", [True, False])
def test_missing_segments_raise_data_loss_or_are_skipped_with_warning(query, folder, caplog, fails):
    complete(folder, "a", 0)
    complete(folder, "a", 2)
    folder.note("a", 1, Filled(4))
    running = query(failOnDataLoss=str(fails))
    text = f"segments [1] of shard 'a' are gone from {folder.path}"
    start, end = at(folder, a=0, b=0), at(folder, a=4, b=0)
    if fails:
        with pytest.raises(DataLoss, match=r"segments \[1\] of shard 'a' are gone"):
            running.plan(start, end)
        assert tasks(running.plan(at(folder, a=2, b=0), end)) == [("a", (2, 3), 5)]
    else:
        assert tasks(running.plan(start, end)) == [("a", (0, 2, 3), 5)]
        assert f"{text}; continuing with the remaining messages (failOnDataLoss=false)" in caplog.text
        assert tasks(running.plan(at(folder, a=1, b=0), at(folder, a=2, b=0))) == []


@pytest.mark.parametrize("fails", [True, False])
def test_checkpoint_ahead_of_shared_spool_raises_data_loss_or_is_moved_back(query, folder, caplog, fails):
    complete(folder, "a", 0)
    spool = folder.state().spool
    other = f"the checkpoint belongs to spool other, and {folder.path} has spool"
    nothing = {"a": 0, "b": 0}
    with cases() as case:
        for offset, ahead, found, text in [
            (at(folder, a=1, b=0), 0, {"a": 1, "b": 0}, ""),
            (at(folder, a=1), 0, {"a": 1, "b": 0}, ""),
            (at(folder, a=2, b=1), 1, {"a": 2, "b": 1}, ""),
            (at(folder, a=2, b=0), 0, nothing, "continues at segment 2 of shard 'a', .* ends at 1"),
            (at(folder, a=1, b=2), 1, {"a": 1, "b": 0}, "continues at segment 2 of shard 'b', .* ends at 0"),
            (at(folder, c=0), 0, {"a": 0, "b": 0, "c": 0}, ""),
            ({"spool": "other", "next": {"a": 1}}, 0, nothing, other),
            ({"spool": spool}, 0, nothing, "the checkpoint belongs to spool"),
            ({}, 0, nothing, "the checkpoint belongs to spool None"),
        ]:
            with case(offset, ahead):
                caplog.clear()
                running = query(failOnDataLoss=str(fails))
                if text and fails:
                    with pytest.raises(DataLoss, match=text):
                        running._numbers(offset, ahead=ahead)
                else:
                    assert running._numbers(offset, ahead=ahead) == found
                    assert ("continuing with the remaining messages" in caplog.text) == bool(text)


def test_position_of_removed_shard_stays_in_checkpoint(query, folder, caplog):
    complete(folder, "c", 4)
    folder.save(State(folder.state().spool, {"a": 1, "c": 3}))
    running = query()
    assert running.first() == running.last() == at(folder, a=1, b=0)
    assert caplog.text == ""
    end = at(folder, a=1, b=0, c=5)
    assert tasks(running.plan(at(folder, a=1, b=0, c=4), end)) == [("c", (4,), 4)]
    assert "shard 'c' is no longer read; its place stays in the checkpoint" in caplog.text
    running.commit(at(folder, a=1, b=0, c=4))
    assert folder.state().committed == {"a": 1, "b": 0, "c": 4}
    before = sorted(Path(folder.path).iterdir())
    running.commit(at(folder, a=1, b=0, c=4))
    assert sorted(Path(folder.path).iterdir()) == before


def test_committed_segments_go_when_their_messages_cannot_come_again_and_are_not_filled_again(query, folder):
    for number in range(10):
        complete(folder, "a", number)
    leftover = Path(folder.path, "a", f"{9:012d}.arrow.x.tmp")
    leftover.touch()
    running = query(queues="a")
    assert not leftover.exists()
    running.commit(at(folder, a=9))
    there = folder.contents("a")
    assert sorted(there.sizes) == sorted(there.filled) == list(range(9 - KEPT, 10))
    with pytest.raises(DataLoss, match=r"segments \[0\] of shard 'a' are gone"):
        running.plan(at(folder, a=0), at(folder, a=1))


def test_available_now_takes_no_more_than_there_was(query, folder):
    with cases() as case:
        for taken, others, left in [
            ((3, 2), 9, {"a": 2, "b": 2}),
            ((5, 2), 9, {"b": 2}),
            ((9, None), 9, {"b": 4}),
            ((0, 2), 9, {"b": 2}),
            ((None, None), 9, {}),
            ((1, 1), 1, {"a": 1, "b": 1}),
        ]:
            with case(taken, others):
                for path in sorted(Path(folder.path).rglob("*"), reverse=True):
                    path.unlink() if path.is_file() else path.rmdir()
                waiting.update(a=5, b=4)
                running = query(available_now=True)
                start = running.first()
                end = running.advance(start, None)
                assert end["next"] == {"a": 1, "b": 1}
                running.plan(start, end)
                for shard, count in zip("ab", taken, strict=True):
                    if count is not None:
                        complete(folder, shard, 0, count, count and 1)
                waiting.update(a=others, b=others)
                running.plan(start, end)  # For another action on the batch.
                assert metrics(running)["redelivered"] == sum(1 for count in taken if count)
                last = running.advance(end, None)
                assert {task.shard: task.most for task in running.plan(end, last)} == left
                assert metrics(running)["redelivered"] == sum(1 for count in taken if count)
                assert running.advance(last, None) == last  # No task ran.


def test_available_now_ignores_segments_of_a_shard_that_the_query_no_longer_reads(query, folder):
    folder.save(State(folder.state().spool, {"c": 3}))
    waiting.update(a=5, b=0)
    running = query(available_now=True)
    start, end = at(folder, a=0, b=0, c=3), at(folder, a=0, b=0, c=4)
    assert tasks(running.plan(start, end)) == [("c", (3,), 4)]
    complete(folder, "c", 3, 2)
    assert running.advance(end, None) == at(folder, a=1, b=0, c=4)


@pytest.mark.parametrize("available_now", [True, False])
def test_failed_start_closes_the_connection_and_is_tried_again(query, folder, monkeypatch, available_now):
    given = options(folder)
    reader = ShardStreamReader(given, chosen_columns(given))
    if available_now:
        reader.prepareForTriggerAvailableNow()
    with monkeypatch.context() as patched:
        patched.setattr(queries, "FallingBehind", lambda *_: [][0])
        with pytest.raises(IndexError):
            reader.initialOffset()
    assert made[0].closed
    assert reader.initialOffset() == at(folder, a=0, b=0)
    assert not made[1].closed
    assert (reader._running._available is not None) == available_now


# --- figures ----------------------------------------------------------------------------------------------


def test_metrics_count_redelivered_and_dropped_messages_of_this_run_and_bytes_of_spool(query, folder):
    def figures():
        found = metrics(running)
        return [found[name] for name in ("redelivered", "dropped", "spoolBytes", "ready", "lag")]

    complete(folder, "a", 0, 5, 5, 5)
    running = query()
    size = folder.contents("a").sizes[0]
    made[0].ready = {"a": 7, "b": 0}
    start = at(folder, a=1, b=0)
    end = running.advance(start, 4)
    running.plan(start, end)
    assert figures() == [0, 0, size, 7, 3]
    complete(folder, "a", 1, 4, 2, 1)
    assert figures() == figures() == [2, 1, 2 * size, 7, 3]
    start, end = end, running.advance(end, 4)
    running.plan(start, end)
    complete(folder, "a", 2, 3, 2, 2)
    assert figures() == [4, 3, 3 * size, 7, 3]
    running.advance(end, 4)
    assert figures() == [4, 3, 3 * size, 7, 3]


def test_lag_of_shards_is_what_the_last_batch_left(query, folder, monkeypatch):
    looks, now = [], [1000.0]
    monkeypatch.setattr(FallingBehind, "_compare", lambda _, *given: looks.append(given))
    running = query()
    for place in running._shards.values():
        place.clock._now = lambda: now[0]
    made[0].ready, made[0].consumers = {"a": 10, "b": 3}, 2
    start = running.advance(running.first(), 9)
    assert running._most == {"a": 7, "b": 2}
    metrics(running)
    now[0] += 7
    assert running.progress() == {
        "offset": at(folder, a=1, b=1),
        "metrics": {
            "lag": 4,
            "lagSeconds": 7.0,
            "ready": 13,
            "consumers": 4,
            "redelivered": 0,
            "dropped": 0,
            "spoolBytes": 0,
            "queues": {"a": {"ready": 10, "consumers": 2}, "b": {"ready": 3, "consumers": 2}},
        },
    }
    made[0].ready = {"a": 9, "b": 0}
    running.advance(start, 2)
    found = metrics(running)
    assert (found["lag"], found["lagSeconds"]) == (7, 7.0)  # Of row 9, which was seen with the first ones.
    assert looks == [(4, 0.0), (4, 7.0), (7, 7.0)]
    behind = running._behind
    assert (behind._what, behind._most) == ("shards a, b", 10)
    assert "More shards with as many processors" in behind._advice


# --- the connection ---------------------------------------------------------------------------------------


@pytest.fixture
def connection():
    return Connection()


@pytest.fixture
def watch(connection, monkeypatch, folder):
    """A function that makes the watch of the shards a and b, without its thread."""
    leases = []
    streams, missing = set(), set()

    def check(_, name):
        connection.calls.append(("stream?", name))
        if name in streams:
            raise OptionError(f"{name!r} is a stream")
        if name in missing:
            raise QueueNotFound(f"no queue {name!r}")

    monkeypatch.setattr(queries, "take_lease", lambda _, *given: leases.append(given))
    monkeypatch.setattr(queries, "check_is_no_stream", check)

    def make(**more):
        found = Watch(options(folder, **more), "s")
        found.leases, found.streams, found.missing = leases, streams, missing
        leases.clear()
        return found

    return make


def test_the_driver_has_the_lease_before_it_looks_at_its_shards(connection, watch):
    with cases() as case:
        for more, heartbeat, patience in [
            ({}, 5, 20),
            ({"amqp.heartbeat": "2"}, 2, 20),
            ({"amqp.heartbeat": "30"}, 30, 120),
            ({"amqp.heartbeat": "0"}, 0, 20),
        ]:
            with case(more):
                found = watch(**more)
                connection.calls.clear()
                for _ in range(2):
                    found._prepare(connection)
                assert found.leases == [("amqp.lease.s", patience)] * 2
                assert found._options.connection.heartbeat == heartbeat
                assert connection.calls == [("stream?", "a"), ("stream?", "b")]  # Once.
                assert found._channel is connection.channels[-1]
    found = watch()
    found.streams.add("b")
    with pytest.raises(OptionError, match="'b' is a stream"):
        found._prepare(connection)
    assert found._attended._thread.name == "watch of shards"


def test_depths_of_shards_are_asked_on_one_channel_and_a_missing_shard_is_queue_not_found(connection, watch):
    found = watch()
    found._prepare(connection)
    connection.calls.clear()
    connection.ready = [4, 7]
    assert found._ask(connection) == {
        "a": {"ready": 4, "consumers": 1},
        "b": {"ready": 7, "consumers": 1},
    }
    assert connection.calls == [(1, "count", "a"), (1, "count", "b")]
    connection.ready = [refusal(404, "NOT_FOUND - no queue 'a'")]
    with pytest.raises(QueueNotFound, match=r"cannot count the messages of the shards: .* no queue 'a'"):
        found._ask(connection)


def test_shards_of_an_exchange_are_declared_and_bound(connection, watch, monkeypatch):
    """With equal weights; a shard that is there stays as it is."""
    refusals = {}

    def call(self, method, meanwhile=None):
        connection.calls.append(method)
        if method.NAME in refusals:
            raise refusals[method.NAME]

    monkeypatch.setattr(Channel, "call", call)
    found = watch(shardExchange="orders")
    found.missing.add("a")
    found._prepare(connection)
    exchange = ExchangeDeclare(exchange="orders", type="x-consistent-hash", durable=True)
    assert connection.calls == [
        exchange,
        ("stream?", "a"),
        QueueDeclare(queue="a", durable=True),
        QueueBind(queue="a", exchange="orders", routing_key="1"),
        ("stream?", "b"),
        QueueBind(queue="b", exchange="orders", routing_key="1"),
    ]
    text = "cannot bind shards to 'orders' as a durable x-consistent-hash exchange: .*403 ACCESS_REFUSED"
    for method in ("exchange.declare", "queue.declare", "queue.bind"):
        refusals = {method: refusal(403, "ACCESS_REFUSED")}
        with pytest.raises(QueueRefused, match=text):
            watch(shardExchange="orders")._prepare(connection)
    refusals = {"queue.bind": ConnectionLost("maintenance")}
    with pytest.raises(ConnectionLost, match="maintenance"):
        watch(shardExchange="orders")._prepare(connection)
    with pytest.raises(QueueNotFound, match="'a'"):
        watch()._prepare(connection)
