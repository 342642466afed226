"""Partitioned streams: what is found, new partitions, times per stream, and how long a batch waits."""

from __future__ import annotations

import json

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from compat_tests.unit.spark.micro_batches import table
from compat_tests.unit.spark.stream.streams import (
    EVERYTHING,
    batch_reader,
    positions,
    rows,
)
from fakeamqp.spark.errors import OptionError, QueueNotFound
from fakeamqp.spark.stream import discovery


class SuperStream:
    """`orders`, as `rabbitmq-streams add_super_stream` makes it."""

    def __init__(self, log, count):
        self._log = log
        self.count = 0
        log.channel.exchange_declare("orders", "direct", durable=True, arguments={"x-super-stream": True})
        for _ in range(count):
            self.add_partition()

    def add_partition(self):
        stream, number = f"orders-{self.count}", self.count
        self._log.declare(stream, queue_leader_locator="balanced")
        order = {"x-stream-partition-order": number}
        self._log.channel.queue_bind(stream, "orders", str(number), arguments=order)
        self.count += 1

    def publish(self, *numbers):
        for number in numbers:
            self._log.channel.basic_publish("orders", str(number % self.count), str(number).encode())


@pytest.fixture
def orders(log, monkeypatch):
    """A super stream of three partitions, whose readers look for new ones at every request."""
    monkeypatch.setattr(discovery, "_FIRST_PAUSE", 0.0)
    return SuperStream(log, 3)


@pytest.fixture
def source():
    return {"superStream": "orders"}


def values(found):
    return sorted(int(row["value"]) for row in found)


# --- partitions -------------------------------------------------------------------------------------------


def test_a_batch_read_has_a_task_for_every_partition(broker, orders):
    orders.publish(*range(30))
    reader = batch_reader(broker.url, superStream="orders")
    tasks = reader.partitions()
    assert [(task.range.stream, task.range.stop) for task in tasks] == [(f"orders-{n}", 10) for n in range(3)]
    found = table(reader, tasks).to_pylist()
    assert values(found) == [*range(30)]
    assert {(row["queue"], int(row["value"]) % 3) for row in found} == {(f"orders-{n}", n) for n in range(3)}


def test_a_query_picks_up_new_partitions(orders, follow):
    orders.publish(*range(6))
    reader = follow(startingOffsets="latest")
    start = reader.initialOffset()
    assert positions(start) == {"orders-0": 2, "orders-1": 2, "orders-2": 2}
    assert reader.latestOffset(start, EVERYTHING) == start
    orders.add_partition()
    assert reader.latestOffset(start, EVERYTHING) == start
    orders.publish(100, 101, 102, 103)
    end = reader.latestOffset(start, EVERYTHING)
    assert values(rows(reader, start, end)) == [100, 101, 102, 103]
    orders.add_partition()
    orders.publish(204)
    restarted = follow()
    assert values(rows(restarted, end, restarted.latestOffset(end, EVERYTHING))) == [204]


def test_a_queue_of_another_type_is_no_partition(broker, log, orders, follow, caplog):
    """It may have such a name by accident, before the query and during it."""
    orders.publish(*range(6))
    reader = follow()
    end = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    log.channel.queue_declare("orders-3", durable=True)
    log.channel.basic_publish("", "orders-3", b"an order of another app")
    assert reader.latestOffset(end, EVERYTHING) == end
    assert "'orders-3' is no stream, so it is no partition of 'orders'" in caplog.text
    orders.count += 1
    orders.add_partition()
    log.publish("orders-4", 44)
    assert positions(reader.latestOffset(end, EVERYTHING)) == {**positions(end), "orders-4": 1}
    restarted = follow()
    assert positions(restarted.initialOffset()).keys() == {"orders-0", "orders-1", "orders-2", "orders-4"}
    assert positions(restarted.latestOffset(end, EVERYTHING))["orders-4"] == 1
    assert [message.redelivered for message in broker.queue("orders-3").messages] == [False]


def test_available_now_leaves_later_partitions_for_the_next_run(orders, follow):
    orders.publish(*range(6))
    reader = follow()
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    orders.add_partition()
    orders.publish(*range(100, 108))
    end = reader.latestOffset(start, EVERYTHING)
    assert values(rows(reader, start, end)) == [*range(6)]
    assert reader.latestOffset(end, EVERYTHING) == end


def test_deleted_partition_fails_query_with_404(log, orders, follow):
    orders.publish(*range(6))
    reader = follow()
    end = reader.latestOffset(reader.initialOffset(), EVERYTHING)
    reader.stop()
    log.channel.queue_delete("orders-1")
    with pytest.raises(QueueNotFound, match=r"cannot read stream 'orders-1': .*404"):
        follow().latestOffset(end, EVERYTHING)


def test_starting_offsets_are_given_for_each_partition(broker, orders):
    orders.publish(*range(30))
    given = {"orders-0": 9, "orders-1": "earliest", "orders-2": 10}
    reader = batch_reader(broker.url, superStream="orders", startingOffsets=given)
    assert values(rows(reader)) == sorted([*range(1, 30, 3), 27])
    with pytest.raises(OptionError, match="'startingOffsets' has nothing for 'orders-1', 'orders-2'"):
        batch_reader(broker.url, superStream="orders", startingOffsets={"orders-0": 1}).partitions()


# --- times ------------------------------------------------------------------------------------------------


@pytest.fixture
def minutes(broker, orders):
    """One message per partition and minute; the time of a minute in milliseconds."""
    broker.clock.advance(-broker.clock.time() % 60)
    begin = int(broker.clock.time())
    for minute in range(4):
        orders.publish(*range(3 * minute, 3 * minute + 3))
        broker.clock.advance(60)
    return lambda minute: (begin + 60 * minute) * 1000


def test_timestamp_option_may_have_time_for_each_partition(broker, minutes):
    start = {"orders-0": minutes(0), "orders-1": str(minutes(2)), "orders-2": "2999-01-01T00:00:00Z"}
    options = {"superStream": "orders", "startingTimestamp": start}
    with pytest.raises(
        OptionError, match=r"2999-01-01T00:00:00.* for 'orders-2', which has no message that new"
    ):
        batch_reader(broker.url, **options).partitions()
    reader = batch_reader(broker.url, startingOffsetsByTimestampStrategy="latest", **options)
    assert values(rows(reader)) == [0, 3, 6, 7, 9, 10]
    stop = {"orders-0": minutes(1), "orders-1": minutes(2), "orders-2": minutes(3)}
    reader = batch_reader(broker.url, superStream="orders", endingTimestamp=stop)
    assert values(rows(reader)) == [0, 1, 2, 4, 5, 8]


# --- connections of executors -----------------------------------------------------------------------------


def readers(broker):
    """Open connections of executors."""
    return [each for each in broker.connections if each.connection_name]


def test_tasks_use_the_connection_of_the_task_before(broker, orders):
    orders.publish(*range(30))
    reader = batch_reader(broker.url, superStream="orders")
    tasks = reader.partitions()
    seen = set()
    for task in tasks:
        table(reader, [task])
        [connection] = readers(broker)
        seen.add(connection.name)
    assert len(seen) == 1


def test_offset_of_partition_as_json_has_next_last_digest_and_first(orders, follow):
    orders.publish(*range(6))
    assert set(json.loads(json.dumps(follow().latestOffset({}, EVERYTHING)))["orders-0"]) == {
        "next",
        "last",
        "digest",
        "first",
    }
