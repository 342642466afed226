"""The header segment of a content as the properties that the model knows, and back: a table for each.

The model names properties as 0-9-x does. Each has a `PropertyPlace010` in the structs of 0-10, or else a
header that carries it. Conversion never fails: a value that cannot be carried becomes the nearest one that
can. docs/protocols.md shows both tables.

Structs are read at once and strictly; the model's properties are converted when they are asked for. Structs
that are not changed keep their bytes.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias

from fakeamqp.protocols.amqp_0_10.codec.constants import DeliveryMode
from fakeamqp.protocols.amqp_0_10.codec.errors import SegmentError
from fakeamqp.protocols.amqp_0_10.codec.structs import (
    DeliveryProperties,
    FileProperties,
    FragmentProperties,
    MessageProperties,
    ReplyTo,
    StreamProperties,
    Struct,
    UnknownStruct,
    encode_header,
    header_entries,
)
from fakeamqp.protocols.amqp_0_10.codec.types import (
    CODES,
    MAX_DEPTH,
    Map,
    code_of,
    encode_map,
    encode_value,
    map_entries,
    read_map,
    splice_map,
)
from fakeamqp.protocols.base.codec import (
    EXPIRATION_HEADER,
    MESSAGE_ID_HEADER,
    TYPE_HEADER,
    WireError,
    encoded,
    fits_short_string,
    ttl,
)
from fakeamqp.timestamps import Timestamp

if TYPE_CHECKING:
    from uuid import UUID

    from typing_extensions import Self


_LONGEST = 255
_LONGEST_STR16 = 0xFFFF
_DIRECT_REPLY = "amq.rabbitmq.reply-to."

# --- properties --------------------------------------------------------------------------------------------


class PropertyPlace010(NamedTuple):
    """Where 0-10 has one of the model's properties, and how its values change."""

    role: str
    """Which struct: "delivery" (delivery-properties), "message" (message-properties), "content" (file- or
    stream-properties); "" for none."""
    field: str
    """Its field in that struct; "" for none."""
    says: str
    """A note about the values, for docs/protocols.md."""
    read: Callable[[Any], Any] = lambda value: value
    """From 0-10; None where the model cannot carry it."""
    write: Callable[[Any], Any] = lambda value: value
    """To 0-10; None where the field cannot carry it."""
    header: str = ""
    """The header that carries it where the field cannot; "" for none."""


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def _short_text(octets: bytes) -> str:
    return _text(octets[:_LONGEST])


def _uuid(text: str) -> UUID | None:
    if len(text) != 36 or text[8] != "-":
        return None
    from uuid import UUID

    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text else None


def _seconds(timestamp: int) -> int | None:
    return int(timestamp) if 0 <= timestamp < 1 << 64 else None


def _cut(text: str) -> str:
    octets = encoded(text)
    return text if len(octets) <= _LONGEST else _text(octets[:_LONGEST])


def reply_text(address: ReplyTo) -> str:
    """The text of an address: "routing-key" or "exchange/routing-key"; see `reply_to`."""
    key = address.routing_key or ""
    if address.exchange:
        return f"{_escaped(address.exchange)}/{key}"
    return key if _address(key) is None else "/" + key


def reply_to(text: str) -> ReplyTo:
    """The address of a text: the exchange stands before the first slash; without one it is the default one.

    A slash in the name of an exchange is %2F, and a % before 2F or 25 is %25. A key of the default exchange
    that would read as an address has a slash in front. Any other text is a routing key, and so is a name of
    direct reply-to; `reply_text` gives every text back unchanged.
    """
    return _address(text) or ReplyTo(routing_key=text)


def _address(text: str) -> ReplyTo | None:
    exchange, slash, key = text.lstrip("/").partition("/")
    if not slash or text.startswith(_DIRECT_REPLY):
        return None
    name = exchange.replace("%2F", "/").replace("%25", "%") if "%" in exchange else exchange
    if _escaped(name) != exchange:
        return None
    return ReplyTo(routing_key=text[1:]) if text.startswith("/") else ReplyTo(name, key)


