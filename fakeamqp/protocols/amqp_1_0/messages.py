"""The sections of a message, and the same as properties that the model knows.

A message keeps its bare part (properties, application-properties, body, footer) as it came, byte by byte.
What the model reads is decoded on demand. A message of another protocol is converted once, by the tables in
`values`; docs/amqp-1-0.md shows them.

The body of the model's message is what consumers of 0-9-1 get: the bytes of the data sections, or else the
encoded sections of the body with the footer, of type "amqp-1.0" (RabbitMQ: measured).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from fakeamqp.protocols.amqp_1_0.addresses import queue_of_address
from fakeamqp.protocols.amqp_1_0.codec.composites import (
    BY_DESCRIPTOR,
    SECTIONS,
    Header,
    Properties,
    composite_of,
)
from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError
from fakeamqp.protocols.amqp_1_0.codec.types import (
    Described,
    Milliseconds,
    Symbol,
    ULong,
    encode_binary,
    encode_value,
    read_value,
    skip_value,
)
from fakeamqp.protocols.amqp_1_0.values import (
    annotation_of,
    application_property_of,
    deaths_of,
    header_of,
    table_of_deaths,
    term,
    text_or_binary,
)
from fakeamqp.protocols.base.codec import ttl as ttl_of

if TYPE_CHECKING:
    from typing_extensions import Self


ENCODING: Final = "1-0"
"""Marks messages whose property bytes are the annotations and the bare part up to the body, as sent."""
ENCODED_BODY: Final = "amqp-1.0"
"""The type of messages of 0-9-1 whose body is encoded sections."""
DATA: Final = b"\0\x53\x75"
_LONGEST_SHORT: Final = 255
_CODES: Final = {f"amqp:{name}:{kind}": code for code, (name, kind) in SECTIONS.items()}
DEATHS: Final = Symbol("x-opt-deaths")
_X_CC: Final = Symbol("x-cc")
BASIC_TYPE: Final = Symbol("x-basic-type")


class UnreadableMessage(DecodeError):
    """A message whose sections cannot be read; the text is an Erlang term, as RabbitMQ shows it."""


class MissingBody(UnreadableMessage):
    """A message without a body."""


def _section(data: bytes, offset: int) -> tuple[int, int]:
    """The code of the section at an offset, and the offset of its value."""
    if data[offset : offset + 2] == b"\0\x53" and offset + 2 < len(data):
        code, start = data[offset + 2], offset + 3
    else:
        try:
            descriptor, start = read_value(data, offset + 1) if data[offset] == 0 else (None, offset)
        except DecodeError:
            descriptor, start = None, offset
        named = _CODES.get(descriptor, 0) if isinstance(descriptor, Symbol) else 0
        code = descriptor if isinstance(descriptor, ULong) else named
    if code not in SECTIONS:
        if code:
            raise UnreadableMessage(f"{{unexpected_message_section,{code},{{position,{offset}}}}}")
        raise UnreadableMessage(f"{{not_a_message_section,{{position,{offset}}}}}")
    return code, start


class SectionProperties:
    """The sections of a message but its body; see `model.messages.message.ReadableProperties`.

    Args:
        durable: whether the message is persistent.
        priority: of the header.
        ttl: milliseconds, of the header.
        annotations: those of the publisher, and what the broker has added.
        head: the sections properties and application-properties, as bytes.
        prefix: what precedes the body in its only section of data; b"" where the model's body is encoded
            sections.
        whole: all sections of the body, where the model's body is joined from several.
        footer: the footer, as bytes; b"" where it is part of the model's body.
    """

    __slots__ = (
        "_application",
        "_fields",
        "_headers",
        "annotations",
        "durable",
        "footer",
        "head",
        "names_queues",
        "prefix",
        "priority",
        "ttl",
        "whole",
    )

    stored_as_is = True
    """Streams store such messages as they are."""

    def __init__(
        self,
        *,
        durable: bool = False,
        priority: int | None = None,
        ttl: int | None = None,
        annotations: dict[Any, Any] | None = None,
        head: bytes = b"",
        prefix: bytes = b"",
        whole: bytes | None = None,
        footer: bytes = b"",
        names_queues: bool = True,
    ) -> None:
        self.durable: bool = durable
        self.priority: int | None = priority
        self.ttl: int | None = ttl
        self.annotations: dict[Any, Any] = annotations or {}
        self.head: bytes = head
        self.prefix: bytes = prefix
        self.whole: bytes | None = whole
        self.footer: bytes = footer
        self.names_queues: bool = names_queues
        """Whether the addresses of queues become names of queues in 0-9-1, by personality."""
        self._fields: Properties | None = None
        self._application: dict[Any, Any] | None = None
        self._headers: dict[str, Any] | None = None

    # --- sections -----------------------------------------------------------------------------------------

    @property
    def fields(self) -> Properties:
        """The section properties; DecodeError if it is wrong."""
        if self._fields is None:
            self._readhead_of()
        assert self._fields is not None
        return self._fields

    @property
    def application_properties(self) -> dict[Any, Any]:
        """The section application-properties; DecodeError if it is wrong."""
        if self._application is None:
            self._readhead_of()
        assert self._application is not None
        return self._application

    def _readhead_of(self) -> None:
        self._fields, self._application = Properties(), {}
        offset = 0
        while offset < len(self.head):
            value, offset = read_value(self.head, offset)
            if _code_of(value) == Properties.CODE:
                self._fields = composite_of(value, Properties)
            elif isinstance(value.value, dict):
                self._application = value.value
            else:
                raise DecodeError("{invalid_section_value,map}")

    def _changed(self, **values: Any) -> Self:
        copy = type(self)(
            durable=self.durable,
            priority=self.priority,
            ttl=self.ttl,
            annotations=self.annotations,
            head=self.head,
            prefix=self.prefix,
            whole=self.whole,
            footer=self.footer,
            names_queues=self.names_queues,
        )
        for name, value in values.items():
            setattr(copy, name, value)
        return copy

    def bare(self, body: bytes) -> bytes:
        """The bare message, with the model's body."""
        return b"".join((self.head, self.prefix + body if self.whole is None else self.whole, self.footer))

    @property
    def is_data(self) -> bool:
        """Whether the body is data, and not an encoded value or sequence."""
        return bool(self.prefix) or self.whole is not None

    def sections(self, body: bytes) -> Mapping[str, Any]:
        """What inspection shows of the message with this body; sections are not decoded when they come."""
        from fakeamqp.protocols.amqp_1_0.sections import sections_of

        try:
            return sections_of(self, body)
        except DecodeError:
            return {"unreadable": self.bare(body)}

    # --- what the model reads -------------------------------------------------------------------------

    @property
    def content_type(self) -> str | None:
        value = self.fields.content_type
        return None if value is None else str(value)

    @property
    def content_encoding(self) -> str | None:
        value = self.fields.content_encoding
        return None if value is None else str(value)

    @property
    def delivery_mode(self) -> int | None:
        return 2 if self.durable else None

    @property
    def correlation_id(self) -> str | None:
        return _short_id(self.fields.correlation_id)

    @property
    def message_id(self) -> str | None:
        return _short_id(self.fields.message_id)

    @property
    def reply_to(self) -> str | None:
        address = self.fields.reply_to
        if not isinstance(address, str):
            return None
        queue = queue_of_address(address) if self.names_queues else None
        found = str(address) if queue is None else queue
        return found if len(found.encode("utf-8", "surrogateescape")) <= _LONGEST_SHORT else None

    @property
    def expiration(self) -> str | None:
        return None if self.ttl is None else str(int(self.ttl))

    @property
    def timestamp(self) -> int | None:
        milliseconds = self.fields.creation_time
        return None if milliseconds is None else int(milliseconds) // 1000

    @property
    def type(self) -> str | None:
        if not self.is_data:
            return ENCODED_BODY
        value = self.annotations.get(BASIC_TYPE)
        return str(value) if isinstance(value, str) else None

    @property
    def user_id(self) -> str | None:
        octets = self.fields.user_id
        return None if octets is None else octets.decode("utf-8", "surrogateescape")

    @property
    def app_id(self) -> str | None:
        value: str | None = self.fields.group_id
        return (
            None if value is None or len(value.encode("utf-8", "surrogateescape")) > _LONGEST_SHORT else value
        )

    @property
    def headers(self) -> dict[str, Any] | None:
        """What 0-9-1 has as headers: application properties, and annotations that begin with x-."""
        if self._headers is None:
            found: dict[str, Any] = {}
            for name, value in self.application_properties.items():
                if isinstance(name, str) and len(name.encode("utf-8", "surrogateescape")) <= _LONGEST_SHORT:
                    kept, value = header_of(value)
                    if kept:
                        found[str(name)] = value
            for name, value in self.annotations.items():
                if name == DEATHS:
                    found["x-death"] = table_of_deaths(value)
                elif name == _X_CC:
                    found["CC"] = list(value)
                elif str(name).startswith("x-basic-") or name in ("x-exchange", "x-routing-key", "x-death"):
                    continue
                else:
                    kept, value = header_of(value)
                    if kept:
                        found[str(name)] = value
            for header, value in (
                ("x-message-id", self.fields.message_id),
                ("x-correlation-id", self.fields.correlation_id),
            ):
                if value is not None and _short_id(value) is None:
                    found[header] = header_of(value)[1]
            self._headers = found
        return self._headers or None

    def header_tag(self, name: str) -> str | None:
        """The tag that 0-9-1 has for the type of a header; None for one that it finds by itself."""
        value = (self.headers or {}).get(name)
        return getattr(value, "field_tag", None)

    def exact_headers(self) -> tuple[tuple[str, Any, bytes], ...] | None:
        """Not known."""
        return None

    def last_headers(self) -> Mapping[str, Any]:
        """A map has no name twice."""
        return self.headers or {}

    # --- changing -----------------------------------------------------------------------------------------

    def annotated(self, annotations: Mapping[Any, Any]) -> Self:
        """A copy with further annotations, before the others."""
        return self._changed(annotations={**annotations, **self.annotations, **annotations})

    def with_data(self) -> Self:
        """A copy whose body is one section of data."""
        return self._changed(prefix=DATA, whole=None)

    def with_headers(
        self, changes: Mapping[str, Any], remove: Iterable[str] = (), *, ordered: bool = False
    ) -> Self:
        """A copy with some headers set and some removed. Those with x- are annotations."""
        annotations = dict(self.annotations)
        application: dict[Any, Any] | None = None
        for name in remove:
            key = annotation_key(name)
            if key is not None:
                annotations.pop(key, None)
            elif name in self.application_properties:
                application = dict(self.application_properties) if application is None else application
                del application[name]
        for name, value in changes.items():
            key = annotation_key(name)
            if key == DEATHS:
                annotations[key] = deaths_of(value)
            elif key is not None:
                annotations[key] = annotation_of(value, None)
            else:
                application = dict(self.application_properties) if application is None else application
                application[name] = application_property_of(value, None)[1]
        copy = self._changed(annotations=annotations)
        if application is not None:
            copy.head = head_of(self.fields, application)
        return copy

    def replace(self, **changes: Any) -> Self:
        """A copy with other values for some properties, None for none."""
        copy = self._changed()
        fields = Properties(**vars(self.fields))
        for name, value in changes.items():
            if name == "delivery_mode":
                copy.durable = value == 2
            elif name == "priority":
                copy.priority = value
            elif name == "expiration":
                copy.ttl = None if value is None else ttl_of(value)
            elif name == "headers":
                kept = {key: each for key, each in self.annotations.items() if key == BASIC_TYPE}
                copy.annotations = kept
                copy.head = head_of(fields, {})
                copy = copy.with_headers(value or {})
            elif name == "type":
                copy.annotations = {**copy.annotations}
                copy.annotations.pop(BASIC_TYPE, None)
                if value is not None:
                    copy.annotations[BASIC_TYPE] = str(value)
            elif name in FIELDS:
                field, write = FIELDS[name]
                setattr(fields, field, None if value is None else write(value))
                copy.head = head_of(fields, copy.application_properties)
        return copy

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SectionProperties):
            return NotImplemented
        names = ("durable", "priority", "ttl", "annotations", "head", "prefix", "whole", "footer")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={value!r}" for name in _SHOWN if (value := getattr(self, name, None)) is not None
        )
        return f"SectionProperties({shown})"


