"""Services that put what they are handed in a list."""

from __future__ import annotations

from collections.abc import Callable

from compat_tests.scripted.amqp_0_9_1 import Server
from fakeamqp.model.exchanges.system import Service
from fakeamqp.model.messages.message import Message

__all__ = ["add_service", "bodies"]


def add_service(
    server: Server, key: str, *contents: str, handle: Callable[[Message], object] | None = None
) -> list[Message]:
    """Have the messages for a service, which takes these classes of contents, put in a list."""
    got: list[Message] = []
    server.vhost.exchanges.add_system("amq.system")
    service = Service(server.vhost, key, handle or got.append, frozenset(contents) or None)
    server.vhost.services[key] = service
    return got


def bodies(messages: list[Message]) -> list[bytes]:
    """The bodies of messages."""
    return [message.body for message in messages]
