"""What all classes of content properties have in common, the decorator that declares one, and class basic's.

Property flags come first, bit 15 of a word for the first property (0-9-1/content/flags-order), bit 0 for
"another word follows" (0-9-1/content/flags-continuation); then the values of the flagged properties.
"""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from fakeamqp.protocols.amqp_0_9_1.codec.fields import (
    Headers,
    Octet,
    ShortStr,
    TableType,
    Timestamp,
    skipped_string,
)
from fakeamqp.protocols.amqp_0_9_1.codec.record import (
    Field,
    OnFirstUse,
    Reader,
    Record,
    Writer,
    compile_function,
    dataclass_transform,
    declare,
    indented,
    unreadable,
)
from fakeamqp.protocols.amqp_0_9_1.codec.tables import (
    RABBITMQ,
    REMOVED,
    Removed,
    encode_table,
    exact_fields,
    field_tag,
    rewritten_table,
    splice_table,
    take_field,
)
from fakeamqp.protocols.base.codec import FieldError, FrameError, WireError

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.protocols.amqp_0_9_1.codec.tables import FieldInput, FieldValue, Grammar

#: the bytes of a table and the grammar that decoded them
RawTable: TypeAlias = "tuple[bytes, Grammar]"

_short = struct.Struct(">H")
_read_short = _short.unpack_from


class SingleHeaders(dict[str, "FieldValue"]):
    """Headers that a client sent in another order, or some of them twice: the first of each name, sorted."""

    __slots__ = ("published",)

    published: RawTable

    @property
    def last(self) -> dict[str, FieldValue]:
        """The last of each name, in the order in which they were sent."""
        return {name: value for name, value, _ in exact_fields(*self.published)}


