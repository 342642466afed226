"""The methods of 0-8: those of 0-9 with a few differences.

In 0-8 three methods of class connection have other numbers, channel.open-ok has no argument and the consume
methods have no filter. Class message and channel.resume, ping, pong and ok do not exist. Class 120 is called
"test"; no implementation of it is known. queue.unbind is an addition of RabbitMQ.

Some clients of 0-8 send a table with basic.consume (Qpid's variant): all consume methods are decoded with and
without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fakeamqp.protocols.amqp_0_9.codec import methods as m
from fakeamqp.protocols.amqp_0_9_1.codec.fields import Octet
from fakeamqp.protocols.amqp_0_9_1.codec.method import BOTH, CLIENT, Method, bare_method, method

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.protocols.amqp_0_9_1.codec.tables import FieldValue, Grammar

#: The protocol headers of 0-8: that of the definitions, and that of an early print of the text.
PROTOCOL_HEADERS: Final = (b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x09\x01")
VERSION: Final = (8, 0)


@method(
    "connection.start",
    10,
    10,
    received_by=CLIENT,
    synchronous=True,
    responses=("connection.start-ok",),
)
class ConnectionStart(m.ConnectionStart):
    """The version numbers are those of 0-8."""

    version_major: Octet = 8
    version_minor: Octet = 0


@method("connection.redirect", 10, 50, received_by=CLIENT, synchronous=True)
class ConnectionRedirect(m.ConnectionRedirect):
    """Number 42 in 0-9."""


@method(
    "connection.close",
    10,
    60,
    received_by=BOTH,
    synchronous=True,
    responses=("connection.close-ok",),
)
class ConnectionClose(m.ConnectionClose):
    """Number 50 in 0-9."""


class _Consume(Method):
    """A consume method that is encoded without its filter when that is empty."""

    __slots__ = ()

    if TYPE_CHECKING:
        filter: dict[str, FieldValue]

    def encode(self) -> bytes:
        payload = super().encode()
        return payload if self.filter else payload[: -len(_EMPTY_TABLE)]

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        return super().decode(_with_table(payload), grammar)


class BasicConsume(_Consume, m.BasicConsume):
    """basic.consume (60, 20)."""

    __slots__ = ()


class FileConsume(_Consume, m.FileConsume):
    """file.consume (70, 20)."""

    __slots__ = ()


class StreamConsume(_Consume, m.StreamConsume):
    """stream.consume (80, 20)."""

    __slots__ = ()


ChannelOpenOk: Final = bare_method("channel.open-ok", 20, 11, received_by=CLIENT)
ConnectionCloseOk: Final = bare_method(
    "connection.close-ok", 10, 61, received_by=BOTH, note="Number 51 in 0-9."
)

_EMPTY_TABLE = bytes(4)


def _with_table(payload: bytes) -> bytes:
    """The payload with an empty table, if it ends after ticket, queue, tag and flags."""
    end = 6
    for _ in ("queue", "consumer-tag"):
        end += 1 + int.from_bytes(payload[end : end + 1], "big")
    return payload + _EMPTY_TABLE if len(payload) == end + 1 else payload


_DIFFERENT: dict[type[Method], type[Method]] = {
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
    _DIFFERENT.get(kind, kind).INDEX: kind.INDEX
    for kind in m.METHODS.values()
    if not kind.NAME.startswith(_ABSENT)
}
#: class id << 16 | method id -> class
METHODS: Final[dict[int, type[Method]]] = {
    index: _DIFFERENT.get(m.METHODS[same], m.METHODS[same]) for index, same in SAME_IN_0_9.items()
}
