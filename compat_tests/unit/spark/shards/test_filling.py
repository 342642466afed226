"""Segments of shards: taken from a connection that the test plays, and planned from a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.links import Attempts
from fakeamqp.spark import retries
from fakeamqp.spark.columns import arrow_schema, chosen_columns
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, DataLoss, OptionError
from fakeamqp.spark.lease import LeaseTaken
from fakeamqp.spark.options import read_options
from fakeamqp.spark.records import record_batch
from fakeamqp.spark.shards import filling, reader as readers, watch as watching
from fakeamqp.spark.shards.filling import SegmentFiller, fill, stored_columns
from fakeamqp.spark.shards.folder import SharedFolder, State
from fakeamqp.spark.shards.reader import ShardPartition, _Running


def options(folder, **more):
    given = {
        "amqp.url": "amqp://h",
        "queue": "q",
        "shards": "1",
        "spoolDir": str(folder),
        "idleTimeout": "2s",
    }
    return read_options({**given, "reconnectTimeout": "60s", **more})


@pytest.fixture
def link(monkeypatch):
    link = Attempts()
    leases = []
    monkeypatch.setattr(filling, "time", link)
    monkeypatch.setattr(retries, "time", link)
    monkeypatch.setattr(filling, "Link", link)
    monkeypatch.setattr(filling, "take_lease", lambda *given: leases.append(given[1:]))
    monkeypatch.setattr(filling, "is_stream", lambda _, name: link.calls.append(("stream?", name)))
    link.leases = leases
    return link


@pytest.fixture
def folder(tmp_path):
    found = SharedFolder(str(tmp_path / "spool"))
    found.make()
    return found


def run(link, folder, most=10, number=3, **more):
    given = options(Path(folder.path), columns="value,offset,redelivered", **more)
    columns = chosen_columns(given)
    SegmentFiller(link, given, folder, "q", number, most, columns).run()
    return [row for batch in folder.read("q", number) for row in batch.to_pylist()]


def values(rows):
    return [row["value"] for row in rows]


# --- a segment --------------------------------------------------------------------------------------------


def test_a_segment_has_at_most_so_many_messages(link, folder):
    link.turns = [lambda: link.deliver(b"a"), lambda: link.deliver(b"b", redelivered=True)]
    rows = run(link, folder, most=2)
    first = 3 * filling.ROWS
    assert [(row["value"], row["offset"], row["redelivered"]) for row in rows] == [
        (b"a", first, False),
        (b"b", first + 1, True),
    ]
    assert link.calls == [
        (1, "basic_qos", 2),
        (1, "consume", "q"),
        (1, "basic_cancel", "q 1"),
        (1, "basic_ack", 2, "multiple"),
        (1, "basic_qos", 1),
    ]
    assert link.pauses == [0.02, 0.02]
    assert folder.contents("q").filled == {3: (2, 1)}


def test_a_segment_ends_when_the_queue_is_empty(link, folder):
    link.turns = [lambda: link.deliver(b"a")]
    assert values(run(link, folder)) == [b"a"]
    assert [call[1] for call in link.calls].count("queue_declare") == 2
    assert folder.contents("q").filled == {3: (1, 0)}


def test_ready_messages_are_waited_for_while_they_may_come(link, folder, caplog):
    """For the idle timeout since the last one."""
    link.ready = [4]
    link.turns = [lambda: link.deliver(b"a"), *[None] * 60, lambda: link.deliver(b"b")]
    assert values(run(link, folder)) == [b"a", b"b"]
    assert link.now == pytest.approx(1000 + 60 * 0.02 + 2.0, abs=0.03)
    assert ("stream?", "q") in link.calls
    assert caplog.text == ""


def test_ready_messages_not_delivered_by_broker_are_logged(link, folder, caplog):
    link.ready = [4]
    assert run(link, folder) == []
    assert link.now == pytest.approx(1002.0, abs=0.03)
    assert "queue 'q' has 4 ready messages, and the broker delivers none: another consumer" in caplog.text
    assert folder.contents("q").filled == {3: (0, 0)}
    assert not [call for call in link.calls if call[1] == "basic_ack"]


def test_segment_continues_if_message_arrives_during_count(link, folder):
    link.ready = [0, lambda: (link.deliver(b"a"), 0)[1], 0]
    assert values(run(link, folder)) == [b"a"]


def test_large_segments_are_written_in_parts(link, folder, monkeypatch):
    monkeypatch.setattr(filling, "_LARGEST_WINDOW", 3)
    with cases() as case:
        for number, (rows, octets, expected) in enumerate(
            [(2, 999, [2, 2, 2]), (99, 6, [2, 2, 2]), (99, 7, [3, 3]), (99, 999, [6])]
        ):
            with case(rows, octets):
                link.calls.clear()
                link.channels.clear()
                monkeypatch.setattr(filling, "_BATCH_ROWS", rows)
                monkeypatch.setattr(filling, "_BATCH_OCTETS", octets)
                link.turns = [lambda body=body: link.deliver(body) for body in map(str.encode, "012345")]
                run(link, folder, most=6, number=number)
                assert [batch.num_rows for batch in folder.read("q", number)] == expected
                assert [call for call in link.calls if call[1] in ("basic_qos", "basic_ack")] == [
                    (1, "basic_qos", 3),
                    (2, "basic_qos", 3),
                    (1, "basic_ack", 3, "multiple"),
                    (1, "basic_qos", 1),
                    (2, "basic_ack", 3, "multiple"),
                    (2, "basic_qos", 1),
                ]


def test_segment_completed_by_another_task_returns_messages_to_queue(link, folder, caplog):
    def complete():
        link.deliver(b"mine")
        other = folder.new("q", 3, arrow_schema(chosen_columns(options(Path(folder.path)))))
        assert other.commit()

    link.turns = [complete]
    assert run(link, folder, most=1) == []
    assert "another task has completed segment 3 of 'q': 1 messages return to the queue" in caplog.text
    assert not [call for call in link.calls if call[1] == "basic_ack"]
    assert folder.contents("q").filled == {}
    assert folder.contents("q").temporaries == {}


def test_messages_of_the_last_segments_are_left_out(link, folder):
    """Of those whose acknowledgements may not have arrived."""
    given = options(Path(folder.path))
    columns = stored_columns(given, chosen_columns(given))
    for number, message_id in ((1, "old"), (2, "early"), (9, "last"), (10, "own"), (11, "later")):
        segment = folder.new("q", number, arrow_schema(columns))
        link.channel()
        taken = []
        link.channels[-1].receive = lambda *message, taken=taken: taken.append(message)
        link.deliver(b"x", b"y", properties={"message_id": message_id})
        messages = [filling.DeliveredRow(*message, "q", 0, 0) for message in taken]
        segment.write(record_batch(messages, columns))
        segment.commit()
    (Path(folder.path) / "q" / f"{10:012d}.arrow").unlink()
    other = folder.new("q", 8, arrow_schema(()))  # Of a query without ids.
    other.write(record_batch(messages, ()))
    other.commit()

    def again(**more):
        link.turns = [
            lambda each=each: link.deliver(each.encode(), properties={"message_id": each}, redelivered=True)
            for each in ("old", "early", "last", "own", "later", "")
        ]
        link.turns.append(lambda: link.deliver(b"first", properties={"message_id": "early"}))
        found = values(run(link, folder, number=10, most=7, **more))
        (Path(folder.path) / "q" / f"{10:012d}.arrow").unlink()
        return found

    assert again() == [b"old", b"own", b"later", b"", b"first"]
    assert folder.contents("q").filled[10] == (7, 6)
    assert again(dedupe="none") == [b"old", b"early", b"last", b"own", b"later", b"", b"first"]


def test_a_queue_that_becomes_a_stream_is_no_shard(link, folder, monkeypatch):
    monkeypatch.setattr(filling, "is_stream", lambda *_: True)
    offset = {"headers": {"x-stream-offset": 3}}
    link.turns = [lambda: link.deliver(b"a", properties=offset)]
    with pytest.raises(OptionError, match="shard 'q' is a stream: set option 'superStream' or 'stream'"):
        run(link, folder)
    link.ready = [5]
    with pytest.raises(OptionError, match="shard 'q' is a stream"):
        run(link, folder)
    assert folder.contents("q").temporaries == {}
    monkeypatch.setattr(filling, "is_stream", lambda *_: False)
    link.ready, link.turns = [0], [lambda: link.deliver(b"a", properties=offset)]
    assert values(run(link, folder)) == [b"a"]  # An app has copied the header.


def test_missing_or_deleted_shard_queue_raises_connection_lost(link, folder):
    link.refuses = {"q": "404 NOT_FOUND"}
    with pytest.raises(ConnectionLost, match="cannot consume from queue 'q': 404 NOT_FOUND"):
        run(link, folder)
    link.refuses = {}
    link.turns = [lambda: link.channels[-1].cancelled(None)]
    with pytest.raises(ConnectionLost, match="queue 'q' was deleted during the read"):
        run(link, folder)
    link.lost = "maintenance"
    link.channels[-1].cancelled(None)
    assert link.lost == "maintenance"


def test_segment_columns_are_chosen_columns_and_message_id_for_dedupe(tmp_path):
    for more, expected in [
        ({"columns": "value"}, ["value", "message_id"]),
        ({"columns": "message_id,value"}, ["message_id", "value"]),
        ({"columns": "value", "dedupe": "none"}, ["value"]),
    ]:
        given = options(tmp_path, **more)
        assert [each.name for each in stored_columns(given, chosen_columns(given))] == expected


# --- attempts ---------------------------------------------------------------------------------------------


def filled(folder, most=1, number=3, **more):
    given = options(Path(folder.path), **more)
    return fill(given, folder, "s", "q", number, most, chosen_columns(given))


def sleeps(link):
    return [call[1] for call in link.calls if call[0] == "sleep"]


def test_a_task_tries_again_until_its_segment_is_complete(link, folder, caplog):
    def lose():
        link.lost = "maintenance"

    gone = BrokerUnreachable("no route")
    link.attempts = [gone, [lose], [lambda: link.deliver(b"a")]]
    assert filled(folder) is True
    assert sleeps(link) == [0.05, 0.1]
    assert "no route; connecting again" in caplog.text
    assert "maintenance; connecting again" in caplog.text
    assert link.leases == [("amqp.lease.s.q", 60.0)] * 2
    assert link.calls[-1] == (0, "closed")
    link.attempts = []
    assert filled(folder) is True
    link.attempts = [gone] * 99
    with pytest.raises(BrokerUnreachable, match=r"no route \(tried again for 60.0 s\)"):
        filled(folder, number=4)


def test_lease_held_by_another_connection_fails_task_without_retry(link, folder, monkeypatch):
    def take(*_):
        raise LeaseTaken("held by another connection")

    monkeypatch.setattr(filling, "take_lease", take)
    link.attempts = [[]]
    with pytest.raises(LeaseTaken):
        filled(folder)
    assert sleeps(link) == []


def test_complete_segment_is_kept_when_connection_is_lost_before_ack(link, folder, caplog, monkeypatch):
    def acknowledge(_self):
        raise ConnectionLost("maintenance")

    monkeypatch.setattr(SegmentFiller, "_acknowledge", acknowledge)
    link.attempts = [[lambda: link.deliver(b"a")]]
    assert filled(folder) is True
    assert "maintenance; segment 3 of 'q' is complete, and may be redelivered" in caplog.text
    assert sleeps(link) == []


def test_a_segment_of_the_holder_before_is_not_filled_again(link, folder, monkeypatch):
    given = options(Path(folder.path))

    def take(*_):
        columns = stored_columns(given, chosen_columns(given))
        segment = folder.new("q", 3, arrow_schema(columns))
        segment.write(
            record_batch(
                [filling.DeliveredRow(1, False, b"\x00\x01q", bytes(2), b"a", "q", 0, 0)] * 2, columns
            )
        )
        segment.commit()

    monkeypatch.setattr(filling, "take_lease", take)
    link.attempts = [[]]
    assert filled(folder) is True
    assert [call for call in link.calls if call[0] == 1] == []
    assert folder.contents("q").filled == {3: (2, 0)}  # It was not noted.


@pytest.mark.parametrize("fails", [True, False])
def test_missing_segment_noted_as_complete_raises_data_loss_or_is_skipped(link, folder, caplog, fails):
    folder._make(folder._shard("q"))
    folder.note("q", 3, 5, 0)
    text = f"segment 3 of shard 'q' was complete, and is gone from {folder.path}"
    if fails:
        with pytest.raises(DataLoss, match=f"{text}; set failOnDataLoss=false"):
            filled(folder)
    else:
        assert filled(folder, failOnDataLoss="false") is False
        assert f"{text}; continuing without its messages" in caplog.text


# --- the driver -------------------------------------------------------------------------------------------


class Depths:
    """What the driver sees of the queues."""

    def __init__(self, _options, spool):
        self.spool, self.ready, self.closed = spool, dict(READY), False

    def depths(self):
        return {shard: {"ready": count, "consumers": 1} for shard, count in self.ready.items()}

    def close(self):
        self.closed = True


READY: dict[str, int] = {}


@pytest.fixture
def running(folder, monkeypatch):
    """A function that makes the driver's side of a query on the shards a and b."""
    monkeypatch.setattr(watching, "Watch", Depths)
    folder.state()

    def make(queues="a,b", **more):
        READY.clear()
        READY.update(dict.fromkeys(queues.split(","), 0))
        return _Running(
            options(
                Path(folder.path), queue=queues, shards=str(len(READY)), maxMessagesPerTrigger="10", **more
            )
        )

    return make


