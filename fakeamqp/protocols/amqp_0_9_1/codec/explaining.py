"""Errors of the codec: they name the field that cannot be read or written.

The compiled functions do not check fields one by one. After a failure, `unreadable` and `unwritable` check
them in order.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec.fields import BitType
from fakeamqp.protocols.base.codec import FieldError, FrameError, WireError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fakeamqp.protocols.amqp_0_9_1.codec.record import Field, Record
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar

__all__ = ["UNREADABLE", "UNWRITABLE", "fits", "forbid_nul", "unreadable", "unwritable"]

#: What reading malformed bytes may raise before `unreadable` explains it.
UNREADABLE = (IndexError, struct.error, WireError)
#: What writing unfit values may raise before `unwritable` explains it.
UNWRITABLE = (AttributeError, IndexError, TypeError, UnicodeError, struct.error, WireError)


def forbid_nul(record: Record) -> None:
    """Raise FieldError when a short string holds a zero byte. Source: 0-9-1/types/shortstr-no-nul."""
    for name, kind in record.LAYOUT:
        if kind == "shortstr" and "\0" in (getattr(record, name) or ""):
            raise FieldError(f"{record.NAME}, field {name}: a short string must not hold a zero byte")


def unreadable(
    record: type[Record], fields: Iterable[Field], octets: bytes, offset: int, grammar: Grammar
) -> WireError:
    """The error for `octets` that are not one value for each of `fields` from `offset` on."""
    for name, kind in _apart(fields):
        try:
            offset = kind.skip(octets, offset, grammar)
        except WireError as problem:
            return type(problem)(f"{record.NAME}, field {name}: {problem}")
    return FrameError(f"{record.NAME}: {len(octets) - offset} bytes are left over after the last field")


def fits(fields: Iterable[Field], octets: bytes, offset: int) -> bool:
    """True if `octets` have from `offset` on the lengths of these fields, whatever their tables contain."""
    try:
        for _, kind in _apart(fields):
            offset = kind.measure(octets, offset)
    except FrameError:
        return False
    return offset == len(octets)


def _apart(fields: Iterable[Field]) -> Iterator[Field]:
    """The fields that take bytes of their own: of bits that share a byte, the first."""
    bits = 0
    for field in fields:
        bits = bits + 1 if isinstance(field.type, BitType) else 0
        if not bits or bits % 8 == 1:
            yield field


def unwritable(record: Record) -> FieldError:
    """The error for a record with a value that its field cannot hold."""
    for name, kind in record.FIELDS:
        value = getattr(record, name)
        if value is None and record.OPTIONAL:
            continue
        try:
            kind.check(value)
        except (AttributeError, TypeError):
            return FieldError(f"{record.NAME}, field {name}: {value!r:.80} is no {kind.name}")
        except WireError as problem:
            return FieldError(f"{record.NAME}, field {name}: {problem}")
    return FieldError(f"{record.NAME}: {record!r:.200} cannot be written")
