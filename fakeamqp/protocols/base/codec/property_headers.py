"""Headers that carry message properties through a protocol that has no field for them."""

from __future__ import annotations

from typing import Final

__all__ = ["EXPIRATION_HEADER", "MESSAGE_ID_HEADER", "TYPE_HEADER", "encoded", "fits_short_string", "ttl"]

#: The property `type`, under the name that Qpid Broker-J gives it when it converts messages.
TYPE_HEADER: Final = "x-jms-type"
#: A message id that is no UUID.
MESSAGE_ID_HEADER: Final = "x-amqp-0-9-1.message-id"
#: An expiration that is no number of milliseconds.
EXPIRATION_HEADER: Final = "x-amqp-0-9-1.expiration"

_LONGEST = 255


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
        return len(encoded(text)) <= _LONGEST
    except UnicodeEncodeError:
        return False
