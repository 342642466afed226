"""A client of AMQP 1.0 that uses proton, which is an extra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

from compat_tests.benchmarks.side_by_side.pika_steps import PREFETCH

__all__ = ["Client"]

TIMEOUT = 60


class Client(MessagingHandler):
    """A connection with one sender and one receiver, which has no credit before `consume`."""

    def __init__(self, url: str, queue: str) -> None:
        super().__init__(prefetch=0)
        self._accepted = self._received = 0
        self._container = Container(self)
        self._container.timeout = TIMEOUT
        self._container.start()
        self.connection = self._container.connect(url.rpartition("/")[0])
        self._sender = self._container.create_sender(self.connection, f"/queues/{queue}")
        self._receiver = self._container.create_receiver(self.connection, f"/queues/{queue}")
        self._until(lambda: self._sender.credit > 0)

    def on_accepted(self, event: Any) -> None:
        self._accepted += 1

    def on_message(self, event: Any) -> None:
        self._received += 1
        event.receiver.flow(1)

    def _until(self, happened: Callable[[], bool]) -> None:
        while not happened():
            self._container.process()

    def publish(self, count: int, body: bytes) -> None:
        """Publish, with as many messages on the way as the broker grants credit for; await all outcomes."""
        sent, self._accepted = 0, 0
        while self._accepted < count:
            while sent < count and self._sender.credit:
                self._sender.send(Message(body=body, inferred=True, durable=True))
                sent += 1
            self._container.process()

    def consume(self, count: int) -> None:
        """Consume so many messages, each accepted on its own."""
        self._received = 0
        self._receiver.flow(PREFETCH)
        self._until(lambda: self._received >= count)

    def close(self) -> None:
        self.connection.close()
        while self._container.process():
            pass
        self._container.stop()