def complete(folder, shard, number, taken=1, redelivered=0):
    folder.new(shard, number, arrow_schema(())).commit()
    folder.note(shard, number, taken, redelivered)


def tasks(found):
    assert len({each.spool for each in found}) <= 1
    return [(each.shard, each.segments, each.most) for each in found]


def test_a_batch_has_a_segment_of_each_shard_with_messages(running, folder):
    life = running()
    watch = life._watch
    assert watch.spool == life._state.spool
    with cases() as case:
        begin = life.committed
        for ready, most, expected, shares in [
            ({"a": 3, "b": 0}, 10, {"a": 1, "b": 0}, {"a": 3}),
            ({"a": 3, "b": 1}, None, {"a": 1, "b": 1}, {"a": 3, "b": 1}),
            ({"a": 30, "b": 10}, 22, {"a": 1, "b": 1}, {"a": 16, "b": 5}),
            ({"a": 0, "b": 0}, 10, {"a": 0, "b": 0}, {}),
        ]:
            with case(ready, most):
                watch.ready = ready
                assert life.advance(begin, most) == expected
                found = life.plan(begin, dict(expected))
                assert tasks(found) == [(shard, (0,), count) for shard, count in shares.items()]
    assert life.offset({"a": 1}) == {"spool": life._state.spool, "next": {"a": 1}}
    life.close()
    assert watch.closed


