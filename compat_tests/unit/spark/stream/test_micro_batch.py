"""A streaming read of streams: what every micro-batch has, as Spark's calls ask for it."""

from __future__ import annotations

import json
import pickle
import threading

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import Limit
from compat_tests.unit.spark.stream.streams import batch_reader, positions, publisher, rows, stream_reader
from fakeamqp import Broker
from fakeamqp.spark.errors import BrokerUnreachable, OptionError, QueueNotFound
from fakeamqp.spark.stream.ranges import Range, StreamPartition
from fakeamqp.spark.wire import pool


@pytest.fixture
def log(log):
    """Publishes to the empty streams `log` and `more`."""
    log.declare("more")
    return log


def connections(broker):
    """Those of readers."""
    return [each for each in broker.connections if each.connection_name]


def read(reader, start, end):
    return [row["offset"] for row in rows(reader, start, end)]


# --- where it begins --------------------------------------------------------------------------------------


def test_earliest_offset_is_first_message_left_by_retention(broker, log, follow):
    log.declare("short", stream_max_segment_size_bytes=400, max_length_bytes=1000)
    log.publish("short", *range(30))
    first = broker.queue("short").messages[0].offset
    assert first > 0
    reader = follow(stream="short")
    start = reader.initialOffset()
    assert positions(start) == {"short": first}
    assert len(read(reader, start, reader.latestOffset(start, Limit(100)))) == broker.queue("short").ready


def test_an_empty_stream_has_its_first_message_before_it(log, follow):
    reader = follow(startingOffsets="latest")
    start = reader.initialOffset()
    assert start == {"log": 0}
    assert reader.latestOffset(start, Limit(10)) == start
    log.publish("log", 1)
    assert positions(reader.latestOffset(start, Limit(10))) == {"log": 1}
    assert read(reader, start, {"log": 1}) == [0]


# --- where a micro-batch ends -----------------------------------------------------------------------------


def test_latest_offset_includes_message_published_before_call(log, follow):
    reader = follow(stream="log,more")
    seen = {"log": 0, "more": 0}
    for number in range(100):
        stream = ("log", "more", "more")[number % 3]
        log.publish(stream, number)
        seen[stream] += 1
        assert positions(reader.latestOffset(dict(seen), Limit(1000))) == seen
    assert reader.reportLatestOffset()["offset"] == seen


def test_available_now_reads_only_messages_present_at_start(log, follow):
    log.publish("log", *range(25))
    reader = follow()
    reader.prepareForTriggerAvailableNow()
    end = reader.initialOffset()
    batches = []
    while True:
        log.publish("log", *range(5))  # A producer that never stops.
        start, end = end, reader.latestOffset(end, Limit(10))
        if start == end:
            break
        batches += [read(reader, start, end)]
    assert batches == [[*range(10)], [*range(10, 20)], [*range(20, 25)]]


# --- restarts ---------------------------------------------------------------------------------------------


def test_a_logged_batch_is_the_same_again(log, follow):
    log.publish("log", *range(30))
    start, end = {"log": 5}, {"log": 25}
    assert read(follow(), start, end) == [*range(5, 25)]
    log.publish("log", *range(30))
    again = follow(startingOffsets="latest")
    assert read(again, start, end) == [*range(5, 25)]
    again.commit(end)
    assert positions(again.latestOffset(end, Limit(100))) == {"log": 60}


def test_a_stream_that_comes_back_continues_at_its_place(log, follow):
    log.publish("log", *range(3))
    log.publish("more", *range(2))
    both = follow(stream="more,log")
    first = both.latestOffset(both.initialOffset(), Limit(10))
    assert list(first) == ["more", "log"]
    both.stop()
    log.publish("log", 3)
    log.publish("more", 2)
    one = follow(stream="log")
    second = one.latestOffset(first, Limit(10))
    assert positions(second) == {"more": 2, "log": 4}
    assert [(row["queue"], row["offset"]) for row in rows(one, first, second)] == [("log", 3)]
    assert json.dumps(one.latestOffset(second, Limit(10))) == json.dumps(second)
    one.stop()
    both = follow(stream="more,log")
    third = both.latestOffset(second, Limit(10))
    assert [(row["queue"], row["offset"]) for row in rows(both, second, third)] == [("more", 2)]


