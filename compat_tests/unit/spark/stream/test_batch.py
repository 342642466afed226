"""A batch read of streams: every offset of a range once, however it is cut, or an error."""

from __future__ import annotations

import pickle
import time
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.fuzz.profile import examples
from compat_tests.unit.spark.micro_batches import table
from compat_tests.unit.spark.stream.streams import batch_reader, publisher, rows
from fakeamqp import Broker
from fakeamqp.spark.errors import BrokerUnreachable, DataLoss, OptionError
from fakeamqp.spark.stream import reading
from fakeamqp.spark.stream.offsets import StreamMark
from fakeamqp.spark.stream.ranges import Range, StreamPartition, cut
from fakeamqp.spark.wire import pool


def read(broker, **options):
    return [(row["offset"], int(row["value"])) for row in rows(batch_reader(broker.url, **options))]


# --- what is read -----------------------------------------------------------------------------------------


def test_batch_read_of_stream_returns_all_messages_each_time(broker, log):
    log.publish("log", *range(10), headers={"shop": "east"}, timestamp=1_900_000_000)
    for _ in range(2):
        found = rows(batch_reader(broker.url, includeProperties="true"))
        assert [(row["offset"], int(row["value"])) for row in found] == [(n, n) for n in range(10)]
    first = found[0]
    assert (first["queue"], first["routing_key"], first["exchange"]) == ("log", "log", "")
    assert first["headers"] == [("shop", "east")]
    assert (first["message_id"], first["redelivered"]) == ("m0", False)
    assert first["timestamp"].timestamp() == 1_900_000_000
    assert first["properties"]["delivery_mode"] == 2
    assert broker.queue("log").ready == 10


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, range(10)),
        ({"startingOffsets": "earliest", "endingOffsets": "latest"}, range(10)),
        ({"startingOffsets": {"log": 3}, "endingOffsets": {"log": 5}}, range(3, 5)),
        ({"startingOffsets": {"log": 5}, "endingOffsets": {"log": 5}}, []),
        ({"startingOffsets": {"log": 10}}, []),
    ],
)
def test_batch_read_covers_offsets_from_starting_to_ending_offsets(broker, log, options, expected):
    log.publish("log", *range(10))
    assert read(broker, **options) == [(number, number) for number in expected]


@pytest.mark.parametrize("prefetch", ["1", "2", "3", "8", "15", "19", "20", "50"])
def test_batch_read_receives_all_messages_of_its_range_and_no_others(broker, log, monkeypatch, prefetch):
    log.publish("log", *range(100))
    sent = []
    receive = reading._Reading._receive

    def note(self, *delivery):
        sent.append(int(delivery[-1]))
        receive(self, *delivery)

    monkeypatch.setattr(reading._Reading, "_receive", note)
    found = read(broker, startingOffsets={"log": 5}, endingOffsets={"log": 25}, prefetch=prefetch)
    assert [number for _, number in found] == sent == list(range(5, 25))


# --- what is not to be read -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": "latest"}, "which is where a batch read ends"),
        ({"endingOffsets": {"log": -2}}, "has 'earliest' as an offset"),
        ({"startingOffsets": {"log": 2}, "endingOffsets": {"log": 1}}, "from 2 on, and up to 1 only"),
    ],
)
def test_range_that_ends_before_its_start_is_refused(broker, log, options, words):
    log.publish("log", 1, 2, 3)
    with pytest.raises(OptionError, match=words):
        batch_reader(broker.url, **options).partitions()


def test_batch_read_without_broker_raises_broker_unreachable(broker):
    reader = batch_reader(broker.url, reconnectTimeout="200ms")
    broker.stop()
    with pytest.raises(BrokerUnreachable, match="refused"):
        reader.partitions()
    with pytest.raises(BrokerUnreachable, match=r"refused.*\(tried again for"):
        list(reader.read(StreamPartition(Range("log", 0, 1))))


# --- offsets without messages, and messages that are gone -------------------------------------------------


def offsets(broker):
    return [message.offset for message in broker.queue("log").messages]


def test_offsets_without_messages_are_no_loss(broker, log):
    log.channel.queue_delete("log")
    # Every segment has a message or two, and begins with an offset that no message has.
    log.declare("log", stream_max_segment_size_bytes=1)
    log.publish("log", *range(20))
    there = offsets(broker)
    assert there != list(range(len(there)))
    assert [offset for offset, _ in read(broker)] == there
    for start in range(there[0], there[-1], 4):
        for stop in range(start, there[-1], 3):
            found = read(broker, startingOffsets={"log": start}, endingOffsets={"log": stop})
            assert [offset for offset, _ in found] == [each for each in there if start <= each < stop]