def test_shards_without_a_new_segment_are_not_listed(running, monkeypatch):
    life = running()
    monkeypatch.delattr(SharedFolder, "contents")
    assert life.advance({"a": 0, "b": 0}, 10) == {"a": 0, "b": 0}
    assert life.plan({"a": 0, "b": 0}, {"a": 0, "b": 0}) == []
    assert life.metrics()["spoolBytes"] == 0


def test_complete_segments_of_spool_are_read_before_new_segments(running, folder):
    """A batch that runs again has the ones that it had, and the tasks fill those that are missing."""
    complete(folder, "a", 0)
    complete(folder, "a", 1)
    life = running()
    life._watch.ready = {"a": 5, "b": 0}
    assert life.advance({"a": 0, "b": 0}, 10) == {"a": 1, "b": 0}
    assert tasks(life.plan({"a": 0, "b": 0}, {"a": 1, "b": 0})) == [("a", (0,), 5)]
    assert life._metrics._last == {"a": 0, "b": 0}
    assert life.advance({"a": 2, "b": 0}, 10) == {"a": 3, "b": 0}
    assert life._metrics._last == {"a": 5, "b": 0}
    life._most = {}
    assert tasks(life.plan({"a": 0, "b": 0}, {"a": 3, "b": 1})) == [("a", (0, 1, 2), 5), ("b", (0,), 5)]
    assert life._reached == {"a": 3, "b": 1}
    assert life.end == {"a": 3, "b": 1}


