"""The sections of a message, and the same as properties that the model knows.

A message keeps its bare part (properties, application-properties, body, footer) as it came, byte by byte.
What the model reads is decoded on demand. A message of another protocol is converted once, by the tables in
`values`; docs/amqp-1-0.md shows them.

The body of the model's message is what consumers of 0-9-1 get: the bytes of the data sections, or else the
encoded sections of the body with the footer, of type "amqp-1.0" (RabbitMQ: measured).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes
from uuid import UUID

from fakeamqp.model.messages.message import Int64
from fakeamqp.protocols.amqp_1_0 import values as v
from fakeamqp.protocols.amqp_1_0.addresses import QUEUES
from fakeamqp.protocols.amqp_1_0.choices import Amqp10Choices
from fakeamqp.protocols.amqp_1_0.codec import types as t
from fakeamqp.protocols.amqp_1_0.codec.composites import SECTIONS, Header, Properties, class_of_value
from fakeamqp.protocols.amqp_1_0.codec.errors import DecodeError
from fakeamqp.protocols.amqp_1_0.values import Unconvertible
from fakeamqp.protocols.base.codec import encoded, ttl as ttl_of

if TYPE_CHECKING:
    from typing_extensions import Self


USUAL: Final = Amqp10Choices()
"""Those of RabbitMQ 4.2, where the personality is not known."""
ENCODING: Final = "1-0"
"""Marks messages whose property bytes are the annotations and the bare part up to the body, as sent."""
ENCODED_BODY: Final = "amqp-1.0"
"""The type of messages of 0-9-1 whose body is encoded sections."""
DATA: Final = b"\0\x53\x75"
_PROPERTIES: Final = b"\0\x53\x73"
_LONGEST_SHORT: Final = 255
_CODES: Final = {f"amqp:{name}:{kind}": code for code, (name, kind) in SECTIONS.items()}
DEATHS: Final = t.Symbol("x-opt-deaths")
_X_CC: Final = t.Symbol("x-cc")
BASIC_TYPE: Final = t.Symbol("x-basic-type")
_RECEIVED: Final = t.Symbol("x-opt-rabbitmq-received-time")
_INTERNAL: Final = ("x-exchange", "x-routing-key", "x-death")
"""Annotations that are no headers in 0-9-1, besides those that begin with x-basic-."""
_ONE_PART: Final = re.compile("[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2}")
_OFFSET: Final = t.Symbol("x-stream-offset")
_TURN: Final = 1 << 64


class UnreadableMessage(DecodeError):
    """A message whose sections cannot be read; `terms` are an Erlang v.term, or the members of a tuple."""

    def __init__(self, *terms: str) -> None:
        super().__init__(terms[0] if len(terms) == 1 else f"{{{','.join(terms)}}}")
        self.terms: tuple[str, ...] = terms


class MissingBody(UnreadableMessage):
    """A message without a body."""


_NO_FIELDS: Final = Properties()
"""Of messages without properties; changed in copies only."""


class SectionProperties:
    """The sections of a message but its body; see `model.messages.message.ReadableProperties`.

    Args:
        durable: whether the message is persistent.
        priority: of the header.
        ttl: milliseconds, of the header.
        annotations: those of the publisher.
        added: those of the broker, and of outcomes.
        head: the sections properties and application-properties, as bytes.
        prefix: what precedes the body in its only section of data; b"" where the model's body is encoded
            sections.
        whole: all sections of the body, where the model's body is joined from several.
        footer: the footer, as bytes; b"" where it is part of the model's body.
        choices: those of the personality.
    """

    __slots__ = (
        *("_application", "_fields", "_headers", "added", "annotations", "broken", "choices", "durable"),
        *("footer", "head", "prefix", "priority", "silent", "ttl", "unwritable", "whole"),
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
        added: dict[Any, Any] | None = None,
        head: bytes = b"",
        prefix: bytes = b"",
        whole: bytes | None = None,
        footer: bytes = b"",
        choices: Amqp10Choices = USUAL,
    ) -> None:
        self.durable: bool = durable
        self.silent: bool = False
        """Whether there is a header that does not say it."""
        self.unwritable: bool = False
        """Whether RabbitMQ crashes when it writes the annotations: for null, in 4.0 for decimals too."""
        self.broken: bool = False
        """Whether the body, which RabbitMQ has not looked at, is no section of data although it begins so."""
        self.priority: int | None = priority
        self.ttl: int | None = ttl
        self.annotations: dict[Any, Any] = annotations or {}
        self.added: dict[Any, Any] = added or {}
        self.head: bytes = head
        self.prefix: bytes = prefix
        self.whole: bytes | None = whole
        self.footer: bytes = footer
        self.choices: Amqp10Choices = choices
        self._fields: Properties | None = None
        self._application: dict[Any, Any] | None = None
        self._headers: dict[str, Any] | None = None

    # --- sections -----------------------------------------------------------------------------------------

    @property
    def fields(self) -> Properties:
        """The section properties; DecodeError if it is wrong."""
        if self._fields is None:
            self.read_head()
        assert self._fields is not None
        return self._fields

    @property
    def application_properties(self) -> dict[Any, Any]:
        """The section application-properties; DecodeError if it is wrong."""
        if self._application is None:
            self.read_head()
        assert self._application is not None
        return self._application

    def read_head(self) -> None:
        """Decode both sections. DecodeError where RabbitMQ crashes, UnreadableMessage where it refuses."""
        self._fields, self._application = _NO_FIELDS, {}
        offset = 0
        while offset < len(self.head):
            try:
                value, offset = t.read_value(self.head, offset)
            except DecodeError as problem:
                raise UnreadableMessage(str(problem)) from None
            if class_of_value(value) is Properties and isinstance(value.value, list):
                if self._application:
                    raise DecodeError("the properties come behind the application properties")
                _check_plain(value.value)
                self._fields = Properties.unchecked(value.value)
            elif isinstance(value.value, dict):
                _check_plain(value.value.values())
                self._application = value.value
            elif value.descriptor == _APPLICATION:
                self.broken = True  # RabbitMQ 4.0 crashes later (measured on 4.0.5).

    def head_sections(self) -> tuple[bytes, bytes]:
        """The sections properties and application-properties."""
        if self.head[:3] != _PROPERTIES:
            return b"", self.head
        end = t.skip_value(self.head, 0)
        return self.head[:end], self.head[end:]

    def _changed(self, **values: Any) -> Self:
        copy = object.__new__(type(self))
        for name in self.__slots__:
            setattr(copy, name, getattr(self, name))
        copy._fields = copy._application = copy._headers = None
        for name, value in values.items():
            setattr(copy, name, value)
        return copy

    def bare(self, body: bytes) -> bytes:
        """The bare message, with the model's body."""
        return b"".join((self.head, self.prefix + body if self.whole is None else self.whole, self.footer))

    def further_bytes(self, octets: bytes, body: bytes) -> int:
        """How many bytes of a message that has come queues count besides the model's body."""
        start = octets.find(self.head + self.prefix) if self.head or self.prefix else len(octets) - len(body)
        return len(octets) - start - len(body)

    @property
    def is_data(self) -> bool:
        """Whether the body is data, and not an encoded value or sequence."""
        return bool(self.prefix) or self.whole is not None

    def sections(self, body: bytes) -> Mapping[str, Any]:
        """What inspection shows of the message with this body; sections are not decoded when they come."""
        from fakeamqp.protocols.amqp_1_0.sections import shown_sections

        try:
            return shown_sections(self, body)
        except DecodeError:
            return {"unreadable": self.bare(body)}

    # --- what the model reads -------------------------------------------------------------------------

    def check_convertible(self) -> None:
        """Unconvertible if RabbitMQ crashes at the conversion to 0-9-1 (RabbitMQ: measured on 4.3.6)."""
        fields = self.fields
        try:
            if self.broken:
                raise Unconvertible("a section has a value of another type")
            for value in (fields.message_id, fields.correlation_id):
                if value is not None and type(value) not in (str, bytes, t.ULong, UUID):
                    raise Unconvertible(f"{value!r:.40} as a message id")
            for value in (fields.content_type, fields.content_encoding, self.annotations.get(BASIC_TYPE)):
                if value is not None and _short(value) is None:
                    raise Unconvertible(f"{value!r:.40} as a short string")
            for value in (fields.creation_time, fields.user_id):
                if value is not None and type(value) in _BARE:
                    raise Unconvertible(f"{value!r:.40} in the properties")
            self._made_headers(strict=True)
            if self.footer and self.is_data:
                footer, _ = t.read_value(self.footer)
                if isinstance(footer.value, dict):
                    checked_annotations(footer.value)
        except DecodeError as problem:
            raise Unconvertible(str(problem)) from None

    @property
    def content_type(self) -> str | None:
        return _short(self.fields.content_type)

    @property
    def content_encoding(self) -> str | None:
        return _short(self.fields.content_encoding)

    @property
    def delivery_mode(self) -> int | None:
        mode = self.annotations.get("x-basic-delivery-mode")
        if isinstance(mode, int):
            return int(mode)
        # Streams keep the header (RabbitMQ: measured on 4.3.6).
        return 2 if self.durable else 1 if _OFFSET in self.added and not self.silent else None

    @property
    def shown_durable(self) -> bool | None:
        """What the header says to clients of 1.0."""
        return None if self.silent and _OFFSET in self.added else self.durable

    @property
    def correlation_id(self) -> str | None:
        return _short_id(self.fields.correlation_id)

    @property
    def message_id(self) -> str | None:
        return _short_id(self.fields.message_id)

    @property
    def reply_to(self) -> str | None:
        address = _short_text(self.fields.reply_to)
        if address is None or not self.choices.replies_name_queues or not address.startswith(QUEUES):
            return address
        name = address[len(QUEUES) :]
        decoded = unquote_to_bytes(encoded(name)).decode("utf-8", "surrogateescape")
        return decoded if not _ONE_PART.sub("", name) else None

    @property
    def expiration(self) -> str | None:
        return None if self.ttl is None else str(int(self.ttl))

    @property
    def timestamp(self) -> int | None:
        milliseconds = self.fields.creation_time
        return v.seconds(milliseconds) % _TURN if isinstance(milliseconds, t.Milliseconds) else None

    @property
    def type(self) -> str | None:
        if not self.is_data:
            return ENCODED_BODY
        return _short(self.annotations.get(BASIC_TYPE))

    @property
    def user_id(self) -> str | None:
        octets = self.fields.user_id
        if octets is None or len(octets) > _LONGEST_SHORT:
            return None
        text = octets.decode("utf-8", "surrogateescape") if isinstance(octets, bytes) else ""
        return text if isinstance(v.text_or_binary(text), str) else None

    @property
    def app_id(self) -> str | None:
        return _short_text(self.fields.group_id)

    @property
    def headers(self) -> dict[str, Any] | None:
        """What 0-9-1 has as headers, by name: application properties, and annotations that begin with x-."""
        if self._headers is None:
            self._headers = self._made_headers(strict=False)
        return self._headers or None

    def _made_headers(self, *, strict: bool) -> dict[str, Any]:
        """The headers. Unconvertible, if that is asked for, where RabbitMQ crashes."""
        found: dict[str, Any] = {}
        drops = self.choices.drops_decimals

        def convert(name: str, value: Any) -> None:
            try:
                kept, value = v.header_of(value, drops=drops)
            except Unconvertible:
                if strict:
                    raise
                return
            if kept:
                found.setdefault(name, value)

        for name, value in {**self.annotations, **self.added}.items():
            if name == DEATHS:
                deaths = v.table_of_deaths(value)
                if deaths is not None:
                    found["x-death"] = deaths
            elif name == _X_CC:
                convert("CC", value)
            elif name == _RECEIVED and isinstance(value, t.Milliseconds):
                found["timestamp_in_ms"] = Int64(value)
            elif not (str(name).startswith("x-basic-") or name in _INTERNAL or len(name) > _LONGEST_SHORT):
                convert(str(name), value)
        fields = self.fields
        for header, value in (
            ("x-correlation-id", fields.correlation_id),
            ("x-message-id", fields.message_id),
        ):
            if type(value) in (str, bytes) and _short_id(value) is None:
                found.setdefault(header, value)
        for name, value in self.application_properties.items():
            if type(name) is str and len(encoded(name)) <= _LONGEST_SHORT:
                convert(name, value)
        return dict(sorted(found.items(), key=lambda item: encoded(item[0])))

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

    def routing_headers(self) -> dict[str, Any]:
        """What headers exchanges compare: simple values without their types (RabbitMQ: measured)."""
        found: dict[str, Any] = {}
        for name, value in {**self.annotations, **self.application_properties}.items():
            if type(value) in _DECIMALS or isinstance(value, (list, dict, t.Described)):
                continue
            if isinstance(value, t.Char):
                found[str(name)] = ord(value)
            else:
                found[str(name)] = float(value) if isinstance(value, float) else v.untyped(value)
        return found

    # --- changing -----------------------------------------------------------------------------------------

    def annotated(self, annotations: Mapping[Any, Any]) -> Self:
        """A copy with further annotations, of an outcome. RabbitMQ cannot write null and floats."""
        copy = self._changed(added={**self.added, **annotations})
        copy.unwritable |= any(value is None or isinstance(value, float) for value in annotations.values())
        return copy

    def with_data(self) -> Self:
        """A copy whose body is one section of data."""
        return self._changed(prefix=DATA, whole=None)

    def with_headers(
        self, changes: Mapping[str, Any], remove: Iterable[str] = (), *, ordered: bool = False
    ) -> Self:
        """A copy with some headers set and some removed. Those with x- are annotations."""
        annotations, added = dict(self.annotations), dict(self.added)
        application = dict(self.application_properties)
        changes_application = False
        for name in remove:
            key = annotation_key(name)
            if key is not None:
                annotations.pop(key, None)
                added.pop(key, None)
            elif name in application:
                del application[name]
                changes_application = True
        for name, value in changes.items():
            key = annotation_key(name)
            if key is not None:
                added[key] = v.deaths_of(value) if key == DEATHS else v.annotation_of(value)
            else:
                application[name] = v.application_property_of(value)
                changes_application = True
        copy = self._changed(annotations=annotations, added=added)
        if changes_application:
            copy.head = head_of(self.fields, application)
        return copy

    def replace(self, **changes: Any) -> Self:
        """A copy with other values for some properties, None for none."""
        copy = self._changed()
        fields, application = Properties(**vars(self.fields)), self.application_properties
        for name, value in changes.items():
            if name == "delivery_mode":
                copy.durable = value == 2
            elif name == "priority":
                copy.priority = value
            elif name == "expiration":
                copy.ttl = None if value is None else ttl_of(value)
            elif name == "headers":
                copy.annotations = {key: each for key, each in copy.annotations.items() if key == BASIC_TYPE}
                copy.added, application = {}, {}
            elif name == "type":
                copy.annotations = {**copy.annotations}
                copy.annotations.pop(BASIC_TYPE, None)
                if value is not None:
                    copy.annotations[BASIC_TYPE] = str(value)
            elif name in FIELDS:
                field, write = FIELDS[name]
                setattr(fields, field, None if value is None else write(value))
        if "headers" in changes or not changes.keys().isdisjoint(FIELDS):
            copy.head = head_of(fields, application)
        return copy.with_headers(changes.get("headers") or {})

    def encode(self) -> bytes:
        """The sections of a message without content; shows whether they can be encoded."""
        return encoded_sections(self, b"")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SectionProperties):
            return NotImplemented
        names = ("durable", "priority", "ttl", "annotations", "added", "head", "prefix", "whole", "footer")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={value!r}" for name in _SHOWN if (value := getattr(self, name, None)) is not None
        )
        return f"SectionProperties({shown})"


