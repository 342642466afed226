"""A shop in four desks that know events, not each other.

Events go to one topic exchange, under keys such as `order.placed.eu`: what happened, and in which region.
Each desk has its own queue and binds it to what it cares about.
"""

from __future__ import annotations

import json

import pika
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

EXCHANGE = "shop"


def publish(channel: BlockingChannel, event: str, region: str, order: dict[str, object]) -> None:
    channel.basic_publish(
        exchange=EXCHANGE,
        routing_key=f"order.{event}.{region}",
        body=json.dumps(order).encode(),
        properties=pika.BasicProperties(content_type="application/json", type=event),
    )


class Desk:
    """Binds `queue` to `keys` of the shop's exchange and handles what comes."""

    queue: str
    keys: tuple[str, ...]

    def __init__(self, connection: pika.BlockingConnection) -> None:
        self.channel = connection.channel()
        self.channel.exchange_declare(EXCHANGE, exchange_type="topic", durable=True)
        self.channel.queue_declare(self.queue, durable=True)
        for key in self.keys:
            self.channel.queue_bind(self.queue, EXCHANGE, key)
        self.channel.basic_consume(self.queue, self._on_event)

    def handle(self, event: str, region: str, order: dict[str, object]) -> None:
        raise NotImplementedError

    def _on_event(
        self, channel: BlockingChannel, method: Basic.Deliver, properties: pika.BasicProperties, body: bytes
    ) -> None:
        _, event, region = method.routing_key.split(".")
        self.handle(event, region, json.loads(body))
        channel.basic_ack(method.delivery_tag)


class OrderDesk:
    """Takes orders from customers."""

    def __init__(self, connection: pika.BlockingConnection) -> None:
        self._channel = connection.channel()
        self._channel.exchange_declare(EXCHANGE, exchange_type="topic", durable=True)

    def place(self, order_id: str, region: str, cents: int) -> None:
        publish(self._channel, "placed", region, {"id": order_id, "cents": cents})


class BillingDesk(Desk):
    """Bills every order that is placed, wherever it comes from; nothing is sent out for free."""

    queue = "billing"
    keys = ("order.placed.*",)

    def handle(self, event: str, region: str, order: dict[str, object]) -> None:
        publish(self.channel, "paid" if order["cents"] else "refused", region, order)


class ShippingDesk(Desk):
    """Ships paid orders within Europe."""

    queue = "shipping"
    keys = ("order.paid.eu", "order.paid.uk")

    def __init__(self, connection: pika.BlockingConnection) -> None:
        self.shipped: list[str] = []
        super().__init__(connection)

    def handle(self, event: str, region: str, order: dict[str, object]) -> None:
        self.shipped.append(str(order["id"]))
        publish(self.channel, "shipped", region, order)


class AuditDesk(Desk):
    """Writes down everything."""

    queue = "audit"
    keys = ("order.#",)

    def __init__(self, connection: pika.BlockingConnection) -> None:
        self.log: list[str] = []
        super().__init__(connection)

    def handle(self, event: str, region: str, order: dict[str, object]) -> None:
        self.log.append(f"{order['id']} {event} in {region}")
