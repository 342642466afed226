"""What can be wrong with the bytes of AMQP 0-10."""

from __future__ import annotations

from typing import ClassVar

from fakeamqp.protocols.codec.errors import WireError

__all__ = [
    "FramingError",
    "IllegalValue",
    "OversizeAssembly",
    "SegmentError",
    "UnknownCommand",
    "UnknownControl",
]


class FramingError(WireError):
    """Frames that cannot be, or do not fit those before them (501 framing-error, ends the connection)."""

    condition: ClassVar[str] = "framing-error"


class OversizeAssembly(FramingError):
    """More bytes in one assembly than whoever reads it is ready to keep."""


class UnknownControl(FramingError):
    """Class and code of a control that there is not."""


class SegmentError(WireError):
    """Bytes of a control, a command or a struct that cannot be read, or values that cannot be written.

    `field_index` is the field to blame, counted from 0; None where it is none of them.
    """

    condition: ClassVar[str] = "command-invalid"

    def __init__(self, text: str, field_index: int | None = None) -> None:
        super().__init__(text)
        self.field_index = field_index


class UnknownCommand(SegmentError):
    """Class and code of a command that there is not."""


class IllegalValue(SegmentError):
    """A value outside of its domain: encoding/domain-check, types/map-distinct-keys, types/unknown-code."""

    condition: ClassVar[str] = "illegal-argument"
