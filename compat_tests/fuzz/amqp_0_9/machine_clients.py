"""What the clients of the machine know of their channels, and how they read what comes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compat_tests.fuzz.amqp_0_9.machine_books import Copy
from compat_tests.scripted.amqp_0_9 import Client
from compat_tests.scripted.requesting import Requester
from fakeamqp.protocols.amqp_0_9.codec import methods as m

__all__ = ["CLASSES", "Channel", "Consumer", "Held", "Peer", "Window"]

CLASSES = {"basic": "basic", "message": "basic", "file": "file", "stream": "stream"}
"""By class, which contents its consumers get."""


@dataclass(eq=False)
class Consumer:
    """A consumer of any class; those of 0-9-1 are "any"."""

    tag: str
    kind: str
    queue: str
    no_ack: bool
    no_local: bool
    latest: int = 0
    """The position of the newest message that it got for the first time."""


@dataclass(eq=False)
class Held:
    """A copy that a channel was sent and has not settled, or not yet committed that."""

    copy: Copy
    kind: str
    consumer: Consumer | None
    how: str | None = None


@dataclass
class Window:
    """How much of one class may be outstanding; 0 is any number."""

    count: int = 0
    size: int = 0

    def holds(self, sizes: list[int]) -> bool:
        """Whether so much may be outstanding."""
        few = not self.count or len(sizes) <= self.count
        return few and (not self.size or len(sizes) <= 1 or sum(sizes) <= self.size)


@dataclass(eq=False)
class Channel:
    """One channel. `lazy` says that files the broker opens are left waiting."""

    peer: Any
    number: int
    id: bytes = b""
    transacts: bool = False
    flows: bool = True
    lazy: bool = False
    last_tag: int = 0
    consumers: dict[str, Consumer] = field(default_factory=dict)
    held: dict[tuple[str, int], Held] = field(default_factory=dict)
    windows: dict[str, Window] = field(default_factory=dict)
    planned: list[int] = field(default_factory=list)
    opened: str | None = None
    """The file that the broker waits with."""
    staged: bytes | None = None
    replies: list[Any] = field(default_factory=list)
    getting: tuple[str, bool] = ("", False)
    """The queue that was asked for one message, and whether that needs no acknowledgement."""
    requester: Any = None
    asked: dict[int, Any] = field(default_factory=dict)

    def outstanding(self, kind: str) -> list[int]:
        """Sizes of what consumers of a class hold."""
        return [h.copy.size for h in self.held.values() if h.kind == kind and h.consumer is not None]


class Peer:
    """A client with a channel of the usual kind, and over 0-9 one that is transactional."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self.client = client
        self.channels: dict[int, Channel] = {}
        self.windows: dict[str, Window] = {}
        self.files: dict[str, bytes] = {}
        """Contents that were staged, by identifier."""

    def open(self, number: int) -> Channel:
        """Open a channel; the second is transactional."""
        channel = self.channels[number] = Channel(self, number)
        channel.id = self.client.call(m.ChannelOpen(), m.ChannelOpenOk, number).channel_id
        channel.requester = Requester(self.client, number)
        if number == 2:
            self.client.call(m.TxSelect(), m.TxSelectOk, number)
            channel.transacts = True
        return channel

    def resume(self, lost: Channel) -> Channel:
        """Go on with a channel of another connection; what is in it from there is in the inbox then."""
        channel = Channel(self, lost.number, lost.id, lost.transacts, lost.flows, lost.lazy)
        channel.consumers, channel.windows = lost.consumers, lost.windows
        for consumer in channel.consumers.values():
            consumer.latest = 0
        channel.requester = Requester(self.client, lost.number)
        for counter in ("asked", "answered", "mark"):
            setattr(channel.requester, counter, getattr(lost.requester, counter))
        self.channels[lost.number] = channel
        self.client.send(m.ChannelResume(channel_id=lost.id), lost.number)
        self.client.expect(m.ChannelOk, lost.number)
        if self.client.server.asks_for_tickets:
            self.client.ask_for_ticket(lost.number)
        return channel

    def outstanding(self, kind: str) -> list[int]:
        """Sizes of what consumers of a class hold on all channels."""
        return [size for channel in self.channels.values() for size in channel.outstanding(kind)]

    def within(self, channel: Channel, kind: str, more: int = 0) -> bool:
        """Whether the windows hold, with `more` bytes in one more message."""
        extra = [more] if more else []
        return all(
            window.holds(sizes + extra)
            for window, sizes in (
                (channel.windows.get(kind, Window()), channel.outstanding(kind)),
                (self.windows.get(kind, Window()), self.outstanding(kind)),
            )
        )
