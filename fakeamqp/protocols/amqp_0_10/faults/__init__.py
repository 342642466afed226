"""What faults know of 0-10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.faults.adapter import Kind
from fakeamqp.protocols.amqp_0_10.codec import commands, controls, structs
from fakeamqp.protocols.amqp_0_10.codec.frames import LARGEST_FRAME, control_frame, encode_frames
from fakeamqp.protocols.amqp_0_10.codec.framing import FRAMING, TYPE_MASK
from fakeamqp.protocols.amqp_0_10.codec.packed import Command, Control
from fakeamqp.protocols.amqp_0_10.faults.looks import COMMON
from fakeamqp.protocols.amqp_0_10.faults.malformed import MALFORMATIONS
from fakeamqp.protocols.amqp_0_10.faults.units import (
    BODY,
    COMMAND,
    CONTROL,
    HEADER,
    TRANSFER,
    CommandUnit,
    starts,
    structs_with,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.faults.line import Direction, FaultPort

__all__ = ["ADAPTER"]

_CONNECTION = controls.ConnectionStart.CLASS
_HEARTBEAT = controls.ConnectionHeartbeat
_SIDES = {
    "received": frozenset(("server", "sender", "receiver")),
    "sent": frozenset(("client", "sender", "receiver")),
}
"""Both ends of a session are sender and receiver of commands."""


class _Properties:
    """Properties of a header, to be encoded."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._structs = structs_with((), dict(values))

    def encode(self) -> bytes:
        """The header segment."""
        return structs.encode_header(self._structs)


class _Adapter:
    """0-10; see `FaultAdapter`, which says what each of these is."""

    name = "0-10"
    framing = FRAMING
    malformations = MALFORMATIONS
    properties = tuple(
        dict.fromkeys(
            (
                *COMMON,
                *(field for field, _ in structs.DeliveryProperties.FIELDS),
                *(field for field, _ in structs.MessageProperties.FIELDS),
            )
        )
    )
    prefix_size = 2
    silent = bytes((_HEARTBEAT.CLASS, _HEARTBEAT.CODE))
    wrapping: bytes | None = None
    publishes = frozenset((TRANSFER,))
    confirms: frozenset[str] = frozenset()
    ends_of_channels = frozenset(("session.detach", "session.detached"))
    last_words = frozenset(
        ("execution.exception", "session.command-point", "session.detach", "session.detached")
    )
    opener = "session.attach"

    def __init__(self) -> None:
        known: tuple[Any, ...] = (*controls.CONTROLS.values(), *commands.COMMANDS.values())
        self.kinds = {kind.NAME: _kind(kind) for kind in known if kind is not _HEARTBEAT}

    def make_properties(self, **values: Any) -> _Properties:
        """In delivery-properties and message-properties."""
        return _Properties(values)

    def has(self, what: Any) -> bool:
        """A `Control` or a `Command`."""
        return isinstance(what, (Control, Command))

    def encode(
        self, what: Any, line: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """A control, or a command with the number that is next and a content."""
        limit = line.largest_frame or LARGEST_FRAME
        if isinstance(what, Control):
            return control_frame(channel, what.encode(), limit)
        segments = [(COMMAND, what.encode())]
        if properties:
            segments.append((HEADER, _Properties(properties).encode()))
        if body is not None:
            segments.append((BODY, bytes(body)))
        octets = encode_frames(channel, segments, limit)
        frames = [(kind, payload) for kind, _, payload, _ in FRAMING.cut(octets)]
        return CommandUnit(line, "sent", channel, frames).say()

    def unit(
        self, line: FaultPort, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> CommandUnit:
        """A control or a command."""
        return CommandUnit(line, direction, channel, frames)

    def starts(self, kind: int) -> bool:
        """The first frame of a first segment."""
        return starts(kind)

    def stands_alone(self, kind: int) -> bool:
        """Controls have a track of their own."""
        return kind & TYPE_MASK == CONTROL

    def lane(self, kind: int, channel: int, payload: bytes) -> int:
        """Controls of the connection wait for nobody; those of a session keep their place on its channel."""
        return -1 if kind & TYPE_MASK == CONTROL and payload[:1] == _OF_CONNECTION else channel

    def begins(self, octets: bytes, telling: frozenset[bytes]) -> bool:
        """Looks at class and code of controls and commands."""
        return any(starts(kind) and payload[:2] in telling for kind, _, payload, _ in FRAMING.cut(octets))


_OF_CONNECTION = bytes((_CONNECTION,))


def _kind(kind: type[Command] | type[Control]) -> Kind:
    sides = frozenset(kind.RECEIVED_BY)
    names = {name.rstrip("_"): name for name, _ in kind.FIELDS}
    return Kind(
        directions=frozenset(name for name, here in _SIDES.items() if sides & here),
        fields=tuple(names),
        has_content=issubclass(kind, Command) and (kind.HEADER is not None or kind.BODY),
        prefix=bytes((kind.CLASS, kind.CODE)),
        make=lambda **values: kind(**{names[name]: value for name, value in values.items()}),
    )


CommandUnit.protocol = ADAPTER = _Adapter()
