"""Actions that wait: for a time, or for the test."""

from __future__ import annotations

from math import isfinite
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.faults.actions.action import DELIVERIES, PUBLISHES, Action, Drawn
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.subjects import CONFIRM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.faults.executor import Interception

__all__ = ["Delay", "HoldBack"]

_SETTLEMENTS = (
    "basic.ack",
    "basic.nack",
    "basic.reject",
    "message.accept",
    "message.release",
    "message.reject",
    "message.ok",
)


def _late(draw: Random) -> Delay:
    return Delay(round(draw.uniform(0.001, 0.05), 4), 0.0)


class Delay(Action):
    """Delays a frame group."""

    label = "Delay it"
    prefilled: ClassVar[Mapping[str, Any]] = {"seconds": 1}
    drawn: ClassVar[Mapping[str, Drawn]] = {
        "late-publish": Drawn(PUBLISHES, _late, "received"),
        "late-ack": Drawn(_SETTLEMENTS, _late, "received"),
        "late-confirm": Drawn((CONFIRM,), _late),
        "late-completion": Drawn(("session.completed",), _late, "sent", needs="sessions"),
        "late-delivery": Drawn(DELIVERIES, _late, "sent"),
    }
    fits_half = True

    def __init__(self, seconds: float, jitter: float) -> None:
        for name, value in (("delay", seconds), ("jitter", jitter)):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not isfinite(value) or value < 0:
                raise FaultError(f"a {name} is a number of seconds from 0 on, not {value!r}")
        self._seconds = seconds
        self._jitter = jitter
        self.words: str = f"delay it by {seconds:g} s" + (f" and up to {jitter:g} s more" if jitter else "")

    def apply(self, interception: Interception) -> None:
        jitter = interception.rule.random.uniform(0, self._jitter) if self._jitter else 0.0
        if self._seconds + jitter:
            interception.delay(self._seconds + jitter)


class HoldBack(Action):
    """Holds a frame group until the test releases it: see `Rule.release`."""

    label = "Hold it until released"
    words = "hold it"
    fits_half = True

    def apply(self, interception: Interception) -> None:
        interception.hold()
