"""What recordings and texts of 0-9-x leave out: secrets of methods, and chosen fields of contents.

Bytes are replaced in place, so that all else keeps its place and its encoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.protocols.amqp_0_9_1.codec.frames import CONTENT_HEADER
from fakeamqp.protocols.amqp_0_9_1.codec.record import apart
from fakeamqp.protocols.amqp_0_9_1.codec.tables import hide_fields
from fakeamqp.protocols.base.codec import FrameError, WireError, hide_in_urls
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    from collections.abc import Collection

    from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
    from fakeamqp.protocols.amqp_0_9_1.codec.tables import Grammar
    from fakeamqp.protocols.amqp_0_9_1.dialect import Dialect091

FILLER = b"*"
IDS = 4
"""The bytes of the class and method ids."""
_CONNECTION = 10
_PASSWORD = b"\x08PASSWORDS"
_HEADERS = "headers"


def redacted_method(dialect: Dialect091, payload: bytes) -> bytes:
    """A method without its secrets."""
    kind = dialect.methods[int.from_bytes(payload[:IDS], "big")]
    if not _readable(dialect, kind, payload):
        return payload[:IDS] + FILLER * (len(payload) - IDS)
    octets = bytearray(payload)
    mechanism = b""
    end = IDS
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
            octets[from_:to] = FILLER * len(octets[from_:to])
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


def hidden_header(dialect: Dialect091, payload: bytes, fields: Collection[str]) -> bytes:
    """A content header with these properties and fields of `headers` replaced; see `Dialect.hidden`.

    Texts become asterisks, numbers zeros. Of properties that cannot be decoded nothing is left.
    """
    start = CONTENT_HEADER.size
    kind = dialect.properties_class(CONTENT_HEADER.unpack_from(payload)[0])
    for grammar in dialect.grammars:
        try:
            kind.decode(payload, start, grammar)
        except WireError:
            continue
        break
    else:
        return payload[:start] + FILLER * (len(payload) - start)
    octets = bytearray(payload)
    flags = int.from_bytes(payload[start : start + 2], "big")
    start += 2
    for bit, (name, field_type) in enumerate(kind.FIELDS):
        if not flags & 0x8000 >> bit:
            continue
        end = field_type.measure(payload, start)
        if name == _HEADERS:
            _hide_headers(octets, start, end, fields, grammar)
        elif name in fields:
            first = start + field_type.prefix
            octets[first:end] = (FILLER if field_type.prefix else b"\0") * (end - first)
        start = end
    return bytes(octets)


def _hide_headers(octets: bytearray, start: int, end: int, fields: Collection[str], grammar: Grammar) -> None:
    names = None
    if _HEADERS not in fields:
        names = {each.partition(".")[2].casefold() for each in fields if each.startswith(f"{_HEADERS}.")}
    octets[start:end] = hide_fields(bytes(octets[start:end]), names, grammar)