@pytest.mark.parametrize("fails", [True, False])
def test_missing_segments_raise_data_loss_or_are_skipped_with_warning(running, folder, caplog, fails):
    complete(folder, "a", 0)
    complete(folder, "a", 2)
    folder.note("a", 1, 4, 0)
    life = running(failOnDataLoss=str(fails))
    text = f"segments [1] of shard 'a' are gone from {folder.path}"
    begin = {"a": 0, "b": 0}
    if fails:
        with pytest.raises(DataLoss, match=r"segments \[1\] of shard 'a' are gone"):
            life.plan(begin, {"a": 4, "b": 0})
        assert tasks(life.plan({"a": 2, "b": 0}, {"a": 4, "b": 0})) == [("a", (2, 3), 5)]
    else:
        assert tasks(life.plan(begin, {"a": 4, "b": 0})) == [("a", (0, 2, 3), 5)]
        assert f"{text}; bring" not in caplog.text
        assert f"{text}; continuing with the remaining messages (failOnDataLoss=false)" in caplog.text
        assert tasks(life.plan({"a": 1, "b": 0}, {"a": 2, "b": 0})) == []


@pytest.mark.parametrize("fails", [True, False])
def test_checkpoint_ahead_of_shared_spool_raises_data_loss_or_is_moved_back(running, folder, caplog, fails):
    complete(folder, "a", 0)
    life = running(failOnDataLoss=str(fails))
    spool = life._state.spool
    with cases() as case:
        for offset, ahead, found, text in [
            ({"a": 1, "b": 0}, 0, {"a": 1, "b": 0}, ""),
            ({"a": 1}, 0, {"a": 1, "b": 0}, ""),
            ({"a": 2, "b": 1}, 1, {"a": 2, "b": 1}, ""),
            ({"a": 2, "b": 0}, 0, {"a": 0, "b": 0}, "continues at segment 2 of shard 'a', .* ends at 1"),
            ({"a": 1, "b": 2}, 1, {"a": 1, "b": 0}, "continues at segment 2 of shard 'b', .* ends at 0"),
            ({"c": 0}, 0, {"a": 0, "b": 0, "c": 0}, ""),
        ]:
            with case(offset, ahead):
                caplog.clear()
                given = {"spool": spool, "next": offset}
                if text and fails:
                    with pytest.raises(DataLoss, match=text):
                        life.position(given, ahead=ahead)
                else:
                    assert life.position(given, ahead=ahead) == found
                    assert ("continues at segment" in caplog.text) == bool(text)
        for given in ({"spool": "other", "next": {}}, {"spool": spool}, {}):
            with case(given):
                caplog.clear()
                text = f"the checkpoint belongs to spool {given.get('spool')}, and {folder.path} has spool"
                if fails:
                    with pytest.raises(DataLoss, match=text):
                        life.position(given)
                else:
                    assert life.position(given) == {"a": 0, "b": 0, "c": 0}
                    assert text in caplog.text


