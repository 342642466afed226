"""The methods that rules have to see. All others pass the tap without becoming frame groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fakeamqp.faults.frame_group import HEARTBEAT

if TYPE_CHECKING:
    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.faults.fault_port import Direction
    from fakeamqp.faults.rule import Rule

__all__ = ["WatchedMethods"]

_MOST_IGNORED = 10_000
"""How many publishes are remembered that concern no rule."""


class WatchedMethods:
    """The methods that the rules of one broker concern, computed anew whenever the rules change."""

    def __init__(self) -> None:
        self.names: dict[Direction, frozenset[str]] = {"received": frozenset(), "sent": frozenset()}
        """By direction: the names of the methods."""
        self.confirmed: frozenset[str] = frozenset()
        """The publishes whose confirms concern a rule."""
        self.ignored: set[tuple[int, bytes]] = set()
        """Channels and methods of publishes that concern no rule, whatever their content is."""
        self.queue_of_confirms: bool = False
        """True if a rule asks for the queue of a sent method."""

    def update(self, rules: list[Rule]) -> bool:
        """Compute everything from the rules; returns whether publishes have to be confirmed one by one."""
        for direction in self.names:
            names = [rule.subject.names for rule in rules if rule.subject.direction == direction]
            self.names[direction] = frozenset().union(*names)
        sent = [rule for rule in rules if rule.subject.direction == "sent"]
        protocols = dict.fromkeys(each for rule in sent for each in rule.subject.protocols)
        confirming = [each for each in protocols if self.names["sent"] & each.confirms]
        self.confirmed = frozenset().union(*(each.publishes for each in confirming))
        self.names["received"] |= self.confirmed
        self.queue_of_confirms = any(rule.asks("queue") for rule in sent)
        self.ignored.clear()
        return bool(confirming)

    def set_prefixes(self, state: ConnectionFaultState) -> None:
        """Set the payload prefixes that a connection watches for."""
        protocol = state.protocol
        for direction, names in self.names.items():
            watched = names
            if direction == "sent":
                watched = names | protocol.confirms | protocol.channel_closers
            known = (protocol.kinds[name] for name in watched if name in protocol.kinds)
            prefixes = {prefix for kind in known for prefix in kind.prefixes}
            if prefixes and protocol.wrapper_prefix is not None:
                prefixes.add(protocol.wrapper_prefix)
            if HEARTBEAT in names:
                prefixes.add(protocol.heartbeat_prefix)
            state.watched_prefixes[direction] = frozenset(prefixes)

    def ignore(self, channel: int, method: bytes, rules: Iterable[Rule]) -> None:
        """Remember that a publish concerns no rule, so that the next one with the same bytes passes at once.

        Measured with a rule about another routing key, this costs 24 % of the throughput instead of 66 %; and
        84 % if the content had to be gathered.
        """
        if len(self.ignored) < _MOST_IGNORED and all(rule.anywhere for rule in rules):
            self.ignored.add((channel, method))
