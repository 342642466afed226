"""An interception: a frame group that a rule has taken, on its way through the rule's actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.faults.context import Cancellable
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.rule import Rule
    from fakeamqp.faults.tap import FaultTap

__all__ = ["Interception"]


class Interception:
    """Applies the actions of a rule one after another, then passes on the frame groups that are left.

    Args:
        tap: the tap that the frame group came from.
        state: the fault state of its connection.
        rule: the rule that fired.
        group: the frame group.
    """

    __slots__ = ("_actions_left", "_blocks", "_timer", "group", "groups", "rule", "state", "tap", "waiting")

    def __init__(self, tap: FaultTap, state: ConnectionFaultState, rule: Rule, group: FrameGroup) -> None:
        self.tap: FaultTap = tap
        self.state: ConnectionFaultState = state
        self.rule: Rule = rule
        self.group: FrameGroup = group
        self.groups: list[FrameGroup] = [group]
        """The frame groups to pass on, duplicates and replacements included; empty once consumed."""
        self.waiting: bool = False
        """True while it is delayed or held."""
        self._actions_left = list(rule.actions)
        self._blocks = False
        self._timer: Cancellable | None = None

    def run(self) -> None:
        """Apply the actions that are left, until one of them waits.

        An action that raises, such as a function of the test, fails the rule and not the broker.
        """
        while self._actions_left:
            action = self._actions_left.pop(0)
            try:
                action.apply(self)
            except BaseException as error:
                self.rule.fail(error, self.group)
            if self.waiting:
                return
        self.pass_on()

    def pass_on(self, *, secured: bool = True) -> None:
        """Pass the frame groups on now; each passes once. A crash loses a publish that is not `secured`."""
        groups, self.groups = self.groups, []
        for group in groups:
            self.tap.pass_on(self.state, group, secured=secured)

    def consume(self) -> None:
        """Pass nothing on."""
        self.groups = []

    # --- waiting --------------------------------------------------------------------------------------

    def delay(self, seconds: float) -> None:
        """Wait so many seconds on the broker's clock. Frames behind it on its channel wait as well."""
        if self.hold():
            context = self.tap.context
            label = f"fault: {self.group.name} goes on"
            self._timer = context.call_at(context.now() + seconds, self.release, label)

    def hold(self) -> bool:
        """Wait until `release`. Frames behind it on its channel wait as well.

        Returns:
            False if the rule was removed meanwhile: then it does not wait.
        """
        if self.rule not in self.tap.rules:
            return False
        self.waiting = True
        self.tap.waiting[self] = None
        if not self._blocks:
            self._blocks = self.tap.block(self.state, self.group)
        return True

    def release(self) -> None:
        """Continue after `delay` or `hold`. A second call has no effect."""
        if not self.waiting:
            return
        self._stop_waiting()
        self.run()
        if self.waiting:
            return
        self.tap.confirm(self.state)
        if self._blocks:
            self._blocks = False
            self.tap.unblock(self.state, self.group)
        self.tap.settle()

    def abandon(self) -> None:
        """Discard the frame groups: the connection is gone."""
        if self.waiting:
            self._stop_waiting()
            self.rule.forget(self)
            self._actions_left.clear()
            self.consume()

    def _stop_waiting(self) -> None:
        self.waiting = False
        self.tap.waiting.pop(self, None)
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
