"""What is under way on each connection."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fakeamqp.faults.units import Unit
from fakeamqp.wire.amqp_0_9_x.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
)

if TYPE_CHECKING:
    from fakeamqp.faults.line import Line, Linked

__all__ = ["Wire", "begins"]

_CONNECTION = -1
"""Stands for all channels of a connection where something is muted."""


class Wire:
    """What is under way on one connection."""

    def __init__(self, linked: Linked) -> None:
        self.linked = linked
        self.line: Line = linked.line
        self.gathering: dict[int, Unit] = {}
        """By channel: a method whose content is still coming."""
        self.backlog: dict[int, deque[tuple[int, bytes]]] = {}
        """By channel: the frames behind one that is delayed or held."""
        self.behind = 0
        """Octets of payload in the backlog."""
        self.published: dict[int, dict[int, Unit]] = {}
        """By channel and tag: the publishes still to be confirmed."""
        self.halves: dict[int, Unit] = {}
        """By channel: one of these whose body has been passed on only in part."""
        self.unconfirmed: dict[int, int] = {}
        """By channel: the first publish that will never be confirmed, since a fault has seen to it."""
        self.lives: dict[int, int] = {}
        """By channel: how often it has been closed."""
        self.muted: dict[int, str] = {}
        """By channel: all that is not said there, except this method."""
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

    def mute(self, channel: int | None, but: str) -> None:
        """Say nothing more on a channel, or (None) on any, except one method."""
        self.muted[_CONNECTION if channel is None else channel] = but

    def unmute(self, channel: int | None) -> None:
        """End `mute`."""
        self.muted.pop(_CONNECTION if channel is None else channel, None)

    def is_muted(self, channel: int, name: str) -> bool:
        """Whether a method is not to be sent."""
        return any(self.muted.get(each, name) != name for each in (channel, _CONNECTION))

    def never_confirmed(self, channel: int, tag: int) -> None:
        """A publish is never confirmed: no confirm of a later one may cover it."""
        self.unconfirmed[channel] = min(tag, self.unconfirmed.get(channel, tag))
        self.line.confirm_singly(channel)

    def channel_ends(self, channel: int) -> None:
        """The channel is being closed: what was on its way there is not for the next of this number."""
        self.lives[channel] = self.lives.get(channel, 0) + 1
        self.published.pop(channel, None)
        self.halves.pop(channel, None)
        self.unconfirmed.pop(channel, None)

    def units(self, octets: bytes) -> list[Unit]:
        """The units in whole frames that are to be sent."""
        units: list[Unit] = []
        position = 0
        while position < len(octets):
            frame_type, channel, size = FRAME_HEADER.unpack_from(octets, position)
            start = position + FRAME_HEADER.size
            piece = (frame_type, octets[start : start + size])
            position += size + FRAME_OVERHEAD
            if frame_type in (FRAME_CONTENT_HEADER, FRAME_BODY) and units:
                units[-1].frames.append(piece)
            else:
                units.append(Unit(self.line, "sent", channel, [piece]))
                units[-1].life = self.lives.get(channel, 0)
        return units


def begins(octets: bytes, telling: frozenset[bytes]) -> bool:
    """Whether one of the methods in whole frames begins like that; a heartbeat always counts."""
    position, end = 0, len(octets)
    while position < end:
        frame_type, _, size = FRAME_HEADER.unpack_from(octets, position)
        start = position + FRAME_HEADER.size
        if frame_type == FRAME_METHOD:
            if octets[start : start + 4] in telling:
                return True
        elif frame_type == FRAME_HEARTBEAT:
            return True
        position += size + FRAME_OVERHEAD
    return False
