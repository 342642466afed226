"""Errors in the bytes of AMQP 0-10."""

from __future__ import annotations

from typing import ClassVar

from fakeamqp.protocols.base.codec import WireError


class FramingError(WireError):
    """Frames that are malformed or out of order (501 framing-error, which closes the connection)."""

    condition: ClassVar[str] = "framing-error"


class SegmentError(WireError):
    """Bytes of a control, a command or a struct that cannot be read, or values that cannot be written.

    `field_index` is the index of the wrong field, counted from 0; None where the error is in no field.
    """

    condition: ClassVar[str] = "command-invalid"

    def __init__(self, text: str, field_index: int | None = None) -> None:
        super().__init__(text)
        self.field_index = field_index


class IllegalValue(SegmentError):
    """A value outside of its domain: encoding/domain-check, types/map-distinct-keys, types/unknown-code."""

    condition: ClassVar[str] = "illegal-argument"
