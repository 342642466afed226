"""Redaction of credentials: passwords, tokens and passwords in URLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec.frames import FRAME_METHOD
from fakeamqp.protocols.amqp_0_9_1.codec.record import apart
from fakeamqp.protocols.base.codec import FrameError, hide_in_urls
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.dialect import Dialect091

__all__ = ["redacted"]

_FILLER = b"*"
_IDS = 4
_CONNECTION = 10
_PASSWORD = b"\x08PASSWORDS"


def redacted(dialect: Dialect091, frame_type: int, payload: bytes, channel: int) -> bytes:
    """The payload with each secret replaced by asterisks of the same length.

    The secret of a PLAIN or AMQPLAIN response is the password, that of any other response is all of it.
    In client properties the secrets are passwords in URLs. A method with secrets that cannot be decoded
    keeps only its ids; so does one that came in a frame of another type.
    """
    index = int.from_bytes(payload[:_IDS], "big")
    # A frame of another type is checked on channel 0 only: on other channels it belongs to a message.
    if index not in dialect.secretive or (frame_type != FRAME_METHOD and channel):
        return payload
    if frame_type != FRAME_METHOD:
        hidden = payload[:_IDS] + _FILLER * (len(payload) - _IDS)
    else:
        hidden = _redacted_method(dialect, payload)
    return Truncated.of(hidden, payload.size) if isinstance(payload, Truncated) else hidden


def _redacted_method(dialect: Dialect091, payload: bytes) -> bytes:
    kind = dialect.methods[int.from_bytes(payload[:_IDS], "big")]
    if not _readable(dialect, kind, payload):
        return payload[:_IDS] + _FILLER * (len(payload) - _IDS)
    octets = bytearray(payload)
    mechanism = b""
    end = _IDS
    for name, field_type in apart(kind.FIELDS):
        start = end + field_type.prefix
        try:
            end = field_type.measure(payload, end)
        except FrameError:
            end = len(payload)
        if name == "mechanism":
            mechanism = payload[start:end]
        elif name in dialect.fields_with_urls:
            octets[start:end] = hide_in_urls(payload[start:end])
        elif name in dialect.secret_fields:
            from_, to = _secret(mechanism, payload, start, end)
            octets[from_:to] = _FILLER * len(octets[from_:to])
    return bytes(octets)


def _readable(dialect: Dialect091, kind: type[Method], payload: bytes) -> bool:
    """True if the secrets are at their places in the payload.

    For a truncated method this is unknown. A method of the connection class is then hidden, since it has
    little else than credentials; other methods are shown.
    """
    if isinstance(payload, Truncated):
        return kind.CLASS_ID != _CONNECTION
    return dialect.decode_method(payload) is not None


def _secret(mechanism: bytes, payload: bytes, start: int, end: int) -> tuple[int, int]:
    """The start and end of the secret in a field."""
    response = payload[start:end]
    if mechanism == b"PLAIN" and response.count(b"\0") == 2:
        return start + response.rindex(b"\0") + 1, end
    if mechanism == b"AMQPLAIN":
        return _password(response, start) or (start, end)
    return start, end


def _password(response: bytes, offset: int) -> tuple[int, int] | None:
    """The start and end of the password in an AMQPLAIN response; it is a field of the table."""
    found = response.find(_PASSWORD)
    if found < 0 or response.count(_PASSWORD) > 1:
        return None
    start = found + len(_PASSWORD) + 4
    end = start + int.from_bytes(response[start - 4 : start], "big")
    return (offset + start, offset + end) if end <= len(response) else None
