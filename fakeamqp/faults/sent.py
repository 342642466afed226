"""Sent frames: frame groups that are about to be sent, and those that faults send.

A frame group that is delayed or held may be overtaken by later ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.faults.fault_port import TappedConnection
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.tap import FaultTap

__all__ = ["CLOSE_OK", "SentGroups"]

_GET_OK = "basic.get-ok"
CLOSE_OK = "connection.close-ok"
"""The last method on a connection: it may be sent when everything else is over."""


class SentGroups:
    """What a tap does with frames that are about to be sent.

    Args:
        tap: the tap.
    """

    def __init__(self, tap: FaultTap) -> None:
        self._tap = tap
        self._watched = tap.watched
        self._last_get: tuple[object, int, int, str] | None = None
        """Connection, channel, delivery tag and queue of the last delivery to a basic.get."""

    def filter(self, state: ConnectionFaultState, octets: bytes) -> bytes:
        """What is left to send of whole frames, after the rules have taken theirs."""
        groups = state.groups(octets)
        left = [
            group for group in groups if not self._suppress(state, group) and not self._take(state, group)
        ]
        if len(left) == len(groups):
            return octets
        return b"".join([group.data for group in left])

    def _suppress(self, state: ConnectionFaultState, group: FrameGroup) -> bool:
        """Suppress a frame group on a muted channel; returns whether it was."""
        muted = state.is_muted(group.channel, group.name)
        if muted:
            group.suppressed(state)
        return muted

    def _take(self, state: ConnectionFaultState, group: FrameGroup) -> bool:
        """Offer a frame group to the rules; returns whether one takes it."""
        name = group.name
        wanted = name in self._watched.names["sent"]
        if name in state.confirms:
            self._find_publishes(state, group)
        elif name in state.channel_closers:
            if wanted and self._tap.consider(state, group):
                return True  # The channel is closed when this is sent, if ever.
            state.channel_closed(group.channel)
            return False
        elif name == _GET_OK and self._last_get is not None:
            connection, channel, tag, queue = self._last_get
            here = connection is state.tapped and channel == group.channel
            if here and tag == group.method.delivery_tag:
                group.queues = (queue,)
        return wanted and self._tap.consider(state, group)

    @staticmethod
    def _find_publishes(state: ConnectionFaultState, confirm: FrameGroup) -> None:
        """Attach the publishes that a confirm settles."""
        published = state.published.get(confirm.channel)
        if published:
            method = confirm.method
            tags = [method.delivery_tag]
            if method.multiple:
                tags = [tag for tag in published if tag <= method.delivery_tag]
            confirm.settles = tuple(published.pop(tag) for tag in tags if tag in published)

    def note_get(self, connection: TappedConnection, channel: int, tag: int, queue: str) -> None:
        """Remember the queue of a delivery to a basic.get: basic.get-ok does not name it."""
        self._last_get = (connection, channel, tag, queue)

    def forget_get(self) -> None:
        """Forget it: its connection may be gone."""
        self._last_get = None

    # --- sent by faults ---------------------------------------------------------------------------------

    def send(self, state: ConnectionFaultState, group: FrameGroup) -> None:
        """Send a frame group, unless its channel or connection has been closed meanwhile."""
        if not self._may_send(state, group):
            self._tap.note(group.port, f"{group} is not sent: its channel has been closed")
            return
        if self._suppress(state, group):
            return
        group.port.send(self._tap.next.sending(state.tapped, group.encode()))
        if group.name in state.channel_closers:
            state.channel_closed(group.original_channel)

    @staticmethod
    def _may_send(state: ConnectionFaultState, group: FrameGroup) -> bool:
        port, channel = group.port, group.original_channel
        if group.name == CLOSE_OK:
            return True
        if state.ended or not port.open:
            return False
        if group.on_connection or group.name in state.channel_closers:
            return True
        if group.generation != state.generations.get(channel, 0):
            return False
        return group.allowed_after_close or port.channel_open(channel)

    def cut(self, state: ConnectionFaultState, group: FrameGroup, count: int) -> None:
        """Send the first `count` bytes of a frame group. The next tap sees the frames that are whole."""
        octets = group.data[:count]
        overhead = state.protocol.framing.overhead
        whole = 0
        for _, payload in group.frames:
            if whole + overhead + len(payload) > len(octets):
                break
            whole += overhead + len(payload)
        if whole:
            self._tap.next.sending(state.tapped, octets[:whole])
        if whole < len(octets):
            rest = octets[whole:]
            self._tap.note(group.port, f"sent {len(rest)} bytes of a frame: {rest[:32].hex()}")
        group.port.send(octets)
