"""Frame groups: what a rule looks at. A frame group is a method with its content, or a heartbeat.

Each protocol has its own subclass; here is what they have in common. In 0-10 "method" stands for a command or
a control, and "channel" for the channel of a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from typing_extensions import Self

    from fakeamqp.dialects import Dialect, Direction
    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.faults.port import FaultPort

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
    _settling_field: ClassVar[str]
    """The field of a method from the client that names the deliveries it settles."""

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
        self._method: Any = UNREAD
        self._content: Any = UNREAD
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

    def continues_with(self, kind: int, payload: bytes) -> bool:
        """True if this can be its next frame."""
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
        """All values it has for a field; a condition holds if one of them matches.

        The field is one that every method has, a field of the method, or a property. A confirm has the values
        of the publishes that it settles, the settlement of deliveries those of their messages.
        """
        read = READERS.get(name)
        if read is not None:
            return read(self)
        value = self._field(name)
        return self._property(name) if value is ABSENT else (value,)

    def _field(self, name: str) -> Any:
        """A field of the method, named without a trailing underscore; `ABSENT` if there is none."""
        method = self.method
        return getattr(method, name, getattr(method, f"{name}_", ABSENT))

    def known_early(self, name: str) -> bool:
        """True if the method alone, without the content, has the value of an early field."""
        return True

    @property
    def _brings_message(self) -> bool:
        """True if it carries a message, in content frames or inside the method."""
        return self.has_content

    @property
    def _published_to(self) -> str | None:
        """The exchange that the client publishes to; None if this is not a publish."""
        raise NotImplementedError

    @property
    def _consumer(self) -> str | None:
        """The tag of the consumer that it concerns; None if it concerns none."""
        raise NotImplementedError

    def _held_messages(self) -> tuple[tuple[str, Any], ...]:
        """Queue name and message of each delivery that it settles, as the broker has them."""
        if self.direction == "received" and getattr(self.method, self._settling_field, None) is not None:
            return self.port.held_messages(self.channel, self.method)
        return ()

    def _destinations(self) -> tuple[str, ...]:
        return self.port.destinations(self.channel, self.method, self.properties)

    def note_destinations(self) -> None:
        """Remember the queues that a publish is routed to now."""
        self.queues = self._destinations()

    def _settled(
        self, of_publish: Callable[[Self], tuple[Any, ...]], of_message: Callable[[str, Any], Any]
    ) -> tuple[Any, ...]:
        """The values of the publishes that it confirms, otherwise of the deliveries that it settles."""
        if self.settles:
            return tuple(value for publish in self.settles for value in of_publish(publish))
        return tuple(of_message(queue, message) for queue, message in self._held_messages())

    def _address(self, name: str) -> tuple[Any, ...]:
        value = self._field(name)
        if value is not ABSENT:
            return (value,)
        return self._settled(
            lambda publish: (publish._field(name),), lambda _, message: getattr(message, name)
        )

    def _queue(self) -> tuple[Any, ...]:
        if self.queues is not None:
            return self.queues
        if self._published_to is not None:
            return self._destinations()
        value = self._field("queue")
        if value is not ABSENT:
            return (value,)
        if self._consumer is not None:
            queue = self.port.consumed_queue(self.channel, self._consumer)
            return () if queue is None else (queue,)
        return self._settled(lambda publish: publish._queue(), lambda queue, _: queue)

    def _exchange_type(self) -> tuple[Any, ...]:
        if self.name == "exchange.declare":
            return (self.method.type,)
        types = (self.port.exchange_type(name) for name in self._address("exchange"))
        return tuple(each for each in types if each is not None)

    def _body(self) -> tuple[Any, ...]:
        if self._brings_message:
            return (self.body,)
        return self._settled(lambda publish: (publish.body,), lambda _, message: message.body)

    def _property(self, name: str) -> tuple[Any, ...]:
        if self._brings_message:
            return self._own_property(name)
        return self._settled(
            lambda publish: publish._own_property(name),
            lambda _, message: getattr(message.properties, name, ABSENT),
        )

    def _own_property(self, name: str) -> tuple[Any, ...]:
        return (getattr(self.properties, name, ABSENT),)

    def _session(self) -> tuple[Any, ...]:
        name = self.port.session_name(self.channel)
        return () if name is None else (name,)

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

    def gathered(self) -> bool:
        """Received: it waits for its next frame. False: it cannot, and has to pass on incomplete."""
        return True

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


READERS: dict[str, Callable[[FrameGroup], tuple[Any, ...]]] = {
    "exchange": lambda group: group._address("exchange"),
    "routing_key": lambda group: group._address("routing_key"),
    "queue": lambda group: group._queue(),
    "exchange_type": lambda group: group._exchange_type(),
    "body": lambda group: group._body(),
    "headers": lambda group: group._property("headers"),
    "channel": lambda group: (group.channel,),
    "session": lambda group: group._session(),
}
"""The fields that every method has for conditions, besides its own."""


def changed_record(record: Any, fields: Iterable[tuple[str, Any]], changes: Mapping[str, Any]) -> Any:
    """A copy of a method with other values; None if it has none of these fields.

    `changes` are values, or functions of the old value, by names without a trailing underscore.
    """
    names = {name.rstrip("_"): name for name, _ in fields}
    wanted = {names[name]: value for name, value in changes.items() if name in names}
    if not wanted:
        return None
    values = {name: getattr(record, name) for name in names.values()}
    for name, value in wanted.items():
        values[name] = value(values[name]) if callable(value) else value
    return type(record)(**values)