def test_messages_that_retention_dropped_raise_data_loss_or_are_skipped(broker, log, caplog):
    log.channel.queue_delete("log")
    log.declare("log", stream_max_segment_size_bytes=400, max_length_bytes=1000)
    log.publish("log", *range(30))
    there = offsets(broker)
    assert there[0] > 2
    text = f"'log' are gone: 2 was wanted, and it now begins with {there[0]}; "
    with pytest.raises(DataLoss, match=f"{text}say failOnDataLoss=false"):
        read(broker, startingOffsets={"log": 2})
    found = read(broker, startingOffsets={"log": 2}, failOnDataLoss="false")
    assert [offset for offset, _ in found] == [offset for offset, _ in read(broker)] == there
    assert text in caplog.text
    options = {"startingOffsets": {"log": 1}, "endingOffsets": {"log": 3}}
    with pytest.raises(DataLoss):
        read(broker, **options)
    assert read(broker, failOnDataLoss="false", **options) == []


# --- filters of the broker --------------------------------------------------------------------------------


@pytest.fixture
def shops(log):
    """Publishes numbers to `log`, with the filter value `east` if divisible by 10, otherwise `west` by 5."""

    def publish(*numbers):
        for number in numbers:
            value = "east" if number % 10 == 0 else "west" if number % 5 == 0 else None
            log.publish("log", number, headers={"x-stream-filter-value": value} if value else {})

    return publish


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"streamFilter": "east"}, lambda number: number % 10 == 0),
        ({"streamFilter": "east,west"}, lambda number: number % 5 == 0),
        ({"streamFilter": "north"}, lambda number: False),
        (
            {"streamFilter": "east", "streamMatchUnfiltered": "true"},
            lambda number: number % 10 == 0 or number % 5,
        ),
        ({"streamFilter": "east", "prefetch": "1"}, lambda number: number % 10 == 0),
        ({"streamFilter": "east", "prefetch": "3", "minPartitions": "4"}, lambda number: number % 10 == 0),
    ],
)
def test_filtered_read_ends_although_the_last_messages_do_not_match(
    broker, shops, monkeypatch, options, wanted
):
    monkeypatch.setattr("fakeamqp.spark.stream.ranges._TASK_ROWS", 20)
    shops(*range(104))
    expected = [(number, number) for number in range(104) if wanted(number)]
    assert read(broker, **options) == expected
    some = {"startingOffsets": {"log": 13}, "endingOffsets": {"log": 67}}
    assert read(broker, **some, **options) == [each for each in expected if 13 <= each[0] < 67]


def test_filtered_read_asks_and_does_not_wait(broker, shops):
    shops(*range(10))
    before = time.monotonic()
    assert len(read(broker, streamFilter="east", idleTimeout="1h")) == 1
    assert time.monotonic() - before < 30


def test_filtered_read_of_a_stream_whose_messages_are_gone_raises_data_loss_or_skips_them(broker, log, shops):
    log.channel.queue_delete("log")
    log.declare("log", stream_max_segment_size_bytes=400, max_length_bytes=3000)
    shops(*range(60))
    there = offsets(broker)
    assert there[0] > 10
    options = {"startingOffsets": {"log": 2}, "streamFilter": "east"}
    with pytest.raises(DataLoss, match=f"'log' are gone: 2 was wanted, and it now begins with {there[0]}"):
        read(broker, **options)
    found = read(broker, failOnDataLoss="false", **options)
    assert found
    assert {number % 10 for _, number in found} == {0}
    assert found == read(broker, streamFilter="east")


