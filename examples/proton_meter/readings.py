"""A service that collects readings of electricity meters over AMQP 1.0, with Apache Qpid Proton."""

from __future__ import annotations

from typing import Any

from proton import Delivery, Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

QUEUE = "/queues/readings"


class Meter(MessagingHandler):
    """Sends readings, each again until the broker has accepted it. Settled deliveries are not sent twice."""

    def __init__(self, url: str, meter: str, readings: list[int]) -> None:
        super().__init__()
        self.url = url
        self.meter = meter
        self.unsent = list(readings)
        self.pending: dict[Any, int] = {}
        self.attempts = 0

    def on_start(self, event: Any) -> None:
        connection = event.container.connect(self.url, reconnect=[0, 0.02, 0.05])
        event.container.create_sender(connection, QUEUE)

    def on_sendable(self, event: Any) -> None:
        while self.unsent and event.sender.credit:
            reading = self.unsent.pop(0)
            message = Message(
                body=str(reading).encode(), inferred=True, durable=True, properties={"meter": self.meter}
            )
            self.pending[event.sender.send(message)] = reading
            self.attempts += 1

    def on_settled(self, event: Any) -> None:
        reading = self.pending.pop(event.delivery, None)
        if reading is not None and event.delivery.remote_state != Delivery.ACCEPTED:
            self.unsent.append(reading)
            self.on_sendable(event)
        if not self.unsent and not self.pending:
            event.connection.close()

    def on_disconnected(self, event: Any) -> None:
        """What was not settled is sent again on the next connection."""
        self.unsent = [*self.pending.values(), *self.unsent]
        self.pending.clear()


class Collector(MessagingHandler):
    """Adds up readings until it has enough; rejects what is no number."""

    def __init__(self, url: str, count: int) -> None:
        super().__init__(prefetch=10, auto_accept=False)
        self.url = url
        self.count = count
        self.totals: dict[str, int] = {}
        self.rejected: list[str] = []

    def on_start(self, event: Any) -> None:
        connection = event.container.connect(self.url, reconnect=[0, 0.02, 0.05])
        event.container.create_receiver(connection, QUEUE)

    def on_message(self, event: Any) -> None:
        message = event.message
        text = bytes(message.body).decode()
        meter = (message.properties or {}).get("meter", "unknown")
        if text.isdecimal():
            self.totals[meter] = self.totals.get(meter, 0) + int(text)
            self.accept(event.delivery)
        else:
            self.rejected.append(text)
            self.reject(event.delivery)
        self.count -= 1
        if not self.count:
            event.connection.close()


def send(url: str, meter: str, readings: list[int]) -> Meter:
    """Send readings; returns once the broker has accepted all."""
    sender = Meter(url, meter, readings)
    Container(sender).run()
    return sender


def collect(url: str, count: int) -> Collector:
    """Take so many readings."""
    collector = Collector(url, count)
    Container(collector).run()
    return collector
