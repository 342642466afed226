"""The header segment of a content as the properties that the model knows.

Structs are read at once and strictly; the model's properties are converted when they are asked for. Structs
that are not changed keep their bytes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias

from fakeamqp.protocols.amqp_0_10.codec.constants import DeliveryMode
from fakeamqp.protocols.amqp_0_10.codec.errors import SegmentError
from fakeamqp.protocols.amqp_0_10.codec.packed import Struct, encode_header, header_entries
from fakeamqp.protocols.amqp_0_10.codec.structs import (
    DeliveryProperties,
    FileProperties,
    FragmentProperties,
    MessageProperties,
    StreamProperties,
    UnknownStruct,
)
from fakeamqp.protocols.amqp_0_10.codec.types import Map, encode_map, map_entries, read_map, splice_map
from fakeamqp.protocols.amqp_0_10.property_mapping import (
    FILE,
    STREAM,
    TRANSFER,
    PropertyPlace010,
    application_headers,
    carried,
    fits_short_string,
    plain_headers,
    tag_of,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = [
    "COMMON",
    "ENCODING",
    "FILE_ENCODING",
    "STREAM_ENCODING",
    "ContentProperties",
    "FileContentProperties",
]
__all__ += ["TransferProperties"]

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
        return None if found is None else tag_of(found[1][1 + found[1][0]])

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
        """The value of a property that a header carries."""
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
        """A copy with other values for some properties; None removes one.

        Raises:
            SegmentError: there is no property of that name.
        """
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
                    changed._set_map(application_headers(value or {}, _untagged, kept))
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
        struct = getattr(self, place.role)
        if struct is None and written is None:
            return False
        if struct is None:
            struct = next(each for each, role in self.ROLES.items() if role == place.role)()
        else:
            struct = copy.copy(struct)
        setattr(struct, place.field, written)
        setattr(self, place.role, struct)
        if place.role != "delivery":
            self._octets = None
        return written is not None

    def _set_map(self, fields: Map | None) -> None:
        role, field = self.HEADERS
        struct = getattr(self, role)
        if struct is None:
            struct = next(each for each, name in self.ROLES.items() if name == role)()
        else:
            struct = copy.copy(struct)
        setattr(struct, field, fields)
        setattr(self, role, struct)
        self._octets = self._headers = None

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


def _untagged(name: str) -> None:
    """Headers that were not received have no tags."""


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
        """Read a header segment; None stands for an absent one.

        Raises:
            SegmentError: it cannot be read.
            IllegalValue: a value is outside of its domain, or a struct comes twice.
        """
        return cls._read(octets) if octets else cls._empty()

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
    def _empty(cls) -> Self:
        view = cls()
        view._octets = b""
        return view

    @classmethod
    def of(cls, properties: OtherProperties, content_length: int | None = None) -> Self:
        """The model's properties as 0-10 has them; a value that it cannot carry becomes the nearest one.

        `content_length` is the size of the body, where message-properties shall have it.
        """
        if isinstance(properties, cls):
            return properties
        view = cls._made_of(properties)
        if content_length is not None:
            view.message = view.message or MessageProperties()
            view.message.content_length = content_length
        return view

    @property
    def message_bytes(self) -> bytes:
        """The bytes of message-properties, as received unless changed; empty where there are none."""
        for entry, octets in header_entries(self.rest_bytes):
            if isinstance(entry, MessageProperties):
                return octets
        return b""

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
        """Read a header segment; `encoding` is `FILE_ENCODING` or `STREAM_ENCODING`.

        Raises:
            SegmentError: it cannot be read, or does not hold the properties of the class.
        """
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
        """The whole header segment."""
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
