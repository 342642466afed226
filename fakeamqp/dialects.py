"""What a protocol says about its bytes, its `Dialect`, and where the rest of the package finds it.

A frame of any protocol is a kind, a channel and a payload. The kind is a number, such as the frame type of
0-9-1; its meaning is the protocol's own, and `Dialect.part` says what it stands for.

This module imports no protocol. `fakeamqp.protocols.registry` registers one row per protocol when it is
imported, and a row loads the protocol's modules on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

from fakeamqp.errors import FakeAMQPError, near_match

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

Direction: TypeAlias = Literal["received", "sent"]
"""Seen from the broker: "received" is from the client, "sent" is to the client."""

Part: TypeAlias = Literal["method", "header", "body", "heartbeat", ""]
"""What a frame holds, whatever its protocol calls it: "method" stands for commands and controls as well;
"" stands for anything unknown."""


class UnknownProtocol(FakeAMQPError, KeyError):
    """There is no protocol of this name; the text names the nearest match."""

    __module__ = "fakeamqp.errors"

    def __str__(self) -> str:
        return str(self.args[0])


class MethodInfo(NamedTuple):
    """What faults know of the methods of one name; in 0-10 they are commands or controls.

    `directions` has "received" (by the broker), "sent", or both; the names of `fields` have no trailing
    underscores; `make` makes one from fields by name, to check that they can be encoded.
    """

    directions: frozenset[str]
    fields: tuple[str, ...]
    has_content: bool
    prefixes: frozenset[bytes]
    """The bytes at the beginning of its frame's payload; several where methods share a name."""
    make: Callable[..., Any]


class Malformation(NamedTuple):
    """A way to send a frame group malformed; `words` say what is wrong."""

    words: str
    malform: Callable[[Any], bytes]
    content_only: bool = False
    """True if only methods with a content can be malformed like that."""


class RedactedValue(NamedTuple):
    """Replaces a secret value of `size` bytes."""

    size: int


