"""Clients of the classes file and stream, in steps that 0-9 and 0-10 share.

A `Peer` is a channel of 0-9 or a session of 0-10. Its contents are files or messages of streams. Steps are
named as the methods of the class: `peer.do("Consume", ...)` sends file.consume or stream.consume.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, TypeVar

from compat_tests.scripted import amqp_0_9, amqp_0_9_1, amqp_0_10
from fakeamqp.protocols.amqp_0_9 import codec as codec_0_9
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Packed

__all__ = ["Channel", "Delivered", "Peer", "Session", "speaking"]

M = TypeVar("M", bound=Method)
P = TypeVar("P", bound=Packed)


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
    def do(self, name: str, **fields: Any) -> None:
        """Have a method done."""

    @abstractmethod
    def do_content(self, name: str, body: bytes, properties: dict[str, Any], **fields: Any) -> None:
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
    def cancel(self, tag: str = "t") -> None: ...

    @abstractmethod
    def close(self) -> None:
        """End the channel or session, which gives back what it holds."""

    @abstractmethod
    def end(self) -> None:
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
    def declare(self, queue: str = "q", **arguments: Any) -> None: ...

    @abstractmethod
    def declare_exchange(self, exchange: str, type: str) -> None: ...

    @abstractmethod
    def delete_exchange(self, exchange: str) -> None: ...

    @abstractmethod
    def bind(self, queue: str, exchange: str, key: str, arguments: dict[str, Any] | None = None) -> None: ...

    @abstractmethod
    def fill(self, queue: str, *bodies: bytes) -> None:
        """Publish messages of the class that is usual in the protocol, basic or message."""

    @abstractmethod
    def select(self) -> None: ...

    @abstractmethod
    def commit(self) -> None: ...

    @abstractmethod
    def rollback(self) -> None: ...

    # --- both classes ------------------------------------------------------------------------------------

    def publish(self, body: bytes, key: str = "q", **fields: Any) -> None:
        """Publish a content, which is staged first if it is a file.

        Fields are `exchange`, `mandatory`, `immediate` and the properties.
        """
        own = {name: fields.pop(name) for name in ("exchange", "mandatory", "immediate") if name in fields}
        if self.content_class == "file":
            self.stage_file(body, **fields)
            self.publish_staged(key, **own)
        else:
            self.do_content("Publish", body, fields, routing_key=key, **own)

    def consume(self, queue: str = "q", tag: str = "t", **fields: Any) -> str:
        """Start a consumer; what it is sent stays in the inbox."""
        tag = self.ask("Consume", queue=queue, consumer_tag=tag, **fields).consumer_tag
        return tag

    def qos(self, **limits: int) -> None:
        self.ask("Qos", **limits)

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

    def stage(self, body: bytes, **properties: Any) -> None:
        """Send a content, or the rest of one."""
        self.do_content("Stage", body, properties)

    def stage_file(self, body: bytes, identifier: str = "f", **properties: Any) -> None:
        """Stage a whole content."""
        offset = self.open(len(body), identifier)
        self.stage(body[offset:], **properties)

    def publish_staged(self, key: str = "q", identifier: str = "f", **fields: Any) -> None:
        self.do("Publish", routing_key=key, identifier=identifier, **fields)

    def ack(self, tag: int, *, multiple: bool = False) -> None:
        self.do("Ack", delivery_tag=tag, multiple=multiple)

    def reject(self, tag: int, *, requeue: bool = False) -> None:
        self.do("Reject", delivery_tag=tag, requeue=requeue)


class Channel(Peer):
    """A channel of 0-9."""

    codec = m
    no_wait = "no_wait"

    def __init__(self, client: amqp_0_9.Client, content_class: str, number: int = 1) -> None:
        super().__init__(client.server, content_class)
        self.client = client
        self.number = number

    def sibling(self) -> Channel:
        sibling = Channel(self.client, self.content_class, next(self.numbers))
        sibling.numbers = self.numbers
        self.client.open_channel(sibling.number)
        return sibling

    def do(self, name: str, **fields: Any) -> None:
        self.client.send(self.kind(name)(**fields), self.number)

    def do_content(
        self, name: str, body: bytes, properties: dict[str, Any], *, children: Any = (), **fields: Any
    ) -> None:
        kind = getattr(codec_0_9, f"{self.content_class.capitalize()}Properties")
        method = self.kind(name)(**fields)
        self.client.send_content(
            method, kind(**properties), body, children=children, channel=self.number, frame_size=4000
        )

    def expect(self, name: str) -> Any:
        return self.client.expect(self.kind(name), self.number)

    def expect_content(self, name: str) -> Delivered:
        content = self.client.expect_content(self.kind(name), self.number)
        return Delivered(content.method, content.properties, content.body, content.children)

    def expect_nothing(self) -> None:
        self.client.expect_nothing()

    def ask(self, name: str, **fields: Any) -> Any:
        return self.client.call(self.kind(name)(**fields), self.kind(f"{name}Ok"), self.number)

    def _take(self, kind: type[M]) -> M:
        """Take a method from among all that has come."""
        inbox = self.client.inbox
        (found,) = [each for each in inbox if isinstance(each.method, kind) and each.channel == self.number]
        inbox.remove(found)
        assert isinstance(found.method, kind)
        return found.method

    def take_open_ok(self) -> int:
        return self._take(m.FileOpenOk).staged_size

    @contextmanager
    def fails(self, code: int, *, connection: bool = False) -> Iterator[None]:
        yield
        if connection:
            self.client.expect_connection_close(code)
            self.client, self.number = self.server.client(), 1
        else:
            self.client.expect_channel_close(code, self.number)
            self.client.open_channel(self.number)

    def begin_stage(self, body: bytes, size: int) -> None:
        self.do("Stage")
        self.client.send_frame(2, self.number, CONTENT_HEADER.pack(70, 0, size) + b"\0\0")
        if body:
            self.client.send_frame(3, self.number, body)

    def cancel(self, tag: str = "t") -> None:
        assert self.ask("Cancel", consumer_tag=tag).consumer_tag == tag

    def close(self) -> None:
        self.client.close_channel(self.number)

    def end(self) -> None:
        self.close()
        self.client.open_channel(self.number)

    def drop(self) -> None:
        self.client.drop()

    def has_inbox(self) -> bool:
        return bool(self.client.inbox)

    def count(self, queue: str = "q") -> int:
        return self.client.count(queue, self.number)

    def declare(self, queue: str = "q", **arguments: Any) -> None:
        self.client.declare(queue, channel=self.number, **arguments)

    def declare_exchange(self, exchange: str, type: str) -> None:
        self.client.call(m.ExchangeDeclare(exchange=exchange, type=type), m.ExchangeDeclareOk, self.number)

    def delete_exchange(self, exchange: str) -> None:
        self.client.call(m.ExchangeDelete(exchange=exchange), m.ExchangeDeleteOk, self.number)

    def bind(self, queue: str, exchange: str, key: str, arguments: dict[str, Any] | None = None) -> None:
        self.client.bind(queue, exchange, key, channel=self.number, arguments=arguments or {})

    def fill(self, queue: str, *bodies: bytes) -> None:
        self.client.fill(queue, *bodies)

    def select(self) -> None:
        self.client.call(m.TxSelect(), m.TxSelectOk, self.number)

    def commit(self) -> None:
        self.client.send(m.TxCommit(), self.number)
        self._take(m.TxCommitOk)

    def rollback(self) -> None:
        self.client.call(m.TxRollback(), m.TxRollbackOk, self.number)


class Session(Peer):
    """A session of 0-10."""

    codec = x
    no_wait = "nowait"
    _names = count()

    def __init__(self, session: amqp_0_10.Session, content_class: str) -> None:
        super().__init__(session.client.server, content_class)
        self.session = session

    @classmethod
    def on(cls, client: amqp_0_10.Client, content_class: str, timeout: int | None = 0) -> Session:
        """A session on channel 1 of a connection, which outlasts its transport by `timeout`."""
        return cls(client.session(b"s%d" % next(cls._names), 1, timeout=timeout), content_class)

    @property
    def number(self) -> int:
        return self.session.channel

    def _begin(self, channel: int) -> amqp_0_10.Session:
        return self.session.client.session(b"s%d" % next(self._names), channel)

    def sibling(self) -> Session:
        sibling = Session(self._begin(next(self.numbers)), self.content_class)
        sibling.numbers = self.numbers
        return sibling

    def do(self, name: str, **fields: Any) -> None:
        self.session.call(self.kind(name)(**fields))

    def do_content(self, name: str, body: bytes, properties: dict[str, Any], **fields: Any) -> None:
        kind = getattr(structs, f"{self.content_class.capitalize()}Properties")
        self.session.call(self.kind(name)(**fields), header=[kind(**properties)], body=body)

    def expect(self, name: str) -> Any:
        return self.session.news(self.kind(name))

    def expect_content(self, name: str) -> Delivered:
        got = self.session.arrival(self.kind(name))
        (properties,) = structs.decode_header(got.header or b"")
        kind = getattr(structs, f"{self.content_class.capitalize()}Properties")
        assert isinstance(properties, kind)
        return Delivered(got.what, properties, got.body or b"", id=got.id)

    def expect_nothing(self) -> None:
        self.session.expect_nothing()

    def ask(self, name: str, **fields: Any) -> Any:
        self.session.send(self.kind(name)(**fields))
        return self.expect(f"{name}Ok")

    def _take(self, kind: type[P]) -> P:
        """Take a control or command from among all that has come."""
        inbox = self.session.client.inbox
        (found,) = [each for each in inbox if isinstance(each.what, kind) and each.channel == self.number]
        inbox.remove(found)
        assert isinstance(found.what, kind)
        return found.what

    def take_open_ok(self) -> int:
        return self._take(x.FileOpenOk).staged_size or 0

    @contextmanager
    def fails(self, code: int, *, connection: bool = False) -> Iterator[None]:
        try:
            yield
        except amqp_0_10.SessionFailed as problem:
            assert problem.code == code, f"expected {code}, got {problem}"
            self.session.control(c.SessionDetached(name=self.session.name, code=0))
            self.session = self._begin(self.number)
        else:
            raise AssertionError(f"the session is expected to fail with {code}")

    def begin_stage(self, body: bytes, size: int) -> None:
        client = self.session.client
        header = [structs.FileProperties()]
        octets = bytearray(client.command_bytes(x.FileStage(), self.number, header=header, body=body))
        last_frame = len(octets) - len(body) - amqp_0_10.HEADER_SIZE
        octets[last_frame] &= 0xFE  # It is not the last of its segment.
        client.send_bytes(bytes(octets))

    def cancel(self, tag: str = "t") -> None:
        self.do("Cancel", consumer_tag=tag)

    def close(self) -> None:
        self.session.control(c.SessionDetach(name=self.session.name))
        self._take(c.SessionDetached)

    def end(self) -> None:
        self.close()
        self.session = self._begin(self.number)

    def drop(self) -> None:
        self.session.client.drop()

    def has_inbox(self) -> bool:
        self.session.skip()
        return bool(self.session.client.inbox)

    def count(self, queue: str = "q") -> int:
        return self.session.query(queue).message_count or 0

    def declare(self, queue: str = "q", **arguments: Any) -> None:
        self.session.declare(queue, **arguments)

    def declare_exchange(self, exchange: str, type: str) -> None:
        self.session.declare_exchange(exchange, type)

    def delete_exchange(self, exchange: str) -> None:
        self.session.call(x.ExchangeDelete(exchange=exchange))

    def bind(self, queue: str, exchange: str, key: str, arguments: dict[str, Any] | None = None) -> None:
        self.session.bind(queue, exchange, key, arguments=arguments)

    def fill(self, queue: str, *bodies: bytes) -> None:
        for body in bodies:
            self.session.publish(body, key=queue)
        self.session.call(x.ExecutionSync())

    def select(self) -> None:
        self.session.call(x.TxSelect())

    def commit(self) -> None:
        self.session.call(x.TxCommit())

    def rollback(self) -> None:
        self.session.call(x.TxRollback())


def speaking(server: amqp_0_9_1.Server, protocol: str) -> Any:
    """The same broker, for clients of another protocol."""
    kinds = {"0-9-1": amqp_0_9_1.Server, "0-9": amqp_0_9.Server, "0-10": amqp_0_10.Server}
    same = kinds[protocol]()
    same.asks_for_tickets = protocol == "0-9" and amqp_0_9_1.checks_tickets(server.state.personality)
    same.state, same.clock, same._port = server.state, server.clock, 60_000
    return same
