"""The methods of AMQP 0-9, one class each.

Made from spec/amqp-0-9.toml by spec/generate.py; changes belong there.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import TYPE_CHECKING, ClassVar

from fakeamqp.protocols.amqp_0_9.codec.bodies import NO_BODY, Body, decode_body, encode_body
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
    "BasicPublish",
    "BasicQos",
    "BasicQosOk",
    "BasicRecover",
    "BasicRecoverSync",
    "BasicRecoverSyncOk",
    "BasicReject",
    "BasicReturn",
    "ChannelClose",
    "ChannelCloseOk",
    "ChannelFlow",
    "ChannelFlowOk",
    "ChannelOk",
    "ChannelOpen",
    "ChannelOpenOk",
    "ChannelPing",
    "ChannelPong",
    "ChannelResume",
    "ConnectionClose",
    "ConnectionCloseOk",
    "ConnectionOpen",
    "ConnectionOpenOk",
    "ConnectionRedirect",
    "ConnectionSecure",
    "ConnectionSecureOk",
    "ConnectionStart",
    "ConnectionStartOk",
    "ConnectionTune",
    "ConnectionTuneOk",
    "DtxSelect",
    "DtxSelectOk",
    "DtxStart",
    "DtxStartOk",
    "ExchangeBound",
    "ExchangeBoundOk",
    "ExchangeDeclare",
    "ExchangeDeclareOk",
    "ExchangeDelete",
    "ExchangeDeleteOk",
    "FileAck",
    "FileCancel",
    "FileCancelOk",
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
    "MessageAppend",
    "MessageCancel",
    "MessageCheckpoint",
    "MessageClose",
    "MessageConsume",
    "MessageEmpty",
    "MessageGet",
    "MessageOffset",
    "MessageOk",
    "MessageOpen",
    "MessageQos",
    "MessageRecover",
    "MessageReject",
    "MessageResume",
    "MessageTransfer",
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
    "StreamCancel",
    "StreamCancelOk",
    "StreamConsume",
    "StreamConsumeOk",
    "StreamDeliver",
    "StreamPublish",
    "StreamQos",
    "StreamQosOk",
    "StreamReturn",
    "TunnelRequest",
    "TxCommit",
    "TxCommitOk",
    "TxRollback",
    "TxRollbackOk",
    "TxSelect",
    "TxSelectOk",
]

# `decode` fills a bare instance: a fifth faster for basic.publish than going through `__init__`
new = object.__new__

_read_BB = Struct(">BB").unpack_from
_read_BQBQBQB = Struct(">BQBQBQB").unpack_from
_read_HH = Struct(">HH").unpack_from
_read_I = Struct(">I").unpack_from
_read_II = Struct(">II").unpack_from
_read_Q = Struct(">Q").unpack_from
_read_QB = Struct(">QB").unpack_from
_read_QBB = Struct(">QBB").unpack_from
_read_idsBB = Struct(">4xBB").unpack_from
_read_idsH = Struct(">4xH").unpack_from
_read_idsHB = Struct(">4xHB").unpack_from
_read_idsHIH = Struct(">4xHIH").unpack_from
_read_idsI = Struct(">4xI").unpack_from
_read_idsIHB = Struct(">4xIHB").unpack_from
_read_idsIHIB = Struct(">4xIHIB").unpack_from
_read_idsQ = Struct(">4xQ").unpack_from
_read_idsQB = Struct(">4xQB").unpack_from
_read_idsQBB = Struct(">4xQBB").unpack_from
_pack_BB = Struct(">BB").pack
_pack_BQBQBQB = Struct(">BQBQBQB").pack
_pack_HH = Struct(">HH").pack
_pack_HHB = Struct(">HHB").pack
_pack_HHBB = Struct(">HHBB").pack
_pack_HHH = Struct(">HHH").pack
_pack_HHHB = Struct(">HHHB").pack
_pack_HHHIH = Struct(">HHHIH").pack
_pack_HHI = Struct(">HHI").pack
_pack_HHIHB = Struct(">HHIHB").pack
_pack_HHIHIB = Struct(">HHIHIB").pack
_pack_HHQ = Struct(">HHQ").pack
_pack_HHQB = Struct(">HHQB").pack
_pack_HHQBB = Struct(">HHQBB").pack
_pack_I = Struct(">I").pack
_pack_II = Struct(">II").pack
_pack_Q = Struct(">Q").pack
_pack_QB = Struct(">QB").pack
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
    """connection.open (10, 40), received by the server.

    Answered by connection.open-ok or connection.redirect.
    """

    __slots__ = ("capabilities", "insist", "virtual_host")

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x000A0028
    NAME: ClassVar[str] = "connection.open"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("connection.open-ok", "connection.redirect")
    LAYOUT: ClassVar[Layout] = (("virtual_host", "shortstr"), ("capabilities", "shortstr"), ("insist", "bit"))

    virtual_host: str
    capabilities: str
    insist: bool

    def __init__(self, virtual_host: str = "", capabilities: str = "", insist: bool = False) -> None:
        self.virtual_host = virtual_host
        self.capabilities = capabilities
        self.insist = insist

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            virtual_host = self.virtual_host.encode("utf-8", "surrogateescape")
            capabilities = self.capabilities.encode("utf-8", "surrogateescape")
            bits = 1 if self.insist else 0
            return b"".join(
                (
                    _pack_HHB(10, 40, len(virtual_host)),
                    virtual_host,
                    OCTET[len(capabilities)],
                    capabilities,
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
            method.capabilities = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.insist = bits & 1 != 0
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

    __slots__ = ("known_hosts",)

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x000A0029
    NAME: ClassVar[str] = "connection.open-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("known_hosts", "shortstr"),)

    known_hosts: str

    def __init__(self, known_hosts: str = "") -> None:
        self.known_hosts = known_hosts

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            known_hosts = self.known_hosts.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(10, 41, len(known_hosts)), known_hosts))
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
            method.known_hosts = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ConnectionRedirect(Method):
    """connection.redirect (10, 42), received by the client."""

    __slots__ = ("host", "known_hosts")

    CLASS_ID: ClassVar[int] = 10
    METHOD_ID: ClassVar[int] = 42
    INDEX: ClassVar[int] = 0x000A002A
    NAME: ClassVar[str] = "connection.redirect"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("host", "shortstr"), ("known_hosts", "shortstr"))

    host: str
    known_hosts: str

    def __init__(self, host: str = "", known_hosts: str = "") -> None:
        self.host = host
        self.known_hosts = known_hosts

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            host = self.host.encode("utf-8", "surrogateescape")
            known_hosts = self.known_hosts.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(10, 42, len(host)), host, OCTET[len(known_hosts)], known_hosts))
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
            method.host = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.known_hosts = payload[start:end].decode("utf-8", "surrogateescape")
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
class ChannelOpen(Method):
    """channel.open (20, 10), received by the server; answered by channel.open-ok."""

    __slots__ = ("out_of_band",)

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0014000A
    NAME: ClassVar[str] = "channel.open"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("channel.open-ok",)
    LAYOUT: ClassVar[Layout] = (("out_of_band", "shortstr"),)

    out_of_band: str

    def __init__(self, out_of_band: str = "") -> None:
        self.out_of_band = out_of_band

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            out_of_band = self.out_of_band.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(20, 10, len(out_of_band)), out_of_band))
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
            method.out_of_band = payload[start:end].decode("utf-8", "surrogateescape")
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

    __slots__ = ("channel_id",)

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0014000B
    NAME: ClassVar[str] = "channel.open-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("channel_id", "longstr"),)

    channel_id: bytes

    def __init__(self, channel_id: bytes = b"") -> None:
        self.channel_id = channel_id

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join((_pack_HHI(20, 11, len(self.channel_id)), self.channel_id))
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
            method.channel_id = payload[start:end]
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
class ChannelResume(Method):
    """channel.resume (20, 50), received by the server; answered by channel.ok."""

    __slots__ = ("channel_id",)

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00140032
    NAME: ClassVar[str] = "channel.resume"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("channel.ok",)
    LAYOUT: ClassVar[Layout] = (("channel_id", "longstr"),)

    channel_id: bytes

    def __init__(self, channel_id: bytes = b"") -> None:
        self.channel_id = channel_id

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join((_pack_HHI(20, 50, len(self.channel_id)), self.channel_id))
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
            method.channel_id = payload[start:end]
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class ChannelPing(Method):
    """channel.ping (20, 60), received by the client and the server.

    Answered by channel.ok; work in progress, say the documents.
    """

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x0014003C
    NAME: ClassVar[str] = "channel.ping"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("channel.ok",)
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x14\x00\x3c"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class ChannelPong(Method):
    """channel.pong (20, 70), received by the client and the server.

    Answered by channel.ok; work in progress, say the documents.
    """

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x00140046
    NAME: ClassVar[str] = "channel.pong"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("channel.ok",)
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x14\x00\x46"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class ChannelOk(Method):
    """channel.ok (20, 80), received by the client and the server; work in progress, say the documents."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 20
    METHOD_ID: ClassVar[int] = 80
    INDEX: ClassVar[int] = 0x00140050
    NAME: ClassVar[str] = "channel.ok"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x14\x00\x50"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class AccessRequest(Method):
    """access.request (30, 10), received by the server; answered by access.request-ok."""

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
    """access.request-ok (30, 11), received by the client."""

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
        "ticket",
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
        ("ticket", "short"),
        ("exchange", "shortstr"),
        ("type", "shortstr"),
        ("passive", "bit"),
        ("durable", "bit"),
        ("auto_delete", "bit"),
        ("internal", "bit"),
        ("no_wait", "bit"),
        ("arguments", "table"),
    )

    ticket: int
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
        ticket: int = 0,
        exchange: str = "",
        type: str = "",
        passive: bool = False,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        no_wait: bool = False,
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.ticket = ticket
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
                    _pack_HHHB(40, 10, self.ticket, len(exchange)),
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
            method.ticket, size = _read_idsHB(payload)
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

    __slots__ = ("exchange", "if_unused", "no_wait", "ticket")

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00280014
    NAME: ClassVar[str] = "exchange.delete"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("exchange.delete-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("exchange", "shortstr"),
        ("if_unused", "bit"),
        ("no_wait", "bit"),
    )

    ticket: int
    exchange: str
    if_unused: bool
    no_wait: bool

    def __init__(
        self, ticket: int = 0, exchange: str = "", if_unused: bool = False, no_wait: bool = False
    ) -> None:
        self.ticket = ticket
        self.exchange = exchange
        self.if_unused = if_unused
        self.no_wait = no_wait

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            bits = (1 if self.if_unused else 0) | (2 if self.no_wait else 0)
            return b"".join((_pack_HHHB(40, 20, self.ticket, len(exchange)), exchange, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
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
class ExchangeBound(Method):
    """exchange.bound (40, 22), received by the server; answered by exchange.bound-ok; Qpid's extension."""

    __slots__ = ("exchange", "queue", "routing_key")

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 22
    INDEX: ClassVar[int] = 0x00280016
    NAME: ClassVar[str] = "exchange.bound"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("exchange.bound-ok",)
    LAYOUT: ClassVar[Layout] = (("exchange", "shortstr"), ("routing_key", "shortstr"), ("queue", "shortstr"))

    exchange: str
    routing_key: str
    queue: str

    def __init__(self, exchange: str = "", routing_key: str = "", queue: str = "") -> None:
        self.exchange = exchange
        self.routing_key = routing_key
        self.queue = queue

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            queue = self.queue.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHB(40, 22, len(exchange)),
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                    OCTET[len(queue)],
                    queue,
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
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class ExchangeBoundOk(Method):
    """exchange.bound-ok (40, 23), received by the client; Qpid's extension."""

    __slots__ = ("reply_code", "reply_text")

    CLASS_ID: ClassVar[int] = 40
    METHOD_ID: ClassVar[int] = 23
    INDEX: ClassVar[int] = 0x00280017
    NAME: ClassVar[str] = "exchange.bound-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("reply_code", "short"), ("reply_text", "shortstr"))

    reply_code: int
    reply_text: str

    def __init__(self, reply_code: int = 0, reply_text: str = "") -> None:
        self.reply_code = reply_code
        self.reply_text = reply_text

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            reply_text = self.reply_text.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHHB(40, 23, self.reply_code, len(reply_text)), reply_text))
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
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class QueueDeclare(Method):
    """queue.declare (50, 10), received by the server; answered by queue.declare-ok."""

    __slots__ = ("arguments", "auto_delete", "durable", "exclusive", "no_wait", "passive", "queue", "ticket")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0032000A
    NAME: ClassVar[str] = "queue.declare"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.declare-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("queue", "shortstr"),
        ("passive", "bit"),
        ("durable", "bit"),
        ("exclusive", "bit"),
        ("auto_delete", "bit"),
        ("no_wait", "bit"),
        ("arguments", "table"),
    )

    ticket: int
    queue: str
    passive: bool
    durable: bool
    exclusive: bool
    auto_delete: bool
    no_wait: bool
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        ticket: int = 0,
        queue: str = "",
        passive: bool = False,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        no_wait: bool = False,
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.ticket = ticket
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
                    _pack_HHHB(50, 10, self.ticket, len(queue)),
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
            method.ticket, size = _read_idsHB(payload)
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

    __slots__ = ("arguments", "exchange", "no_wait", "queue", "routing_key", "ticket")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00320014
    NAME: ClassVar[str] = "queue.bind"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.bind-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("queue", "shortstr"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("no_wait", "bit"),
        ("arguments", "table"),
    )

    ticket: int
    queue: str
    exchange: str
    routing_key: str
    no_wait: bool
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        ticket: int = 0,
        queue: str = "",
        exchange: str = "",
        routing_key: str = "",
        no_wait: bool = False,
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.ticket = ticket
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
                    _pack_HHHB(50, 20, self.ticket, len(queue)),
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
            method.ticket, size = _read_idsHB(payload)
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
class QueueUnbind(Method):
    """queue.unbind (50, 50), received by the server; answered by queue.unbind-ok."""

    __slots__ = ("arguments", "exchange", "queue", "routing_key", "ticket")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00320032
    NAME: ClassVar[str] = "queue.unbind"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.unbind-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("queue", "shortstr"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("arguments", "table"),
    )

    ticket: int
    queue: str
    exchange: str
    routing_key: str
    arguments: dict[str, FieldValue]

    def __init__(
        self,
        ticket: int = 0,
        queue: str = "",
        exchange: str = "",
        routing_key: str = "",
        arguments: dict[str, FieldValue] | None = None,
    ) -> None:
        self.ticket = ticket
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
                    _pack_HHHB(50, 50, self.ticket, len(queue)),
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
            method.ticket, size = _read_idsHB(payload)
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
class QueuePurge(Method):
    """queue.purge (50, 30), received by the server; answered by queue.purge-ok."""

    __slots__ = ("no_wait", "queue", "ticket")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0032001E
    NAME: ClassVar[str] = "queue.purge"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.purge-ok",)
    LAYOUT: ClassVar[Layout] = (("ticket", "short"), ("queue", "shortstr"), ("no_wait", "bit"))

    ticket: int
    queue: str
    no_wait: bool

    def __init__(self, ticket: int = 0, queue: str = "", no_wait: bool = False) -> None:
        self.ticket = ticket
        self.queue = queue
        self.no_wait = no_wait

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            bits = 1 if self.no_wait else 0
            return b"".join((_pack_HHHB(50, 30, self.ticket, len(queue)), queue, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
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

    __slots__ = ("if_empty", "if_unused", "no_wait", "queue", "ticket")

    CLASS_ID: ClassVar[int] = 50
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00320028
    NAME: ClassVar[str] = "queue.delete"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("queue.delete-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("queue", "shortstr"),
        ("if_unused", "bit"),
        ("if_empty", "bit"),
        ("no_wait", "bit"),
    )

    ticket: int
    queue: str
    if_unused: bool
    if_empty: bool
    no_wait: bool

    def __init__(
        self,
        ticket: int = 0,
        queue: str = "",
        if_unused: bool = False,
        if_empty: bool = False,
        no_wait: bool = False,
    ) -> None:
        self.ticket = ticket
        self.queue = queue
        self.if_unused = if_unused
        self.if_empty = if_empty
        self.no_wait = no_wait

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            bits = (1 if self.if_unused else 0) | (2 if self.if_empty else 0) | (4 if self.no_wait else 0)
            return b"".join((_pack_HHHB(50, 40, self.ticket, len(queue)), queue, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
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

    __slots__ = ("consumer_tag", "exclusive", "filter", "no_ack", "no_local", "no_wait", "queue", "ticket")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x003C0014
    NAME: ClassVar[str] = "basic.consume"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("basic.consume-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("queue", "shortstr"),
        ("consumer_tag", "shortstr"),
        ("no_local", "bit"),
        ("no_ack", "bit"),
        ("exclusive", "bit"),
        ("no_wait", "bit"),
        ("filter", "table"),
    )

    ticket: int
    queue: str
    consumer_tag: str
    no_local: bool
    no_ack: bool
    exclusive: bool
    no_wait: bool
    filter: dict[str, FieldValue]

    def __init__(
        self,
        ticket: int = 0,
        queue: str = "",
        consumer_tag: str = "",
        no_local: bool = False,
        no_ack: bool = False,
        exclusive: bool = False,
        no_wait: bool = False,
        filter: dict[str, FieldValue] | None = None,
    ) -> None:
        self.ticket = ticket
        self.queue = queue
        self.consumer_tag = consumer_tag
        self.no_local = no_local
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.no_wait = no_wait
        self.filter = {} if filter is None else filter

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
                    _pack_HHHB(60, 20, self.ticket, len(queue)),
                    queue,
                    OCTET[len(consumer_tag)],
                    consumer_tag,
                    OCTET[bits],
                    encode_table(self.filter),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
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
            method.filter, end = grammar.decode(payload, end, len(payload))
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
    """basic.cancel (60, 30), received by the server; answered by basic.cancel-ok."""

    __slots__ = ("consumer_tag", "no_wait")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x003C001E
    NAME: ClassVar[str] = "basic.cancel"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
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
    """basic.cancel-ok (60, 31), received by the client."""

    __slots__ = ("consumer_tag",)

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x003C001F
    NAME: ClassVar[str] = "basic.cancel-ok"
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

    __slots__ = ("exchange", "immediate", "mandatory", "routing_key", "ticket")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x003C0028
    NAME: ClassVar[str] = "basic.publish"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = True
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("mandatory", "bit"),
        ("immediate", "bit"),
    )

    ticket: int
    exchange: str
    routing_key: str
    mandatory: bool
    immediate: bool

    def __init__(
        self,
        ticket: int = 0,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        immediate: bool = False,
    ) -> None:
        self.ticket = ticket
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
                    _pack_HHHB(60, 40, self.ticket, len(exchange)),
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
            method.ticket, size = _read_idsHB(payload)
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

    __slots__ = ("no_ack", "queue", "ticket")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x003C0046
    NAME: ClassVar[str] = "basic.get"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("basic.get-ok", "basic.get-empty")
    LAYOUT: ClassVar[Layout] = (("ticket", "short"), ("queue", "shortstr"), ("no_ack", "bit"))

    ticket: int
    queue: str
    no_ack: bool

    def __init__(self, ticket: int = 0, queue: str = "", no_ack: bool = False) -> None:
        self.ticket = ticket
        self.queue = queue
        self.no_ack = no_ack

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            bits = 1 if self.no_ack else 0
            return b"".join((_pack_HHHB(60, 70, self.ticket, len(queue)), queue, OCTET[bits]))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
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

    __slots__ = ("cluster_id",)

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 72
    INDEX: ClassVar[int] = 0x003C0048
    NAME: ClassVar[str] = "basic.get-empty"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("cluster_id", "shortstr"),)

    cluster_id: str

    def __init__(self, cluster_id: str = "") -> None:
        self.cluster_id = cluster_id

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            cluster_id = self.cluster_id.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(60, 72, len(cluster_id)), cluster_id))
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
            method.cluster_id = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class BasicAck(Method):
    """basic.ack (60, 80), received by the server."""

    __slots__ = ("delivery_tag", "multiple")

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 80
    INDEX: ClassVar[int] = 0x003C0050
    NAME: ClassVar[str] = "basic.ack"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
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
class BasicRecover(Method):
    """basic.recover (60, 100), received by the server."""

    __slots__ = ("requeue",)

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 100
    INDEX: ClassVar[int] = 0x003C0064
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
class BasicRecoverSync(Method):
    """basic.recover-sync (60, 102), received by the server.

    Answered by basic.recover-sync-ok; Qpid's extension.
    """

    __slots__ = ("requeue",)

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 102
    INDEX: ClassVar[int] = 0x003C0066
    NAME: ClassVar[str] = "basic.recover-sync"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("basic.recover-sync-ok",)
    LAYOUT: ClassVar[Layout] = (("requeue", "bit"),)

    requeue: bool

    def __init__(self, requeue: bool = False) -> None:
        self.requeue = requeue

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.requeue else 0
            return _pack_HHB(60, 102, bits)
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
class BasicRecoverSyncOk(Method):
    """basic.recover-sync-ok (60, 101), received by the client; Qpid's extension."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 60
    METHOD_ID: ClassVar[int] = 101
    INDEX: ClassVar[int] = 0x003C0065
    NAME: ClassVar[str] = "basic.recover-sync-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x3c\x00\x65"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class FileQos(Method):
    """file.qos (70, 10), received by the server; answered by file.qos-ok."""

    __slots__ = ("global_", "prefetch_count", "prefetch_size")

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0046000A
    NAME: ClassVar[str] = "file.qos"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("file.qos-ok",)
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
            return _pack_HHIHB(70, 10, self.prefetch_size, self.prefetch_count, bits)
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
class FileQosOk(Method):
    """file.qos-ok (70, 11), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0046000B
    NAME: ClassVar[str] = "file.qos-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x46\x00\x0b"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class FileConsume(Method):
    """file.consume (70, 20), received by the server; answered by file.consume-ok."""

    __slots__ = ("consumer_tag", "exclusive", "filter", "no_ack", "no_local", "no_wait", "queue", "ticket")

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00460014
    NAME: ClassVar[str] = "file.consume"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("file.consume-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("queue", "shortstr"),
        ("consumer_tag", "shortstr"),
        ("no_local", "bit"),
        ("no_ack", "bit"),
        ("exclusive", "bit"),
        ("no_wait", "bit"),
        ("filter", "table"),
    )

    ticket: int
    queue: str
    consumer_tag: str
    no_local: bool
    no_ack: bool
    exclusive: bool
    no_wait: bool
    filter: dict[str, FieldValue]

    def __init__(
        self,
        ticket: int = 0,
        queue: str = "",
        consumer_tag: str = "",
        no_local: bool = False,
        no_ack: bool = False,
        exclusive: bool = False,
        no_wait: bool = False,
        filter: dict[str, FieldValue] | None = None,
    ) -> None:
        self.ticket = ticket
        self.queue = queue
        self.consumer_tag = consumer_tag
        self.no_local = no_local
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.no_wait = no_wait
        self.filter = {} if filter is None else filter

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
                    _pack_HHHB(70, 20, self.ticket, len(queue)),
                    queue,
                    OCTET[len(consumer_tag)],
                    consumer_tag,
                    OCTET[bits],
                    encode_table(self.filter),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
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
            method.filter, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class FileConsumeOk(Method):
    """file.consume-ok (70, 21), received by the client."""

    __slots__ = ("consumer_tag",)

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00460015
    NAME: ClassVar[str] = "file.consume-ok"
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
            return b"".join((_pack_HHB(70, 21, len(consumer_tag)), consumer_tag))
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
class FileCancel(Method):
    """file.cancel (70, 30), received by the server; answered by file.cancel-ok."""

    __slots__ = ("consumer_tag", "no_wait")

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0046001E
    NAME: ClassVar[str] = "file.cancel"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("file.cancel-ok",)
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
            return b"".join((_pack_HHB(70, 30, len(consumer_tag)), consumer_tag, OCTET[bits]))
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
class FileCancelOk(Method):
    """file.cancel-ok (70, 31), received by the client."""

    __slots__ = ("consumer_tag",)

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x0046001F
    NAME: ClassVar[str] = "file.cancel-ok"
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
            return b"".join((_pack_HHB(70, 31, len(consumer_tag)), consumer_tag))
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
class FileOpen(Method):
    """file.open (70, 40), received by the client and the server; answered by file.open-ok."""

    __slots__ = ("content_size", "identifier")

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00460028
    NAME: ClassVar[str] = "file.open"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("file.open-ok",)
    LAYOUT: ClassVar[Layout] = (("identifier", "shortstr"), ("content_size", "longlong"))

    identifier: str
    content_size: int

    def __init__(self, identifier: str = "", content_size: int = 0) -> None:
        self.identifier = identifier
        self.content_size = content_size

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            identifier = self.identifier.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(70, 40, len(identifier)), identifier, _pack_Q(self.content_size)))
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
            method.identifier = payload[start:end].decode("utf-8", "surrogateescape")
            (method.content_size,) = _read_Q(payload, end)
            end += 8
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class FileOpenOk(Method):
    """file.open-ok (70, 41), received by the client and the server; answered by file.stage."""

    __slots__ = ("staged_size",)

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 41
    INDEX: ClassVar[int] = 0x00460029
    NAME: ClassVar[str] = "file.open-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("file.stage",)
    LAYOUT: ClassVar[Layout] = (("staged_size", "longlong"),)

    staged_size: int

    def __init__(self, staged_size: int = 0) -> None:
        self.staged_size = staged_size

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return _pack_HHQ(70, 41, self.staged_size)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            (method.staged_size,) = _read_idsQ(payload)
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 12:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class FileStage(Method):
    """file.stage (70, 50), received by the client and the server; a content follows."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00460032
    NAME: ClassVar[str] = "file.stage"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = True
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x46\x00\x32"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class FilePublish(Method):
    """file.publish (70, 60), received by the server."""

    __slots__ = ("exchange", "identifier", "immediate", "mandatory", "routing_key", "ticket")

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x0046003C
    NAME: ClassVar[str] = "file.publish"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("mandatory", "bit"),
        ("immediate", "bit"),
        ("identifier", "shortstr"),
    )

    ticket: int
    exchange: str
    routing_key: str
    mandatory: bool
    immediate: bool
    identifier: str

    def __init__(
        self,
        ticket: int = 0,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        immediate: bool = False,
        identifier: str = "",
    ) -> None:
        self.ticket = ticket
        self.exchange = exchange
        self.routing_key = routing_key
        self.mandatory = mandatory
        self.immediate = immediate
        self.identifier = identifier

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            bits = (1 if self.mandatory else 0) | (2 if self.immediate else 0)
            identifier = self.identifier.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHHB(70, 60, self.ticket, len(exchange)),
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                    _pack_BB(bits, len(identifier)),
                    identifier,
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
            bits, size = _read_BB(payload, end)
            start = end + 2
            end = start + size
            method.mandatory = bits & 1 != 0
            method.immediate = bits & 2 != 0
            method.identifier = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class FileReturn(Method):
    """file.return (70, 70), received by the client; a content follows."""

    __slots__ = ("exchange", "reply_code", "reply_text", "routing_key")

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x00460046
    NAME: ClassVar[str] = "file.return"
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
                    _pack_HHHB(70, 70, self.reply_code, len(reply_text)),
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
class FileDeliver(Method):
    """file.deliver (70, 80), received by the client."""

    __slots__ = ("consumer_tag", "delivery_tag", "exchange", "identifier", "redelivered", "routing_key")

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 80
    INDEX: ClassVar[int] = 0x00460050
    NAME: ClassVar[str] = "file.deliver"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("consumer_tag", "shortstr"),
        ("delivery_tag", "longlong"),
        ("redelivered", "bit"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("identifier", "shortstr"),
    )

    consumer_tag: str
    delivery_tag: int
    redelivered: bool
    exchange: str
    routing_key: str
    identifier: str

    def __init__(
        self,
        consumer_tag: str = "",
        delivery_tag: int = 0,
        redelivered: bool = False,
        exchange: str = "",
        routing_key: str = "",
        identifier: str = "",
    ) -> None:
        self.consumer_tag = consumer_tag
        self.delivery_tag = delivery_tag
        self.redelivered = redelivered
        self.exchange = exchange
        self.routing_key = routing_key
        self.identifier = identifier

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            consumer_tag = self.consumer_tag.encode("utf-8", "surrogateescape")
            bits = 1 if self.redelivered else 0
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            identifier = self.identifier.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHB(70, 80, len(consumer_tag)),
                    consumer_tag,
                    _pack_QBB(self.delivery_tag, bits, len(exchange)),
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                    OCTET[len(identifier)],
                    identifier,
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
            start = end + 1
            end = start + payload[end]
            method.identifier = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class FileAck(Method):
    """file.ack (70, 90), received by the server."""

    __slots__ = ("delivery_tag", "multiple")

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 90
    INDEX: ClassVar[int] = 0x0046005A
    NAME: ClassVar[str] = "file.ack"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
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
            return _pack_HHQB(70, 90, self.delivery_tag, bits)
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
class FileReject(Method):
    """file.reject (70, 100), received by the server."""

    __slots__ = ("delivery_tag", "requeue")

    CLASS_ID: ClassVar[int] = 70
    METHOD_ID: ClassVar[int] = 100
    INDEX: ClassVar[int] = 0x00460064
    NAME: ClassVar[str] = "file.reject"
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
            return _pack_HHQB(70, 100, self.delivery_tag, bits)
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
class StreamQos(Method):
    """stream.qos (80, 10), received by the server; answered by stream.qos-ok."""

    __slots__ = ("consume_rate", "global_", "prefetch_count", "prefetch_size")

    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0050000A
    NAME: ClassVar[str] = "stream.qos"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("stream.qos-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("prefetch_size", "long"),
        ("prefetch_count", "short"),
        ("consume_rate", "long"),
        ("global_", "bit"),
    )

    prefetch_size: int
    prefetch_count: int
    consume_rate: int
    global_: bool

    def __init__(
        self, prefetch_size: int = 0, prefetch_count: int = 0, consume_rate: int = 0, global_: bool = False
    ) -> None:
        self.prefetch_size = prefetch_size
        self.prefetch_count = prefetch_count
        self.consume_rate = consume_rate
        self.global_ = global_

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.global_ else 0
            return _pack_HHIHIB(80, 10, self.prefetch_size, self.prefetch_count, self.consume_rate, bits)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.prefetch_size, method.prefetch_count, method.consume_rate, bits = _read_idsIHIB(payload)
            method.global_ = bits & 1 != 0
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 15:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class StreamQosOk(Method):
    """stream.qos-ok (80, 11), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0050000B
    NAME: ClassVar[str] = "stream.qos-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x50\x00\x0b"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class StreamConsume(Method):
    """stream.consume (80, 20), received by the server; answered by stream.consume-ok."""

    __slots__ = ("consumer_tag", "exclusive", "filter", "no_local", "no_wait", "queue", "ticket")

    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00500014
    NAME: ClassVar[str] = "stream.consume"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("stream.consume-ok",)
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("queue", "shortstr"),
        ("consumer_tag", "shortstr"),
        ("no_local", "bit"),
        ("exclusive", "bit"),
        ("no_wait", "bit"),
        ("filter", "table"),
    )

    ticket: int
    queue: str
    consumer_tag: str
    no_local: bool
    exclusive: bool
    no_wait: bool
    filter: dict[str, FieldValue]

    def __init__(
        self,
        ticket: int = 0,
        queue: str = "",
        consumer_tag: str = "",
        no_local: bool = False,
        exclusive: bool = False,
        no_wait: bool = False,
        filter: dict[str, FieldValue] | None = None,
    ) -> None:
        self.ticket = ticket
        self.queue = queue
        self.consumer_tag = consumer_tag
        self.no_local = no_local
        self.exclusive = exclusive
        self.no_wait = no_wait
        self.filter = {} if filter is None else filter

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            consumer_tag = self.consumer_tag.encode("utf-8", "surrogateescape")
            bits = (1 if self.no_local else 0) | (2 if self.exclusive else 0) | (4 if self.no_wait else 0)
            return b"".join(
                (
                    _pack_HHHB(80, 20, self.ticket, len(queue)),
                    queue,
                    OCTET[len(consumer_tag)],
                    consumer_tag,
                    OCTET[bits],
                    encode_table(self.filter),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.consumer_tag = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.no_local = bits & 1 != 0
            method.exclusive = bits & 2 != 0
            method.no_wait = bits & 4 != 0
            method.filter, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class StreamConsumeOk(Method):
    """stream.consume-ok (80, 21), received by the client."""

    __slots__ = ("consumer_tag",)

    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00500015
    NAME: ClassVar[str] = "stream.consume-ok"
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
            return b"".join((_pack_HHB(80, 21, len(consumer_tag)), consumer_tag))
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
class StreamCancel(Method):
    """stream.cancel (80, 30), received by the server; answered by stream.cancel-ok."""

    __slots__ = ("consumer_tag", "no_wait")

    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0050001E
    NAME: ClassVar[str] = "stream.cancel"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("stream.cancel-ok",)
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
            return b"".join((_pack_HHB(80, 30, len(consumer_tag)), consumer_tag, OCTET[bits]))
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
class StreamCancelOk(Method):
    """stream.cancel-ok (80, 31), received by the client."""

    __slots__ = ("consumer_tag",)

    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 31
    INDEX: ClassVar[int] = 0x0050001F
    NAME: ClassVar[str] = "stream.cancel-ok"
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
            return b"".join((_pack_HHB(80, 31, len(consumer_tag)), consumer_tag))
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
class StreamPublish(Method):
    """stream.publish (80, 40), received by the server; a content follows."""

    __slots__ = ("exchange", "immediate", "mandatory", "routing_key", "ticket")

    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00500028
    NAME: ClassVar[str] = "stream.publish"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = True
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("mandatory", "bit"),
        ("immediate", "bit"),
    )

    ticket: int
    exchange: str
    routing_key: str
    mandatory: bool
    immediate: bool

    def __init__(
        self,
        ticket: int = 0,
        exchange: str = "",
        routing_key: str = "",
        mandatory: bool = False,
        immediate: bool = False,
    ) -> None:
        self.ticket = ticket
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
                    _pack_HHHB(80, 40, self.ticket, len(exchange)),
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
            method.ticket, size = _read_idsHB(payload)
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
class StreamReturn(Method):
    """stream.return (80, 50), received by the client; a content follows."""

    __slots__ = ("exchange", "reply_code", "reply_text", "routing_key")

    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00500032
    NAME: ClassVar[str] = "stream.return"
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
                    _pack_HHHB(80, 50, self.reply_code, len(reply_text)),
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
class StreamDeliver(Method):
    """stream.deliver (80, 60), received by the client; a content follows."""

    __slots__ = ("consumer_tag", "delivery_tag", "exchange", "queue")

    CLASS_ID: ClassVar[int] = 80
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x0050003C
    NAME: ClassVar[str] = "stream.deliver"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = True
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (
        ("consumer_tag", "shortstr"),
        ("delivery_tag", "longlong"),
        ("exchange", "shortstr"),
        ("queue", "shortstr"),
    )

    consumer_tag: str
    delivery_tag: int
    exchange: str
    queue: str

    def __init__(
        self, consumer_tag: str = "", delivery_tag: int = 0, exchange: str = "", queue: str = ""
    ) -> None:
        self.consumer_tag = consumer_tag
        self.delivery_tag = delivery_tag
        self.exchange = exchange
        self.queue = queue

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            consumer_tag = self.consumer_tag.encode("utf-8", "surrogateescape")
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            queue = self.queue.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHB(80, 60, len(consumer_tag)),
                    consumer_tag,
                    _pack_QB(self.delivery_tag, len(exchange)),
                    exchange,
                    OCTET[len(queue)],
                    queue,
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
            method.delivery_tag, size = _read_QB(payload, end)
            start = end + 9
            end = start + size
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


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


@dataclass(init=False, repr=False, eq=False)
class DtxSelect(Method):
    """dtx.select (100, 10), received by the server; answered by dtx.select-ok."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 100
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0064000A
    NAME: ClassVar[str] = "dtx.select"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("dtx.select-ok",)
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x64\x00\x0a"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class DtxSelectOk(Method):
    """dtx.select-ok (100, 11), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 100
    METHOD_ID: ClassVar[int] = 11
    INDEX: ClassVar[int] = 0x0064000B
    NAME: ClassVar[str] = "dtx.select-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x64\x00\x0b"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class DtxStart(Method):
    """dtx.start (100, 20), received by the server; answered by dtx.start-ok."""

    __slots__ = ("dtx_identifier",)

    CLASS_ID: ClassVar[int] = 100
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00640014
    NAME: ClassVar[str] = "dtx.start"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("dtx.start-ok",)
    LAYOUT: ClassVar[Layout] = (("dtx_identifier", "shortstr"),)

    dtx_identifier: str

    def __init__(self, dtx_identifier: str = "") -> None:
        self.dtx_identifier = dtx_identifier

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            dtx_identifier = self.dtx_identifier.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(100, 20, len(dtx_identifier)), dtx_identifier))
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
            method.dtx_identifier = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class DtxStartOk(Method):
    """dtx.start-ok (100, 21), received by the client."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 100
    METHOD_ID: ClassVar[int] = 21
    INDEX: ClassVar[int] = 0x00640015
    NAME: ClassVar[str] = "dtx.start-ok"
    SYNCHRONOUS: ClassVar[bool] = True
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x64\x00\x15"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class TunnelRequest(Method):
    """tunnel.request (110, 10), received by the server; a content follows."""

    __slots__ = ("meta_data",)

    CLASS_ID: ClassVar[int] = 110
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x006E000A
    NAME: ClassVar[str] = "tunnel.request"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = True
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("meta_data", "table"),)

    meta_data: dict[str, FieldValue]

    def __init__(self, meta_data: dict[str, FieldValue] | None = None) -> None:
        self.meta_data = {} if meta_data is None else meta_data

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join((_pack_HH(110, 10), encode_table(self.meta_data)))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.meta_data, end = grammar.decode(payload, 4, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageTransfer(Method):
    """message.transfer (120, 10), received by the client and the server.

    Answered by message.ok or message.reject; work in progress, say the documents.
    """

    __slots__ = (
        "app_id",
        "application_headers",
        "body",
        "content_encoding",
        "content_type",
        "correlation_id",
        "delivery_mode",
        "destination",
        "exchange",
        "expiration",
        "immediate",
        "message_id",
        "priority",
        "redelivered",
        "reply_to",
        "routing_key",
        "security_token",
        "ticket",
        "timestamp",
        "transaction_id",
        "ttl",
        "user_id",
    )

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 10
    INDEX: ClassVar[int] = 0x0078000A
    NAME: ClassVar[str] = "message.transfer"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok", "message.reject")
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("destination", "shortstr"),
        ("redelivered", "bit"),
        ("immediate", "bit"),
        ("ttl", "longlong"),
        ("priority", "octet"),
        ("timestamp", "timestamp"),
        ("delivery_mode", "octet"),
        ("expiration", "timestamp"),
        ("exchange", "shortstr"),
        ("routing_key", "shortstr"),
        ("message_id", "shortstr"),
        ("correlation_id", "shortstr"),
        ("reply_to", "shortstr"),
        ("content_type", "shortstr"),
        ("content_encoding", "shortstr"),
        ("user_id", "shortstr"),
        ("app_id", "shortstr"),
        ("transaction_id", "shortstr"),
        ("security_token", "longstr"),
        ("application_headers", "table"),
        ("body", "content"),
    )

    ticket: int
    destination: str
    redelivered: bool
    immediate: bool
    ttl: int
    priority: int
    timestamp: int
    delivery_mode: int
    expiration: int
    exchange: str
    routing_key: str
    message_id: str
    correlation_id: str
    reply_to: str
    content_type: str
    content_encoding: str
    user_id: str
    app_id: str
    transaction_id: str
    security_token: bytes
    application_headers: dict[str, FieldValue]
    body: Body

    def __init__(
        self,
        ticket: int = 0,
        destination: str = "",
        redelivered: bool = False,
        immediate: bool = False,
        ttl: int = 0,
        priority: int = 0,
        timestamp: int = 0,
        delivery_mode: int = 0,
        expiration: int = 0,
        exchange: str = "",
        routing_key: str = "",
        message_id: str = "",
        correlation_id: str = "",
        reply_to: str = "",
        content_type: str = "",
        content_encoding: str = "",
        user_id: str = "",
        app_id: str = "",
        transaction_id: str = "",
        security_token: bytes = b"",
        application_headers: dict[str, FieldValue] | None = None,
        body: Body = NO_BODY,
    ) -> None:
        self.ticket = ticket
        self.destination = destination
        self.redelivered = redelivered
        self.immediate = immediate
        self.ttl = ttl
        self.priority = priority
        self.timestamp = timestamp
        self.delivery_mode = delivery_mode
        self.expiration = expiration
        self.exchange = exchange
        self.routing_key = routing_key
        self.message_id = message_id
        self.correlation_id = correlation_id
        self.reply_to = reply_to
        self.content_type = content_type
        self.content_encoding = content_encoding
        self.user_id = user_id
        self.app_id = app_id
        self.transaction_id = transaction_id
        self.security_token = security_token
        self.application_headers = {} if application_headers is None else application_headers
        self.body = body

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            destination = self.destination.encode("utf-8", "surrogateescape")
            bits = (1 if self.redelivered else 0) | (2 if self.immediate else 0)
            exchange = self.exchange.encode("utf-8", "surrogateescape")
            routing_key = self.routing_key.encode("utf-8", "surrogateescape")
            message_id = self.message_id.encode("utf-8", "surrogateescape")
            correlation_id = self.correlation_id.encode("utf-8", "surrogateescape")
            reply_to = self.reply_to.encode("utf-8", "surrogateescape")
            content_type = self.content_type.encode("utf-8", "surrogateescape")
            content_encoding = self.content_encoding.encode("utf-8", "surrogateescape")
            user_id = self.user_id.encode("utf-8", "surrogateescape")
            app_id = self.app_id.encode("utf-8", "surrogateescape")
            transaction_id = self.transaction_id.encode("utf-8", "surrogateescape")
            return b"".join(
                (
                    _pack_HHHB(120, 10, self.ticket, len(destination)),
                    destination,
                    _pack_BQBQBQB(
                        bits,
                        self.ttl,
                        self.priority,
                        self.timestamp,
                        self.delivery_mode,
                        self.expiration,
                        len(exchange),
                    ),
                    exchange,
                    OCTET[len(routing_key)],
                    routing_key,
                    OCTET[len(message_id)],
                    message_id,
                    OCTET[len(correlation_id)],
                    correlation_id,
                    OCTET[len(reply_to)],
                    reply_to,
                    OCTET[len(content_type)],
                    content_type,
                    OCTET[len(content_encoding)],
                    content_encoding,
                    OCTET[len(user_id)],
                    user_id,
                    OCTET[len(app_id)],
                    app_id,
                    OCTET[len(transaction_id)],
                    transaction_id,
                    _pack_I(len(self.security_token)),
                    self.security_token,
                    encode_table(self.application_headers),
                    encode_body(self.body),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.destination = payload[start:end].decode("utf-8", "surrogateescape")
            (
                bits,
                method.ttl,
                method.priority,
                method.timestamp,
                method.delivery_mode,
                method.expiration,
                size,
            ) = _read_BQBQBQB(payload, end)
            start = end + 28
            end = start + size
            method.redelivered = bits & 1 != 0
            method.immediate = bits & 2 != 0
            method.exchange = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.routing_key = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.message_id = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.correlation_id = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.reply_to = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.content_type = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.content_encoding = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.user_id = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.app_id = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.transaction_id = payload[start:end].decode("utf-8", "surrogateescape")
            (size,) = _read_I(payload, end)
            start = end + 4
            end = start + size
            method.security_token = payload[start:end]
            method.application_headers, end = grammar.decode(payload, end, len(payload))
            method.body, end = decode_body(payload, end)
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageConsume(Method):
    """message.consume (120, 20), received by the server.

    Answered by message.ok; work in progress, say the documents.
    """

    __slots__ = ("destination", "exclusive", "filter", "no_ack", "no_local", "queue", "ticket")

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 20
    INDEX: ClassVar[int] = 0x00780014
    NAME: ClassVar[str] = "message.consume"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok",)
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("queue", "shortstr"),
        ("destination", "shortstr"),
        ("no_local", "bit"),
        ("no_ack", "bit"),
        ("exclusive", "bit"),
        ("filter", "table"),
    )

    ticket: int
    queue: str
    destination: str
    no_local: bool
    no_ack: bool
    exclusive: bool
    filter: dict[str, FieldValue]

    def __init__(
        self,
        ticket: int = 0,
        queue: str = "",
        destination: str = "",
        no_local: bool = False,
        no_ack: bool = False,
        exclusive: bool = False,
        filter: dict[str, FieldValue] | None = None,
    ) -> None:
        self.ticket = ticket
        self.queue = queue
        self.destination = destination
        self.no_local = no_local
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.filter = {} if filter is None else filter

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            destination = self.destination.encode("utf-8", "surrogateescape")
            bits = (1 if self.no_local else 0) | (2 if self.no_ack else 0) | (4 if self.exclusive else 0)
            return b"".join(
                (
                    _pack_HHHB(120, 20, self.ticket, len(queue)),
                    queue,
                    OCTET[len(destination)],
                    destination,
                    OCTET[bits],
                    encode_table(self.filter),
                )
            )
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.ticket, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.destination = payload[start:end].decode("utf-8", "surrogateescape")
            bits = payload[end]
            end += 1
            method.no_local = bits & 1 != 0
            method.no_ack = bits & 2 != 0
            method.exclusive = bits & 4 != 0
            method.filter, end = grammar.decode(payload, end, len(payload))
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageCancel(Method):
    """message.cancel (120, 30), received by the server.

    Answered by message.ok; work in progress, say the documents.
    """

    __slots__ = ("destination",)

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 30
    INDEX: ClassVar[int] = 0x0078001E
    NAME: ClassVar[str] = "message.cancel"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok",)
    LAYOUT: ClassVar[Layout] = (("destination", "shortstr"),)

    destination: str

    def __init__(self, destination: str = "") -> None:
        self.destination = destination

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            destination = self.destination.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHB(120, 30, len(destination)), destination))
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
            method.destination = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageGet(Method):
    """message.get (120, 40), received by the server.

    Answered by message.ok or message.empty; work in progress, say the documents.
    """

    __slots__ = ("destination", "no_ack", "queue", "ticket")

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 40
    INDEX: ClassVar[int] = 0x00780028
    NAME: ClassVar[str] = "message.get"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok", "message.empty")
    LAYOUT: ClassVar[Layout] = (
        ("ticket", "short"),
        ("queue", "shortstr"),
        ("destination", "shortstr"),
        ("no_ack", "bit"),
    )

    ticket: int
    queue: str
    destination: str
    no_ack: bool

    def __init__(self, ticket: int = 0, queue: str = "", destination: str = "", no_ack: bool = False) -> None:
        self.ticket = ticket
        self.queue = queue
        self.destination = destination
        self.no_ack = no_ack

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            queue = self.queue.encode("utf-8", "surrogateescape")
            destination = self.destination.encode("utf-8", "surrogateescape")
            bits = 1 if self.no_ack else 0
            return b"".join(
                (
                    _pack_HHHB(120, 40, self.ticket, len(queue)),
                    queue,
                    OCTET[len(destination)],
                    destination,
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
            method.ticket, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.queue = payload[start:end].decode("utf-8", "surrogateescape")
            start = end + 1
            end = start + payload[end]
            method.destination = payload[start:end].decode("utf-8", "surrogateescape")
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
class MessageRecover(Method):
    """message.recover (120, 50), received by the server.

    Answered by message.ok; work in progress, say the documents.
    """

    __slots__ = ("requeue",)

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 50
    INDEX: ClassVar[int] = 0x00780032
    NAME: ClassVar[str] = "message.recover"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok",)
    LAYOUT: ClassVar[Layout] = (("requeue", "bit"),)

    requeue: bool

    def __init__(self, requeue: bool = False) -> None:
        self.requeue = requeue

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            bits = 1 if self.requeue else 0
            return _pack_HHB(120, 50, bits)
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
class MessageOpen(Method):
    """message.open (120, 60), received by the client and the server.

    Answered by message.ok; work in progress, say the documents.
    """

    __slots__ = ("reference",)

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 60
    INDEX: ClassVar[int] = 0x0078003C
    NAME: ClassVar[str] = "message.open"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok",)
    LAYOUT: ClassVar[Layout] = (("reference", "longstr"),)

    reference: bytes

    def __init__(self, reference: bytes = b"") -> None:
        self.reference = reference

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join((_pack_HHI(120, 60, len(self.reference)), self.reference))
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
            method.reference = payload[start:end]
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageClose(Method):
    """message.close (120, 70), received by the client and the server.

    Answered by message.ok; work in progress, say the documents.
    """

    __slots__ = ("reference",)

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 70
    INDEX: ClassVar[int] = 0x00780046
    NAME: ClassVar[str] = "message.close"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok",)
    LAYOUT: ClassVar[Layout] = (("reference", "longstr"),)

    reference: bytes

    def __init__(self, reference: bytes = b"") -> None:
        self.reference = reference

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join((_pack_HHI(120, 70, len(self.reference)), self.reference))
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
            method.reference = payload[start:end]
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageAppend(Method):
    """message.append (120, 80), received by the client and the server.

    Answered by message.ok; work in progress, say the documents.
    """

    __slots__ = ("octets", "reference")

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 80
    INDEX: ClassVar[int] = 0x00780050
    NAME: ClassVar[str] = "message.append"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok",)
    LAYOUT: ClassVar[Layout] = (("reference", "longstr"), ("octets", "longstr"))

    reference: bytes
    octets: bytes

    def __init__(self, reference: bytes = b"", octets: bytes = b"") -> None:
        self.reference = reference
        self.octets = octets

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return b"".join(
                (
                    _pack_HHI(120, 80, len(self.reference)),
                    self.reference,
                    _pack_I(len(self.octets)),
                    self.octets,
                )
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
            method.reference = payload[start:end]
            (size,) = _read_I(payload, end)
            start = end + 4
            end = start + size
            method.octets = payload[start:end]
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageCheckpoint(Method):
    """message.checkpoint (120, 90), received by the client and the server.

    Answered by message.ok; work in progress, say the documents.
    """

    __slots__ = ("identifier", "reference")

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 90
    INDEX: ClassVar[int] = 0x0078005A
    NAME: ClassVar[str] = "message.checkpoint"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok",)
    LAYOUT: ClassVar[Layout] = (("reference", "longstr"), ("identifier", "shortstr"))

    reference: bytes
    identifier: str

    def __init__(self, reference: bytes = b"", identifier: str = "") -> None:
        self.reference = reference
        self.identifier = identifier

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            identifier = self.identifier.encode("utf-8", "surrogateescape")
            return b"".join(
                (_pack_HHI(120, 90, len(self.reference)), self.reference, OCTET[len(identifier)], identifier)
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
            method.reference = payload[start:end]
            start = end + 1
            end = start + payload[end]
            method.identifier = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageResume(Method):
    """message.resume (120, 100), received by the client and the server.

    Answered by message.offset; work in progress, say the documents.
    """

    __slots__ = ("identifier", "reference")

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 100
    INDEX: ClassVar[int] = 0x00780064
    NAME: ClassVar[str] = "message.resume"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.offset",)
    LAYOUT: ClassVar[Layout] = (("reference", "longstr"), ("identifier", "shortstr"))

    reference: bytes
    identifier: str

    def __init__(self, reference: bytes = b"", identifier: str = "") -> None:
        self.reference = reference
        self.identifier = identifier

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            identifier = self.identifier.encode("utf-8", "surrogateescape")
            return b"".join(
                (_pack_HHI(120, 100, len(self.reference)), self.reference, OCTET[len(identifier)], identifier)
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
            method.reference = payload[start:end]
            start = end + 1
            end = start + payload[end]
            method.identifier = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageQos(Method):
    """message.qos (120, 110), received by the server.

    Answered by message.ok; work in progress, say the documents.
    """

    __slots__ = ("global_", "prefetch_count", "prefetch_size")

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 110
    INDEX: ClassVar[int] = 0x0078006E
    NAME: ClassVar[str] = "message.qos"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("server",)
    RESPONSES: ClassVar[tuple[str, ...]] = ("message.ok",)
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
            return _pack_HHIHB(120, 110, self.prefetch_size, self.prefetch_count, bits)
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
class MessageOk(Method):
    """message.ok (120, 500), received by the client and the server; work in progress, say the documents."""

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 500
    INDEX: ClassVar[int] = 0x007801F4
    NAME: ClassVar[str] = "message.ok"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x78\x01\xf4"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class MessageEmpty(Method):
    """message.empty (120, 510), received by the client and the server.

    Work in progress, say the documents.
    """

    __slots__ = ()

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 510
    INDEX: ClassVar[int] = 0x007801FE
    NAME: ClassVar[str] = "message.empty"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = ()

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        return b"\x00\x78\x01\xfe"

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        if len(payload) != 4:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return cls()


@dataclass(init=False, repr=False, eq=False)
class MessageReject(Method):
    """message.reject (120, 520), received by the client and the server.

    Work in progress, say the documents.
    """

    __slots__ = ("code", "text")

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 520
    INDEX: ClassVar[int] = 0x00780208
    NAME: ClassVar[str] = "message.reject"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("code", "short"), ("text", "shortstr"))

    code: int
    text: str

    def __init__(self, code: int = 0, text: str = "") -> None:
        self.code = code
        self.text = text

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            text = self.text.encode("utf-8", "surrogateescape")
            return b"".join((_pack_HHHB(120, 520, self.code, len(text)), text))
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            method.code, size = _read_idsHB(payload)
            start = 7
            end = start + size
            method.text = payload[start:end].decode("utf-8", "surrogateescape")
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if end != len(payload):
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        if grammar.forbids_nul:
            forbid_nul(method)
        return method


@dataclass(init=False, repr=False, eq=False)
class MessageOffset(Method):
    """message.offset (120, 530), received by the client and the server.

    Work in progress, say the documents.
    """

    __slots__ = ("value",)

    CLASS_ID: ClassVar[int] = 120
    METHOD_ID: ClassVar[int] = 530
    INDEX: ClassVar[int] = 0x00780212
    NAME: ClassVar[str] = "message.offset"
    SYNCHRONOUS: ClassVar[bool] = False
    HAS_CONTENT: ClassVar[bool] = False
    RECEIVED_BY: ClassVar[tuple[str, ...]] = ("client", "server")
    RESPONSES: ClassVar[tuple[str, ...]] = ()
    LAYOUT: ClassVar[Layout] = (("value", "longlong"),)

    value: int

    def __init__(self, value: int = 0) -> None:
        self.value = value

    def encode(self) -> bytes:
        """The payload, ids first; see `Method.encode`."""
        try:
            return _pack_HHQ(120, 530, self.value)
        except UNWRITABLE:
            raise unwritable(self) from None

    @classmethod
    def decode(cls, payload: bytes, grammar: Grammar) -> Self:
        """Read a whole payload; see `Method.decode`."""
        method = new(cls)
        try:
            (method.value,) = _read_idsQ(payload)
        except UNREADABLE:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar) from None
        if len(payload) != 12:
            raise unreadable(cls, cls.LAYOUT, payload, 4, grammar)
        return method


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
    ConnectionRedirect.INDEX: ConnectionRedirect,
    ConnectionClose.INDEX: ConnectionClose,
    ConnectionCloseOk.INDEX: ConnectionCloseOk,
    ChannelOpen.INDEX: ChannelOpen,
    ChannelOpenOk.INDEX: ChannelOpenOk,
    ChannelFlow.INDEX: ChannelFlow,
    ChannelFlowOk.INDEX: ChannelFlowOk,
    ChannelClose.INDEX: ChannelClose,
    ChannelCloseOk.INDEX: ChannelCloseOk,
    ChannelResume.INDEX: ChannelResume,
    ChannelPing.INDEX: ChannelPing,
    ChannelPong.INDEX: ChannelPong,
    ChannelOk.INDEX: ChannelOk,
    AccessRequest.INDEX: AccessRequest,
    AccessRequestOk.INDEX: AccessRequestOk,
    ExchangeDeclare.INDEX: ExchangeDeclare,
    ExchangeDeclareOk.INDEX: ExchangeDeclareOk,
    ExchangeDelete.INDEX: ExchangeDelete,
    ExchangeDeleteOk.INDEX: ExchangeDeleteOk,
    ExchangeBound.INDEX: ExchangeBound,
    ExchangeBoundOk.INDEX: ExchangeBoundOk,
    QueueDeclare.INDEX: QueueDeclare,
    QueueDeclareOk.INDEX: QueueDeclareOk,
    QueueBind.INDEX: QueueBind,
    QueueBindOk.INDEX: QueueBindOk,
    QueueUnbind.INDEX: QueueUnbind,
    QueueUnbindOk.INDEX: QueueUnbindOk,
    QueuePurge.INDEX: QueuePurge,
    QueuePurgeOk.INDEX: QueuePurgeOk,
    QueueDelete.INDEX: QueueDelete,
    QueueDeleteOk.INDEX: QueueDeleteOk,
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
    BasicRecover.INDEX: BasicRecover,
    BasicRecoverSync.INDEX: BasicRecoverSync,
    BasicRecoverSyncOk.INDEX: BasicRecoverSyncOk,
    FileQos.INDEX: FileQos,
    FileQosOk.INDEX: FileQosOk,
    FileConsume.INDEX: FileConsume,
    FileConsumeOk.INDEX: FileConsumeOk,
    FileCancel.INDEX: FileCancel,
    FileCancelOk.INDEX: FileCancelOk,
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
    StreamCancelOk.INDEX: StreamCancelOk,
    StreamPublish.INDEX: StreamPublish,
    StreamReturn.INDEX: StreamReturn,
    StreamDeliver.INDEX: StreamDeliver,
    TxSelect.INDEX: TxSelect,
    TxSelectOk.INDEX: TxSelectOk,
    TxCommit.INDEX: TxCommit,
    TxCommitOk.INDEX: TxCommitOk,
    TxRollback.INDEX: TxRollback,
    TxRollbackOk.INDEX: TxRollbackOk,
    DtxSelect.INDEX: DtxSelect,
    DtxSelectOk.INDEX: DtxSelectOk,
    DtxStart.INDEX: DtxStart,
    DtxStartOk.INDEX: DtxStartOk,
    TunnelRequest.INDEX: TunnelRequest,
    MessageTransfer.INDEX: MessageTransfer,
    MessageConsume.INDEX: MessageConsume,
    MessageCancel.INDEX: MessageCancel,
    MessageGet.INDEX: MessageGet,
    MessageRecover.INDEX: MessageRecover,
    MessageOpen.INDEX: MessageOpen,
    MessageClose.INDEX: MessageClose,
    MessageAppend.INDEX: MessageAppend,
    MessageCheckpoint.INDEX: MessageCheckpoint,
    MessageResume.INDEX: MessageResume,
    MessageQos.INDEX: MessageQos,
    MessageOk.INDEX: MessageOk,
    MessageEmpty.INDEX: MessageEmpty,
    MessageReject.INDEX: MessageReject,
    MessageOffset.INDEX: MessageOffset,
}
