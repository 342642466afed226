"""The fault state of one connection: what faults keep, mute and count on it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fakeamqp.faults.adapter import adapter_named

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakeamqp.faults.adapter import FaultAdapter
    from fakeamqp.faults.fault_port import Direction, FaultPort, TappedConnection
    from fakeamqp.faults.frame_group import FrameGroup

__all__ = ["ConnectionFaultState"]

_CONNECTION = -1
"""The key for all channels of a connection in `muted`."""


class ConnectionFaultState:
    """The fault state of one connection.

    Args:
        tapped: the connection.
        note: notes in the trace what a fault does to a connection.
        send: sends a frame group that a fault has made.
    """

    def __init__(
        self,
        tapped: TappedConnection,
        note: Callable[[FaultPort, str], object],
        send: Callable[[ConnectionFaultState, FrameGroup], object],
    ) -> None:
        self.tapped = tapped
        self._note = note
        self._send = send
        self.port: FaultPort = tapped.fault_port
        self.protocol: FaultAdapter = adapter_named(tapped.protocol)
        self.prefix_size: int = self.protocol.prefix_size
        self.confirms: frozenset[str] = self.protocol.confirms
        self.channel_closers: frozenset[str] = self.protocol.channel_closers
        self.watched_prefixes: dict[Direction, frozenset[bytes]] = {
            "received": frozenset(),
            "sent": frozenset(),
        }
        """By direction: the payload prefixes of the methods that faults have to see."""
        self.gathering: dict[int, FrameGroup] = {}
        """By channel: a method whose content is incomplete."""
        self.backlog: dict[int, deque[tuple[int, bytes]]] = {}
        """By ordering key: the frames behind a delayed or held frame group."""
        self.backlog_size = 0
        """Bytes of payload in the backlog."""
        self.published: dict[int, dict[int, FrameGroup]] = {}
        """By channel and delivery tag: the publishes that are not confirmed yet."""
        self.incomplete: dict[int, FrameGroup] = {}
        """By channel: one of these publishes whose body has been passed on only in part."""
        self.unconfirmed: dict[int, int] = {}
        """By channel: the tag of the first publish that a fault leaves unconfirmed for ever."""
        self.generations: dict[int, int] = {}
        """By channel: how often it was closed."""
        self.muted: dict[int, frozenset[str]] = {}
        """By channel: nothing is sent on it, except these methods."""
        self.deaf = False
        """True if received frames are discarded."""
        self.ended = False
        """True once the connection is gone."""

    def note(self, sentence: str) -> None:
        """Note in the trace what a fault did."""
        self._note(self.port, sentence)

    def send(self, group: FrameGroup) -> None:
        """Send a frame group that a fault has made."""
        self._send(self, group)

    @property
    def busy(self) -> bool:
        """True while frames are kept or muted."""
        return bool(self.gathering or self.backlog or self.muted or self.deaf)

    @property
    def ending(self) -> bool:
        """True if a fault is about to end the connection."""
        return _CONNECTION in self.muted

    def mute(self, channel: int | None, but: frozenset[str]) -> None:
        """Send nothing more on a channel, or (None) on any channel, except these methods."""
        self.muted[_CONNECTION if channel is None else channel] = but

    def unmute(self, channel: int | None) -> None:
        """End `mute`."""
        self.muted.pop(_CONNECTION if channel is None else channel, None)

    def is_muted(self, channel: int, name: str) -> bool:
        """True if a method is not sent on a channel."""
        muted = self.muted
        return bool(muted) and any(name not in muted.get(each, (name,)) for each in (channel, _CONNECTION))

    def never_confirmed(self, channel: int, tag: int) -> None:
        """Remember that a publish is never confirmed."""
        self.unconfirmed[channel] = min(tag, self.unconfirmed.get(channel, tag))

    def channel_closed(self, channel: int) -> None:
        """Forget the publishes of a channel, and count the close for the next channel of this number."""
        self.generations[channel] = self.generations.get(channel, 0) + 1
        self.published.pop(channel, None)
        self.incomplete.pop(channel, None)
        self.unconfirmed.pop(channel, None)

    def groups(self, octets: bytes) -> list[FrameGroup]:
        """The frame groups in whole frames that are to be sent."""
        groups: list[FrameGroup] = []
        protocol = self.protocol
        starts = protocol.starts
        for kind, channel, payload, _ in protocol.framing.cut(octets):
            if groups and not starts(kind):
                groups[-1].frames.append((kind, payload))
            else:
                group = protocol.group(self.port, "sent", channel, [(kind, payload)])
                group.generation = self.generations.get(channel, 0)
                groups.append(group)
        return groups
