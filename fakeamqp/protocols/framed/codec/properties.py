"""What every generated class of content properties has in common.

Property flags come first, bit 15 of a word for the first property (0-9-1/content/flags-order), bit 0 for
"another word follows" (0-9-1/content/flags-continuation); then the values of the flagged properties.
"""

from __future__ import annotations

import copy
import struct
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from fakeamqp.protocols.codec.errors import FieldError, FrameError, WireError
from fakeamqp.protocols.framed.codec.method import Record, unreadable
from fakeamqp.protocols.framed.codec.tables import (
    RABBITMQ,
    REMOVED,
    Removed,
    encode_table,
    field_tag,
    sorted_table,
    splice_table,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.protocols.framed.codec.tables import FieldInput, FieldValue, Grammar

    #: the bytes of a table as they came, and the grammar they were read with
    RawTable: TypeAlias = tuple[bytes, Grammar]

__all__ = ["Properties", "skip_flag_words", "unreadable_properties"]

_read_short = struct.Struct(">H").unpack_from


class Properties(Record):
    """Content properties with a `headers` table whose bytes outlive decoding."""

    if TYPE_CHECKING:  # the generated classes have the slots
        headers: dict[str, FieldValue] | None
        _raw_headers: RawTable | None
    else:
        __slots__ = ()

    @classmethod
    @abstractmethod
    def decode(cls, payload: bytes, offset: int, grammar: Grammar) -> Self:
        """Read flags and values from `offset` on.

        Raises FrameError when the bytes are too few or too many, FieldError or FieldNameError for illegal
        values.
        """

    def replace(self, **changes: Any) -> Self:
        """A copy with other values for some properties. Raises FieldError for a name that is no property."""
        changed = copy.copy(self)
        known = dict(self.LAYOUT)
        for name, value in changes.items():
            if name not in known:
                raise FieldError(f"{self.NAME} have no {name!r}; there are {', '.join(known)}")
            setattr(changed, name, value)
        return changed

    def header_tag(self, name: str) -> str | None:
        """The tag, as a letter, that a header field was read with; None where it was not read."""
        as_read = self._headers_as_read()
        return None if as_read is None else field_tag(*as_read, name)

    def with_headers(
        self,
        changes: Mapping[str, FieldInput | Removed],
        remove: Iterable[str] = (),
        *,
        ordered: bool = False,
    ) -> Self:
        """A copy with header fields added or replaced, and those named in `remove` taken away.

        Every other header field is written back with the bytes and tag it came with. `ordered` sorts the
        fields by the bytes of their names. Raises FieldError for a value that a field table cannot hold.
        """
        octets, grammar = self._headers_as_read() or (None, RABBITMQ)
        if octets is None:
            octets = encode_table(self.headers or {})
        octets = splice_table(octets, {**changes, **dict.fromkeys(remove, REMOVED)}, grammar)
        if ordered:
            octets = sorted_table(octets, grammar)
        changed = copy.copy(self)
        headers, _ = grammar.decode(octets, 0, len(octets))
        if headers or self.headers is not None:
            changed.headers = headers
            changed._raw_headers = octets, grammar
        return changed

    def headers_table(
        self, changes: Mapping[str, FieldInput | Removed] | None = None, remove: Iterable[str] = ()
    ) -> bytes:
        """The headers as a table, some set and some taken out; the others keep the bytes they came with."""
        octets, grammar = self._headers_as_read() or (encode_table(self.headers or {}), RABBITMQ)
        if not changes and not remove:
            return octets
        return splice_table(octets, {**(changes or {}), **dict.fromkeys(remove, REMOVED)}, grammar.unchecked)

    def _headers_bytes(self) -> bytes:
        """The table to write: as it was read, unless `headers` has been changed since."""
        as_read = self._headers_as_read()
        return encode_table(self.headers or {}) if as_read is None else as_read[0]

    def _headers_as_read(self) -> RawTable | None:
        """Bytes and grammar the headers were read with; None when they no longer say what `headers` says."""
        raw = self._raw_headers
        if raw is None or not _same(raw[1].decode(raw[0], 0, len(raw[0]))[0], self.headers):
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


def skip_flag_words(octets: bytes, offset: int, flags: int, unknown: int) -> int:
    """The offset behind all flag words; `flags` is the first one and `offset` is behind it.

    Raises FieldError when a flag stands for no property (its value has no known length, so nothing behind it
    can be read), IndexError or struct.error when a word is missing.
    """
    if flags & unknown:
        raise FieldError(f"property flags 0x{flags:04x} name a property that does not exist")
    while flags & 1:
        flags = _read_short(octets, offset)[0]
        offset += 2
        if flags & 0xFFFE:
            raise FieldError(f"further property flags 0x{flags:04x} name a property that does not exist")
    return offset


def unreadable_properties(
    record: type[Properties], octets: bytes, offset: int, grammar: Grammar, unknown: int
) -> WireError:
    """Say why `octets` from `offset` on are not property flags and the values they announce."""
    try:
        flags: int = _read_short(octets, offset)[0]
        offset = skip_flag_words(octets, offset + 2, flags, unknown)
    except FieldError as problem:
        return FieldError(f"{record.NAME}: {problem}")
    except (IndexError, struct.error):
        return FrameError(f"{record.NAME}: the payload ends inside the property flags")
    layout = tuple(entry for bit, entry in enumerate(record.LAYOUT) if flags & 0x8000 >> bit)
    return unreadable(record, layout, octets, offset, grammar)
