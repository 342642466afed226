"""Redaction of the credentials of 0-10 clients."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_10.codec import controls
from fakeamqp.protocols.amqp_0_10.codec.frames import FIRST_FRAME, LAST_FRAME
from fakeamqp.protocols.amqp_0_10.dialect.framing import COMMAND, CONTROL, TYPE_MASK
from fakeamqp.protocols.base.codec import WireError, hide_in_urls
from fakeamqp.trace.truncation import Truncated

__all__ = ["redacted"]

_IDS = 2
_FLAGS = 2
_FILLER = b"*"
_SECRET = frozenset(
    kind.INDEX
    for kind in (controls.ConnectionStartOk, controls.ConnectionSecure, controls.ConnectionSecureOk)
)


def redacted(kind: int, payload: bytes) -> bytes:
    """The payload with each secret replaced by asterisks of the same length.

    The secret of a PLAIN response is the password, that of any other response is all of it. In client
    properties the secrets are passwords in URLs. A control with secrets that cannot be decoded keeps only its
    class and code; so does a part of one, and one that came as a command.
    """
    segment_type = kind & TYPE_MASK
    flags = kind >> 8
    if segment_type not in (CONTROL, COMMAND):
        return payload
    if segment_type == CONTROL and not flags & FIRST_FRAME:
        hidden = _FILLER * len(payload)  # The control is unknown.
    elif int.from_bytes(payload[:_IDS], "big") not in _SECRET:
        return payload
    elif segment_type == COMMAND or not flags & LAST_FRAME or not _readable(payload):
        hidden = payload[:_IDS] + _FILLER * (len(payload) - _IDS)
    else:
        about, start, end = _secret(payload)
        hidden = (
            hide_in_urls(payload[:about]) + payload[about:start] + _FILLER * (end - start) + payload[end:]
        )
    return Truncated.of(hidden, payload.size) if isinstance(payload, Truncated) else hidden


def _readable(payload: bytes) -> bool:
    if isinstance(payload, Truncated):
        return False
    try:
        controls.decode(payload)
    except WireError:
        return False
    return True


def _secret(payload: bytes) -> tuple[int, int, int]:
    """The end of the client properties, and the start and end of the secret, in a decodable control."""
    position = about = _IDS + _FLAGS
    flags = payload[_IDS]
    mechanism = b""
    if int.from_bytes(payload[:_IDS], "big") != controls.ConnectionStartOk.INDEX:
        response = flags & 1
    else:
        if flags & 1:
            position += 4 + int.from_bytes(payload[position : position + 4], "big")
            about = position
        if flags & 2:
            size = payload[position]
            mechanism = payload[position + 1 : position + 1 + size]
            position += 1 + size
        response = flags & 4
    if not response:
        return about, position, position
    end = position + 4 + int.from_bytes(payload[position : position + 4], "big")
    position += 4
    secret = payload[position:end]
    if mechanism == b"PLAIN" and secret.count(b"\0") == 2:
        position += secret.rindex(b"\0") + 1
    return about, position, end
