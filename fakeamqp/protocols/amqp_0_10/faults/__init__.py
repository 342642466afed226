"""What faults know of 0-10."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.faults.adapter import MethodInfo
from fakeamqp.protocols.amqp_0_10.codec import commands, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.constants import ErrorCode
from fakeamqp.protocols.amqp_0_10.codec.frames import LARGEST_FRAME, control_frame, encode_frames
from fakeamqp.protocols.amqp_0_10.codec.framing import FRAMING, TYPE_MASK
from fakeamqp.protocols.amqp_0_10.codec.packed import Command, Control
from fakeamqp.protocols.amqp_0_10.faults.fields import COMMON
from fakeamqp.protocols.amqp_0_10.faults.frame_groups import (
    BODY,
    COMMAND,
    CONTROL,
    HEADER,
    TRANSFER,
    CommandGroup,
    starts,
    structs_with,
)
from fakeamqp.protocols.amqp_0_10.faults.malformed import MALFORMATIONS

if TYPE_CHECKING:
    from fakeamqp.faults.fault_port import Direction, FaultPort

__all__ = ["ADAPTER"]

_CONNECTION = controls.ConnectionStart.CLASS
_HEARTBEAT = controls.ConnectionHeartbeat
_SIDES = {
    "received": frozenset(("server", "sender", "receiver")),
    "sent": frozenset(("client", "sender", "receiver")),
}
"""Both peers of a session send and receive commands."""


class _Properties:
    """Properties of a header, to be encoded."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._structs = structs_with((), dict(values))

    def encode(self) -> bytes:
        """The header segment."""
        return structs.encode_header(self._structs)


class _Adapter:
    """0-10; see `FaultAdapter`."""

    name = "0-10"
    reply_names: ClassVar[Mapping[int, str]] = {
        int(code): code.name.lower().replace("_", "-") for code in ErrorCode
    }
    framing = FRAMING
    malformations = MALFORMATIONS
    properties: tuple[str, ...] = tuple(
        dict.fromkeys(
            (
                *COMMON,
                *(field for field, _ in structs.DeliveryProperties.FIELDS),
                *(field for field, _ in structs.MessageProperties.FIELDS),
            )
        )
    )
    prefix_size = 2
    heartbeat_prefix: bytes = bytes((_HEARTBEAT.CLASS, _HEARTBEAT.CODE))
    wrapper_prefix: bytes | None = None
    publishes: frozenset[str] = frozenset((TRANSFER,))
    confirms: frozenset[str] = frozenset()
    channel_closers: frozenset[str] = frozenset(("session.detach", "session.detached"))
    allowed_while_closing: frozenset[str] = frozenset(
        ("execution.exception", "session.command-point", "session.detach", "session.detached")
    )
    channel_opener = "session.attach"

    def __init__(self) -> None:
        known: tuple[Any, ...] = (*controls.CONTROLS.values(), *commands.COMMANDS.values())
        self.kinds: dict[Any, MethodInfo] = {
            kind.NAME: _method_info(kind) for kind in known if kind is not _HEARTBEAT
        }

    def make_properties(self, **values: Any) -> _Properties:
        """They become delivery-properties and message-properties."""
        return _Properties(values)

    def has(self, what: Any) -> bool:
        """True for a `Control` or a `Command`."""
        return isinstance(what, (Control, Command))

    def encode(
        self, what: Any, port: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """A command gets the next id."""
        limit = port.largest_frame or LARGEST_FRAME
        if isinstance(what, Control):
            return control_frame(channel, what.encode(), limit)
        segments = [(COMMAND, what.encode())]
        if properties:
            segments.append((HEADER, _Properties(properties).encode()))
        if body is not None:
            segments.append((BODY, bytes(body)))
        octets = encode_frames(channel, segments, limit)
        frames = [(kind, payload) for kind, _, payload, _ in FRAMING.cut(octets)]
        return CommandGroup(port, "sent", channel, frames).encode()

    def group(
        self, port: FaultPort, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> CommandGroup:
        return CommandGroup(port, direction, channel, frames)

    def starts(self, kind: int) -> bool:
        """True for the first frame of a first segment."""
        return starts(kind)

    def stands_alone(self, kind: int) -> bool:
        """Controls: they have a track of their own."""
        return kind & TYPE_MASK == CONTROL

    def ordering_key(self, kind: int, channel: int, payload: bytes) -> int:
        """Controls of the connection are apart; controls of a session keep their order on its channel."""
        return -1 if kind & TYPE_MASK == CONTROL and payload[:1] == _OF_CONNECTION else channel

    def has_watched_method(self, octets: bytes, prefixes: frozenset[bytes]) -> bool:
        return any(starts(kind) and payload[:2] in prefixes for kind, _, payload, _ in FRAMING.cut(octets))


_OF_CONNECTION = bytes((_CONNECTION,))


def _method_info(kind: type[Command] | type[Control]) -> MethodInfo:
    sides = frozenset(kind.RECEIVED_BY)
    names = {name.rstrip("_"): name for name, _ in kind.FIELDS}
    return MethodInfo(
        directions=frozenset(name for name, here in _SIDES.items() if sides & here),
        fields=tuple(names),
        has_content=issubclass(kind, Command) and (kind.HEADER is not None or kind.BODY),
        prefixes=frozenset((bytes((kind.CLASS, kind.CODE)),)),
        make=lambda **values: kind(**{names[name]: value for name, value in values.items()}),
    )


CommandGroup.protocol = ADAPTER = _Adapter()