_SHOWN: Final = (
    *("content_type", "headers", "delivery_mode", "priority", "correlation_id", "message_id", "expiration"),
)


def annotation_key(name: str) -> t.Symbol | None:
    """The annotation that a header of 0-9-1 becomes; None for one that becomes an application property."""
    if name == "x-death":
        return DEATHS
    if name == "CC":
        return _X_CC
    return t.Symbol(name) if name.startswith("x-") else None


_DECIMALS: Final = (t.Decimal32, t.Decimal64, t.Decimal128)
_BARE: Final = (bool, type(None), *_DECIMALS)
"""Classes whose values RabbitMQ has without a type, so that it cannot take the type off them."""


def _short(value: Any) -> str | None:
    """A value of which RabbitMQ only takes off the type, as a short string; None where it does not fit."""
    if isinstance(value, UUID):
        value = value.bytes
    if type(value) is bytes:
        value = value.decode("utf-8", "surrogateescape")
    if not isinstance(value, str) or isinstance(value, t.Char):
        return None
    return str(value) if len(encoded(value)) <= _LONGEST_SHORT else None


def _short_text(value: Any) -> str | None:
    """A string as a short string; None for other types, and for one that does not fit."""
    return value if type(value) is str and len(encoded(value)) <= _LONGEST_SHORT else None


