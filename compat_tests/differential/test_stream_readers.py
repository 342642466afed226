"""The same readers on RabbitMQ: what they rest on is what it does, not what this broker says of it."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from itertools import pairwise

import pika
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyspark.sql import datasource

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.differential.comparison import SERIES
from compat_tests.unit.spark.micro_batches import Limit, ReadAllAvailable, table
from compat_tests.unit.spark.stream.streams import (
    batch_reader,
    positions,
    publisher,
    rows,
    stream_reader,
)
from fakeamqp.spark.browse import BrowseReader
from fakeamqp.spark.errors import DataLoss, OptionError
from fakeamqp.spark.options import read_options
from fakeamqp.spark.rows.columns import chosen_columns
from fakeamqp.spark.stream.offsets import from_json
from fakeamqp.spark.stream.ranges import Range, StreamPartition
from fakeamqp.spark.wire.connection import WireConnection
from fakeamqp.spark.wire.queue_types import queue_type

COUNT = 3000


@pytest.fixture(scope="module", params=SERIES.values(), ids=str)
def series(request):
    return request.param


@pytest.fixture(scope="module")
def node(series, nodes):
    return nodes.beside(series.name).node


@pytest.fixture(scope="module")
def url(node):
    return node.url


@pytest.fixture(scope="module")
def rabbit(url):
    with publisher(url) as rabbit:
        yield rabbit


@pytest.fixture(scope="module")
def log(rabbit):
    """The stream `log`, with so many messages in chunks of different sizes, and then some segments."""
    rabbit.channel.queue_delete("log")  # Tests in other files leave one on the same node.
    rabbit.declare("log", stream_max_segment_size_bytes=20_000)
    plain = rabbit.channel.connection.channel()
    for number in range(COUNT):
        plain.basic_publish("", "log", str(number).encode())
        if number % 700 == 0:
            rabbit.publish("log", number)
    plain.close()
    rabbit.publish("log", COUNT)
    return rabbit


@pytest.fixture(scope="module")
def there(url, log):
    """The offsets of messages of `log`, as a plain client gets them."""
    channel = log.channel.connection.channel()
    channel.basic_qos(prefetch_count=10 * COUNT)
    offsets = []
    arguments = {"x-stream-offset": "first"}
    channel.basic_consume(
        "log",
        lambda _c, _m, properties, _b: offsets.append(properties.headers["x-stream-offset"]),
        arguments=arguments,
    )
    while len(offsets) < COUNT + COUNT // 700 + 2:
        log.channel.connection.process_data_events(1)
    channel.close()
    return offsets


def wait_for_count(rabbit, queue, count):
    """RabbitMQ counts the messages of a stream every five seconds."""
    ends = time.monotonic() + 120
    while (there := rabbit.channel.queue_declare(queue, passive=True).method.message_count) < count:
        assert time.monotonic() < ends, f"{queue} has {there} of {count} messages"
        rabbit.channel.connection.process_data_events(0.01)


def browse(url, queue):
    options = read_options({"amqp.url": url, "queue": queue, "allowDeliveryLimit": "true"})
    reader = BrowseReader(options, chosen_columns(options))
    return table(reader, reader.partitions()).to_pylist()


def ends(reader, start, limit):
    """Where each stream ends, as `latestOffset` says."""
    return {stream: place.next for stream, place in from_json(reader.latestOffset(start, limit)).items()}


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_repeated_browse_returns_all_messages_in_order(url, rabbit, kind, monkeypatch):
    monkeypatch.setattr("fakeamqp.spark.wire.exact._LARGEST_WINDOW", 1000)
    rabbit.channel.queue_declare(kind, durable=True, arguments={"x-queue-type": kind})
    rabbit.publish(kind, *range(50))
    plain = rabbit.channel.connection.channel()
    for number in range(50, COUNT):
        plain.basic_publish("", kind, str(number).encode())
    # RabbitMQ drops what a channel has not yet handed to a quorum queue when the channel is closed.
    wait_for_count(rabbit, kind, COUNT)
    plain.close()
    for redelivered in (False, True, True):
        found = browse(url, kind)
        assert [int(row["value"]) for row in found] == list(range(COUNT))
        assert {row["redelivered"] for row in found} == {redelivered}


def test_browse_returns_large_first_message_of_many_frames(url, rabbit):
    rabbit.channel.queue_declare("large", durable=True)
    sizes = [5_000_000, 200_000, 10]
    for size in sizes:
        rabbit.channel.basic_publish("", "large", bytes(size))
    for _ in range(3):
        assert [len(row["value"]) for row in browse(url, "large")] == sizes


def test_browse_of_stream_and_stream_read_of_queue_are_refused(url, rabbit, log, there):
    with pytest.raises(OptionError, match="'log' is a stream"):
        browse(url, "log")
    rabbit.channel.queue_declare("plain", durable=True)
    for count in (0, 1):
        rabbit.publish("plain", *range(count))
        with pytest.raises(OptionError, match="'plain' is no stream"):
            batch_reader(url, stream="plain").partitions()
    assert len(browse(url, "plain")) == 1


def test_timestamp_filters_limit_messages_read_from_stream(url, log, there):
    """The broker has sent the first message of a time before it answers the question after it."""
    if not hasattr(datasource, "EqualTo"):
        pytest.skip("filters came with PySpark 4.1")
    now, hour = datetime.now(timezone.utc), timedelta(hours=1)
    for kind, time_of_filter, expected in (
        ("LessThan", now - hour, 0),
        ("GreaterThan", now - hour, len(there)),
        ("LessThan", now + hour, len(there)),
    ):
        reader = batch_reader(url, filterPushdown="true", timestampTolerance="0s")
        reader.pushFilters([getattr(datasource, kind)(attribute=("timestamp",), value=time_of_filter)])
        assert len(rows(reader)) == expected


def test_latest_offset_includes_each_confirmed_message(url, rabbit):
    """On a busy machine a later question may be needed: RabbitMQ's confirms are no deliveries."""
    rabbit.declare("live")
    reader = stream_reader(url, stream="live")
    seen = reader.initialOffset()

    def wait_for_end(end, limit):
        deadline = time.monotonic() + 30
        while (found := ends(reader, seen, limit)["live"]) < end:
            assert time.monotonic() < deadline, f"the reader sees {found} of {end} messages"
        assert found == end

    try:
        wait_for_end(0, Limit(1000))
        for number in range(300):
            rabbit.publish("live", number)
            wait_for_end(number + 1, Limit(1000))
        plain = rabbit.channel.connection.channel()
        for _ in range(20_000):  # Beyond the window at the end.
            plain.basic_publish("", "live", b"")
        plain.close()
        rabbit.publish("live", 1)
        wait_for_end(20_301, ReadAllAvailable())
    finally:
        reader.stop()


