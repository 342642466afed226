"""Frame groups: what a rule looks at. A frame group is a method with its content, or a heartbeat.

Each protocol has its own subclass; here is what they have in common. In 0-10 "method" stands for a command or
a control, and "channel" for the channel of a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import Self

if TYPE_CHECKING:
    from fakeamqp.dialects import Dialect, Direction
    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.faults.port import FaultPort

__all__ = ["ABSENT", "HEARTBEAT", "UNREAD", "FrameGroup"]

HEARTBEAT = "heartbeat"

ABSENT = object()
"""The value of a field or property that does not exist."""

UNREAD = object()
"""In place of what was not decoded yet."""


class FrameGroup:
    """A method with its content, or a heartbeat.

    Args:
        protocol: the dialect of its connection.
        port: the fault port of its connection.
        direction: "received" from the client, or "sent" to the client.
        channel: its number.
        frames: kind and payload of each frame.
    """

    __slots__ = (
        "_content",
        "_method",
        "channel",
        "direction",
        "frames",
        "generation",
        "is_duplicate",
        "name",
        "number",
        "original_channel",
        "port",
        "protocol",
        "queues",
        "settles",
    )

    has_content: bool
    """True if a content follows the method."""

    def __init__(
        self,
        protocol: Dialect,
        port: FaultPort,
        direction: Direction,
        channel: int,
        frames: list[tuple[int, bytes]],
    ) -> None:
        self.protocol: Dialect = protocol
        self.port: FaultPort = port
        self.direction = direction
        self.channel: int = channel
        self.frames: list[tuple[int, bytes]] = frames
        self.name: str = self._read_name()
        """The method's name, "heartbeat", or "" for an unknown method."""
        self.settles: tuple[Self, ...] = ()
        """The publishes that this confirm settles, as far as they are known."""
        self.is_duplicate: bool = False
        """True for a duplicate, which is not counted again."""
        self.queues: tuple[str, ...] | None = None
        """The queues it goes to or comes from, if `note_destinations` was called."""
        self.original_channel: int = channel
        """The channel it came on; a rule may have replaced `channel`."""
        self.generation: int = 0
        """How often that channel had been closed before it came."""
        self.number: int | None = None
        """In 0-10: the id of a sent command that a rule has taken."""
        self._method: Any = UNREAD
        self._content: Any = UNREAD

    # --- what it is -----------------------------------------------------------------------------------

    def _read_name(self) -> str:
        raise NotImplementedError

    @property
    def index(self) -> int:
        """Class and method id in one number; 0 for a heartbeat."""
        raise NotImplementedError

    @property
    def method(self) -> Any:
        """The decoded method; None for a heartbeat and for a method that cannot be decoded."""
        raise NotImplementedError

    @property
    def inline(self) -> bool:
        """True if the message is inside the method, and no content frames follow."""
        return False

    @property
    def method_complete(self) -> bool:
        """True once the method is complete; its content may be incomplete."""
        return True

    @property
    def complete(self) -> bool:
        """True once method and content are complete; undecodable content counts as complete."""
        raise NotImplementedError

    def continues_with(self, kind: int) -> bool:
        """True if its next frame can be of that kind."""
        raise NotImplementedError

    @property
    def header_complete(self) -> bool:
        """True if its last frame ends its content header."""
        raise NotImplementedError

    @property
    def properties(self) -> Any:
        """The properties of the content; None without decodable properties."""
        raise NotImplementedError

    @property
    def body(self) -> bytes:
        """The body of the content, as far as it has arrived."""
        part = self.protocol.part
        return b"".join(payload for kind, payload in self.frames if part(kind, b"") == "body")

    @property
    def data(self) -> bytes:
        """All frames, encoded."""
        frame = self.protocol.frame
        return b"".join([frame(kind, self.channel, payload) for kind, payload in self.frames])

    @property
    def on_connection(self) -> bool:
        """True if it concerns the connection, not a channel."""
        raise NotImplementedError

    @property
    def allowed_after_close(self) -> bool:
        """True if it may still be sent after its channel was closed."""
        return False

    def frames_through(self, part: str) -> int:
        """The number of frames up to the end of its "method" or "header"."""
        raise NotImplementedError

    # --- fields -------------------------------------------------------------------------------

    def values_of(self, name: str) -> tuple[Any, ...]:
        """All values it has for a field; a condition holds if one of them matches."""
        raise NotImplementedError

    def known_early(self, name: str) -> bool:
        """True if the method alone, without the content, has the value of an early field."""
        return True

    def note_destinations(self) -> None:
        """Remember the queues that a publish is routed to now."""

    # --- copies ---------------------------------------------------------------------------------

    def replace(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Self:
        """A copy with other values for fields of the method, properties, body or channel.

        A value that is callable is called with the old value. Unknown fields and properties are ignored.

        Raises:
            WireError: a value does not fit its field.
        """
        raise NotImplementedError

    def duplicate(self) -> Self:
        """A copy that is not counted in the channel's numbering."""
        raise NotImplementedError

    def _with_frames(self, frames: list[tuple[int, bytes]], channel: int | None = None) -> Self:
        """A copy with other frames, on another channel if one is given."""
        number = self.channel if channel is None else channel
        group = type(self)(self.protocol, self.port, self.direction, number, frames)
        for slot in ("settles", "is_duplicate", "queues", "original_channel", "generation", "number"):
            setattr(group, slot, getattr(self, slot))
        return group

    # --- what rules do ---------------------------------------------------------------------------

    def intercepted(self) -> None:
        """A rule has taken it: it is not sent or processed by itself."""

    def pass_on(self, *, secured: bool) -> None:
        """Received: process it. A crash loses a publish that is not `secured`."""
        raise NotImplementedError

    def encode(self) -> bytes:
        """Sent: the bytes to send for it now."""
        return self.data

    def suppressed(self, state: ConnectionFaultState) -> None:
        """It is not sent, because its channel or connection is about to end."""
        self.intercepted()

    @property
    def tag(self) -> int | None:
        """The delivery tag that will confirm a publish; None without confirms."""
        return None

    def drop(self, state: ConnectionFaultState) -> None:
        """Drop it. It keeps its number in the channel's numbering."""
        raise NotImplementedError

    def exception(self, code: int, text: str, field_index: int | None) -> None:
        """Received: answer it with an exception instead of executing it."""
        raise NotImplementedError

    def nack(self, state: ConnectionFaultState) -> Self | None:
        """Refuse it. Returns the group to pass on in its place: for a confirm, the nack."""
        raise NotImplementedError

    def return_message(self, state: ConnectionFaultState, code: int, text: str) -> None:
        """Return a publish to its publisher."""
        raise NotImplementedError

    def __str__(self) -> str:
        """The method and its main fields, in words."""
        words = [self.name or "an unknown method"]
        method = self.method
        for field in ("exchange", "routing_key", "queue", "consumer_tag", "destination", "delivery_tag"):
            value = getattr(method, field, None)
            if value is not None:
                words.append(f"{field}={value!r}")
        return " ".join(words)

    def __repr__(self) -> str:
        return f"<{self} {self.direction} on {self.port.name} channel {self.channel}>"