def _short_id(value: Any) -> str | None:
    """A message id as a short string of 0-9-1; None where it does not fit one."""
    if isinstance(value, UUID):
        return f"urn:uuid:{value}"
    if isinstance(value, t.ULong):
        return str(int(value))
    return _short_text(value)


_URN: Final = re.compile("urn:uuid:([0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})")


def _message_id(text: str) -> Any:
    urn = _URN.fullmatch(text)
    return str(text) if urn is None else UUID(urn[1])


def _symbol(text: str) -> t.Symbol:
    return t.Symbol(encoded(text).decode("latin-1"))


FIELDS: dict[str, tuple[str, Any]] = {
    "content_type": ("content_type", _symbol),
    "content_encoding": ("content_encoding", _symbol),
    "correlation_id": ("correlation_id", _message_id),
    "message_id": ("message_id", _message_id),
    "reply_to": ("reply_to", str),
    "timestamp": ("creation_time", lambda time: t.Milliseconds(v.signed(time * 1000))),
    "user_id": ("user_id", encoded),
    "app_id": ("group_id", str),
}
"""Property of the model -> field of the section properties, and how its value becomes one of that."""


def head_of(fields: Properties, application: Mapping[Any, Any], *, nulls: bool = False) -> bytes:
    """The sections properties and application-properties; an empty one is left out.

    `nulls` has the fields at the end that are null written.
    """
    empty = all(value is None for value in vars(fields).values())
    said = b"" if empty else fields.encode(nulls=nulls)
    return said + (t.encode_section(_APPLICATION, dict(application)) if application else b"")


