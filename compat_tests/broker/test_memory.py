"""The memory of a broker, as a test sees it."""

from __future__ import annotations

import pika
import pytest

from fakeamqp import Bounds, Broker, BrokerError, WaitTimeout
from fakeamqp.errors import NotPublished
from fakeamqp.model import memory

LIMIT = 100_000


def test_memory_view_shows_the_octets_of_queues_messages_and_connections() -> None:
    with Broker(history=0, trace=0) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            for name in ("small", "large"):
                channel.queue_declare(name)
            channel.basic_publish("", "small", b"1")
            for _ in range(3):
                channel.basic_publish("", "large", bytes(1000))
            broker.queue("large").wait_for(ready=3)
            view = broker.admin.memory
        assert [(each.name, each.messages, each.octets) for each in view.queues] == [
            ("large", 3, 3 * (memory.MESSAGE + 1000 + 2 * memory.HEADERS)),
            ("small", 1, memory.MESSAGE + 1 + 2 * memory.HEADERS),
        ]
        assert view.messages == sum(each.octets for each in view.queues)
        assert view.total == view.messages + view.connections + view.unfinished + view.trace
        assert (view.history, view.elsewhere, view.trace, view.alarm) == (0, 0, 0, False)
        assert view.limit == memory.default_limit()


def test_message_kept_only_by_the_history_counts_as_history() -> None:
    with Broker() as broker:
        broker.publish(bytes(1000), routing_key="nowhere")
        assert broker.admin.memory.queues == ()
        assert 1000 < broker.admin.memory.history < 2000
        broker.reset()
        assert broker.admin.memory.messages == 0


def test_body_of_a_message_shared_by_queues_counts_once() -> None:
    with Broker() as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        for name in ("1", "2", "3"):
            channel.queue_declare(name)
            channel.queue_bind(name, "amq.fanout")
        broker.publish(bytes(1000), exchange="amq.fanout")
        assert [each.octets for each in broker.admin.memory.queues] == [
            1000 + memory.MESSAGE + 2 * memory.HEADERS,
            memory.ENTRY,
            memory.ENTRY,
        ]
        assert broker.admin.memory.elsewhere == 0


@pytest.fixture
def full() -> Broker:
    return Broker(memory_limit=LIMIT)


def fill(channel: pika.adapters.blocking_connection.BlockingChannel) -> None:
    """Publish more than fits; the last one is not read any more."""
    channel.queue_declare("q")
    for _ in range(3):
        channel.basic_publish("", "q", bytes(60_000))
    channel.connection.process_data_events(0)


def test_wait_timeout_mentions_the_memory_alarm_that_blocks_publishers(full: Broker) -> None:
    with full as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        fill(connection.channel())
        broker.wait_for(lambda: broker.admin.memory.alarm)
        with pytest.raises(WaitTimeout, match=r"alarm blocks publishers: \d+ bytes .* queue 'q' with \d mes"):
            broker.queue("q").wait_for(ready=10, timeout=0.01)
        with pytest.raises(NotPublished, match="the memory alarm blocks publishers"):
            broker.expect_published(routing_key="other", timeout=0.01)
        broker.queue("q").purge()
        broker.wait_for(lambda: not broker.admin.memory.alarm)


def test_trace_shows_cause_and_end_of_the_memory_alarm(
    full: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with full as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        fill(connection.channel())
        broker.wait_for(lambda: broker.admin.memory.alarm)
        broker.queue("q").purge()
        broker.wait_for(lambda: not broker.admin.memory.alarm)
        text = broker.trace.timeline()
    assert "memory alarm" in text and "queue 'q'" in text and "memory alarm over" in text
    assert "blocked" in text and "low on memory" in text
    assert "publishers continue" in caplog.text


def test_purge_by_the_test_ends_the_memory_alarm_for_publishers(full: Broker) -> None:
    with full as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q")
        channel.basic_publish("", "q", bytes(60_000))
        channel.basic_publish("", "q", bytes(60_000))
        assert broker.admin.memory.alarm
        broker.queue("q").purge()
        channel.basic_publish("", "q", b"goes on")
        assert broker.queue("q").ready == 1


def test_disk_alarm_of_faults_and_memory_alarm_block_together(full: Broker) -> None:
    with full as broker, pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        alarm = broker.faults.disk_alarm()
        connection.channel().queue_declare("q")
        broker.publish(bytes(LIMIT), routing_key="q")
        connection.channel().basic_publish("", "q", b"1")
        broker.wait_for(lambda: any(each.blocked for each in broker.connections))
        assert broker.connections[0].blocked == "low on disk & memory"
        alarm.remove()
        assert broker.connections[0].blocked == "low on memory"
        broker.queue("q").purge()


@pytest.mark.parametrize("limit", [0, -1, True, "1GB", 1.5])
def test_invalid_memory_limit_is_refused(limit: object) -> None:
    with pytest.raises(BrokerError, match="memory_limit must be a number of bytes above 0"):
        Broker(memory_limit=limit)  # type: ignore[arg-type]


def test_consumer_above_the_bound_per_channel_closes_the_connection() -> None:
    bounds = Bounds(consumers_per_channel=1)
    with Broker(bounds=bounds) as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        channel = connection.channel()
        channel.queue_declare("q")
        channel.basic_consume("q", lambda *_: None)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="reached maximum"):
            channel.basic_consume("q", lambda *_: None)
        assert connection.is_closed


@pytest.mark.amqp(memory_limit=LIMIT, bounds=Bounds(consumers_per_channel=1))
def test_amqp_marker_accepts_memory_limit_and_bounds(amqp_broker: Broker) -> None:
    with amqp_broker:  # Where it has a thread of its own, it runs already.
        assert amqp_broker.admin.memory.limit == LIMIT
        channel = pika.BlockingConnection(pika.URLParameters(amqp_broker.url)).channel()
        channel.queue_declare("q")
        channel.basic_consume("q", lambda *_: None)
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="reached maximum"):
            channel.basic_consume("q", lambda *_: None)
