"""Received frames: they are gathered into frame groups, which the rules look at.

Received frames of one channel stay in order: while a frame group is delayed or held, the frames behind it on
its channel wait in a backlog.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fakeamqp.faults.frame_group import HEARTBEAT

if TYPE_CHECKING:
    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.tap import FaultTap

__all__ = ["ReceivedFrames"]

_MOST_BACKLOG = 1024 * 1024
"""Bytes in the backlog above which the connection is not read any further."""


class ReceivedFrames:
    """What a tap does with received frames.

    Args:
        tap: the tap.
    """

    def __init__(self, tap: FaultTap) -> None:
        self._tap = tap
        self._watched = tap.watched

    # --- gathering --------------------------------------------------------------------------------------

    def receive(self, state: ConnectionFaultState, kind: int, channel: int, payload: bytes) -> bool:
        """Handle one frame; returns True if faults keep it, False if the connection is to process it."""
        if self._append_to_backlog(state, kind, channel, payload):
            return True
        group = state.gathering.get(channel)
        if group is None or state.protocol.stands_alone(kind):
            return self._begin(state, kind, channel, payload)
        return self._continue(state, group, kind, payload)

    def _begin(self, state: ConnectionFaultState, kind: int, channel: int, payload: bytes) -> bool:
        """Handle a frame that belongs to no frame group so far."""
        protocol, watched = state.protocol, self._watched
        if not protocol.starts(kind):
            self._complete(state, channel, kind, payload)
            return False
        if (channel, payload) in watched.ignored:
            return False
        group = protocol.group(state.port, "received", channel, [(kind, payload)])
        if group.name not in watched.names["received"]:
            return False
        if group.method_complete and not group.has_content:
            early = group.inline and self._tap.consider(state, group, part="header")
            return early or self._tap.consider(state, group)
        if protocol.stands_alone(kind):
            return False  # Frames of another group may come between its frames.
        if not state.port.channel_open(channel):
            return False  # The connection will discard it or report an error: it concerns no rule.
        if group.name not in watched.confirmed and not any(rule.may_want(group) for rule in self._tap.rules):
            watched.ignore(channel, payload, self._tap.rules)
            return False
        state.gathering[channel] = group
        return True

    def _continue(self, state: ConnectionFaultState, group: FrameGroup, kind: int, payload: bytes) -> bool:
        """Handle a frame behind an incomplete frame group on its channel."""
        channel = group.channel
        if not group.continues_with(kind) or not state.port.channel_open(channel):
            # An unexpected frame, or a closed channel: the connection processes all frames as they came.
            del state.gathering[channel]
            state.port.receive(group.data)
            return False
        group.frames.append((kind, payload))
        # The group is not in `gathering` while rules act, because one of them might be removed.
        del state.gathering[channel]
        if group.header_complete and self._tap.consider(state, group, part="header"):
            return True  # The rest of its frames goes to the connection by itself.
        if not group.complete:
            state.gathering[channel] = group
        elif not self._tap.consider(state, group):
            self._tap.pass_on(state, group)
        return True

    def release_unwanted(self, state: ConnectionFaultState) -> None:
        """Pass on the incomplete frame groups that concern no rule any more."""
        for channel, group in list(state.gathering.items()):
            if group.name not in self._watched.names["received"]:
                del state.gathering[channel]
                if not state.deaf:
                    state.port.receive(group.data)

    # --- publishes whose confirms matter ----------------------------------------------------------------

    def remember(self, state: ConnectionFaultState, group: FrameGroup) -> None:
        """Keep a publish until it is confirmed, so that rules about confirms can look at it."""
        tag = group.tag
        if tag is not None:
            if self._watched.queue_of_confirms:
                group.note_destinations()
            state.published.setdefault(group.channel, {})[tag] = group
            if not group.complete:
                state.incomplete[group.channel] = group

    def _complete(self, state: ConnectionFaultState, channel: int, kind: int, payload: bytes) -> None:
        """Add the rest of a remembered publish whose beginning was passed on."""
        publish = state.incomplete.get(channel)
        if publish is not None and publish.continues_with(kind):
            publish.frames.append((kind, payload))
            if publish.complete:
                del state.incomplete[channel]

    # --- the backlog ------------------------------------------------------------------------------------

    def _append_to_backlog(
        self, state: ConnectionFaultState, kind: int, channel: int, payload: bytes
    ) -> bool:
        """Keep a frame behind a waiting frame group; returns False if there is none."""
        if not state.backlog:
            return False
        backlog = state.backlog.get(state.protocol.ordering_key(kind, channel, payload))
        if backlog is None:
            return False
        backlog.append((kind, payload))
        state.backlog_size += len(payload)
        if state.backlog_size > _MOST_BACKLOG:
            state.port.pause(True)
        return True

    def block(self, state: ConnectionFaultState, group: FrameGroup) -> bool:
        """Let the frames behind a received group wait for it; returns False for groups without an order."""
        blocks = group.direction == "received" and group.name != HEARTBEAT
        if blocks:
            state.backlog.setdefault(self._ordering_key(state, group), deque())
        return blocks

    def unblock(self, state: ConnectionFaultState, group: FrameGroup) -> None:
        """Handle the frames that waited behind a received group."""
        key = self._ordering_key(state, group)
        channel = group.original_channel
        backlog = state.backlog.pop(key, None)
        while backlog:
            kind, payload = backlog.popleft()
            state.backlog_size -= len(payload)
            if state.deaf or state.ended:
                continue
            if not self.receive(state, kind, channel, payload):
                state.port.receive(state.protocol.framing.frame(kind, channel, payload))
            self._tap.confirm(state)
            if key in state.backlog:
                state.backlog[key].extend(backlog)
                break
        if state.backlog_size <= _MOST_BACKLOG // 2:
            state.port.pause(False)

    @staticmethod
    def _ordering_key(state: ConnectionFaultState, group: FrameGroup) -> int:
        kind, payload = group.frames[0]
        return state.protocol.ordering_key(kind, group.original_channel, payload)