def _escaped(exchange: str) -> str:
    if "%" in exchange:
        exchange = exchange.replace("%25", "%2525").replace("%2F", "%252F")
    return exchange.replace("/", "%2F")


_TEXT = "the same text"
_OCTETS = "the same bytes; from 0-10 the first 255"
_TIME = "seconds since 1970"


def _in_header(header: str) -> PropertyPlace010:
    return PropertyPlace010("", "", "the text in the header", write=lambda _: None, header=header)


#: message-properties and delivery-properties of message.transfer
TRANSFER: Final[Mapping[str, PropertyPlace010]] = {
    "content_type": PropertyPlace010("message", "content_type", _TEXT, write=_cut),
    "content_encoding": PropertyPlace010("message", "content_encoding", _TEXT, write=_cut),
    "delivery_mode": PropertyPlace010(
        "delivery",
        "delivery_mode",
        "2 is persistent, all others become 1",
        write=lambda mode: 2 if mode == 2 else 1,
    ),
    "priority": PropertyPlace010(
        "delivery",
        "priority",
        "to 0-10: a value above 9 becomes 9",
        write=lambda priority: min(max(priority, 0), 9),
    ),
    "correlation_id": PropertyPlace010("message", "correlation_id", _OCTETS, _short_text, encoded),
    "reply_to": PropertyPlace010(
        "message",
        "reply_to",
        "`routing-key` for the default exchange, else `exchange/routing-key`",
        lambda address: _cut(reply_text(address)),
        lambda text: reply_to(_cut(text)),
    ),
    "expiration": PropertyPlace010(
        "delivery",
        "ttl",
        "milliseconds; text that is not a number, in the header",
        str,
        ttl,
        EXPIRATION_HEADER,
    ),
    "message_id": PropertyPlace010(
        "message", "message_id", "a UUID; any other text in the header", str, _uuid, MESSAGE_ID_HEADER
    ),
    "timestamp": PropertyPlace010("delivery", "timestamp", _TIME, write=_seconds),
    "type": _in_header(TYPE_HEADER),
    "user_id": PropertyPlace010("message", "user_id", _OCTETS, _short_text, encoded),
    "app_id": PropertyPlace010("message", "app_id", _OCTETS, _short_text, encoded),
}

_CONTENT = {
    "content_type": PropertyPlace010("content", "content_type", _TEXT, write=_cut),
    "content_encoding": PropertyPlace010("content", "content_encoding", _TEXT, write=_cut),
    "priority": PropertyPlace010("content", "priority", "the same number"),
    "timestamp": PropertyPlace010("content", "timestamp", _TIME, write=_seconds),
    "type": _in_header(TYPE_HEADER),
    "expiration": _in_header(EXPIRATION_HEADER),
    "correlation_id": _in_header("x-amqp-0-9-1.correlation-id"),
    "user_id": _in_header("x-amqp-0-9-1.user-id"),
    "app_id": _in_header("x-amqp-0-9-1.app-id"),
}

#: file-properties
FILE: Final[Mapping[str, PropertyPlace010]] = {
    **_CONTENT,
    "reply_to": PropertyPlace010("content", "reply_to", _TEXT, write=_cut),
    "message_id": PropertyPlace010("content", "message_id", _TEXT, write=_cut),
}
#: stream-properties
STREAM: Final[Mapping[str, PropertyPlace010]] = {
    **_CONTENT,
    "reply_to": _in_header("x-amqp-0-9-1.reply-to"),
    "message_id": _in_header(MESSAGE_ID_HEADER),
}

# --- values of headers -------------------------------------------------------------------------------------

_LONGS = range(-(1 << 63), 1 << 63)
_WIDEST = range(-(1 << 63), 1 << 64)

