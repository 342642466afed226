"""The fault state of one connection: what faults keep, mute and count on it."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from fakeamqp.dialects import dialect_named
from fakeamqp.faults.frame_group import HEARTBEAT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fakeamqp.dialects import Dialect, Direction
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.port import FaultPort, TappedConnection


class ConnectionFaultState:
    """The fault state of one connection."""

    def __init__(
        self,
        tapped: TappedConnection,
        note: Callable[[FaultPort, str], object],
        send: Callable[[ConnectionFaultState, FrameGroup], object],
    ) -> None:
        self.tapped = tapped
        self.note = note
        """Notes in the trace what a fault does to a connection."""
        self.send = send
        """Sends a frame group that a fault has made."""
        self.port: FaultPort = tapped.fault_port
        self.protocol: Dialect = dialect_named(tapped.protocol)
        self.prefix_size: int = self.protocol.prefix_size
        self.confirms: frozenset[str] = self.protocol.confirms
        self.channel_closers: frozenset[str] = self.protocol.channel_closers
        self.watched_prefixes: dict[Direction, frozenset[bytes]] = {}
        """By direction, from `watch` on: the payload prefixes of the methods that faults have to see."""
        self.gathering: dict[int, FrameGroup] = {}
        """By gathering key: a method whose content is incomplete."""
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
        self.muted: dict[int | None, frozenset[str]] = {}
        """By channel, None for all: nothing is sent on it, except these methods."""
        self.deaf = False
        """True if received frames are discarded."""
        self.ended = False
        """True once the connection is gone."""

    @property
    def busy(self) -> bool:
        """True while frames are kept or muted."""
        return bool(self.gathering or self.backlog or self.muted or self.deaf)

    @property
    def ending(self) -> bool:
        """True if a fault is about to end the connection."""
        return None in self.muted

    def watch(self, names: Mapping[Direction, frozenset[str]]) -> None:
        """Watch for the methods of these names; others pass without becoming frame groups."""
        protocol = self.protocol
        for direction, watched in names.items():
            if direction == "sent":
                watched = watched | protocol.confirms | protocol.channel_closers
            known = (protocol.kinds[name] for name in watched if name in protocol.kinds)
            prefixes = {prefix for kind in known for prefix in kind.prefixes}
            if prefixes and protocol.wrapper_prefix is not None:
                prefixes.add(protocol.wrapper_prefix)
            if HEARTBEAT in watched:
                prefixes.add(protocol.heartbeat_prefix)
            self.watched_prefixes[direction] = frozenset(prefixes)

    def ordering_key(self, group: FrameGroup) -> int:
        """The ordering key of a frame group."""
        kind, payload = group.frames[0]
        return self.protocol.ordering_key(kind, group.original_channel, payload)

    def suppresses(self, group: FrameGroup) -> bool:
        """Suppress a frame group on a muted channel; returns whether it was."""
        muted, name = self.muted, group.name
        if not muted or all(name in muted.get(each, (name,)) for each in (group.channel, None)):
            return False
        group.suppressed(self)
        return True

    def may_send(self, group: FrameGroup) -> bool:
        """True unless the channel of a frame group, or the connection, has been closed meanwhile."""
        port, channel = self.port, group.original_channel
        if self.ended or not port.open:
            return False
        if group.on_connection or group.name in self.channel_closers:
            return True
        if group.generation != self.generations.get(channel, 0):
            return False
        return group.allowed_after_close or port.channel_open(channel)

    def complete_publish(self, channel: int, kind: int, payload: bytes) -> None:
        """Add the rest of a remembered publish whose beginning was passed on."""
        publish = self.incomplete.get(channel)
        if publish is not None and publish.continues_with(kind, payload):
            publish.frames.append((kind, payload))
            if publish.complete:
                del self.incomplete[channel]

    def find_publishes(self, confirm: FrameGroup) -> None:
        """Attach the publishes that a confirm settles."""
        published = self.published.get(confirm.channel)
        if published:
            method = confirm.method
            tags = [method.delivery_tag]
            if method.multiple:
                tags = [tag for tag in published if tag <= method.delivery_tag]
            confirm.settles = tuple(published.pop(tag) for tag in tags if tag in published)

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
        for kind, channel, payload, _ in protocol.cut(octets):
            last = groups[-1] if groups else None
            if last is not None and (
                not starts(kind) or (last.channel == channel and last.continues_with(kind, payload))
            ):
                last.frames.append((kind, payload))
            else:
                group = protocol.group(self.port, "sent", channel, [(kind, payload)])
                group.generation = self.generations.get(channel, 0)
                groups.append(group)
        return groups
