"""A stream that was deleted and declared again is another stream, and retention does not make it one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import Limit, table
from compat_tests.unit.spark.stream.streams import (
    EVERYTHING,
    batch_reader,
    positions,
    publisher,
    rows,
)
from fakeamqp.spark.errors import DataLoss, OptionError
from fakeamqp.spark.stream.offsets import StreamMark, StreamPlace, from_json, to_json

REPLACED = "deleted and declared anew.*say failOnDataLoss=false"


def declare_anew(log, count):
    """Replace the stream by one with other messages."""
    log.channel.queue_delete("log")
    # A channel of RabbitMQ may still send a message to the deleted stream, and confirm it.
    log.channel = log.channel.connection.channel()
    log.channel.confirm_delivery()
    log.declare("log")
    log.publish("log", *range(1000, 1000 + count))


def checkpoint(offset):
    """What Spark gives back of an offset after a restart."""
    return json.loads(json.dumps(offset))


def read(reader, start, end):
    return [int(row["value"]) for row in rows(reader, start, end)]


@pytest.fixture
def read_ten(log, follow):
    """The end of a query that has read ten messages."""
    log.publish("log", *range(10))
    reader = follow()
    end = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    assert positions(end) == {"log": 10}
    reader.stop()
    return checkpoint(end)


@pytest.mark.parametrize("available_now", [True, False])
@pytest.mark.parametrize("count", [3, 10, 100])
def test_stream_redeclared_between_two_runs_raises_data_loss_or_is_read_from_start(
    log, follow, read_ten, count, available_now
):
    declare_anew(log, count)
    reader, careless = follow(), follow(failOnDataLoss="false")
    if available_now:
        reader.prepareForTriggerAvailableNow()
        careless.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match=f"'log' was read up to 10 and .*{REPLACED}"):
        reader.latestOffset(read_ten, EVERYTHING)
    seen, start = [], read_ten
    while (end := checkpoint(careless.latestOffset(start, Limit(40)))) != start:
        seen += read(careless, start, end)
        start = end
    assert seen == [*range(1000, 1000 + count)]


@pytest.mark.parametrize("count", [3, 10, 100])
def test_stream_redeclared_while_query_runs_raises_data_loss_or_is_read_from_start(log, follow, count):
    log.publish("log", *range(10))
    reader, careless = follow(), follow(failOnDataLoss="false")
    end = reader.latestOffset({"log": 0}, EVERYTHING)
    assert careless.latestOffset({"log": 0}, EVERYTHING) == end
    declare_anew(log, count)
    with pytest.raises(DataLoss, match=REPLACED):
        reader.latestOffset(end, EVERYTHING)
    following = careless.latestOffset(end, EVERYTHING)
    assert read(careless, end, following) == [*range(1000, 1000 + count)]
    assert careless.latestOffset(following, EVERYTHING) == following
    log.publish("log", 7)
    last = careless.latestOffset(following, EVERYTHING)
    assert read(careless, following, last) == [7]


@pytest.mark.parametrize("available_now", [True, False])
def test_stream_redeclared_and_empty_raises_data_loss_or_continues_at_offset_0(
    log, follow, read_ten, available_now
):
    """The stream counts as empty after the time that a broker has for its answers."""
    declare_anew(log, 0)
    patience = {"amqp.connectionTimeout": "1s"}
    reader, careless = follow(**patience), follow(failOnDataLoss="false", **patience)
    if available_now:
        reader.prepareForTriggerAvailableNow()
        careless.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match="'log' was read up to 10 and is empty: it was deleted and declared"):
        reader.latestOffset(read_ten, EVERYTHING)
    end = checkpoint(careless.latestOffset(read_ten, EVERYTHING))
    assert positions(end) == {"log": 0}
    assert rows(careless, read_ten, end) == []
    assert checkpoint(careless.latestOffset(end, EVERYTHING)) == end
    careless.stop()
    log.publish("log", 7, 8)
    later = follow()
    assert read(later, end, later.latestOffset(end, EVERYTHING)) == [7, 8]


@pytest.mark.parametrize("count", [10, 100])
def test_stream_redeclared_before_first_batch_of_latest_query_raises_data_loss(log, follow, count):
    log.publish("log", *range(10))
    reader = follow(startingOffsets="latest")
    start = reader.initialOffset()
    declare_anew(log, count)
    with pytest.raises(DataLoss, match=REPLACED):
        reader.latestOffset(start, EVERYTHING)


@pytest.mark.parametrize("count", [3, 10, 100])
def test_batch_planned_on_deleted_stream_raises_data_loss_or_reads_new_messages(log, follow, count):
    log.publish("log", *range(10))
    reader, careless = follow(), follow(failOnDataLoss="false")
    end = reader.latestOffset({"log": 0}, EVERYTHING)
    declare_anew(log, count)
    # The batch again after a restart: Spark does not ask for the end before.
    with pytest.raises(DataLoss, match=r"'log' (has another message at 9|ends before 3)"):
        rows(reader, {"log": 0}, end)
    assert read(careless, {"log": 0}, end) == [*range(1000, 1000 + min(count, 10))]


def test_an_old_version_of_pyspark_that_tells_the_start_later(log, follow, read_ten):
    log.publish("log", 10, 11)
    reader = follow()
    assert read(reader, read_ten, checkpoint(reader.latestOffset())) == [10, 11]
    for count in (3, 10, 100):
        declare_anew(log, count)
        reader, careless = follow(), follow(failOnDataLoss="false")
        end = checkpoint(reader.latestOffset())
        with pytest.raises(DataLoss, match=f"'log' was read up to 10 and .*{REPLACED}"):
            reader.partitions(read_ten, end)
        assert checkpoint(careless.latestOffset()) == end
        assert careless.partitions(end, end) == []
        assert read(careless, read_ten, end) == [*range(1000, 1000 + count)]


def test_each_task_of_batch_on_redeclared_stream_raises_data_loss(log, broker, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.stream.ranges._TASK_ROWS", 5)
    log.publish("log", *range(10))
    reader = batch_reader(broker.url, minPartitions="2")
    tasks = reader.partitions()
    assert len(tasks) == 2
    declare_anew(log, 100)
    for task in tasks:
        with pytest.raises(DataLoss, match="'log' has another message at 9 than before"):
            table(reader, [task])


def test_retention_of_read_messages_raises_no_data_loss(broker, log, follow):
    log.declare("short", stream_max_segment_size_bytes=400, max_length_bytes=2000)
    log.publish("short", *range(3))
    reader = follow(stream="short")
    end = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    for _ in range(10):
        reader.stop()
        log.publish("short", *range(5))
        reader = follow(stream="short")
        start, end = end, checkpoint(reader.latestOffset(checkpoint(end), EVERYTHING))
        assert read(reader, start, end) == [*range(5)]
    assert broker.queue("short").messages[0].offset > 10
    # Now the mark of the last batch is gone, and what comes next is there.
    log.declare("none", stream_max_segment_size_bytes=1, max_length_bytes=1)
    log.publish("none", 1, 2)
    reader = follow(stream="none", startingOffsets="latest")
    end = reader.initialOffset()
    log.publish("none", 3)
    assert broker.queue("none").messages[0].offset > end["none"]["last"]
    assert positions(reader.latestOffset(end, EVERYTHING))["none"] > end["none"]["next"]


def test_retention_of_unread_messages_raises_data_loss(log, follow):
    log.declare("short", stream_max_segment_size_bytes=400, max_length_bytes=1000)
    log.publish("short", *range(3))
    reader = follow(stream="short")
    start = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    log.publish("short", *range(50))
    with pytest.raises(DataLoss, match=r"'short' are gone: \d+ was wanted"):
        rows(reader, start, reader.latestOffset(start, EVERYTHING))


def test_a_broker_that_restarts_has_the_same_streams(broker, follow):
    with publisher(broker.url) as log:
        log.declare("log")
        log.publish("log", *range(10))
    reader = follow()
    end = reader.latestOffset({"log": 0}, EVERYTHING)
    broker.restart()
    broker.publish("10", routing_key="log")
    assert read(reader, end, reader.latestOffset(end, EVERYTHING)) == [10]


def test_a_checkpoint_of_an_earlier_version_goes_on(log, follow, read_ten):
    reader = follow()
    assert reader.latestOffset({"log": 10}, EVERYTHING) == {"log": 10}
    log.publish("log", 10)
    end = reader.latestOffset({"log": 10}, EVERYTHING)
    assert read(reader, {"log": 10}, end) == [10]
    assert read(reader, {"log": 5}, {"log": 9}) == [5, 6, 7, 8]


def test_batch_of_new_stream_begins_at_its_first_retained_message(log, follow):
    log.declare("more", stream_max_segment_size_bytes=400, max_length_bytes=1000)
    log.publish("more", *range(50))
    reader = follow(stream="log,more", startingOffsets={"log": 0, "more": "latest"})
    end = reader.latestOffset({"log": 0}, Limit(10))
    first = checkpoint(end)["more"]["first"]
    assert first > 0
    assert rows(follow(), {"log": 0}, end)[0]["offset"] == first


def test_stream_redeclared_as_queue_fails_query(log, follow):
    log.publish("log", *range(10))
    reader = follow()
    end = reader.latestOffset({"log": 0}, EVERYTHING)
    log.channel.queue_delete("log")
    log.channel.queue_declare("log", durable=True)
    with pytest.raises(OptionError, match=r"'log' is no stream.*set option 'queue'"):
        reader.latestOffset(end, EVERYTHING)


marks = st.none() | st.builds(
    StreamMark, st.integers(0), st.text("0123456789abcdef", min_size=16, max_size=16)
)
places = st.builds(StreamPlace, st.integers(0), marks, st.none() | st.integers(0))


@given(st.dictionaries(st.text(min_size=1), places))
def test_places_survive_a_checkpoint(found):
    assert from_json(checkpoint(to_json(found))) == found
    assert json.dumps(to_json(from_json(checkpoint(to_json(found))))) == json.dumps(to_json(found))