class Dialect(Protocol):
    """What one protocol says about its bytes: frames, frame groups, malformations, secrets and text.

    "Method" stands for the commands and controls of 0-10 as well.
    """

    name: str
    """The protocol's name, such as "0-9-1"."""

    # --- frames -----------------------------------------------------------------------------------------

    protocol_header: bytes
    """The eight bytes that a client of this protocol sends first."""
    answer: bytes = b""
    """What a server sends in reply to that header before its first frame."""
    heartbeat: bytes
    """A heartbeat, as a whole frame."""
    overhead: int
    """The number of bytes of a frame that are not its payload."""
    header_size: int
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
        """One frame as bytes. Raises WireError if a number does not fit its field."""

    def part(self, kind: int, payload: bytes) -> Part:
        """What a frame holds."""

    # --- methods and properties -------------------------------------------------------------------------

    kinds: Mapping[str, MethodInfo]
    """By name: all its methods except heartbeats."""
    property_names: tuple[str, ...]
    """The names of the properties of contents, except `headers`."""
    reply_names: Mapping[int, str]
    """The names of its reply codes or error codes, as its close methods and exceptions show them; in 1.0 the
    condition that stands for each reply code."""
    conditions: frozenset[str] = frozenset()
    """In 1.0: the conditions of errors that the standard has."""
    publishes: frozenset[str]
    """The methods that publish a message."""
    confirms: frozenset[str] = frozenset()
    """The methods that confirm publishes."""
    channel_opener: str
    """The method that opens a channel, or attaches a session."""
    channel_closers: frozenset[str]
    """The methods that close a channel or a session, or confirm that."""
    connection_closers: frozenset[str] = frozenset(("connection.close",))
    """The methods that close a connection, or refuse a login."""
    allowed_while_closing: frozenset[str]
    """The methods that may still be sent on a channel that a fault closes."""

    def make_properties(self, **values: Any) -> Any:
        """Properties with these values."""

    def has(self, what: Any) -> bool:
        """True for a method of this protocol."""

    def encode(
        self, what: Any, port: Any, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """Encode a method of this protocol, and its content if there is one, as frames to send.

        `port` is the fault port of the connection. Raises WireError if a value does not fit its field.
        """

    # --- frame groups -----------------------------------------------------------------------------------

    malformations: Mapping[str, Malformation]
    """By name: the ways to send a frame group malformed."""
    prefix_size: int
    """The number of bytes of a payload that identify its method."""
    heartbeat_prefix: bytes = b""
    """The first `prefix_size` bytes of a heartbeat's payload."""
    wrapper_prefix: bytes | None = None
    """The first `prefix_size` bytes of payloads whose method comes later in them."""

    def group(self, port: Any, direction: Direction, channel: int, frames: list[tuple[int, bytes]]) -> Any:
        """Make a `fakeamqp.faults.frame_group.FrameGroup` of its first frame or of all its frames."""

    def starts(self, kind: int) -> bool:
        """True if a frame group begins with a frame of that kind."""

    def stands_alone(self, kind: int) -> bool:
        """True if such a frame may come between the frames of a group on the same channel."""

    def ordering_key(self, kind: int, channel: int, payload: bytes) -> int:
        """Frames with the same ordering key keep their order: the channel, or -1 for the connection."""

    def gathering_key(self, kind: int, channel: int, payload: bytes) -> int:
        """The frames of a group have the same key: the channel, unless several can come on it at once."""
        return channel

    def has_watched_method(self, octets: bytes, prefixes: frozenset[bytes]) -> bool:
        """True if a frame group in whole frames has one of these prefixes; a heartbeat always counts."""

    # --- reading: no bytes make these methods raise -----------------------------------------------------

    def frame_name(self, kind: int, payload: bytes) -> str:
        """The name of the method, or of the kind of frame."""

    def describe(self, kind: int, payload: bytes) -> str:
        """The frame in one line that begins with its name."""

    def method(self, kind: int, payload: bytes) -> Any:
        """The decoded method, or None if the frame has none or it cannot be decoded."""

    def properties(self, kind: int, payload: bytes) -> Any:
        """The decoded properties, or None if the frame has none or they cannot be decoded."""

    def body_size(self, kind: int, payload: bytes) -> int | None:
        """The size of the body that a header announces; None if it announces none."""

    def begins_content(self, kind: int, payload: bytes) -> bool:
        """True if frames with properties and a body follow."""

    def ends_content(self, kind: int) -> bool | None:
        """True if this frame ends the content; None if the size of the body determines the end."""
        return None

    def contents_within(self, kind: int, payload: bytes) -> int:
        """The number of nested contents that follow a header before its own body (the weight of 0-9)."""
        return 0

    def body_within(self, method: Any) -> bytes | None:
        """The body in the method itself, without further frames; None if there is none."""
        return None

    def values(self, record: Any) -> Iterator[tuple[str, Any]]:
        """The fields of a method or of properties, without reserved ones. A secret is a `RedactedValue`."""

    def columns(self, method: Any, direction: str) -> dict[str, Any]:
        """The values of a method for the columns exchange, routing_key, queue, consumer_tag, delivery_tag,
        redelivered and reply_code, as far as it has them. A method with its body in itself also has
        message_id and body_size.
        """

    def columns_of_content(self, kind: int, payload: bytes, direction: str) -> dict[str, Any]:
        """The values of a header for the columns message_id and body_size (None if only the body frames tell
        it), and for columns that its method does not fill.
        """

    def to_json(self, kind: int, payload: bytes) -> dict[str, Any]:
        """The part of the JSON form that depends on the protocol; see `fakeamqp.trace.json_form`."""

    def redacted(self, kind: int, payload: bytes, channel: int) -> bytes:
        """The payload with each secret replaced by asterisks of the same length."""

    def hidden(self, kind: int, payload: bytes, fields: Collection[str]) -> bytes:
        """The payload of a content's frame without these fields, in the same size.

        `fields` are "body", names of properties, "headers", and "headers.NAME" for one header of that name in
        any case. Where a dialect does not know the places of properties, all of them are replaced.
        """
        part = self.part(kind, payload)
        chosen = set(fields)
        hides = "body" in chosen if part == "body" else part == "header" and bool(chosen - {"body"})
        return b"*" * len(payload) if hides else payload

    def is_dissected(self, kind: int) -> bool:
        """True if Wireshark dissects frames of this kind."""
        return True

    def filled(self, kind: int, payload: Any) -> tuple[bytes, str]:
        """A complete payload in place of a truncated one, and a comment on what differs."""

    def dialogue(self) -> Any:
        """A new `fakeamqp.trace.dialogue.Dialogue`, which reads the frames of one connection."""


class ProtocolRow(Protocol):
    """One row of `fakeamqp.protocols.registry`, as far as other packages use it."""

    @property
    def name(self) -> str:
        """The name, such as "0-9-1"."""

    @property
    def headers(self) -> tuple[bytes, ...]:
        """The protocol headers that select this protocol."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What it has: "confirms" of single publishes, "channels", "sessions" or "links", "requests"."""

    @property
    def dialect(self) -> Dialect:
        """What the protocol says about its bytes."""

    @property
    def method_names(self) -> tuple[str, ...]:
        """The names of all methods (0-10: commands and controls) but heartbeats."""


_rows: dict[str, ProtocolRow] = {}


def register(row: ProtocolRow) -> None:
    """Make a protocol known; the first one registered is the default."""
    _rows[row.name] = row


def protocol_names() -> tuple[str, ...]:
    """The names of all protocols, the most common first."""
    return tuple(_rows)


def protocol_named(name: str) -> ProtocolRow:
    """The row of a protocol. Raises UnknownProtocol."""
    row = _rows.get(name)
    if row is None:
        raise UnknownProtocol(f"there is no protocol {name!r}{near_match(name, _rows, len(_rows))}")
    return row


def dialect_named(name: str) -> Dialect:
    """The dialect of a protocol, loaded on first use. Raises UnknownProtocol."""
    return protocol_named(name).dialect


def protocol_header(detail: str) -> bytes:
    """The protocol header for a detail such as "AMQP 0-0-9-1"; b"" for any other text."""
    letters, _, numbers = detail.partition(" ")
    parts = numbers.split("-")
    known = letters == "AMQP" and len(parts) == 4
    if known and all(part.isdecimal() and int(part) < 256 for part in parts):
        return b"AMQP" + bytes(map(int, parts))
    return b""


def protocol_of(header: bytes) -> str | None:
    """The name of the protocol that a client selects with these eight bytes; None if there is none."""
    return next((row.name for row in _rows.values() if header in row.headers), None)


def protocols_with(capability: str) -> tuple[str, ...]:
    """The names of the protocols that have a capability; see `ProtocolRow.capabilities`."""
    return tuple(name for name, row in _rows.items() if capability in row.capabilities)


def default_protocol() -> ProtocolRow:
    """The most common protocol: the one assumed where nothing tells which one is spoken."""
    return next(iter(_rows.values()))
