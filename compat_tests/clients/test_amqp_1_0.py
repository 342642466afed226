"""Clients of AMQP 1.0 over real sockets: Apache Qpid Proton, and RabbitMQ's own client for Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pika
import pytest

from fakeamqp import Broker

proton = pytest.importorskip("proton")
utils = pytest.importorskip("proton.utils")


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().queue_declare("q", durable=True)
        yield broker


@pytest.fixture
def connection(broker: Broker) -> Iterator[Any]:
    connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", timeout=10)
    yield connection
    connection.close()


def test_proton_sends_and_receives_more_messages_than_credit_and_window(
    broker: Broker, connection: Any
) -> None:
    sender = connection.create_sender("/queues/q")
    for number in range(500):
        sender.send(proton.Message(body=f"message {number}", durable=True))
    receiver = connection.create_receiver("/queues/q", credit=20)
    for number in range(500):
        assert receiver.receive(timeout=10).body == f"message {number}"
        receiver.accept()
    connection.create_receiver("/queues/q", name="sync").close()  # The settlements have arrived.
    assert (broker.queue("q").ready, broker.queue("q").unacked) == (0, 0)


def test_proton_sends_a_message_of_many_frames(connection: Any) -> None:
    body = bytes(range(256)) * 2000
    connection.create_sender("/queues/q").send(proton.Message(body=body, inferred=True))
    received = connection.create_receiver("/queues/q", credit=1).receive(timeout=10)
    assert bytes(received.body) == body


def test_proton_is_told_that_a_queue_is_missing(connection: Any) -> None:
    with pytest.raises(utils.LinkDetached, match="no queue 'none' in vhost '/'"):
        connection.create_sender("/queues/none")


def test_proton_is_told_that_a_message_was_released(connection: Any) -> None:
    sender = connection.create_sender("/exchanges/amq.direct/nothing")
    with pytest.raises(utils.SendException):
        sender.send(proton.Message(body="x"))


def test_proton_consumes_what_pika_has_published_and_the_other_way_round(
    broker: Broker, connection: Any
) -> None:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as other:
        channel = other.channel()
        properties = pika.BasicProperties(headers={"a": 1}, delivery_mode=2)
        channel.basic_publish("", "q", b"from pika", properties)
        receiver = connection.create_receiver("/queues/q", credit=1)
        message = receiver.receive(timeout=10)
        receiver.accept()
        assert (bytes(message.body), message.properties, message.durable) == (b"from pika", {"a": 1}, True)
        receiver.close()
        sent = proton.Message(body=b"from proton", inferred=True, properties={"b": "t"}, durable=True)
        connection.create_sender("/queues/q").send(sent)
        _, said, body = channel.basic_get("q", auto_ack=True)
        assert (body, said.headers, said.delivery_mode) == (b"from proton", {"b": "t"}, 2)


def test_rabbitmqs_client_declares_binds_publishes_and_purges(broker: Broker) -> None:
    amqp = pytest.importorskip("rabbitmq_amqp_python_client")
    environment = amqp.Environment(uri=f"amqp://guest:guest@127.0.0.1:{broker.port}/")
    connection = environment.connection()
    connection.dial()
    management = connection.management()
    management.declare_queue(amqp.QuorumQueueSpecification(name="orders"))
    management.declare_exchange(amqp.ExchangeSpecification(name="events"))
    binding = amqp.ExchangeToQueueBindingSpecification(
        source_exchange="events", destination_queue="orders", binding_key="k"
    )
    management.bind(binding)
    publisher = connection.publisher(amqp.AddressHelper.exchange_address("events", "k"))
    status = publisher.publish(amqp.Message(body=amqp.Converter.string_to_bytes("hello")))
    assert status.remote_state == amqp.OutcomeState.ACCEPTED
    publisher.close()
    assert [message.body for message in broker.queue("orders").messages] == [b"hello"]
    assert management.purge_queue("orders") == 1
    management.delete_queue("orders")
    management.close()
    environment.close()
    assert "orders" not in [queue.name for queue in broker.queues]
