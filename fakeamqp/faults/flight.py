"""A unit that a rule has taken, on its way through the rule's actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.faults.rule import Rule
    from fakeamqp.faults.tap import FaultTap
    from fakeamqp.faults.units import Unit

__all__ = ["Flight"]


class Flight:
    """Goes through the actions of a rule, one after another; what none of them has consumed goes on.

    Args:
        tap: where it came from.
        rule: whose actions they are.
        unit: what was taken.
    """

    __slots__ = ("_ahead", "_stopped", "rule", "tap", "unit", "units")

    def __init__(self, tap: FaultTap, rule: Rule, unit: Unit) -> None:
        self.tap = tap
        self.rule = rule
        self.unit = unit
        self.units = [unit]
        """What is to go on: copies and changed ones included, none when it was consumed."""
        self._ahead = list(rule.actions)
        self._stopped = False

    def run(self) -> None:
        """Go through the actions that are ahead, until one of them stops."""
        self._stopped = False
        while self._ahead:
            action = self._ahead.pop(0)
            action.act(self)
            if self._stopped:
                return
        self.pass_on()

    def pass_on(self, *, secured: bool = True) -> None:
        """Let the unit go on now; it goes once. A crash takes a publish that is not `secured`."""
        units, self.units = self.units, []
        for unit in units:
            self.tap.go_on(unit, secured=secured)

    def consume(self) -> None:
        """Nothing goes on."""
        self.units = []

    def stop(self) -> None:
        """Wait here, and with it what is behind on the channel, until somebody calls `resume`."""
        self._stopped = True
        self.tap.block(self.unit)

    def resume(self) -> None:
        """Go on after `stop`."""
        self.run()
        if not self._stopped:
            self.tap.unblock(self.unit)
