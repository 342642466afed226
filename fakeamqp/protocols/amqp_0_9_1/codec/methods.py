"""The methods of AMQP 0-9-1 as RabbitMQ speaks it, one class each.

Made from spec/amqp-0-9-1.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.protocols.framed.codec.method import (
    UNREADABLE,
    UNWRITABLE,
    Method,
    forbid_nul,
    unreadable,
    unwritable,
)
from fakeamqp.protocols.framed.codec.strings import OCTET
from fakeamqp.protocols.framed.codec.tables import encode_table

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.protocols.framed.codec.method import Layout
    from fakeamqp.protocols.framed.codec.tables import FieldValue, Grammar

__all__ = [
    "METHODS",
    "AccessRequest",
    "AccessRequestOk",
    "BasicAck",
    "BasicCancel",
    "BasicCancelOk",
    "BasicConsume",
    "BasicConsumeOk",
    "BasicDeliver",
    "BasicGet",
    "BasicGetEmpty",
    "BasicGetOk",
    "BasicNack",
    "BasicPublish",
    "BasicQos",
    "BasicQosOk",
    "BasicRecover",
    "BasicRecoverAsync",
    "BasicRecoverOk",
    "BasicReject",
    "BasicReturn",
    "ChannelClose",
    "ChannelCloseOk",
    "ChannelFlow",
    "ChannelFlowOk",
    "ChannelOpen",
    "ChannelOpenOk",
    "ConfirmSelect",
    "ConfirmSelectOk",
    "ConnectionBlocked",
    "ConnectionClose",
    "ConnectionCloseOk",
    "ConnectionOpen",
    "ConnectionOpenOk",
    "ConnectionSecure",
    "ConnectionSecureOk",
    "ConnectionStart",
    "ConnectionStartOk",
    "ConnectionTune",
    "ConnectionTuneOk",
    "ConnectionUnblocked",
    "ConnectionUpdateSecret",
    "ConnectionUpdateSecretOk",
    "ExchangeBind",
    "ExchangeBindOk",
    "ExchangeDeclare",
    "ExchangeDeclareOk",
    "ExchangeDelete",
    "ExchangeDeleteOk",
    "ExchangeUnbind",
    "ExchangeUnbindOk",
    "QueueBind",
    "QueueBindOk",
    "QueueDeclare",
    "QueueDeclareOk",
    "QueueDelete",
    "QueueDeleteOk",
    "QueuePurge",
    "QueuePurgeOk",
    "QueueUnbind",
    "QueueUnbindOk",
    "TxCommit",
    "TxCommitOk",
    "TxRollback",
    "TxRollbackOk",
    "TxSelect",
    "TxSelectOk",
]

# `decode` fills a bare instance: a fifth faster for basic.publish than going through `__init__`
new = object.__new__

_read_HH = Struct(">HH").unpack_from
_read_I = Struct(">I").unpack_from
_read_II = Struct(">II").unpack_from
_read_QBB = Struct(">QBB").unpack_from
_read_idsBB = Struct(">4xBB").unpack_from
_read_idsH = Struct(">4xH").unpack_from
_read_idsHB = Struct(">4xHB").unpack_from
_read_idsHIH = Struct(">4xHIH").unpack_from
_read_idsI = Struct(">4xI").unpack_from
_read_idsIHB = Struct(">4xIHB").unpack_from
_read_idsQB = Struct(">4xQB").unpack_from
_read_idsQBB = Struct(">4xQBB").unpack_from
_pack_HH = Struct(">HH").pack
_pack_HHB = Struct(">HHB").pack
_pack_HHBB = Struct(">HHBB").pack
_pack_HHH = Struct(">HHH").pack
_pack_HHHB = Struct(">HHHB").pack
_pack_HHHIH = Struct(">HHHIH").pack
_pack_HHI = Struct(">HHI").pack
_pack_HHIHB = Struct(">HHIHB").pack
_pack_HHQB = Struct(">HHQB").pack
_pack_HHQBB = Struct(">HHQBB").pack
_pack_I = Struct(">I").pack
_pack_II = Struct(">II").pack
_pack_QBB = Struct(">QBB").pack


@dataclass(init=False, repr=False, eq=False)
class ConnectionStart(Method):
    """connection.start (10, 10), received by the client; answered by connection.start-ok."""

    __slots__ = ("locales", "mechanisms", "server_properties", "version_major", "version_minor")

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x000A000A
    NAME: ClassVar[str] = "connection.start"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.start-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("version_major", "octet"),
        ("version_minor", "octet"),
        ("server_properties", "table"),
        ("mechanisms", "longstr"),
        ("locales", "longstr"),
    )

    version_major: int
    version_minor: int
    server_properties: dict[str, FieldValue]
    mechanisms: bytes
    locales: bytes

    def __init__(
        self,
        version_major: int = 0,
        version_minor: int = 0,
        server_properties: dict[str, FieldValue] | None = None,
        mechanisms: bytes = b"",
        locales: bytes = b"",
    ) -> None:
        self.version_major = version_major
        self.version_minor = version_minor
        self.server_properties = {} if server_properties is None else server_properties
        self.mechanisms = mechanisms
        self.locales = locales

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join(
                (
                    _pack_HHBB(10, 10, self.version_major, self.version_minor),
                    encode_table(self.server_properties),
                    _pack_I(len(self.mechanisms)),
                    self.mechanisms,
                    _pack_I(len(self.locales)),
                    self.locales,
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.version_major, method.version_minor = _read_idsBB(payload)
            method.server_properties, end = grammar.decode(payload, 6, len(payload))
            (size,) = _read_I(payload, end)
            start = end + 4
            end = start + size
            method.mechanisms = payload[start:end]
            (size,) = _read_I(payload, end)
            start = end + 4
            end = start + size
            method.locales = payload[start:end]
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionStartOk(Method):
    """connection.start-ok (10, 11), received by the server."""

    __slots__ = ("client_properties", "locale", "mechanism", "response")

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x000A000B
    NAME: ClassVar[str] = "connection.start-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("client_properties", "table"),
        ("mechanism", "shortstr"),
        ("response", "longstr"),
        ("locale", "shortstr"),
    )

    client_properties: dict[str, FieldValue]
    mechanism: str
    response: bytes
    locale: str

    def __init__(
        self,
        client_properties: dict[str, FieldValue] | None = None,
        mechanism: str = "",
        response: bytes = b"",
        locale: str = "",
    ) -> None:
        self.client_properties = {} if client_properties is None else client_properties
        self.mechanism = mechanism
        self.response = response
        self.locale = locale

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            mechanism = self.mechanism.encode("utf-8", "surrogateescape")
            locale = self.locale.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HH(10, 11),
                    encode_table(self.client_properties),
                    OCTET[len(mechanism)],
                    mechanism,
                    _pack_I(len(self.response)),
                    self.response,
                    OCTET[len(locale)],
                    locale,
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.client_properties, end = grammar.decode(payload, 4, len(payload))
            start = end + 1
            end = start + payload[end]
            method.mechanism = payload[start:end].decode("utf-8", "surrogateescape")
            (size,) = _read_I(payload, end)
            start = end + 4
            end = start + size
            method.response = payload[start:end]
            start = end + 1
            end = start + payload[end]
            method.locale = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionSecure(Method):
    """connection.secure (10, 20), received by the client; answered by connection.secure-ok."""

    __slots__ = ("challenge",)

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x000A0014
    NAME: ClassVar[str] = "connection.secure"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.secure-ok",)
    LAYOUT: ClassVar[Layout] = (("challenge", "longstr"),)

    challenge: bytes

    def __init__(self, challenge: bytes = b"") -> None:
        self.challenge = challenge

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join((_pack_HHI(10, 20, len(self.challenge)), self.challenge))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            (size,) = _read_idsI(payload)
            start = 8
            end = start + size
            method.challenge = payload[start:end]
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionSecureOk(Method):
    """connection.secure-ok (10, 21), received by the server."""

    __slots__ = ("response",)

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x000A0015
    NAME: ClassVar[str] = "connection.secure-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("response", "longstr"),)

    response: bytes

    def __init__(self, response: bytes = b"") -> None:
        self.response = response

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join((_pack_HHI(10, 21, len(self.response)), self.response))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            (size,) = _read_idsI(payload)
            start = 8
            end = start + size
            method.response = payload[start:end]
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionTune(Method):
    """connection.tune (10, 30), received by the client; answered by connection.tune-ok."""

    __slots__ = ("channel_max", "frame_max", "heartbeat")

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x000A001E
    NAME: ClassVar[str] = "connection.tune"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.tune-ok",)
    LAYOUT: ClassVar[Layout] = (("channel_max", "short"), ("frame_max", "long"), ("heartbeat", "short"))

    channel_max: int
    frame_max: int
    heartbeat: int

    def __init__(self, channel_max: int = 0, frame_max: int = 0, heartbeat: int = 0) -> None:
        self.channel_max = channel_max
        self.frame_max = frame_max
        self.heartbeat = heartbeat

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return _pack_HHHIH(10, 30, self.channel_max, self.frame_max, self.heartbeat)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.channel_max, method.frame_max, method.heartbeat = _read_idsHIH(payload)
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 12:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionTuneOk(Method):
    """connection.tune-ok (10, 31), received by the server."""

    __slots__ = ("channel_max", "frame_max", "heartbeat")

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x000A001F
    NAME: ClassVar[str] = "connection.tune-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("channel_max", "short"), ("frame_max", "long"), ("heartbeat", "short"))

    channel_max: int
    frame_max: int
    heartbeat: int

    def __init__(self, channel_max: int = 0, frame_max: int = 0, heartbeat: int = 0) -> None:
        self.channel_max = channel_max
        self.frame_max = frame_max
        self.heartbeat = heartbeat

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return _pack_HHHIH(10, 31, self.channel_max, self.frame_max, self.heartbeat)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.channel_max, method.frame_max, method.heartbeat = _read_idsHIH(payload)
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 12:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionOpen(Method):
    """connection.open (10, 40), received by the server; answered by connection.open-ok."""

    __slots__ = ("reserved_1", "reserved_2", "virtual_host")

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x000A0028
    NAME: ClassVar[str] = "connection.open"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.open-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("virtual_host", "shortstr"),
        ("reserved_1", "shortstr"),
        ("reserved_2", "bit"),
    )

    virtual_host: str
    reserved_1: str
    reserved_2: bool

    def __init__(self, virtual_host: str = "", reserved_1: str = "", reserved_2: bool = False) -> None:
        self.virtual_host = virtual_host
        self.reserved_1 = reserved_1
        self.reserved_2 = reserved_2

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            virtual_host = self.virtual_host.encode("utf-8", "surrogateescape")
            reserved_1 = self.reserved_1.encode("utf-8", "surrogateescape")
            bits = 1 if self.reserved_2 else 0
            return b"".join(
                (
                    _pack_HHB(10, 40, len(virtual_host)),
                    virtual_host,
                    OCTET[len(reserved_1)],
                    reserved_1,
                    OCTET[bits],
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.virtual_host = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.reserved_1 = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.reserved_2 = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionOpenOk(Method):
    """connection.open-ok (10, 41), received by the client."""

    __slots__ = ("reserved_1",)

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x000A0029
    NAME: ClassVar[str] = "connection.open-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("reserved_1", "shortstr"),)

    reserved_1: str

    def __init__(self, reserved_1: str = "") -> None:
        self.reserved_1 = reserved_1

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            reserved_1 = self.reserved_1.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(10, 41, len(reserved_1)), reserved_1))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.reserved_1 = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionClose(Method):
    """connection.close (10, 50), received by the client and the server; answered by connection.close-ok."""

    __slots__ = ("class_id", "method_id", "reply_code", "reply_text")

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x000A0032
    NAME: ClassVar[str] = "connection.close"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.close-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reply_code", "short"),
        ("reply_text", "shortstr"),
        ("class_id", "short"),
        ("method_id", "short"),
    )

    reply_code: int
    reply_text: str
    class_id: int
    method_id: int

    def __init__(
        self, reply_code: int = 0, reply_text: str = "", class_id: int = 0, method_id: int = 0
    ) -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.class_id = class_id
        self.method_id = method_id

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            reply_text = self.reply_text.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHHB(10, 50, self.reply_code, len(reply_text)),
                    reply_text,
                    _pack_HH(self.class_id, self.method_id),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reply_code, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.reply_text = payload[start:end].decode("utf-8", "surrogateescape")
            method.class_id, method.method_id = _read_HH(payload, end)
            end += 4
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionCloseOk(Method):
    """connection.close-ok (10, 51), received by the client and the server."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 51
    INDEX: ClassVar[int] = 0x000A0033
    NAME: ClassVar[str] = "connection.close-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x0a\x00\x33"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class ConnectionBlocked(Method):
    """connection.blocked (10, 60), received by the client; RabbitMQ's extension."""

    __slots__ = ("reason",)

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x000A003C
    NAME: ClassVar[str] = "connection.blocked"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("reason", "shortstr"),)

    reason: str

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            reason = self.reason.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(10, 60, len(reason)), reason))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.reason = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionUnblocked(Method):
    """connection.unblocked (10, 61), received by the client; RabbitMQ's extension."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 61
    INDEX: ClassVar[int] = 0x000A003D
    NAME: ClassVar[str] = "connection.unblocked"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x0a\x00\x3d"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class ConnectionUpdateSecret(Method):
    """connection.update-secret (10, 70), received by the server.

    Answered by connection.update-secret-ok; RabbitMQ's extension.
    """

    __slots__ = ("new_secret", "reason")

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x000A0046
    NAME: ClassVar[str] = "connection.update-secret"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.update-secret-ok",)
    LAYOUT: ClassVar[Layout] = (("new_secret", "longstr"), ("reason", "shortstr"))

    new_secret: bytes
    reason: str

    def __init__(self, new_secret: bytes = b"", reason: str = "") -> None:
        self.new_secret = new_secret
        self.reason = reason

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            reason = self.reason.encode("utf-8", "surrogateescape")
            return b"".join(
                (_pack_HHI(10, 70, len(self.new_secret)), self.new_secret, OCTET[len(reason)], reason)
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            (size,) = _read_idsI(payload)
            start = 8
            end = start + size
            method.new_secret = payload[start:end]
            start = end + 1
            end = start + payload[end]
            method.reason = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionUpdateSecretOk(Method):
    """connection.update-secret-ok (10, 71), received by the client; RabbitMQ's extension."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 71
    INDEX: ClassVar[int] = 0x000A0047
    NAME: ClassVar[str] = "connection.update-secret-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x0a\x00\x47"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class ChannelOpen(Method):
    """channel.open (20, 10), received by the server; answered by channel.open-ok."""

    __slots__ = ("reserved_1",)

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0014000A
    NAME: ClassVar[str] = "channel.open"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("channel.open-ok",)
    LAYOUT: ClassVar[Layout] = (("reserved_1", "shortstr"),)

    reserved_1: str

    def __init__(self, reserved_1: str = "") -> None:
        self.reserved_1 = reserved_1

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            reserved_1 = self.reserved_1.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(20, 10, len(reserved_1)), reserved_1))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.reserved_1 = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ChannelOpenOk(Method):
    """channel.open-ok (20, 11), received by the client."""

    __slots__ = ("reserved_1",)

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0014000B
    NAME: ClassVar[str] = "channel.open-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("reserved_1", "longstr"),)

    reserved_1: bytes

    def __init__(self, reserved_1: bytes = b"") -> None:
        self.reserved_1 = reserved_1

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join((_pack_HHI(20, 11, len(self.reserved_1)), self.reserved_1))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            (size,) = _read_idsI(payload)
            start = 8
            end = start + size
            method.reserved_1 = payload[start:end]
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ChannelFlow(Method):
    """channel.flow (20, 20), received by the client and the server; answered by channel.flow-ok."""

    __slots__ = ("active",)

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00140014
    NAME: ClassVar[str] = "channel.flow"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("channel.flow-ok",)
    LAYOUT: ClassVar[Layout] = (("active", "bit"),)

    active: bool

    def __init__(self, active: bool = False) -> None:
        self.active = active

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.active else 0
            return _pack_HHB(20, 20, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            bits = payload[4]
            method.active = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 5:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ChannelFlowOk(Method):
    """channel.flow-ok (20, 21), received by the client and the server."""

    __slots__ = ("active",)

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00140015
    NAME: ClassVar[str] = "channel.flow-ok"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("active", "bit"),)

    active: bool

    def __init__(self, active: bool = False) -> None:
        self.active = active

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.active else 0
            return _pack_HHB(20, 21, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            bits = payload[4]
            method.active = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 5:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ChannelClose(Method):
    """channel.close (20, 40), received by the client and the server; answered by channel.close-ok."""

    __slots__ = ("class_id", "method_id", "reply_code", "reply_text")

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00140028
    NAME: ClassVar[str] = "channel.close"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("channel.close-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reply_code", "short"),
        ("reply_text", "shortstr"),
        ("class_id", "short"),
        ("method_id", "short"),
    )

    reply_code: int
    reply_text: str
    class_id: int
    method_id: int

    def __init__(
        self, reply_code: int = 0, reply_text: str = "", class_id: int = 0, method_id: int = 0
    ) -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.class_id = class_id
        self.method_id = method_id

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            reply_text = self.reply_text.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHHB(20, 40, self.reply_code, len(reply_text)),
                    reply_text,
                    _pack_HH(self.class_id, self.method_id),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reply_code, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.reply_text = payload[start:end].decode("utf-8", "surrogateescape")
            method.class_id, method.method_id = _read_HH(payload, end)
            end += 4
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ChannelCloseOk(Method):
    """channel.close-ok (20, 41), received by the client and the server."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x00140029
    NAME: ClassVar[str] = "channel.close-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x14\x00\x29"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class AccessRequest(Method):
    """access.request (30, 10), received by the server.

    Answered by access.request-ok; RabbitMQ's extension.
    """

    __slots__ = ("active", "exclusive", "passive", "read", "realm", "write")

    CLASS_ID: ClassVar[int] = 30
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x001E000A
    NAME: ClassVar[str] = "access.request"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("access.request-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("realm", "shortstr"),
        ("exclusive", "bit"),
        ("passive", "bit"),
        ("active", "bit"),
        ("write", "bit"),
        ("read", "bit"),
    )

    realm: str
    exclusive: bool
    passive: bool
    active: bool
    write: bool
    read: bool

    def __init__(
        self,
        realm: str = "",
        exclusive: bool = False,
        passive: bool = False,
        active: bool = False,
        write: bool = False,
        read: bool = False,
    ) -> None:
        self.realm = realm
        self.exclusive = exclusive
        self.passive = passive
        self.active = active
        self.write = write
        self.read = read

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            realm = self.realm.encode("utf-8", "surrogateescape")
            bits = (
                (1 if self.exclusive else 0)
                | (2 if self.passive else 0)
                | (4 if self.active else 0)
                | (8 if self.write else 0)
                | (16 if self.read else 0)
            )
            return b"".join((_pack_HHB(30, 10, len(realm)), realm, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.realm = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.exclusive = bits & 1 != 0
            method.passive = bits & 2 != 0
            method.active = bits & 4 != 0
            method.write = bits & 8 != 0
            method.read = bits & 16 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class AccessRequestOk(Method):
    """access.request-ok (30, 11), received by the client; RabbitMQ's extension."""

    __slots__ = ("ticket",)

    CLASS_ID: ClassVar[int] = 30
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x001E000B
    NAME: ClassVar[str] = "access.request-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("ticket", "short"),)

    ticket: int

    def __init__(self, ticket: int = 0) -> None:
        self.ticket = ticket

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return _pack_HHH(30, 11, self.ticket)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            (method.ticket,) = _read_idsH(payload)
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 6:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ExchangeDeclare(Method):
    """exchange.declare (40, 10), received by the server; answered by exchange.declare-ok."""

    __slots__ = (
        "arguments",
        "auto_delete",
        "durable",
        "exchange",
        "internal",
        "no_wait",
        "passive",
        "reserved_1",
        "type",
    )

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0028000A
    NAME: ClassVar[str] = "exchange.declare"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("exchange.declare-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("exchange", "shortstr"),
        ("type", "shortstr"),
        ("passive", "bit"),
        ("durable", "bit"),
        ("auto_delete", "bit"),
        ("internal", "bit"),
        ("no_wait", "bit"),
        ("arguments", "table"),
    )

    reserved_1: int
    exchange: str
    type: str
    passive: bool
    durable: bool
    auto_delete: bool
    internal: bool
    no_wait: bool
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        reserved_1: int = 0,
        exchange: str = "",
        type: str = "",
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        no_wait: bool = False,
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.reserved_1 = reserved_1
        self.exchange = exchange
        self.type = type
        self.passive = passive
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.no_wait = no_wait
        self.arguments = {} if arguments is None else arguments

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            type = self.type.encode("utf-8", "surrogateescape")
            bits = (
                (1 if self.passive else 0)
                | (2 if self.durable else 0)
                | (4 if self.auto_delete else 0)
                | (8 if self.internal else 0)
                | (16 if self.no_wait else 0)
            )
            return b"".join(
                (
                    _pack_HHHB(40, 10, self.reserved_1, len(exchange)),
                    exchange,
                    OCTET[len(type)],
                    type,
                    OCTET[bits],
                    encode_table(self.arguments),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.type = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.passive = bits & 1 != 0
            method.durable = bits & 2 != 0
            method.auto_delete = bits & 4 != 0
            method.internal = bits & 8 != 0
            method.no_wait = bits & 16 != 0
            method.arguments, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ExchangeDeclareOk(Method):
    """exchange.declare-ok (40, 11), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0028000B
    NAME: ClassVar[str] = "exchange.declare-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x28\x00\x0b"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class ExchangeDelete(Method):
    """exchange.delete (40, 20), received by the server; answered by exchange.delete-ok."""

    __slots__ = ("exchange", "if_unused", "no_wait", "reserved_1")

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00280014
    NAME: ClassVar[str] = "exchange.delete"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("exchange.delete-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("exchange", "shortstr"),
        ("if_unused", "bit"),
        ("no_wait", "bit"),
    )

    reserved_1: int
    exchange: str
    if_unused: bool
    no_wait: bool

    def __init__(
        self, reserved_1: int = 0, exchange: str = "", if_unused: bool = False, no_wait: bool = False
    ) -> None:
        self.reserved_1 = reserved_1
        self.exchange = exchange
        self.if_unused = if_unused
        self.no_wait = no_wait

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            bits = (1 if self.if_unused else 0) | (2 if self.no_wait else 0)
            return b"".join((_pack_HHHB(40, 20, self.reserved_1, len(exchange)), exchange, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.if_unused = bits & 1 != 0
            method.no_wait = bits & 2 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ExchangeDeleteOk(Method):
    """exchange.delete-ok (40, 21), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00280015
    NAME: ClassVar[str] = "exchange.delete-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x28\x00\x15"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class ExchangeBind(Method):
    """exchange.bind (40, 30), received by the server; answered by exchange.bind-ok; RabbitMQ's extension."""

    __slots__ = ("arguments", "destination", "no_wait", "reserved_1", "routing_key", "source")

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0028001E
    NAME: ClassVar[str] = "exchange.bind"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("exchange.bind-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("destination", "shortstr"),
        ("source", "shortstr"),
        ("routing_key", "shortstr"),
        ("no_wait", "bit"),
        ("arguments", "table"),
    )

    reserved_1: int
    destination: str
    source: str
    routing_key: str
    no_wait: bool
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        reserved_1: int = 0,
        destination: str = "",
        source: str = "",
        routing_key: str = "",
        no_wait: bool = False,
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.reserved_1 = reserved_1
        self.destination = destination
        self.source = source
        self.routing_key = routing_key
        self.no_wait = no_wait
        self.arguments = {} if arguments is None else arguments

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            destination = self.destination.encode("utf-8", "surrogateescape")
            source = self.source.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            bits = 1 if self.no_wait else 0
            return b"".join(
                (
                    _pack_HHHB(40, 30, self.reserved_1, len(destination)),
                    destination,
                    OCTET[len(source)],
                    source,
                    OCTET[len(routing_key)],
                    routing_key,
                    OCTET[bits],
                    encode_table(self.arguments),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.destination = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.source = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.no_wait = bits & 1 != 0
            method.arguments, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ExchangeBindOk(Method):
    """exchange.bind-ok (40, 31), received by the client; RabbitMQ's extension."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x0028001F
    NAME: ClassVar[str] = "exchange.bind-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x28\x00\x1f"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class ExchangeUnbind(Method):
    """exchange.unbind (40, 40), received by the server.

    Answered by exchange.unbind-ok; RabbitMQ's extension.
    """

    __slots__ = ("arguments", "destination", "no_wait", "reserved_1", "routing_key", "source")

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00280028
    NAME: ClassVar[str] = "exchange.unbind"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("exchange.unbind-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("destination", "shortstr"),
        ("source", "shortstr"),
        ("routing_key", "shortstr"),
        ("no_wait", "bit"),
        ("arguments", "table"),
    )

    reserved_1: int
    destination: str
    source: str
    routing_key: str
    no_wait: bool
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        reserved_1: int = 0,
        destination: str = "",
        source: str = "",
        routing_key: str = "",
        no_wait: bool = False,
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.reserved_1 = reserved_1
        self.destination = destination
        self.source = source
        self.routing_key = routing_key
        self.no_wait = no_wait
        self.arguments = {} if arguments is None else arguments

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            destination = self.destination.encode("utf-8", "surrogateescape")
            source = self.source.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            bits = 1 if self.no_wait else 0
            return b"".join(
                (
                    _pack_HHHB(40, 40, self.reserved_1, len(destination)),
                    destination,
                    OCTET[len(source)],
                    source,
                    OCTET[len(routing_key)],
                    routing_key,
                    OCTET[bits],
                    encode_table(self.arguments),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.destination = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.source = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.no_wait = bits & 1 != 0
            method.arguments, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ExchangeUnbindOk(Method):
    """exchange.unbind-ok (40, 51), received by the client; RabbitMQ's extension."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 51
    INDEX: ClassVar[int] = 0x00280033
    NAME: ClassVar[str] = "exchange.unbind-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x28\x00\x33"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class QueueDeclare(Method):
    """queue.declare (50, 10), received by the server; answered by queue.declare-ok."""

    __slots__ = (
        "arguments",
        "auto_delete",
        "durable",
        "exclusive",
        "no_wait",
        "passive",
        "queue",
        "reserved_1",
    )

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0032000A
    NAME: ClassVar[str] = "queue.declare"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.declare-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("queue", "shortstr"),
        ("passive", "bit"),
        ("durable", "bit"),
        ("exclusive", "bit"),
        ("auto_delete", "bit"),
        ("no_wait", "bit"),
        ("arguments", "table"),
    )

    reserved_1: int
    queue: str
    passive: bool
    durable: bool
    exclusive: bool
    auto_delete: bool
    no_wait: bool
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        reserved_1: int = 0,
        queue: str = "",
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        no_wait: bool = False,
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.reserved_1 = reserved_1
        self.queue = queue
        self.passive = passive
        self.durable = durable
        self.exclusive = exclusive
        self.auto_delete = auto_delete
        self.no_wait = no_wait
        self.arguments = {} if arguments is None else arguments

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            bits = (
                (1 if self.passive else 0)
                | (2 if self.durable else 0)
                | (4 if self.exclusive else 0)
                | (8 if self.auto_delete else 0)
                | (16 if self.no_wait else 0)
            )
            return b"".join(
                (
                    _pack_HHHB(50, 10, self.reserved_1, len(queue)),
                    queue,
                    OCTET[bits],
                    encode_table(self.arguments),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.passive = bits & 1 != 0
            method.durable = bits & 2 != 0
            method.exclusive = bits & 4 != 0
            method.auto_delete = bits & 8 != 0
            method.no_wait = bits & 16 != 0
            method.arguments, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class QueueDeclareOk(Method):
    """queue.declare-ok (50, 11), received by the client."""

    __slots__ = ("consumer_count", "message_count", "queue")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0032000B
    NAME: ClassVar[str] = "queue.declare-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("queue", "shortstr"), ("message_count", "long"), ("consumer_count", "long"))

    queue: str
    message_count: int
    consumer_count: int

    def __init__(self, queue: str = "", message_count: int = 0, consumer_count: int = 0) -> None:
        self.queue = queue
        self.message_count = message_count
        self.consumer_count = consumer_count

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            return b"".join(
                (_pack_HHB(50, 11, len(queue)), queue, _pack_II(self.message_count, self.consumer_count))
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            method.message_count, method.consumer_count = _read_II(payload, end)
            end += 8
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class QueueBind(Method):
    """queue.bind (50, 20), received by the server; answered by queue.bind-ok."""

    __slots__ = ("arguments", "exchange", "no_wait", "queue", "reserved_1", "routing_key")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00320014
    NAME: ClassVar[str] = "queue.bind"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.bind-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("queue", "shortstr"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("no_wait", "bit"),
        ("arguments", "table"),
    )

    reserved_1: int
    queue: str
    exchange: str
    routing_key: str
    no_wait: bool
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        reserved_1: int = 0,
        queue: str = "",
        exchange: str = "",
        routing_key: str = "",
        no_wait: bool = False,
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.reserved_1 = reserved_1
        self.queue = queue
        self.exchange = exchange
        self.routing_key = routing_key
        self.no_wait = no_wait
        self.arguments = {} if arguments is None else arguments

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            bits = 1 if self.no_wait else 0
            return b"".join(
                (
                    _pack_HHHB(50, 20, self.reserved_1, len(queue)),
                    queue,
                    OCTET[len(exchange)],
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                    OCTET[bits],
                    encode_table(self.arguments),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.no_wait = bits & 1 != 0
            method.arguments, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class QueueBindOk(Method):
    """queue.bind-ok (50, 21), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00320015
    NAME: ClassVar[str] = "queue.bind-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x32\x00\x15"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class QueuePurge(Method):
    """queue.purge (50, 30), received by the server; answered by queue.purge-ok."""

    __slots__ = ("no_wait", "queue", "reserved_1")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0032001E
    NAME: ClassVar[str] = "queue.purge"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.purge-ok",)
    LAYOUT: ClassVar[Layout] = (("reserved_1", "short"), ("queue", "shortstr"), ("no_wait", "bit"))

    reserved_1: int
    queue: str
    no_wait: bool

    def __init__(self, reserved_1: int = 0, queue: str = "", no_wait: bool = False) -> None:
        self.reserved_1 = reserved_1
        self.queue = queue
        self.no_wait = no_wait

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            bits = 1 if self.no_wait else 0
            return b"".join((_pack_HHHB(50, 30, self.reserved_1, len(queue)), queue, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.no_wait = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class QueuePurgeOk(Method):
    """queue.purge-ok (50, 31), received by the client."""

    __slots__ = ("message_count",)

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x0032001F
    NAME: ClassVar[str] = "queue.purge-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("message_count", "long"),)

    message_count: int

    def __init__(self, message_count: int = 0) -> None:
        self.message_count = message_count

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return _pack_HHI(50, 31, self.message_count)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            (method.message_count,) = _read_idsI(payload)
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 8:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class QueueDelete(Method):
    """queue.delete (50, 40), received by the server; answered by queue.delete-ok."""

    __slots__ = ("if_empty", "if_unused", "no_wait", "queue", "reserved_1")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00320028
    NAME: ClassVar[str] = "queue.delete"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.delete-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("queue", "shortstr"),
        ("if_unused", "bit"),
        ("if_empty", "bit"),
        ("no_wait", "bit"),
    )

    reserved_1: int
    queue: str
    if_unused: bool
    if_empty: bool
    no_wait: bool

    def __init__(
        self,
        reserved_1: int = 0,
        queue: str = "",
        if_unused: bool = False,
        if_empty: bool = False,
        no_wait: bool = False,
    ) -> None:
        self.reserved_1 = reserved_1
        self.queue = queue
        self.if_unused = if_unused
        self.if_empty = if_empty
        self.no_wait = no_wait

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            bits = (1 if self.if_unused else 0) | (2 if self.if_empty else 0) | (4 if self.no_wait else 0)
            return b"".join((_pack_HHHB(50, 40, self.reserved_1, len(queue)), queue, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.if_unused = bits & 1 != 0
            method.if_empty = bits & 2 != 0
            method.no_wait = bits & 4 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class QueueDeleteOk(Method):
    """queue.delete-ok (50, 41), received by the client."""

    __slots__ = ("message_count",)

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x00320029
    NAME: ClassVar[str] = "queue.delete-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("message_count", "long"),)

    message_count: int

    def __init__(self, message_count: int = 0) -> None:
        self.message_count = message_count

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return _pack_HHI(50, 41, self.message_count)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            (method.message_count,) = _read_idsI(payload)
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 8:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class QueueUnbind(Method):
    """queue.unbind (50, 50), received by the server; answered by queue.unbind-ok."""

    __slots__ = ("arguments", "exchange", "queue", "reserved_1", "routing_key")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00320032
    NAME: ClassVar[str] = "queue.unbind"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.unbind-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("queue", "shortstr"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("arguments", "table"),
    )

    reserved_1: int
    queue: str
    exchange: str
    routing_key: str
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        reserved_1: int = 0,
        queue: str = "",
        exchange: str = "",
        routing_key: str = "",
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.reserved_1 = reserved_1
        self.queue = queue
        self.exchange = exchange
        self.routing_key = routing_key
        self.arguments = {} if arguments is None else arguments

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHHB(50, 50, self.reserved_1, len(queue)),
                    queue,
                    OCTET[len(exchange)],
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                    encode_table(self.arguments),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
            method.arguments, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class QueueUnbindOk(Method):
    """queue.unbind-ok (50, 51), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 51
    INDEX: ClassVar[int] = 0x00320033
    NAME: ClassVar[str] = "queue.unbind-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x32\x00\x33"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class BasicQos(Method):
    """basic.qos (60, 10), received by the server; answered by basic.qos-ok."""

    __slots__ = ("global_", "prefetch_count", "prefetch_size")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x003C000A
    NAME: ClassVar[str] = "basic.qos"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("basic.qos-ok",)
    LAYOUT: ClassVar[Layout] = (("prefetch_size", "long"), ("prefetch_count", "short"), ("global_", "bit"))

    prefetch_size: int
    prefetch_count: int
    global_: bool

    def __init__(self, prefetch_size: int = 0, prefetch_count: int = 0, global_: bool = False) -> None:
        self.prefetch_size = prefetch_size
        self.prefetch_count = prefetch_count
        self.global_ = global_

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.global_ else 0
            return _pack_HHIHB(60, 10, self.prefetch_size, self.prefetch_count, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.prefetch_size, method.prefetch_count, bits = _read_idsIHB(payload)
            method.global_ = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 11:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicQosOk(Method):
    """basic.qos-ok (60, 11), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x003C000B
    NAME: ClassVar[str] = "basic.qos-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x3c\x00\x0b"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class BasicConsume(Method):
    """basic.consume (60, 20), received by the server; answered by basic.consume-ok."""

    __slots__ = (
        "arguments",
        "consumer_tag",
        "exclusive",
        "no_ack",
        "no_local",
        "no_wait",
        "queue",
        "reserved_1",
    )

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x003C0014
    NAME: ClassVar[str] = "basic.consume"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("basic.consume-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("queue", "shortstr"),
        ("consumer_tag", "shortstr"),
        ("no_local", "bit"),
        ("no_ack", "bit"),
        ("exclusive", "bit"),
        ("no_wait", "bit"),
        ("arguments", "table"),
    )

    reserved_1: int
    queue: str
    consumer_tag: str
    no_local: bool
    no_ack: bool
    exclusive: bool
    no_wait: bool
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        reserved_1: int = 0,
        queue: str = "",
        consumer_tag: str = "",
        no_local: bool = False,
        no_ack: bool = False,
        exclusive: bool = False,
        no_wait: bool = False,
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.reserved_1 = reserved_1
        self.queue = queue
        self.consumer_tag = consumer_tag
        self.no_local = no_local
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.no_wait = no_wait
        self.arguments = {} if arguments is None else arguments

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            consumer_tag = self.consumer_tag.encode("utf-8", "surrogateescape")
            bits = (
                (1 if self.no_local else 0)
                | (2 if self.no_ack else 0)
                | (4 if self.exclusive else 0)
                | (8 if self.no_wait else 0)
            )
            return b"".join(
                (
                    _pack_HHHB(60, 20, self.reserved_1, len(queue)),
                    queue,
                    OCTET[len(consumer_tag)],
                    consumer_tag,
                    OCTET[bits],
                    encode_table(self.arguments),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.consumer_tag = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.no_local = bits & 1 != 0
            method.no_ack = bits & 2 != 0
            method.exclusive = bits & 4 != 0
            method.no_wait = bits & 8 != 0
            method.arguments, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicConsumeOk(Method):
    """basic.consume-ok (60, 21), received by the client."""

    __slots__ = ("consumer_tag",)

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x003C0015
    NAME: ClassVar[str] = "basic.consume-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("consumer_tag", "shortstr"),)

    consumer_tag: str

    def __init__(self, consumer_tag: str = "") -> None:
        self.consumer_tag = consumer_tag

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            consumer_tag = self.consumer_tag.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(60, 21, len(consumer_tag)), consumer_tag))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.consumer_tag = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicCancel(Method):
    """basic.cancel (60, 30), received by the client and the server; answered by basic.cancel-ok."""

    __slots__ = ("consumer_tag", "no_wait")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x003C001E
    NAME: ClassVar[str] = "basic.cancel"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("basic.cancel-ok",)
    LAYOUT: ClassVar[Layout] = (("consumer_tag", "shortstr"), ("no_wait", "bit"))

    consumer_tag: str
    no_wait: bool

    def __init__(self, consumer_tag: str = "", no_wait: bool = False) -> None:
        self.consumer_tag = consumer_tag
        self.no_wait = no_wait

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            consumer_tag = self.consumer_tag.encode("utf-8", "surrogateescape")
            bits = 1 if self.no_wait else 0
            return b"".join((_pack_HHB(60, 30, len(consumer_tag)), consumer_tag, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.consumer_tag = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.no_wait = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicCancelOk(Method):
    """basic.cancel-ok (60, 31), received by the client and the server."""

    __slots__ = ("consumer_tag",)

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x003C001F
    NAME: ClassVar[str] = "basic.cancel-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("consumer_tag", "shortstr"),)

    consumer_tag: str

    def __init__(self, consumer_tag: str = "") -> None:
        self.consumer_tag = consumer_tag

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            consumer_tag = self.consumer_tag.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(60, 31, len(consumer_tag)), consumer_tag))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.consumer_tag = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicPublish(Method):
    """basic.publish (60, 40), received by the server; a content follows."""

    __slots__ = ("exchange", "immediate", "mandatory", "reserved_1", "routing_key")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x003C0028
    NAME: ClassVar[str] = "basic.publish"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = True
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("reserved_1", "short"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("mandatory", "bit"),
        ("immediate", "bit"),
    )

    reserved_1: int
    exchange: str
    routing_key: str
    mandatory: bool
    immediate: bool

    def __init__(
        self,
        reserved_1: int = 0,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        immediate: bool = False,
    ) -> None:
        self.reserved_1 = reserved_1
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = mandatory
        self.immediate = immediate

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            bits = (1 if self.mandatory else 0) | (2 if self.immediate else 0)
            return b"".join(
                (
                    _pack_HHHB(60, 40, self.reserved_1, len(exchange)),
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                    OCTET[bits],
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.mandatory = bits & 1 != 0
            method.immediate = bits & 2 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicReturn(Method):
    """basic.return (60, 50), received by the client; a content follows."""

    __slots__ = ("exchange", "reply_code", "reply_text", "routing_key")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x003C0032
    NAME: ClassVar[str] = "basic.return"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = True
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("reply_code", "short"),
        ("reply_text", "shortstr"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
    )

    reply_code: int
    reply_text: str
    exchange: str
    routing_key: str

    def __init__(
        self, reply_code: int = 0, reply_text: str = "", exchange: str = "", routing_key: str = ""
    ) -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text
        self.exchange = exchange
        self.routing_key = routing_key

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            reply_text = self.reply_text.encode("utf-8", "surrogateescape")
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHHB(60, 50, self.reply_code, len(reply_text)),
                    reply_text,
                    OCTET[len(exchange)],
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reply_code, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.reply_text = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicDeliver(Method):
    """basic.deliver (60, 60), received by the client; a content follows."""

    __slots__ = ("consumer_tag", "delivery_tag", "exchange", "redelivered", "routing_key")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x003C003C
    NAME: ClassVar[str] = "basic.deliver"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = True
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("consumer_tag", "shortstr"),
        ("delivery_tag", "longlong"),
        ("redelivered", "bit"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
    )

    consumer_tag: str
    delivery_tag: int
    redelivered: bool
    exchange: str
    routing_key: str

    def __init__(
        self,
        consumer_tag: str = "",
        delivery_tag: int = 0,
        redelivered: bool = False,
        exchange: str = "",
        routing_key: str = "",
    ) -> None:
        self.consumer_tag = consumer_tag
        self.delivery_tag = delivery_tag
        self.redelivered = redelivered
        self.exchange = exchange
        self.routing_key = routing_key

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            consumer_tag = self.consumer_tag.encode("utf-8", "surrogateescape")
            bits = 1 if self.redelivered else 0
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHB(60, 60, len(consumer_tag)),
                    consumer_tag,
                    _pack_QBB(self.delivery_tag, bits, len(exchange)),
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.consumer_tag = payload[start:end].decode("utf-8", "surrogateescape")
            method.delivery_tag, bits, size = _read_QBB(payload, end)
            start = end + 10
            end = start + size
            method.redelivered = bits & 1 != 0
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicGet(Method):
    """basic.get (60, 70), received by the server; answered by basic.get-ok or basic.get-empty."""

    __slots__ = ("no_ack", "queue", "reserved_1")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x003C0046
    NAME: ClassVar[str] = "basic.get"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("basic.get-ok", "basic.get-empty")
    LAYOUT: ClassVar[Layout] = (("reserved_1", "short"), ("queue", "shortstr"), ("no_ack", "bit"))

    reserved_1: int
    queue: str
    no_ack: bool

    def __init__(self, reserved_1: int = 0, queue: str = "", no_ack: bool = False) -> None:
        self.reserved_1 = reserved_1
        self.queue = queue
        self.no_ack = no_ack

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            bits = 1 if self.no_ack else 0
            return b"".join((_pack_HHHB(60, 70, self.reserved_1, len(queue)), queue, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.reserved_1, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.no_ack = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicGetOk(Method):
    """basic.get-ok (60, 71), received by the client; a content follows."""

    __slots__ = ("delivery_tag", "exchange", "message_count", "redelivered", "routing_key")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 71
    INDEX: ClassVar[int] = 0x003C0047
    NAME: ClassVar[str] = "basic.get-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = True
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("delivery_tag", "longlong"),
        ("redelivered", "bit"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("message_count", "long"),
    )

    delivery_tag: int
    redelivered: bool
    exchange: str
    routing_key: str
    message_count: int

    def __init__(
        self,
        delivery_tag: int = 0,
        redelivered: bool = False,
        exchange: str = "",
        routing_key: str = "",
        message_count: int = 0,
    ) -> None:
        self.delivery_tag = delivery_tag
        self.redelivered = redelivered
        self.exchange = exchange
        self.routing_key = routing_key
        self.message_count = message_count

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.redelivered else 0
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHQBB(60, 71, self.delivery_tag, bits, len(exchange)),
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                    _pack_I(self.message_count),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.delivery_tag, bits, size = _read_idsQBB(payload)
            start = 14
            end = start + size
            method.redelivered = bits & 1 != 0
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
            (method.message_count,) = _read_I(payload, end)
            end += 4
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicGetEmpty(Method):
    """basic.get-empty (60, 72), received by the client."""

    __slots__ = ("reserved_1",)

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 72
    INDEX: ClassVar[int] = 0x003C0048
    NAME: ClassVar[str] = "basic.get-empty"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("reserved_1", "shortstr"),)

    reserved_1: str

    def __init__(self, reserved_1: str = "") -> None:
        self.reserved_1 = reserved_1

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            reserved_1 = self.reserved_1.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(60, 72, len(reserved_1)), reserved_1))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            size = payload[4]
            start = 5
            end = start + size
            method.reserved_1 = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicAck(Method):
    """basic.ack (60, 80), received by the client and the server."""

    __slots__ = ("delivery_tag", "multiple")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 80
    INDEX: ClassVar[int] = 0x003C0050
    NAME: ClassVar[str] = "basic.ack"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("delivery_tag", "longlong"), ("multiple", "bit"))

    delivery_tag: int
    multiple: bool

    def __init__(self, delivery_tag: int = 0, multiple: bool = False) -> None:
        self.delivery_tag = delivery_tag
        self.multiple = multiple

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.multiple else 0
            return _pack_HHQB(60, 80, self.delivery_tag, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.delivery_tag, bits = _read_idsQB(payload)
            method.multiple = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 13:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicReject(Method):
    """basic.reject (60, 90), received by the server."""

    __slots__ = ("delivery_tag", "requeue")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 90
    INDEX: ClassVar[int] = 0x003C005A
    NAME: ClassVar[str] = "basic.reject"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("delivery_tag", "longlong"), ("requeue", "bit"))

    delivery_tag: int
    requeue: bool

    def __init__(self, delivery_tag: int = 0, requeue: bool = False) -> None:
        self.delivery_tag = delivery_tag
        self.requeue = requeue

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.requeue else 0
            return _pack_HHQB(60, 90, self.delivery_tag, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.delivery_tag, bits = _read_idsQB(payload)
            method.requeue = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 13:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicRecoverAsync(Method):
    """basic.recover-async (60, 100), received by the server; deprecated."""

    __slots__ = ("requeue",)

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 100
    INDEX: ClassVar[int] = 0x003C0064
    NAME: ClassVar[str] = "basic.recover-async"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("requeue", "bit"),)

    requeue: bool

    def __init__(self, requeue: bool = False) -> None:
        self.requeue = requeue

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.requeue else 0
            return _pack_HHB(60, 100, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            bits = payload[4]
            method.requeue = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 5:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicRecover(Method):
    """basic.recover (60, 110), received by the server."""

    __slots__ = ("requeue",)

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 110
    INDEX: ClassVar[int] = 0x003C006E
    NAME: ClassVar[str] = "basic.recover"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("requeue", "bit"),)

    requeue: bool

    def __init__(self, requeue: bool = False) -> None:
        self.requeue = requeue

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.requeue else 0
            return _pack_HHB(60, 110, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            bits = payload[4]
            method.requeue = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 5:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicRecoverOk(Method):
    """basic.recover-ok (60, 111), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 111
    INDEX: ClassVar[int] = 0x003C006F
    NAME: ClassVar[str] = "basic.recover-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x3c\x00\x6f"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class BasicNack(Method):
    """basic.nack (60, 120), received by the client and the server; RabbitMQ's extension."""

    __slots__ = ("delivery_tag", "multiple", "requeue")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 120
    INDEX: ClassVar[int] = 0x003C0078
    NAME: ClassVar[str] = "basic.nack"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("delivery_tag", "longlong"), ("multiple", "bit"), ("requeue", "bit"))

    delivery_tag: int
    multiple: bool
    requeue: bool

    def __init__(self, delivery_tag: int = 0, multiple: bool = False, requeue: bool = False) -> None:
        self.delivery_tag = delivery_tag
        self.multiple = multiple
        self.requeue = requeue

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = (1 if self.multiple else 0) | (2 if self.requeue else 0)
            return _pack_HHQB(60, 120, self.delivery_tag, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.delivery_tag, bits = _read_idsQB(payload)
            method.multiple = bits & 1 != 0
            method.requeue = bits & 2 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 13:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConfirmSelect(Method):
    """confirm.select (85, 10), received by the server.

    Answered by confirm.select-ok; RabbitMQ's extension.
    """

    __slots__ = ("no_wait",)

    CLASS_ID: ClassVar[int] = 85
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0055000A
    NAME: ClassVar[str] = "confirm.select"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("confirm.select-ok",)
    LAYOUT: ClassVar[Layout] = (("no_wait", "bit"),)

    no_wait: bool

    def __init__(self, no_wait: bool = False) -> None:
        self.no_wait = no_wait

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.no_wait else 0
            return _pack_HHB(85, 10, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            bits = payload[4]
            method.no_wait = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 5:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConfirmSelectOk(Method):
    """confirm.select-ok (85, 11), received by the client; RabbitMQ's extension."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 85
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0055000B
    NAME: ClassVar[str] = "confirm.select-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x55\x00\x0b"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class TxSelect(Method):
    """tx.select (90, 10), received by the server; answered by tx.select-ok."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x005A000A
    NAME: ClassVar[str] = "tx.select"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("tx.select-ok",)
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x5a\x00\x0a"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class TxSelectOk(Method):
    """tx.select-ok (90, 11), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x005A000B
    NAME: ClassVar[str] = "tx.select-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x5a\x00\x0b"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class TxCommit(Method):
    """tx.commit (90, 20), received by the server; answered by tx.commit-ok."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x005A0014
    NAME: ClassVar[str] = "tx.commit"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("tx.commit-ok",)
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x5a\x00\x14"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class TxCommitOk(Method):
    """tx.commit-ok (90, 21), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x005A0015
    NAME: ClassVar[str] = "tx.commit-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x5a\x00\x15"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class TxRollback(Method):
    """tx.rollback (90, 30), received by the server; answered by tx.rollback-ok."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x005A001E
    NAME: ClassVar[str] = "tx.rollback"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("tx.rollback-ok",)
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x5a\x00\x1e"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class TxRollbackOk(Method):
    """tx.rollback-ok (90, 31), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 90
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x005A001F
    NAME: ClassVar[str] = "tx.rollback-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x5a\x00\x1f"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


#: class id << 16 | method id -> class
METHODS: dict[int, type[Method]] = {
    ConnectionStart.INDEX: ConnectionStart,
    ConnectionStartOk.INDEX: ConnectionStartOk,
    ConnectionSecure.INDEX: ConnectionSecure,
    ConnectionSecureOk.INDEX: ConnectionSecureOk,
    ConnectionTune.INDEX: ConnectionTune,
    ConnectionTuneOk.INDEX: ConnectionTuneOk,
    ConnectionOpen.INDEX: ConnectionOpen,
    ConnectionOpenOk.INDEX: ConnectionOpenOk,
    ConnectionClose.INDEX: ConnectionClose,
    ConnectionCloseOk.INDEX: ConnectionCloseOk,
    ConnectionBlocked.INDEX: ConnectionBlocked,
    ConnectionUnblocked.INDEX: ConnectionUnblocked,
    ConnectionUpdateSecret.INDEX: ConnectionUpdateSecret,
    ConnectionUpdateSecretOk.INDEX: ConnectionUpdateSecretOk,
    ChannelOpen.INDEX: ChannelOpen,
    ChannelOpenOk.INDEX: ChannelOpenOk,
    ChannelFlow.INDEX: ChannelFlow,
    ChannelFlowOk.INDEX: ChannelFlowOk,
    ChannelClose.INDEX: ChannelClose,
    ChannelCloseOk.INDEX: ChannelCloseOk,
    AccessRequest.INDEX: AccessRequest,
    AccessRequestOk.INDEX: AccessRequestOk,
    ExchangeDeclare.INDEX: ExchangeDeclare,
    ExchangeDeclareOk.INDEX: ExchangeDeclareOk,
    ExchangeDelete.INDEX: ExchangeDelete,
    ExchangeDeleteOk.INDEX: ExchangeDeleteOk,
    ExchangeBind.INDEX: ExchangeBind,
    ExchangeBindOk.INDEX: ExchangeBindOk,
    ExchangeUnbind.INDEX: ExchangeUnbind,
    ExchangeUnbindOk.INDEX: ExchangeUnbindOk,
    QueueDeclare.INDEX: QueueDeclare,
    QueueDeclareOk.INDEX: QueueDeclareOk,
    QueueBind.INDEX: QueueBind,
    QueueBindOk.INDEX: QueueBindOk,
    QueuePurge.INDEX: QueuePurge,
    QueuePurgeOk.INDEX: QueuePurgeOk,
    QueueDelete.INDEX: QueueDelete,
    QueueDeleteOk.INDEX: QueueDeleteOk,
    QueueUnbind.INDEX: QueueUnbind,
    QueueUnbindOk.INDEX: QueueUnbindOk,
    BasicQos.INDEX: BasicQos,
    BasicQosOk.INDEX: BasicQosOk,
    BasicConsume.INDEX: BasicConsume,
    BasicConsumeOk.INDEX: BasicConsumeOk,
    BasicCancel.INDEX: BasicCancel,
    BasicCancelOk.INDEX: BasicCancelOk,
    BasicPublish.INDEX: BasicPublish,
    BasicReturn.INDEX: BasicReturn,
    BasicDeliver.INDEX: BasicDeliver,
    BasicGet.INDEX: BasicGet,
    BasicGetOk.INDEX: BasicGetOk,
    BasicGetEmpty.INDEX: BasicGetEmpty,
    BasicAck.INDEX: BasicAck,
    BasicReject.INDEX: BasicReject,
    BasicRecoverAsync.INDEX: BasicRecoverAsync,
    BasicRecover.INDEX: BasicRecover,
    BasicRecoverOk.INDEX: BasicRecoverOk,
    BasicNack.INDEX: BasicNack,
    ConfirmSelect.INDEX: ConfirmSelect,
    ConfirmSelectOk.INDEX: ConfirmSelectOk,
    TxSelect.INDEX: TxSelect,
    TxSelectOk.INDEX: TxSelectOk,
    TxCommit.INDEX: TxCommit,
    TxCommitOk.INDEX: TxCommitOk,
    TxRollback.INDEX: TxRollback,
    TxRollbackOk.INDEX: TxRollbackOk,
}
