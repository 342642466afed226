"""Sessions of 0-10 whose contents are files or messages of streams."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

from typing_extensions import Self

from compat_tests.scripted import amqp_0_10
from compat_tests.scripted.contents import Delivered, Peer
from fakeamqp.protocols.amqp_0_10.codec import commands as x, controls as c, structs
from fakeamqp.protocols.amqp_0_10.codec.structs import Packed

__all__ = ["Session"]

P = TypeVar("P", bound=Packed)


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

    def do(self, name: str, **fields: Any) -> Self:
        self.session.call(self.kind(name)(**fields))
        return self

    def do_content(self, name: str, body: bytes, properties: dict[str, Any], **fields: Any) -> Self:
        kind = getattr(structs, f"{self.content_class.capitalize()}Properties")
        self.session.call(self.kind(name)(**fields), header=[kind(**properties)], body=body)
        return self

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

    def cancel(self, tag: str = "t") -> Self:
        return self.do("Cancel", consumer_tag=tag)

    def close(self) -> Self:
        self.session.control(c.SessionDetach(name=self.session.name))
        self._take(c.SessionDetached)
        return self

    def end(self) -> Self:
        self.close()
        self.session = self._begin(self.number)
        return self

    def drop(self) -> None:
        self.session.client.drop()

    def has_inbox(self) -> bool:
        self.session.skip()
        return bool(self.session.client.inbox)

    def count(self, queue: str = "q") -> int:
        return self.session.query(queue).message_count or 0

    def declare(self, queue: str = "q", **arguments: Any) -> Self:
        self.session.declare(queue, **arguments)
        return self

    def declare_exchange(self, exchange: str, type: str) -> Self:
        self.session.declare_exchange(exchange, type)
        return self

    def delete_exchange(self, exchange: str) -> Self:
        self.session.call(x.ExchangeDelete(exchange=exchange))
        return self

    def bind(self, queue: str, exchange: str, key: str, arguments: dict[str, Any] | None = None) -> Self:
        self.session.bind(queue, exchange, key, arguments=arguments)
        return self

    def fill(self, queue: str, *bodies: bytes) -> Self:
        for body in bodies:
            self.session.publish(body, key=queue)
        self.session.call(x.ExecutionSync())
        return self

    def select(self) -> Self:
        self.session.call(x.TxSelect())
        return self

    def commit(self) -> Self:
        self.session.call(x.TxCommit())
        return self

    def rollback(self) -> Self:
        self.session.call(x.TxRollback())
        return self
