"""Clients of AMQP 0-9-1 that say at the start that they speak 0-9.

RabbitMQ takes that for the same, and there are clients that count on it: they do what both protocols have.
"""

from __future__ import annotations

from typing import Any

import amqp
import amqp.transport
import pika
import pika.frame
import pytest
from pika.exceptions import ChannelClosedByBroker

from fakeamqp import Broker

SECONDS = 20

HEADER = b"AMQP\1\1\0\x09"

BODY = bytes(range(256)) * 1024
"""More than a frame."""


@pytest.fixture
def pika_0_9(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(pika.frame.ProtocolHeader, "marshal", lambda _: HEADER)
    with pika.BlockingConnection(pika.ConnectionParameters(broker.host, broker.port)) as connection:
        yield connection
        assert broker.connections[0].protocol == "0-9"


@pytest.fixture
def py_amqp_0_9(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(amqp.transport, "AMQP_PROTOCOL_HEADER", HEADER)
    connection = amqp.Connection(f"{broker.host}:{broker.port}", connect_timeout=SECONDS)
    try:
        connection.connect()
        yield connection
        connection.close()
    finally:
        connection.collect()


def test_pika(pika_0_9: Any, broker: Broker) -> None:
    channel = pika_0_9.channel()
    channel.exchange_declare("events", "topic", durable=True)
    channel.queue_declare("orders", durable=True)
    channel.queue_bind("orders", "events", "order.*")
    properties = pika.BasicProperties(headers={"n": 1, "deep": {"list": [True, None]}}, delivery_mode=2)
    channel.basic_publish("events", "order.created", BODY, properties)
    channel.basic_qos(prefetch_count=1)
    method, found, body = next(channel.consume("orders", inactivity_timeout=SECONDS))
    assert (method.routing_key, method.redelivered, body) == ("order.created", False, BODY)
    assert (found.headers, found.delivery_mode) == (properties.headers, 2)
    channel.basic_reject(method.delivery_tag, requeue=True)
    method, _, _ = next(channel.consume("orders", inactivity_timeout=SECONDS))
    assert method.redelivered
    channel.basic_ack(method.delivery_tag)
    channel.cancel()
    broker.queue("orders").wait_for(ready=0, unacked=0, consumers=0)
    channel.queue_unbind("orders", "events", "order.*")
    assert channel.queue_delete("orders").method.message_count == 0
    channel.exchange_delete("events")


def test_pika_in_a_transaction(pika_0_9: Any, broker: Broker) -> None:
    channel = pika_0_9.channel()
    channel.queue_declare("orders", exclusive=True)
    channel.tx_select()
    for end, messages in ((channel.tx_rollback, 0), (channel.tx_commit, 1)):
        channel.basic_publish("", "orders", b"x")
        end()
        assert len(broker.queue("orders").messages) == messages
    assert channel.basic_get("orders", auto_ack=True)[2] == b"x"
    assert channel.basic_get("orders") == (None, None, None)


def test_pika_over_0_9_gets_channel_errors_and_returned_messages(pika_0_9: Any) -> None:
    channel = pika_0_9.channel()
    with pytest.raises(ChannelClosedByBroker) as error:
        channel.queue_declare("unknown", passive=True)
    assert error.value.reply_code == 404
    returned: list[Any] = []
    channel = pika_0_9.channel()
    channel.add_on_return_callback(lambda *given: returned.append(given))
    channel.basic_publish("", "nobody", b"lost", mandatory=True)
    while not returned:
        pika_0_9.process_data_events(SECONDS)
    ((_, method, _, body),) = returned
    assert (method.reply_code, method.routing_key, body) == (312, "nobody", b"lost")


def test_py_amqp(py_amqp_0_9: amqp.Connection, broker: Broker) -> None:
    channel = py_amqp_0_9.channel()
    channel.exchange_declare("events", "direct", auto_delete=False)
    channel.queue_declare("orders", auto_delete=False)
    channel.queue_bind("orders", "events", "created")
    message = amqp.Message(BODY, application_headers={"n": 1 << 40}, delivery_mode=2)
    channel.basic_publish(message, "events", "created")
    got: list[Any] = []
    channel.basic_consume("orders", callback=got.append)
    while not got:
        py_amqp_0_9.drain_events(timeout=SECONDS)
    assert (got[0].body, got[0].headers) == (BODY, {"n": 1 << 40})
    channel.basic_ack(got[0].delivery_tag)
    broker.queue("orders").wait_for(ready=0, unacked=0)
    channel.close()
