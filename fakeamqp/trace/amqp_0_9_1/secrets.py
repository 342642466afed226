"""What clients prove themselves with, and how it is kept out of what others may read."""

from __future__ import annotations

import re

from fakeamqp.trace.parts import Cut
from fakeamqp.wire.amqp_0_9_1 import methods as m
from fakeamqp.wire.amqp_0_9_x.frames import FRAME_METHOD
from fakeamqp.wire.amqp_0_9_x.tables import PUBLISHED, RABBITMQ
from fakeamqp.wire.errors import WireError

__all__ = ["SECRET_FIELDS", "SECRET_METHODS", "hide_in_urls", "redacted"]

SECRET_FIELDS = frozenset(("response", "challenge", "new_secret"))
"""Fields of methods that are never shown."""

SECRET_METHODS = frozenset(
    (
        m.ConnectionStartOk.INDEX,
        m.ConnectionSecure.INDEX,
        m.ConnectionSecureOk.INDEX,
        m.ConnectionUpdateSecret.INDEX,
    )
)
"""The methods that have such fields."""

_FILLER = b"*"
_IDS = 4
_PASSWORD = b"\x08PASSWORDS"
# Some clients tell the broker the URL they have been given. Text of tables stands between octets that are
# no text, so a match never goes on into the next field.
_IN_A_URL = re.compile(rb"(?<=://)([^/:@\x00-\x20]*:)([^/\x00-\x20]+)(?=@)")


def redacted(frame_type: int, payload: bytes, channel: int = 0) -> bytes:
    """The same payload with as many asterisks in the place of what is secret.

    Of a PLAIN or AMQPLAIN response that is the password, of any other all of it; of what a client says of
    itself, passwords in URLs. Sizes stay as they are. Of a method that has secrets and cannot be read, also
    because it came as another type of frame, nothing but its ids is left.
    """
    index = int.from_bytes(payload[:_IDS], "big")
    # Of other types only what came on channel 0: elsewhere it is a message, and it may begin as it likes.
    if index not in SECRET_METHODS or (frame_type != FRAME_METHOD and channel):
        return payload
    if frame_type != FRAME_METHOD or not _readable(index, payload):
        hidden = payload[:_IDS] + _FILLER * (len(payload) - _IDS)
    else:
        about, start, end = _secret(index, payload)
        hidden = hide_in_urls(payload[:about]) + payload[about:start]
        hidden += _FILLER * (end - start) + payload[end:]
    return Cut.of(hidden, payload.size) if isinstance(payload, Cut) else hidden


def _readable(index: int, payload: bytes) -> bool:
    if isinstance(payload, Cut):
        return False
    for grammar in (RABBITMQ, PUBLISHED):
        try:
            m.METHODS[index].decode(payload, grammar)
        except WireError:
            continue
        return True
    return False


def hide_in_urls(octets: bytes) -> bytes:
    """Put asterisks in the place of passwords in URLs."""
    return _IN_A_URL.sub(_hidden_password, octets)


def _hidden_password(found: re.Match[bytes]) -> bytes:
    return found[1] + _FILLER * len(found[2])


def _secret(index: int, payload: bytes) -> tuple[int, int, int]:
    """Where the client's properties end and the secret begins and ends, in a method that can be read."""
    start = about = _IDS
    mechanism = b""
    if index == m.ConnectionStartOk.INDEX:
        start += 4 + int.from_bytes(payload[start : start + 4], "big")
        about = start
        size = int.from_bytes(payload[start : start + 1], "big")
        mechanism = payload[start + 1 : start + 1 + size]
        start += 1 + size
    end = start + 4 + int.from_bytes(payload[start : start + 4], "big")
    start += 4
    response = payload[start:end]
    if mechanism == b"PLAIN" and response.count(b"\0") == 2:
        start += response.rindex(b"\0") + 1
    elif mechanism == b"AMQPLAIN":
        start, end = _password(response, start) or (start, end)
    return about, start, end


def _password(response: bytes, offset: int) -> tuple[int, int] | None:
    """Where the password of an AMQPLAIN response lies: a field of its table."""
    found = response.find(_PASSWORD)
    if found < 0 or response.count(_PASSWORD) > 1:
        return None
    start = found + len(_PASSWORD) + 4
    end = start + int.from_bytes(response[start - 4 : start], "big")
    return (offset + start, offset + end) if end <= len(response) else None
