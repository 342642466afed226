"""What faults know of 0-9-1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.faults.amqp_0_9_1.malformed import MALFORMATIONS
from fakeamqp.faults.amqp_0_9_1.units import CONFIRMS, PUBLISH, MethodUnit
from fakeamqp.faults.dialect import Kind
from fakeamqp.wire.amqp_0_9_1.methods import METHODS
from fakeamqp.wire.amqp_0_9_1.properties import BasicProperties
from fakeamqp.wire.amqp_0_9_x.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    content_frames,
    frame,
)
from fakeamqp.wire.amqp_0_9_x.framing import FRAMING
from fakeamqp.wire.amqp_0_9_x.method import Method

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.faults.line import Direction, Line

__all__ = ["DIALECT"]

_BASIC = 60
_LARGEST = 131_072 - FRAME_OVERHEAD
_SIDES = {"received": "server", "sent": "client"}


class _Dialect:
    """0-9-1; see `Dialect`, which says what each of these is."""

    name = "0-9-1"
    framing = FRAMING
    malformations = MALFORMATIONS
    properties = tuple(name for name, _ in BasicProperties.LAYOUT if name not in ("headers", "cluster_id"))
    prefix_size = 4
    silent = b""
    publishes = frozenset((PUBLISH,))
    confirms = CONFIRMS
    ends_of_channels = frozenset(("channel.close", "channel.close-ok"))
    last_words = frozenset(("channel.close",))
    opener = "channel.open"

    def __init__(self) -> None:
        self.kinds = {kind.NAME: _kind(kind) for kind in METHODS.values()}

    def make_properties(self, **values: Any) -> BasicProperties:
        """Those of class basic."""
        return BasicProperties(**values)

    def has(self, what: Any) -> bool:
        """A `Method`."""
        return isinstance(what, Method)

    def encode(
        self, what: Any, line: Line, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """A method, and a content of class basic."""
        octets = frame(FRAME_METHOD, channel, what.encode())
        if body is not None or properties:
            limit = line.largest_frame - FRAME_OVERHEAD if line.largest_frame else _LARGEST
            encoded = BasicProperties(**properties).encode()
            octets += b"".join(content_frames(channel, _BASIC, encoded, body or b"", limit))
        return octets

    def unit(
        self, line: Line, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> MethodUnit:
        """A method or a heartbeat."""
        return MethodUnit(line, direction, channel, frames)

    def starts(self, kind: int) -> bool:
        """A header and a body belong to a method."""
        return kind not in (FRAME_CONTENT_HEADER, FRAME_BODY)

    def stands_alone(self, kind: int) -> bool:
        """A method on a channel ends the content that was coming; only heartbeats are apart."""
        return kind == FRAME_HEARTBEAT

    def lane(self, kind: int, channel: int, payload: bytes) -> int:
        """Heartbeats wait for nobody."""
        return -1 if kind == FRAME_HEARTBEAT else channel

    def begins(self, octets: bytes, telling: frozenset[bytes]) -> bool:
        """Looks at the ids of methods."""
        position, end = 0, len(octets)
        while position < end:
            frame_type, _, size = FRAME_HEADER.unpack_from(octets, position)
            start = position + FRAME_HEADER.size
            if frame_type == FRAME_METHOD:
                if octets[start : start + 4] in telling:
                    return True
            elif frame_type == FRAME_HEARTBEAT:
                return True
            position += size + FRAME_OVERHEAD
        return False


def _kind(kind: type[Method]) -> Kind:
    names = {name.rstrip("_"): name for name, _ in kind.LAYOUT}
    return Kind(
        directions=frozenset(name for name, side in _SIDES.items() if side in kind.RECEIVED_BY),
        fields=tuple(name.rstrip("_") for name, _ in kind.LAYOUT if not name.startswith("reserved_")),
        has_content=kind.HAS_CONTENT,
        prefix=kind.INDEX.to_bytes(4, "big"),
        make=lambda **values: kind(**{names[name]: value for name, value in values.items()}),
    )


MethodUnit.dialect = DIALECT = _Dialect()
