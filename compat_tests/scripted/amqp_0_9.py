"""A raw 0-9 client on a sans-I/O broker: that of the folder above, with all classes of contents.

Methods may come from the vocabulary of 0-9 or 0-9-1, whose bytes are the same where both have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import Self

from compat_tests.scripted import amqp_0_9_1
from fakeamqp.connection import PeerAddress
from fakeamqp.model.personality import Personality
from fakeamqp.protocols.amqp_0_9.choices import Amqp09Choices
from fakeamqp.protocols.amqp_0_9.codec import (
    BasicProperties,
    FileProperties,
    StreamProperties,
    TunnelProperties,
)
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER, frame, split_body
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.codec.properties import Properties

__all__ = ["PROTOCOL_HEADER", "Child", "Client", "Content", "Server", "content"]

PROTOCOL_HEADER = amqp_0_9_1.PROTOCOL_HEADERS["0-9"]

PROPERTIES: dict[int, type[Properties]] = {
    60: BasicProperties,
    70: FileProperties,
    80: StreamProperties,
    110: TunnelProperties,
}


@dataclass(frozen=True)
class Child:
    """A content inside of another: class, properties and body."""

    class_id: int
    properties: bytes
    body: bytes = b""
    children: tuple[Child, ...] = ()


@dataclass(frozen=True)
class Content:
    """A method with its content, whatever the class of that."""

    method: Any
    properties: Any
    body: bytes
    children: tuple[Child, ...] = ()


class Server(amqp_0_9_1.Server):
    """A broker without sockets whose clients speak 0-9; with `tickets` they show some where they have to."""

    def __init__(
        self, name: str | Personality = "rabbitmq-4.3", *, tickets: bool = False, **state: Any
    ) -> None:
        super().__init__(name, protocol="0-9", tickets=tickets, **state)

    def varied(self, **choices: Any) -> Server:
        """Another broker like this one, but for some choices about 0-9."""
        known = self.state.personality
        varied = replace(
            known, extensions={Amqp09Choices: replace(known.extension(Amqp09Choices), **choices)}
        )
        return Server(varied, tickets=self.asks_for_tickets)

    def connect(self, **peer: Any) -> Client:
        self._port += 1
        return Client(self, PeerAddress(**{"port": self._port, **peer}))

    def client(self, *, channels: int = 1, **handshake: Any) -> Client:
        client = super().client(channels=channels, **handshake)
        assert isinstance(client, Client)
        return client


class Client(amqp_0_9_1.Client):
    """One raw connection."""

    def send_content(
        self,
        method: Method,
        properties: Properties | None = None,
        body: bytes = b"",
        *,
        children: Sequence[Child] = (),
        channel: int = 1,
        frame_size: int = 100_000,
    ) -> Self:
        """A method with a content of its class, in three or more frames."""
        octets = (properties or PROPERTIES[method.CLASS_ID]()).encode()
        child = Child(method.CLASS_ID, octets, body, tuple(children))
        return self.send_bytes(self.method_frame(method, channel) + content(child, channel, frame_size))

    def expect_content(self, method_class: type[Method], channel: int = 1) -> Any:
        method = self.expect(method_class, channel)
        child = self._take_content(channel)
        assert child.class_id == method.CLASS_ID
        properties = PROPERTIES[child.class_id].decode(child.properties, 0, self.grammar)
        return Content(method, properties, child.body, child.children)

    def _take_content(self, channel: int) -> Child:
        header = self.take_frame()
        assert (header.type, header.channel) == (2, channel), f"expected a content header, got {header}"
        class_id, weight, size = CONTENT_HEADER.unpack_from(header.payload)
        children = tuple(self._take_content(channel) for _ in range(weight))
        body = b""
        while len(body) < size:
            part = self.take_frame()
            assert (part.type, part.channel) == (3, channel), f"expected a content body, got {part}"
            body += part.payload
        return Child(class_id, header.payload[CONTENT_HEADER.size :], body, children)


def content(child: Child, channel: int = 1, frame_size: int = 100_000) -> bytes:
    """The frames of a content: its header, its children, its own body."""
    header = CONTENT_HEADER.pack(child.class_id, len(child.children), len(child.body)) + child.properties
    return b"".join(
        [
            frame(2, channel, header),
            *(content(inner, channel, frame_size) for inner in child.children),
            *split_body(child.body, channel, frame_size),
        ]
    )
