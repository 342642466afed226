"""The structs of AMQP 0-10, one class each.

Made from spec/amqp-0-10.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.protocols.amqp_0_10.codec.packed import (
    NESTED,
    UNREADABLE,
    UNWRITABLE,
    Struct,
    decode_header,
    encode_header,
    unreadable,
    unwritable,
)
from fakeamqp.protocols.amqp_0_10.codec.scalars import read_uuid
from fakeamqp.protocols.amqp_0_10.codec.serial import (
    ByteRanges,
    SequenceSet,
    read_byte_ranges,
    read_sequence_set,
)
from fakeamqp.protocols.amqp_0_10.codec.types import STRUCTS, UnknownStruct, read_array, read_map
from fakeamqp.protocols.amqp_0_10.codec.writing import encode_array, encode_map

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from uuid import UUID

    from typing_extensions import Self

    from fakeamqp.protocols.amqp_0_10.codec.packed import Fields

__all__ = [
    "STRUCTS",
    "Acquired",
    "CommandFragment",
    "DeliveryProperties",
    "ExchangeBoundResult",
    "ExchangeQueryResult",
    "FileProperties",
    "FragmentProperties",
    "GetTimeoutResult",
    "MessageProperties",
    "MessageResumeResult",
    "QueueQueryResult",
    "RecoverResult",
    "ReplyTo",
    "StreamProperties",
    "UnknownStruct",
    "XaResult",
    "Xid",
    "decode_header",
    "encode_header",
]

_read_H = struct.Struct(">H").unpack_from
_read_HH = struct.Struct(">HH").unpack_from
_read_I = struct.Struct(">I").unpack_from
_read_IHH = struct.Struct(">IHH").unpack_from
_read_Q = struct.Struct(">Q").unpack_from
_pack_B = struct.Struct(">B").pack
_pack_H = struct.Struct(">H").pack
_pack_HH = struct.Struct(">HH").pack
_pack_I = struct.Struct(">I").pack
_pack_IHH = struct.Struct(">IHH").pack
_pack_Q = struct.Struct(">Q").pack
_DTX_XA_STATUS = frozenset((0, 1, 2, 3, 4, 5, 6, 7))
_MESSAGE_DELIVERY_MODE = frozenset((1, 2))


class CommandFragment(Struct):
    """session.command-fragment."""

    __slots__ = ("byte_ranges", "command_id")

    NAME: ClassVar[str] = "session.command-fragment"
    FIELDS: ClassVar[Fields] = (("command_id", "sequence-no"), ("byte_ranges", "byte-ranges"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("command_id", "byte_ranges")
    FLAGS_AT: ClassVar[int | None] = None
    SIZE_WIDTH: ClassVar[int] = 0

    command_id: int | None
    byte_ranges: ByteRanges | None

    def __init__(self, command_id: int | None = None, byte_ranges: ByteRanges | None = None) -> None:
        self.command_id = command_id
        self.byte_ranges = byte_ranges

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        parts = [b""]
        try:
            command_id = 0 if self.command_id is None else self.command_id
            parts.append(_pack_I(command_id))
            byte_ranges = ByteRanges() if self.byte_ranges is None else self.byte_ranges
            parts.append(ByteRanges.encode(byte_ranges))
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            end = 0
            packed.command_id = _read_I(octets, end)[0]
            end += 4
            packed.byte_ranges, end = read_byte_ranges(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class DeliveryProperties(Struct):
    """message.delivery-properties (4.1)."""

    __slots__ = (
        "delivery_mode",
        "discard_unroutable",
        "exchange",
        "expiration",
        "immediate",
        "priority",
        "redelivered",
        "resume_id",
        "resume_ttl",
        "routing_key",
        "timestamp",
        "ttl",
    )

    NAME: ClassVar[str] = "message.delivery-properties"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0401
    FIELDS: ClassVar[Fields] = (
        ("discard_unroutable", "bit"),
        ("immediate", "bit"),
        ("redelivered", "bit"),
        ("priority", "uint8"),
        ("delivery_mode", "uint8"),
        ("ttl", "uint64"),
        ("timestamp", "datetime"),
        ("expiration", "datetime"),
        ("exchange", "str8"),
        ("routing_key", "str8"),
        ("resume_id", "str16"),
        ("resume_ttl", "uint64"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("priority", "delivery_mode")
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"delivery_mode": _MESSAGE_DELIVERY_MODE}
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    discard_unroutable: bool
    immediate: bool
    redelivered: bool
    priority: int | None
    delivery_mode: int | None
    ttl: int | None
    timestamp: int | None
    expiration: int | None
    exchange: str | None
    routing_key: str | None
    resume_id: str | None
    resume_ttl: int | None

    def __init__(
        self,
        discard_unroutable: bool = False,
        immediate: bool = False,
        redelivered: bool = False,
        priority: int | None = None,
        delivery_mode: int | None = None,
        ttl: int | None = None,
        timestamp: int | None = None,
        expiration: int | None = None,
        exchange: str | None = None,
        routing_key: str | None = None,
        resume_id: str | None = None,
        resume_ttl: int | None = None,
    ) -> None:
        self.discard_unroutable = discard_unroutable
        self.immediate = immediate
        self.redelivered = redelivered
        self.priority = priority
        self.delivery_mode = delivery_mode
        self.ttl = ttl
        self.timestamp = timestamp
        self.expiration = expiration
        self.exchange = exchange
        self.routing_key = routing_key
        self.resume_id = resume_id
        self.resume_ttl = resume_ttl

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.discard_unroutable:
                flags |= 0x0100
            if self.immediate:
                flags |= 0x0200
            if self.redelivered:
                flags |= 0x0400
            if self.priority is not None:
                flags |= 0x0800
                parts.append(_pack_B(self.priority))
            if self.delivery_mode is not None:
                flags |= 0x1000
                parts.append(_pack_B(self.delivery_mode))
            if self.ttl is not None:
                flags |= 0x2000
                parts.append(_pack_Q(self.ttl))
            if self.timestamp is not None:
                flags |= 0x4000
                parts.append(_pack_Q(self.timestamp))
            if self.expiration is not None:
                flags |= 0x8000
                parts.append(_pack_Q(self.expiration))
            if self.exchange is not None:
                flags |= 0x0001
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.routing_key is not None:
                flags |= 0x0002
                octets = self.routing_key.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.resume_id is not None:
                flags |= 0x0004
                octets = self.resume_id.encode("utf-8", "surrogateescape")
                parts += (_pack_H(len(octets)), octets)
            if self.resume_ttl is not None:
                flags |= 0x0008
                parts.append(_pack_Q(self.resume_ttl))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0401, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0401 or size != len(octets) - 4 or flags & 0x00F0:
                raise unreadable(cls, octets)
            end = 8
            packed.discard_unroutable = flags & 0x0100 != 0
            packed.immediate = flags & 0x0200 != 0
            packed.redelivered = flags & 0x0400 != 0
            if flags & 0x0800:
                packed.priority = octets[end]
                end += 1
            if flags & 0x1000:
                packed.delivery_mode = octets[end]
                end += 1
                if packed.delivery_mode not in _MESSAGE_DELIVERY_MODE:
                    raise unreadable(cls, octets)
            if flags & 0x2000:
                packed.ttl = _read_Q(octets, end)[0]
                end += 8
            if flags & 0x4000:
                packed.timestamp = _read_Q(octets, end)[0]
                end += 8
            if flags & 0x8000:
                packed.expiration = _read_Q(octets, end)[0]
                end += 8
            if flags & 0x0001:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0002:
                start = end + 1
                end = start + octets[end]
                packed.routing_key = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0004:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.resume_id = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0008:
                packed.resume_ttl = _read_Q(octets, end)[0]
                end += 8
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FragmentProperties(Struct):
    """message.fragment-properties (4.2)."""

    __slots__ = ("first", "fragment_size", "last")

    NAME: ClassVar[str] = "message.fragment-properties"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0402
    FIELDS: ClassVar[Fields] = (("first", "bit"), ("last", "bit"), ("fragment_size", "uint64"))
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    first: bool
    last: bool
    fragment_size: int | None

    def __init__(self, first: bool = False, last: bool = False, fragment_size: int | None = None) -> None:
        self.first = first
        self.last = last
        self.fragment_size = fragment_size

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.first:
                flags |= 0x0100
            if self.last:
                flags |= 0x0200
            if self.fragment_size is not None:
                flags |= 0x0400
                parts.append(_pack_Q(self.fragment_size))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0402, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0402 or size != len(octets) - 4 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 8
            packed.first = flags & 0x0100 != 0
            packed.last = flags & 0x0200 != 0
            if flags & 0x0400:
                packed.fragment_size = _read_Q(octets, end)[0]
                end += 8
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ReplyTo(Struct):
    """message.reply-to."""

    __slots__ = ("exchange", "routing_key")

    NAME: ClassVar[str] = "message.reply-to"
    FIELDS: ClassVar[Fields] = (("exchange", "str8"), ("routing_key", "str8"))
    FLAGS_AT: ClassVar[int | None] = 2
    SIZE_WIDTH: ClassVar[int] = 2

    exchange: str | None
    routing_key: str | None

    def __init__(self, exchange: str | None = None, routing_key: str | None = None) -> None:
        self.exchange = exchange
        self.routing_key = routing_key

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.exchange is not None:
                flags |= 0x0100
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.routing_key is not None:
                flags |= 0x0200
                octets = self.routing_key.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            body = b"".join(parts)
            return _pack_HH(len(body) + 2, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, flags = _read_HH(octets)
            if size != len(octets) - 2 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 4
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.routing_key = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageProperties(Struct):
    """message.message-properties (4.3)."""

    __slots__ = (
        "app_id",
        "application_headers",
        "content_encoding",
        "content_length",
        "content_type",
        "correlation_id",
        "message_id",
        "reply_to",
        "user_id",
    )

    NAME: ClassVar[str] = "message.message-properties"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0403
    FIELDS: ClassVar[Fields] = (
        ("content_length", "uint64"),
        ("message_id", "uuid"),
        ("correlation_id", "vbin16"),
        ("reply_to", "struct:message.reply-to"),
        ("content_type", "str8"),
        ("content_encoding", "str8"),
        ("user_id", "vbin16"),
        ("app_id", "vbin16"),
        ("application_headers", "map"),
    )
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    content_length: int | None
    message_id: UUID | None
    correlation_id: bytes | None
    reply_to: ReplyTo | None
    content_type: str | None
    content_encoding: str | None
    user_id: bytes | None
    app_id: bytes | None
    application_headers: Mapping[str, Any] | None

    def __init__(
        self,
        content_length: int | None = None,
        message_id: UUID | None = None,
        correlation_id: bytes | None = None,
        reply_to: ReplyTo | None = None,
        content_type: str | None = None,
        content_encoding: str | None = None,
        user_id: bytes | None = None,
        app_id: bytes | None = None,
        application_headers: Mapping[str, Any] | None = None,
    ) -> None:
        self.content_length = content_length
        self.message_id = message_id
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.user_id = user_id
        self.app_id = app_id
        self.application_headers = application_headers

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.content_length is not None:
                flags |= 0x0100
                parts.append(_pack_Q(self.content_length))
            if self.message_id is not None:
                flags |= 0x0200
                parts.append(self.message_id.bytes)
            if self.correlation_id is not None:
                flags |= 0x0400
                parts += (_pack_H(len(self.correlation_id)), self.correlation_id)
            if self.reply_to is not None:
                flags |= 0x0800
                parts.append(ReplyTo.encode(self.reply_to))
            if self.content_type is not None:
                flags |= 0x1000
                octets = self.content_type.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.content_encoding is not None:
                flags |= 0x2000
                octets = self.content_encoding.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.user_id is not None:
                flags |= 0x4000
                parts += (_pack_H(len(self.user_id)), self.user_id)
            if self.app_id is not None:
                flags |= 0x8000
                parts += (_pack_H(len(self.app_id)), self.app_id)
            if self.application_headers is not None:
                flags |= 0x0001
                parts.append(encode_map(self.application_headers))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0403, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0403 or size != len(octets) - 4 or flags & 0x00FE:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                packed.content_length = _read_Q(octets, end)[0]
                end += 8
            if flags & 0x0200:
                start = end
                end += 16
                packed.message_id = read_uuid(octets[start:end])
            if flags & 0x0400:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.correlation_id = octets[start:end]
            if flags & 0x0800:
                start = end
                end += 2 + _read_H(octets, end)[0]
                packed.reply_to = ReplyTo.decode(octets[start:end])
            if flags & 0x1000:
                start = end + 1
                end = start + octets[end]
                packed.content_type = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x2000:
                start = end + 1
                end = start + octets[end]
                packed.content_encoding = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x4000:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.user_id = octets[start:end]
            if flags & 0x8000:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.app_id = octets[start:end]
            if flags & 0x0001:
                packed.application_headers, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class Acquired(Struct):
    """message.acquired (4.4)."""

    __slots__ = ("transfers",)

    NAME: ClassVar[str] = "message.acquired"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0404
    FIELDS: ClassVar[Fields] = (("transfers", "sequence-set"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("transfers",)
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    transfers: SequenceSet | None

    def __init__(self, transfers: SequenceSet | None = None) -> None:
        self.transfers = transfers

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.transfers is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.transfers))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0404, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0404 or size != len(octets) - 4 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                packed.transfers, end = read_sequence_set(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageResumeResult(Struct):
    """message.message-resume-result (4.5)."""

    __slots__ = ("offset",)

    NAME: ClassVar[str] = "message.message-resume-result"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 5
    INDEX: ClassVar[int] = 0x0405
    FIELDS: ClassVar[Fields] = (("offset", "uint64"),)
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    offset: int | None

    def __init__(self, offset: int | None = None) -> None:
        self.offset = offset

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.offset is not None:
                flags |= 0x0100
                parts.append(_pack_Q(self.offset))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0405, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0405 or size != len(octets) - 4 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                packed.offset = _read_Q(octets, end)[0]
                end += 8
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class XaResult(Struct):
    """dtx.xa-result (6.1)."""

    __slots__ = ("status",)

    NAME: ClassVar[str] = "dtx.xa-result"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0601
    FIELDS: ClassVar[Fields] = (("status", "uint16"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("status",)
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"status": _DTX_XA_STATUS}
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    status: int | None

    def __init__(self, status: int | None = None) -> None:
        self.status = status

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.status is not None:
                flags |= 0x0100
                parts.append(_pack_H(self.status))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0601, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0601 or size != len(octets) - 4 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                packed.status = _read_H(octets, end)[0]
                end += 2
                if packed.status not in _DTX_XA_STATUS:
                    raise unreadable(cls, octets)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class Xid(Struct):
    """dtx.xid (6.4); as its errata code it."""

    __slots__ = ("branch_id", "format", "global_id")

    NAME: ClassVar[str] = "dtx.xid"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0604
    FIELDS: ClassVar[Fields] = (("format", "uint32"), ("global_id", "vbin8"), ("branch_id", "vbin8"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("format", "global_id", "branch_id")
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    format: int | None
    global_id: bytes | None
    branch_id: bytes | None

    def __init__(
        self, format: int | None = None, global_id: bytes | None = None, branch_id: bytes | None = None
    ) -> None:
        self.format = format
        self.global_id = global_id
        self.branch_id = branch_id

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.format is not None:
                flags |= 0x0100
                parts.append(_pack_I(self.format))
            if self.global_id is not None:
                flags |= 0x0200
                parts += (_pack_B(len(self.global_id)), self.global_id)
            if self.branch_id is not None:
                flags |= 0x0400
                parts += (_pack_B(len(self.branch_id)), self.branch_id)
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0604, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0604 or size != len(octets) - 4 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                packed.format = _read_I(octets, end)[0]
                end += 4
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.global_id = octets[start:end]
            if flags & 0x0400:
                start = end + 1
                end = start + octets[end]
                packed.branch_id = octets[start:end]
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class GetTimeoutResult(Struct):
    """dtx.get-timeout-result (6.2)."""

    __slots__ = ("timeout",)

    NAME: ClassVar[str] = "dtx.get-timeout-result"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0602
    FIELDS: ClassVar[Fields] = (("timeout", "uint32"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("timeout",)
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    timeout: int | None

    def __init__(self, timeout: int | None = None) -> None:
        self.timeout = timeout

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.timeout is not None:
                flags |= 0x0100
                parts.append(_pack_I(self.timeout))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0602, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0602 or size != len(octets) - 4 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                packed.timeout = _read_I(octets, end)[0]
                end += 4
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class RecoverResult(Struct):
    """dtx.recover-result (6.3)."""

    __slots__ = ("in_doubt",)

    NAME: ClassVar[str] = "dtx.recover-result"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0603
    FIELDS: ClassVar[Fields] = (("in_doubt", "array"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("in_doubt",)
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    in_doubt: Sequence[Any] | None

    def __init__(self, in_doubt: Sequence[Any] | None = None) -> None:
        self.in_doubt = in_doubt

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.in_doubt is not None:
                flags |= 0x0100
                parts.append(encode_array(self.in_doubt))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0603, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0603 or size != len(octets) - 4 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                packed.in_doubt, end = read_array(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ExchangeQueryResult(Struct):
    """exchange.exchange-query-result (7.1)."""

    __slots__ = ("arguments", "durable", "not_found", "type")

    NAME: ClassVar[str] = "exchange.exchange-query-result"
    CLASS: ClassVar[int] = 7
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0701
    FIELDS: ClassVar[Fields] = (
        ("type", "str8"),
        ("durable", "bit"),
        ("not_found", "bit"),
        ("arguments", "map"),
    )
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    type: str | None
    durable: bool
    not_found: bool
    arguments: Mapping[str, Any] | None

    def __init__(
        self,
        type: str | None = None,
        durable: bool = False,
        not_found: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.type = type
        self.durable = durable
        self.not_found = not_found
        self.arguments = arguments

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.type is not None:
                flags |= 0x0100
                octets = self.type.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.durable:
                flags |= 0x0200
            if self.not_found:
                flags |= 0x0400
            if self.arguments is not None:
                flags |= 0x0800
                parts.append(encode_map(self.arguments))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0701, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0701 or size != len(octets) - 4 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.type = octets[start:end].decode("utf-8", "surrogateescape")
            packed.durable = flags & 0x0200 != 0
            packed.not_found = flags & 0x0400 != 0
            if flags & 0x0800:
                packed.arguments, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ExchangeBoundResult(Struct):
    """exchange.exchange-bound-result (7.2)."""

    __slots__ = (
        "args_not_matched",
        "exchange_not_found",
        "key_not_matched",
        "queue_not_found",
        "queue_not_matched",
    )

    NAME: ClassVar[str] = "exchange.exchange-bound-result"
    CLASS: ClassVar[int] = 7
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0702
    FIELDS: ClassVar[Fields] = (
        ("exchange_not_found", "bit"),
        ("queue_not_found", "bit"),
        ("queue_not_matched", "bit"),
        ("key_not_matched", "bit"),
        ("args_not_matched", "bit"),
    )
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    exchange_not_found: bool
    queue_not_found: bool
    queue_not_matched: bool
    key_not_matched: bool
    args_not_matched: bool

    def __init__(
        self,
        exchange_not_found: bool = False,
        queue_not_found: bool = False,
        queue_not_matched: bool = False,
        key_not_matched: bool = False,
        args_not_matched: bool = False,
    ) -> None:
        self.exchange_not_found = exchange_not_found
        self.queue_not_found = queue_not_found
        self.queue_not_matched = queue_not_matched
        self.key_not_matched = key_not_matched
        self.args_not_matched = args_not_matched

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        if self.exchange_not_found:
            flags |= 0x0100
        if self.queue_not_found:
            flags |= 0x0200
        if self.queue_not_matched:
            flags |= 0x0400
        if self.key_not_matched:
            flags |= 0x0800
        if self.args_not_matched:
            flags |= 0x1000
        return _pack_IHH(4, 0x0702, flags)

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0702 or size != len(octets) - 4 or flags & 0xE0FF:
                raise unreadable(cls, octets)
            end = 8
            packed.exchange_not_found = flags & 0x0100 != 0
            packed.queue_not_found = flags & 0x0200 != 0
            packed.queue_not_matched = flags & 0x0400 != 0
            packed.key_not_matched = flags & 0x0800 != 0
            packed.args_not_matched = flags & 0x1000 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class QueueQueryResult(Struct):
    """queue.queue-query-result (8.1)."""

    __slots__ = (
        "alternate_exchange",
        "arguments",
        "auto_delete",
        "durable",
        "exclusive",
        "message_count",
        "queue",
        "subscriber_count",
    )

    NAME: ClassVar[str] = "queue.queue-query-result"
    CLASS: ClassVar[int] = 8
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0801
    FIELDS: ClassVar[Fields] = (
        ("queue", "str8"),
        ("alternate_exchange", "str8"),
        ("durable", "bit"),
        ("exclusive", "bit"),
        ("auto_delete", "bit"),
        ("arguments", "map"),
        ("message_count", "uint32"),
        ("subscriber_count", "uint32"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue", "message_count", "subscriber_count")
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    queue: str | None
    alternate_exchange: str | None
    durable: bool
    exclusive: bool
    auto_delete: bool
    arguments: Mapping[str, Any] | None
    message_count: int | None
    subscriber_count: int | None

    def __init__(
        self,
        queue: str | None = None,
        alternate_exchange: str | None = None,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        message_count: int | None = None,
        subscriber_count: int | None = None,
    ) -> None:
        self.queue = queue
        self.alternate_exchange = alternate_exchange
        self.durable = durable
        self.exclusive = exclusive
        self.auto_delete = auto_delete
        self.arguments = arguments
        self.message_count = message_count
        self.subscriber_count = subscriber_count

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.queue is not None:
                flags |= 0x0100
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.alternate_exchange is not None:
                flags |= 0x0200
                octets = self.alternate_exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.durable:
                flags |= 0x0400
            if self.exclusive:
                flags |= 0x0800
            if self.auto_delete:
                flags |= 0x1000
            if self.arguments is not None:
                flags |= 0x2000
                parts.append(encode_map(self.arguments))
            if self.message_count is not None:
                flags |= 0x4000
                parts.append(_pack_I(self.message_count))
            if self.subscriber_count is not None:
                flags |= 0x8000
                parts.append(_pack_I(self.subscriber_count))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0801, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0801 or size != len(octets) - 4 or flags & 0x00FF:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.alternate_exchange = octets[start:end].decode("utf-8", "surrogateescape")
            packed.durable = flags & 0x0400 != 0
            packed.exclusive = flags & 0x0800 != 0
            packed.auto_delete = flags & 0x1000 != 0
            if flags & 0x2000:
                packed.arguments, end = read_map(octets, end)
            if flags & 0x4000:
                packed.message_count = _read_I(octets, end)[0]
                end += 4
            if flags & 0x8000:
                packed.subscriber_count = _read_I(octets, end)[0]
                end += 4
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileProperties(Struct):
    """file.file-properties (9.1)."""

    __slots__ = (
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

    NAME: ClassVar[str] = "file.file-properties"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0901
    FIELDS: ClassVar[Fields] = (
        ("content_type", "str8"),
        ("content_encoding", "str8"),
        ("headers", "map"),
        ("priority", "uint8"),
        ("reply_to", "str8"),
        ("message_id", "str8"),
        ("filename", "str8"),
        ("timestamp", "datetime"),
        ("cluster_id", "str8"),
    )
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    content_type: str | None
    content_encoding: str | None
    headers: Mapping[str, Any] | None
    priority: int | None
    reply_to: str | None
    message_id: str | None
    filename: str | None
    timestamp: int | None
    cluster_id: str | None

    def __init__(
        self,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: Mapping[str, Any] | None = None,
        priority: int | None = None,
        reply_to: str | None = None,
        message_id: str | None = None,
        filename: str | None = None,
        timestamp: int | None = None,
        cluster_id: str | None = None,
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

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.content_type is not None:
                flags |= 0x0100
                octets = self.content_type.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.content_encoding is not None:
                flags |= 0x0200
                octets = self.content_encoding.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.headers is not None:
                flags |= 0x0400
                parts.append(encode_map(self.headers))
            if self.priority is not None:
                flags |= 0x0800
                parts.append(_pack_B(self.priority))
            if self.reply_to is not None:
                flags |= 0x1000
                octets = self.reply_to.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.message_id is not None:
                flags |= 0x2000
                octets = self.message_id.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.filename is not None:
                flags |= 0x4000
                octets = self.filename.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.timestamp is not None:
                flags |= 0x8000
                parts.append(_pack_Q(self.timestamp))
            if self.cluster_id is not None:
                flags |= 0x0001
                octets = self.cluster_id.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0901, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0901 or size != len(octets) - 4 or flags & 0x00FE:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.content_type = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.content_encoding = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                packed.headers, end = read_map(octets, end)
            if flags & 0x0800:
                packed.priority = octets[end]
                end += 1
            if flags & 0x1000:
                start = end + 1
                end = start + octets[end]
                packed.reply_to = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x2000:
                start = end + 1
                end = start + octets[end]
                packed.message_id = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x4000:
                start = end + 1
                end = start + octets[end]
                packed.filename = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x8000:
                packed.timestamp = _read_Q(octets, end)[0]
                end += 8
            if flags & 0x0001:
                start = end + 1
                end = start + octets[end]
                packed.cluster_id = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class StreamProperties(Struct):
    """stream.stream-properties (10.1)."""

    __slots__ = ("content_encoding", "content_type", "headers", "priority", "timestamp")

    NAME: ClassVar[str] = "stream.stream-properties"
    CLASS: ClassVar[int] = 10
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0A01
    FIELDS: ClassVar[Fields] = (
        ("content_type", "str8"),
        ("content_encoding", "str8"),
        ("headers", "map"),
        ("priority", "uint8"),
        ("timestamp", "datetime"),
    )
    FLAGS_AT: ClassVar[int | None] = 6
    SIZE_WIDTH: ClassVar[int] = 4

    content_type: str | None
    content_encoding: str | None
    headers: Mapping[str, Any] | None
    priority: int | None
    timestamp: int | None

    def __init__(
        self,
        content_type: str | None = None,
        content_encoding: str | None = None,
        headers: Mapping[str, Any] | None = None,
        priority: int | None = None,
        timestamp: int | None = None,
    ) -> None:
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.headers = headers
        self.priority = priority
        self.timestamp = timestamp

    def encode(self) -> bytes:
        """See `Struct.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.content_type is not None:
                flags |= 0x0100
                octets = self.content_type.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.content_encoding is not None:
                flags |= 0x0200
                octets = self.content_encoding.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.headers is not None:
                flags |= 0x0400
                parts.append(encode_map(self.headers))
            if self.priority is not None:
                flags |= 0x0800
                parts.append(_pack_B(self.priority))
            if self.timestamp is not None:
                flags |= 0x1000
                parts.append(_pack_Q(self.timestamp))
            body = b"".join(parts)
            return _pack_IHH(len(body) + 4, 0x0A01, flags) + body
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            size, code, flags = _read_IHH(octets)
            if code != 0x0A01 or size != len(octets) - 4 or flags & 0xE0FF:
                raise unreadable(cls, octets)
            end = 8
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.content_type = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.content_encoding = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                packed.headers, end = read_map(octets, end)
            if flags & 0x0800:
                packed.priority = octets[end]
                end += 1
            if flags & 0x1000:
                packed.timestamp = _read_Q(octets, end)[0]
                end += 8
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


STRUCTS.update(
    {
        DeliveryProperties.INDEX: DeliveryProperties,
        FragmentProperties.INDEX: FragmentProperties,
        MessageProperties.INDEX: MessageProperties,
        Acquired.INDEX: Acquired,
        MessageResumeResult.INDEX: MessageResumeResult,
        XaResult.INDEX: XaResult,
        Xid.INDEX: Xid,
        GetTimeoutResult.INDEX: GetTimeoutResult,
        RecoverResult.INDEX: RecoverResult,
        ExchangeQueryResult.INDEX: ExchangeQueryResult,
        ExchangeBoundResult.INDEX: ExchangeBoundResult,
        QueueQueryResult.INDEX: QueueQueryResult,
        FileProperties.INDEX: FileProperties,
        StreamProperties.INDEX: StreamProperties,
    }
)
NESTED.update(
    {
        CommandFragment.NAME: CommandFragment,
        DeliveryProperties.NAME: DeliveryProperties,
        FragmentProperties.NAME: FragmentProperties,
        ReplyTo.NAME: ReplyTo,
        MessageProperties.NAME: MessageProperties,
        Acquired.NAME: Acquired,
        MessageResumeResult.NAME: MessageResumeResult,
        XaResult.NAME: XaResult,
        Xid.NAME: Xid,
        GetTimeoutResult.NAME: GetTimeoutResult,
        RecoverResult.NAME: RecoverResult,
        ExchangeQueryResult.NAME: ExchangeQueryResult,
        ExchangeBoundResult.NAME: ExchangeBoundResult,
        QueueQueryResult.NAME: QueueQueryResult,
        FileProperties.NAME: FileProperties,
        StreamProperties.NAME: StreamProperties,
    }
)
