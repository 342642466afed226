"""What faults know of 0-9-x."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.faults.adapter import MethodInfo
from fakeamqp.protocols.amqp_0_9_1.codec.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    content_frames,
    frame,
)
from fakeamqp.protocols.amqp_0_9_1.codec.method import Method
from fakeamqp.protocols.amqp_0_9_1.faults.malformed import MALFORMATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.adapters import Framing
    from fakeamqp.faults.fault_port import Direction, FaultPort
    from fakeamqp.protocols.amqp_0_9_1.faults.frame_groups import MethodGroup091

__all__ = ["Adapter091", "method_info"]

_LARGEST = 131_072 - FRAME_OVERHEAD
_SIDES = {"received": "server", "sent": "client"}
_NO_PROPERTIES = ("headers", "cluster_id")


class Adapter091:
    """A protocol of 0-9-x; see `FaultAdapter`.

    Args:
        name: its name.
        framing: the encoding of its frames.
        group: the class of its frame groups.
        publishes: the methods that publish a message.
        confirms: the methods that confirm publishes.
        reply_names: the names of the reply codes.
    """

    malformations = MALFORMATIONS
    prefix_size = 4
    heartbeat_prefix = b""
    wrapper_prefix: bytes | None = None
    channel_closers: frozenset[str] = frozenset(("channel.close", "channel.close-ok"))
    allowed_while_closing: frozenset[str] = frozenset(("channel.close",))
    channel_opener = "channel.open"

    def __init__(
        self,
        name: str,
        framing: Framing,
        group: type[MethodGroup091],
        publishes: frozenset[str],
        confirms: frozenset[str],
        reply_names: Mapping[int, str],
    ) -> None:
        self.name = name
        self.framing = framing
        self.publishes = publishes
        self.confirms = confirms
        self.reply_names = reply_names
        self._unit = group
        self.kinds: dict[str, MethodInfo] = {kind.NAME: method_info(kind) for kind in group.METHODS.values()}
        named = (each for kind in group.PROPERTIES.values() for each, _ in kind.LAYOUT)
        self.properties: tuple[str, ...] = tuple(
            dict.fromkeys(each for each in named if each not in _NO_PROPERTIES)
        )

    def make_properties(self, **values: Any) -> Any:
        """Properties of the first content class that has all of these."""
        known = self._unit.PROPERTIES.values()
        kind: Any = next(each for each in known if values.keys() <= {name for name, _ in each.LAYOUT})
        return kind(**values)

    def has(self, what: Any) -> bool:
        """True for a `Method` of this protocol."""
        return isinstance(what, Method) and self._unit.METHODS.get(what.INDEX) is type(what)

    def encode(
        self, what: Any, port: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """The content has properties of the method's class, or of class basic if that class has none."""
        octets = frame(FRAME_METHOD, channel, what.encode())
        if body is not None or properties:
            limit = port.largest_frame - FRAME_OVERHEAD if port.largest_frame else _LARGEST
            kinds = self._unit.PROPERTIES
            kind: Any = kinds.get(what.CLASS_ID) or next(iter(kinds.values()))
            encoded = kind(**properties).encode()
            octets += b"".join(content_frames(channel, kind.CLASS_ID, encoded, body or b"", limit))
        return octets

    def group(
        self, port: FaultPort, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> MethodGroup091:
        return self._unit(port, direction, channel, frames)

    def starts(self, kind: int) -> bool:
        """Headers and bodies belong to the method before them."""
        return kind not in (FRAME_CONTENT_HEADER, FRAME_BODY)

    def stands_alone(self, kind: int) -> bool:
        """Only heartbeats: a method on the channel ends an incomplete content."""
        return kind == FRAME_HEARTBEAT

    def ordering_key(self, kind: int, channel: int, payload: bytes) -> int:
        """Heartbeats belong to the connection."""
        return -1 if kind == FRAME_HEARTBEAT else channel

    def has_watched_method(self, octets: bytes, prefixes: frozenset[bytes]) -> bool:
        position, end = 0, len(octets)
        while position < end:
            frame_type, _, size = FRAME_HEADER.unpack_from(octets, position)
            start = position + FRAME_HEADER.size
            if frame_type == FRAME_METHOD:
                if octets[start : start + 4] in prefixes:
                    return True
            elif frame_type == FRAME_HEARTBEAT:
                return True
            position += size + FRAME_OVERHEAD
        return False


def method_info(
    kind: type[Method], *, hidden: frozenset[str] = frozenset(), has_content: bool | None = None
) -> MethodInfo:
    """The `MethodInfo` of a method class; `hidden` are fields that count as properties."""
    names = {name.rstrip("_"): name for name, _ in kind.LAYOUT}
    return MethodInfo(
        directions=frozenset(name for name, side in _SIDES.items() if side in kind.RECEIVED_BY),
        fields=tuple(
            name.rstrip("_")
            for name, _ in kind.LAYOUT
            if not name.startswith("reserved_") and name not in hidden
        ),
        has_content=kind.HAS_CONTENT if has_content is None else has_content,
        prefixes=frozenset((kind.INDEX.to_bytes(4, "big"),)),
        make=lambda **values: kind(**{names[name]: value for name, value in values.items()}),
    )
