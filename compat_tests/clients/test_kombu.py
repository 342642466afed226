from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import amqp
import kombu
import pytest
from kombu.mixins import ConsumerMixin

from compat_tests.clients.reach import Reach
from fakeamqp import Broker

SECONDS = 20


@contextmanager
def opened(broker: Broker, password: str = "guest", **options: Any) -> Iterator[kombu.Connection]:
    url = f"pyamqp://guest:{password}@{broker.host}:{broker.port}//"
    with kombu.Connection(url, connect_timeout=SECONDS, **options) as connection:
        connection.connect()
        yield connection


def test_simple_queue(reach: Reach) -> None:
    ssl = None if reach.context is None else {"ca_certs": reach.ca_file, "server_hostname": reach.host}
    options: Any = {} if ssl is None else {"ssl": ssl}
    url = f"pyamqp://guest:guest@{reach.host}:{reach.port}//"
    with kombu.Connection(url, **options) as connection, connection.SimpleQueue("orders") as queue:
        queue.put({"id": 1}, headers={"h": [1, "two"]})
        queue.put({"id": 2})
        assert queue.qsize() == 2
        first = queue.get(timeout=SECONDS)
        assert (first.payload, first.headers["h"]) == ({"id": 1}, [1, "two"])
        first.requeue()
        again = queue.get(timeout=SECONDS)
        while again.payload == {"id": 2}:  # It was on its way already.
            again.ack()
            again = queue.get(timeout=SECONDS)
        assert (again.payload, again.delivery_info["redelivered"]) == ({"id": 1}, True)
        again.ack()
        queue.clear()
        reach.broker.queue("orders").wait_for(ready=0, unacked=(0, 1))
    reach.broker.wait_for(lambda: not reach.broker.connections)


def test_producer_and_consumer(broker: Broker) -> None:
    events = kombu.Exchange("events", "topic", durable=True)
    orders = kombu.Queue("orders", events, routing_key="order.*", max_priority=5)
    taken: list[Any] = []

    def take(body: Any, message: Any) -> None:
        taken.append(body)
        message.ack()

    with opened(broker, transport_options={"confirm_publish": True}) as connection:
        producer = connection.Producer(serializer="json")
        for priority in (0, 4):
            producer.publish(
                {"priority": priority},
                exchange=events,
                routing_key="order.new",
                declare=[orders],
                priority=priority,
            )
        with connection.Consumer(orders, callbacks=[take]):
            while len(taken) < 2:
                connection.drain_events(timeout=SECONDS)
        assert taken == [{"priority": 4}, {"priority": 0}]
        broker.queue("orders").wait_for(ready=0, unacked=0, consumers=0)


def test_returned_messages(broker: Broker) -> None:
    with opened(broker) as connection:
        returned: list[Any] = []
        producer = connection.Producer(on_return=lambda *given: returned.append(given))
        producer.publish("lost", routing_key="nowhere", mandatory=True)
        while not returned:
            connection.drain_events(timeout=SECONDS)
        error, exchange, routing_key, _message = returned[0]
        assert (error.reply_code, exchange, routing_key) == (312, "", "nowhere")


def test_mistakes(broker: Broker) -> None:
    with opened(broker) as connection:
        with pytest.raises(connection.channel_errors):
            kombu.Queue("absent")(connection.channel()).queue_declare(passive=True)
        kombu.Queue("orders")(connection.channel()).declare()
    with pytest.raises(amqp.AccessRefused), opened(broker, password="wrong"):
        pass


def test_a_consumer_comes_back_after_a_restart(broker: Broker) -> None:
    class Worker(ConsumerMixin):
        def __init__(self, connection: kombu.Connection) -> None:
            self.connection = connection
            self.bodies: list[Any] = []

        def get_consumers(self, consumer: Any, channel: Any) -> Any:
            return [consumer([kombu.Queue("orders")], callbacks=[self.take])]

        def take(self, body: Any, message: Any) -> None:
            message.ack()
            self.bodies.append(body)
            if len(self.bodies) == 1:
                broker.queue("orders").wait_for(ready=0, unacked=0)
                broker.restart()
                broker.publish('"second"', routing_key="orders", content_type="application/json")
            else:
                self.should_stop = True

        def on_connection_error(self, exc: Exception, interval: float) -> None:
            assert isinstance(exc, (OSError, *self.connection.connection_errors))

    with opened(broker) as connection:
        kombu.Queue("orders")(connection.channel()).declare()
        connection.Producer().publish("first", routing_key="orders", serializer="json")
        worker = Worker(connection)
        worker.run(timeout=SECONDS)
        assert worker.bodies == ["first", "second"]
