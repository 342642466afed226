"""How what clients of 0-10 prove themselves with is kept out of what others may read."""

from __future__ import annotations

from fakeamqp.protocols.amqp_0_10.codec import controls
from fakeamqp.protocols.amqp_0_10.codec.frames import FIRST_FRAME, LAST_FRAME
from fakeamqp.protocols.amqp_0_10.codec.framing import TYPE_MASK
from fakeamqp.protocols.codec.errors import WireError
from fakeamqp.protocols.framed.trace.secrets import hide_in_urls
from fakeamqp.trace.parts import Cut

__all__ = ["redacted"]

_CONTROL, _COMMAND = 0, 1
_IDS = 2
_FLAGS = 2
_FILLER = b"*"
_SECRET = frozenset(
    kind.INDEX
    for kind in (controls.ConnectionStartOk, controls.ConnectionSecure, controls.ConnectionSecureOk)
)


def redacted(kind: int, payload: bytes) -> bytes:
    """The same payload with as many asterisks in the place of what is secret.

    Of a PLAIN response that is the password, of any other all of it; of what a client says of itself,
    passwords in URLs. Sizes stay as they are. Of a control that has secrets and cannot be read, also because
    it is but a part of one or came as a command, nothing but its class and code is left.
    """
    segment_type = kind & TYPE_MASK
    flags = kind >> 8
    if segment_type not in (_CONTROL, _COMMAND):
        return payload
    if segment_type == _CONTROL and not flags & FIRST_FRAME:
        hidden = _FILLER * len(payload)  # Of which control nobody knows.
    elif int.from_bytes(payload[:_IDS], "big") not in _SECRET:
        return payload
    elif segment_type == _COMMAND or not flags & LAST_FRAME or not _readable(payload):
        hidden = payload[:_IDS] + _FILLER * (len(payload) - _IDS)
    else:
        about, start, end = _secret(payload)
        hidden = (
            hide_in_urls(payload[:about]) + payload[about:start] + _FILLER * (end - start) + payload[end:]
        )
    return Cut.of(hidden, payload.size) if isinstance(payload, Cut) else hidden


def _readable(payload: bytes) -> bool:
    if isinstance(payload, Cut):
        return False
    try:
        controls.decode(payload)
    except WireError:
        return False
    return True


def _secret(payload: bytes) -> tuple[int, int, int]:
    """Where the client's properties end and the secret begins and ends, in a control that can be read."""
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
