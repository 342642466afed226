"""What a rule looks at: a method with its content, or a heartbeat, on its way in one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakeamqp.wire.amqp_0_9_1.methods import METHODS
from fakeamqp.wire.amqp_0_9_1.properties import BasicProperties
from fakeamqp.wire.amqp_0_9_x.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    content_frames,
    frame,
)
from fakeamqp.wire.amqp_0_9_x.tables import PUBLISHED, RABBITMQ
from fakeamqp.wire.errors import WireError

if TYPE_CHECKING:
    from fakeamqp.faults.line import Direction, Line
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["HEARTBEAT", "Unit"]

HEARTBEAT = "heartbeat"
_LARGEST = 131_072 - 8


class Unit:
    """A method with its content, or a heartbeat.

    Args:
        line: the connection it is on.
        direction: whether the broker received it or sends it.
        channel: its number.
        frames: type and payload of each.
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
        "queues",
        "settles",
    )

    def __init__(
        self, line: Line, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> None:
        self.line = line
        self.direction = direction
        self.channel = channel
        self.frames = frames
        first_type, first = frames[0]
        kind = METHODS.get(int.from_bytes(first[:4], "big")) if first_type == FRAME_METHOD else None
        self.name = HEARTBEAT if first_type == FRAME_HEARTBEAT else kind.NAME if kind is not None else ""
        """The method's name, "heartbeat", or "" for an unknown method."""
        self.settles: tuple[Unit, ...] = ()
        """The publishes that this confirm is about, as far as they are known."""
        self.copy = False
        """Whether it is one more of a publish that was counted already."""
        self.queues: tuple[str, ...] | None = None
        """The queues that it goes to or comes from, where that was noted."""
        self.home = channel
        """The channel it came on; `channel` may be another where that was replaced."""
        self.life = 0
        """How often that channel had been closed before."""
        self._method: Method | str | None = "unread"
        self._content: tuple[BasicProperties, int] | str | None = "unread"

    @property
    def index(self) -> int:
        """Class and method id in one number; 0 for a heartbeat."""
        return int.from_bytes(self.frames[0][1][:4], "big") if self.name != HEARTBEAT else 0

    @property
    def method(self) -> Any:
        """The method, decoded; None for a heartbeat and where it cannot be read."""
        if self._method == "unread":
            kind = METHODS.get(self.index)
            self._method = None if kind is None else _read(kind.decode, self.frames[0][1])
        return self._method

    @property
    def has_content(self) -> bool:
        """Whether a content belongs to the method."""
        kind = METHODS.get(self.index)
        return kind is not None and kind.HAS_CONTENT

    @property
    def complete(self) -> bool:
        """Whether all of it is there; what cannot be read counts as complete."""
        if not self.has_content:
            return True
        if len(self.frames) < 2:
            return False
        content = self._read_content()
        return content is None or sum(len(payload) for _, payload in self.frames[2:]) >= content[1]

    @property
    def properties(self) -> BasicProperties | None:
        """The properties of the content, if there is one that can be read."""
        content = self._read_content()
        return None if content is None else content[0]

    @property
    def body(self) -> bytes:
        """The body of the content, as far as it is there."""
        return b"".join(payload for kind, payload in self.frames if kind == FRAME_BODY)

    @property
    def octets(self) -> bytes:
        """All frames as they go over the wire."""
        return b"".join(frame(kind, self.channel, payload) for kind, payload in self.frames)

    def _read_content(self) -> tuple[BasicProperties, int] | None:
        if len(self.frames) < 2 or self.frames[1][0] != FRAME_CONTENT_HEADER:
            return None
        if self._content == "unread":
            payload = self.frames[1][1]
            read = None
            if len(payload) >= CONTENT_HEADER.size + 2:
                read = _read(BasicProperties.decode, payload, CONTENT_HEADER.size)
            self._content = None if read is None else (read, CONTENT_HEADER.unpack_from(payload)[2])
        return self._content  # type: ignore[return-value]

    def changed(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Unit:
        """A copy with other values for some fields of the method, some properties, or the body.

        Raises:
            WireError: a value does not fit its field.
        """
        frames = list(self.frames)
        if fields:
            frames[0] = (FRAME_METHOD, _with(self.method, fields).encode())
        if properties or body is not None:
            known = self.properties or BasicProperties()
            made = known.replace(**properties) if properties else known
            limit = self.line.largest_frame - 8 if self.line.largest_frame else _LARGEST
            octets = content_frames(0, 60, made.encode(), self.body if body is None else body, limit)
            frames[1:] = [(each[0], each[7:-1]) for each in octets]
        unit = Unit(self.line, self.direction, self.channel if channel is None else channel, frames)
        return self._marked(unit)

    def note_destinations(self) -> None:
        """Remember the queues that a publish goes to now."""
        self.queues = self.line.destinations(self.channel, self.method, self.properties)

    def with_method(self, method: Method) -> Unit:
        """A copy with another method in the place of its own."""
        frames = [(FRAME_METHOD, method.encode()), *self.frames[1:]]
        return self._marked(Unit(self.line, self.direction, self.channel, frames))

    def _marked(self, unit: Unit) -> Unit:
        """A unit that takes the place of this one, or is one more of it."""
        for slot in ("settles", "copy", "queues", "home", "life"):
            setattr(unit, slot, getattr(self, slot))
        return unit

    def answered(self, method: Method) -> Unit:
        """A method for the client on the same channel, with this unit's content."""
        return Unit(self.line, "sent", self.channel, [(FRAME_METHOD, method.encode()), *self.frames[1:]])

    def __str__(self) -> str:
        """In words: the method, where it goes, on which connection."""
        words = [self.name or "an unknown method"]
        method = self.method
        for field in ("exchange", "routing_key", "queue", "consumer_tag", "delivery_tag"):
            value = getattr(method, field, None)
            if value is not None:
                words.append(f"{field}={value!r}")
        return " ".join(words)

    def __repr__(self) -> str:
        return f"<{self} {self.direction} on {self.line.name} channel {self.channel}>"


def _read(decode: Any, *where: Any) -> Any:
    """What `decode` makes of the first grammar that the octets can be read with; None if of none."""
    for grammar in (RABBITMQ, PUBLISHED.unchecked):
        try:
            return decode(*where, grammar)
        except WireError:
            continue
    return None


def _with(method: Any, fields: dict[str, Any]) -> Any:
    """A copy of a method with other values; a value that can be called is given the old one."""
    values = {name: getattr(method, name) for name, _ in method.LAYOUT}
    for name, value in fields.items():
        values[name] = value(values[name]) if callable(value) else value
    return type(method)(**values)