def test_initial_offset_ignores_stale_message_count_of_replaced_stream(node, rabbit):
    """A stream counts its messages every five seconds, also one that another has replaced just now."""
    rabbit.declare("replaced")
    name = 'rabbit_misc:r(<<"/">>, queue, <<"replaced">>)'
    node.evaluate(f"ets:insert(queue_coarse_metrics, {{{name}, 1, 0, 1, 0}})")
    assert rabbit.channel.queue_declare("replaced", passive=True).method.message_count == 1
    reader = stream_reader(node.url, stream="replaced")
    try:
        assert positions(reader.initialOffset()) == {"replaced": 0}
    finally:
        reader.stop()


def test_batch_reader_reads_all_messages_from_earliest_or_starting_timestamp(url, there):
    found = rows(batch_reader(url, startingOffsets="earliest", prefetch="100"))
    assert [row["offset"] for row in found] == there
    assert there != list(range(len(there)))  # Segments begin with offsets that have no message.
    assert len(rows(batch_reader(url, startingTimestamp="2001-01-01"))) == len(there)


def test_start_at_a_time_without_a_message_that_new_is_refused_or_the_end(url, there):
    """It waits for no message: the broker has sent the last chunk before the answer to a question."""
    options = {"startingTimestamp": "2999-01-01", "idleTimeout": "1h"}
    with pytest.raises(OptionError, match=r"startingTimestamp' is 2999-01-01.* has no message that new"):
        batch_reader(url, **options).partitions()
    late = {**options, "startingOffsetsByTimestampStrategy": "latest"}
    assert rows(batch_reader(url, **late)) == []
    reader = stream_reader(url, **late)
    assert positions(reader.initialOffset()) == {"log": there[-1] + 1}
    assert len(rows(batch_reader(url, endingTimestamp="2999-01-01", idleTimeout="1h"))) == len(there)


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_split_offset_range_returns_each_offset_once(url, there, data):
    end = there[-1] + 1
    start = data.draw(st.integers(0, end), label="start")
    stop = data.draw(st.integers(start, min(end, start + 800)), label="stop")
    cuts = sorted(data.draw(st.lists(st.integers(start, stop), max_size=3), label="cuts"))
    reader = batch_reader(url, prefetch=str(data.draw(st.integers(1, 1000), label="prefetch")))
    tasks = [StreamPartition(Range("log", *edge)) for edge in pairwise([start, *cuts, stop])]
    found = table(reader, tasks).to_pylist()
    assert [row["offset"] for row in found] == [offset for offset in there if start <= offset < stop]


def test_messages_dropped_by_retention_raise_data_loss_or_are_skipped(url, rabbit):
    rabbit.declare("short", stream_max_segment_size_bytes=2000, max_length_bytes=5000)
    plain = rabbit.channel.connection.channel()
    for number in range(30):
        for _ in range(10):
            plain.basic_publish("", "short", b"x" * 90)
        rabbit.publish("short", number)
    plain.close()
    # Since 4.0 the first delivery comes behind the count, so that a stream not yet counted looks empty.
    wait_for_count(rabbit, "short", 1)
    reader = batch_reader(url, stream="short", startingOffsets={"short": 0})
    with pytest.raises(DataLoss, match="'short' are gone: 0 was wanted, and it now begins with"):
        rows(reader)
    careless = batch_reader(url, stream="short", startingOffsets={"short": 0}, failOnDataLoss="false")
    earliest = rows(batch_reader(url, stream="short"))
    assert [row["offset"] for row in rows(careless)] == [row["offset"] for row in earliest]
    assert 0 < len(earliest) < 330


