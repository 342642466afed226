"""Steps with streams that several test files take."""

from __future__ import annotations

from typing import Any

from compat_tests.scripted.amqp_0_9_1 import Client, Content, Server

__all__ = [
    "ALL",
    "BEFORE_4_0",
    "BEFORE_4_2",
    "QUEUE",
    "RABBITMQ",
    "consume",
    "crashed",
    "declare",
    "offsets",
    "read",
    "refused_connection",
]

RABBITMQ = ("rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1", "rabbitmq-4.2", "rabbitmq-4.3")
ALL = (*RABBITMQ, "spec")
BEFORE_4_0 = ("rabbitmq-3.13",)
BEFORE_4_2 = ("rabbitmq-3.13", "rabbitmq-4.0", "rabbitmq-4.1")

QUEUE = "queue 's' in vhost '/'"
"""How texts name the stream."""


def declare(client: Client, **arguments: Any) -> Client:
    """Declare the stream `s`; `max_age="1h"` is `x-max-age`."""
    table = {"x-queue-type": "stream"}
    table.update({f"x-{name.replace('_', '-')}": value for name, value in arguments.items()})
    return client.declare("s", durable=True, arguments=table)


def consume(
    client: Client, offset: Any = "first", tag: str = "", *, channel: int = 1, **arguments: Any
) -> Client:
    """Start a consumer of `s`; `filter="x"` is `x-stream-filter`."""
    table = {f"x-stream-{name.replace('_', '-')}": value for name, value in arguments.items()}
    if offset is not None:
        table["x-stream-offset"] = offset
    return client.consume("s", tag, channel=channel, arguments=table)


def read(server: Server, offset: Any = "first", **arguments: Any) -> list[bytes]:
    """What a client of its own gets that begins there."""
    client = server.client().qos(1000)
    bodies = consume(client, offset, **arguments).bodies()
    client.drop()
    return bodies


def offsets(contents: list[Content]) -> list[Any]:
    """The offsets that deliveries tell."""
    return [(content.properties.headers or {}).get("x-stream-offset") for content in contents]


def refused_connection(client: Client, method: Any, code: int, text: str) -> None:
    """The method ends the connection with this code and text."""
    close = client.ends(method, code)
    assert close.reply_text == text
    assert (close.class_id, close.method_id) == (method.CLASS_ID, method.METHOD_ID)


def crashed(client: Client, method: Any = None) -> None:
    """The method, or what was last sent, ends the connection as RabbitMQ does when it fails itself."""
    if method is not None:
        client.send(method)
    close = client.expect_connection_close(541)
    assert (close.reply_text, close.class_id, close.method_id) == ("INTERNAL_ERROR", 0, 0)