def test_position_of_removed_shard_stays_in_checkpoint(running, folder, caplog):
    complete(folder, "c", 4)
    folder.save(State(folder.state().spool, {"a": 1, "c": 3}))
    life = running()
    assert (life.committed, life.begin, life.end) == ({"a": 1, "b": 0},) * 3
    assert caplog.text == ""
    assert life.position({"spool": life._state.spool, "next": {"a": 1, "c": 3}}) == {"a": 1, "b": 0, "c": 3}
    assert "shard 'c' is no longer read; its place stays in the checkpoint" in caplog.text
    assert (life._found["c"], life._reached) == (5, {"a": 1, "b": 0, "c": 5})
    life.commit({"a": 2, "b": 0, "c": 3})
    assert folder.state().committed == {"a": 2, "b": 0, "c": 3}
    before = sorted(Path(folder.path).iterdir())
    life.commit({"a": 1, "b": 0, "c": 3})
    assert sorted(Path(folder.path).iterdir()) == before


def test_committed_segments_go_when_their_messages_cannot_come_again_and_are_not_filled_again(
    running, folder
):
    for number in range(10):
        complete(folder, "a", number)
    leftover = folder.create(folder.temporary(folder._segment("a", 9)))
    leftover.close()
    life = running(queues="a")
    assert folder.contents("a").temporaries == {}
    life.commit({"a": 9})
    assert sorted(folder.contents("a").sizes) == list(range(9 - filling.KEPT, 10))
    assert sorted(life._contents["a"].filled) == list(range(9 - filling.KEPT, 10))
    with pytest.raises(DataLoss, match=r"segments \[0\] of shard 'a' are gone"):
        life.plan({"a": 0}, {"a": 1})