@pytest.mark.parametrize("headers", [None, {}, {"x-stream-offset": 7}], ids=["empty", "filled", "forged"])
@pytest.mark.parametrize("kind", ["classic", "quorum", "stream"])
def test_refused_redeclaration_tells_the_type_of_a_queue(url, rabbit, kind, headers):
    rabbit.channel.queue_declare("typed", durable=True, arguments={"x-queue-type": kind})
    try:
        if headers is not None:
            rabbit.publish("typed", 1, headers=headers)
        with WireConnection(read_options({"amqp.url": url, "queue": "typed"}).connection) as connection:
            for _ in range(2):  # The connection is still of use.
                assert queue_type(connection, "typed") == kind
    finally:
        rabbit.channel.queue_delete("typed")


# --- filters of the broker --------------------------------------------------------------------------------


@pytest.fixture
def has_filters(series, url, log):
    if series.name == "3.10":
        with pytest.raises(OptionError, match=r"'streamFilter' needs RabbitMQ 3\.13 or later"):
            rows(batch_reader(url, streamFilter="east"))
        pytest.skip("filters came with RabbitMQ 3.13")


@pytest.fixture(scope="module")
def shops(rabbit):
    """The filter values of the messages of the stream `shops`, which has them in hundreds of chunks."""
    rabbit.channel.queue_delete("shops")
    rabbit.declare("shops", stream_max_segment_size_bytes=50_000)
    plain = rabbit.channel.connection.channel()
    values = []
    for number in range(400):
        value = ("east", "west", None, "north", "east", "west")[number * 7 % 6] if number % 50 else "rare"
        headers = {"x-stream-filter-value": value} if value else {}
        for _ in range((1, 5, 20, 30)[number % 4]):
            properties = pika.BasicProperties(headers=headers, delivery_mode=2)
            plain.basic_publish("", "shops", str(len(values)).encode(), properties)
            values.append(value)
        rabbit.publish("shops", len(values))  # Its confirm is the end of a chunk.
        values.append(None)
    plain.close()
    return values


@pytest.fixture(scope="module")
def shop_offsets(url, shops):
    """The offset of each of these messages."""
    found = {int(row["value"]): row["offset"] for row in rows(batch_reader(url, stream="shops"))}
    assert sorted(found) == [*range(len(shops))]
    return found


def test_filtered_read_leaves_out_chunks(has_filters, url, shops, shop_offsets):
    found = [int(row["value"]) for row in rows(batch_reader(url, stream="shops", streamFilter="rare"))]
    wanted = [number for number, value in enumerate(shops) if value == "rare"]
    assert wanted == [number for number in found if shops[number] == "rare"]
    assert len(found) < len(shops) / 4


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_filtered_range_loses_no_message_with_its_values(has_filters, url, shops, shop_offsets, data):
    end = max(shop_offsets.values()) + 1
    start = data.draw(st.integers(0, end), label="start")
    stop = data.draw(st.integers(start, end), label="stop")
    values = data.draw(st.lists(st.sampled_from(["east", "rare", "none"]), min_size=1, unique=True))
    unfiltered = data.draw(st.booleans(), label="unfiltered")
    cuts = sorted(data.draw(st.lists(st.integers(start, stop), max_size=3), label="cuts"))
    reader = batch_reader(
        url,
        stream="shops",
        streamFilter=",".join(values),
        streamMatchUnfiltered=str(unfiltered),
        prefetch=str(data.draw(st.integers(1, 1000), label="prefetch")),
        idleTimeout="1h",
    )
    tasks = [StreamPartition(Range("shops", *edge)) for edge in pairwise([start, *cuts, stop])]
    found = table(reader, tasks).to_pylist()
    assert [row["offset"] for row in found] == sorted({row["offset"] for row in found})
    matching = {*values, None} if unfiltered else {*values}
    wanted = {
        number for number, at in shop_offsets.items() if start <= at < stop and shops[number] in matching
    }
    assert wanted <= {int(row["value"]) for row in found}
    assert all(start <= row["offset"] < stop for row in found)


_SUSPEND = """
{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"shops">>)),
Stream = amqqueue:get_pid(Q), Asker = self(),
spawn(fun() ->
    erlang:suspend_process(Stream), Asker ! suspended,
    receive after 1000 -> erlang:resume_process(Stream) end
end),
receive suspended -> ok end
"""


def test_filtered_read_does_not_end_before_a_slow_stream_has_answered(has_filters, node, shops):
    """The channel answers questions while the stream has not told it that it can read."""
    reader = batch_reader(node.url, stream="shops", streamFilter="rare", minPartitions="1")
    tasks = reader.partitions()
    node.evaluate(_SUSPEND)
    found = [int(row["value"]) for row in table(reader, tasks).to_pylist()]
    assert {number for number, value in enumerate(shops) if value == "rare"} <= set(found)
