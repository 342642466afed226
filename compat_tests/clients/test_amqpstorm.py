from __future__ import annotations

from typing import Any

import pytest

from compat_tests.clients.reach import Reach
from fakeamqp import Broker

amqpstorm = pytest.importorskip(
    "amqpstorm", reason="with Python 3.10 amqpstorm and aio-pika want different versions of pamqp"
)

SECONDS = 20


def opened(broker: Broker, password: str = "guest", **options: Any) -> Any:
    return amqpstorm.Connection(broker.host, "guest", password, port=broker.port, timeout=SECONDS, **options)


def test_from_connect_to_ack(reach: Reach) -> None:
    options: dict[str, Any] = {}
    if reach.context is not None:
        options = {"ssl": True, "ssl_options": {"context": reach.context, "server_hostname": reach.host}}
    with amqpstorm.Connection(
        reach.host, "guest", "guest", port=reach.port, timeout=SECONDS, **options
    ) as connection:
        channel = connection.channel()
        channel.confirm_deliveries()
        channel.exchange.declare("events", exchange_type="topic")
        channel.queue.declare("orders", durable=True)
        channel.queue.bind("orders", "events", "order.#")
        large = "ö" * 200_000
        assert channel.basic.publish(
            large, "order.new", "events", {"headers": {"n": 1, "deep": {"list": [1, 2]}}}
        )
        assert reach.broker.queue("orders").ready == 1

        seen: list[Any] = []

        def take(message: Any) -> None:
            seen.append(message)
            if not message.redelivered:
                message.reject(requeue=True)
            else:
                message.ack()
                channel.stop_consuming()

        channel.basic.consume(take, "orders")
        channel.start_consuming()
        assert [message.body for message in seen] == [large, large]
        assert seen[0].properties["headers"] == {"n": 1, "deep": {"list": [1, 2]}}
        reach.broker.queue("orders").wait_for(ready=0, unacked=0, consumers=0)


def test_get(broker: Broker) -> None:
    with opened(broker) as connection, connection.channel() as channel:
        channel.queue.declare("orders")
        assert channel.basic.get("orders") is None
        channel.basic.publish("1", "orders")
        message = channel.basic.get("orders")
        assert (message.body, message.redelivered) == ("1", False)
        message.nack(requeue=False)
        broker.queue("orders").wait_for(ready=0, unacked=0)


def test_mandatory_messages_come_back(broker: Broker) -> None:
    with opened(broker) as connection:
        channel = connection.channel()
        channel.confirm_deliveries()
        with pytest.raises(amqpstorm.AMQPMessageError, match="NO_ROUTE"):
            channel.basic.publish("lost", "nowhere", mandatory=True)
            channel.check_for_errors()


def test_mistakes_close_the_channel_only(broker: Broker) -> None:
    with opened(broker) as connection:
        with pytest.raises(amqpstorm.AMQPChannelError) as caught:
            connection.channel().queue.declare("absent", passive=True)
        assert caught.value.error_code == 404
        connection.channel().queue.declare("orders")


def test_a_wrong_password(broker: Broker) -> None:
    with pytest.raises(amqpstorm.AMQPConnectionError):
        opened(broker, password="wrong")


def test_heartbeats_are_negotiated(broker: Broker) -> None:
    with opened(broker, heartbeat=19):
        assert broker.connections[0].heartbeat == 19


def test_a_blocked_broker_tells_publishers(broker: Broker) -> None:
    with opened(broker) as connection:
        channel = connection.channel()
        channel.queue.declare("orders")
        alarm = broker.faults.memory_alarm()
        channel.basic.publish("late", "orders")
        # Its reader thread notes it; that the broker reads no further shows that it was sent.
        broker._reader.wait_for(lambda state: any(not each.reading for each in state.connections))
        broker.wait_until_idle()
        while not connection.is_blocked:
            connection.check_for_errors()
        alarm.remove()
        broker.queue("orders").wait_for(ready=1)
        while connection.is_blocked:
            connection.check_for_errors()