def test_available_now_takes_no_more_than_there_was(running, folder):
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
                life = running()
                life._watch.ready = {"a": 5, "b": 4}
                life.prepare_available_now()
                assert life.advance({"a": 0, "b": 0}, None) == {"a": 1, "b": 1}
                for shard, count in zip("ab", taken, strict=True):
                    if count is not None:
                        complete(folder, shard, 0, count, redelivered=count and 1)
                life._watch.ready = {"a": others, "b": others}
                life.advance({"a": 1, "b": 1}, None)
                assert life._most == left
                assert life._metrics.redelivered == sum(1 for count in taken if count)


def test_shard_metrics_count_spool_bytes_and_redelivered_messages(running, folder):
    complete(folder, "a", 0, 5, 5)
    life = running()
    life._watch.ready = {"a": 7, "b": 0}
    life.advance({"a": 1, "b": 0}, 4)
    complete(folder, "a", 1, 4, 2)
    size = sum(life._folder.contents("a").sizes.values())
    found = life.metrics()
    assert (found["redelivered"], found["spoolBytes"], found["ready"], found["lag"]) == (2, size, 7, 3)
    life.advance({"a": 2, "b": 0}, 4)
    assert life.metrics()["redelivered"] == 2


def test_a_partition_of_a_shard_reads_all_of_its_segments_but_one_that_is_gone(link, folder, monkeypatch):
    given = options(Path(folder.path), columns="value", failOnDataLoss="false")
    complete(folder, "q", 1)
    Path(folder.path, "q", f"{1:012d}.arrow").unlink()
    reader = readers.ShardStreamReader(given, chosen_columns(given))
    spool = folder.state().spool
    link.attempts = [[lambda: link.deliver(b"a", b"b")], [lambda: link.deliver(b"c")]]
    found = list(reader.read(ShardPartition(spool, "q", (0, 1, 2), 2)))
    assert [row["value"] for batch in found for row in batch.to_pylist()] == [b"a", b"b", b"c"]
    assert found[0].schema.names == ["value"]