class Properties(Record):
    """Content properties. The `headers` table keeps the bytes that it was decoded from."""

    CLASS_ID: ClassVar[int]
    OPTIONAL: ClassVar[bool] = True

    if TYPE_CHECKING:  # the declared classes have the slots
        headers: dict[str, FieldValue] | None
        _raw_headers: RawTable | None
    else:
        __slots__ = ()

    def encode(self) -> bytes:
        """Flags and values. Raises FieldError for a value that does not fit."""
        raise NotImplementedError

    @classmethod
    def decode(cls, payload: bytes, offset: int, grammar: Grammar) -> Self:
        """Read flags and values from `offset` on: 12 in the payload of a content header.

        Raises FrameError when the bytes are too few or too many, FieldError or FieldNameError for illegal
        values.
        """
        raise NotImplementedError

    def replace(self, **changes: Any) -> Self:
        """A copy with some properties changed. Raises FieldError for an unknown property."""
        changed = copy.copy(self)
        known = dict(self.LAYOUT)
        for name, value in changes.items():
            if name not in known:
                raise FieldError(f"{self.NAME} have no {name!r}; there are {', '.join(known)}")
            setattr(changed, name, value)
        return changed

    def header_tag(self, name: str) -> str | None:
        """The tag letter that a header field was decoded with; None for a header set in Python."""
        as_read = self._headers_as_read()
        return None if as_read is None else field_tag(*as_read, name)

    def with_headers(
        self,
        changes: Mapping[str, FieldInput | Removed],
        remove: Iterable[str] = (),
        *,
        ordered: bool = False,
    ) -> Self:
        """A copy with header fields added, replaced or removed.

        Every other header field keeps its bytes and tag. `ordered` sorts the fields by the bytes of their
        names. Raises FieldError for a value that a field table cannot hold.
        """
        octets, grammar = self._headers_as_read() or (None, RABBITMQ)
        if octets is None:
            octets = encode_table(self.headers or {})
        octets = splice_table(octets, {**changes, **dict.fromkeys(remove, REMOVED)}, grammar)
        if ordered:
            octets = rewritten_table(octets, grammar, duplicates=True)
        changed = copy.copy(self)
        headers, _ = grammar.decode(octets, 0, len(octets))
        if headers or self.headers is not None:
            changed.headers = headers
            changed._raw_headers = octets, grammar
        return changed

    def rewritten(self) -> Self:
        """The properties with the headers as RabbitMQ writes them again (see `rewritten_table`).

        These are the same object if nothing changes.
        """
        raw = self._raw_headers
        if raw is None:
            return self
        octets, grammar = raw
        written = rewritten_table(octets, grammar)
        if written == octets:
            return self
        changed = copy.copy(self)
        changed.headers = grammar.decode(written, 0, len(written))[0]
        changed._raw_headers = written, grammar
        changed.headers = SingleHeaders(changed.headers)
        changed.headers.published = raw
        return changed

    def exact_headers(self) -> tuple[tuple[str, FieldValue, bytes], ...] | None:
        """The header fields as they were read (see `ExactTable`); None for headers set in Python."""
        as_read = self._headers_as_read()
        return None if as_read is None else exact_fields(*as_read)

    @classmethod
    def reader(cls, *names: str) -> Callable[[bytes], tuple[Any, ...]]:
        """Compile a function that reads only these properties, from encoded ones that begin with their flags.

        It returns a tuple of their values: None for absent ones, and for headers the encoded table. It raises
        the errors of `decode` except those inside of tables, and takes a third of the time.
        """
        reader: Callable[[bytes], tuple[Any, ...]] = _compile_reader(cls, names)
        return reader

    @classmethod
    def headers_offset(cls, octets: bytes) -> int | None:
        """The offset of the headers table in encoded properties, None if there is none.

        Reads only flags, and the lengths before the table. Raises FrameError or FieldError when they do not
        fit.
        """
        try:
            flags = _read_short(octets)[0]
            offset = _skip_flag_words(octets, 2, flags, 0, RABBITMQ) if flags & 1 else 2
        except (IndexError, struct.error):
            raise FrameError(f"{cls.NAME}: the payload ends inside the property flags") from None
        bit = 0x8000
        for name, kind in cls.FIELDS:
            if flags & bit:
                if name == "headers":
                    return offset
                offset = kind.measure(octets, offset)
            bit >>= 1
        return None

    @classmethod
    def take_header(cls, octets: bytes, name: str) -> tuple[bytes, bytes]:
        """Take the first header field of this name out of encoded properties, without decoding them.

        Returns the bytes of its value with its tag, empty if there is no such field, and the properties
        without it. Every other byte stays as it is, but an empty table is left out. Raises FrameError when
        the bytes up to the field are no properties.
        """
        start = cls.headers_offset(octets)
        if start is None:
            return b"", octets
        behind = skipped_string(octets, start, 4)
        table = octets[start:behind]
        value, rest = take_field(table, name, RABBITMQ)
        if len(rest) > 4:
            return value, octets[:start] + rest + octets[behind:]
        bit = [field.name for field in cls.FIELDS].index("headers")
        flags = _short.pack(_read_short(octets)[0] & ~(0x8000 >> bit))
        return value, flags + octets[2:start] + octets[behind:]

    def last_headers(self) -> Mapping[str, FieldValue]:
        """The headers as they were before they were `rewritten`; of several with one name the last."""
        headers = self.headers or {}
        return headers.last if isinstance(headers, SingleHeaders) else headers

    def headers_table(
        self, changes: Mapping[str, FieldInput | Removed] | None = None, remove: Iterable[str] = ()
    ) -> bytes:
        """The headers as an encoded table after the changes; every other field keeps its bytes."""
        octets, grammar = self._headers_as_read() or (encode_table(self.headers or {}), RABBITMQ)
        if not changes and not remove:
            return octets
        return splice_table(octets, {**(changes or {}), **dict.fromkeys(remove, REMOVED)}, grammar.unchecked)

    def _headers_bytes(self) -> bytes:
        """The encoded headers: the bytes that were read, unless `headers` has changed since."""
        as_read = self._headers_as_read()
        return encode_table(self.headers or {}) if as_read is None else as_read[0]

    def _headers_as_read(self) -> RawTable | None:
        """The bytes and grammar that the headers were read with; None when `headers` has changed since."""
        raw = self._raw_headers
        headers = dict(self.headers) if isinstance(self.headers, SingleHeaders) else self.headers
        if raw is None or not _same(raw[1].decode(raw[0], 0, len(raw[0]))[0], headers):
            return None
        return raw


