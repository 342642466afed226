"""Where rules meet frames: frames become units, rules look at them, and what is left of them goes on.

Received frames of one channel stay in order: while one of them is delayed or held, what comes behind it on
the channel waits. What is sent may be overtaken by what no rule holds: that is what a test wants of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fakeamqp.faults.flight import Flight
from fakeamqp.faults.line import Nobody
from fakeamqp.faults.units import HEARTBEAT, Unit
from fakeamqp.wire.amqp_0_9_1.methods import METHODS
from fakeamqp.wire.amqp_0_9_x.frames import (
    FRAME_BODY,
    FRAME_CONTENT_HEADER,
    FRAME_HEADER,
    FRAME_HEARTBEAT,
    FRAME_METHOD,
    FRAME_OVERHEAD,
    frame,
)

if TYPE_CHECKING:
    from fakeamqp.faults.line import Direction, Host, Line, Linked, Onlooker
    from fakeamqp.faults.rule import Rule

__all__ = ["FaultTap", "Wire"]

_ENDS = frozenset(("closed", "aborted", "lost"))
_PUBLISH = "basic.publish"
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
        self.published: dict[int, dict[int, Unit]] = {}
        """By channel and tag: the publishes still to be confirmed."""
        self.muted: dict[int, str] = {}
        """By channel: all that is not said there, except this method."""
        self.deaf = False
        """Whether what comes is not heard any more."""

    def mute(self, channel: int | None, but: str) -> None:
        """Say nothing more on a channel, or (None) on any, except one method."""
        self.muted[_CONNECTION if channel is None else channel] = but

    def unmute(self, channel: int | None) -> None:
        """End `mute`."""
        self.muted.pop(_CONNECTION if channel is None else channel, None)

    def is_muted(self, channel: int, name: str) -> bool:
        """Whether a method is not to be sent."""
        return any(self.muted.get(each, name) != name for each in (channel, _CONNECTION))


class FaultTap:
    """The tap of a broker in which there are rules.

    Args:
        host: the broker.
        silence: cuts a connection off from the world.
    """

    def __init__(self, host: Host, silence: Callable[[Line], object]) -> None:
        self.host = host
        self.silence = silence
        self.rules: list[Rule] = []
        self.confirms_singly = False
        self.turns = 0
        """How deep in the reading of frames we are; 0 where somebody else has called."""
        self._behind: Onlooker = host.onlooker() or Nobody()
        # Faults have no interest in these, so nothing stands between the broker and who has.
        self.published = self._behind.published
        self.refused = self._behind.refused
        self.delivered = self._behind.delivered
        self.settled = self._behind.settled
        self.model = self._behind.model
        self._wires: dict[Linked, Wire] = {}
        self._wanted: dict[Direction, frozenset[str]] = {"received": frozenset(), "sent": frozenset()}

    # --- rules ----------------------------------------------------------------------------------------

    def add(self, rule: Rule) -> None:
        """Let a rule look at what passes from now on, after those that are there."""
        self.rules.append(rule)
        self._changed()
        self.host.install(self)

    def remove(self, rule: Rule) -> None:
        """Let it look no further."""
        if rule in self.rules:
            self.rules.remove(rule)
            self._changed()

    def settle(self) -> None:
        """Get out of the way where there is nothing to do: no rules, and nothing kept."""
        busy = any(wire.gathering or wire.backlog or wire.muted for wire in self._wires.values())
        if not self.rules and not busy:
            self._wires.clear()
            self.host.install(None)

    def _changed(self) -> None:
        for direction in self._wanted:
            names = [rule.subject.names for rule in self.rules if rule.subject.direction == direction]
            self._wanted[direction] = frozenset().union(*names)
        confirms = any(rule.subject.confirms for rule in self.rules)
        if confirms:
            self._wanted["received"] |= {_PUBLISH}
        self.confirms_singly = confirms or bool(self._wanted["sent"] & {"basic.ack", "basic.nack"})

    def wire(self, linked: Linked) -> Wire:
        """What is under way on a connection."""
        found = self._wires.get(linked)
        if found is None:
            found = self._wires[linked] = Wire(linked)
        return found

    # --- the tap --------------------------------------------------------------------------------------

    def received(self, connection: Linked, frame_type: int, channel: int, payload: bytes) -> bool:
        """See `model.tap.Tap`."""
        self._behind.received(connection, frame_type, channel, payload)
        self.turns += 1
        try:
            wire = self.wire(connection)
            return wire.deaf or self._come(wire, frame_type, channel, payload)
        finally:
            self.turns -= 1

    def sending(self, connection: Linked, octets: bytes) -> bytes:
        """See `model.tap.Tap`."""
        wire = self.wire(connection)
        passed = [
            unit.octets
            for unit in _units(wire.line, octets)
            if not wire.is_muted(unit.channel, unit.name) and not self._sent(wire, unit)
        ]
        octets = b"".join(passed)
        return self._behind.sending(connection, octets) if octets else octets

    def connection(self, connection: str, event: str, detail: str = "") -> None:
        """See `model.tap.Tap`."""
        self._behind.connection(connection, event, detail)
        if event in _ENDS:
            for linked in [linked for linked in self._wires if linked.name == connection]:
                del self._wires[linked]

    def note(self, line: Line, sentence: str) -> None:
        """Have the trace say what a fault did."""
        self._behind.connection(line.name, "fault", sentence)

    # --- received -------------------------------------------------------------------------------------

    def _come(self, wire: Wire, frame_type: int, channel: int, payload: bytes) -> bool:
        """One received frame; whether it is kept."""
        if frame_type == FRAME_HEARTBEAT:
            wanted = HEARTBEAT in self._wanted["received"]
            return wanted and self._take(wire, Unit(wire.line, "received", channel, [(frame_type, payload)]))
        backlog = wire.backlog.get(channel)
        if backlog is not None:
            backlog.append((frame_type, payload))
            return True
        unit = wire.gathering.get(channel)
        if unit is None:
            if frame_type != FRAME_METHOD:
                return False
            kind = METHODS.get(int.from_bytes(payload[:4], "big"))
            if kind is None or kind.NAME not in self._wanted["received"]:
                return False
            unit = Unit(wire.line, "received", channel, [(frame_type, payload)])
            if not unit.has_content:
                return self._take(wire, unit)
            wire.gathering[channel] = unit
            return True
        if frame_type != (FRAME_CONTENT_HEADER if len(unit.frames) == 1 else FRAME_BODY):
            # Not what belongs here: the connection has to see it as it came.
            del wire.gathering[channel]
            wire.line.take(unit.octets)
            return False
        unit.frames.append((frame_type, payload))
        if not unit.complete:
            if frame_type == FRAME_CONTENT_HEADER and self._consider(wire, unit, part="header"):
                del wire.gathering[channel]
            return True
        del wire.gathering[channel]
        if len(unit.frames) == 2 and self._consider(wire, unit, part="header"):
            return True
        if not self._take(wire, unit):
            self.go_on(unit)
        return True

    def _take(self, wire: Wire, unit: Unit) -> bool:
        """Whether a rule takes a whole unit."""
        return self._consider(wire, unit)

    def go_on(self, unit: Unit, *, secured: bool = True) -> None:
        """A unit goes its way, received or sent. A crash takes a publish that is not `secured`."""
        wire = self.wire_of(unit.line)
        if unit.direction == "sent":
            if wire is None or not unit.line.channel_open(unit.channel):
                self.note(unit.line, f"{unit} is not sent any more: its channel has been closed")
                return
            unit.line.put(self._behind.sending(wire.linked, unit.octets))
            return
        if wire is not None and unit.name == _PUBLISH and self.confirms_singly and not unit.copy:
            self._remember(wire, unit)
        if not secured and unit.name == _PUBLISH:
            unit.line.take_unsecured(unit.channel, unit.octets)
        elif unit.copy and unit.name == _PUBLISH:
            unit.line.take_copy(unit.channel, unit.octets)
        else:
            unit.line.take(unit.octets)
        if not self.turns:
            unit.line.confirm_now()

    def _remember(self, wire: Wire, unit: Unit) -> None:
        """Keep a publish until it is confirmed, so that rules about confirms can look at it."""
        tag = unit.line.next_publish(unit.channel)
        if tag is not None:
            if tag == 1:
                wire.published.pop(unit.channel, None)
            wire.published.setdefault(unit.channel, {})[tag] = unit

    def wire_of(self, line: Line) -> Wire | None:
        """What is under way on a line; None when it has ended."""
        return next((wire for wire in self._wires.values() if wire.line is line), None)

    def block(self, unit: Unit) -> None:
        """Let what is behind a received unit on its channel wait for it."""
        wire = self.wire_of(unit.line)
        if wire is not None and unit.direction == "received" and unit.name != HEARTBEAT:
            wire.backlog.setdefault(unit.channel, deque())

    def unblock(self, unit: Unit) -> None:
        """Go on with what waited behind a received unit."""
        wire = self.wire_of(unit.line)
        backlog = None if wire is None else wire.backlog.pop(unit.channel, None)
        if wire is None or not backlog or unit.direction == "sent":
            return
        while backlog:
            frame_type, payload = backlog.popleft()
            if not self._come(wire, frame_type, unit.channel, payload):
                wire.line.take(frame(frame_type, unit.channel, payload))
            if unit.channel in wire.backlog:
                wire.backlog[unit.channel].extend(backlog)
                return
        if not self.turns:
            wire.line.confirm_now()

    # --- sent -----------------------------------------------------------------------------------------

    def _sent(self, wire: Wire, unit: Unit) -> bool:
        """Whether a rule takes a unit that is about to be sent."""
        if unit.name in ("basic.ack", "basic.nack"):
            publish = wire.published.get(unit.channel, {}).pop(unit.method.delivery_tag, None)
            unit.settles = () if publish is None else (publish,)
        return unit.name in self._wanted["sent"] and self._consider(wire, unit)

    # --- rules and units ------------------------------------------------------------------------------

    def _consider(self, wire: Wire, unit: Unit, part: str | None = None) -> bool:
        """Whether a rule takes a unit; the first that fires does."""
        for rule in list(self.rules):
            if rule.part == part and rule.looks_at(unit) and rule.fires(unit):
                if not rule.actions:
                    continue  # It only looks on.
                self.note(unit.line, f"{rule}: {unit}")
                Flight(self, rule, unit).run()
                return True
        return False

    def soon(self, callback: Callable[[], object], label: str) -> None:
        """Have something done as soon as nobody is in the midst of anything."""
        self.host.call_at(self.host.now(), callback, label)

    def lines(self) -> Iterable[Line]:
        """The open connections, oldest first."""
        return [linked.line for linked in self.host.linked()]


def _units(line: Line, octets: bytes) -> list[Unit]:
    """The units in whole frames."""
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
            units.append(Unit(line, "sent", channel, [piece]))
    return units
