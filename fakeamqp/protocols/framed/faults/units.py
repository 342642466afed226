"""Units of the family: methods with their contents, and heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import Self

from fakeamqp.faults.units import ABSENT, HEARTBEAT, Unit
from fakeamqp.protocols.codec.errors import WireError
from fakeamqp.protocols.framed.codec.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    split_body,
)
from fakeamqp.protocols.framed.faults.looks import look

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.line import CountingFaultPort
    from fakeamqp.faults.wires import Wire
    from fakeamqp.protocols.framed.codec.method import Method
    from fakeamqp.protocols.framed.codec.properties import Properties
    from fakeamqp.protocols.framed.codec.tables import Grammar

__all__ = ["PUBLISH", "FamilyUnit", "changed_method", "read"]

PUBLISH = "basic.publish"
_DELIVERIES = frozenset(("basic.deliver", "basic.get-ok", "file.deliver", "stream.deliver"))
_LARGEST = 131_072 - 8


class FamilyUnit(Unit):
    """See `Unit`, which says what each of these is. Each protocol has its own, which says what there is."""

    __slots__ = ("_kind", "has_content")

    line: CountingFaultPort

    METHODS: ClassVar[Mapping[int, type[Method]]]
    """Class and method id as one number -> class."""
    PROPERTIES: ClassVar[Mapping[int, type[Properties]]]
    """Class id -> what describes a content of that class; that of class basic is for all others."""
    GRAMMARS: ClassVar[tuple[Grammar, ...]]
    """Those that field tables may follow, the likely one first."""

    # --- what it is -----------------------------------------------------------------------------------

    @property
    def payload(self) -> bytes:
        """The method, encoded."""
        return self.frames[0][1]

    @property
    def brings_method(self) -> bool:
        """Whether its first frame has a method in it."""
        return self.frames[0][0] == FRAME_METHOD

    def _read_name(self) -> str:
        kind = self.METHODS.get(int.from_bytes(self.payload[:4], "big")) if self.brings_method else None
        self._kind = kind
        self.has_content = kind is not None and kind.HAS_CONTENT
        if self.frames[0][0] == FRAME_HEARTBEAT:
            return HEARTBEAT
        return kind.NAME if kind is not None else ""

    @property
    def index(self) -> int:
        """Class id and method id."""
        return int.from_bytes(self.payload[:4], "big") if self.name != HEARTBEAT else 0

    @property
    def method(self) -> Any:
        """A `Method`."""
        if self._method == "unread":
            kind = self._kind
            self._method = None if kind is None else read(self.GRAMMARS, kind.decode, self.payload)
        return self._method

    @property
    def complete(self) -> bool:
        """The header says how long the body is."""
        if not self.has_content:
            return True
        if len(self.frames) < 2:
            return False
        content = self._read_content()
        return content is None or sum(len(payload) for _, payload in self.frames[2:]) >= content[1]

    def takes(self, kind: int) -> bool:
        """One header frame, then body frames."""
        return kind == (FRAME_CONTENT_HEADER if len(self.frames) == 1 else FRAME_BODY)

    @property
    def headed(self) -> bool:
        """The header is one frame."""
        return self.frames[-1][0] == FRAME_CONTENT_HEADER

    @property
    def properties(self) -> Any:
        """Those of its class, as far as there are any."""
        content = self._read_content()
        return None if content is None else content[0]

    def _read_content(self) -> tuple[Any, int] | None:
        if len(self.frames) < 2 or self.frames[1][0] != FRAME_CONTENT_HEADER:
            return None
        if self._content == "unread":
            payload = self.frames[1][1]
            found = None
            if len(payload) >= CONTENT_HEADER.size + 2:
                found = read(self.GRAMMARS, self._describing().decode, payload, CONTENT_HEADER.size)
            self._content = None if found is None else (found, CONTENT_HEADER.unpack_from(payload)[2])
        return self._content  # type: ignore[no-any-return]

    def _describing(self) -> Any:
        """What describes contents like its own."""
        return self.PROPERTIES.get(self.index >> 16) or next(iter(self.PROPERTIES.values()))

    @property
    def on_connection(self) -> bool:
        """Channel 0 is the connection's."""
        return self.home == 0

    def frames_through(self, part: str) -> int:
        """A frame each."""
        return min(len(self.frames), 1 if part == "method" else 2)

    @property
    def brings_message(self) -> bool:
        """Whether a message is in it, be it in frames of its own or in the method."""
        return self.has_content

    # --- what rules ask -------------------------------------------------------------------------------

    def field(self, name: str) -> Any:
        """A field of the method by its name without underscore, or `ABSENT`."""
        method = self.method
        return getattr(method, name, getattr(method, f"{name}_", ABSENT))

    def look(self, name: str) -> tuple[Any, ...]:
        """See `looks`."""
        return look(self, name)

    @property
    def published_to(self) -> str | None:
        """The exchange that the client publishes to by this; None where it does not publish."""
        return self.method.exchange if self.name == PUBLISH else None

    @property
    def consumer(self) -> str | None:
        """The tag of the consumer that it is about; None where it is about none."""
        return getattr(self.method, "consumer_tag", None)

    def held_messages(self) -> tuple[tuple[str, Any], ...]:
        """Queue and message of what a settlement is about, as the broker has them."""
        method = self.method
        if self.direction == "received" and hasattr(method, "delivery_tag"):
            multiple = getattr(method, "multiple", False)
            return self.line.held_messages(self.channel, method.delivery_tag, multiple)
        return ()

    def note_destinations(self) -> None:
        """By the time of the confirm it might go somewhere else."""
        self.queues = self.destinations()

    def destinations(self) -> tuple[str, ...]:
        """The queues that a publish goes to."""
        return self.line.destinations(self.channel, self.method, self.properties)

    # --- other shapes ---------------------------------------------------------------------------------

    def changed(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Self:
        """Frames that are not changed keep their bytes."""
        frames = list(self.frames)
        made = changed_method(self.method, fields or {})
        if made is not None:
            frames[0] = self.first_frame(made.encode())
        if self.has_content and (properties or body is not None):
            frames[1:] = self._changed_content(properties or {}, body)
        number = self.channel if channel is None else channel
        return self._marked(type(self)(self.line, self.direction, number, frames))

    def first_frame(self, payload: bytes) -> tuple[int, bytes]:
        """The frame with another method in the place of its own."""
        return FRAME_METHOD, payload

    def _changed_content(self, changes: Mapping[str, Any], body: bytes | None) -> list[tuple[int, bytes]]:
        known = self.properties or self._describing()()
        names = {name for name, _ in known.LAYOUT}
        values = {
            name: value(getattr(known, name)) if callable(value) else value
            for name, value in changes.items()
            if name in names
        }
        made = known.replace(**values) if values else known
        octets = self.body if body is None else body
        limit = self.line.largest_frame - 8 if self.line.largest_frame else _LARGEST
        class_id, weight, _ = self._header_numbers()
        header = CONTENT_HEADER.pack(class_id, weight, len(octets)) + made.encode()
        bodies = [(each[0], each[7:-1]) for each in split_body(octets, 0, limit)]
        return [(FRAME_CONTENT_HEADER, header), *self._inner_frames(), *bodies]

    def _header_numbers(self) -> tuple[int, int, int]:
        """Class id, weight and size in the header, or what they would be."""
        if len(self.frames) > 1 and len(self.frames[1][1]) >= CONTENT_HEADER.size:
            class_id, weight, size = CONTENT_HEADER.unpack_from(self.frames[1][1])
            return class_id, weight, size
        return self.index >> 16, 0, 0

    def _inner_frames(self) -> list[tuple[int, bytes]]:
        """The frames of contents inside the content."""
        return []

    def again(self) -> Self:
        """A delivery has a tag of its own, a publish no place among confirms."""
        if self.name in _DELIVERIES:
            unit = self.changed(fields={"delivery_tag": self.line.spare_tag(self.channel)})
        else:
            unit = self.changed()
        unit.copy = True
        return unit

    def with_method(self, method: Method) -> Self:
        """A copy with another method in the place of its own."""
        frames = [self.first_frame(method.encode()), *self.frames[1:]]
        return self._marked(type(self)(self.line, self.direction, self.channel, frames))

    # --- what becomes of it ---------------------------------------------------------------------------

    def come(self, *, secured: bool) -> None:
        """A copy of a publish has no place of its own in the count of confirms."""
        line = self.line
        if not secured and self.name == PUBLISH:
            line.take_unsecured(self.channel, self.octets)
        elif self.copy and self.name == PUBLISH:
            line.take_copy(self.channel, self.octets)
        else:
            line.take(self.octets)

    def lose(self, wire: Wire) -> None:
        """It is as if it had never come, or gone."""
        if self.direction == "received" and self.name == HEARTBEAT:
            self.line.unhear()

    def nack(self, flight: Flight) -> Self | None:
        """There is no word for that: it is lost."""
        flight.tap.note(self.line, "no confirms on this channel: the message is lost, untold")
        return None

    def give_back(self, flight: Flight, code: int, text: str) -> None:
        """basic.return with the content."""
        method = self._returned(code, text)
        frames = [(FRAME_METHOD, method.encode()), *self.frames[1:]]
        answer = type(self)(self.line, "sent", self.channel, frames)
        answer.life = flight.wire.lives.get(self.channel, 0)
        flight.tap.go_on(flight.wire, answer)

    def _returned(self, code: int, text: str) -> Method:
        """basic.return."""
        raise NotImplementedError


def read(grammars: tuple[Grammar, ...], decode: Any, *where: Any) -> Any:
    """What `decode` makes of the first grammar that the bytes can be read with; None if of none."""
    for grammar in grammars:
        try:
            return decode(*where, grammar)
        except WireError:
            continue
    return None


def changed_method(method: Any, changes: Mapping[str, Any]) -> Any:
    """A copy of a method with other values, as far as it has such fields; None where it has none of them.

    Fields have no underscores in these names. A value that can be called is given the old one.
    """
    names = {field.rstrip("_"): field for field, _ in getattr(method, "LAYOUT", ())}
    wanted = {names[name]: value for name, value in changes.items() if name in names}
    if not wanted:
        return None
    values = {name: getattr(method, name) for name, _ in method.LAYOUT}
    for name, value in wanted.items():
        values[name] = value(values[name]) if callable(value) else value
    return type(method)(**values)
