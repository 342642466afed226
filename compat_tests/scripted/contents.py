"""Clients of the classes file and stream, in steps that 0-9 and 0-10 share.

A `Peer` is a channel of 0-9 (`contents_0_9`) or a session of 0-10 (`contents_0_10`). Its contents are files
or messages of streams. Steps are named as the methods of the class: `peer.do("Consume", ...)` sends
file.consume or stream.consume.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from typing import Any, ClassVar

from typing_extensions import Self

from compat_tests.scripted import amqp_0_9_1

__all__ = ["Delivered", "Peer", "speaking"]


@dataclass(frozen=True)
class Delivered:
    """A content that has come. `id` is that of its command in 0-10."""

    method: Any
    properties: Any
    body: bytes
    children: Any = ()
    id: int | None = None

    @property
    def tag(self) -> int:
        tag: int = self.method.delivery_tag
        return tag


class Peer(ABC):
    """One channel or session."""

    codec: ClassVar[Any]
    no_wait: ClassVar[str]
    """The field of file.consume and stream.consume that asks for no answer."""

    def __init__(self, server: amqp_0_9_1.Server, content_class: str) -> None:
        self.server = server
        self.content_class = content_class
        self.numbers = count(2)
        """Of further channels of the connection."""

    def kind(self, name: str) -> Any:
        """The class of a method."""
        return getattr(self.codec, self.content_class.capitalize() + name)

    # --- what the protocols do each in their way --------------------------------------------------------

    @abstractmethod
    def sibling(self) -> Peer:
        """Another channel or session of the same connection."""

    @abstractmethod
    def do(self, name: str, **fields: Any) -> Self:
        """Have a method done."""

    @abstractmethod
    def do_content(self, name: str, body: bytes, properties: dict[str, Any], **fields: Any) -> Self:
        """Have a method with a content done."""

    @abstractmethod
    def expect(self, name: str) -> Any:
        """The next that has come, which must be this method."""

    @abstractmethod
    def expect_content(self, name: str) -> Delivered:
        """The next that has come, which must be this method with its content."""

    @abstractmethod
    def expect_nothing(self) -> None: ...

    @abstractmethod
    def ask(self, name: str, **fields: Any) -> Any:
        """Send a method and take the answer, which must be the next that comes."""

    @abstractmethod
    def take_open_ok(self) -> int:
        """Take file.open-ok from among all that has come; it says how much of the content the broker has."""

    @abstractmethod
    def fails(self, code: int, *, connection: bool = False) -> AbstractContextManager[None]:
        """What is done inside ends the channel or session with this code; in 0-9 perhaps the connection.

        There is a new channel or session afterwards.
        """

    @abstractmethod
    def begin_stage(self, body: bytes, size: int) -> None:
        """Send the first octets of a content of this size."""

    @abstractmethod
    def cancel(self, tag: str = "t") -> Self: ...

    @abstractmethod
    def close(self) -> Self:
        """End the channel or session, which gives back what it holds."""

    @abstractmethod
    def end(self) -> Self:
        """End the channel or session, and begin another."""

    @abstractmethod
    def drop(self) -> None:
        """The transport is lost."""

    @abstractmethod
    def has_inbox(self) -> bool:
        """Something has come."""

    @abstractmethod
    def count(self, queue: str = "q") -> int:
        """Ready messages."""

    @abstractmethod
    def declare(self, queue: str = "q", **arguments: Any) -> Self: ...

    @abstractmethod
    def declare_exchange(self, exchange: str, type: str) -> Self: ...

    @abstractmethod
    def delete_exchange(self, exchange: str) -> Self: ...

    @abstractmethod
    def bind(self, queue: str, exchange: str, key: str, arguments: dict[str, Any] | None = None) -> Self: ...

    @abstractmethod
    def fill(self, queue: str, *bodies: bytes) -> Self:
        """Publish messages of the class that is usual in the protocol, basic or message."""

    @abstractmethod
    def select(self) -> Self: ...

    @abstractmethod
    def commit(self) -> Self: ...

    @abstractmethod
    def rollback(self) -> Self: ...

    def after(self, seconds: float) -> Self:
        """Move the broker's time."""
        self.server.advance(seconds)
        return self

    # --- both classes ------------------------------------------------------------------------------------

    def publish(self, body: bytes, key: str = "q", **fields: Any) -> Self:
        """Publish a content, which is staged first if it is a file.

        Fields are `exchange`, `mandatory`, `immediate` and the properties.
        """
        own = {name: fields.pop(name) for name in ("exchange", "mandatory", "immediate") if name in fields}
        if self.content_class == "file":
            self.stage_file(body, **fields)
            self.publish_staged(key, **own)
        else:
            self.do_content("Publish", body, fields, routing_key=key, **own)
        return self

    def consume(self, queue: str = "q", tag: str = "t", **fields: Any) -> Self:
        """Start a consumer; what it is sent stays in the inbox."""
        self.ask("Consume", queue=queue, consumer_tag=tag, **fields)
        return self

    def qos(self, **limits: int) -> Self:
        self.ask("Qos", **limits)
        return self

    def take(self, held: int = 0) -> Delivered:
        """Take a delivery. A file is staged first, but for the octets that are held."""
        if self.content_class == "stream":
            return self.expect_content("Deliver")
        opened = self.expect("Open")
        self.do("OpenOk", staged_size=held)
        staged = self.expect_content("Stage")
        assert len(staged.body) == (opened.content_size or 0) - held
        deliver = self.expect("Deliver")
        assert deliver.identifier == opened.identifier
        return Delivered(deliver, staged.properties, staged.body, staged.children)

    def take_all(self) -> list[Delivered]:
        """All deliveries; nothing else may have come."""
        taken = []
        while self.has_inbox():
            taken.append(self.take())
        return taken

    def bodies(self) -> list[bytes]:
        return [each.body for each in self.take_all()]

    # --- files -------------------------------------------------------------------------------------------

    def open(self, size: int, identifier: str = "f") -> int:
        """Ask to stage a content; answers with how much of it the broker has. What else has come is left."""
        self.do("Open", identifier=identifier, content_size=size)
        return self.take_open_ok()

    def stage(self, body: bytes, **properties: Any) -> Self:
        """Send a content, or the rest of one."""
        return self.do_content("Stage", body, properties)

    def stage_file(self, body: bytes, identifier: str = "f", **properties: Any) -> Self:
        """Stage a whole content."""
        offset = self.open(len(body), identifier)
        self.stage(body[offset:], **properties)
        return self

    def publish_staged(self, key: str = "q", identifier: str = "f", **fields: Any) -> Self:
        return self.do("Publish", routing_key=key, identifier=identifier, **fields)

    def ack(self, tag: int, *, multiple: bool = False) -> Self:
        return self.do("Ack", delivery_tag=tag, multiple=multiple)

    def reject(self, tag: int, *, requeue: bool = False) -> Self:
        return self.do("Reject", delivery_tag=tag, requeue=requeue)


def speaking(server: amqp_0_9_1.Server, protocol: str) -> Any:
    """The same broker, for clients of another protocol."""
    same = import_module(f"compat_tests.scripted.amqp_{protocol.replace('-', '_')}").Server()
    same.asks_for_tickets = protocol == "0-9" and amqp_0_9_1.checks_tickets(server.state.personality)
    same.state, same.clock, same._port = server.state, server.clock, 60_000
    return same
