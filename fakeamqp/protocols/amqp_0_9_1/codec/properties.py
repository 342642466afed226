"""The content properties of AMQP 0-9-1 as RabbitMQ speaks it.

Made from spec/amqp-0-9-1.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.protocols.framed.codec.method import UNREADABLE, UNWRITABLE, forbid_nul, unwritable
from fakeamqp.protocols.framed.codec.properties import Properties, skip_flag_words, unreadable_properties
from fakeamqp.protocols.framed.codec.strings import OCTET

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.protocols.framed.codec.method import Layout
    from fakeamqp.protocols.framed.codec.properties import RawTable
    from fakeamqp.protocols.framed.codec.tables import FieldValue, Grammar

__all__ = ["BasicProperties"]

_read_H = Struct(">H").unpack_from
_read_Q = Struct(">Q").unpack_from
_pack_B = Struct(">B").pack
_pack_H = Struct(">H").pack
_pack_Q = Struct(">Q").pack


@dataclass(init=False, repr=False, eq=False)
class BasicProperties(Properties):
    """What describes a content of class basic (60); None means absent.

    `decode` raises FrameError when the bytes are too few or too many, FieldError or
    FieldNameError for illegal values; `encode` raises FieldError for a value that does not fit.
    """

    __slots__ = (
        "_raw_headers",
        "app_id",
        "cluster_id",
        "content_encoding",
        "content_type",
        "correlation_id",
        "delivery_mode",
        "expiration",
        "headers",
        "message_id",
        "priority",
        "reply_to",
        "timestamp",
        "type",
        "user_id",
    )

    NAME: ClassVar[str] = "basic properties"
    CLASS_ID: ClassVar[int] = 60
    LAYOUT: ClassVar[Layout] = (
        ("content_type", "shortstr"),
        ("content_encoding", "shortstr"),
        ("headers", "table"),
        ("delivery_mode", "octet"),
        ("priority", "octet"),
        ("correlation_id", "shortstr"),
        ("reply_to", "shortstr"),
        ("expiration", "shortstr"),
        ("message_id", "shortstr"),
        ("timestamp", "timestamp"),
        ("type", "shortstr"),
        ("user_id", "shortstr"),
        ("app_id", "shortstr"),
        ("cluster_id", "shortstr"),
    )

    content_type: str | None
    content_encoding: str | None
    headers: dict[str, FieldValue] | None
    delivery_mode: int | None
    priority: int | None
    correlation_id: str | None
    reply_to: str | None
    expiration: str | None
    message_id: str | None
    timestamp: int | None
    type: str | None
    user_id: str | None
    app_id: str | None
    cluster_id: str | None
    _raw_headers: RawTable | None

    def __init__(
        self,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: dict[str, FieldValue] | None = None,
        delivery_mode: int | None = None,
        priority: int | None = None,
        correlation_id: str | None = None,
        reply_to: str | None = None,
        expiration: str | None = None,
        message_id: str | None = None,
        timestamp: int | None = None,
        type: str | None = None,
        user_id: str | None = None,
        app_id: str | None = None,
        cluster_id: str | None = None,
        _raw_headers: RawTable | None = None,
    ) -> None:
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.headers = headers
        self.delivery_mode = delivery_mode
        self.priority = priority
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.expiration = expiration
        self.message_id = message_id
        self.timestamp = timestamp
        self.type = type
        self.user_id = user_id
        self.app_id = app_id
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
            if self.delivery_mode is not None:
                flags |= 0x1000
                parts.append(_pack_B(self.delivery_mode))
            if self.priority is not None:
                flags |= 0x0800
                parts.append(_pack_B(self.priority))
            if self.correlation_id is not None:
                flags |= 0x0400
                octets = self.correlation_id.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.reply_to is not None:
                flags |= 0x0200
                octets = self.reply_to.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.expiration is not None:
                flags |= 0x0100
                octets = self.expiration.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.message_id is not None:
                flags |= 0x0080
                octets = self.message_id.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.timestamp is not None:
                flags |= 0x0040
                parts.append(_pack_Q(self.timestamp))
            if self.type is not None:
                flags |= 0x0020
                octets = self.type.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.user_id is not None:
                flags |= 0x0010
                octets = self.user_id.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.app_id is not None:
                flags |= 0x0008
                octets = self.app_id.encode("utf-8", "surrogateescape")
                parts += (OCTET[len(octets)], octets)
            if self.cluster_id is not None:
                flags |= 0x0004
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
            if flags & 0x0003:
                end = skip_flag_words(payload, end, flags, 0x0002)
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
            if flags & 0x1000:
                properties.delivery_mode = payload[end]
                end += 1
            if flags & 0x0FFC:
                if flags & 0x0800:
                    properties.priority = payload[end]
                    end += 1
                if flags & 0x0400:
                    start = end + 1
                    end = start + payload[end]
                    properties.correlation_id = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0200:
                    start = end + 1
                    end = start + payload[end]
                    properties.reply_to = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0100:
                    start = end + 1
                    end = start + payload[end]
                    properties.expiration = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0080:
                    start = end + 1
                    end = start + payload[end]
                    properties.message_id = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0040:
                    properties.timestamp = _read_Q(payload, end)[0]
                    end += 8
                if flags & 0x0020:
                    start = end + 1
                    end = start + payload[end]
                    properties.type = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0010:
                    start = end + 1
                    end = start + payload[end]
                    properties.user_id = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0008:
                    start = end + 1
                    end = start + payload[end]
                    properties.app_id = payload[start:end].decode("utf-8", "surrogateescape")
                if flags & 0x0004:
                    start = end + 1
                    end = start + payload[end]
                    properties.cluster_id = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable_properties(cls, payload, offset, grammar, 0x0002) from None
        if end != len(payload):
            raise unreadable_properties(cls, payload, offset, grammar, 0x0002)
        if grammar.forbids_nul:
            forbid_nul(properties)
        return properties
