"""What faults know of a protocol. The tap, rules and actions ask a `FaultAdapter` and its units, and know none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fakeamqp.adapters import UnknownProtocol, protocol_named
from fakeamqp.faults.errors import FaultError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakeamqp.adapters import Framing
    from fakeamqp.faults.line import Direction, FaultPort
    from fakeamqp.faults.units import Unit

__all__ = ["Kind", "Protocol", "Way", "adapter_named", "check_protocol"]


class Kind(NamedTuple):
    """What there is to know of all methods of one name; in 0-10 those are commands or controls.

    Args:
        directions: in which it goes, of "received" (by the broker) and "sent".
        fields: the names of its fields, without the underscores that Python asks for.
        has_content: whether it has properties and a body.
        prefix: the bytes that a frame's payload begins with where it holds this.
        make: makes one of fields by their names, to see whether they can be encoded.
    """

    directions: frozenset[str]
    fields: tuple[str, ...]
    has_content: bool
    prefix: bytes
    make: Callable[..., Any]


class Way(NamedTuple):
    """A way to break the protocol: what it is in words, and how a unit is broken like that."""

    words: str
    make: Callable[[Any], bytes]
    content_only: bool = False
    """Whether only what has a content can be broken like that."""


class FaultAdapter(Protocol):
    """One protocol, as far as faults have to do with it."""

    @property
    def name(self) -> str:
        """Such as "0-9-1"."""

    @property
    def framing(self) -> Framing:
        """How its frames are put into bytes."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """By name: all methods there are, but for heartbeats."""

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of the properties that a content can have, but for `headers`."""

    def make_properties(self, **values: Any) -> Any:
        """Properties with these values, to see whether they can be encoded."""

    def has(self, what: Any) -> bool:
        """Whether this is a method of this protocol."""

    def encode(
        self, what: Any, line: FaultPort, channel: int, body: bytes | None, properties: Mapping[str, Any]
    ) -> bytes:
        """A method of this protocol, with a content where there is one, as frames.

        Raises:
            WireError: a value does not fit its field.
        """

    @property
    def malformations(self) -> Mapping[str, Way]:
        """By name: the ways to break the protocol in what a broker sends."""

    @property
    def prefix_size(self) -> int:
        """How many bytes of a payload tell which method it is."""

    @property
    def silent(self) -> bytes:
        """What the payload of a heartbeat begins with, that many bytes or all."""

    @property
    def wrapping(self) -> bytes | None:
        """What the payload of a frame begins with, that many bytes, whose method is further on in it."""

    @property
    def publishes(self) -> frozenset[str]:
        """What brings the broker a message."""

    @property
    def confirms(self) -> frozenset[str]:
        """What confirms publishes."""

    @property
    def ends_of_channels(self) -> frozenset[str]:
        """What ends a channel or a session, or confirms that."""

    @property
    def last_words(self) -> frozenset[str]:
        """What may be said on a channel, or a session's, that is ended by a fault."""

    @property
    def opener(self) -> str:
        """What opens a channel, or attaches a session."""

    def unit(
        self, line: FaultPort, direction: Direction, channel: int, frames: list[tuple[int, bytes]]
    ) -> Unit:
        """What a rule looks at, made of its first frame or of all."""

    def starts(self, kind: int) -> bool:
        """Whether a unit begins with a frame of that kind."""

    def stands_alone(self, kind: int) -> bool:
        """Whether such a frame may come between those of a unit on the same channel."""

    def lane(self, kind: int, channel: int, payload: bytes) -> int:
        """Among what a frame has to keep its place: the channel, or -1 for what concerns the connection."""

    def begins(self, octets: bytes, telling: frozenset[bytes]) -> bool:
        """Whether a unit in whole frames begins with one of these prefixes; a heartbeat always counts."""


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
