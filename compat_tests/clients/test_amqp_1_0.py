"""Clients of AMQP 1.0 over real sockets: Apache Qpid Proton, and RabbitMQ's own client for Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pika
import pytest

from fakeamqp import Broker

proton = pytest.importorskip("proton")
reactor: Any = pytest.importorskip("proton.reactor")
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


class Node(reactor.ReceiverOption):  # type: ignore[misc]
    """Asks for a dynamic node with this capability; one for direct replies needs more."""

    def __init__(self, capability: str) -> None:
        self._capability = capability

    def apply(self, link: Any) -> None:
        link.source.capabilities.put_array(False, proton.Data.SYMBOL)
        link.source.capabilities.enter()
        link.source.capabilities.put_symbol(proton.symbol(self._capability))
        link.source.capabilities.exit()
        if self._capability == "rabbitmq:volatile-queue":
            link.source.expiry_policy = proton.Terminus.EXPIRE_WITH_LINK
            link.snd_settle_mode = proton.Link.SND_SETTLED


@pytest.mark.parametrize("capability", ["temporary-queue", "rabbitmq:volatile-queue"])
def test_proton_answers_requests_to_a_dynamic_reply_node(
    broker: Broker, connection: Any, capability: str
) -> None:
    replies = connection.create_receiver(None, dynamic=True, credit=5, options=Node(capability))
    address = replies.link.remote_source.address
    request = proton.Message(body="ping", reply_to=address, correlation_id="1")
    connection.create_sender("/queues/q").send(request)
    responder = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", timeout=10)
    requests = responder.create_receiver("/queues/q", credit=1)
    asked = requests.receive(timeout=10)
    requests.accept()
    reply = proton.Message(body="pong", address=asked.reply_to, correlation_id=asked.correlation_id)
    responder.create_sender(None).send(reply)
    got = replies.receive(timeout=10)
    assert (got.body, got.correlation_id) == ("pong", "1")
    names = [queue.name for queue in broker.queues if queue.name.startswith("amq.")]
    assert len(names) == (capability == "temporary-queue")
    replies.close()
    assert [queue.name for queue in broker.queues] == ["q"]
    responder.close()


def test_pika_answers_a_request_of_proton_over_direct_reply_to(broker: Broker, connection: Any) -> None:
    options = Node("rabbitmq:volatile-queue")
    replies = connection.create_receiver(None, dynamic=True, credit=5, options=options)
    address = replies.link.remote_source.address
    connection.create_sender("/queues/q").send(proton.Message(body="ping", reply_to=address))
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as other:
        channel = other.channel()
        _, said, _ = channel.basic_get("q", auto_ack=True)
        channel.basic_publish("", said.reply_to, b"pong")
        assert bytes(replies.receive(timeout=10).body) == b"pong"


def test_proton_is_told_that_a_dynamic_node_needs_a_capability(connection: Any) -> None:
    with pytest.raises(utils.LinkDetached, match="Dynamic source not supported"):
        utils.SyncRequestResponse(connection, "/queues/q")


def test_proton_uses_addresses_of_version_1_on_rabbitmq_4_0() -> None:
    with Broker(personality="rabbitmq-4.0") as broker:
        connection = utils.BlockingConnection(f"amqp://guest:guest@127.0.0.1:{broker.port}", timeout=10)
        receiver = connection.create_receiver("/topic/news.*", credit=1)
        connection.create_sender("/exchange/amq.topic").send(proton.Message(body="rain", subject="news.uk"))
        assert receiver.receive(timeout=10).body == "rain"
        connection.create_sender("orders").send(proton.Message(body="two apples"))
        assert broker.queue("orders").ready == 1
        connection.close()


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
