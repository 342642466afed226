"""Frames that the broker sent in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.dialects import default_protocol, protocol_named
from fakeamqp.trace.truncation import Truncated

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["frames_in"]


def frames_in(octets: bytes, protocol: str | None = None) -> Iterator[tuple[int, int, bytes]]:
    """Type, channel and payload of each frame. A frame that is not complete has a `Truncated` payload."""
    row = default_protocol() if protocol is None else protocol_named(protocol)
    for kind, channel, payload, size in row.dialect.cut(octets):
        yield kind, channel, payload if len(payload) == size else Truncated.of(payload, size)