#: type of 0-10 -> the tag of its values in a field table of 0-9-x
TAGS: Final[Mapping[str, str]] = {
    name: tag
    for tag, names in (
        *(("t", "boolean bit"), ("b", "int8"), ("B", "uint8"), ("s", "int16"), ("u", "uint16")),
        *(("I", "int32"), ("i", "uint32"), ("l", "int64 uint64"), ("f", "float"), ("d", "double")),
        *(("D", "dec32 dec64"), ("T", "datetime"), ("V", "void"), ("F", "map"), ("A", "list array")),
        ("S", "uuid char char-utf32 str8 str8-latin str8-utf16 str16 str16-latin str16-utf16"),
        ("x", " ".join([name for name in CODES if name.lstrip("v").startswith("bin")]) + " struct32"),
    )
    for name in names.split()
}
_TAG_OF_CODE = {CODES[name]: tag for name, tag in TAGS.items()}

#: tag of 0-9-x -> code of 0-10; values of other tags get the code that suits them
CODE_OF_TAG = {
    **{"b": CODES["int8"], "B": CODES["uint8"], "s": CODES["int16"], "U": CODES["int16"]},
    **{"u": CODES["uint16"], "I": CODES["int32"], "i": CODES["uint32"], "f": CODES["float"]},
}


def plain_headers(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Application headers as the model has them: see `plain_value`."""
    return {name: plain_value(value) for name, value in fields.items()}


def plain_value(value: Any) -> Any:
    """A value of 0-10 as the model has it: a uuid or a too large number as text, a struct as bytes."""
    if value is None or isinstance(value, (bool, float, bytes, Timestamp)):
        return value
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, int):
        return value if int(value) in _LONGS else str(value)
    if isinstance(value, Mapping):
        return plain_headers(value)
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, Decimal):
        return value if _fits_decimal(value) else str(value)
    if hasattr(value, "encode"):
        return value.encode()
    return str(value)


def _fits_decimal(value: Decimal) -> bool:
    """Whether its mantissa has 32 bits, signed or not, and it has at most 255 places."""
    _, digits, places = value.as_tuple()
    if not isinstance(places, int) or not -255 <= places <= 0:
        return False
    mantissa = int("".join(map(str, digits)))
    return mantissa <= 1 << 31 if value.is_signed() else mantissa < 1 << 32


def _sound(text: str) -> str:
    """The text, with the bytes of lone surrogates that stand for none (UTF-16 has such surrogates)."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return _text(text.encode("utf-8", "surrogatepass"))
    return text


def application_headers(
    headers: Mapping[str, Any], tag: Callable[[str], str | None], extra: Mapping[str, str]
) -> Map:
    """The model's headers as a map; `tag` gives their tags, and `extra` headers follow them."""
    entries = []
    for name, value in headers.items():
        if name not in extra:
            entries.append(_entry(name, value, CODE_OF_TAG.get(tag(name) or "")))
    entries += [_entry(name, value, None) for name, value in extra.items()]
    return Map.of_entries(entries)


def _entry(name: str, value: Any, code: int | None) -> tuple[str, Any, int]:
    value = carried(value, 1)
    if code is not None:
        try:
            encode_value(value, code)
        except WireError:
            code = None
    return _cut(str(name)), value, code_of(value) if code is None else code


def carried(value: Any, depth: int = 0) -> Any:
    """A value as a map of 0-10 can carry it; void below the deepest level of nesting."""
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, str):
        value = _sound(value)
        octets = encoded(value)
        return value if len(octets) <= _LONGEST_STR16 else octets
    if isinstance(value, Timestamp):
        return value if 0 <= value < 1 << 64 else str(int(value))
    if isinstance(value, int):
        value = int(value)  # A range searches its numbers one by one for anything but a plain int.
        return value if value in _WIDEST else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (Mapping, list, tuple)):
        if depth >= MAX_DEPTH:
            return None
        if isinstance(value, Mapping):
            return {_cut(str(name)): carried(item, depth + 1) for name, item in value.items()}
        return [carried(item, depth + 1) for item in value]
    try:
        encode_value(value, code_of(value))
    except WireError:
        return str(value)
    return value


# --- header segments ---------------------------------------------------------------------------------------

ENCODING: Final = "0-10 message"
"""Marks messages whose property bytes are the header segment of a transfer without delivery-properties."""
FILE_ENCODING: Final = "0-10 file"
STREAM_ENCODING: Final = "0-10 stream"

AnyStruct: TypeAlias = "Struct | UnknownStruct"


