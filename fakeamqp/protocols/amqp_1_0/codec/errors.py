"""Errors in the bytes of AMQP 1.0."""

from __future__ import annotations

from typing import ClassVar

from fakeamqp.protocols.base.codec import WireError


class FramingError(WireError):
    """A frame with a wrong header or of a wrong size (amqp:connection:framing-error)."""

    condition: ClassVar[str] = "framing-error"


class DecodeError(WireError):
    """Bytes that are no value of the type system, or not the one that is expected (amqp:decode-error)."""

    condition: ClassVar[str] = "decode-error"


class FieldError(DecodeError):
    """No composite of the expected kind, or one with a field that is missing or of another type."""
