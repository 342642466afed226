"""The controls of AMQP 0-10, one class each.

Made from spec/amqp-0-10.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.protocols.amqp_0_10.codec.errors import UnknownControl
from fakeamqp.protocols.amqp_0_10.codec.packed import (
    UNREADABLE,
    UNWRITABLE,
    Control,
    encode_fragments,
    read_fragments,
    unreadable,
    unwritable,
)
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet, read_sequence_set
from fakeamqp.protocols.amqp_0_10.codec.structs import CommandFragment
from fakeamqp.protocols.amqp_0_10.codec.types import read_array, read_map
from fakeamqp.protocols.amqp_0_10.codec.writing import encode_array, encode_map

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from typing_extensions import Self

    from fakeamqp.protocols.amqp_0_10.codec.packed import Fields

__all__ = [
    "CONTROLS",
    "ConnectionClose",
    "ConnectionCloseOk",
    "ConnectionHeartbeat",
    "ConnectionOpen",
    "ConnectionOpenOk",
    "ConnectionRedirect",
    "ConnectionSecure",
    "ConnectionSecureOk",
    "ConnectionStart",
    "ConnectionStartOk",
    "ConnectionTune",
    "ConnectionTuneOk",
    "SessionAttach",
    "SessionAttached",
    "SessionCommandPoint",
    "SessionCompleted",
    "SessionConfirmed",
    "SessionDetach",
    "SessionDetached",
    "SessionExpected",
    "SessionFlush",
    "SessionGap",
    "SessionKnownCompleted",
    "SessionRequestTimeout",
    "SessionTimeout",
    "decode",
]

_read_H = struct.Struct(">H").unpack_from
_read_HH = struct.Struct(">HH").unpack_from
_read_I = struct.Struct(">I").unpack_from
_read_Q = struct.Struct(">Q").unpack_from
_pack_B = struct.Struct(">B").pack
_pack_H = struct.Struct(">H").pack
_pack_HH = struct.Struct(">HH").pack
_pack_I = struct.Struct(">I").pack
_pack_Q = struct.Struct(">Q").pack
_CONNECTION_CLOSE_CODE = frozenset((200, 320, 402, 501))
_SESSION_DETACH_CODE = frozenset((0, 1, 2, 3, 4))


class ConnectionStart(Control):
    """connection.start (1.1); received by the client; answered by connection.start-ok."""

    __slots__ = ("locales", "mechanisms", "server_properties")

    NAME: ClassVar[str] = "connection.start"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0101
    FIELDS: ClassVar[Fields] = (("server_properties", "map"), ("mechanisms", "array"), ("locales", "array"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("mechanisms", "locales")
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.start-ok",)

    server_properties: Mapping[str, Any] | None
    mechanisms: Sequence[Any] | None
    locales: Sequence[Any] | None

    def __init__(
        self,
        server_properties: Mapping[str, Any] | None = None,
        mechanisms: Sequence[Any] | None = None,
        locales: Sequence[Any] | None = None,
    ) -> None:
        self.server_properties = server_properties
        self.mechanisms = mechanisms
        self.locales = locales

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.server_properties is not None:
                flags |= 0x0100
                parts.append(encode_map(self.server_properties))
            if self.mechanisms is not None:
                flags |= 0x0200
                parts.append(encode_array(self.mechanisms))
            if self.locales is not None:
                flags |= 0x0400
                parts.append(encode_array(self.locales))
            parts[0] = _pack_HH(0x0101, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0101 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.server_properties, end = read_map(octets, end)
            if flags & 0x0200:
                packed.mechanisms, end = read_array(octets, end)
            if flags & 0x0400:
                packed.locales, end = read_array(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionStartOk(Control):
    """connection.start-ok (1.2); received by the server."""

    __slots__ = ("client_properties", "locale", "mechanism", "response")

    NAME: ClassVar[str] = "connection.start-ok"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0102
    FIELDS: ClassVar[Fields] = (
        ("client_properties", "map"),
        ("mechanism", "str8"),
        ("response", "vbin32"),
        ("locale", "str8"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("mechanism", "response", "locale")
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    client_properties: Mapping[str, Any] | None
    mechanism: str | None
    response: bytes | None
    locale: str | None

    def __init__(
        self,
        client_properties: Mapping[str, Any] | None = None,
        mechanism: str | None = None,
        response: bytes | None = None,
        locale: str | None = None,
    ) -> None:
        self.client_properties = client_properties
        self.mechanism = mechanism
        self.response = response
        self.locale = locale

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.client_properties is not None:
                flags |= 0x0100
                parts.append(encode_map(self.client_properties))
            if self.mechanism is not None:
                flags |= 0x0200
                octets = self.mechanism.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.response is not None:
                flags |= 0x0400
                parts += (_pack_I(len(self.response)), self.response)
            if self.locale is not None:
                flags |= 0x0800
                octets = self.locale.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HH(0x0102, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0102 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.client_properties, end = read_map(octets, end)
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.mechanism = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                start = end + 4
                end = start + _read_I(octets, end)[0]
                packed.response = octets[start:end]
            if flags & 0x0800:
                start = end + 1
                end = start + octets[end]
                packed.locale = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionSecure(Control):
    """connection.secure (1.3); received by the client; answered by connection.secure-ok."""

    __slots__ = ("challenge",)

    NAME: ClassVar[str] = "connection.secure"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0103
    FIELDS: ClassVar[Fields] = (("challenge", "vbin32"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("challenge",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.secure-ok",)

    challenge: bytes | None

    def __init__(self, challenge: bytes | None = None) -> None:
        self.challenge = challenge

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.challenge is not None:
                flags |= 0x0100
                parts += (_pack_I(len(self.challenge)), self.challenge)
            parts[0] = _pack_HH(0x0103, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0103 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                start = end + 4
                end = start + _read_I(octets, end)[0]
                packed.challenge = octets[start:end]
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionSecureOk(Control):
    """connection.secure-ok (1.4); received by the server."""

    __slots__ = ("response",)

    NAME: ClassVar[str] = "connection.secure-ok"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0104
    FIELDS: ClassVar[Fields] = (("response", "vbin32"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("response",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    response: bytes | None

    def __init__(self, response: bytes | None = None) -> None:
        self.response = response

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.response is not None:
                flags |= 0x0100
                parts += (_pack_I(len(self.response)), self.response)
            parts[0] = _pack_HH(0x0104, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0104 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                start = end + 4
                end = start + _read_I(octets, end)[0]
                packed.response = octets[start:end]
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionTune(Control):
    """connection.tune (1.5); received by the client; answered by connection.tune-ok."""

    __slots__ = ("channel_max", "heartbeat_max", "heartbeat_min", "max_frame_size")

    NAME: ClassVar[str] = "connection.tune"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 5
    INDEX: ClassVar[int] = 0x0105
    FIELDS: ClassVar[Fields] = (
        ("channel_max", "uint16"),
        ("max_frame_size", "uint16"),
        ("heartbeat_min", "uint16"),
        ("heartbeat_max", "uint16"),
    )
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.tune-ok",)

    channel_max: int | None
    max_frame_size: int | None
    heartbeat_min: int | None
    heartbeat_max: int | None

    def __init__(
        self,
        channel_max: int | None = None,
        max_frame_size: int | None = None,
        heartbeat_min: int | None = None,
        heartbeat_max: int | None = None,
    ) -> None:
        self.channel_max = channel_max
        self.max_frame_size = max_frame_size
        self.heartbeat_min = heartbeat_min
        self.heartbeat_max = heartbeat_max

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.channel_max is not None:
                flags |= 0x0100
                parts.append(_pack_H(self.channel_max))
            if self.max_frame_size is not None:
                flags |= 0x0200
                parts.append(_pack_H(self.max_frame_size))
            if self.heartbeat_min is not None:
                flags |= 0x0400
                parts.append(_pack_H(self.heartbeat_min))
            if self.heartbeat_max is not None:
                flags |= 0x0800
                parts.append(_pack_H(self.heartbeat_max))
            parts[0] = _pack_HH(0x0105, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0105 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.channel_max = _read_H(octets, end)[0]
                end += 2
            if flags & 0x0200:
                packed.max_frame_size = _read_H(octets, end)[0]
                end += 2
            if flags & 0x0400:
                packed.heartbeat_min = _read_H(octets, end)[0]
                end += 2
            if flags & 0x0800:
                packed.heartbeat_max = _read_H(octets, end)[0]
                end += 2
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionTuneOk(Control):
    """connection.tune-ok (1.6); received by the server."""

    __slots__ = ("channel_max", "heartbeat", "max_frame_size")

    NAME: ClassVar[str] = "connection.tune-ok"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 6
    INDEX: ClassVar[int] = 0x0106
    FIELDS: ClassVar[Fields] = (
        ("channel_max", "uint16"),
        ("max_frame_size", "uint16"),
        ("heartbeat", "uint16"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("channel_max",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    channel_max: int | None
    max_frame_size: int | None
    heartbeat: int | None

    def __init__(
        self, channel_max: int | None = None, max_frame_size: int | None = None, heartbeat: int | None = None
    ) -> None:
        self.channel_max = channel_max
        self.max_frame_size = max_frame_size
        self.heartbeat = heartbeat

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.channel_max is not None:
                flags |= 0x0100
                parts.append(_pack_H(self.channel_max))
            if self.max_frame_size is not None:
                flags |= 0x0200
                parts.append(_pack_H(self.max_frame_size))
            if self.heartbeat is not None:
                flags |= 0x0400
                parts.append(_pack_H(self.heartbeat))
            parts[0] = _pack_HH(0x0106, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0106 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.channel_max = _read_H(octets, end)[0]
                end += 2
            if flags & 0x0200:
                packed.max_frame_size = _read_H(octets, end)[0]
                end += 2
            if flags & 0x0400:
                packed.heartbeat = _read_H(octets, end)[0]
                end += 2
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionOpen(Control):
    """connection.open (1.7).

    Received by the server; answered by connection.open-ok or connection.redirect.
    """

    __slots__ = ("capabilities", "insist", "virtual_host")

    NAME: ClassVar[str] = "connection.open"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 7
    INDEX: ClassVar[int] = 0x0107
    FIELDS: ClassVar[Fields] = (("virtual_host", "str8"), ("capabilities", "array"), ("insist", "bit"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("virtual_host",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.open-ok", "connection.redirect")

    virtual_host: str | None
    capabilities: Sequence[Any] | None
    insist: bool

    def __init__(
        self, virtual_host: str | None = None, capabilities: Sequence[Any] | None = None, insist: bool = False
    ) -> None:
        self.virtual_host = virtual_host
        self.capabilities = capabilities
        self.insist = insist

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.virtual_host is not None:
                flags |= 0x0100
                octets = self.virtual_host.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.capabilities is not None:
                flags |= 0x0200
                parts.append(encode_array(self.capabilities))
            if self.insist:
                flags |= 0x0400
            parts[0] = _pack_HH(0x0107, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0107 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.virtual_host = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                packed.capabilities, end = read_array(octets, end)
            packed.insist = flags & 0x0400 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionOpenOk(Control):
    """connection.open-ok (1.8); received by the client."""

    __slots__ = ("known_hosts",)

    NAME: ClassVar[str] = "connection.open-ok"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 8
    INDEX: ClassVar[int] = 0x0108
    FIELDS: ClassVar[Fields] = (("known_hosts", "array"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)

    known_hosts: Sequence[Any] | None

    def __init__(self, known_hosts: Sequence[Any] | None = None) -> None:
        self.known_hosts = known_hosts

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.known_hosts is not None:
                flags |= 0x0100
                parts.append(encode_array(self.known_hosts))
            parts[0] = _pack_HH(0x0108, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0108 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.known_hosts, end = read_array(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionRedirect(Control):
    """connection.redirect (1.9); received by the client."""

    __slots__ = ("host", "known_hosts")

    NAME: ClassVar[str] = "connection.redirect"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 9
    INDEX: ClassVar[int] = 0x0109
    FIELDS: ClassVar[Fields] = (("host", "str16"), ("known_hosts", "array"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("host",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)

    host: str | None
    known_hosts: Sequence[Any] | None

    def __init__(self, host: str | None = None, known_hosts: Sequence[Any] | None = None) -> None:
        self.host = host
        self.known_hosts = known_hosts

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.host is not None:
                flags |= 0x0100
                octets = self.host.encode("utf-8", "surrogateescape")
                parts += (_pack_H(len(octets)), octets)
            if self.known_hosts is not None:
                flags |= 0x0200
                parts.append(encode_array(self.known_hosts))
            parts[0] = _pack_HH(0x0109, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0109 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.host = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                packed.known_hosts, end = read_array(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionHeartbeat(Control):
    """connection.heartbeat (1.10)."""

    __slots__ = ()

    NAME: ClassVar[str] = "connection.heartbeat"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x010A

    def encode(self) -> bytes:
        """See `Control.encode`."""
        return b"\x01\x0a\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x01\x0a\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class ConnectionClose(Control):
    """connection.close (1.11); received by the client and the server; answered by connection.close-ok."""

    __slots__ = ("reply_code", "reply_text")

    NAME: ClassVar[str] = "connection.close"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x010B
    FIELDS: ClassVar[Fields] = (("reply_code", "uint16"), ("reply_text", "str8"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("reply_code",)
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"reply_code": _CONNECTION_CLOSE_CODE}
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.close-ok",)

    reply_code: int | None
    reply_text: str | None

    def __init__(self, reply_code: int | None = None, reply_text: str | None = None) -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.reply_code is not None:
                flags |= 0x0100
                parts.append(_pack_H(self.reply_code))
            if self.reply_text is not None:
                flags |= 0x0200
                octets = self.reply_text.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HH(0x010B, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x010B or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.reply_code = _read_H(octets, end)[0]
                end += 2
                if packed.reply_code not in _CONNECTION_CLOSE_CODE:
                    raise unreadable(cls, octets)
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.reply_text = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ConnectionCloseOk(Control):
    """connection.close-ok (1.12); received by the client and the server."""

    __slots__ = ()

    NAME: ClassVar[str] = "connection.close-ok"
    CLASS: ClassVar[int] = 1
    CODE: ClassVar[int] = 12
    INDEX: ClassVar[int] = 0x010C
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")

    def encode(self) -> bytes:
        """See `Control.encode`."""
        return b"\x01\x0c\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x01\x0c\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class SessionAttach(Control):
    """session.attach (2.1).

    Received by the server and the client; answered by session.attached or session.detached.
    """

    __slots__ = ("force", "name")

    NAME: ClassVar[str] = "session.attach"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0201
    FIELDS: ClassVar[Fields] = (("name", "vbin16"), ("force", "bit"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("name",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")
    RESPONSES: ClassVar[tuple[str, ...]] = ("session.attached", "session.detached")

    name: bytes | None
    force: bool

    def __init__(self, name: bytes | None = None, force: bool = False) -> None:
        self.name = name
        self.force = force

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.name is not None:
                flags |= 0x0100
                parts += (_pack_H(len(self.name)), self.name)
            if self.force:
                flags |= 0x0200
            parts[0] = _pack_HH(0x0201, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0201 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.name = octets[start:end]
            packed.force = flags & 0x0200 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionAttached(Control):
    """session.attached (2.2); received by the server and the client."""

    __slots__ = ("name",)

    NAME: ClassVar[str] = "session.attached"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0202
    FIELDS: ClassVar[Fields] = (("name", "vbin16"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("name",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    name: bytes | None

    def __init__(self, name: bytes | None = None) -> None:
        self.name = name

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.name is not None:
                flags |= 0x0100
                parts += (_pack_H(len(self.name)), self.name)
            parts[0] = _pack_HH(0x0202, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0202 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.name = octets[start:end]
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionDetach(Control):
    """session.detach (2.3); received by the server and the client; answered by session.detached."""

    __slots__ = ("name",)

    NAME: ClassVar[str] = "session.detach"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0203
    FIELDS: ClassVar[Fields] = (("name", "vbin16"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("name",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")
    RESPONSES: ClassVar[tuple[str, ...]] = ("session.detached",)

    name: bytes | None

    def __init__(self, name: bytes | None = None) -> None:
        self.name = name

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.name is not None:
                flags |= 0x0100
                parts += (_pack_H(len(self.name)), self.name)
            parts[0] = _pack_HH(0x0203, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0203 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.name = octets[start:end]
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionDetached(Control):
    """session.detached (2.4); received by the server and the client."""

    __slots__ = ("code", "name")

    NAME: ClassVar[str] = "session.detached"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0204
    FIELDS: ClassVar[Fields] = (("name", "vbin16"), ("code", "uint8"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("name", "code")
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"code": _SESSION_DETACH_CODE}
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    name: bytes | None
    code: int | None

    def __init__(self, name: bytes | None = None, code: int | None = None) -> None:
        self.name = name
        self.code = code

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.name is not None:
                flags |= 0x0100
                parts += (_pack_H(len(self.name)), self.name)
            if self.code is not None:
                flags |= 0x0200
                parts.append(_pack_B(self.code))
            parts[0] = _pack_HH(0x0204, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0204 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.name = octets[start:end]
            if flags & 0x0200:
                packed.code = octets[end]
                end += 1
                if packed.code not in _SESSION_DETACH_CODE:
                    raise unreadable(cls, octets)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionRequestTimeout(Control):
    """session.request-timeout (2.5); received by the sender and the receiver; answered by session.timeout."""

    __slots__ = ("timeout",)

    NAME: ClassVar[str] = "session.request-timeout"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 5
    INDEX: ClassVar[int] = 0x0205
    FIELDS: ClassVar[Fields] = (("timeout", "uint32"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("sender", "receiver")
    RESPONSES: ClassVar[tuple[str, ...]] = ("session.timeout",)

    timeout: int | None

    def __init__(self, timeout: int | None = None) -> None:
        self.timeout = timeout

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.timeout is not None:
                flags |= 0x0100
                parts.append(_pack_I(self.timeout))
            parts[0] = _pack_HH(0x0205, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0205 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.timeout = _read_I(octets, end)[0]
                end += 4
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionTimeout(Control):
    """session.timeout (2.6); received by the sender and the receiver."""

    __slots__ = ("timeout",)

    NAME: ClassVar[str] = "session.timeout"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 6
    INDEX: ClassVar[int] = 0x0206
    FIELDS: ClassVar[Fields] = (("timeout", "uint32"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("sender", "receiver")

    timeout: int | None

    def __init__(self, timeout: int | None = None) -> None:
        self.timeout = timeout

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.timeout is not None:
                flags |= 0x0100
                parts.append(_pack_I(self.timeout))
            parts[0] = _pack_HH(0x0206, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0206 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.timeout = _read_I(octets, end)[0]
                end += 4
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionCommandPoint(Control):
    """session.command-point (2.7); received by the receiver."""

    __slots__ = ("command_id", "command_offset")

    NAME: ClassVar[str] = "session.command-point"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 7
    INDEX: ClassVar[int] = 0x0207
    FIELDS: ClassVar[Fields] = (("command_id", "sequence-no"), ("command_offset", "uint64"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("command_id", "command_offset")
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("receiver",)

    command_id: int | None
    command_offset: int | None

    def __init__(self, command_id: int | None = None, command_offset: int | None = None) -> None:
        self.command_id = command_id
        self.command_offset = command_offset

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.command_id is not None:
                flags |= 0x0100
                parts.append(_pack_I(self.command_id))
            if self.command_offset is not None:
                flags |= 0x0200
                parts.append(_pack_Q(self.command_offset))
            parts[0] = _pack_HH(0x0207, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0207 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.command_id = _read_I(octets, end)[0]
                end += 4
            if flags & 0x0200:
                packed.command_offset = _read_Q(octets, end)[0]
                end += 8
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionExpected(Control):
    """session.expected (2.8); received by the sender."""

    __slots__ = ("commands", "fragments")

    NAME: ClassVar[str] = "session.expected"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 8
    INDEX: ClassVar[int] = 0x0208
    FIELDS: ClassVar[Fields] = (("commands", "sequence-set"), ("fragments", "array:session.command-fragment"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("commands",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("sender",)

    commands: SequenceSet | None
    fragments: Sequence[CommandFragment] | None

    def __init__(
        self, commands: SequenceSet | None = None, fragments: Sequence[CommandFragment] | None = None
    ) -> None:
        self.commands = commands
        self.fragments = fragments

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.commands is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.commands))
            if self.fragments is not None:
                flags |= 0x0200
                parts.append(encode_fragments(self.fragments))
            parts[0] = _pack_HH(0x0208, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0208 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.commands, end = read_sequence_set(octets, end)
            if flags & 0x0200:
                packed.fragments, end = read_fragments(octets, end, CommandFragment)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionConfirmed(Control):
    """session.confirmed (2.9); received by the sender."""

    __slots__ = ("commands", "fragments")

    NAME: ClassVar[str] = "session.confirmed"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 9
    INDEX: ClassVar[int] = 0x0209
    FIELDS: ClassVar[Fields] = (("commands", "sequence-set"), ("fragments", "array:session.command-fragment"))
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("sender",)

    commands: SequenceSet | None
    fragments: Sequence[CommandFragment] | None

    def __init__(
        self, commands: SequenceSet | None = None, fragments: Sequence[CommandFragment] | None = None
    ) -> None:
        self.commands = commands
        self.fragments = fragments

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.commands is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.commands))
            if self.fragments is not None:
                flags |= 0x0200
                parts.append(encode_fragments(self.fragments))
            parts[0] = _pack_HH(0x0209, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x0209 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.commands, end = read_sequence_set(octets, end)
            if flags & 0x0200:
                packed.fragments, end = read_fragments(octets, end, CommandFragment)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionCompleted(Control):
    """session.completed (2.10); received by the sender."""

    __slots__ = ("commands", "timely_reply")

    NAME: ClassVar[str] = "session.completed"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x020A
    FIELDS: ClassVar[Fields] = (("commands", "sequence-set"), ("timely_reply", "bit"))
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("sender",)

    commands: SequenceSet | None
    timely_reply: bool

    def __init__(self, commands: SequenceSet | None = None, timely_reply: bool = False) -> None:
        self.commands = commands
        self.timely_reply = timely_reply

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.commands is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.commands))
            if self.timely_reply:
                flags |= 0x0200
            parts[0] = _pack_HH(0x020A, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x020A or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.commands, end = read_sequence_set(octets, end)
            packed.timely_reply = flags & 0x0200 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionKnownCompleted(Control):
    """session.known-completed (2.11); received by the receiver."""

    __slots__ = ("commands",)

    NAME: ClassVar[str] = "session.known-completed"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x020B
    FIELDS: ClassVar[Fields] = (("commands", "sequence-set"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("receiver",)

    commands: SequenceSet | None

    def __init__(self, commands: SequenceSet | None = None) -> None:
        self.commands = commands

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.commands is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.commands))
            parts[0] = _pack_HH(0x020B, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x020B or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.commands, end = read_sequence_set(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionFlush(Control):
    """session.flush (2.12); received by the receiver."""

    __slots__ = ("completed", "confirmed", "expected")

    NAME: ClassVar[str] = "session.flush"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 12
    INDEX: ClassVar[int] = 0x020C
    FIELDS: ClassVar[Fields] = (("expected", "bit"), ("confirmed", "bit"), ("completed", "bit"))
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("receiver",)

    expected: bool
    confirmed: bool
    completed: bool

    def __init__(self, expected: bool = False, confirmed: bool = False, completed: bool = False) -> None:
        self.expected = expected
        self.confirmed = confirmed
        self.completed = completed

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        if self.expected:
            flags |= 0x0100
        if self.confirmed:
            flags |= 0x0200
        if self.completed:
            flags |= 0x0400
        return _pack_HH(0x020C, flags)

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x020C or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 4
            packed.expected = flags & 0x0100 != 0
            packed.confirmed = flags & 0x0200 != 0
            packed.completed = flags & 0x0400 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class SessionGap(Control):
    """session.gap (2.13); received by the receiver."""

    __slots__ = ("commands",)

    NAME: ClassVar[str] = "session.gap"
    CLASS: ClassVar[int] = 2
    CODE: ClassVar[int] = 13
    INDEX: ClassVar[int] = 0x020D
    FIELDS: ClassVar[Fields] = (("commands", "sequence-set"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("receiver",)

    commands: SequenceSet | None

    def __init__(self, commands: SequenceSet | None = None) -> None:
        self.commands = commands

    def encode(self) -> bytes:
        """See `Control.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.commands is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.commands))
            parts[0] = _pack_HH(0x020D, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, flags = _read_HH(octets)
            if code != 0x020D or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                packed.commands, end = read_sequence_set(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


#: class << 8 | code -> control
CONTROLS: dict[int, type[Control]] = {
    ConnectionStart.INDEX: ConnectionStart,
    ConnectionStartOk.INDEX: ConnectionStartOk,
    ConnectionSecure.INDEX: ConnectionSecure,
    ConnectionSecureOk.INDEX: ConnectionSecureOk,
    ConnectionTune.INDEX: ConnectionTune,
    ConnectionTuneOk.INDEX: ConnectionTuneOk,
    ConnectionOpen.INDEX: ConnectionOpen,
    ConnectionOpenOk.INDEX: ConnectionOpenOk,
    ConnectionRedirect.INDEX: ConnectionRedirect,
    ConnectionHeartbeat.INDEX: ConnectionHeartbeat,
    ConnectionClose.INDEX: ConnectionClose,
    ConnectionCloseOk.INDEX: ConnectionCloseOk,
    SessionAttach.INDEX: SessionAttach,
    SessionAttached.INDEX: SessionAttached,
    SessionDetach.INDEX: SessionDetach,
    SessionDetached.INDEX: SessionDetached,
    SessionRequestTimeout.INDEX: SessionRequestTimeout,
    SessionTimeout.INDEX: SessionTimeout,
    SessionCommandPoint.INDEX: SessionCommandPoint,
    SessionExpected.INDEX: SessionExpected,
    SessionConfirmed.INDEX: SessionConfirmed,
    SessionCompleted.INDEX: SessionCompleted,
    SessionKnownCompleted.INDEX: SessionKnownCompleted,
    SessionFlush.INDEX: SessionFlush,
    SessionGap.INDEX: SessionGap,
}


def decode(octets: bytes) -> Control:
    """Read a whole control segment. Raises UnknownControl, and what `Packed.decode` raises."""
    control = CONTROLS.get(int.from_bytes(octets[:2], "big"))
    if control is None or len(octets) < 2:
        raise UnknownControl(f"there is no control with the code 0x{octets[:2].hex()}")
    return control.decode(octets)