# --- the connection of the driver -------------------------------------------------------------------------


@pytest.fixture
def watch(link, monkeypatch, tmp_path):
    """A function that makes the watch of the shards a and b, without its thread."""
    leases = []
    streams = set()
    monkeypatch.setattr(watching, "take_lease", lambda _, *given: leases.append(given))
    monkeypatch.setattr(
        watching, "is_stream", lambda _, name: link.calls.append(("stream?", name)) or name in streams
    )

    def make(**more):
        found = watching.Watch(options(tmp_path, queue="a,b", shards="2", **more), "s")
        found.leases, found.streams = leases, streams
        leases.clear()
        return found

    return make


def test_the_driver_has_the_lease_before_it_looks_at_its_shards(link, watch):
    with cases() as case:
        for more, heartbeat, patience in [
            ({}, 5, 20),
            ({"amqp.heartbeat": "2"}, 2, 20),
            ({"amqp.heartbeat": "30"}, 30, 120),
            ({"amqp.heartbeat": "0"}, 0, 20),
        ]:
            with case(more):
                found = watch(**more)
                link.calls.clear()
                for _ in range(2):
                    found._prepare(link)
                assert found.leases == [("amqp.lease.s", patience)] * 2
                assert found._options.connection.heartbeat == heartbeat
                assert link.calls == [("stream?", "a"), ("stream?", "b")]  # Once.
                assert found._channel is link.channels[-1]
    found = watch()
    found.streams.add("b")
    with pytest.raises(OptionError, match="shard 'b' is a stream: set option 'superStream' or 'stream'"):
        found._prepare(link)
    assert found._attended._thread.name == "watch of shards"


def test_all_shards_are_asked_before_the_first_answer(link, watch):
    found = watch(**{"amqp.connectionTimeout": "5s"})
    found._prepare(link)
    link.calls.clear()
    link.ready = [4, 7]
    assert found._ask(link) == {"a": {"ready": 4, "consumers": 1}, "b": {"ready": 7, "consumers": 1}}
    assert [call[1:] for call in link.calls] == [("queue_declare", name, "passive") for name in "ab"]
    link.channels[-1].queue_declare = lambda *_, **__: None
    with pytest.raises(ConnectionLost, match="the broker did not answer queue_declare within 5 s"):
        found._ask(link)


def test_shards_of_an_exchange_are_declared_and_bound(link, watch, monkeypatch):
    """With equal weights; a shard that is there stays as it is."""
    open_channel = link.channel
    missing = ["a"]

    def channel():
        found = open_channel()

        def note(name):
            def method(*given, callback, **more):
                link.calls.append((found.channel_number, name, *given, more))
                if name == "queue_declare" and given[0] in missing and more.get("passive"):
                    link.lost = "404 NOT_FOUND"
                    raise ConnectionLost(link.lost)
                callback(None)

            return method

        for name in ("exchange_declare", "queue_declare", "queue_bind"):
            setattr(found, name, note(name))
        return found

    monkeypatch.setattr(link, "channel", channel)
    found = watch(shardExchange="orders")
    found._prepare(link)
    assert [call for call in link.calls if call[0] != "stream?"] == [
        (1, "exchange_declare", "orders", "x-consistent-hash", {"durable": True}),
        (1, "queue_declare", "a", {"passive": True}),
        (2, "queue_declare", "a", {"durable": True}),
        (2, "queue_bind", "a", "orders", "1", {}),
        (2, "queue_declare", "b", {"passive": True}),
        (2, "queue_bind", "b", "orders", "1", {}),
        (2, "close"),
    ]

    def closed():
        one = channel()
        one.connection.is_open = False
        return one

    monkeypatch.setattr(link, "channel", closed)
    text = "cannot bind shards to 'orders' as a durable x-consistent-hash exchange: 404 NOT_FOUND"
    with pytest.raises(ConnectionLost, match=text):
        watch(shardExchange="orders")._prepare(link)
