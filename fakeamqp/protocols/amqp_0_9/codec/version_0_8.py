"""The methods of 0-8, as far as they are not those of 0-9: this module stands in for `methods`.

0-8 numbers three methods of class connection otherwise, its channel.open-ok has no argument and its consume
methods have no filter. It knows neither class message nor channel.resume, ping, pong and ok; class 120 is
called "test" there, and nobody has it. queue.unbind is not in the document; RabbitMQ adds it, so it stays.

Some clients of 0-8 do send a table with basic.consume (Qpid's variant): all consume methods are read with and
without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9.codec.methods import (
    BasicGetOk,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelFlowOk,
    ConnectionSecure,
    ConnectionTune,
)
from fakeamqp.protocols.framed.codec.method import unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import ClassVar

    from typing_extensions import Self

    from fakeamqp.protocols.framed.codec.method import Layout, Method
    from fakeamqp.protocols.framed.codec.tables import FieldValue, Grammar

__all__ = [
    "METHODS",
    "PROTOCOL_HEADERS",
    "SAME_IN_0_9",
    "VERSION_MAJOR",
    "VERSION_MINOR",
    "BasicConsume",
    "BasicGetOk",
    "BasicReturn",
    "ChannelClose",
    "ChannelCloseOk",
    "ChannelFlow",
    "ChannelFlowOk",
    "ChannelOpenOk",
    "ConnectionClose",
    "ConnectionCloseOk",
    "ConnectionRedirect",
    "ConnectionSecure",
    "ConnectionStart",
    "ConnectionTune",
    "FileConsume",
    "StreamConsume",
]

#: What clients of 0-8 begin with: as the definitions have it, and as the text was once printed.
PROTOCOL_HEADERS: Final = (b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x09\x01")
VERSION_MAJOR: Final = 8
VERSION_MINOR: Final = 0


class ConnectionStart(m.ConnectionStart):
    """connection.start (10, 10); the numbers of the version are those of 0-8."""

    __slots__ = ()

    def __init__(
        self,
        version_major: int = VERSION_MAJOR,
        version_minor: int = VERSION_MINOR,
        server_properties: dict[str, FieldValue] | None = None,
        mechanisms: bytes = b"",
        locales: bytes = b"",
    ) -> None:
        super().__init__(version_major, version_minor, server_properties, mechanisms, locales)


class ConnectionRedirect(m.ConnectionRedirect):
    """connection.redirect (10, 50 in 0-8)."""

    __slots__ = ()

    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x000A0032

    def encode(self) -> bytes:
        """See `Method.encode`."""
        return b"\x00\x0a\x00\x32" + super().encode()[4:]


class ConnectionClose(m.ConnectionClose):
    """connection.close (10, 60 in 0-8)."""

    __slots__ = ()

    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x000A003C

    def encode(self) -> bytes:
        """See `Method.encode`."""
        return b"\x00\x0a\x00\x3c" + super().encode()[4:]


class ConnectionCloseOk(m.ConnectionCloseOk):
    """connection.close-ok (10, 61 in 0-8)."""

    __slots__ = ()

    METHOD_ID: ClassVar[int] = 61
    INDEX: ClassVar[int] = 0x000A003D

    def encode(self) -> bytes:
        """See `Method.encode`."""
        return b"\x00\x0a\x00\x3d"


class ChannelOpenOk(m.ChannelOpenOk):
    """channel.open-ok (20, 11): without the id of the channel, which is not sent whatever it is."""

    __slots__ = ()

    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """See `Method.encode`."""
        return b"\x00\x14\x00\x0b"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """See `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


class BasicConsume(m.BasicConsume):
    """basic.consume (60, 20): a filter is written only where there is one."""

    __slots__ = ()

    def encode(self) -> bytes:
        """See `Method.encode`."""
        return _without_empty_table(super().encode(), self.filter)

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """See `Method.decode`."""
        return super().decode(_with_table(payload), grammar)


class FileConsume(m.FileConsume):
    """file.consume (70, 20): a filter is written only where there is one."""

    __slots__ = ()

    def encode(self) -> bytes:
        """See `Method.encode`."""
        return _without_empty_table(super().encode(), self.filter)

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """See `Method.decode`."""
        return super().decode(_with_table(payload), grammar)


class StreamConsume(m.StreamConsume):
    """stream.consume (80, 20): a filter is written only where there is one."""

    __slots__ = ()

    def encode(self) -> bytes:
        """See `Method.encode`."""
        return _without_empty_table(super().encode(), self.filter)

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """See `Method.decode`."""
        return super().decode(_with_table(payload), grammar)


_EMPTY_TABLE = bytes(4)


def _without_empty_table(payload: bytes, table: Mapping[str, FieldValue]) -> bytes:
    """A consume method without its table, if that is empty."""
    return payload if table else payload[: -len(_EMPTY_TABLE)]


def _with_table(payload: bytes) -> bytes:
    """A consume method with an empty table, if there is none behind ticket, queue, tag and flags."""
    end = 6
    for _ in ("queue", "consumer-tag"):
        end += 1 + int.from_bytes(payload[end : end + 1], "big")
    return payload + _EMPTY_TABLE if len(payload) == end + 1 else payload


_OTHERWISE: dict[type[Method], type[Method]] = {
    m.ConnectionStart: ConnectionStart,
    m.ConnectionRedirect: ConnectionRedirect,
    m.ConnectionClose: ConnectionClose,
    m.ConnectionCloseOk: ConnectionCloseOk,
    m.ChannelOpenOk: ChannelOpenOk,
    m.BasicConsume: BasicConsume,
    m.FileConsume: FileConsume,
    m.StreamConsume: StreamConsume,
}
_ABSENT = ("message.", "channel.resume", "channel.ping", "channel.pong", "channel.ok")

#: class id << 16 | method id -> the same method's number in 0-9
SAME_IN_0_9: Final[dict[int, int]] = {
    _OTHERWISE.get(kind, kind).INDEX: kind.INDEX
    for kind in m.METHODS.values()
    if not kind.NAME.startswith(_ABSENT)
}
#: class id << 16 | method id -> class
METHODS: Final[dict[int, type[Method]]] = {
    index: _OTHERWISE.get(m.METHODS[same], m.METHODS[same]) for index, same in SAME_IN_0_9.items()
}
