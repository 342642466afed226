"""What faults know of a protocol of the family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.faults.adapter import Kind
from fakeamqp.protocols.framed.codec.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    content_frames,
    frame,
)
from fakeamqp.protocols.framed.codec.method import Method
from fakeamqp.protocols.framed.faults.malformed import MALFORMATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.adapters import Framing
    from fakeamqp.faults.line import Direction, FaultPort
    from fakeamqp.protocols.framed.faults.units import FamilyUnit

__all__ = ["FramedAdapter", "kind_of"]

_LARGEST = 131_072 - FRAME_OVERHEAD
_SIDES = {"received": "server", "sent": "client"}
_NO_PROPERTIES = ("headers", "cluster_id")


class FramedAdapter:
    """One protocol; see `FaultAdapter`, which says what each of these is.

    Args:
        name: what it is called.
        framing: how it puts frames into bytes.
        unit: what its methods are made into.
        publishes: what brings the broker a message.
        confirms: what confirms that.
    """

    malformations = MALFORMATIONS
    prefix_size = 4
    silent = b""
    wrapping: bytes | None = None
    ends_of_channels = frozenset(("channel.close", "channel.close-ok"))
    last_words = frozenset(("channel.close",))
    opener = "channel.open"

    def __init__(
        self,
        name: str,
        framing: Framing,
        unit: type[FamilyUnit],
        publishes: frozenset[str],
        confirms: frozenset[str],
    ) -> None:
        self.name = name
        self.framing = framing
        self.publishes = publishes
        self.confirms = confirms
        self._unit = unit
        self.kinds: dict[str, Kind] = {kind.NAME: kind_of(kind) for kind in unit.METHODS.values()}
        named = (each for kind in unit.PROPERTIES.values() for each, _ in kind.LAYOUT)
        self.properties = tuple(dict.fromkeys(each for each in named if each not in _NO_PROPERTIES))

    def make_properties(self, **values: Any) -> Any:
        """Those of the first class of contents that has them all."""
        known = self._unit.PROPERTIES.values()
        kind: Any = next(each for each in known if values.keys() <= {name for name, _ in each.LAYOUT})
        return kind(**values)

    def has(self, what: Any) -> bool:
        """A `Method` of this protocol."""
        return isinstance(what, Method) and self._unit.METHODS.get(what.INDEX) is type(what)

    def encode(
        self, what: Any, line: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """A method, and a content of its class, or of class basic where its own has none."""
        octets = frame(FRAME_METHOD, channel, what.encode())
        if body is not None or properties:
            limit = line.largest_frame - FRAME_OVERHEAD if line.largest_frame else _LARGEST
            kinds = self._unit.PROPERTIES
            kind: Any = kinds.get(what.CLASS_ID) or next(iter(kinds.values()))
            encoded = kind(**properties).encode()
            octets += b"".join(content_frames(channel, kind.CLASS_ID, encoded, body or b"", limit))
        return octets

    def unit(
        self, line: FaultPort, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> FamilyUnit:
        """A method or a heartbeat."""
        return self._unit(line, direction, channel, frames)

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


def kind_of(
    kind: type[Method], *, hidden: frozenset[str] = frozenset(), has_content: bool | None = None
) -> Kind:
    """What there is to know of a method; `hidden` are fields that count as properties."""
    names = {name.rstrip("_"): name for name, _ in kind.LAYOUT}
    return Kind(
        directions=frozenset(name for name, side in _SIDES.items() if side in kind.RECEIVED_BY),
        fields=tuple(
            name.rstrip("_")
            for name, _ in kind.LAYOUT
            if not name.startswith("reserved_") and name not in hidden
        ),
        has_content=kind.HAS_CONTENT if has_content is None else has_content,
        prefix=kind.INDEX.to_bytes(4, "big"),
        make=lambda **values: kind(**{names[name]: value for name, value in values.items()}),
    )
