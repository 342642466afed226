"""What a test that uses a broker of its own pays for it: start, one conversation with pika, stop."""

from __future__ import annotations

import pika

from fakeamqp import Broker

__all__ = ["client_cycle", "fresh_broker_cycle"]


def client_cycle(url: str) -> None:
    """Connect, declare, publish with confirm, get, close."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("cycle", exclusive=True)
    channel.basic_publish("", "cycle", b"body", mandatory=True)
    _method, _properties, body = channel.basic_get("cycle", auto_ack=True)
    assert body == b"body"
    connection.close()


def fresh_broker_cycle() -> None:
    """The same with a broker that lives just as long."""
    with Broker() as broker:
        client_cycle(broker.url)
