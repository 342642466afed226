"""The rules that chaos installs."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING

from fakeamqp.faults.chaos.catalogue import FAULTS
from fakeamqp.faults.rule import Rule
from fakeamqp.faults.subjects import Subject, subject_of

if TYPE_CHECKING:
    from fakeamqp.faults.actions import Action
    from fakeamqp.faults.chaos.chaos import Chaos
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.tap import FaultTap

__all__ = ["ChaosRule", "ConnectionCounter", "chaos_rules"]


class ConnectionCounter(Rule):
    """Counts every new connection, so that its number does not depend on which methods are drawn for."""

    def __init__(self, tap: FaultTap, chaos: Chaos) -> None:
        super().__init__(tap, subject_of(("connection.start",), "sent"), [], None, None, Random(0))
        self._chaos = chaos

    def matches(self, group: FrameGroup) -> bool:
        """Count, and never match."""
        if group.name == "connection.start":
            self._chaos.count_connection(group.port)
        return False


class ChaosRule(Rule):
    """Draws faults for the methods of one subject."""

    def __init__(self, tap: FaultTap, subject: Subject, names: tuple[str, ...], chaos: Chaos) -> None:
        super().__init__(tap, subject, [], None, None, Random(0))
        self._names = names
        self.chaos = chaos

    def fires(self, group: FrameGroup) -> bool:
        """Draw for this frame group."""
        if self.removed:
            return False
        names = [name for name in self._names if self._can_happen(name, group)]
        self.actions: list[Action] = (
            self.chaos.draw(group, names, confirms=self.subject.confirms) if names else []
        )
        return bool(self.actions)

    def _can_happen(self, name: str, group: FrameGroup) -> bool:
        fault = FAULTS[name]
        return self.subject.confirms or (
            group.name in fault.methods and fault.happens_in(group.protocol.name)
        )

    def retire(self) -> None:
        """Stop acting, also on frame groups that were taken already."""
        self._removed = True

    @property
    def sentence(self) -> str:
        """What it does to the current frame group."""
        return "chaos: " + ", then ".join(action.words for action in self.actions)


def chaos_rules(tap: FaultTap, chaos: Chaos, faults: Iterable[str]) -> list[ChaosRule]:
    """The rules that can draw these faults: one for each direction, and one for confirms."""
    by_subject: dict[tuple[str, bool], list[str]] = {}
    for name in sorted(faults):
        subject = subject_of(FAULTS[name].methods, FAULTS[name].direction)
        by_subject.setdefault((subject.direction, subject.confirms), []).append(name)
    rules = []
    # Sorted, so that what the rules release at their end passes in a fixed order.
    for (direction, _), names in sorted(by_subject.items()):
        methods = tuple(dict.fromkeys(method for name in names for method in FAULTS[name].methods))
        rules.append(ChaosRule(tap, subject_of(methods, direction), tuple(names), chaos))
    return rules
