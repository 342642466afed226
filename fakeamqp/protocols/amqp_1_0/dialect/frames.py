"""Frames of 1.0: what they hold, and the credentials in them."""

from __future__ import annotations

from typing import Any

from fakeamqp.protocols.amqp_1_0.codec import composites as c
from fakeamqp.protocols.amqp_1_0.codec.frames import AMQP, HEADER_KIND, SASL, frame_body
from fakeamqp.protocols.base.codec import WireError, hide_in_urls
from fakeamqp.trace.truncation import Truncated

_FILLER = b"*"
KIND_MASK = 0x1FF
_SECRET = frozenset(("sasl-init", "sasl-challenge", "sasl-response"))


def frame_type(kind: int) -> int:
    """The type of a frame of this kind."""
    return kind & KIND_MASK


def holds_performative(kind: int) -> bool:
    """True for frames of AMQP and of SASL."""
    return frame_type(kind) in (AMQP, SASL)


def name_of(kind: int, payload: bytes) -> str:
    """The name of the performative or SASL frame; "" if there is none."""
    return c.name_of(frame_body(kind, payload)) if holds_performative(kind) else ""


def decode(kind: int, payload: bytes) -> tuple[Any, bytes] | None:
    """The performative, and the payload behind it; None if it cannot be decoded."""
    if not holds_performative(kind) or not payload:
        return None
    body = frame_body(kind, payload)
    try:
        found, end = c.read_body(body)
    except WireError:
        return None
    return found, body[end:]


def is_protocol_header(kind: int) -> bool:
    """True for a protocol header among the frames."""
    return frame_type(kind) == HEADER_KIND


def redacted(kind: int, payload: bytes) -> bytes:
    """The payload with each secret replaced by asterisks of the same length.

    The secret of a PLAIN response is the password, that of any other one is all of it. The properties of open
    may hold passwords in URLs.
    """
    name = name_of(kind, payload)
    if name == "open":
        hidden = hide_in_urls(payload)
    elif name not in _SECRET:
        return payload
    else:
        read = None if isinstance(payload, Truncated) else decode(kind, payload)
        hidden = _hidden(payload, None if read is None else read[0])
    return Truncated.of(hidden, payload.size) if isinstance(payload, Truncated) else hidden


def _hidden(payload: bytes, body: Any) -> bytes:
    if body is None:
        return payload[:3] + _FILLER * (len(payload) - 3)
    fields = ("initial_response", "response", "challenge")
    secret = next(filter(None, (getattr(body, name, None) for name in fields)), b"")
    if getattr(body, "mechanism", None) == "PLAIN" and secret.count(b"\0") == 2:
        secret = secret[secret.rindex(b"\0") + 1 :]
    at = payload.rfind(secret) if secret else -1
    return payload if at < 0 else payload[:at] + _FILLER * len(secret) + payload[at + len(secret) :]
