"""Segments of shards, filled from a connection that the test plays."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.tools.matrix import cases
from compat_tests.unit.spark.wire.played import Attempts
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, DataLoss, OptionError, QueueNotFound
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.shards import filling
from fakeamqp.spark.shards.filling import SegmentFiller, fill
from fakeamqp.spark.shards.folder import Filled, SharedFolder
from fakeamqp.spark.shards.reader import ShardPartition, ShardStreamReader
from fakeamqp.spark.wire import exact, retries
from fakeamqp.spark.wire.lease import LeaseTaken


def options(folder, **more):
    given = {
        "amqp.url": "amqp://h",
        "queue": "q",
        "shards": "1",
        "spoolDir": folder.path,
        "idleTimeout": "2s",
        "columns": "value,offset,redelivered",
    }
    return read_options({**given, "reconnectTimeout": "60s", **more})


def no_stream(_connection, queue):
    raise OptionError(f"{queue!r} is a stream")


@pytest.fixture
def connection(monkeypatch):
    found = Attempts()
    found.leases = []
    for module in (filling, exact, retries):
        monkeypatch.setattr(module, "time", found)
    monkeypatch.setattr(filling, "lend", found)
    monkeypatch.setattr(filling, "take_lease", lambda _, *given: found.leases.append(given))
    monkeypatch.setattr(filling, "release_lease", lambda _, name: found.leases.append(name))
    monkeypatch.setattr(filling, "check_is_no_stream", lambda _, name: found.calls.append(("stream?", name)))
    return found


@pytest.fixture
def folder(tmp_path):
    found = SharedFolder(str(tmp_path / "spool"))
    found.state()
    return found


def run(connection, folder, most=10, number=3, **more):
    given = options(folder, **more)
    columns = chosen_columns(given)
    partition = ShardPartition("s", "q", (number,), most)
    SegmentFiller(connection, given, folder, partition, number, columns).run()
    return [row for batch in folder.read("q", number) for row in batch.to_pylist()]


def values(rows):
    return [row["value"] for row in rows]


def remove(folder, number):
    Path(folder.path, "q", f"{number:012d}.arrow").unlink()


def called(connection, *names):
    return [call for call in connection.calls if call[1] in names]


# --- a segment --------------------------------------------------------------------------------------------


def test_a_segment_has_at_most_so_many_messages(connection, folder):
    connection.turns = [
        lambda: connection.deliver(b"a"),
        lambda: connection.deliver(b"b", redelivered=True),
    ]
    rows = run(connection, folder, most=2, consumerPriority="7")
    first = 3 * filling.ROWS
    assert [(row["value"], row["offset"], row["redelivered"]) for row in rows] == [
        (b"a", first, False),
        (b"b", first + 1, True),
    ]
    assert connection.calls == [
        (1, "qos", 2),
        (1, "consume", "q", {"x-priority": 7}),
        (1, "cancel", "q 1"),
        (1, "discard"),
        (1, "ack", 2, "multiple"),
        (1, "close"),
    ]
    assert connection.pauses == pytest.approx([0.02, 0.02])
    assert folder.contents("q").filled == {3: Filled(2, 1, 0)}


def test_a_segment_ends_when_the_queue_is_empty(connection, folder):
    connection.turns = [lambda: connection.deliver(b"a")]
    assert values(run(connection, folder)) == [b"a"]
    assert len(called(connection, "count")) == 2
    assert folder.contents("q").filled == {3: Filled(1)}


def test_ready_messages_are_waited_for_while_they_may_come(connection, folder, caplog):
    """For the idle timeout since the last one."""
    connection.ready = [4]
    connection.turns = [lambda: connection.deliver(b"a"), *[None] * 60, lambda: connection.deliver(b"b")]
    assert values(run(connection, folder)) == [b"a", b"b"]
    assert connection.now == pytest.approx(1000 + 60 * 0.02 + 2.0, abs=0.03)
    assert ("stream?", "q") in connection.calls
    assert caplog.text == ""


def test_ready_messages_not_delivered_by_broker_are_logged(connection, folder, caplog):
    connection.ready = [4]
    assert run(connection, folder) == []
    assert connection.now == pytest.approx(1002.0, abs=0.03)
    assert "queue 'q' has 4 ready messages, and the broker delivers none: another consumer" in caplog.text
    assert folder.contents("q").filled == {3: Filled(0)}
    assert not called(connection, "ack")


def test_large_segments_are_written_in_parts(connection, folder, monkeypatch):
    monkeypatch.setattr(exact, "_LARGEST_WINDOW", 3)
    with cases() as case:
        for number, (rows, octets, expected) in enumerate(
            [(2, 999, [2, 2, 2]), (99, 6, [2, 2, 2]), (99, 7, [3, 3]), (99, 999, [6])]
        ):
            with case(rows, octets):
                connection.calls.clear()
                connection.channels.clear()
                monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", rows)
                monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_BYTES", octets)
                connection.turns = [
                    lambda body=body: connection.deliver(body) for body in map(str.encode, "012345")
                ]
                run(connection, folder, most=6, number=number)
                assert [batch.num_rows for batch in folder.read("q", number)] == expected
                assert called(connection, "qos", "ack") == [
                    (1, "qos", 3),
                    (2, "qos", 3),
                    (1, "ack", 3, "multiple"),
                    (2, "ack", 3, "multiple"),
                ]


def test_segment_completed_by_another_task_returns_messages_to_queue(connection, folder, caplog):
    def complete():
        connection.deliver(b"mine")
        assert folder.write("q", 3, pa.schema([]), [])

    connection.turns = [complete]
    assert run(connection, folder, most=1) == []
    assert "another task has completed segment 3 of 'q': 1 messages return to the queue" in caplog.text
    assert not called(connection, "ack")
    assert connection.calls[-1] == (1, "close")
    assert folder.contents("q").filled == {}
    assert folder.contents("q").temporaries == {}


def test_a_queue_that_becomes_a_stream_is_no_shard(connection, folder, monkeypatch):
    offset = {"headers": {"x-stream-offset": 3}}
    copied = [lambda: connection.deliver(b"a", properties=offset)]
    connection.turns = [*copied]
    assert values(run(connection, folder)) == [b"a"]  # An app has copied the header.
    monkeypatch.setattr(filling, "check_is_no_stream", no_stream)
    connection.turns = [*copied]
    with pytest.raises(OptionError, match="'q' is a stream"):
        run(connection, folder, number=4)
    connection.ready = [5]
    with pytest.raises(OptionError, match="'q' is a stream"):
        run(connection, folder, number=4)
    assert folder.contents("q").temporaries == {}
    assert not called(connection, "ack")[1:]


# --- messages that come again -----------------------------------------------------------------------------


def stored(connection, folder, number, *messages, **more):
    """Fill a segment with messages: bodies and message ids."""
    connection.turns = [
        lambda body=body, message_id=message_id: connection.deliver(body, properties=with_id(message_id))
        for body, message_id in messages
    ]
    run(connection, folder, number=number, **more)


def again(connection, folder, number, *messages, **more):
    """The bodies of a segment with these messages, all of them redelivered."""
    connection.turns = [
        lambda body=body, message_id=message_id: connection.deliver(
            body, properties=with_id(message_id, **{"x-delivery-count": 1}), redelivered=True
        )
        for body, message_id in messages
    ]
    return values(run(connection, folder, number=number, **more))


def with_id(message_id, **headers):
    return {"headers": headers, **({"message_id": message_id} if message_id else {})}


@pytest.mark.parametrize(
    ("dedupe", "left"),
    [
        ("content", [b"other", b"A", b""]),
        ("message_id", [b"A", b""]),
        ("none", [b"other", b"a", b"a", b"A", b""]),
    ],
)
def test_redelivered_message_is_dropped_if_earlier_segment_has_its_id_and_content(
    connection, folder, caplog, dedupe, left
):
    more = {"dedupe": dedupe}
    stored(connection, folder, 2, (b"a", "1"), (b"a", "2"), (b"", None), (b"b", "3"), **more)
    messages = [(b"other", "3"), (b"a", "2"), (b"a", "1"), (b"A", "2"), (b"", None)]
    assert again(connection, folder, 3, *messages, **more) == left
    dropped = 5 - len(left)
    assert folder.contents("q").filled[3] == Filled(5, 5, dropped)
    text = f"segment 3 of shard 'q' leaves out {dropped} of 5 redelivered messages: earlier segments have"
    assert caplog.text.count(text) == bool(dropped)
    assert called(connection, "ack")[-1] == (2, "ack", 5, "multiple")  # Those, too.


@pytest.mark.parametrize("dedupe", ["content", "message_id"])
def test_each_stored_row_stands_for_one_redelivered_message(connection, folder, dedupe):
    """As many as were published, if a publisher has sent the same message again and again."""
    same = (b"a", "1")
    stored(connection, folder, 2, same, dedupe=dedupe)
    assert again(connection, folder, 3, same, same, same, dedupe=dedupe) == [b"a", b"a"]
    assert again(connection, folder, 4, same, same, same, same, dedupe=dedupe) == [b"a"]


def test_rows_of_the_same_segment_and_messages_that_are_not_redelivered_are_no_repetitions(
    connection, folder
):
    same = (b"a", "1")
    assert again(connection, folder, 2, same, same) == [b"a", b"a"]
    stored(connection, folder, 3, same, same, same)
    assert folder.contents("q").filled[3] == Filled(3)


def test_messages_with_an_empty_id_are_no_repetitions(connection, folder):
    same = (b"a", "")
    for dedupe in ("content", "message_id"):
        stored(connection, folder, 2, same, dedupe=dedupe)
        assert again(connection, folder, 3, same, dedupe=dedupe) == [b"a"]


def test_only_the_last_segments_before_are_compared(connection, folder):
    for number, each in ((1, "old"), (2, "early"), (9, "last"), (10, "own"), (11, "later")):
        stored(connection, folder, number, (each.encode(), each))
    remove(folder, 10)
    messages = [(each.encode(), each) for each in ("old", "early", "last", "own", "later")]
    assert again(connection, folder, 10, *messages) == [b"old", b"own", b"later"]


def test_rows_of_earlier_versions_have_no_digest_and_repeat_by_message_id_only(connection, folder):
    """Those of queries without ids repeat nothing."""
    schema = pa.schema([("value", pa.binary()), ("message_id", pa.string())])
    old = pa.RecordBatch.from_pylist([{"value": b"a", "message_id": "1"}], schema)
    for number, kept in ((1, schema), (2, schema), (3, schema.remove(1))):
        folder.write("q", number, kept, [old.select(kept.names)])
    assert again(connection, folder, 4, (b"a", "1")) == [b"a"]
    assert again(connection, folder, 5, *[(b"b", "1")] * 3, dedupe="message_id") == [b"b"]


def test_segments_have_chosen_columns_and_the_one_for_dedupe(connection, folder):
    with cases() as case:
        for number, (dedupe, columns, expected) in enumerate(
            [
                ("content", "value", ["value", "_digest"]),
                ("message_id", "value", ["value", "message_id"]),
                ("message_id", "message_id,value", ["message_id", "value"]),
                ("none", "value", ["value"]),
            ]
        ):
            with case(dedupe, columns):
                stored(connection, folder, number, (b"a", "1"), dedupe=dedupe, columns=columns)
                assert next(folder.read("q", number)).schema.names == expected


# --- attempts ---------------------------------------------------------------------------------------------


def filled(folder, most=1, number=3, **more):
    given = options(folder, **more)
    return fill(given, folder, ShardPartition("s", "q", (number,), most), number, chosen_columns(given))


def sleeps(connection):
    return [call[1] for call in connection.calls if call[0] == "sleep"]


def test_a_task_tries_again_until_its_segment_is_complete(connection, folder, caplog):
    def lose():
        connection.lost = "maintenance"

    gone, moving = BrokerUnreachable("no route"), QueueNotFound("its node is down")
    connection.attempts = [gone, [lose], moving, [lambda: connection.deliver(b"a")]]
    assert filled(folder) is True
    assert sleeps(connection) == [0.05, 0.1, 0.2]
    assert "no route; connecting again" in caplog.text
    assert "cannot read queue 'q': maintenance; connecting again" in caplog.text
    assert "its node is down; connecting again" in caplog.text
    lease = ("amqp.lease.s.q", 60.0)
    assert connection.leases == [lease, lease, "amqp.lease.s.q"]
    assert connection.calls[-1] == (0, "closed")
    connection.attempts = []
    assert filled(folder) is True
    connection.attempts = [moving] * 99
    with pytest.raises(QueueNotFound, match=r"its node is down \(tried again for 60.0 s\)"):
        filled(folder, number=4)


def test_lease_held_by_another_connection_fails_task_without_retry(connection, folder, monkeypatch):
    def take(*_):
        raise LeaseTaken("held by another connection")

    monkeypatch.setattr(filling, "take_lease", take)
    connection.attempts = [[]]
    with pytest.raises(LeaseTaken):
        filled(folder)
    assert sleeps(connection) == []


def test_complete_segment_is_kept_when_connection_is_lost_before_ack(connection, folder, caplog, monkeypatch):
    def acknowledge(_self):
        raise ConnectionLost("maintenance")

    monkeypatch.setattr(exact.ExactConsumer, "acknowledge", acknowledge)
    connection.attempts = [[lambda: connection.deliver(b"a")]]
    assert filled(folder) is True
    assert "maintenance; segment 3 of 'q' is complete, and may be redelivered" in caplog.text
    assert sleeps(connection) == []


def test_a_segment_of_the_holder_before_is_not_filled_again(connection, folder, monkeypatch):
    schema = pa.schema([("value", pa.binary())])
    rows = pa.RecordBatch.from_pylist([{"value": b"a"}] * 2, schema)
    monkeypatch.setattr(filling, "take_lease", lambda *_: folder.write("q", 3, schema, [rows]))
    connection.attempts = [[]]
    assert filled(folder) is True
    assert [call for call in connection.calls if call[0] == 1] == []
    assert folder.contents("q").filled == {3: Filled(2)}  # It was not noted.


@pytest.mark.parametrize("fails", [True, False])
def test_missing_segment_noted_as_complete_raises_data_loss_or_is_skipped(connection, folder, caplog, fails):
    folder.write("q", 3, pa.schema([]), [])
    folder.note("q", 3, Filled(5))
    remove(folder, 3)
    text = f"segment 3 of shard 'q' is gone from {folder.path}"
    if fails:
        with pytest.raises(
            DataLoss, match=f"{text}. Messages .* bring back the spool .* or set failOnDataLoss=false"
        ):
            filled(folder)
    else:
        assert filled(folder, failOnDataLoss="false") is False
        assert f"{text}; continuing with the remaining messages (failOnDataLoss=false)" in caplog.text


def test_partition_of_a_shard_skips_a_segment_that_is_gone(connection, folder):
    given = options(folder, columns="value", failOnDataLoss="false")
    folder.write("q", 1, pa.schema([]), [])
    folder.note("q", 1, Filled(1))
    remove(folder, 1)
    reader = ShardStreamReader(given, chosen_columns(given))
    connection.attempts = [[lambda: connection.deliver(b"a", b"b")], [lambda: connection.deliver(b"c")]]
    found = list(reader.read(ShardPartition(folder.state().spool, "q", (0, 1, 2), 2)))
    assert values(row for batch in found for row in batch.to_pylist()) == [b"a", b"b", b"c"]
    assert found[0].schema.names == ["value"]
