"""What clients prove themselves with, and how it is kept out of what others may read."""

from __future__ import annotations

from fakeamqp.trace.parts import Cut
from fakeamqp.wire.amqp_0_9_1 import methods as m
from fakeamqp.wire.amqp_0_9_x.frames import FRAME_METHOD

__all__ = ["SECRET_FIELDS", "SECRET_METHODS", "redacted"]

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


def redacted(frame_type: int, payload: bytes) -> bytes:
    """The same payload with as many asterisks in the place of what is secret.

    Of a PLAIN or AMQPLAIN response that is the password, of any other all of it. Sizes stay as they are. Of a
    method that has secrets and cannot be read, nothing but its ids is left.
    """
    index = int.from_bytes(payload[:_IDS], "big")
    if frame_type != FRAME_METHOD or index not in SECRET_METHODS:
        return payload
    start, end = _secret(index, payload) or (_IDS, len(payload))
    hidden = payload[:start] + _FILLER * (end - start) + payload[end:]
    return Cut.of(hidden, payload.size) if isinstance(payload, Cut) else hidden


def _secret(index: int, payload: bytes) -> tuple[int, int] | None:
    """From where to where the secret lies, or None where that cannot be told."""
    start = _IDS
    mechanism = b""
    if index == m.ConnectionStartOk.INDEX:
        start += 4 + int.from_bytes(payload[start : start + 4], "big")
        size = int.from_bytes(payload[start : start + 1], "big")
        mechanism = payload[start + 1 : start + 1 + size]
        start += 1 + size
    end = start + 4 + int.from_bytes(payload[start : start + 4], "big")
    start += 4
    if start > end or end > len(payload):
        return None
    response = payload[start:end]
    if mechanism == b"PLAIN" and response.count(b"\0") == 2:
        return start + response.rindex(b"\0") + 1, end
    if mechanism == b"AMQPLAIN":
        return _password(response, start) or (start, end)
    return start, end


def _password(response: bytes, offset: int) -> tuple[int, int] | None:
    """Where the password of an AMQPLAIN response lies: a field of its table."""
    found = response.find(_PASSWORD)
    if found < 0 or response.count(_PASSWORD) > 1:
        return None
    start = found + len(_PASSWORD) + 4
    end = start + int.from_bytes(response[start - 4 : start], "big")
    return (offset + start, offset + end) if end <= len(response) else None