# --- from and to bytes -------------------------------------------------------------------------------------


def read_message(data: bytes, choices: Amqp10Choices = USUAL) -> tuple[SectionProperties, bytes]:
    """The properties and the body of a message that has come.

    Raises:
        UnreadableMessage: RabbitMQ refuses it.
        DecodeError: RabbitMQ crashes at it.
    """
    header: Header | None = None
    annotations: dict[Any, Any] = {}
    bare = body = footer = -1
    pieces: list[tuple[int, int, int]] = []
    broken = False
    for code, offset, start, behind in sections_of(data, strict=choices.checks_sections):
        if code < _DATA and body >= 0:
            footer = offset if footer < 0 else footer  # RabbitMQ has not looked at it.
            continue
        if code <= ANNOTATIONS:
            try:
                value, _ = t.read_value(data, start)
            except DecodeError as problem:
                raise UnreadableMessage(str(problem)) from None
            if code == Header.CODE and isinstance(value, list):
                header = Header.unchecked(value)
            elif code == ANNOTATIONS:
                annotations = checked_annotations(value)
            elif code == _DELIVERY_ANNOTATIONS:
                checked_annotations(value)
            continue
        bare = offset if bare < 0 else bare
        if code == BROKEN:
            broken = True
        elif code == _FOOTER:
            footer = offset
        elif code >= _DATA:
            body = offset if body < 0 else body
            pieces.append((code, start, behind))
    if not pieces:
        raise MissingBody("missing_amqp_message_body")
    properties = SectionProperties(head=data[bare:body], annotations=annotations, choices=choices)
    properties.read_head()
    properties.durable = choices.durable_by_default
    if header is not None:
        properties.silent = not isinstance(header.durable, bool)
        properties.durable = choices.durable_by_default if properties.silent else header.durable
        properties.priority = int(header.priority) if isinstance(header.priority, t.UByte) else None
        properties.ttl = int(header.ttl) if isinstance(header.ttl, t.UInt) else None
    if annotations:
        _take_basic(properties)
    properties.broken |= broken and pieces[0][0] == _DATA
    if broken or any(code != _DATA for code, _, _ in pieces):
        return properties, data[body:]
    properties.footer = b"" if footer < 0 else data[footer:]
    values = [_payload(data, start, behind) for _, start, behind in pieces]
    if len(values) == 1:
        properties.prefix = data[body : pieces[0][2] - len(values[0])]
        return properties, values[0]
    properties.whole = data[body : pieces[-1][2] if footer < 0 else footer]
    return properties, b"".join(values)


