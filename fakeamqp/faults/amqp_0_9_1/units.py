"""Units of 0-9-1: methods with their contents, and heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from fakeamqp.faults.amqp_0_9_1.looks import look
from fakeamqp.faults.units import HEARTBEAT, Unit
from fakeamqp.wire.amqp_0_9_1 import methods as m
from fakeamqp.wire.amqp_0_9_1.methods import METHODS
from fakeamqp.wire.amqp_0_9_1.properties import BasicProperties
from fakeamqp.wire.amqp_0_9_x.frames import (
    CONTENT_HEADER,
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    content_frames,
)
from fakeamqp.wire.amqp_0_9_x.tables import PUBLISHED, RABBITMQ
from fakeamqp.wire.errors import WireError

if TYPE_CHECKING:
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.line import CountingLine
    from fakeamqp.faults.wires import Wire
    from fakeamqp.wire.amqp_0_9_x.method import Method

__all__ = ["CONFIRMS", "PUBLISH", "MethodUnit"]

PUBLISH = "basic.publish"
CONFIRMS = frozenset(("basic.ack", "basic.nack"))
_DELIVERIES = frozenset(("basic.deliver", "basic.get-ok"))
_LARGEST = 131_072 - 8


class MethodUnit(Unit):
    """See `Unit`, which says what each of these is."""

    __slots__ = ("_kind", "has_content")

    line: CountingLine

    # --- what it is -----------------------------------------------------------------------------------

    def _read_name(self) -> str:
        first_type, first = self.frames[0]
        kind = METHODS.get(int.from_bytes(first[:4], "big")) if first_type == FRAME_METHOD else None
        self._kind = kind
        self.has_content = kind is not None and kind.HAS_CONTENT
        return HEARTBEAT if first_type == FRAME_HEARTBEAT else kind.NAME if kind is not None else ""

    @property
    def index(self) -> int:
        """Class id and method id."""
        return int.from_bytes(self.frames[0][1][:4], "big") if self.name != HEARTBEAT else 0

    @property
    def method(self) -> Any:
        """A `Method`."""
        if self._method == "unread":
            kind = self._kind
            self._method = None if kind is None else _read(kind.decode, self.frames[0][1])
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
    def properties(self) -> BasicProperties | None:
        """Those of class basic."""
        content = self._read_content()
        return None if content is None else content[0]

    def _read_content(self) -> tuple[BasicProperties, int] | None:
        if len(self.frames) < 2 or self.frames[1][0] != FRAME_CONTENT_HEADER:
            return None
        if self._content == "unread":
            payload = self.frames[1][1]
            read = None
            if len(payload) >= CONTENT_HEADER.size + 2:
                read = _read(BasicProperties.decode, payload, CONTENT_HEADER.size)
            self._content = None if read is None else (read, CONTENT_HEADER.unpack_from(payload)[2])
        return self._content  # type: ignore[no-any-return]

    @property
    def on_connection(self) -> bool:
        """Channel 0 is the connection's."""
        return self.home == 0

    def frames_through(self, part: str) -> int:
        """A frame each."""
        return min(len(self.frames), 1 if part == "method" else 2)

    # --- what rules ask -------------------------------------------------------------------------------

    def look(self, name: str) -> tuple[Any, ...]:
        """See `looks`."""
        return look(self, name)

    def note_destinations(self) -> None:
        """By the time of the confirm it might go somewhere else."""
        self.queues = self.line.destinations(self.channel, self.method, self.properties)

    # --- other shapes ---------------------------------------------------------------------------------

    def changed(
        self,
        *,
        fields: dict[str, Any] | None = None,
        properties: dict[str, Any] | None = None,
        body: bytes | None = None,
        channel: int | None = None,
    ) -> Self:
        """Frames that are not changed keep their octets."""
        frames = list(self.frames)
        made_of = {} if fields is None else _fields_of(self.method, fields)
        if made_of:
            frames[0] = (FRAME_METHOD, _with(self.method, made_of).encode())
        if properties or body is not None:
            known = self.properties or BasicProperties()
            changes = {
                name: value(getattr(known, name)) if callable(value) else value
                for name, value in (properties or {}).items()
            }
            made = known.replace(**changes) if changes else known
            limit = self.line.largest_frame - 8 if self.line.largest_frame else _LARGEST
            octets = content_frames(0, 60, made.encode(), self.body if body is None else body, limit)
            frames[1:] = [(each[0], each[7:-1]) for each in octets]
        number = self.channel if channel is None else channel
        return self._marked(type(self)(self.line, self.direction, number, frames))

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
        frames = [(FRAME_METHOD, method.encode()), *self.frames[1:]]
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
        """A publish keeps its place in the count of confirms; neither it nor a confirm is ever confirmed."""
        line = self.line
        if self.direction == "received":
            if self.name == PUBLISH:
                tag = line.next_publish(self.channel)
                if tag is not None and not self.copy:
                    line.skip_publish(self.channel, None)
                    self._never_confirmed(wire, tag)
            elif self.name == HEARTBEAT:
                line.unhear()
        elif self.name in CONFIRMS and line.channel_open(self.channel):
            self._never_confirmed(wire, self.method.delivery_tag)

    def muted(self, wire: Wire) -> None:
        """The end may be silence, and silence may end: no later confirm may cover this one."""
        if self.name in CONFIRMS:
            self._never_confirmed(wire, self.method.delivery_tag)

    def _never_confirmed(self, wire: Wire, tag: int) -> None:
        """No confirm of a later publish may cover that of this tag."""
        wire.never_confirmed(self.channel, tag)
        self.line.confirm_singly(self.channel)

    @property
    def tag(self) -> int | None:
        """What confirms it, where it is the next publish and publishes are confirmed."""
        return self.line.next_publish(self.channel)

    def nack(self, flight: Flight) -> Self | None:
        """A publish is refused; in the place of an ack a nack goes."""
        if self.name == PUBLISH:
            if self.line.next_publish(self.channel) is None:
                flight.tap.note(self.line, "no confirms on this channel: the message is lost, untold")
            if not self.copy:
                self.line.skip_publish(self.channel, False)
            return None
        return self.with_method(
            m.BasicNack(delivery_tag=self.method.delivery_tag, multiple=self.method.multiple)
        )

    def give_back(self, flight: Flight, code: int, text: str) -> None:
        """basic.return with the content, and a confirm."""
        method = m.BasicReturn(code, text, self.method.exchange, self.method.routing_key)
        frames = [(FRAME_METHOD, method.encode()), *self.frames[1:]]
        answer = type(self)(self.line, "sent", self.channel, frames)
        answer.life = flight.wire.lives.get(self.channel, 0)
        flight.tap.go_on(flight.wire, answer)
        if not self.copy:
            self.line.skip_publish(self.channel, True)


def _read(decode: Any, *where: Any) -> Any:
    """What `decode` makes of the first grammar that the octets can be read with; None if of none."""
    for grammar in (RABBITMQ, PUBLISHED.unchecked):
        try:
            return decode(*where, grammar)
        except WireError:
            continue
    return None


def _fields_of(method: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """The changes by the names that the fields have in Python, as far as the method has them."""
    names = {field.rstrip("_"): field for field, _ in getattr(method, "LAYOUT", ())}
    return {names[name]: value for name, value in changes.items() if name in names}


def _with(method: Any, fields: dict[str, Any]) -> Any:
    """A copy of a method with other values; a value that can be called is given the old one."""
    values = {name: getattr(method, name) for name, _ in method.LAYOUT}
    for name, value in fields.items():
        values[name] = value(values[name]) if callable(value) else value
    return type(method)(**values)
