"""The fixture `amqp_stream` between the queues and exchanges of a broker."""

from __future__ import annotations

import os

import pytest

import compat_tests.tools.needs_pyspark  # noqa: F401
from fakeamqp.spark.testing import CrashNotPossible

QUEUES = pytest.mark.amqp(
    definitions={"queues": [{"name": name, "durable": True} for name in ("orders", "alerts")]}
)
pytestmark = QUEUES


def texts(messages):
    return messages.selectExpr("cast(value AS STRING) AS value", "message_id")


@pytest.fixture
def put(amqp_broker):
    """Publishes messages with bodies that are their ids."""

    def put(*bodies):
        for body in bodies:
            amqp_broker.publish(body, routing_key="orders", message_id=body)

    return put


def bodies(broker):
    return [bytes(message.body).decode() for message in broker.queue("alerts").messages]


def test_query_copies_queue_to_exchange_and_continues_after_restart(put, amqp_broker, amqp_stream):
    put("one", "two")
    amqp_stream.run_available(texts, queue="orders", exchange="", routingKey="alerts")
    assert bodies(amqp_broker) == ["one", "two"]
    put("three")
    amqp_stream.restart()
    amqp_stream.process_all()
    assert bodies(amqp_broker) == ["one", "two", "three"]
    assert amqp_broker.queue("orders").ready == 0


def test_a_crash_after_publishing_publishes_again_with_the_same_ids(put, amqp_broker, amqp_stream):
    put("one")
    with amqp_stream.crash():
        amqp_stream.run_available(texts, queue="orders", exchange="", routingKey="alerts")
    assert bodies(amqp_broker) == ["one"]
    amqp_stream.restart()
    amqp_stream.process_all()
    assert [message.message_id for message in amqp_broker.queue("alerts").messages] == ["one"] * 2


def test_killed_source_loses_no_message_and_leaves_other_query_running(put, amqp_stream, make_amqp_stream):
    other = make_amqp_stream()
    other.start(texts, queue="alerts")
    other.process_all()
    amqp_stream.start(texts, queue="orders")
    put("one")
    amqp_stream.process_all()
    crash = amqp_stream.crash("source")
    assert crash.error is not None
    assert other.query.isActive
    with pytest.raises(CrashNotPossible, match="is not running"):
        amqp_stream.crash("source")
    put("two")
    amqp_stream.restart()
    amqp_stream.process_all()
    assert [row.value for row in amqp_stream.rows] == ["one", "two"]


def union(amqp_stream, *queues):
    """A job on two queues."""
    one, other = (texts(amqp_stream.read(queue=queue)) for queue in queues)
    return one.union(other)


def test_a_job_reads_two_queues_and_goes_on_after_crashes(put, amqp_broker, amqp_stream):
    put("one")
    amqp_broker.publish("two", routing_key="alerts", message_id="two")
    with amqp_stream.crash():
        amqp_stream.run_available(union(amqp_stream, "orders", "alerts"))
    amqp_stream.start(union(amqp_stream, "orders", "alerts"))
    amqp_stream.process_all()
    amqp_stream.crash("source")
    put("three")
    amqp_stream.restart()
    amqp_stream.process_all()
    assert sorted(row.value for row in amqp_stream.rows) == ["one", "three", "two"]


def test_a_job_on_another_queue_continues_with_checkpoint_and_spool(put, amqp_broker, amqp_stream):
    put("one")
    amqp_broker.publish("two", routing_key="alerts", message_id="two")
    amqp_stream.run_available(texts, queue="orders")
    amqp_stream.run_available(texts, queue="alerts")
    assert [row.value for row in amqp_stream.rows] == ["one", "two"]


@pytest.mark.stops_sources
def test_a_source_does_not_outlive_a_query_that_fails_before_its_first_batch(put, amqp_stream):
    """Its failure is raised once, and the next query gets the spool."""
    with pytest.raises(Exception, match="no queue 'missing'"):
        amqp_stream.run_available(union(amqp_stream, "orders", "missing"))
    amqp_stream.stop()
    put("one")
    amqp_stream.run_available(texts, queue="orders")
    assert [row.value for row in amqp_stream.rows] == ["one"]


def test_read_returns_queue_columns_without_starting_query(put, amqp_broker, amqp_stream):
    put("one")
    messages = amqp_stream.read(queue="orders", columns=["value", "routing_key"])
    assert messages.isStreaming
    assert messages.columns == ["value", "routing_key"]
    assert amqp_broker.queue("orders").ready == 1
    assert not os.path.exists(amqp_stream.checkpoint)


@pytest.mark.amqp(tls=True)
def test_a_broker_with_tls_is_trusted(put, amqp_broker, amqp_stream):
    assert amqp_broker.url.startswith("amqps:")
    put("one")
    amqp_stream.run_available(texts, queue="orders", exchange="", routingKey="alerts")
    assert bodies(amqp_broker) == ["one"]