def _same(one: object, other: object) -> bool:
    """Equal values of equal types all the way down: True is not 1 here, and nan is nan."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other or (one != one and other != other)


P = TypeVar("P", bound=Properties)


@dataclass_transform()
def properties(class_name: str, class_id: int) -> Callable[[type[P]], type[P]]:
    """Declare the properties of contents of a class: up to 15 annotated attributes. See `declare`.

    A property `headers` of the type `Headers` needs `_raw_headers: RawTable | None` beside it.
    """

    def declared(template: type[P]) -> type[P]:
        return declare(
            template,
            {
                "NAME": f"{class_name} properties",
                "CLASS_ID": class_id,
                "encode": OnFirstUse(_compile_encode),
                "decode": OnFirstUse(_compile_decode),
            },
        )

    return declared


def _compile_encode(owner: type[Properties]) -> Any:
    lines = ["def encode(self):", "    flags = 0", '    parts = [b""]', "    try:"]
    names: dict[str, Any] = {"pack_flags": _short.pack}
    for bit, (name, kind) in enumerate(owner.FIELDS):
        writer = Writer()
        kind.write(writer, f"self.{name}")
        writer.finish()
        names |= writer.names
        lines.append(f"        if self.{name} is not None:")
        parts = ", ".join(writer.parts)
        add = f"parts += ({parts})" if len(writer.parts) > 1 else f"parts.append({parts})"
        lines += indented([f"flags |= {0x8000 >> bit}", *writer.lines, add], 3)
    lines += ["    except UNWRITABLE:", "        raise unwritable(self) from None"]
    lines += ["    parts[0] = pack_flags(flags)", '    return b"".join(parts)']
    return compile_function(owner, lines, names)


def _compile_decode(owner: type[Properties]) -> Any:
    return classmethod(
        _compile_reading(
            owner,
            ["def decode(cls, payload, offset, grammar):", "    properties = cls()"],
            lambda field, reader: field.type.read(reader, f"properties.{field.name}"),
            ["    if grammar.checks:", "        forbid_nul(properties)", "    return properties"],
            {},
        )
    )


def _compile_reader(owner: type[Properties], names: tuple[str, ...]) -> Any:
    def read(field: Field, reader: Reader) -> None:
        if isinstance(field.type, TableType):
            field.type.read_encoded(reader, field.name)
        else:
            field.type.read(reader, field.name)

    return _compile_reading(
        owner,
        ["def read(payload):", "    offset = 0", f"    {' = '.join(names)} = None"],
        read,
        [f"    return {', '.join(names)},"],
        {"cls": owner, "grammar": RABBITMQ},
    )


def _compile_reading(
    owner: type[Properties],
    begin: list[str],
    read: Callable[[Field, Reader], None],
    finish: list[str],
    names: dict[str, Any],
) -> Any:
    """A function that reads all flagged properties with what `read` adds to a reader for each."""
    count = len(owner.FIELDS)
    unknown = 0xFFFE & 0xFFFF >> count
    names |= {
        "read_flags": _read_short,
        "skip_flag_words": _skip_flag_words,
        "unreadable_properties": _unreadable,
    }
    failed = f"raise unreadable_properties(cls, payload, offset, grammar, {unknown})"
    lines = [
        *begin,
        "    try:",
        "        flags = read_flags(payload, offset)[0]",
        "        end = offset + 2",
        f"        if flags & {unknown | 1}:",
        f"            end = skip_flag_words(payload, end, flags, {unknown}, grammar)",
    ]
    level = 2
    for bit, field in enumerate(owner.FIELDS):
        if bit == count // 3:
            # Most contents have none of the later properties. One test for all of them saves a sixth.
            lines += indented([f"if flags & {0xFFFF >> bit & ~unknown & ~1}:"], level)
            level += 1
        lines += indented([f"if flags & {0x8000 >> bit}:"], level)
        reader = Reader()
        read(field, reader)
        reader.finish()
        names |= reader.names
        lines += indented(reader.lines, level + 1)
    lines += ["    except UNREADABLE:", f"        {failed} from None"]
    lines += ["    if end != len(payload):", f"        {failed}", *finish]
    return compile_function(owner, lines, names)


def _skip_flag_words(octets: bytes, offset: int, flags: int, unknown: int, grammar: Grammar) -> int:
    """The offset behind all flag words; `flags` is the first one and `offset` is behind it.

    Raises FieldError when a flag stands for no property: the length of its value is unknown, so nothing
    behind it can be read. Raises IndexError or struct.error when a word is missing.
    """
    if flags & unknown or (flags & 1 and not grammar.flag_words):
        raise FieldError(f"property flags 0x{flags:04x} name a property that does not exist")
    while flags & 1:
        flags = _read_short(octets, offset)[0]
        offset += 2
        if flags & 0xFFFE:
            raise FieldError(f"further property flags 0x{flags:04x} name a property that does not exist")
    return offset


def _unreadable(
    record: type[Properties], octets: bytes, offset: int, grammar: Grammar, unknown: int
) -> WireError:
    """The error for `octets` that are not property flags and the flagged values from `offset` on."""
    try:
        flags: int = _read_short(octets, offset)[0]
        offset = _skip_flag_words(octets, offset + 2, flags, unknown, grammar)
    except FieldError as problem:
        return FieldError(f"{record.NAME}: {problem}")
    except (IndexError, struct.error):
        return FrameError(f"{record.NAME}: the payload ends inside the property flags")
    flagged = [field for bit, field in enumerate(record.FIELDS) if flags & 0x8000 >> bit]
    return unreadable(record, flagged, octets, offset, grammar)


@properties("basic", 60)
class BasicProperties(Properties):
    """What describes a content of class basic (60); None means absent."""

    content_type: ShortStr | None = None
    content_encoding: ShortStr | None = None
    headers: Headers | None = None
    delivery_mode: Octet | None = None
    priority: Octet | None = None
    correlation_id: ShortStr | None = None
    reply_to: ShortStr | None = None
    expiration: ShortStr | None = None
    message_id: ShortStr | None = None
    timestamp: Timestamp | None = None
    type: ShortStr | None = None
    user_id: ShortStr | None = None
    app_id: ShortStr | None = None
    cluster_id: ShortStr | None = None
    _raw_headers: RawTable | None = None
