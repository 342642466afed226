"""The types of the fields of controls, commands and structs.

A declaration annotates each field with one of these aliases, or with `X | None`, where X is SequenceSet,
ByteRanges, a struct or a sequence of structs without code. `field_types` reads the annotations.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar, get_args, get_origin

from fakeamqp.protocols.amqp_0_10.codec.serial import ByteRanges, SequenceSet

_T = TypeVar("_T")

# --- annotations -------------------------------------------------------------------------------------------

Bit = Annotated[bool, "bit"]
Uint8 = Annotated[int | None, "uint8"]
Uint16 = Annotated[int | None, "uint16"]
Uint32 = Annotated[int | None, "uint32"]
Uint64 = Annotated[int | None, "uint64"]
DateTime = Annotated[int | None, "datetime"]
SequenceNo = Annotated[int | None, "sequence-no"]
Str8 = Annotated[str | None, "str8"]
Str16 = Annotated[str | None, "str16"]
Vbin8 = Annotated[bytes | None, "vbin8"]
Vbin16 = Annotated[bytes | None, "vbin16"]
Vbin32 = Annotated[bytes | None, "vbin32"]
AnyMap = Annotated[Mapping[str, Any] | None, "map"]
AnyArray = Annotated[Sequence[Any] | None, "array"]
AnyStruct32 = Annotated[Any | None, "struct32"]
if TYPE_CHECKING:
    from uuid import UUID

    Uuid = Annotated[UUID | None, "uuid"]
else:  # Importing uuid takes longer than importing all declarations.
    Uuid = Annotated[Any, "uuid"]

_REQUIRED: Final = object()
#: Marks a field that the protocol calls required. Real peers leave such fields out, and the codec lets them.
Required = Annotated[_T, _REQUIRED]


Kinds: TypeAlias = tuple[tuple[str, str], ...]
Domains: TypeAlias = Mapping[str, Container[int]]


def field_types(declaration: type[Any]) -> tuple[Kinds, tuple[str, ...], Domains]:
    """What the annotations of a declaration say.

    Returns name and type of each field, in their order on the wire; the fields that are required; and the
    values of each field that is annotated with an enumeration.
    """
    names = vars(sys.modules[declaration.__module__])
    kinds: list[tuple[str, str]] = []
    required: list[str] = []
    domains: dict[str, Container[int]] = {}
    for field, text in declaration.__annotations__.items():
        annotation = eval(text, names)
        marks = getattr(annotation, "__metadata__", ())
        kinds.append((field, _kind(annotation.__origin__ if marks else annotation, marks)))
        for mark in marks:
            if mark is _REQUIRED:
                required.append(field)
            elif not isinstance(mark, str):
                domains[field] = frozenset(map(int, mark))
    return tuple(kinds), tuple(required), domains


def _kind(annotation: Any, marks: tuple[Any, ...]) -> str:
    """The type of a field: that of its alias, else that of `X | None` or `Sequence[X] | None`."""
    if marks and isinstance(marks[0], str):
        return marks[0]
    holds = get_args(annotation)[0]
    if get_origin(holds) is not None:
        return f"array:{get_args(holds)[0].NAME}"
    return {SequenceSet: "sequence-set", ByteRanges: "byte-ranges"}.get(holds) or f"struct:{holds.NAME}"
