"""The commands of AMQP 0-10, one class each.

Made from spec/amqp-0-10.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.protocols.amqp_0_10.codec.errors import UnknownCommand
from fakeamqp.protocols.amqp_0_10.codec.packed import UNREADABLE, UNWRITABLE, Command, unreadable, unwritable
from fakeamqp.protocols.amqp_0_10.codec.serial import SequenceSet, read_sequence_set
from fakeamqp.protocols.amqp_0_10.codec.structs import Xid
from fakeamqp.protocols.amqp_0_10.codec.types import read_map, read_struct32
from fakeamqp.protocols.amqp_0_10.codec.writing import encode_map, encode_struct32

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from typing_extensions import Self

    from fakeamqp.protocols.amqp_0_10.codec.packed import Fields

__all__ = [
    "COMMANDS",
    "DtxCommit",
    "DtxEnd",
    "DtxForget",
    "DtxGetTimeout",
    "DtxPrepare",
    "DtxRecover",
    "DtxRollback",
    "DtxSelect",
    "DtxSetTimeout",
    "DtxStart",
    "ExchangeBind",
    "ExchangeBound",
    "ExchangeDeclare",
    "ExchangeDelete",
    "ExchangeQuery",
    "ExchangeUnbind",
    "ExecutionException",
    "ExecutionResult",
    "ExecutionSync",
    "FileAck",
    "FileCancel",
    "FileConsume",
    "FileConsumeOk",
    "FileDeliver",
    "FileOpen",
    "FileOpenOk",
    "FilePublish",
    "FileQos",
    "FileQosOk",
    "FileReject",
    "FileReturn",
    "FileStage",
    "MessageAccept",
    "MessageAcquire",
    "MessageCancel",
    "MessageFlow",
    "MessageFlush",
    "MessageReject",
    "MessageRelease",
    "MessageResume",
    "MessageSetFlowMode",
    "MessageStop",
    "MessageSubscribe",
    "MessageTransfer",
    "QueueDeclare",
    "QueueDelete",
    "QueuePurge",
    "QueueQuery",
    "StreamCancel",
    "StreamConsume",
    "StreamConsumeOk",
    "StreamDeliver",
    "StreamPublish",
    "StreamQos",
    "StreamQosOk",
    "StreamReturn",
    "TxCommit",
    "TxRollback",
    "TxSelect",
    "decode",
]

_read_H = struct.Struct(">H").unpack_from
_read_HBBH = struct.Struct(">HBBH").unpack_from
_read_I = struct.Struct(">I").unpack_from
_read_Q = struct.Struct(">Q").unpack_from
_pack_B = struct.Struct(">B").pack
_pack_H = struct.Struct(">H").pack
_pack_HBBH = struct.Struct(">HBBH").pack
_pack_I = struct.Struct(">I").pack
_pack_Q = struct.Struct(">Q").pack
_EXECUTION_ERROR_CODE = frozenset((403, 404, 405, 406, 408, 409, 503, 506, 530, 531, 540, 541, 542))
_FILE_RETURN_CODE = frozenset((311, 312, 313))
_MESSAGE_ACCEPT_MODE = frozenset((0, 1))
_MESSAGE_ACQUIRE_MODE = frozenset((0, 1))
_MESSAGE_CREDIT_UNIT = frozenset((0, 1))
_MESSAGE_FLOW_MODE = frozenset((0, 1))
_MESSAGE_REJECT_CODE = frozenset((0, 1, 2))
_STREAM_RETURN_CODE = frozenset((311, 312, 313))


class ExecutionSync(Command):
    """execution.sync (3.1); received by the server and the client."""

    __slots__ = ()

    NAME: ClassVar[str] = "execution.sync"
    CLASS: ClassVar[int] = 3
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0301
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        return b"\x03\x01\x01\x01\x00\x00" if sync else b"\x03\x01\x01\x00\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x03\x01\x01\x00\x00\x00" and octets != b"\x03\x01\x01\x01\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class ExecutionResult(Command):
    """execution.result (3.2); received by the server and the client."""

    __slots__ = ("command_id", "value")

    NAME: ClassVar[str] = "execution.result"
    CLASS: ClassVar[int] = 3
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0302
    FIELDS: ClassVar[Fields] = (("command_id", "sequence-no"), ("value", "struct32"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("command_id",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    command_id: int | None
    value: Any | None

    def __init__(self, command_id: int | None = None, value: Any | None = None) -> None:
        self.command_id = command_id
        self.value = value

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.command_id is not None:
                flags |= 0x0100
                parts.append(_pack_I(self.command_id))
            if self.value is not None:
                flags |= 0x0200
                parts.append(encode_struct32(self.value))
            parts[0] = _pack_HBBH(0x0302, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0302 or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.command_id = _read_I(octets, end)[0]
                end += 4
            if flags & 0x0200:
                packed.value, end = read_struct32(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ExecutionException(Command):
    """execution.exception (3.3); received by the client and the server."""

    __slots__ = (
        "class_code",
        "command_code",
        "command_id",
        "description",
        "error_code",
        "error_info",
        "field_index",
    )

    NAME: ClassVar[str] = "execution.exception"
    CLASS: ClassVar[int] = 3
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0303
    FIELDS: ClassVar[Fields] = (
        ("error_code", "uint16"),
        ("command_id", "sequence-no"),
        ("class_code", "uint8"),
        ("command_code", "uint8"),
        ("field_index", "uint8"),
        ("description", "str16"),
        ("error_info", "map"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("error_code",)
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"error_code": _EXECUTION_ERROR_CODE}
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")

    error_code: int | None
    command_id: int | None
    class_code: int | None
    command_code: int | None
    field_index: int | None
    description: str | None
    error_info: Mapping[str, Any] | None

    def __init__(
        self,
        error_code: int | None = None,
        command_id: int | None = None,
        class_code: int | None = None,
        command_code: int | None = None,
        field_index: int | None = None,
        description: str | None = None,
        error_info: Mapping[str, Any] | None = None,
    ) -> None:
        self.error_code = error_code
        self.command_id = command_id
        self.class_code = class_code
        self.command_code = command_code
        self.field_index = field_index
        self.description = description
        self.error_info = error_info

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.error_code is not None:
                flags |= 0x0100
                parts.append(_pack_H(self.error_code))
            if self.command_id is not None:
                flags |= 0x0200
                parts.append(_pack_I(self.command_id))
            if self.class_code is not None:
                flags |= 0x0400
                parts.append(_pack_B(self.class_code))
            if self.command_code is not None:
                flags |= 0x0800
                parts.append(_pack_B(self.command_code))
            if self.field_index is not None:
                flags |= 0x1000
                parts.append(_pack_B(self.field_index))
            if self.description is not None:
                flags |= 0x2000
                octets = self.description.encode("utf-8", "surrogateescape")
                parts += (_pack_H(len(octets)), octets)
            if self.error_info is not None:
                flags |= 0x4000
                parts.append(encode_map(self.error_info))
            parts[0] = _pack_HBBH(0x0303, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0303 or size != 1 or sync > 1 or flags & 0x80FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.error_code = _read_H(octets, end)[0]
                end += 2
                if packed.error_code not in _EXECUTION_ERROR_CODE:
                    raise unreadable(cls, octets)
            if flags & 0x0200:
                packed.command_id = _read_I(octets, end)[0]
                end += 4
            if flags & 0x0400:
                packed.class_code = octets[end]
                end += 1
            if flags & 0x0800:
                packed.command_code = octets[end]
                end += 1
            if flags & 0x1000:
                packed.field_index = octets[end]
                end += 1
            if flags & 0x2000:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.description = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x4000:
                packed.error_info, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageTransfer(Command):
    """message.transfer (4.1); received by the server and the client; a header and a body may follow."""

    __slots__ = ("accept_mode", "acquire_mode", "destination")

    NAME: ClassVar[str] = "message.transfer"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0401
    FIELDS: ClassVar[Fields] = (("destination", "str8"), ("accept_mode", "uint8"), ("acquire_mode", "uint8"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("accept_mode", "acquire_mode")
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {
        "accept_mode": _MESSAGE_ACCEPT_MODE,
        "acquire_mode": _MESSAGE_ACQUIRE_MODE,
    }
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")
    HEADER: ClassVar[tuple[str, ...] | None] = (
        "message.delivery-properties",
        "message.fragment-properties",
        "message.message-properties",
    )
    BODY: ClassVar[bool] = True

    destination: str | None
    accept_mode: int | None
    acquire_mode: int | None

    def __init__(
        self, destination: str | None = None, accept_mode: int | None = None, acquire_mode: int | None = None
    ) -> None:
        self.destination = destination
        self.accept_mode = accept_mode
        self.acquire_mode = acquire_mode

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.destination is not None:
                flags |= 0x0100
                octets = self.destination.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.accept_mode is not None:
                flags |= 0x0200
                parts.append(_pack_B(self.accept_mode))
            if self.acquire_mode is not None:
                flags |= 0x0400
                parts.append(_pack_B(self.acquire_mode))
            parts[0] = _pack_HBBH(0x0401, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0401 or size != 1 or sync > 1 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.destination = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                packed.accept_mode = octets[end]
                end += 1
                if packed.accept_mode not in _MESSAGE_ACCEPT_MODE:
                    raise unreadable(cls, octets)
            if flags & 0x0400:
                packed.acquire_mode = octets[end]
                end += 1
                if packed.acquire_mode not in _MESSAGE_ACQUIRE_MODE:
                    raise unreadable(cls, octets)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageAccept(Command):
    """message.accept (4.2); received by the server and the client."""

    __slots__ = ("transfers",)

    NAME: ClassVar[str] = "message.accept"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0402
    FIELDS: ClassVar[Fields] = (("transfers", "sequence-set"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("transfers",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    transfers: SequenceSet | None

    def __init__(self, transfers: SequenceSet | None = None) -> None:
        self.transfers = transfers

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.transfers is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.transfers))
            parts[0] = _pack_HBBH(0x0402, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0402 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.transfers, end = read_sequence_set(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageReject(Command):
    """message.reject (4.3); received by the server and the client."""

    __slots__ = ("code", "text", "transfers")

    NAME: ClassVar[str] = "message.reject"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0403
    FIELDS: ClassVar[Fields] = (("transfers", "sequence-set"), ("code", "uint16"), ("text", "str8"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("transfers", "code")
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"code": _MESSAGE_REJECT_CODE}
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    transfers: SequenceSet | None
    code: int | None
    text: str | None

    def __init__(
        self, transfers: SequenceSet | None = None, code: int | None = None, text: str | None = None
    ) -> None:
        self.transfers = transfers
        self.code = code
        self.text = text

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.transfers is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.transfers))
            if self.code is not None:
                flags |= 0x0200
                parts.append(_pack_H(self.code))
            if self.text is not None:
                flags |= 0x0400
                octets = self.text.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0403, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0403 or size != 1 or sync > 1 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.transfers, end = read_sequence_set(octets, end)
            if flags & 0x0200:
                packed.code = _read_H(octets, end)[0]
                end += 2
                if packed.code not in _MESSAGE_REJECT_CODE:
                    raise unreadable(cls, octets)
            if flags & 0x0400:
                start = end + 1
                end = start + octets[end]
                packed.text = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageRelease(Command):
    """message.release (4.4); received by the server and the client."""

    __slots__ = ("set_redelivered", "transfers")

    NAME: ClassVar[str] = "message.release"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0404
    FIELDS: ClassVar[Fields] = (("transfers", "sequence-set"), ("set_redelivered", "bit"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("transfers",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    transfers: SequenceSet | None
    set_redelivered: bool

    def __init__(self, transfers: SequenceSet | None = None, set_redelivered: bool = False) -> None:
        self.transfers = transfers
        self.set_redelivered = set_redelivered

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.transfers is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.transfers))
            if self.set_redelivered:
                flags |= 0x0200
            parts[0] = _pack_HBBH(0x0404, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0404 or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.transfers, end = read_sequence_set(octets, end)
            packed.set_redelivered = flags & 0x0200 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageAcquire(Command):
    """message.acquire (4.5); received by the server; its result is message.acquired."""

    __slots__ = ("transfers",)

    NAME: ClassVar[str] = "message.acquire"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 5
    INDEX: ClassVar[int] = 0x0405
    FIELDS: ClassVar[Fields] = (("transfers", "sequence-set"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("transfers",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "message.acquired"

    transfers: SequenceSet | None

    def __init__(self, transfers: SequenceSet | None = None) -> None:
        self.transfers = transfers

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.transfers is not None:
                flags |= 0x0100
                parts.append(SequenceSet.encode(self.transfers))
            parts[0] = _pack_HBBH(0x0405, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0405 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.transfers, end = read_sequence_set(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageResume(Command):
    """message.resume (4.6).

    Received by the server and the client; its result is message.message-resume-result.
    """

    __slots__ = ("destination", "resume_id")

    NAME: ClassVar[str] = "message.resume"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 6
    INDEX: ClassVar[int] = 0x0406
    FIELDS: ClassVar[Fields] = (("destination", "str8"), ("resume_id", "str16"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("resume_id",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")
    RESULT: ClassVar[str | None] = "message.message-resume-result"

    destination: str | None
    resume_id: str | None

    def __init__(self, destination: str | None = None, resume_id: str | None = None) -> None:
        self.destination = destination
        self.resume_id = resume_id

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.destination is not None:
                flags |= 0x0100
                octets = self.destination.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.resume_id is not None:
                flags |= 0x0200
                octets = self.resume_id.encode("utf-8", "surrogateescape")
                parts += (_pack_H(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0406, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0406 or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.destination = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.resume_id = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageSubscribe(Command):
    """message.subscribe (4.7); received by the server."""

    __slots__ = (
        "accept_mode",
        "acquire_mode",
        "arguments",
        "destination",
        "exclusive",
        "queue",
        "resume_id",
        "resume_ttl",
    )

    NAME: ClassVar[str] = "message.subscribe"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 7
    INDEX: ClassVar[int] = 0x0407
    FIELDS: ClassVar[Fields] = (
        ("queue", "str8"),
        ("destination", "str8"),
        ("accept_mode", "uint8"),
        ("acquire_mode", "uint8"),
        ("exclusive", "bit"),
        ("resume_id", "str16"),
        ("resume_ttl", "uint64"),
        ("arguments", "map"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue", "accept_mode", "acquire_mode")
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {
        "accept_mode": _MESSAGE_ACCEPT_MODE,
        "acquire_mode": _MESSAGE_ACQUIRE_MODE,
    }
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    queue: str | None
    destination: str | None
    accept_mode: int | None
    acquire_mode: int | None
    exclusive: bool
    resume_id: str | None
    resume_ttl: int | None
    arguments: Mapping[str, Any] | None

    def __init__(
        self,
        queue: str | None = None,
        destination: str | None = None,
        accept_mode: int | None = None,
        acquire_mode: int | None = None,
        exclusive: bool = False,
        resume_id: str | None = None,
        resume_ttl: int | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.queue = queue
        self.destination = destination
        self.accept_mode = accept_mode
        self.acquire_mode = acquire_mode
        self.exclusive = exclusive
        self.resume_id = resume_id
        self.resume_ttl = resume_ttl
        self.arguments = arguments

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.queue is not None:
                flags |= 0x0100
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.destination is not None:
                flags |= 0x0200
                octets = self.destination.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.accept_mode is not None:
                flags |= 0x0400
                parts.append(_pack_B(self.accept_mode))
            if self.acquire_mode is not None:
                flags |= 0x0800
                parts.append(_pack_B(self.acquire_mode))
            if self.exclusive:
                flags |= 0x1000
            if self.resume_id is not None:
                flags |= 0x2000
                octets = self.resume_id.encode("utf-8", "surrogateescape")
                parts += (_pack_H(len(octets)), octets)
            if self.resume_ttl is not None:
                flags |= 0x4000
                parts.append(_pack_Q(self.resume_ttl))
            if self.arguments is not None:
                flags |= 0x8000
                parts.append(encode_map(self.arguments))
            parts[0] = _pack_HBBH(0x0407, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0407 or size != 1 or sync > 1 or flags & 0x00FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.destination = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                packed.accept_mode = octets[end]
                end += 1
                if packed.accept_mode not in _MESSAGE_ACCEPT_MODE:
                    raise unreadable(cls, octets)
            if flags & 0x0800:
                packed.acquire_mode = octets[end]
                end += 1
                if packed.acquire_mode not in _MESSAGE_ACQUIRE_MODE:
                    raise unreadable(cls, octets)
            packed.exclusive = flags & 0x1000 != 0
            if flags & 0x2000:
                start = end + 2
                end = start + _read_H(octets, end)[0]
                packed.resume_id = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x4000:
                packed.resume_ttl = _read_Q(octets, end)[0]
                end += 8
            if flags & 0x8000:
                packed.arguments, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageCancel(Command):
    """message.cancel (4.8); received by the server."""

    __slots__ = ("destination",)

    NAME: ClassVar[str] = "message.cancel"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 8
    INDEX: ClassVar[int] = 0x0408
    FIELDS: ClassVar[Fields] = (("destination", "str8"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("destination",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    destination: str | None

    def __init__(self, destination: str | None = None) -> None:
        self.destination = destination

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.destination is not None:
                flags |= 0x0100
                octets = self.destination.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0408, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0408 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.destination = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageSetFlowMode(Command):
    """message.set-flow-mode (4.9); received by the server and the client."""

    __slots__ = ("destination", "flow_mode")

    NAME: ClassVar[str] = "message.set-flow-mode"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 9
    INDEX: ClassVar[int] = 0x0409
    FIELDS: ClassVar[Fields] = (("destination", "str8"), ("flow_mode", "uint8"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("flow_mode",)
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"flow_mode": _MESSAGE_FLOW_MODE}
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    destination: str | None
    flow_mode: int | None

    def __init__(self, destination: str | None = None, flow_mode: int | None = None) -> None:
        self.destination = destination
        self.flow_mode = flow_mode

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.destination is not None:
                flags |= 0x0100
                octets = self.destination.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.flow_mode is not None:
                flags |= 0x0200
                parts.append(_pack_B(self.flow_mode))
            parts[0] = _pack_HBBH(0x0409, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0409 or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.destination = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                packed.flow_mode = octets[end]
                end += 1
                if packed.flow_mode not in _MESSAGE_FLOW_MODE:
                    raise unreadable(cls, octets)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageFlow(Command):
    """message.flow (4.10); received by the server and the client."""

    __slots__ = ("destination", "unit", "value")

    NAME: ClassVar[str] = "message.flow"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x040A
    FIELDS: ClassVar[Fields] = (("destination", "str8"), ("unit", "uint8"), ("value", "uint32"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("unit",)
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"unit": _MESSAGE_CREDIT_UNIT}
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    destination: str | None
    unit: int | None
    value: int | None

    def __init__(
        self, destination: str | None = None, unit: int | None = None, value: int | None = None
    ) -> None:
        self.destination = destination
        self.unit = unit
        self.value = value

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.destination is not None:
                flags |= 0x0100
                octets = self.destination.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.unit is not None:
                flags |= 0x0200
                parts.append(_pack_B(self.unit))
            if self.value is not None:
                flags |= 0x0400
                parts.append(_pack_I(self.value))
            parts[0] = _pack_HBBH(0x040A, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x040A or size != 1 or sync > 1 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.destination = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                packed.unit = octets[end]
                end += 1
                if packed.unit not in _MESSAGE_CREDIT_UNIT:
                    raise unreadable(cls, octets)
            if flags & 0x0400:
                packed.value = _read_I(octets, end)[0]
                end += 4
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageFlush(Command):
    """message.flush (4.11); received by the server."""

    __slots__ = ("destination",)

    NAME: ClassVar[str] = "message.flush"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x040B
    FIELDS: ClassVar[Fields] = (("destination", "str8"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    destination: str | None

    def __init__(self, destination: str | None = None) -> None:
        self.destination = destination

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.destination is not None:
                flags |= 0x0100
                octets = self.destination.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x040B, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x040B or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.destination = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class MessageStop(Command):
    """message.stop (4.12); received by the server and the client."""

    __slots__ = ("destination",)

    NAME: ClassVar[str] = "message.stop"
    CLASS: ClassVar[int] = 4
    CODE: ClassVar[int] = 12
    INDEX: ClassVar[int] = 0x040C
    FIELDS: ClassVar[Fields] = (("destination", "str8"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")

    destination: str | None

    def __init__(self, destination: str | None = None) -> None:
        self.destination = destination

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.destination is not None:
                flags |= 0x0100
                octets = self.destination.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x040C, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x040C or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.destination = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class TxSelect(Command):
    """tx.select (5.1); received by the server."""

    __slots__ = ()

    NAME: ClassVar[str] = "tx.select"
    CLASS: ClassVar[int] = 5
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0501
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        return b"\x05\x01\x01\x01\x00\x00" if sync else b"\x05\x01\x01\x00\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x05\x01\x01\x00\x00\x00" and octets != b"\x05\x01\x01\x01\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class TxCommit(Command):
    """tx.commit (5.2); received by the server."""

    __slots__ = ()

    NAME: ClassVar[str] = "tx.commit"
    CLASS: ClassVar[int] = 5
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0502
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        return b"\x05\x02\x01\x01\x00\x00" if sync else b"\x05\x02\x01\x00\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x05\x02\x01\x00\x00\x00" and octets != b"\x05\x02\x01\x01\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class TxRollback(Command):
    """tx.rollback (5.3); received by the server."""

    __slots__ = ()

    NAME: ClassVar[str] = "tx.rollback"
    CLASS: ClassVar[int] = 5
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0503
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        return b"\x05\x03\x01\x01\x00\x00" if sync else b"\x05\x03\x01\x00\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x05\x03\x01\x00\x00\x00" and octets != b"\x05\x03\x01\x01\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class DtxSelect(Command):
    """dtx.select (6.1); received by the server."""

    __slots__ = ()

    NAME: ClassVar[str] = "dtx.select"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0601
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        return b"\x06\x01\x01\x01\x00\x00" if sync else b"\x06\x01\x01\x00\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x06\x01\x01\x00\x00\x00" and octets != b"\x06\x01\x01\x01\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class DtxStart(Command):
    """dtx.start (6.2); received by the server; its result is dtx.xa-result."""

    __slots__ = ("join", "resume", "xid")

    NAME: ClassVar[str] = "dtx.start"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0602
    FIELDS: ClassVar[Fields] = (("xid", "struct:dtx.xid"), ("join", "bit"), ("resume", "bit"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("xid",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "dtx.xa-result"

    xid: Xid | None
    join: bool
    resume: bool

    def __init__(self, xid: Xid | None = None, join: bool = False, resume: bool = False) -> None:
        self.xid = xid
        self.join = join
        self.resume = resume

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.xid is not None:
                flags |= 0x0100
                parts.append(Xid.encode(self.xid))
            if self.join:
                flags |= 0x0200
            if self.resume:
                flags |= 0x0400
            parts[0] = _pack_HBBH(0x0602, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0602 or size != 1 or sync > 1 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end
                end += 4 + _read_I(octets, end)[0]
                packed.xid = Xid.decode(octets[start:end])
            packed.join = flags & 0x0200 != 0
            packed.resume = flags & 0x0400 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class DtxEnd(Command):
    """dtx.end (6.3); received by the server; its result is dtx.xa-result."""

    __slots__ = ("fail", "suspend", "xid")

    NAME: ClassVar[str] = "dtx.end"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0603
    FIELDS: ClassVar[Fields] = (("xid", "struct:dtx.xid"), ("fail", "bit"), ("suspend", "bit"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("xid",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "dtx.xa-result"

    xid: Xid | None
    fail: bool
    suspend: bool

    def __init__(self, xid: Xid | None = None, fail: bool = False, suspend: bool = False) -> None:
        self.xid = xid
        self.fail = fail
        self.suspend = suspend

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.xid is not None:
                flags |= 0x0100
                parts.append(Xid.encode(self.xid))
            if self.fail:
                flags |= 0x0200
            if self.suspend:
                flags |= 0x0400
            parts[0] = _pack_HBBH(0x0603, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0603 or size != 1 or sync > 1 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end
                end += 4 + _read_I(octets, end)[0]
                packed.xid = Xid.decode(octets[start:end])
            packed.fail = flags & 0x0200 != 0
            packed.suspend = flags & 0x0400 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class DtxCommit(Command):
    """dtx.commit (6.4); received by the server; its result is dtx.xa-result."""

    __slots__ = ("one_phase", "xid")

    NAME: ClassVar[str] = "dtx.commit"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0604
    FIELDS: ClassVar[Fields] = (("xid", "struct:dtx.xid"), ("one_phase", "bit"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("xid",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "dtx.xa-result"

    xid: Xid | None
    one_phase: bool

    def __init__(self, xid: Xid | None = None, one_phase: bool = False) -> None:
        self.xid = xid
        self.one_phase = one_phase

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.xid is not None:
                flags |= 0x0100
                parts.append(Xid.encode(self.xid))
            if self.one_phase:
                flags |= 0x0200
            parts[0] = _pack_HBBH(0x0604, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0604 or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end
                end += 4 + _read_I(octets, end)[0]
                packed.xid = Xid.decode(octets[start:end])
            packed.one_phase = flags & 0x0200 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class DtxForget(Command):
    """dtx.forget (6.5); received by the server."""

    __slots__ = ("xid",)

    NAME: ClassVar[str] = "dtx.forget"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 5
    INDEX: ClassVar[int] = 0x0605
    FIELDS: ClassVar[Fields] = (("xid", "struct:dtx.xid"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("xid",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    xid: Xid | None

    def __init__(self, xid: Xid | None = None) -> None:
        self.xid = xid

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.xid is not None:
                flags |= 0x0100
                parts.append(Xid.encode(self.xid))
            parts[0] = _pack_HBBH(0x0605, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0605 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end
                end += 4 + _read_I(octets, end)[0]
                packed.xid = Xid.decode(octets[start:end])
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class DtxGetTimeout(Command):
    """dtx.get-timeout (6.6); received by the server; its result is dtx.get-timeout-result."""

    __slots__ = ("xid",)

    NAME: ClassVar[str] = "dtx.get-timeout"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 6
    INDEX: ClassVar[int] = 0x0606
    FIELDS: ClassVar[Fields] = (("xid", "struct:dtx.xid"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("xid",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "dtx.get-timeout-result"

    xid: Xid | None

    def __init__(self, xid: Xid | None = None) -> None:
        self.xid = xid

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.xid is not None:
                flags |= 0x0100
                parts.append(Xid.encode(self.xid))
            parts[0] = _pack_HBBH(0x0606, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0606 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end
                end += 4 + _read_I(octets, end)[0]
                packed.xid = Xid.decode(octets[start:end])
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class DtxPrepare(Command):
    """dtx.prepare (6.7); received by the server; its result is dtx.xa-result."""

    __slots__ = ("xid",)

    NAME: ClassVar[str] = "dtx.prepare"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 7
    INDEX: ClassVar[int] = 0x0607
    FIELDS: ClassVar[Fields] = (("xid", "struct:dtx.xid"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("xid",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "dtx.xa-result"

    xid: Xid | None

    def __init__(self, xid: Xid | None = None) -> None:
        self.xid = xid

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.xid is not None:
                flags |= 0x0100
                parts.append(Xid.encode(self.xid))
            parts[0] = _pack_HBBH(0x0607, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0607 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end
                end += 4 + _read_I(octets, end)[0]
                packed.xid = Xid.decode(octets[start:end])
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class DtxRecover(Command):
    """dtx.recover (6.8); received by the server; its result is dtx.recover-result."""

    __slots__ = ()

    NAME: ClassVar[str] = "dtx.recover"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 8
    INDEX: ClassVar[int] = 0x0608
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "dtx.recover-result"

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        return b"\x06\x08\x01\x01\x00\x00" if sync else b"\x06\x08\x01\x00\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x06\x08\x01\x00\x00\x00" and octets != b"\x06\x08\x01\x01\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class DtxRollback(Command):
    """dtx.rollback (6.9); received by the server; its result is dtx.xa-result."""

    __slots__ = ("xid",)

    NAME: ClassVar[str] = "dtx.rollback"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 9
    INDEX: ClassVar[int] = 0x0609
    FIELDS: ClassVar[Fields] = (("xid", "struct:dtx.xid"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("xid",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "dtx.xa-result"

    xid: Xid | None

    def __init__(self, xid: Xid | None = None) -> None:
        self.xid = xid

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.xid is not None:
                flags |= 0x0100
                parts.append(Xid.encode(self.xid))
            parts[0] = _pack_HBBH(0x0609, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0609 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end
                end += 4 + _read_I(octets, end)[0]
                packed.xid = Xid.decode(octets[start:end])
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class DtxSetTimeout(Command):
    """dtx.set-timeout (6.10); received by the server."""

    __slots__ = ("timeout", "xid")

    NAME: ClassVar[str] = "dtx.set-timeout"
    CLASS: ClassVar[int] = 6
    CODE: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x060A
    FIELDS: ClassVar[Fields] = (("xid", "struct:dtx.xid"), ("timeout", "uint32"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("xid", "timeout")
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    xid: Xid | None
    timeout: int | None

    def __init__(self, xid: Xid | None = None, timeout: int | None = None) -> None:
        self.xid = xid
        self.timeout = timeout

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.xid is not None:
                flags |= 0x0100
                parts.append(Xid.encode(self.xid))
            if self.timeout is not None:
                flags |= 0x0200
                parts.append(_pack_I(self.timeout))
            parts[0] = _pack_HBBH(0x060A, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x060A or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end
                end += 4 + _read_I(octets, end)[0]
                packed.xid = Xid.decode(octets[start:end])
            if flags & 0x0200:
                packed.timeout = _read_I(octets, end)[0]
                end += 4
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ExchangeDeclare(Command):
    """exchange.declare (7.1); received by the server."""

    __slots__ = ("alternate_exchange", "arguments", "auto_delete", "durable", "exchange", "passive", "type")

    NAME: ClassVar[str] = "exchange.declare"
    CLASS: ClassVar[int] = 7
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0701
    FIELDS: ClassVar[Fields] = (
        ("exchange", "str8"),
        ("type", "str8"),
        ("alternate_exchange", "str8"),
        ("passive", "bit"),
        ("durable", "bit"),
        ("auto_delete", "bit"),
        ("arguments", "map"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("exchange", "type")
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    exchange: str | None
    type: str | None
    alternate_exchange: str | None
    passive: bool
    durable: bool
    auto_delete: bool
    arguments: Mapping[str, Any] | None

    def __init__(
        self,
        exchange: str | None = None,
        type: str | None = None,
        alternate_exchange: str | None = None,
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.exchange = exchange
        self.type = type
        self.alternate_exchange = alternate_exchange
        self.passive = passive
        self.durable = durable
        self.auto_delete = auto_delete
        self.arguments = arguments

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.exchange is not None:
                flags |= 0x0100
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.type is not None:
                flags |= 0x0200
                octets = self.type.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.alternate_exchange is not None:
                flags |= 0x0400
                octets = self.alternate_exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.passive:
                flags |= 0x0800
            if self.durable:
                flags |= 0x1000
            if self.auto_delete:
                flags |= 0x2000
            if self.arguments is not None:
                flags |= 0x4000
                parts.append(encode_map(self.arguments))
            parts[0] = _pack_HBBH(0x0701, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0701 or size != 1 or sync > 1 or flags & 0x80FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.type = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                start = end + 1
                end = start + octets[end]
                packed.alternate_exchange = octets[start:end].decode("utf-8", "surrogateescape")
            packed.passive = flags & 0x0800 != 0
            packed.durable = flags & 0x1000 != 0
            packed.auto_delete = flags & 0x2000 != 0
            if flags & 0x4000:
                packed.arguments, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ExchangeDelete(Command):
    """exchange.delete (7.2); received by the server."""

    __slots__ = ("exchange", "if_unused")

    NAME: ClassVar[str] = "exchange.delete"
    CLASS: ClassVar[int] = 7
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0702
    FIELDS: ClassVar[Fields] = (("exchange", "str8"), ("if_unused", "bit"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("exchange",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    exchange: str | None
    if_unused: bool

    def __init__(self, exchange: str | None = None, if_unused: bool = False) -> None:
        self.exchange = exchange
        self.if_unused = if_unused

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.exchange is not None:
                flags |= 0x0100
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.if_unused:
                flags |= 0x0200
            parts[0] = _pack_HBBH(0x0702, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0702 or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            packed.if_unused = flags & 0x0200 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ExchangeQuery(Command):
    """exchange.query (7.3); received by the server; its result is exchange.exchange-query-result."""

    __slots__ = ("name",)

    NAME: ClassVar[str] = "exchange.query"
    CLASS: ClassVar[int] = 7
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0703
    FIELDS: ClassVar[Fields] = (("name", "str8"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "exchange.exchange-query-result"

    name: str | None

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.name is not None:
                flags |= 0x0100
                octets = self.name.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0703, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0703 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.name = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ExchangeBind(Command):
    """exchange.bind (7.4); received by the server."""

    __slots__ = ("arguments", "binding_key", "exchange", "queue")

    NAME: ClassVar[str] = "exchange.bind"
    CLASS: ClassVar[int] = 7
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0704
    FIELDS: ClassVar[Fields] = (
        ("queue", "str8"),
        ("exchange", "str8"),
        ("binding_key", "str8"),
        ("arguments", "map"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue", "exchange", "binding_key")
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    queue: str | None
    exchange: str | None
    binding_key: str | None
    arguments: Mapping[str, Any] | None

    def __init__(
        self,
        queue: str | None = None,
        exchange: str | None = None,
        binding_key: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.queue = queue
        self.exchange = exchange
        self.binding_key = binding_key
        self.arguments = arguments

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.queue is not None:
                flags |= 0x0100
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.exchange is not None:
                flags |= 0x0200
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.binding_key is not None:
                flags |= 0x0400
                octets = self.binding_key.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.arguments is not None:
                flags |= 0x0800
                parts.append(encode_map(self.arguments))
            parts[0] = _pack_HBBH(0x0704, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0704 or size != 1 or sync > 1 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                start = end + 1
                end = start + octets[end]
                packed.binding_key = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0800:
                packed.arguments, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ExchangeUnbind(Command):
    """exchange.unbind (7.5); received by the server."""

    __slots__ = ("binding_key", "exchange", "queue")

    NAME: ClassVar[str] = "exchange.unbind"
    CLASS: ClassVar[int] = 7
    CODE: ClassVar[int] = 5
    INDEX: ClassVar[int] = 0x0705
    FIELDS: ClassVar[Fields] = (("queue", "str8"), ("exchange", "str8"), ("binding_key", "str8"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue", "exchange", "binding_key")
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    queue: str | None
    exchange: str | None
    binding_key: str | None

    def __init__(
        self, queue: str | None = None, exchange: str | None = None, binding_key: str | None = None
    ) -> None:
        self.queue = queue
        self.exchange = exchange
        self.binding_key = binding_key

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.queue is not None:
                flags |= 0x0100
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.exchange is not None:
                flags |= 0x0200
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.binding_key is not None:
                flags |= 0x0400
                octets = self.binding_key.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0705, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0705 or size != 1 or sync > 1 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                start = end + 1
                end = start + octets[end]
                packed.binding_key = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class ExchangeBound(Command):
    """exchange.bound (7.6); received by the server; its result is exchange.exchange-bound-result."""

    __slots__ = ("arguments", "binding_key", "exchange", "queue")

    NAME: ClassVar[str] = "exchange.bound"
    CLASS: ClassVar[int] = 7
    CODE: ClassVar[int] = 6
    INDEX: ClassVar[int] = 0x0706
    FIELDS: ClassVar[Fields] = (
        ("exchange", "str8"),
        ("queue", "str8"),
        ("binding_key", "str8"),
        ("arguments", "map"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "exchange.exchange-bound-result"

    exchange: str | None
    queue: str | None
    binding_key: str | None
    arguments: Mapping[str, Any] | None

    def __init__(
        self,
        exchange: str | None = None,
        queue: str | None = None,
        binding_key: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.exchange = exchange
        self.queue = queue
        self.binding_key = binding_key
        self.arguments = arguments

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.exchange is not None:
                flags |= 0x0100
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.queue is not None:
                flags |= 0x0200
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.binding_key is not None:
                flags |= 0x0400
                octets = self.binding_key.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.arguments is not None:
                flags |= 0x0800
                parts.append(encode_map(self.arguments))
            parts[0] = _pack_HBBH(0x0706, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0706 or size != 1 or sync > 1 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                start = end + 1
                end = start + octets[end]
                packed.binding_key = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0800:
                packed.arguments, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class QueueDeclare(Command):
    """queue.declare (8.1); received by the server."""

    __slots__ = ("alternate_exchange", "arguments", "auto_delete", "durable", "exclusive", "passive", "queue")

    NAME: ClassVar[str] = "queue.declare"
    CLASS: ClassVar[int] = 8
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0801
    FIELDS: ClassVar[Fields] = (
        ("queue", "str8"),
        ("alternate_exchange", "str8"),
        ("passive", "bit"),
        ("durable", "bit"),
        ("exclusive", "bit"),
        ("auto_delete", "bit"),
        ("arguments", "map"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    queue: str | None
    alternate_exchange: str | None
    passive: bool
    durable: bool
    exclusive: bool
    auto_delete: bool
    arguments: Mapping[str, Any] | None

    def __init__(
        self,
        queue: str | None = None,
        alternate_exchange: str | None = None,
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.queue = queue
        self.alternate_exchange = alternate_exchange
        self.passive = passive
        self.durable = durable
        self.exclusive = exclusive
        self.auto_delete = auto_delete
        self.arguments = arguments

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
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
            if self.passive:
                flags |= 0x0400
            if self.durable:
                flags |= 0x0800
            if self.exclusive:
                flags |= 0x1000
            if self.auto_delete:
                flags |= 0x2000
            if self.arguments is not None:
                flags |= 0x4000
                parts.append(encode_map(self.arguments))
            parts[0] = _pack_HBBH(0x0801, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0801 or size != 1 or sync > 1 or flags & 0x80FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.alternate_exchange = octets[start:end].decode("utf-8", "surrogateescape")
            packed.passive = flags & 0x0400 != 0
            packed.durable = flags & 0x0800 != 0
            packed.exclusive = flags & 0x1000 != 0
            packed.auto_delete = flags & 0x2000 != 0
            if flags & 0x4000:
                packed.arguments, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class QueueDelete(Command):
    """queue.delete (8.2); received by the server."""

    __slots__ = ("if_empty", "if_unused", "queue")

    NAME: ClassVar[str] = "queue.delete"
    CLASS: ClassVar[int] = 8
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0802
    FIELDS: ClassVar[Fields] = (("queue", "str8"), ("if_unused", "bit"), ("if_empty", "bit"))
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    queue: str | None
    if_unused: bool
    if_empty: bool

    def __init__(self, queue: str | None = None, if_unused: bool = False, if_empty: bool = False) -> None:
        self.queue = queue
        self.if_unused = if_unused
        self.if_empty = if_empty

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.queue is not None:
                flags |= 0x0100
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.if_unused:
                flags |= 0x0200
            if self.if_empty:
                flags |= 0x0400
            parts[0] = _pack_HBBH(0x0802, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0802 or size != 1 or sync > 1 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
            packed.if_unused = flags & 0x0200 != 0
            packed.if_empty = flags & 0x0400 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class QueuePurge(Command):
    """queue.purge (8.3); received by the server."""

    __slots__ = ("queue",)

    NAME: ClassVar[str] = "queue.purge"
    CLASS: ClassVar[int] = 8
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0803
    FIELDS: ClassVar[Fields] = (("queue", "str8"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    queue: str | None

    def __init__(self, queue: str | None = None) -> None:
        self.queue = queue

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.queue is not None:
                flags |= 0x0100
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0803, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0803 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class QueueQuery(Command):
    """queue.query (8.4); received by the server; its result is queue.queue-query-result."""

    __slots__ = ("queue",)

    NAME: ClassVar[str] = "queue.query"
    CLASS: ClassVar[int] = 8
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0804
    FIELDS: ClassVar[Fields] = (("queue", "str8"),)
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESULT: ClassVar[str | None] = "queue.queue-query-result"

    queue: str | None

    def __init__(self, queue: str | None = None) -> None:
        self.queue = queue

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.queue is not None:
                flags |= 0x0100
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0804, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0804 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileQos(Command):
    """file.qos (9.1); received by the server; answered by file.qos-ok."""

    __slots__ = ("global_", "prefetch_count", "prefetch_size")

    NAME: ClassVar[str] = "file.qos"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0901
    FIELDS: ClassVar[Fields] = (("prefetch_size", "uint32"), ("prefetch_count", "uint16"), ("global_", "bit"))
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("file.qos-ok",)

    prefetch_size: int | None
    prefetch_count: int | None
    global_: bool

    def __init__(
        self, prefetch_size: int | None = None, prefetch_count: int | None = None, global_: bool = False
    ) -> None:
        self.prefetch_size = prefetch_size
        self.prefetch_count = prefetch_count
        self.global_ = global_

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.prefetch_size is not None:
                flags |= 0x0100
                parts.append(_pack_I(self.prefetch_size))
            if self.prefetch_count is not None:
                flags |= 0x0200
                parts.append(_pack_H(self.prefetch_count))
            if self.global_:
                flags |= 0x0400
            parts[0] = _pack_HBBH(0x0901, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0901 or size != 1 or sync > 1 or flags & 0xF8FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.prefetch_size = _read_I(octets, end)[0]
                end += 4
            if flags & 0x0200:
                packed.prefetch_count = _read_H(octets, end)[0]
                end += 2
            packed.global_ = flags & 0x0400 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileQosOk(Command):
    """file.qos-ok (9.2); received by the client."""

    __slots__ = ()

    NAME: ClassVar[str] = "file.qos-ok"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0902
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        return b"\x09\x02\x01\x01\x00\x00" if sync else b"\x09\x02\x01\x00\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x09\x02\x01\x00\x00\x00" and octets != b"\x09\x02\x01\x01\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class FileConsume(Command):
    """file.consume (9.3); received by the server; answered by file.consume-ok."""

    __slots__ = ("arguments", "consumer_tag", "exclusive", "no_ack", "no_local", "nowait", "queue")

    NAME: ClassVar[str] = "file.consume"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0903
    FIELDS: ClassVar[Fields] = (
        ("queue", "str8"),
        ("consumer_tag", "str8"),
        ("no_local", "bit"),
        ("no_ack", "bit"),
        ("exclusive", "bit"),
        ("nowait", "bit"),
        ("arguments", "map"),
    )
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("file.consume-ok",)

    queue: str | None
    consumer_tag: str | None
    no_local: bool
    no_ack: bool
    exclusive: bool
    nowait: bool
    arguments: Mapping[str, Any] | None

    def __init__(
        self,
        queue: str | None = None,
        consumer_tag: str | None = None,
        no_local: bool = False,
        no_ack: bool = False,
        exclusive: bool = False,
        nowait: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.queue = queue
        self.consumer_tag = consumer_tag
        self.no_local = no_local
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.nowait = nowait
        self.arguments = arguments

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.queue is not None:
                flags |= 0x0100
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.consumer_tag is not None:
                flags |= 0x0200
                octets = self.consumer_tag.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.no_local:
                flags |= 0x0400
            if self.no_ack:
                flags |= 0x0800
            if self.exclusive:
                flags |= 0x1000
            if self.nowait:
                flags |= 0x2000
            if self.arguments is not None:
                flags |= 0x4000
                parts.append(encode_map(self.arguments))
            parts[0] = _pack_HBBH(0x0903, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0903 or size != 1 or sync > 1 or flags & 0x80FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.consumer_tag = octets[start:end].decode("utf-8", "surrogateescape")
            packed.no_local = flags & 0x0400 != 0
            packed.no_ack = flags & 0x0800 != 0
            packed.exclusive = flags & 0x1000 != 0
            packed.nowait = flags & 0x2000 != 0
            if flags & 0x4000:
                packed.arguments, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileConsumeOk(Command):
    """file.consume-ok (9.4); received by the client."""

    __slots__ = ("consumer_tag",)

    NAME: ClassVar[str] = "file.consume-ok"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0904
    FIELDS: ClassVar[Fields] = (("consumer_tag", "str8"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)

    consumer_tag: str | None

    def __init__(self, consumer_tag: str | None = None) -> None:
        self.consumer_tag = consumer_tag

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.consumer_tag is not None:
                flags |= 0x0100
                octets = self.consumer_tag.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0904, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0904 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.consumer_tag = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileCancel(Command):
    """file.cancel (9.5); received by the server."""

    __slots__ = ("consumer_tag",)

    NAME: ClassVar[str] = "file.cancel"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 5
    INDEX: ClassVar[int] = 0x0905
    FIELDS: ClassVar[Fields] = (("consumer_tag", "str8"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    consumer_tag: str | None

    def __init__(self, consumer_tag: str | None = None) -> None:
        self.consumer_tag = consumer_tag

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.consumer_tag is not None:
                flags |= 0x0100
                octets = self.consumer_tag.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0905, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0905 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.consumer_tag = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileOpen(Command):
    """file.open (9.6); received by the server and the client; answered by file.open-ok."""

    __slots__ = ("content_size", "identifier")

    NAME: ClassVar[str] = "file.open"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 6
    INDEX: ClassVar[int] = 0x0906
    FIELDS: ClassVar[Fields] = (("identifier", "str8"), ("content_size", "uint64"))
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")
    RESPONSES: ClassVar[tuple[str, ...]] = ("file.open-ok",)

    identifier: str | None
    content_size: int | None

    def __init__(self, identifier: str | None = None, content_size: int | None = None) -> None:
        self.identifier = identifier
        self.content_size = content_size

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.identifier is not None:
                flags |= 0x0100
                octets = self.identifier.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.content_size is not None:
                flags |= 0x0200
                parts.append(_pack_Q(self.content_size))
            parts[0] = _pack_HBBH(0x0906, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0906 or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.identifier = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                packed.content_size = _read_Q(octets, end)[0]
                end += 8
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileOpenOk(Command):
    """file.open-ok (9.7); received by the server and the client; answered by file.stage."""

    __slots__ = ("staged_size",)

    NAME: ClassVar[str] = "file.open-ok"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 7
    INDEX: ClassVar[int] = 0x0907
    FIELDS: ClassVar[Fields] = (("staged_size", "uint64"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")
    RESPONSES: ClassVar[tuple[str, ...]] = ("file.stage",)

    staged_size: int | None

    def __init__(self, staged_size: int | None = None) -> None:
        self.staged_size = staged_size

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.staged_size is not None:
                flags |= 0x0100
                parts.append(_pack_Q(self.staged_size))
            parts[0] = _pack_HBBH(0x0907, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0907 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.staged_size = _read_Q(octets, end)[0]
                end += 8
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileStage(Command):
    """file.stage (9.8); received by the server and the client; a header and a body may follow."""

    __slots__ = ()

    NAME: ClassVar[str] = "file.stage"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 8
    INDEX: ClassVar[int] = 0x0908
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server", "client")
    HEADER: ClassVar[tuple[str, ...] | None] = ("file.file-properties",)
    BODY: ClassVar[bool] = True

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        return b"\x09\x08\x01\x01\x00\x00" if sync else b"\x09\x08\x01\x00\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x09\x08\x01\x00\x00\x00" and octets != b"\x09\x08\x01\x01\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class FilePublish(Command):
    """file.publish (9.9); received by the server."""

    __slots__ = ("exchange", "identifier", "immediate", "mandatory", "routing_key")

    NAME: ClassVar[str] = "file.publish"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 9
    INDEX: ClassVar[int] = 0x0909
    FIELDS: ClassVar[Fields] = (
        ("exchange", "str8"),
        ("routing_key", "str8"),
        ("mandatory", "bit"),
        ("immediate", "bit"),
        ("identifier", "str8"),
    )
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    exchange: str | None
    routing_key: str | None
    mandatory: bool
    immediate: bool
    identifier: str | None

    def __init__(
        self,
        exchange: str | None = None,
        routing_key: str | None = None,
        mandatory: bool = False,
        immediate: bool = False,
        identifier: str | None = None,
    ) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = mandatory
        self.immediate = immediate
        self.identifier = identifier

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
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
            if self.mandatory:
                flags |= 0x0400
            if self.immediate:
                flags |= 0x0800
            if self.identifier is not None:
                flags |= 0x1000
                octets = self.identifier.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0909, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0909 or size != 1 or sync > 1 or flags & 0xE0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.routing_key = octets[start:end].decode("utf-8", "surrogateescape")
            packed.mandatory = flags & 0x0400 != 0
            packed.immediate = flags & 0x0800 != 0
            if flags & 0x1000:
                start = end + 1
                end = start + octets[end]
                packed.identifier = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileReturn(Command):
    """file.return (9.10); received by the client; a header and a body may follow."""

    __slots__ = ("exchange", "reply_code", "reply_text", "routing_key")

    NAME: ClassVar[str] = "file.return"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x090A
    FIELDS: ClassVar[Fields] = (
        ("reply_code", "uint16"),
        ("reply_text", "str8"),
        ("exchange", "str8"),
        ("routing_key", "str8"),
    )
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"reply_code": _FILE_RETURN_CODE}
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    HEADER: ClassVar[tuple[str, ...] | None] = ("file.file-properties",)
    BODY: ClassVar[bool] = True

    reply_code: int | None
    reply_text: str | None
    exchange: str | None
    routing_key: str | None

    def __init__(
        self,
        reply_code: int | None = None,
        reply_text: str | None = None,
        exchange: str | None = None,
        routing_key: str | None = None,
    ) -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.exchange = exchange
        self.routing_key = routing_key

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
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
            if self.exchange is not None:
                flags |= 0x0400
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.routing_key is not None:
                flags |= 0x0800
                octets = self.routing_key.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x090A, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x090A or size != 1 or sync > 1 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.reply_code = _read_H(octets, end)[0]
                end += 2
                if packed.reply_code not in _FILE_RETURN_CODE:
                    raise unreadable(cls, octets)
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.reply_text = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0800:
                start = end + 1
                end = start + octets[end]
                packed.routing_key = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileDeliver(Command):
    """file.deliver (9.11); received by the client."""

    __slots__ = ("consumer_tag", "delivery_tag", "exchange", "identifier", "redelivered", "routing_key")

    NAME: ClassVar[str] = "file.deliver"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x090B
    FIELDS: ClassVar[Fields] = (
        ("consumer_tag", "str8"),
        ("delivery_tag", "uint64"),
        ("redelivered", "bit"),
        ("exchange", "str8"),
        ("routing_key", "str8"),
        ("identifier", "str8"),
    )
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)

    consumer_tag: str | None
    delivery_tag: int | None
    redelivered: bool
    exchange: str | None
    routing_key: str | None
    identifier: str | None

    def __init__(
        self,
        consumer_tag: str | None = None,
        delivery_tag: int | None = None,
        redelivered: bool = False,
        exchange: str | None = None,
        routing_key: str | None = None,
        identifier: str | None = None,
    ) -> None:
        self.consumer_tag = consumer_tag
        self.delivery_tag = delivery_tag
        self.redelivered = redelivered
        self.exchange = exchange
        self.routing_key = routing_key
        self.identifier = identifier

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.consumer_tag is not None:
                flags |= 0x0100
                octets = self.consumer_tag.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.delivery_tag is not None:
                flags |= 0x0200
                parts.append(_pack_Q(self.delivery_tag))
            if self.redelivered:
                flags |= 0x0400
            if self.exchange is not None:
                flags |= 0x0800
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.routing_key is not None:
                flags |= 0x1000
                octets = self.routing_key.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.identifier is not None:
                flags |= 0x2000
                octets = self.identifier.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x090B, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x090B or size != 1 or sync > 1 or flags & 0xC0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.consumer_tag = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                packed.delivery_tag = _read_Q(octets, end)[0]
                end += 8
            packed.redelivered = flags & 0x0400 != 0
            if flags & 0x0800:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x1000:
                start = end + 1
                end = start + octets[end]
                packed.routing_key = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x2000:
                start = end + 1
                end = start + octets[end]
                packed.identifier = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileAck(Command):
    """file.ack (9.12); received by the server."""

    __slots__ = ("delivery_tag", "multiple")

    NAME: ClassVar[str] = "file.ack"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 12
    INDEX: ClassVar[int] = 0x090C
    FIELDS: ClassVar[Fields] = (("delivery_tag", "uint64"), ("multiple", "bit"))
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    delivery_tag: int | None
    multiple: bool

    def __init__(self, delivery_tag: int | None = None, multiple: bool = False) -> None:
        self.delivery_tag = delivery_tag
        self.multiple = multiple

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.delivery_tag is not None:
                flags |= 0x0100
                parts.append(_pack_Q(self.delivery_tag))
            if self.multiple:
                flags |= 0x0200
            parts[0] = _pack_HBBH(0x090C, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x090C or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.delivery_tag = _read_Q(octets, end)[0]
                end += 8
            packed.multiple = flags & 0x0200 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class FileReject(Command):
    """file.reject (9.13); received by the server."""

    __slots__ = ("delivery_tag", "requeue")

    NAME: ClassVar[str] = "file.reject"
    CLASS: ClassVar[int] = 9
    CODE: ClassVar[int] = 13
    INDEX: ClassVar[int] = 0x090D
    FIELDS: ClassVar[Fields] = (("delivery_tag", "uint64"), ("requeue", "bit"))
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    delivery_tag: int | None
    requeue: bool

    def __init__(self, delivery_tag: int | None = None, requeue: bool = False) -> None:
        self.delivery_tag = delivery_tag
        self.requeue = requeue

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.delivery_tag is not None:
                flags |= 0x0100
                parts.append(_pack_Q(self.delivery_tag))
            if self.requeue:
                flags |= 0x0200
            parts[0] = _pack_HBBH(0x090D, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x090D or size != 1 or sync > 1 or flags & 0xFCFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.delivery_tag = _read_Q(octets, end)[0]
                end += 8
            packed.requeue = flags & 0x0200 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class StreamQos(Command):
    """stream.qos (10.1); received by the server; answered by stream.qos-ok."""

    __slots__ = ("consume_rate", "global_", "prefetch_count", "prefetch_size")

    NAME: ClassVar[str] = "stream.qos"
    CLASS: ClassVar[int] = 10
    CODE: ClassVar[int] = 1
    INDEX: ClassVar[int] = 0x0A01
    FIELDS: ClassVar[Fields] = (
        ("prefetch_size", "uint32"),
        ("prefetch_count", "uint16"),
        ("consume_rate", "uint32"),
        ("global_", "bit"),
    )
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("stream.qos-ok",)

    prefetch_size: int | None
    prefetch_count: int | None
    consume_rate: int | None
    global_: bool

    def __init__(
        self,
        prefetch_size: int | None = None,
        prefetch_count: int | None = None,
        consume_rate: int | None = None,
        global_: bool = False,
    ) -> None:
        self.prefetch_size = prefetch_size
        self.prefetch_count = prefetch_count
        self.consume_rate = consume_rate
        self.global_ = global_

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.prefetch_size is not None:
                flags |= 0x0100
                parts.append(_pack_I(self.prefetch_size))
            if self.prefetch_count is not None:
                flags |= 0x0200
                parts.append(_pack_H(self.prefetch_count))
            if self.consume_rate is not None:
                flags |= 0x0400
                parts.append(_pack_I(self.consume_rate))
            if self.global_:
                flags |= 0x0800
            parts[0] = _pack_HBBH(0x0A01, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0A01 or size != 1 or sync > 1 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.prefetch_size = _read_I(octets, end)[0]
                end += 4
            if flags & 0x0200:
                packed.prefetch_count = _read_H(octets, end)[0]
                end += 2
            if flags & 0x0400:
                packed.consume_rate = _read_I(octets, end)[0]
                end += 4
            packed.global_ = flags & 0x0800 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class StreamQosOk(Command):
    """stream.qos-ok (10.2); received by the client."""

    __slots__ = ()

    NAME: ClassVar[str] = "stream.qos-ok"
    CLASS: ClassVar[int] = 10
    CODE: ClassVar[int] = 2
    INDEX: ClassVar[int] = 0x0A02
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        return b"\x0a\x02\x01\x01\x00\x00" if sync else b"\x0a\x02\x01\x00\x00\x00"

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        if octets != b"\x0a\x02\x01\x00\x00\x00" and octets != b"\x0a\x02\x01\x01\x00\x00":
            raise unreadable(cls, octets)
        return cls()


class StreamConsume(Command):
    """stream.consume (10.3); received by the server; answered by stream.consume-ok."""

    __slots__ = ("arguments", "consumer_tag", "exclusive", "no_local", "nowait", "queue")

    NAME: ClassVar[str] = "stream.consume"
    CLASS: ClassVar[int] = 10
    CODE: ClassVar[int] = 3
    INDEX: ClassVar[int] = 0x0A03
    FIELDS: ClassVar[Fields] = (
        ("queue", "str8"),
        ("consumer_tag", "str8"),
        ("no_local", "bit"),
        ("exclusive", "bit"),
        ("nowait", "bit"),
        ("arguments", "map"),
    )
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("stream.consume-ok",)

    queue: str | None
    consumer_tag: str | None
    no_local: bool
    exclusive: bool
    nowait: bool
    arguments: Mapping[str, Any] | None

    def __init__(
        self,
        queue: str | None = None,
        consumer_tag: str | None = None,
        no_local: bool = False,
        exclusive: bool = False,
        nowait: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.queue = queue
        self.consumer_tag = consumer_tag
        self.no_local = no_local
        self.exclusive = exclusive
        self.nowait = nowait
        self.arguments = arguments

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.queue is not None:
                flags |= 0x0100
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.consumer_tag is not None:
                flags |= 0x0200
                octets = self.consumer_tag.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.no_local:
                flags |= 0x0400
            if self.exclusive:
                flags |= 0x0800
            if self.nowait:
                flags |= 0x1000
            if self.arguments is not None:
                flags |= 0x2000
                parts.append(encode_map(self.arguments))
            parts[0] = _pack_HBBH(0x0A03, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0A03 or size != 1 or sync > 1 or flags & 0xC0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.consumer_tag = octets[start:end].decode("utf-8", "surrogateescape")
            packed.no_local = flags & 0x0400 != 0
            packed.exclusive = flags & 0x0800 != 0
            packed.nowait = flags & 0x1000 != 0
            if flags & 0x2000:
                packed.arguments, end = read_map(octets, end)
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class StreamConsumeOk(Command):
    """stream.consume-ok (10.4); received by the client."""

    __slots__ = ("consumer_tag",)

    NAME: ClassVar[str] = "stream.consume-ok"
    CLASS: ClassVar[int] = 10
    CODE: ClassVar[int] = 4
    INDEX: ClassVar[int] = 0x0A04
    FIELDS: ClassVar[Fields] = (("consumer_tag", "str8"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)

    consumer_tag: str | None

    def __init__(self, consumer_tag: str | None = None) -> None:
        self.consumer_tag = consumer_tag

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.consumer_tag is not None:
                flags |= 0x0100
                octets = self.consumer_tag.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0A04, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0A04 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.consumer_tag = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class StreamCancel(Command):
    """stream.cancel (10.5); received by the server."""

    __slots__ = ("consumer_tag",)

    NAME: ClassVar[str] = "stream.cancel"
    CLASS: ClassVar[int] = 10
    CODE: ClassVar[int] = 5
    INDEX: ClassVar[int] = 0x0A05
    FIELDS: ClassVar[Fields] = (("consumer_tag", "str8"),)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)

    consumer_tag: str | None

    def __init__(self, consumer_tag: str | None = None) -> None:
        self.consumer_tag = consumer_tag

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.consumer_tag is not None:
                flags |= 0x0100
                octets = self.consumer_tag.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0A05, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0A05 or size != 1 or sync > 1 or flags & 0xFEFF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.consumer_tag = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class StreamPublish(Command):
    """stream.publish (10.6); received by the server; a header and a body may follow."""

    __slots__ = ("exchange", "immediate", "mandatory", "routing_key")

    NAME: ClassVar[str] = "stream.publish"
    CLASS: ClassVar[int] = 10
    CODE: ClassVar[int] = 6
    INDEX: ClassVar[int] = 0x0A06
    FIELDS: ClassVar[Fields] = (
        ("exchange", "str8"),
        ("routing_key", "str8"),
        ("mandatory", "bit"),
        ("immediate", "bit"),
    )
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    HEADER: ClassVar[tuple[str, ...] | None] = ("stream.stream-properties",)
    BODY: ClassVar[bool] = True

    exchange: str | None
    routing_key: str | None
    mandatory: bool
    immediate: bool

    def __init__(
        self,
        exchange: str | None = None,
        routing_key: str | None = None,
        mandatory: bool = False,
        immediate: bool = False,
    ) -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = mandatory
        self.immediate = immediate

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
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
            if self.mandatory:
                flags |= 0x0400
            if self.immediate:
                flags |= 0x0800
            parts[0] = _pack_HBBH(0x0A06, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0A06 or size != 1 or sync > 1 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.routing_key = octets[start:end].decode("utf-8", "surrogateescape")
            packed.mandatory = flags & 0x0400 != 0
            packed.immediate = flags & 0x0800 != 0
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class StreamReturn(Command):
    """stream.return (10.7); received by the client; a header and a body may follow."""

    __slots__ = ("exchange", "reply_code", "reply_text", "routing_key")

    NAME: ClassVar[str] = "stream.return"
    CLASS: ClassVar[int] = 10
    CODE: ClassVar[int] = 7
    INDEX: ClassVar[int] = 0x0A07
    FIELDS: ClassVar[Fields] = (
        ("reply_code", "uint16"),
        ("reply_text", "str8"),
        ("exchange", "str8"),
        ("routing_key", "str8"),
    )
    DOMAINS: ClassVar[Mapping[str, Container[int]]] = {"reply_code": _STREAM_RETURN_CODE}
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    HEADER: ClassVar[tuple[str, ...] | None] = ("stream.stream-properties",)
    BODY: ClassVar[bool] = True

    reply_code: int | None
    reply_text: str | None
    exchange: str | None
    routing_key: str | None

    def __init__(
        self,
        reply_code: int | None = None,
        reply_text: str | None = None,
        exchange: str | None = None,
        routing_key: str | None = None,
    ) -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.exchange = exchange
        self.routing_key = routing_key

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
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
            if self.exchange is not None:
                flags |= 0x0400
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.routing_key is not None:
                flags |= 0x0800
                octets = self.routing_key.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0A07, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0A07 or size != 1 or sync > 1 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                packed.reply_code = _read_H(octets, end)[0]
                end += 2
                if packed.reply_code not in _STREAM_RETURN_CODE:
                    raise unreadable(cls, octets)
            if flags & 0x0200:
                start = end + 1
                end = start + octets[end]
                packed.reply_text = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0400:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0800:
                start = end + 1
                end = start + octets[end]
                packed.routing_key = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


class StreamDeliver(Command):
    """stream.deliver (10.8); received by the client; a header and a body may follow."""

    __slots__ = ("consumer_tag", "delivery_tag", "exchange", "queue")

    NAME: ClassVar[str] = "stream.deliver"
    CLASS: ClassVar[int] = 10
    CODE: ClassVar[int] = 8
    INDEX: ClassVar[int] = 0x0A08
    FIELDS: ClassVar[Fields] = (
        ("consumer_tag", "str8"),
        ("delivery_tag", "uint64"),
        ("exchange", "str8"),
        ("queue", "str8"),
    )
    REQUIRED: ClassVar[tuple[str, ...]] = ("queue",)
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    HEADER: ClassVar[tuple[str, ...] | None] = ("stream.stream-properties",)
    BODY: ClassVar[bool] = True

    consumer_tag: str | None
    delivery_tag: int | None
    exchange: str | None
    queue: str | None

    def __init__(
        self,
        consumer_tag: str | None = None,
        delivery_tag: int | None = None,
        exchange: str | None = None,
        queue: str | None = None,
    ) -> None:
        self.consumer_tag = consumer_tag
        self.delivery_tag = delivery_tag
        self.exchange = exchange
        self.queue = queue

    def encode(self, sync: bool = False) -> bytes:
        """See `Command.encode`."""
        flags = 0
        parts = [b""]
        try:
            if self.consumer_tag is not None:
                flags |= 0x0100
                octets = self.consumer_tag.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.delivery_tag is not None:
                flags |= 0x0200
                parts.append(_pack_Q(self.delivery_tag))
            if self.exchange is not None:
                flags |= 0x0400
                octets = self.exchange.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            if self.queue is not None:
                flags |= 0x0800
                octets = self.queue.encode("utf-8", "surrogateescape")
                parts += (_pack_B(len(octets)), octets)
            parts[0] = _pack_HBBH(0x0A08, 1, sync, flags)
            return b"".join(parts)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, octets: bytes) -> Self:
        """See `Packed.decode`."""
        packed = cls()
        try:
            code, size, sync, flags = _read_HBBH(octets)
            if code != 0x0A08 or size != 1 or sync > 1 or flags & 0xF0FF:
                raise unreadable(cls, octets)
            end = 6
            if flags & 0x0100:
                start = end + 1
                end = start + octets[end]
                packed.consumer_tag = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0200:
                packed.delivery_tag = _read_Q(octets, end)[0]
                end += 8
            if flags & 0x0400:
                start = end + 1
                end = start + octets[end]
                packed.exchange = octets[start:end].decode("utf-8", "surrogateescape")
            if flags & 0x0800:
                start = end + 1
                end = start + octets[end]
                packed.queue = octets[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, octets) from None
        if end != len(octets):
            raise unreadable(cls, octets)
        return packed


#: class << 8 | code -> command
COMMANDS: dict[int, type[Command]] = {
    ExecutionSync.INDEX: ExecutionSync,
    ExecutionResult.INDEX: ExecutionResult,
    ExecutionException.INDEX: ExecutionException,
    MessageTransfer.INDEX: MessageTransfer,
    MessageAccept.INDEX: MessageAccept,
    MessageReject.INDEX: MessageReject,
    MessageRelease.INDEX: MessageRelease,
    MessageAcquire.INDEX: MessageAcquire,
    MessageResume.INDEX: MessageResume,
    MessageSubscribe.INDEX: MessageSubscribe,
    MessageCancel.INDEX: MessageCancel,
    MessageSetFlowMode.INDEX: MessageSetFlowMode,
    MessageFlow.INDEX: MessageFlow,
    MessageFlush.INDEX: MessageFlush,
    MessageStop.INDEX: MessageStop,
    TxSelect.INDEX: TxSelect,
    TxCommit.INDEX: TxCommit,
    TxRollback.INDEX: TxRollback,
    DtxSelect.INDEX: DtxSelect,
    DtxStart.INDEX: DtxStart,
    DtxEnd.INDEX: DtxEnd,
    DtxCommit.INDEX: DtxCommit,
    DtxForget.INDEX: DtxForget,
    DtxGetTimeout.INDEX: DtxGetTimeout,
    DtxPrepare.INDEX: DtxPrepare,
    DtxRecover.INDEX: DtxRecover,
    DtxRollback.INDEX: DtxRollback,
    DtxSetTimeout.INDEX: DtxSetTimeout,
    ExchangeDeclare.INDEX: ExchangeDeclare,
    ExchangeDelete.INDEX: ExchangeDelete,
    ExchangeQuery.INDEX: ExchangeQuery,
    ExchangeBind.INDEX: ExchangeBind,
    ExchangeUnbind.INDEX: ExchangeUnbind,
    ExchangeBound.INDEX: ExchangeBound,
    QueueDeclare.INDEX: QueueDeclare,
    QueueDelete.INDEX: QueueDelete,
    QueuePurge.INDEX: QueuePurge,
    QueueQuery.INDEX: QueueQuery,
    FileQos.INDEX: FileQos,
    FileQosOk.INDEX: FileQosOk,
    FileConsume.INDEX: FileConsume,
    FileConsumeOk.INDEX: FileConsumeOk,
    FileCancel.INDEX: FileCancel,
    FileOpen.INDEX: FileOpen,
    FileOpenOk.INDEX: FileOpenOk,
    FileStage.INDEX: FileStage,
    FilePublish.INDEX: FilePublish,
    FileReturn.INDEX: FileReturn,
    FileDeliver.INDEX: FileDeliver,
    FileAck.INDEX: FileAck,
    FileReject.INDEX: FileReject,
    StreamQos.INDEX: StreamQos,
    StreamQosOk.INDEX: StreamQosOk,
    StreamConsume.INDEX: StreamConsume,
    StreamConsumeOk.INDEX: StreamConsumeOk,
    StreamCancel.INDEX: StreamCancel,
    StreamPublish.INDEX: StreamPublish,
    StreamReturn.INDEX: StreamReturn,
    StreamDeliver.INDEX: StreamDeliver,
}


def decode(octets: bytes) -> tuple[Command, bool]:
    """Read a whole command segment: the command, and whether its session header says sync.

    Raises UnknownCommand, and what `Packed.decode` raises.
    """
    command = COMMANDS.get(int.from_bytes(octets[:2], "big"))
    if command is None or len(octets) < 2:
        raise UnknownCommand(f"there is no command with the code 0x{octets[:2].hex()}")
    return command.decode(octets), octets[3] == 1