_SHOWN = (
    "content_type",
    "headers",
    "delivery_mode",
    "priority",
    "correlation_id",
    "message_id",
    "expiration",
)


def annotation_key(name: str) -> Symbol | None:
    """The annotation that a header of 0-9-1 becomes; None for one that becomes an application property."""
    if name == "x-death":
        return DEATHS
    if name == "CC":
        return _X_CC
    return Symbol(name) if name.startswith("x-") else None


def _code_of(value: Any) -> int:
    descriptor = value.descriptor if isinstance(value, Described) else None
    if isinstance(descriptor, ULong):
        return descriptor
    kind = BY_DESCRIPTOR.get(descriptor) if isinstance(descriptor, str) else None
    return 0 if kind is None else kind.CODE


def _short_id(value: Any) -> str | None:
    """A message id as a short string of 0-9-1; None where it does not fit one."""
    if isinstance(value, UUID):
        return f"urn:uuid:{value}"
    if isinstance(value, ULong):
        return str(int(value))
    if isinstance(value, str) and len(value.encode("utf-8", "surrogateescape")) <= _LONGEST_SHORT:
        return value
    return None


def _message_id(text: str) -> Any:
    if text.startswith("urn:uuid:"):
        try:
            return UUID(text[9:])
        except ValueError:
            return text
    return text_or_binary(text)


