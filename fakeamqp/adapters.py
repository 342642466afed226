"""What faults and traces may ask of a protocol, and where they find it.

A connection cuts its own frames. Faults and traces see the frames of every protocol; to them a frame is a
kind, a channel and a payload, and the protocol's `Framing` knows the rest. The kind is a number, such as the
frame type of 0-9-1; its meaning is the protocol's own, and `Framing.part` says what it stands for.

This module imports no protocol. `fakeamqp.protocols.registry` registers one row per protocol when it is
imported, and a row loads the protocol's modules on first use.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

from fakeamqp.errors import FakeAMQPError, near_match

__all__ = [
    "Framing",
    "Part",
    "ProtocolRow",
    "UnknownProtocol",
    "default_protocol",
    "protocol_named",
    "protocol_names",
    "protocol_of",
    "protocols_with",
    "register",
]

Part: TypeAlias = Literal["method", "header", "body", "heartbeat", ""]
"""What a frame holds, whatever its protocol calls it: "method" stands for commands and controls as well;
"" stands for anything unknown."""


class UnknownProtocol(FakeAMQPError, KeyError):
    """There is no protocol of this name; the text names the nearest match."""

    def __str__(self) -> str:
        return str(self.args[0])


class Framing(Protocol):
    """The frames of one protocol."""

    @property
    def protocol_header(self) -> bytes:
        """The eight bytes that a client of this protocol sends first."""

    @property
    def answer(self) -> bytes:
        """What a server sends in reply to that header before its first frame; may be empty."""

    @property
    def heartbeat(self) -> bytes:
        """A heartbeat, as a whole frame."""

    @property
    def overhead(self) -> int:
        """The number of bytes of a frame that are not its payload."""

    @property
    def header_size(self) -> int:
        """The number of bytes before the payload; they tell the size of the frame."""

    def length(self, header: bytes) -> int:
        """The size in bytes of the frame that begins with these `header_size` bytes, these included."""

    def may_begin(self, octet: int) -> bool:
        """True if a frame can begin with this byte."""

    def cut(self, octets: bytes) -> list[tuple[int, int, bytes, int]]:
        """Kind, channel, payload and announced payload size of each frame.

        The payload of an incomplete last frame is the part that is there. Never raises.
        """

    def frame(self, kind: int, channel: int, payload: bytes) -> bytes:
        """One frame as bytes.

        Raises:
            WireError: a number does not fit its field.
        """

    def part(self, kind: int, payload: bytes) -> Part:
        """What a frame holds."""


class ProtocolRow(Protocol):
    """One row of `fakeamqp.protocols.registry`, as far as faults and traces use it."""

    @property
    def name(self) -> str:
        """The name, such as "0-9-1"."""

    @property
    def headers(self) -> tuple[bytes, ...]:
        """The protocol headers that select this protocol."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What distinguishes it: "confirms" of single publishes, "channels" or "sessions", "requests"."""

    @property
    def framing(self) -> Framing:
        """How frames are put into bytes."""

    @property
    def faults(self) -> Any:
        """The protocol's `fakeamqp.faults.adapter.FaultAdapter`."""

    @property
    def trace(self) -> Any:
        """The protocol's `fakeamqp.trace.frame_readers.FrameReader`."""

    @property
    def method_names(self) -> tuple[str, ...]:
        """The names of all methods (0-10: commands and controls) but heartbeats."""


_rows: dict[str, ProtocolRow] = {}


def register(row: ProtocolRow) -> None:
    """Make a protocol known to faults and traces; the first one registered is the default."""
    _rows[row.name] = row


def protocol_names() -> tuple[str, ...]:
    """The names of all protocols, the most common first."""
    return tuple(_rows)


def protocol_named(name: str) -> ProtocolRow:
    """The row of a protocol.

    Raises:
        UnknownProtocol: there is no protocol of this name.
    """
    row = _rows.get(name)
    if row is None:
        raise UnknownProtocol(f"there is no protocol {name!r}{near_match(name, _rows, len(_rows))}")
    return row


def protocol_of(header: bytes) -> str | None:
    """The name of the protocol that a client selects with these eight bytes; None if there is none."""
    return next((row.name for row in _rows.values() if header in row.headers), None)


def protocols_with(capability: str) -> tuple[str, ...]:
    """The names of the protocols that have a capability; see `ProtocolRow.capabilities`."""
    return tuple(name for name, row in _rows.items() if capability in row.capabilities)


def default_protocol() -> ProtocolRow:
    """The most common protocol: the one assumed where nothing tells which one is spoken."""
    return next(iter(_rows.values()))
