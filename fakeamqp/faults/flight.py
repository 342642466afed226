"""A unit that a rule has taken, on its way through the rule's actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.faults.line import Cancellable
    from fakeamqp.faults.rule import Rule
    from fakeamqp.faults.tap import FaultTap
    from fakeamqp.faults.units import Unit
    from fakeamqp.faults.wires import Wire

__all__ = ["Flight"]


class Flight:
    """Goes through the actions of a rule, one after another; what none of them has consumed goes on.

    Args:
        tap: where it came from.
        wire: the connection it is on.
        rule: whose actions they are.
        unit: what was taken.
    """

    __slots__ = ("_ahead", "_blocks", "_timer", "rule", "tap", "unit", "units", "waiting", "wire")

    def __init__(self, tap: FaultTap, wire: Wire, rule: Rule, unit: Unit) -> None:
        self.tap = tap
        self.wire = wire
        self.rule = rule
        self.unit = unit
        self.units = [unit]
        """What is to go on: copies and changed ones included, none when it was consumed."""
        self.waiting = False
        """Whether it waits, for a while or for somebody."""
        self._ahead = list(rule.actions)
        self._blocks = False
        self._timer: Cancellable | None = None

    def run(self) -> None:
        """Go through the actions that are ahead, until one of them waits.

        An action that fails, such as a function of the test's, fails the rule and not the broker.
        """
        while self._ahead:
            action = self._ahead.pop(0)
            try:
                action.act(self)
            except BaseException as error:
                self.rule.fail(error, self.unit)
            if self.waiting:
                return
        self.pass_on()

    def pass_on(self, *, secured: bool = True) -> None:
        """Let the unit go on now; it goes once. A crash takes a publish that is not `secured`."""
        units, self.units = self.units, []
        for unit in units:
            self.tap.go_on(self.wire, unit, secured=secured)

    def consume(self) -> None:
        """Nothing goes on."""
        self.units = []

    # --- waiting --------------------------------------------------------------------------------------

    def wait(self, seconds: float | None = None) -> bool:
        """Wait so long, or until `resume` is called, and with it what is behind on the channel.

        Returns:
            Whether it does: not where the rule has been removed meanwhile.
        """
        if self.rule not in self.tap.rules:
            return False
        self.waiting = True
        self.tap.waiting[self] = None
        if not self._blocks:
            self._blocks = self.tap.block(self.wire, self.unit)
        if seconds is not None:
            host = self.tap.host
            self._timer = host.call_at(host.now() + seconds, self.resume, f"fault: {self.unit.name} goes on")
        return True

    def resume(self) -> None:
        """Go on after `wait`. Twice is once."""
        if not self.waiting:
            return
        self._stop_waiting()
        self.run()
        if self.waiting:
            return
        self.tap.confirm(self.wire)
        if self._blocks:
            self._blocks = False
            self.tap.unblock(self.wire, self.unit)
        self.tap.settle()

    def abandon(self) -> None:
        """The connection is gone: there is nothing to wait for."""
        if self.waiting:
            self._stop_waiting()
            self.rule.forget(self)
            self._ahead.clear()
            self.consume()

    def _stop_waiting(self) -> None:
        self.waiting = False
        self.tap.waiting.pop(self, None)
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
