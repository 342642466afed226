"""What clients of class file do, in few words."""

from __future__ import annotations

from typing import Any, NamedTuple

from compat_tests.scripted import amqp_0_9_1
from compat_tests.scripted.amqp_0_9 import Client, Server
from fakeamqp.protocols.amqp_0_9.codec import FileProperties, methods as m

__all__ = [
    "File",
    "bodies",
    "consume",
    "open_file",
    "publish",
    "publish_file",
    "speaking_0_9_1",
    "stage",
    "stage_file",
    "take",
]


class File(NamedTuple):
    """A file that the client was sent: what was asked, what was staged, what was delivered."""

    opened: m.FileOpen
    properties: FileProperties
    body: bytes
    deliver: m.FileDeliver
    children: Any

    @property
    def tag(self) -> int:
        return self.deliver.delivery_tag


def open_file(client: Client, size: int, identifier: str = "f", channel: int = 1) -> int:
    """Ask to stage a content; answers with how much of it the broker has. What else has come is left."""
    client.send(m.FileOpen(identifier=identifier, content_size=size), channel)
    inbox = client.inbox
    found = next(each for each in inbox if isinstance(each.method, m.FileOpenOk) and each.channel == channel)
    inbox.remove(found)
    assert isinstance(found.method, m.FileOpenOk)
    return found.method.staged_size


def stage(client: Client, body: bytes, channel: int = 1, **properties: Any) -> None:
    """Send a content, or the rest of one."""
    client.send_content(m.FileStage(), FileProperties(**properties), body, channel=channel)


def stage_file(
    client: Client, body: bytes, identifier: str = "f", channel: int = 1, **properties: Any
) -> None:
    """Stage a whole content."""
    offset = open_file(client, len(body), identifier, channel)
    stage(client, body[offset:], channel, **properties)


def publish(client: Client, key: str = "q", identifier: str = "f", channel: int = 1, **fields: Any) -> None:
    """Publish what is staged."""
    client.send(m.FilePublish(routing_key=key, identifier=identifier, **fields), channel)


def publish_file(
    client: Client, body: bytes, key: str = "q", *, exchange: str = "", channel: int = 1, **properties: Any
) -> None:
    """Stage a content and publish it."""
    stage_file(client, body, "published", channel, **properties)
    publish(client, key, "published", channel, exchange=exchange)


def consume(client: Client, queue: str = "q", tag: str = "t", channel: int = 1, **fields: Any) -> str:
    """Start a consumer; what it is sent stays in the inbox."""
    method = m.FileConsume(queue=queue, consumer_tag=tag, **fields)
    return client.call(method, m.FileConsumeOk, channel).consumer_tag


def take(client: Client, held: int = 0, channel: int = 1) -> File:
    """Have the file staged that the broker asks for, as far as it is not held, and delivered."""
    opened = client.expect(m.FileOpen, channel)
    client.send(m.FileOpenOk(staged_size=held), channel)
    staged = client.expect_content(m.FileStage, channel)
    deliver = client.expect(m.FileDeliver, channel)
    assert deliver.identifier == opened.identifier
    return File(opened, staged.properties, staged.body, deliver, staged.children)


def bodies(client: Client, channel: int = 1) -> list[bytes]:
    """The bodies of all files that the broker stages and delivers, in order."""
    taken = []
    while client.inbox:
        taken.append(take(client, channel=channel).body)
    return taken


def speaking_0_9_1(server: Server) -> amqp_0_9_1.Server:
    """The same broker, for clients of 0-9-1."""
    same = amqp_0_9_1.Server()
    same.state, same.clock, same._port = server.state, server.clock, 60_000
    return same
