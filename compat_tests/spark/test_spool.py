"""Reading queues by way of the spool, under Spark itself. What needs no Spark is tested without it."""

from __future__ import annotations

import json
import threading
from itertools import chain

import pytest


@pytest.fixture
def orders(amqp_broker, pika_channel):
    pika_channel.queue_declare("orders", durable=True)
    return amqp_broker.queue("orders")


@pytest.fixture
def publish(amqp_broker):
    def publish(*numbers):
        for number in numbers:
            amqp_broker.publish(str(number), routing_key="orders", message_id=f"m{number}", delivery_mode=2)

    return publish


def numbers(rows):
    return [int(row.value) for row in rows]


def test_available_now_reads_only_messages_present_at_start(amqp_stream, orders, publish):
    publish(*range(25))
    seen = []

    def write(rows, batch):
        seen.append(numbers(rows.collect()))
        publish(*range(100 * (batch + 1), 100 * (batch + 1) + 10))

    query = amqp_stream.run_available(
        lambda rows: rows.writeStream.foreachBatch(write), queue="orders", maxMessagesPerTrigger=10
    )
    assert list(chain(*seen)) == list(range(25))
    if amqp_stream.read(queue="orders").sparkSession.version >= "4.2":
        assert [len(batch) for batch in seen] == [10, 10, 5]
        # What came later is where it was.
        orders.wait_for(ready=30, unacked=0, consumers=0)
    assert sum(progress["numInputRows"] for progress in query.recentProgress) == 25


def test_query_progress_shows_lag_of_queue(amqp_stream, orders, publish):
    publish(*range(25))
    query = amqp_stream.run_available(
        lambda rows: rows.writeStream.format("noop"), queue="orders", maxMessagesPerTrigger=10
    )
    if amqp_stream.read(queue="orders").sparkSession.version < "4.2":
        return  # Spark does not ask for it.
    seen = [json.loads(progress["sources"][0]["latestOffset"]) for progress in query.recentProgress]
    assert [each["metrics"]["lag"] for each in seen] == [15, 5, 0]
    assert seen[-1]["offset"]["next"] == 25
    assert seen[-1]["metrics"]["consumers"] == 1


def test_process_all_reads_queue_messages_published_before(amqp_stream, orders, publish):
    amqp_stream.start(lambda rows: rows.select("value"), queue="orders", columns="value,offset")
    for first in range(0, 50, 10):
        publish(*range(first, first + 10))
        amqp_stream.process_all()
        assert numbers(amqp_stream.rows) == list(range(first + 10))
    assert (orders.ready, orders.unacked) == (0, 0)


def test_stopped_query_stores_and_acknowledges_delivered_messages(amqp_stream, orders, publish):
    written = {}
    begun = threading.Event()

    def write(rows, batch):
        # The first one may be repeated: the query is stopped before it is noted as done.
        written[batch] = numbers(rows.collect())
        begun.set()

    def job(rows):
        # One batch at once, and then none for as long as the test takes.
        return rows.writeStream.foreachBatch(write).trigger(processingTime="1 hour")

    publish(*range(10))
    amqp_stream.start(job, queue="orders", spoolFlushInterval="1h", transport="file")
    assert begun.wait(60)
    publish(*range(10, 30))
    orders.wait_for(ready=0, unacked=20)
    amqp_stream.stop()
    orders.wait_for(ready=0, unacked=0, consumers=0)
    amqp_stream.run_available(lambda rows: rows.writeStream.foreachBatch(write), queue="orders")
    assert list(chain(*written.values())) == list(range(30))


@pytest.mark.parametrize("mode", ["commit", "none"])
def test_commit_mode_leaves_messages_in_queue_and_at_most_once_mode_does_not(
    amqp_stream, orders, publish, mode
):
    publish(*range(10))
    amqp_stream.run_available(lambda rows: rows, queue="orders", ackMode=mode)
    assert numbers(amqp_stream.rows) == list(range(10))
    orders.wait_for(ready=10 if mode == "commit" else 0, unacked=0, consumers=0)


@pytest.mark.stops_sources
def test_source_is_stopped_if_second_source_of_query_cannot_start(
    amqp_broker, amqp_stream, pika_channel, orders, publish, tmp_path
):
    def read(queue):
        return amqp_stream.read(queue=queue, spoolDir=tmp_path / queue)

    def run(other):
        rows = read("orders").union(read(other))
        query = rows.writeStream.format("noop").trigger(availableNow=True)
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()

    publish(1, 2, 3)
    with pytest.raises(Exception, match="cannot consume from queue 'refund'"):
        run("refund")
    amqp_broker.wait_for(lambda: not orders.consumers)
    pika_channel.queue_declare("refunds", durable=True)
    run("refunds")
    orders.wait_for(ready=0, unacked=0, consumers=0)