def _take_basic(properties: SectionProperties) -> None:
    """Take from annotations what the header does not say (RabbitMQ: measured on 4.3.6)."""
    annotations = properties.annotations
    priority, ttl = annotations.get("x-basic-priority"), annotations.get("x-basic-expiration")
    if properties.priority is None and isinstance(priority, int):
        properties.priority = int(priority)
    if properties.ttl is None and type(ttl) is str and ttl.isdecimal():
        properties.ttl = int(ttl)
    decimals = not properties.choices.drops_decimals and v.has_decimal(annotations)
    properties.unwritable = decimals or None in annotations.values()


_DELIVERY_ANNOTATIONS: Final = 0x71
ANNOTATIONS, _APPLICATION, _DATA, _SEQUENCE, _VALUE, _FOOTER = 0x72, 0x74, 0x75, 0x76, 0x77, 0x78
BROKEN: Final = 0xFF
_LISTS: Final = frozenset((0x45, 0xC0, 0xD0))
_MAPS: Final = frozenset((0xC1, 0xD1))
_BINARIES: Final = frozenset((0xA0, 0xB0))
_KINDS: Final[Mapping[int, tuple[str, frozenset[int]]]] = {
    **dict.fromkeys((Header.CODE, Properties.CODE, _SEQUENCE), ("list", _LISTS)),
    **dict.fromkeys((_DELIVERY_ANNOTATIONS, ANNOTATIONS, _APPLICATION, _FOOTER), ("map", _MAPS)),
    _DATA: ("binary", _BINARIES),
}
"""Section -> what its value has to be, and the codes of that."""
_NAMES: Final = {code: name.replace("-", "_") for code, (name, _) in SECTIONS.items()}


