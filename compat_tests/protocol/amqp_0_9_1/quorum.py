"""What the tests of quorum queues have in common."""

from __future__ import annotations

from typing import Any

from compat_tests.scripted.amqp_0_9_1 import Client, Content, Server

RABBITMQ = ("rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
ALL = (*RABBITMQ, "spec")


def arguments(**asked: Any) -> dict[str, Any]:
    """Arguments of queue.declare for a quorum queue; max_length is x-max-length."""
    return {"x-queue-type": "quorum", **{f"x-{name.replace('_', '-')}": asked[name] for name in asked}}


def declare(client: Client, name: str = "q", **asked: Any) -> Client:
    return client.declare(name, durable=True, arguments=arguments(**asked))


def client_of(name: str, **asked: Any) -> Client:
    """A client of a new broker, which has the quorum queue q."""
    return declare(Server(name).client(), **asked)


def counts(content: Content) -> tuple[bool, int | None, int | None]:
    """Whether a message is redelivered, and what x-delivery-count and x-acquired-count say."""
    headers = content.properties.headers or {}
    return content.method.redelivered, headers.get("x-delivery-count"), headers.get("x-acquired-count")
