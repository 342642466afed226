"""Frames of 0-10: their kinds, what they hold, and the credentials in them.

The kind of a frame is its flags and the type of its segment. A segment that is split into several frames,
which is rare, is not decoded; only its first frame has the name of the command.
"""

from __future__ import annotations

from typing import Any

from fakeamqp.protocols.amqp_0_10.codec import commands, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import (
    BEGINNING,
    COMMAND,
    CONTROL,
    FIRST_FRAME,
    HEADER,
    WHOLE_HEADER,
)
from fakeamqp.protocols.base.codec import WireError, hide_in_urls
from fakeamqp.trace.truncation import Truncated

TYPE_MASK = 0xFF
"""Masks the segment's type in a kind; the flags are above it."""
OFF_TRACK = 0x10000
"""Set in the kind of a frame that is on the wrong track."""
TABLES: dict[int, dict[int, type[Any]]] = {CONTROL: controls.CONTROLS, COMMAND: commands.COMMANDS}
HEARTBEAT_CODE = controls.ConnectionHeartbeat.INDEX.to_bytes(2, "big")


def is_heartbeat(kind: int, payload: bytes) -> bool:
    """True for a frame with the control connection.heartbeat."""
    return payload[:2] == HEARTBEAT_CODE and kind & TYPE_MASK == CONTROL


def starts(kind: int) -> bool:
    """True if an assembly begins with a frame of that kind."""
    return kind >> 8 & BEGINNING == BEGINNING


def is_whole(kind: int) -> bool:
    """True if the frame is its whole segment."""
    return kind >> 8 & WHOLE_HEADER == WHOLE_HEADER


def kind_of(kind: int, payload: bytes) -> type[Any] | None:
    """The control or command whose first frame this is."""
    if not kind >> 8 & FIRST_FRAME:
        return None
    return TABLES.get(kind & TYPE_MASK, {}).get(int.from_bytes(payload[:2], "big"))


def decode_strictly(kind: int, payload: bytes) -> Any:
    """The control, the command with its sync flag, or the structs of a whole segment. Raises WireError."""
    if kind & TYPE_MASK == CONTROL:
        return controls.decode(payload)
    return commands.decode(payload) if kind & TYPE_MASK == COMMAND else structs.decode_header(payload)


def decode(kind: int, payload: bytes) -> tuple[Any, bool] | None:
    """The control or command in a frame, and its sync flag; None if it cannot be decoded."""
    if kind_of(kind, payload) is None or not is_whole(kind):
        return None
    try:
        found = decode_strictly(kind, payload)
    except WireError:
        return None
    return (found, False) if kind & TYPE_MASK == CONTROL else found


def read_structs(kind: int, payload: bytes) -> tuple[Any, ...] | None:
    """The structs in a frame with a whole header segment; None if they cannot be decoded."""
    if kind & TYPE_MASK != HEADER or not is_whole(kind):
        return None
    try:
        return structs.decode_header(payload)
    except WireError:
        return None


# --- credentials -------------------------------------------------------------------------------------------

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
    if segment_type not in (CONTROL, COMMAND):
        return payload
    if segment_type == CONTROL and not kind >> 8 & FIRST_FRAME:
        hidden = _FILLER * len(payload)  # The control is unknown.
    elif int.from_bytes(payload[:_IDS], "big") not in _SECRET:
        return payload
    elif segment_type == COMMAND or isinstance(payload, Truncated) or decode(kind, payload) is None:
        hidden = payload[:_IDS] + _FILLER * (len(payload) - _IDS)
    else:
        about, start, end = _secret(payload)
        hidden = (
            hide_in_urls(payload[:about]) + payload[about:start] + _FILLER * (end - start) + payload[end:]
        )
    return Truncated.of(hidden, payload.size) if isinstance(payload, Truncated) else hidden


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
