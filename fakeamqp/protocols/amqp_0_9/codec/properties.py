"""The content properties of AMQP 0-9.

Made from spec/amqp-0-9.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.protocols.amqp_0_9_1.codec.properties import BasicProperties
from fakeamqp.protocols.framed.codec.method import UNREADABLE, UNWRITABLE, forbid_nul, unwritable
from fakeamqp.protocols.framed.codec.properties import Properties, skip_flag_words, unreadable_properties
from fakeamqp.protocols.framed.codec.strings import OCTET

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.protocols.framed.codec.method import Layout
    from fakeamqp.protocols.framed.codec.properties import RawTable
    from fakeamqp.protocols.framed.codec.tables import FieldValue, Grammar

__all__ = ["BasicProperties", "FileProperties", "StreamProperties", "TunnelProperties"]

_read_H = Struct(">H").unpack_from
_read_Q = Struct(">Q").unpack_from
_pack_B = Struct(">B").pack
_pack_H = Struct(">H").pack
_pack_Q = Struct(">Q").pack


@dataclass(init=False, repr=False, eq=False)
class FileProperties(Properties):
    """What describes a content of class file (70); None means absent.

    `decode` raises FrameError when the bytes are too few or too many, FieldError or
    FieldNameError for illegal values; `encode` raises FieldError for a value that does not fit.
    """

    __slots__ = (
        "_raw_headers",
        "cluster_id",
        "content_encoding",
        "content_type",
        "filename",
        "headers",
        "message_id",
        "priority",
        "reply_to",
        "timestamp",
    )

    NAME: ClassVar[str] = "file properties"
    CLASS_ID: ClassVar[int] = 70
    LAYOUT: ClassVar[Layout] = (
        ("content_type", "shortstr"),
        ("content_encoding", "shortstr"),
        ("headers", "table"),
        ("priority", "octet"),
        ("reply_to", "shortstr"),
        ("message_id", "shortstr"),
        ("filename", "shortstr"),
        ("timestamp", "timestamp"),
        ("cluster_id", "shortstr"),
    )

    content_type: str | None
    content_encoding: str | None
    headers: dict[str, FieldValue] | None
    priority: int | None
    reply_to: str | None
    message_id: str | None
    filename: str | None
    timestamp: int | None
    cluster_id: str | None
    _raw_headers: RawTable | None

    def __init__(
        self,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: dict[str, FieldValue] | None = None,
        priority: int | None = None,
        reply_to: str | None = None,
        message_id: str | None = None,
        filename: str | None = None,
        timestamp: int | None = None,
        cluster_id: str | None = None,
        _raw_headers: RawTable | None = None,
    ) -> None:
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.headers = headers
        self.priority = priority
        self.reply_to = reply_to
        self.message_id = message_id
        self.filename = filename
        self.timestamp = timestamp
        self.cluster_id = cluster_id
        self._raw_headers = _raw_headers

    def encode(self) -> bytes:
        """Flags and values."""
        flags = 0
        parts = [b""]
        try:
            if self.content_type is not None:
                flags |= 0x8000
                octets = self.content_type.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.content_encoding is not None:
                flags |= 0x4000
                octets = self.content_encoding.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.headers is not None:
                flags |= 0x2000
                parts.append(self._headers_bytes())
            if self.priority is not None:
                flags |= 0x1000
                parts.append(_pack_B(self.priority))
            if self.reply_to is not None:
                flags |= 0x0800
                octets = self.reply_to.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.message_id is not None:
                flags |= 0x0400
                octets = self.message_id.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.filename is not None:
                flags |= 0x0200
                octets = self.filename.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.timestamp is not None:
                flags |= 0x0100
                parts.append(_pack_Q(self.timestamp))
            if self.cluster_id is not None:
                flags |= 0x0080
                octets = self.cluster_id.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
        except UNWRITABLE:
            raise unwritable(self) from None
        parts[0] = _pack_H(flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, payload: bytes, offset: int, grammar: Grammar) -> Self:
        """Read flags and values from `offset` on: 12 in the payload of a content header."""
        properties = cls()
        try:
            flags: int = _read_H(payload, offset)[0]
            end = offset + 2
            if flags & 0x007F:
                end = skip_flag_words(payload, end, flags, 0x007E)
            if flags & 0x8000:
                start = end + 1
                end = start + payload[end]
                properties.content_type = payload[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x4000:
                start = end + 1
                end = start + payload[end]
                properties.content_encoding = payload[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x2000:
                start = end
                properties.headers, end = grammar.decode(payload, end, len(payload))
                properties._raw_headers = (payload[start:end], grammar.unchecked)
            if flags & 0x1F80:
                if flags & 0x1000:
                    properties.priority = payload[end]
                    end += 1
                if flags & 0x0800:
                    start = end + 1
                    end = start + payload[end]
                    properties.reply_to = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0400:
                    start = end + 1
                    end = start + payload[end]
                    properties.message_id = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0200:
                    start = end + 1
                    end = start + payload[end]
                    properties.filename = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0100:
                    properties.timestamp = _read_Q(payload, end)[0]
                    end += 8
                if flags & 0x0080:
                    start = end + 1
                    end = start + payload[end]
                    properties.cluster_id = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable_properties(cls, payload, offset, grammar, 0x007E) from None
        if end != len(payload):
            raise unreadable_properties(cls, payload, offset, grammar, 0x007E)
        if grammar.forbids_nul:
            forbid_nul(properties)
        return properties


@dataclass(init=False, repr=False, eq=False)
class StreamProperties(Properties):
    """What describes a content of class stream (80); None means absent.

    `decode` raises FrameError when the bytes are too few or too many, FieldError or
    FieldNameError for illegal values; `encode` raises FieldError for a value that does not fit.
    """

    __slots__ = ("_raw_headers", "content_encoding", "content_type", "headers", "priority", "timestamp")

    NAME: ClassVar[str] = "stream properties"
    CLASS_ID: ClassVar[int] = 80
    LAYOUT: ClassVar[Layout] = (
        ("content_type", "shortstr"),
        ("content_encoding", "shortstr"),
        ("headers", "table"),
        ("priority", "octet"),
        ("timestamp", "timestamp"),
    )

    content_type: str | None
    content_encoding: str | None
    headers: dict[str, FieldValue] | None
    priority: int | None
    timestamp: int | None
    _raw_headers: RawTable | None

    def __init__(
        self,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: dict[str, FieldValue] | None = None,
        priority: int | None = None,
        timestamp: int | None = None,
        _raw_headers: RawTable | None = None,
    ) -> None:
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.headers = headers
        self.priority = priority
        self.timestamp = timestamp
        self._raw_headers = _raw_headers

    def encode(self) -> bytes:
        """Flags and values."""
        flags = 0
        parts = [b""]
        try:
            if self.content_type is not None:
                flags |= 0x8000
                octets = self.content_type.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.content_encoding is not None:
                flags |= 0x4000
                octets = self.content_encoding.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.headers is not None:
                flags |= 0x2000
                parts.append(self._headers_bytes())
            if self.priority is not None:
                flags |= 0x1000
                parts.append(_pack_B(self.priority))
            if self.timestamp is not None:
                flags |= 0x0800
                parts.append(_pack_Q(self.timestamp))
        except UNWRITABLE:
            raise unwritable(self) from None
        parts[0] = _pack_H(flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, payload: bytes, offset: int, grammar: Grammar) -> Self:
        """Read flags and values from `offset` on: 12 in the payload of a content header."""
        properties = cls()
        try:
            flags: int = _read_H(payload, offset)[0]
            end = offset + 2
            if flags & 0x07FF:
                end = skip_flag_words(payload, end, flags, 0x07FE)
            if flags & 0x8000:
                start = end + 1
                end = start + payload[end]
                properties.content_type = payload[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x7800:
                if flags & 0x4000:
                    start = end + 1
                    end = start + payload[end]
                    properties.content_encoding = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x2000:
                    start = end
                    properties.headers, end = grammar.decode(payload, end, len(payload))
                    properties._raw_headers = (payload[start:end], grammar.unchecked)
                if flags & 0x1000:
                    properties.priority = payload[end]
                    end += 1
                if flags & 0x0800:
                    properties.timestamp = _read_Q(payload, end)[0]
                    end += 8
        except UNREADABLE:
            raise unreadable_properties(cls, payload, offset, grammar, 0x07FE) from None
        if end != len(payload):
            raise unreadable_properties(cls, payload, offset, grammar, 0x07FE)
        if grammar.forbids_nul:
            forbid_nul(properties)
        return properties


@dataclass(init=False, repr=False, eq=False)
class TunnelProperties(Properties):
    """What describes a content of class tunnel (110); None means absent.

    `decode` raises FrameError when the bytes are too few or too many, FieldError or
    FieldNameError for illegal values; `encode` raises FieldError for a value that does not fit.
    """

    __slots__ = ("_raw_headers", "broadcast", "data_name", "durable", "headers", "proxy_name")

    NAME: ClassVar[str] = "tunnel properties"
    CLASS_ID: ClassVar[int] = 110
    LAYOUT: ClassVar[Layout] = (
        ("headers", "table"),
        ("proxy_name", "shortstr"),
        ("data_name", "shortstr"),
        ("durable", "octet"),
        ("broadcast", "octet"),
    )

    headers: dict[str, FieldValue] | None
    proxy_name: str | None
    data_name: str | None
    durable: int | None
    broadcast: int | None
    _raw_headers: RawTable | None

    def __init__(
        self,
        headers: dict[str, FieldValue] | None = None,
        proxy_name: str | None = None,
        data_name: str | None = None,
        durable: int | None = None,
        broadcast: int | None = None,
        _raw_headers: RawTable | None = None,
    ) -> None:
        self.headers = headers
        self.proxy_name = proxy_name
        self.data_name = data_name
        self.durable = durable
        self.broadcast = broadcast
        self._raw_headers = _raw_headers

    def encode(self) -> bytes:
        """Flags and values."""
        flags = 0
        parts = [b""]
        try:
            if self.headers is not None:
                flags |= 0x8000
                parts.append(self._headers_bytes())
            if self.proxy_name is not None:
                flags |= 0x4000
                octets = self.proxy_name.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.data_name is not None:
                flags |= 0x2000
                octets = self.data_name.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.durable is not None:
                flags |= 0x1000
                parts.append(_pack_B(self.durable))
            if self.broadcast is not None:
                flags |= 0x0800
                parts.append(_pack_B(self.broadcast))
        except UNWRITABLE:
            raise unwritable(self) from None
        parts[0] = _pack_H(flags)
        return b"".join(parts)

    @classmethod
    def decode(cls, payload: bytes, offset: int, grammar: Grammar) -> Self:
        """Read flags and values from `offset` on: 12 in the payload of a content header."""
        properties = cls()
        try:
            flags: int = _read_H(payload, offset)[0]
            end = offset + 2
            if flags & 0x07FF:
                end = skip_flag_words(payload, end, flags, 0x07FE)
            if flags & 0x8000:
                start = end
                properties.headers, end = grammar.decode(payload, end, len(payload))
                properties._raw_headers = (payload[start:end], grammar.unchecked)
            if flags & 0x7800:
                if flags & 0x4000:
                    start = end + 1
                    end = start + payload[end]
                    properties.proxy_name = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x2000:
                    start = end + 1
                    end = start + payload[end]
                    properties.data_name = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x1000:
                    properties.durable = payload[end]
                    end += 1
                if flags & 0x0800:
                    properties.broadcast = payload[end]
                    end += 1
        except UNREADABLE:
            raise unreadable_properties(cls, payload, offset, grammar, 0x07FE) from None
        if end != len(payload):
            raise unreadable_properties(cls, payload, offset, grammar, 0x07FE)
        if grammar.forbids_nul:
            forbid_nul(properties)
        return properties
