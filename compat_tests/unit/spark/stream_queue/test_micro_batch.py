"""A streaming read of streams: what every micro-batch has, as Spark's calls ask for it."""

from __future__ import annotations

import json
import pickle
import threading

import pytest
from hypothesis import given, strategies as st

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import Limit
from compat_tests.unit.spark.stream_queue.streams import options, positions, publisher, rows, stream_reader
from fakeamqp import Broker
from fakeamqp.spark.errors import BrokerUnreachable, ConnectionLost, OptionError
from fakeamqp.spark.queue_types import check_is_no_stream, check_is_stream
from fakeamqp.spark.stream_queue import pool
from fakeamqp.spark.stream_queue.ranges import admitted


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


@given(
    backlogs=st.dictionaries(st.text("abcdef", min_size=1, max_size=1), st.integers(0, 1000)),
    begin=st.integers(0, 50),
    most=st.integers(1, 3000),
)
def test_limited_batch_takes_messages_of_each_stream_with_backlog(backlogs, begin, most):
    start = dict.fromkeys(backlogs, begin)
    end = {stream: begin + backlog for stream, backlog in backlogs.items()}
    ends = admitted(start, end, most)
    shares = {stream: ends[stream] - begin for stream in backlogs}
    assert all(shares[stream] <= backlogs[stream] for stream in backlogs)
    assert all(shares[stream] for stream in backlogs if backlogs[stream])
    busy = sum(1 for backlog in backlogs.values() if backlog)
    assert sum(shares.values()) == min(sum(backlogs.values()), most) or most < busy == sum(shares.values())
    assert admitted(start, end, None) == end


@pytest.mark.parametrize(
    ("start", "most", "ends"),
    [
        ({}, 40, {"a": 10, "b": 30}),
        ({}, 39, {"a": 9, "b": 30}),
        ({}, 20, {"a": 5, "b": 15}),
        ({}, 1, {"a": 1, "b": 1}),
        ({"b": 10}, 20, {"a": 6, "b": 24}),
        ({"a": 10}, 4, {"a": 10, "b": 4}),
        ({"a": 12}, 30, {"a": 10, "b": 30}),
        ({"a": 12}, 29, {"a": 10, "b": 29}),
    ],
)
def test_a_batch_of_two_streams_is_shared_in_proportion(start, most, ends):
    """A stream that ends before the place that was read keeps its end."""
    assert admitted(start, {"a": 10, "b": 30}, most) == ends


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
        with pytest.raises(ConnectionLost, match=r"cannot read stream 'nowhere': .*404"):
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


def test_a_queue_is_checked_without_being_touched(broker, log):
    log.channel.queue_declare("orders", durable=True)
    log.publish("orders", 1)
    connection = options(broker.url).connection
    check_is_no_stream(connection, "orders")
    broker.wait_until_idle()
    [message] = broker.queue("orders").messages
    assert not message.redelivered


def test_a_queue_of_a_broker_that_takes_any_offset_is_no_stream(broker, log):
    """Not RabbitMQ; the prefetch count tells streams from others then."""
    log.channel.queue_declare("orders", durable=True)
    connection = options(broker.url).connection
    broker.faults.on("basic.consume", direction="received").replace(arguments={})
    check_is_no_stream(connection, "orders")
    with pytest.raises(OptionError, match="'orders' is no stream"):
        check_is_stream(connection, "orders")
    check_is_stream(connection, "log")
    with pytest.raises(ConnectionLost, match="404"):
        check_is_stream(connection, "nowhere")


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
