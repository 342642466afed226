"""Errors of decoding and encoding."""

from __future__ import annotations

from typing import ClassVar

from fakeamqp.errors import FakeAMQPError

__all__ = ["FieldError", "FieldNameError", "FrameError", "WireError"]


class WireError(FakeAMQPError):
    """Bytes that cannot be decoded, or values that cannot be encoded; the text names field and reason.

    `condition` is the name of the reply code for the peer, as the protocol's constants spell it.
    """

    condition: ClassVar[str] = "frame-error"


class FrameError(WireError):
    """Lengths that do not fit: truncated, overrunning or left-over bytes (501 frame-error)."""

    condition: ClassVar[str] = "frame-error"


class FieldError(WireError):
    """An illegal value: an unknown tag, a number out of range, an overlong name (502 syntax-error)."""

    condition: ClassVar[str] = "syntax-error"


class FieldNameError(WireError):
    """A field-table name that breaks the published name syntax (503 command-invalid).

    Source: 0-9-1/types/table-name-validation.
    """

    condition: ClassVar[str] = "command-invalid"