def sections_of(data: bytes, *, strict: bool) -> Iterable[tuple[int, int, int, int]]:
    """The sections: code, offset, offset of the value, offset behind it.

    UnreadableMessage for what is no section, and for those in another order (RabbitMQ: measured on 4.3.6).
    Where RabbitMQ does not check them, what it does not look at, which is all from the body on, may be
    `BROKEN` (measured on 4.0.5).
    """
    offset, end, last = 0, len(data), 0
    while offset < end:
        try:
            code, start, behind = _next_section(data, offset, strict)
        except UnreadableMessage:
            if strict or (last < _DATA and data[offset : offset + 3] != DATA):
                raise
            if last < _DATA:
                yield _DATA, offset, offset + 3, end
            yield BROKEN, offset, end, end
            return
        if strict:
            repeats = code == last and code in (_DATA, _SEQUENCE)
            follows = code > last and not (_DATA <= code <= _VALUE and last >= _DATA)
            if not (repeats or follows):
                raise _unexpected(_NAMES[code], offset)
        if code == _FOOTER and last < _DATA:
            raise _unexpected(_NAMES[code], offset)
        yield code, offset, start, behind
        offset, last = behind, code


def _next_section(data: bytes, offset: int, strict: bool) -> tuple[int, int, int]:
    """The code of the section at an offset, the offset of its value, and the offset behind it."""
    code, start = _section(data, offset)
    kind, codes = _KINDS.get(code, ("any", None))
    try:
        if codes is not None and data[start] not in codes and (strict or code == _DATA):
            raise DecodeError("another type")
        return code, start, t.skip_value(data, start)
    except (DecodeError, IndexError):
        raise UnreadableMessage(f"{{invalid_section_value,{kind},{{position,{start}}}}}") from None


