"""What a rule looks at: a method with its content, or a heartbeat, on its way in one direction.

Each protocol has its own, in `units` of its package; here is what they have in common.
What is called a method here is a command or a control in 0-10, and a channel is a session's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import Self

if TYPE_CHECKING:
    from fakeamqp.faults.adapter import FaultAdapter
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.line import Direction, FaultPort
    from fakeamqp.faults.wires import Wire

__all__ = ["ABSENT", "HEARTBEAT", "Unit"]

HEARTBEAT = "heartbeat"

ABSENT = object()
"""What is read where there is nothing to be read."""


class Unit:
    """A method with its content, or a heartbeat.

    Args:
        line: the connection it is on.
        direction: whether the broker received it or sends it.
        channel: its number.
        frames: kind and payload of each.
    """

    __slots__ = (
        "_content",
        "_method",
        "channel",
        "copy",
        "direction",
        "frames",
        "home",
        "life",
        "line",
        "name",
        "number",
        "queues",
        "settles",
    )

    protocol: FaultAdapter
    has_content: bool
    """Whether a content belongs to the method."""

    def __init__(
        self, line: FaultPort, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> None:
        self.line = line
        self.direction = direction
        self.channel = channel
        self.frames = frames
        self.name = self._read_name()
        """The method's name, "heartbeat", or "" for an unknown method."""
        self.settles: tuple[Self, ...] = ()
        """The publishes that this confirm is about, as far as they are known."""
        self.copy = False
        """Whether it is one more of what was counted already."""
        self.queues: tuple[str, ...] | None = None
        """The queues that it goes to or comes from, where that was noted."""
        self.home = channel
        """The channel it came on; `channel` may be another where that was replaced."""
        self.life = 0
        """How often that channel had been closed before."""
        self.number: int | None = None
        """In 0-10 the id of a command that is sent, where a rule has taken it."""
        self._method: Any = "unread"
        self._content: Any = "unread"

    # --- what it is -----------------------------------------------------------------------------------

    def _read_name(self) -> str:
        raise NotImplementedError

    @property
    def index(self) -> int:
        """Class and method in one number; 0 for a heartbeat."""
        raise NotImplementedError

    @property
    def method(self) -> Any:
        """The method, decoded; None for a heartbeat and where it cannot be read."""
        raise NotImplementedError

    @property
    def inline(self) -> bool:
        """Whether its message is in the method, and no frames of a content follow."""
        return False

    @property
    def told(self) -> bool:
        """Whether all of the method is there, if not all of its content."""
        return True

    @property
    def complete(self) -> bool:
        """Whether all of it is there; what cannot be read counts as complete."""
        raise NotImplementedError

    def takes(self, kind: int) -> bool:
        """Whether a frame of that kind can be the next of it."""
        raise NotImplementedError

    @property
    def headed(self) -> bool:
        """Whether the last frame that has come ends its header."""
        raise NotImplementedError

    @property
    def properties(self) -> Any:
        """The properties of the content, if there is one that can be read."""
        raise NotImplementedError

    @property
    def body(self) -> bytes:
        """The body of the content, as far as it is there."""
        framing = self.protocol.framing
        return b"".join(payload for kind, payload in self.frames if framing.part(kind, b"") == "body")

    @property
    def octets(self) -> bytes:
        """All frames as they go over the wire."""
        frame = self.protocol.framing.frame
        return b"".join([frame(kind, self.channel, payload) for kind, payload in self.frames])

    @property
    def on_connection(self) -> bool:
        """Whether it concerns the connection and no channel."""
        raise NotImplementedError

    @property
    def outlives(self) -> bool:
        """Whether it may be sent although nothing more is carried out on its channel."""
        return False

    def frames_through(self, part: str) -> int:
        """How many frames there are up to the end of its "method" or its "header"."""
        raise NotImplementedError

    # --- what rules ask -------------------------------------------------------------------------------

    def look(self, name: str) -> tuple[Any, ...]:
        """All values that it has for what a condition is about; one that fits will do."""
        raise NotImplementedError

    def tells_early(self, name: str) -> bool:
        """Whether the method alone says what the exchange, the routing key or the channel of a publish is."""
        return True

    def note_destinations(self) -> None:
        """Remember the queues that a publish goes to now."""

    # --- other shapes ---------------------------------------------------------------------------------

    def changed(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Self:
        """A copy with other values for some fields of the method, some properties, or the body.

        A value that can be called is given the old one. Fields and properties that there are not are left
        out.

        Raises:
            WireError: a value does not fit its field.
        """
        raise NotImplementedError

    def again(self) -> Self:
        """One more of it, which is not counted where the client counts."""
        raise NotImplementedError

    def _marked(self, unit: Self) -> Self:
        """A unit that takes the place of this one, or is one more of it."""
        for slot in ("settles", "copy", "queues", "home", "life", "number"):
            setattr(unit, slot, getattr(self, slot))
        return unit

    # --- what becomes of it ---------------------------------------------------------------------------

    def taken(self) -> None:
        """A rule has taken it: it does not go on by itself."""

    def come(self, *, secured: bool) -> None:
        """Received: go on with it. A crash takes a publish that is not `secured`."""
        raise NotImplementedError

    def say(self) -> bytes:
        """Sent: the bytes that go over the wire for it, now."""
        return self.octets

    def muted(self, wire: Wire) -> None:
        """It is not said, since something is about to end."""
        self.taken()

    @property
    def tag(self) -> int | None:
        """The number that confirms it, of a publish that is confirmed."""
        return None

    def lose(self, wire: Wire) -> None:
        """It is lost, and keeps its place in what is counted."""
        raise NotImplementedError

    def fail(self, flight: Flight, code: int, text: str, field_index: int | None) -> None:
        """Received: it is not carried out, and answered with an exception."""
        raise NotImplementedError

    def nack(self, flight: Flight) -> Self | None:
        """It is refused. A confirm says so: that is what goes in its place."""
        raise NotImplementedError

    def give_back(self, flight: Flight, code: int, text: str) -> None:
        """A publish comes back to its publisher."""
        raise NotImplementedError

    def __str__(self) -> str:
        """In words: the method, where it goes, on which connection."""
        words = [self.name or "an unknown method"]
        for field in ("exchange", "routing_key", "queue", "consumer_tag", "destination", "delivery_tag"):
            value = getattr(self.method, field, None)
            if value is not None:
                words.append(f"{field}={value!r}")
        return " ".join(words)

    def __repr__(self) -> str:
        return f"<{self} {self.direction} on {self.line.name} channel {self.channel}>"