class OtherProperties(Protocol):
    """The model's properties; see `model.messages.message.ReadableProperties`."""

    @property
    def headers(self) -> Mapping[str, Any] | None:
        """Application headers."""

    def header_tag(self, name: str) -> str | None:
        """The tag of a header in a field table of 0-9-x."""


def _of_table(name: str) -> Any:
    return property(lambda self: self._value(name), doc=f"The model's property {name}.")


class View:
    """The structs of a header segment, with the interface of `model.messages.message.ReadableProperties`."""

    __slots__ = ("_headers", "_octets", "others")

    PLACES: ClassVar[Mapping[str, PropertyPlace010]]
    #: class of a struct -> the attribute that holds it
    ROLES: ClassVar[Mapping[type[Struct], str]]
    #: role and field of the headers
    HEADERS: ClassVar[tuple[str, str]]

    others: tuple[AnyStruct, ...]
    """Structs that are no properties of this content."""
    _octets: bytes | None
    """All structs but delivery-properties, as received; None after one of them is changed."""
    _headers: dict[str, Any] | None

    content_type: Any = _of_table("content_type")
    content_encoding: Any = _of_table("content_encoding")
    delivery_mode: Any = _of_table("delivery_mode")
    priority: Any = _of_table("priority")
    correlation_id: Any = _of_table("correlation_id")
    reply_to: Any = _of_table("reply_to")
    expiration: Any = _of_table("expiration")
    message_id: Any = _of_table("message_id")
    timestamp: Any = _of_table("timestamp")
    type: Any = _of_table("type")
    user_id: Any = _of_table("user_id")
    app_id: Any = _of_table("app_id")

    def __init__(self) -> None:
        for role in self.ROLES.values():
            setattr(self, role, None)
        self.others = ()
        self._octets = None
        self._headers = None

    @classmethod
    def _read(cls, octets: bytes) -> Self:
        """Read a header segment. Raises SegmentError, and IllegalValue for a struct that comes twice."""
        view = cls()
        kept = []
        for entry, piece in header_entries(octets):
            role = cls.ROLES.get(entry.__class__)  # type: ignore[arg-type]
            if role is None:
                view.others += (entry,)
            else:
                setattr(view, role, entry)
            if role != "delivery":
                kept.append(piece)
        view._octets = b"".join(kept)
        return view

    @classmethod
    def _made_of(cls, properties: OtherProperties) -> Self:
        """Structs of the same values; a value that they cannot carry becomes the nearest one."""
        view = cls()
        extra: dict[str, str] = {}
        for name, place in cls.PLACES.items():
            value = getattr(properties, name)
            if value is not None and not view._put(place, value) and place.header:
                extra[place.header] = str(value)
        headers = properties.headers
        if headers is not None or extra:
            view._set_map(application_headers(headers or {}, properties.header_tag, extra))
        return view

    # --- reading ------------------------------------------------------------------------------------------

    @property
    def rest_bytes(self) -> bytes:
        """The bytes of all structs but delivery-properties: as received, unless one is changed."""
        octets = self._octets
        if octets is None:
            roles = [role for role in self.ROLES.values() if role != "delivery"]
            structs = [getattr(self, role) for role in roles]
            octets = self._octets = encode_header([*filter(None, structs), *self.others])
        return octets

    @property
    def headers(self) -> dict[str, Any] | None:
        """Application headers as the model has them, without those that carry properties."""
        if self._headers is None:
            fields = self._map()
            if fields is None:
                return None
            hidden = [place.header for place in self.PLACES.values() if self._aside(place) is not None]
            headers = plain_headers(fields)
            for name in hidden:
                del headers[name]
            if hidden and not headers:
                return None
            self._headers = headers
        return self._headers

    def exact_headers(self) -> tuple[tuple[str, Any, bytes], ...] | None:
        """Not known."""
        return None

    def last_headers(self) -> Mapping[str, Any]:
        """A map has no name twice."""
        return self.headers or {}

    def header_tag(self, name: str) -> str | None:
        """The tag that 0-9-x has for the type of a header; None for headers that were not received."""
        fields = self._map()
        if not isinstance(fields, Map) or fields.octets is None:
            return None
        found = map_entries(fields.octets).get(name)
        return None if found is None else _TAG_OF_CODE[found[1][1 + found[1][0]]]

    def _map(self) -> Mapping[str, Any] | None:
        role, field = self.HEADERS
        holder = getattr(self, role)
        fields: Mapping[str, Any] | None = None if holder is None else getattr(holder, field)
        return fields

    def _value(self, name: str) -> Any:
        place = self.PLACES.get(name)
        if place is None:
            return None
        if place.field:
            struct = getattr(self, place.role)
            value = None if struct is None else getattr(struct, place.field)
            if value is not None:
                return place.read(value)
        return self._aside(place)

    def _aside(self, place: PropertyPlace010) -> str | None:
        if not place.header:
            return None
        fields = self._map()
        value = None if fields is None else fields.get(place.header)
        if not isinstance(value, str) or not fits_short_string(value):
            return None
        if place.field:
            struct = getattr(self, place.role)
            if struct is not None and getattr(struct, place.field) is not None:
                return None
        return value

    # --- changing -----------------------------------------------------------------------------------------

    def with_headers(
        self, changes: Mapping[str, Any], remove: Iterable[str] = (), *, ordered: bool = False
    ) -> Self:
        """A copy with some headers set and some removed; the others keep their bytes, and so their types."""
        fields = self._map()
        changed = copy.copy(self)
        if fields is None and not changes:
            return changed
        values = {name: carried(value, 1) for name, value in changes.items()}
        octets = splice_map(encode_map(fields or {}), values, remove, ordered=ordered)
        changed._set_map(read_map(octets, 0)[0])
        return changed

    def replace(self, **changes: Any) -> Self:
        """A copy with other values for some properties, None for none; SegmentError for an unknown name."""
        changed = copy.copy(self)
        extra: dict[str, Any] = {}
        gone: list[str] = []
        for name, value in changes.items():
            if name not in _NAMES:
                raise SegmentError(f"messages have no property {name!r}; there are {', '.join(_NAMES)}")
            if name == "headers":
                carrying = {place.header: self._aside(place) for place in self.PLACES.values()}
                kept = {header: text for header, text in carrying.items() if text is not None}
                if value is None and not kept:
                    changed._set_map(None)
                else:
                    changed._set_map(application_headers(value or {}, lambda _: None, kept))
                continue
            place = self.PLACES.get(name)
            if place is None:
                continue
            if not changed._put(place, value) and place.header and value is not None:
                extra[place.header] = str(value)
            elif place.header in (self._map() or ()):
                gone.append(place.header)
        if extra or gone:
            changed = changed.with_headers(extra, gone)
        if gone and not changed._map() and changes.get("headers", self.headers) is None:
            changed._set_map(None)
        return changed

    def _put(self, place: PropertyPlace010, value: Any) -> bool:
        """Set or clear the field of a property. Returns True where the field carries the value."""
        if not place.field:
            return False
        written = None if value is None else place.write(value)
        if written is not None or getattr(self, place.role) is not None:
            self._set(place.role, place.field, written)
        return written is not None

    def _set_map(self, fields: Map | None) -> None:
        self._set(*self.HEADERS, fields)
        self._headers = None

    def _set(self, role: str, field: str, value: Any) -> None:
        struct = getattr(self, role)
        if struct is None:
            struct = next(each for each, name in self.ROLES.items() if name == role)()
        else:
            struct = copy.copy(struct)
        setattr(struct, field, value)
        setattr(self, role, struct)
        if role != "delivery":
            self._octets = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View) or type(other) is not type(self):
            return NotImplemented
        roles = (*self.ROLES.values(), "others")
        return all(getattr(self, role) == getattr(other, role) for role in roles)

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in _NAMES}
        shown = ", ".join(f"{name}={value!r}" for name, value in values.items() if value is not None)
        return f"{type(self).__name__}({shown})"