FIELDS: dict[str, tuple[str, Any]] = {
    "content_type": ("content_type", Symbol),
    "content_encoding": ("content_encoding", Symbol),
    "correlation_id": ("correlation_id", _message_id),
    "message_id": ("message_id", _message_id),
    "reply_to": ("reply_to", str),
    "timestamp": ("creation_time", lambda seconds: Milliseconds(seconds * 1000)),
    "user_id": ("user_id", lambda text: text.encode("utf-8", "surrogateescape")),
    "app_id": ("group_id", str),
}
"""Property of the model -> field of the section properties, and how its value becomes one of that."""


def head_of(fields: Properties, application: Mapping[Any, Any]) -> bytes:
    """The sections properties and application-properties; an empty one is left out."""
    said = b"" if all(value is None for value in vars(fields).values()) else fields.encode()
    return said + (encode_value(Described(ULong(0x74), dict(application))) if application else b"")


# --- from and to bytes -------------------------------------------------------------------------------------


def read_message(
    data: bytes, *, durable: bool, names_queues: bool, strict: bool = False
) -> tuple[SectionProperties, bytes]:
    """The properties and the body of a message that has come.

    `durable` is what a header without this field means; `strict` refuses sections in a wrong order.

    Raises:
        UnreadableMessage: its sections cannot be read.
    """
    header: Header | None = None
    annotations: dict[Any, Any] = {}
    offset, end, last = 0, len(data), 0
    bare = body = footer = -1
    pieces: list[tuple[int, int, int]] = []
    try:
        while offset < end:
            code, start = _section(data, offset)
            repeats = code == last and code in (0x75, 0x76)
            follows = code > last and not (0x75 <= code <= 0x77 and last >= 0x75)
            if strict and (not (repeats or follows) or (code == 0x78 and last < 0x75)):
                name = SECTIONS[code][0].replace("-", "_")
                raise UnreadableMessage(f"{{unexpected_message_section,{name},{{position,{offset}}}}}")
            last = code
            if code == Header.CODE:
                value, behind = read_value(data, start)
                # RabbitMQ ignores fields of wrong types (measured on 4.0.5 and 4.3.6).
                with suppress(DecodeError):
                    header = Header.of_list(value) if isinstance(value, list) else None
            elif code == 0x72:
                value, behind = read_value(data, start)
                annotations = _checked_annotations(value)
            else:
                behind = skip_value(data, start)
                if code >= Properties.CODE and bare < 0:
                    bare = offset
                if 0x75 <= code <= 0x77:
                    body = offset if body < 0 else body
                    pieces.append((code, start, behind))
                elif code == 0x78:
                    footer = offset
            offset = behind
    except UnreadableMessage:
        raise
    except DecodeError as problem:
        raise UnreadableMessage(str(problem)) from None
    if not pieces:
        raise MissingBody("missing_amqp_message_body")
    head = data[bare:body]
    tail = b"" if footer < 0 else data[footer:]
    properties = SectionProperties(head=head, annotations=annotations, names_queues=names_queues)
    properties.durable = durable
    if header is not None:
        if header.durable is not None:
            properties.durable = header.durable
        properties.priority = None if header.priority is None else int(header.priority)
        properties.ttl = None if header.ttl is None else int(header.ttl)
    if any(code != 0x75 for code, _, _ in pieces):
        return properties, data[body:]
    properties.footer = tail
    values = [_payload(data, start, behind) for _, start, behind in pieces]
    if len(values) == 1:
        start = pieces[0][1]
        properties.prefix = data[body : pieces[0][2] - len(values[0])]
        assert start >= body
        return properties, values[0]
    properties.whole = data[body : pieces[-1][2]]
    return properties, b"".join(values)


def _payload(data: bytes, start: int, end: int) -> bytes:
    """The bytes of a binary value."""
    if data[start] not in (0xA0, 0xB0):
        raise UnreadableMessage("{bad_data_section}")
    return data[start + (2 if data[start] == 0xA0 else 5) : end]


def _checked_annotations(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise UnreadableMessage("{bad_message_annotations}")
    for key in value:
        if not isinstance(key, Symbol) or not key.startswith("x-"):
            raise UnreadableMessage(f"{{reserved_annotation_key,{term(key)}}}")
    return value


def body_section(properties: SectionProperties, body: bytes) -> bytes:
    """The sections of the body."""
    if properties.whole is not None:
        return properties.whole
    return DATA + encode_binary(body) if properties.prefix == DATA else properties.prefix + body


def encoded_sections(properties: SectionProperties, body: bytes) -> bytes:
    """The sections of a message as a publisher sends them."""
    header = Header(
        durable=properties.durable or None,
        priority=properties.priority,
        ttl=properties.ttl,
    )
    said = b"" if header == Header() else header.encode()
    if properties.annotations:
        said += encode_value(Described(ULong(0x72), properties.annotations))
    return b"".join((said, properties.head, body_section(properties, body), properties.footer))
