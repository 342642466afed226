"""What is under way on each connection."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fakeamqp.faults.adapter import adapter_named

if TYPE_CHECKING:
    from fakeamqp.faults.line import Direction, FaultPort, Linked
    from fakeamqp.faults.units import Unit

__all__ = ["Wire"]

_CONNECTION = -1
"""Stands for all channels of a connection where something is muted."""


class Wire:
    """What is under way on one connection."""

    def __init__(self, linked: Linked) -> None:
        self.linked = linked
        self.line: FaultPort = linked.line
        self.protocol = adapter_named(linked.protocol)
        self.prefix_size = self.protocol.prefix_size
        self.confirms = self.protocol.confirms
        self.ends_of_channels = self.protocol.ends_of_channels
        self.telling: dict[Direction, frozenset[bytes]] = {"received": frozenset(), "sent": frozenset()}
        """By direction: how the methods begin that are not to pass unseen."""
        self.gathering: dict[int, Unit] = {}
        """By channel: a method whose content is still coming."""
        self.backlog: dict[int, deque[tuple[int, bytes]]] = {}
        """By channel, or -1 for the connection's own: the frames behind one that is delayed or held."""
        self.behind = 0
        """Bytes of payload in the backlog."""
        self.published: dict[int, dict[int, Unit]] = {}
        """By channel and tag: the publishes still to be confirmed."""
        self.halves: dict[int, Unit] = {}
        """By channel: one of these whose body has been passed on only in part."""
        self.unconfirmed: dict[int, int] = {}
        """By channel: the first publish that will never be confirmed, since a fault has seen to it."""
        self.lives: dict[int, int] = {}
        """By channel: how often it has been closed."""
        self.muted: dict[int, frozenset[str]] = {}
        """By channel: all that is not said there, except these methods."""
        self.deaf = False
        """Whether what comes is not heard any more."""
        self.ended = False
        """Whether the connection is gone."""

    @property
    def busy(self) -> bool:
        """Whether something is kept here, or kept from being said."""
        return bool(self.gathering or self.backlog or self.muted or self.deaf)

    @property
    def ending(self) -> bool:
        """Whether the connection is about to end."""
        return _CONNECTION in self.muted

    def mute(self, channel: int | None, but: frozenset[str]) -> None:
        """Say nothing more on a channel, or (None) on any, except these methods."""
        self.muted[_CONNECTION if channel is None else channel] = but

    def unmute(self, channel: int | None) -> None:
        """End `mute`."""
        self.muted.pop(_CONNECTION if channel is None else channel, None)

    def is_muted(self, channel: int, name: str) -> bool:
        """Whether a method is not to be sent."""
        muted = self.muted
        return bool(muted) and any(name not in muted.get(each, (name,)) for each in (channel, _CONNECTION))

    def never_confirmed(self, channel: int, tag: int) -> None:
        """A publish is never confirmed."""
        self.unconfirmed[channel] = min(tag, self.unconfirmed.get(channel, tag))

    def channel_ends(self, channel: int) -> None:
        """The channel is being closed: what was on its way there is not for the next of this number."""
        self.lives[channel] = self.lives.get(channel, 0) + 1
        self.published.pop(channel, None)
        self.halves.pop(channel, None)
        self.unconfirmed.pop(channel, None)

    def units(self, octets: bytes) -> list[Unit]:
        """The units in whole frames that are to be sent."""
        units: list[Unit] = []
        protocol = self.protocol
        starts = protocol.starts
        for kind, channel, payload, _ in protocol.framing.cut(octets):
            if units and not starts(kind):
                units[-1].frames.append((kind, payload))
            else:
                unit = protocol.unit(self.line, "sent", channel, [(kind, payload)])
                unit.life = self.lives.get(channel, 0)
                units.append(unit)
        return units
