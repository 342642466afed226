"""Channels of 0-9 whose contents are files or messages of streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from typing_extensions import Self

from compat_tests.scripted import amqp_0_9
from compat_tests.scripted.contents import Delivered, Peer
from fakeamqp.protocols.amqp_0_9 import codec as codec_0_9
from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method

__all__ = ["Channel"]

M = TypeVar("M", bound=Method)


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

    def do(self, name: str, **fields: Any) -> Self:
        self.client.send(self.kind(name)(**fields), self.number)
        return self

    def do_content(
        self, name: str, body: bytes, properties: dict[str, Any], *, children: Any = (), **fields: Any
    ) -> Self:
        kind = getattr(codec_0_9, f"{self.content_class.capitalize()}Properties")
        method = self.kind(name)(**fields)
        self.client.send_content(
            method, kind(**properties), body, children=children, channel=self.number, frame_size=4000
        )
        return self

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

    def cancel(self, tag: str = "t") -> Self:
        assert self.ask("Cancel", consumer_tag=tag).consumer_tag == tag
        return self

    def close(self) -> Self:
        self.client.close_channel(self.number)
        return self

    def end(self) -> Self:
        self.close()
        self.client.open_channel(self.number)
        return self

    def drop(self) -> None:
        self.client.drop()

    def has_inbox(self) -> bool:
        return bool(self.client.inbox)

    def count(self, queue: str = "q") -> int:
        return self.client.count(queue, self.number)

    def declare(self, queue: str = "q", **arguments: Any) -> Self:
        self.client.declare(queue, channel=self.number, **arguments)
        return self

    def declare_exchange(self, exchange: str, type: str) -> Self:
        self.client.call(m.ExchangeDeclare(exchange=exchange, type=type), m.ExchangeDeclareOk, self.number)
        return self

    def delete_exchange(self, exchange: str) -> Self:
        self.client.call(m.ExchangeDelete(exchange=exchange), m.ExchangeDeleteOk, self.number)
        return self

    def bind(self, queue: str, exchange: str, key: str, arguments: dict[str, Any] | None = None) -> Self:
        self.client.bind(queue, exchange, key, channel=self.number, arguments=arguments or {})
        return self

    def fill(self, queue: str, *bodies: bytes) -> Self:
        self.client.fill(queue, *bodies)
        return self

    def select(self) -> Self:
        self.client.call(m.TxSelect(), m.TxSelectOk, self.number)
        return self

    def commit(self) -> Self:
        self.client.send(m.TxCommit(), self.number)
        self._take(m.TxCommitOk)
        return self

    def rollback(self) -> Self:
        self.client.call(m.TxRollback(), m.TxRollbackOk, self.number)
        return self