COMMON = tuple(TRANSFER)
"""Properties that messages of all protocols have, besides headers."""
_NAMES = ("headers", *COMMON)


class TransferProperties(View):
    """The header segment of message.transfer."""

    __slots__ = ("delivery", "fragment", "message")

    PLACES: ClassVar[Mapping[str, PropertyPlace010]] = TRANSFER
    ROLES: ClassVar[Mapping[type[Struct], str]] = {
        DeliveryProperties: "delivery",
        FragmentProperties: "fragment",
        MessageProperties: "message",
    }
    HEADERS: ClassVar[tuple[str, str]] = ("message", "application_headers")

    delivery: DeliveryProperties | None
    fragment: FragmentProperties | None
    message: MessageProperties | None

    @classmethod
    def decode(cls, octets: bytes | None) -> Self:
        """Read a header segment, None for an absent one; SegmentError or IllegalValue if it is wrong."""
        return cls._read(octets or b"")

    @classmethod
    def of_structs(cls, delivery: DeliveryProperties, message: MessageProperties, octets: bytes) -> Self:
        """The properties of these two structs; `octets` are those of the second."""
        view = cls.__new__(cls)
        view.delivery = delivery
        view.message = message
        view.fragment = None
        view.others = ()
        view._octets = octets
        view._headers = None
        return view

    @classmethod
    def of(cls, properties: OtherProperties) -> Self:
        """The model's properties as 0-10 has them; a value that it cannot carry becomes the nearest one."""
        return properties if isinstance(properties, cls) else cls._made_of(properties)

    def encode(self) -> bytes:
        """The whole header segment, delivery-properties first."""
        return (b"" if self.delivery is None else self.delivery.encode()) + self.rest_bytes