# --- connections ------------------------------------------------------------------------------------------


def test_stream_reader_keeps_one_connection_and_replaces_lost_connection(broker, log, follow):
    log.publish("log", 1)
    reader = follow()
    for number in range(1, 5):
        assert positions(reader.latestOffset({"log": 0}, Limit(100))) == {"log": number}
        [connection] = connections(broker)
        connection.close(320, "maintenance")
        log.publish("log", number)


def test_broker_unreachable_at_first_call_fails_without_waiting(broker, follow):
    reader = follow(reconnectTimeout="1h")
    broker.stop()
    for call in (reader.initialOffset, reader.latestOffset):
        with pytest.raises(BrokerUnreachable, match="refused"):
            call()


def test_query_on_missing_stream_raises_404(follow):
    reader = follow(stream="nowhere")
    for call in (reader.initialOffset, reader.latestOffset):
        with pytest.raises(QueueNotFound, match=r"cannot read stream 'nowhere': .*404"):
            call()


@pytest.mark.parametrize("personality", ["rabbitmq-3.13", "rabbitmq-4.2"])
@pytest.mark.parametrize("count", [0, 1])
def test_query_on_queue_given_as_stream_is_refused_and_leaves_messages(count, personality):
    with Broker(personality=personality) as broker, publisher(broker.url) as log:
        log.channel.queue_declare("orders", durable=True)
        log.publish("orders", *range(count))
        for call in ("initialOffset", "latestOffset"):
            reader = stream_reader(broker.url, stream="orders")
            with pytest.raises(OptionError, match="'orders' is no stream"):
                getattr(reader, call)()
            reader.stop()
        broker.wait_until_idle()
        assert broker.queue("orders").ready == count


def test_messages_without_offset_end_the_query_and_stay_in_their_queue(broker, log):
    """Of a broker that ignores the argument with the offset."""
    log.channel.queue_declare("orders", durable=True)
    log.publish("orders", *range(10))
    broker.faults.on("basic.consume", direction="received").replace(arguments={})
    for call in ("initialOffset", "latestOffset"):
        reader = stream_reader(broker.url, stream="orders")
        with pytest.raises(OptionError, match="'orders' is no stream"):
            getattr(reader, call)()
        reader.stop()
    with pytest.raises(OptionError, match="'orders' is no stream"):
        [*batch_reader(broker.url, stream="orders").read(StreamPartition(Range("orders", 0, 10)))]
    broker.queue("orders").wait_for(ready=10)


def test_query_on_stream_given_as_queue_is_refused(log, query):
    for mode in ("spool", "commit", "none"):
        with pytest.raises(OptionError, match="'log' is a stream: set option 'stream' instead of 'queue'"):
            query(queue="log", ackMode=mode).start().batch()


def test_a_queue_that_becomes_a_stream_fails_its_query(log, query):
    log.channel.queue_declare("orders", durable=True)
    job = query(ackMode="commit")
    log.publish("orders", 1)
    assert len(job.start().batch()) == 1
    log.channel.queue_delete("orders")
    log.declare("orders")
    with pytest.raises(OptionError, match="'orders' is a stream"):
        job.batch()


def test_stop_leaves_no_thread_and_no_connection(broker, log, follow):
    before = set(threading.enumerate())
    reader = follow()
    reader.latestOffset({"log": 0}, Limit(100))
    assert len(set(threading.enumerate()) - before) == 1
    reader.stop()
    broker.wait_until_idle()
    assert set(threading.enumerate()) <= before
    assert not connections(broker)


def test_a_pickled_reader_is_small_and_takes_no_connection_along(broker, log, follow):
    log.publish("log", 1, 2)
    reader = follow()
    reader.latestOffset({"log": 0}, Limit(100))
    pickled = pickle.dumps(reader)
    assert len(pickled) < 4000
    there = pickle.loads(pickled)
    assert read(there, {"log": 0}, {"log": 2}) == [0, 1]
    pool.close_idle()
    assert len(connections(broker)) == 1
