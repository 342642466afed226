"""The interface of a protocol for faults: the tap, rules and actions use a `FaultAdapter` and its groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fakeamqp.adapters import UnknownProtocol, protocol_named
from fakeamqp.faults.errors import FaultError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakeamqp.adapters import Framing
    from fakeamqp.faults.fault_port import Direction, FaultPort
    from fakeamqp.faults.frame_group import FrameGroup

__all__ = ["Malformation", "MethodInfo", "Protocol", "adapter_named", "check_protocol"]


class MethodInfo(NamedTuple):
    """What faults know of the methods of one name; in 0-10 they are commands or controls.

    Args:
        directions: "received" (by the broker), "sent", or both.
        fields: the names of its fields, without trailing underscores.
        has_content: True if it has properties and a body.
        prefixes: the bytes at the beginning of its frame's payload; several where methods share a name.
        make: makes one from fields by name, to check that they can be encoded.
    """

    directions: frozenset[str]
    fields: tuple[str, ...]
    has_content: bool
    prefixes: frozenset[bytes]
    make: Callable[..., Any]


class Malformation(NamedTuple):
    """A way to send a frame group malformed.

    Args:
        words: what is wrong, in words.
        malform: makes the malformed bytes of a frame group.
        content_only: True if only methods with a content can be malformed like that.
    """

    words: str
    malform: Callable[[Any], bytes]
    content_only: bool = False


class FaultAdapter(Protocol):
    """One protocol, as far as faults use it."""

    @property
    def name(self) -> str:
        """Its name, such as "0-9-1"."""

    @property
    def framing(self) -> Framing:
        """The encoding of its frames."""

    @property
    def kinds(self) -> Mapping[str, MethodInfo]:
        """By name: all its methods except heartbeats."""

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of the properties of contents, except `headers`."""

    def make_properties(self, **values: Any) -> Any:
        """Properties with these values, to check that they can be encoded."""

    def has(self, what: Any) -> bool:
        """True for a method of this protocol."""

    def encode(
        self, what: Any, port: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """Encode a method of this protocol, and its content if there is one, as frames.

        Raises:
            WireError: a value does not fit its field.
        """

    @property
    def reply_names(self) -> Mapping[int, str]:
        """The names of its reply codes or error codes, as its close methods and exceptions show them."""

    @property
    def malformations(self) -> Mapping[str, Malformation]:
        """By name: the ways to send a frame group malformed."""

    @property
    def prefix_size(self) -> int:
        """The number of bytes of a payload that identify its method."""

    @property
    def heartbeat_prefix(self) -> bytes:
        """The first `prefix_size` bytes of a heartbeat's payload."""

    @property
    def wrapper_prefix(self) -> bytes | None:
        """The first `prefix_size` bytes of payloads whose method comes later in them, or None."""

    @property
    def publishes(self) -> frozenset[str]:
        """The methods that publish a message."""

    @property
    def confirms(self) -> frozenset[str]:
        """The methods that confirm publishes."""

    @property
    def channel_closers(self) -> frozenset[str]:
        """The methods that close a channel or a session, or confirm that."""

    @property
    def allowed_while_closing(self) -> frozenset[str]:
        """The methods that may still be sent on a channel that a fault closes."""

    @property
    def channel_opener(self) -> str:
        """The method that opens a channel, or attaches a session."""

    def group(
        self, port: FaultPort, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> FrameGroup:
        """Make a frame group of its first frame or of all its frames."""

    def starts(self, kind: int) -> bool:
        """True if a frame group begins with a frame of that kind."""

    def stands_alone(self, kind: int) -> bool:
        """True if such a frame may come between the frames of a group on the same channel."""

    def ordering_key(self, kind: int, channel: int, payload: bytes) -> int:
        """Frames with the same ordering key keep their order: the channel, or -1 for the connection."""

    def has_watched_method(self, octets: bytes, prefixes: frozenset[bytes]) -> bool:
        """True if a frame group in whole frames has one of these prefixes; a heartbeat always counts."""


def adapter_named(name: str) -> FaultAdapter:
    """The fault adapter of a protocol, loaded on first use.

    Raises:
        UnknownProtocol: there is no protocol of this name.
    """
    adapter: FaultAdapter = protocol_named(name).faults
    return adapter


def check_protocol(name: str) -> None:
    """Check that there is a protocol of this name.

    Raises:
        FaultError: there is none; the text names the nearest match.
    """
    try:
        protocol_named(name)
    except UnknownProtocol as problem:
        raise FaultError(str(problem)) from None
