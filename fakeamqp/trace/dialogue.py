"""What the frames of a connection mean to its peers, whatever the protocol: requests and answers, confirms.

The checks of a trace (`fakeamqp.trace.checks`) know no protocol. Each protocol's `Dialect` makes a
`Dialogue` per connection, which translates frames into *steps*. A step belongs to a channel: the number of a
channel or of the channel of a session, or None for the connection itself. The keys of a channel are unique
from one `Opened` to the next.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from fakeamqp.trace.events import FrameEvent

Channel: TypeAlias = "int | None"
Key: TypeAlias = Hashable


class Opened(NamedTuple):
    """A channel or session begins: nothing of an earlier one with this number is left."""

    channel: Channel


class Ended(NamedTuple):
    """Nothing that is open on the channel will be answered; on the connection, if `channel` is None."""

    channel: Channel


class Publishing(NamedTuple):
    """What the channel publishes from here on is confirmed under this key; None if it is not confirmed.

    A publish has a key if the channel confirms publishes. A commit has the key of all that it publishes,
    which may be nothing (`many`).
    """

    channel: Channel
    key: Key
    what: str
    many: bool


class Confirmed(NamedTuple):
    """The publishes with these keys are confirmed: accepted, or else refused."""

    channel: Channel
    keys: tuple[Key, ...]
    accepted: bool


class Sent(NamedTuple):
    """One delivery is sent to the client. `settles`: whether the client has to settle it, None if unknown."""

    channel: Channel
    tag: int
    settles: bool | None


class Releasing(NamedTuple):
    """What the next settlement requeues is not marked as redelivered: the client has asked for that."""

    channel: Channel


class Asked(NamedTuple):
    """A peer sends a request that needs an answer. With `leaves` it asks for an end."""

    channel: Channel
    key: Key
    name: str
    leaves: bool = False


class Answered(NamedTuple):
    """A peer sends an answer. `key` is that of the request it belongs to, None if there is none."""

    channel: Channel
    key: Key
    name: str


Step: TypeAlias = Opened | Ended | Publishing | Confirmed | Sent | Releasing | Asked | Answered


class Dialogue(Protocol):
    """Reads the frames of one connection, in order."""

    def read(self, event: FrameEvent) -> Iterable[Step]:
        """The steps that a frame of either direction makes. No bytes make it raise."""
