"""What the codecs of all protocols share: errors, secrets, parts of contents, properties as headers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Final

from fakeamqp.errors import FakeAMQPError

#: The property `type`, under the name that Qpid Broker-J gives it when it converts messages.
TYPE_HEADER: Final = "x-jms-type"
#: The header for a message id that is no UUID, in a protocol that has no such field.
MESSAGE_ID_HEADER: Final = "x-amqp-0-9-1.message-id"
#: The header for an expiration that is no number of milliseconds.
EXPIRATION_HEADER: Final = "x-amqp-0-9-1.expiration"

SECRET_FIELDS = frozenset(("response", "challenge", "new_secret", "security_token"))
"""Fields of methods of any protocol; no other fields have these names."""
_IN_A_URL = re.compile(r"(?<=://)([^/:@\s]*):[^/\s]+(?=@)")
"""Some clients send the URL that they connect to among their properties."""
# Text in a table stands between bytes that are not text, so a match never runs into the next field.
_IN_THE_BYTES_OF_A_URL = re.compile(rb"(?<=://)([^/:@\x00-\x20]*:)([^/\x00-\x20]+)(?=@)")

#: Pieces of contents below this size, in bytes, are joined with the small one before them. As objects of
#: their own, payloads of a few bytes would take 20 times their size.
SMALL = 1024


class WireError(FakeAMQPError):
    """Bytes that cannot be decoded, or values that cannot be encoded; the text names field and reason.

    `condition` is the name of the reply code for the peer, as the protocol's constants spell it.
    """

    __module__ = "fakeamqp.errors"

    condition: ClassVar[str] = "frame-error"


class FrameError(WireError):
    """Lengths that do not fit: truncated, overrunning or left-over bytes (501 frame-error)."""

    __module__ = "fakeamqp.errors"


class FieldError(WireError):
    """An illegal value: an unknown tag, a number out of range, an overlong name (502 syntax-error)."""

    __module__ = "fakeamqp.errors"

    condition: ClassVar[str] = "syntax-error"


class FieldNameError(WireError):
    """A field-table name that breaks the published name syntax (503 command-invalid).

    Source: 0-9-1/types/table-name-validation.
    """

    __module__ = "fakeamqp.errors"

    condition: ClassVar[str] = "command-invalid"


def shown_fields(fields: Iterable[tuple[str, object]]) -> str:
    """Fields for a repr; a secret is as many asterisks."""
    return ", ".join(f"{name}={_shown(name, value)}" for name, value in fields)


def _shown(name: str, value: object) -> str:
    if name in SECRET_FIELDS and isinstance(value, bytes):
        return repr(b"*" * len(value))
    text = repr(value)
    return _IN_A_URL.sub(r"\1:***", text) if name == "client_properties" else text


def hide_in_urls(octets: bytes) -> bytes:
    """Replace passwords in URLs by as many asterisks."""
    return _IN_THE_BYTES_OF_A_URL.sub(lambda found: found[1] + b"*" * len(found[2]), octets)


def add_piece(pieces: list[bytes | bytearray], octets: bytes) -> None:
    """Add bytes behind the others. A single piece stays the object that it is, and is never copied."""
    if pieces and len(octets) < SMALL:
        last = pieces[-1]
        if isinstance(last, bytearray):
            last += octets
            return
        if len(last) < SMALL:
            pieces[-1] = bytearray(last + octets)
            return
    pieces.append(octets)


def ttl(expiration: str) -> int | None:
    """The milliseconds of an expiration; None where the text is not what a number is written as."""
    if not (expiration.isascii() and expiration.isdigit()) or len(expiration) > 20:
        return None
    number = int(expiration)
    return number if str(number) == expiration and number < 1 << 64 else None


def encoded(text: str) -> bytes:
    """A text in UTF-8; lone surrogates that stand for bytes turn back into them."""
    return text.encode("utf-8", "surrogateescape")


def fits_short_string(text: str) -> bool:
    """True for a text of at most 255 bytes."""
    try:
        return len(encoded(text)) <= 255
    except UnicodeEncodeError:
        return False