def _section(data: bytes, offset: int) -> tuple[int, int]:
    """The code of the section at an offset, and the offset of its value."""
    if data[offset : offset + 2] == b"\0\x53" and offset + 2 < len(data):
        code, start = data[offset + 2], offset + 3
    else:
        try:
            descriptor, start = t.read_value(data, offset + 1) if data[offset] == 0 else (None, offset)
        except DecodeError:
            descriptor, start = None, offset
        named = _CODES.get(descriptor, 0) if isinstance(descriptor, t.Symbol) else 0
        code = descriptor if isinstance(descriptor, t.ULong) else named
    if code not in SECTIONS:
        if code:
            raise _unexpected(code, offset)
        raise UnreadableMessage(f"{{not_a_message_section,{{position,{offset}}}}}")
    return code, start


def _unexpected(section: int | str, offset: int) -> UnreadableMessage:
    return UnreadableMessage("unexpected_message_section", str(section), f"{{position,{offset}}}")


def _payload(data: bytes, start: int, end: int) -> bytes:
    """The bytes of a binary value."""
    return data[start + (2 if data[start] == 0xA0 else 5) : end]


def _check_plain(values: Iterable[Any]) -> None:
    """DecodeError for a described value: RabbitMQ crashes, unless the descriptor is one of its own."""
    if any(isinstance(value, t.Described) for value in values):
        raise DecodeError("a described value in a section")


def checked_annotations(value: Any) -> dict[Any, Any]:
    """Annotations, or a footer. UnreadableMessage for a key that is reserved, DecodeError where RabbitMQ
    crashes.
    """
    if not isinstance(value, dict):
        raise DecodeError("annotations are a map")
    for key in value:
        if not isinstance(key, t.Symbol) or not key.startswith("x-"):
            raise UnreadableMessage(f"{{reserved_annotation_key,{v.term(key)}}}")
    _check_plain(value.values())
    return value


def body_section(properties: SectionProperties, body: bytes) -> bytes:
    """The sections of the body."""
    if properties.whole is not None:
        return properties.whole
    return DATA + t.encode_binary(body) if properties.prefix == DATA else properties.prefix + body


def encoded_sections(properties: SectionProperties, body: bytes) -> bytes:
    """The sections of a message as a publisher sends them."""
    header = Header(durable=properties.durable or None, priority=properties.priority, ttl=properties.ttl)
    said = b"" if header == Header() else header.encode()
    annotations = {**properties.annotations, **properties.added}
    if annotations:
        said += t.encode_section(ANNOTATIONS, annotations)
    return b"".join((said, properties.head, body_section(properties, body), properties.footer))
