"""Actions that only chaos uses: they act on the whole broker, or last for a while."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from fakeamqp.faults.actions import Action
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle

if TYPE_CHECKING:
    from fakeamqp.faults.api import Faults
    from fakeamqp.faults.chaos.rules import ChaosRule
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.interception import Interception

__all__ = ["CancelConsumers", "Deferred", "ResetLater", "Restart"]


class Deferred(Action):
    """Acts on the broker once the current dispatch has returned.

    Args:
        words: what it does.
        act: acts on the broker's faults because of a frame group. A handle that it returns is removed later.
        seconds: how long the handle stays in force, or 0.
    """

    def __init__(self, words: str, act: Callable[[Faults, FrameGroup], object], seconds: float = 0.0) -> None:
        self.words: str = f"{words} for {seconds:g} s" if seconds else words
        self._act = act
        self._seconds = seconds

    def apply(self, interception: Interception) -> None:
        rule, group = _chaos_rule(interception), interception.group

        def act() -> None:
            if not rule.removed and group.port.open:
                made = self._act(rule.chaos.faults, group)
                if isinstance(made, Handle):
                    rule.chaos.remove_later(made, self._seconds)

        interception.tap.defer(interception, act, f"fault: {self.words}")


class Restart(Action):
    """Restarts the broker in order."""

    words = "restart the broker"

    def apply(self, interception: Interception) -> None:
        tap, rule = interception.tap, interception.rule

        def restart() -> None:
            if not rule.removed:
                tap.context.restart(crash=False, durable=True)

        tap.defer(interception, restart, f"fault: {self.words}")


class _PendingReset(Handle):
    """Resets a connection when it is removed."""

    sentence = "a connection on which something was lost ends soon"

    def __init__(self, interception: Interception) -> None:
        super().__init__(interception.tap.context)
        self._port = interception.group.port

    def _withdraw(self) -> None:
        if self._port.open:
            self._port.disconnect(reset=True)


class ResetLater(Action):
    """Resets the connection after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.words: str = f"reset its connection {seconds:g} s later"
        self._seconds = seconds

    def apply(self, interception: Interception) -> None:
        _chaos_rule(interception).chaos.remove_later(_PendingReset(interception), self._seconds)


class CancelConsumers(Deferred):
    """Cancels the consumers of the queue that an acknowledged delivery came from."""

    def __init__(self) -> None:
        super().__init__("cancel the consumers of its queue", lambda faults, group: None)

    def apply(self, interception: Interception) -> None:
        """The queue is looked up before the delivery is settled."""
        group = interception.group
        port: Any = group.port
        held = port.held_messages(group.channel, group.method.delivery_tag, group.method.multiple)
        virtual_host = port.virtual_host
        if held and virtual_host is not None:
            queue = held[-1][0]
            self._act = lambda faults, group: _cancel(faults, queue, virtual_host)
            super().apply(interception)


def _cancel(faults: Any, queue: str, virtual_host: str) -> None:
    with suppress(FaultError):  # The delivery was one of basic.get, or its consumer has ended.
        faults.cancel_consumers(queue, virtual_host)


def _chaos_rule(interception: Interception) -> ChaosRule:
    return cast("ChaosRule", interception.rule)
