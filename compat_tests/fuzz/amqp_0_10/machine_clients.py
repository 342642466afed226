"""What the clients of the machine know, and what the broker must know of them.

A command counts for the reference when all its frames have got to the broker, which a client that has lost
its transport cannot tell: `Session.executed` is the first command that the broker has not carried out.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from compat_tests.fuzz.amqp_0_10.machine_books import Copy, Message, Window
from compat_tests.scripted.amqp_0_9_1 import Client as OldClient
from compat_tests.scripted.amqp_0_10 import Client as RawClient, Event, Part, Reader, Server
from fakeamqp.protocols.amqp_0_9_1.codec import methods as m
from fakeamqp.protocols.amqp_0_10.codec.frames import FRAME_HEADER, HEADER_SIZE, Assembly

__all__ = [
    "Cmd",
    "Consumer",
    "Hold",
    "Line",
    "Old",
    "Planned",
    "Session",
    "Sub",
    "payload_of",
]


def payload_of(frames: bytes) -> int:
    """How many bytes of a command have come with these frames, the last of which may be cut off."""
    total = position = 0
    while len(frames) - position >= HEADER_SIZE:
        size = FRAME_HEADER.unpack_from(frames, position)[2]
        if position + size > len(frames):
            break
        total += size - HEADER_SIZE
        position += size
    return total


@dataclass
class Cmd:
    """A command of a client's. Its `effect` on the books comes before the broker acts, or `after` that."""

    segments: list[tuple[int, bytes]]
    effect: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    fails: Callable[[], bool] = lambda: False
    """Whether it must end the session."""
    names: tuple[int, ...] = ()
    """The transfers that it settles."""
    fragment: bool = False
    wide: bool = False
    """Whether it may do something even where it fails."""
    id: int = 0
    received: int = 0
    """Bytes of it that the broker has, in whole frames."""


@dataclass(eq=False)
class Sub:
    """A subscription."""

    session: Session
    destination: str
    queue: str
    explicit: bool
    acquires: bool
    window: Window = field(default_factory=Window)
    seen: int = 0
    """The position of the last message that it was shown."""
    active: bool = True


@dataclass(eq=False)
class Hold:
    """A copy that a session was sent."""

    copy: Copy
    sub: Sub
    acquired: bool


@dataclass
class Planned:
    """A publish as it reaches the broker. `ids` are those of its transfers."""

    message: Message
    queues: tuple[str, ...]
    ids: tuple[int, ...] = ()
    answered: bool = False
    returned: bool = False


@dataclass(eq=False)
class Session:
    """A session of 0-10, over any number of transports. `timeout` is how long it is kept without one."""

    name: bytes
    timeout: int | None
    line: Line | None = None
    channel: int = 0
    end: Any = None
    due: float | None = None
    """When it ends, without a transport."""
    # --- the client's commands
    next_id: int = 0
    executed: int = 0
    pending: list[Cmd] = field(default_factory=list)
    """Those that the client may have to send again, the oldest first."""
    known: set[int] = field(default_factory=set)
    """Those of which the client has said that it knows them to be done."""
    told: set[int] = field(default_factory=set)
    """Those of which the broker has said that they are done."""
    # --- the broker's
    log: dict[int, Assembly] = field(default_factory=dict)
    """All that the broker has sent, or would have if it could, by id."""
    accounted: int = 0
    """So many of them are in the books."""
    has: set[int] = field(default_factory=set)
    """Those that the client has."""
    part: Part | None = None
    repeats: set[int] = field(default_factory=set)
    """Those that the client may get once more."""
    done: set[int] = field(default_factory=set)
    """Those that the client has completed, and the broker knows it."""
    confirmed: set[int] = field(default_factory=set)
    # --- what it does
    subs: dict[str, Sub] = field(default_factory=dict)
    receipts: dict[int, tuple[Sub, tuple[int, int] | None]] = field(default_factory=dict)
    outstanding: dict[int, Hold] = field(default_factory=dict)
    publishes: list[Planned] | None = None
    """Those of the transaction; None where there is none."""
    accepts: dict[int, Hold] = field(default_factory=dict)
    """Those of the transaction."""
    answers: dict[int, str] = field(default_factory=dict)
    """By publish, what the broker has to answer."""
    parts: dict[str, tuple[Message, bytes, tuple[int, ...]]] = field(default_factory=dict)
    """By exchange, a message of which fragments are still to come: what is left of it, ids of those sent."""

    @property
    def attached(self) -> bool:
        return self.line is not None

    @property
    def reachable(self) -> bool:
        """Whether what the client says gets to the broker, and the other way round."""
        return self.line is not None and not self.line.mute and not self.line.deaf

    @property
    def settleable(self) -> list[int]:
        """The transfers that the client has and has not settled, as far as it knows."""
        named = {each for cmd in self.pending for each in cmd.names}
        return [each for each in self.outstanding if each in self.has and each not in named]


class Line:
    """A connection of 0-10. While `mute` the broker gets nothing of it, while `deaf` the client does not."""

    def __init__(self, server: Server, max_frame_size: int) -> None:
        self.client: RawClient = server.open(max_frame_size=max_frame_size)
        assert not self.client.inbox
        self.size = max_frame_size
        self.reader = Reader(max_frame_size)
        self.wire = self.reader
        """Reads what the broker has sent, whatever the client gets of it."""
        self.sessions: dict[int, Session] = {}
        self.mute = False
        self.deaf = False
        self.lost = b""
        """What was sent to the deaf client."""

    def go_deaf(self) -> None:
        if not self.deaf:
            self.deaf = True
            self.wire = deepcopy(self.reader)

    def take(self) -> list[Event]:
        """What the broker has sent since."""
        octets = b"".join(self.client.connection.pending())
        self.client.connection.sent(len(octets))
        if self.deaf:
            self.lost += octets
        return list(self.wire.read(octets))


@dataclass(eq=False)
class Consumer:
    """A consumer of 0-9-1; `prefetch` is 0 for any number."""

    tag: str
    queue: str
    no_ack: bool
    prefetch: int


class Old:
    """A connection of 0-9-1 with one channel, whose publishes are confirmed."""

    def __init__(self, server: Server, prefetch: int) -> None:
        self.client: OldClient = server.client()
        self.client.call(m.ConfirmSelect(), m.ConfirmSelectOk)
        self.client.call(m.BasicQos(prefetch_count=prefetch), m.BasicQosOk)
        self.prefetch = prefetch
        self.consumers: dict[str, Consumer] = {}
        self.held: dict[int, tuple[Copy, Consumer | None]] = {}
        self.last_tag = 0
        self.published = 0
        self.unconfirmed: dict[int, bool] = {}
        """By number, whether an ack is due."""
        self.returned: list[bytes] = []

    def room(self, consumer: Consumer, shared: bool) -> bool:
        """Whether the consumer may be sent another message."""
        if consumer.no_ack:
            return True
        counted = sum(each is not None and (shared or each is consumer) for _, each in self.held.values())
        return not consumer.prefetch or counted < consumer.prefetch