class ContentProperties(View):
    """The header segment of a content of class file or stream."""

    __slots__ = ("content",)
    HEADERS: ClassVar[tuple[str, str]] = ("content", "headers")

    #: properties that the model does not have, but the same class of 0-9
    SAME: ClassVar[tuple[str, ...]] = ()

    content: Any
    """FileProperties or StreamProperties."""

    @staticmethod
    def decode(encoding: str, octets: bytes | None) -> ContentProperties:
        """Read a header segment of `FILE_ENCODING` or `STREAM_ENCODING`; SegmentError if it is wrong."""
        view = _CONTENTS[encoding]._read(octets or b"")
        if view.content is None:
            raise SegmentError(f"the header of a {encoding} content does not hold its properties")
        return view

    @staticmethod
    def of(encoding: str, properties: OtherProperties) -> ContentProperties:
        """The model's properties as contents of this class have them; see `TransferProperties.of`."""
        kind = _CONTENTS[encoding]
        if isinstance(properties, kind):
            return properties
        view = kind._made_of(properties)
        view.content = view.content or next(iter(kind.ROLES))()
        for name in kind.SAME:
            setattr(view.content, name, getattr(properties, name, None))
        return view

    def encode(self) -> bytes:
        return self.rest_bytes


class FileContentProperties(ContentProperties):
    """Properties of a file content. Files are durable: `delivery_mode` is persistent."""

    __slots__ = ()
    PLACES: ClassVar[Mapping[str, PropertyPlace010]] = FILE
    ROLES: ClassVar[Mapping[type[Struct], str]] = {FileProperties: "content"}
    SAME: ClassVar[tuple[str, ...]] = ("filename", "cluster_id")
    delivery_mode: Any = property(lambda self: DeliveryMode.PERSISTENT.value, doc="Always 2.")
    filename: Any = property(lambda self: self.content.filename, doc="The file's name, or None.")
    cluster_id: Any = property(lambda self: self.content.cluster_id, doc="The cluster's id, or None.")


class StreamContentProperties(ContentProperties):
    """Properties of a stream content."""

    __slots__ = ()
    PLACES: ClassVar[Mapping[str, PropertyPlace010]] = STREAM
    ROLES: ClassVar[Mapping[type[Struct], str]] = {StreamProperties: "content"}


_CONTENTS: Final[dict[str, type[ContentProperties]]] = {
    FILE_ENCODING: FileContentProperties,
    STREAM_ENCODING: StreamContentProperties,
}