def test_filtered_read_continues_at_next_offset_after_lost_connection(broker, shops, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", 2)
    shops(*range(100))
    reader = batch_reader(broker.url, prefetch="3", streamFilter="east")
    [task] = reader.partitions()
    found = []
    for number, batch in enumerate(reader.read(task)):
        found += batch.column("offset").to_pylist()
        if number % 2:
            [connection] = (each for each in broker.connections if each.connection_name)
            connection.close(320, "maintenance")
    assert found == [*range(0, 100, 10)]


def test_filtered_read_of_another_stream_of_the_name_raises_data_loss(broker, log, shops):
    shops(*range(30))
    reader = batch_reader(broker.url, streamFilter="east")
    [task] = reader.partitions()
    log.channel.queue_delete("log")
    log.channel = log.channel.connection.channel()
    log.channel.confirm_delivery()
    log.declare("log")
    log.publish("log", *range(1000, 1100), headers={"x-stream-filter-value": "east"})
    with pytest.raises(DataLoss, match="'log' has another message at 29 than before"):
        list(reader.read(task))


def test_filters_are_refused_by_a_broker_that_has_none():
    with Broker(personality="rabbitmq-3.10") as broker, publisher(broker.url) as log:
        log.declare("log")
        log.publish("log", 1)
        with pytest.raises(OptionError, match=r"'streamFilter' needs RabbitMQ 3\.13 or later"):
            read(broker, streamFilter="east")


# --- connections ------------------------------------------------------------------------------------------


def test_batch_read_continues_at_next_offset_after_lost_connection(broker, log, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.rows.record_batches._ENOUGH_ROWS", 10)
    log.publish("log", *range(100))
    reader = batch_reader(broker.url, prefetch="10")
    [task] = reader.partitions()
    found = []
    for number, batch in enumerate(reader.read(task)):
        found += batch.column("offset").to_pylist()
        if number % 2:
            [connection] = (
                each for each in broker.connections if each.client_properties.get("connection_name")
            )
            connection.close(320, "maintenance")
    assert found == list(range(100))


def test_batch_read_leaves_no_open_connection_after_idle_ones_are_closed(broker, log):
    log.publish("log", *range(100))
    assert len(read(broker)) == 100
    pool.close_idle()
    broker.wait_until_idle()
    [connection] = broker.connections
    assert "connection_name" not in connection.client_properties


# --- tasks ------------------------------------------------------------------------------------------------


@given(
    backlogs=st.lists(st.integers(0, 30_000), max_size=5),
    least=st.integers(1, 20),
    begin=st.integers(0, 1000),
)
def test_tasks_have_every_offset_once_and_are_of_one_size(backlogs, least, begin):
    ranges = [Range(f"s{number}", begin, begin + size) for number, size in enumerate(backlogs)]
    pieces = [task.range for task in cut(ranges, least)]
    covered = {each.stream: each.start for each in ranges}
    for stream, start, stop, _mark in pieces:
        assert start == covered[stream] < stop
        covered[stream] = stop
    assert covered == {each.stream: each.stop for each in ranges}
    for each in ranges:
        sizes = [piece.size for piece in pieces if piece.stream == each.stream]
        assert max(sizes, default=0) - min(sizes, default=0) <= 1
        # Rounded: a stream that is one and a half tasks long is two.
        assert len(sizes) <= 1 or min(sizes) >= 2500 * 3 // 4 - 1
    busy = sum(1 for backlog in backlogs if backlog)
    assert len(pieces) <= min(least, max(sum(backlogs) // 2500, 1)) + busy
    assert busy > 1 or len(pieces) == min(least, max(sum(backlogs) // 2500, busy))


@pytest.mark.parametrize(
    ("sizes", "least", "edges"),
    [
        ([0], 8, [[]]),
        ([10], 8, [[0, 10]]),
        ([2499, 0, 1], 8, [[0, 2499], [], [0, 1]]),
        ([10_000], 8, [[0, 2500, 5000, 7500, 10_000]]),
        ([10_000], 3, [[0, 3333, 6666, 10_000]]),
        ([10_000], 0, [[0, 10_000]]),
        ([7500, 2500], 4, [[0, 2500, 5000, 7500], [0, 2500]]),
        ([4000, 6000], 4, [[0, 2000, 4000], [0, 3000, 6000]]),
    ],
)
def test_ranges_are_cut_where_tasks_have_the_same_size(sizes, least, edges):
    mark = StreamMark(9, "x")
    tasks = cut([Range(str(number), 7, 7 + size, mark) for number, size in enumerate(sizes)], least)
    assert [task.range for task in tasks] == [
        Range(str(number), 7 + start, 7 + stop, mark)
        for number, each in enumerate(edges)
        for start, stop in pairwise(each)
    ]


@pytest.fixture(scope="module")
def gaps():
    """A stream with offsets that have no message, and the offsets that have one."""
    with Broker() as broker, publisher(broker.url) as log:
        log.declare("log", stream_max_segment_size_bytes=300)
        log.publish("log", *range(200))
        yield broker.url, [message.offset for message in broker.queue("log").messages]


@examples(25)
@given(data=st.data())
def test_any_split_of_any_range_gives_every_offset_once(gaps, data):
    url, there = gaps
    end = there[-1] + 1
    start = data.draw(st.integers(0, end), label="start")
    stop = data.draw(st.integers(start, end), label="stop")
    cuts = sorted(data.draw(st.lists(st.integers(start, stop), max_size=5), label="cuts"))
    prefetch = data.draw(st.integers(1, 300), label="prefetch")
    reader = batch_reader(url, prefetch=str(prefetch))
    edges = [start, *cuts, stop]
    tasks = [StreamPartition(Range("log", *edge)) for edge in pairwise(edges)]
    found = table(reader, tasks).to_pylist()
    assert [row["offset"] for row in found] == [offset for offset in there if start <= offset < stop]


def test_a_pickled_reader_is_small(broker):
    assert len(pickle.dumps(batch_reader(broker.url))) < 4000
