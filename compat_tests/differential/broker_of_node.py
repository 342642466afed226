"""A RabbitMQ node with the few methods of a broker that tests of readers and writers use."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import pika
import pytest

from compat_tests.differential.rabbitmq_node import RabbitMQNode

__all__ = ["BrokerOfNode"]

_COUNTS = """
{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"%s">>)),
list_to_tuple([C || {_, C} <- rabbit_amqqueue:info(Q, [messages_ready, messages_unacknowledged])])
"""
_PATIENCE = 30.0


class BrokerOfNode:
    """What `Broker` offers and RabbitMQ has. A test that uses more is skipped, and names it.

    Attributes:
        management_url: only of nodes that serve the HTTP API.
    """

    management_url: str

    def __init__(self, node: RabbitMQNode, channel: Any) -> None:
        self.url = node.url
        self.channel = channel
        self._node = node

    def __getattr__(self, name: str) -> NoReturn:
        pytest.skip(f"RabbitMQ has no Broker.{name}")

    def declare(self, *queues: str) -> None:
        """Declare durable queues anew."""
        for queue in queues:
            self.channel.queue_delete(queue)
            self.channel.queue_declare(queue, durable=True)

    def publish(self, body: bytes | str, routing_key: str, **properties: Any) -> None:
        """Publish to the default exchange."""
        self.channel.basic_publish("", routing_key, body, pika.BasicProperties(**properties))

    def wait_for(self, condition: Callable[[], object], timeout: float = _PATIENCE) -> None:
        """Wait until a condition holds."""
        ends = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < ends, f"it does not hold after {timeout} seconds"
            self.channel.connection.process_data_events(0.01)

    def queue(self, name: str) -> QueueOfNode:
        """A queue, as it is now."""
        return QueueOfNode(self, name)

    def counts(self, queue: str) -> tuple[int, int]:
        """How many of its messages are ready, and how many are unacknowledged."""
        ready, unacked = map(int, re.findall(r"\d+", self._node.evaluate(_COUNTS % queue)))
        return ready, unacked


class QueueOfNode:
    """A queue of a node."""

    def __init__(self, broker: BrokerOfNode, name: str) -> None:
        self._broker = broker
        self._name = name

    def __getattr__(self, name: str) -> NoReturn:
        pytest.skip(f"RabbitMQ has no Queue.{name}")

    @property
    def ready(self) -> int:
        """The number of ready messages."""
        return self._broker.counts(self._name)[0]

    @property
    def unacked(self) -> int:
        """The number of unacknowledged messages."""
        return self._broker.counts(self._name)[1]

    @property
    def messages(self) -> tuple[SimpleNamespace, ...]:
        """All ready messages, which stay in the queue."""
        found = []
        while (got := self._broker.channel.basic_get(self._name))[0] is not None:
            redelivered, message_id = got[0].redelivered, got[1].message_id
            found.append(SimpleNamespace(body=got[2], message_id=message_id, redelivered=redelivered))
        self._broker.channel.basic_nack(multiple=True)
        return tuple(found)

    def wait_for(self, *, timeout: float = _PATIENCE, **wanted: int) -> None:
        """Wait for numbers of messages: `ready`, `unacked`."""
        ends = time.monotonic() + timeout
        while (found := {name: getattr(self, name) for name in wanted}) != wanted:
            assert time.monotonic() < ends, f"{self._name} has {found}, not {wanted}"

    def purge(self) -> None:
        """Drop all ready messages."""
        self._broker.channel.queue_purge(self._name)
