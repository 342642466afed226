"""Actions that wait: for a time, for the test, or for the next delivery."""

from __future__ import annotations

from math import isfinite
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar

from fakeamqp.dialects import protocols_with
from fakeamqp.faults.actions.action import DELIVERIES, PUBLISHES, Action, Drawn
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.subjects import CONFIRM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fakeamqp.faults.executor import Interception
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.subjects import Subject

__all__ = ["Delay", "HoldBack", "Reorder"]

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


class Reorder(Action):
    """Sends a delivery behind the next one of its channel.

    Delivery tags stay ascending on the wire: the messages change places, and the broker's record of what is
    unsettled with them. So an ack settles the message that came with its tag, and one with `multiple` settles
    what the client has received up to there. In 0-10 a transfer keeps its command id.
    """

    label = "Let the next delivery overtake it"
    words = "let the next one overtake it"

    def check(self, subject: Subject, part: str | None) -> None:
        super().check(subject, part)
        self._only(subject, DELIVERIES, "reorder()")
        if subject.direction != "sent":
            raise FaultError(f"reorder() is for deliveries: on({subject.said[0]!r}, direction='sent')")
        if "message.transfer" in subject.names:
            self.protocols: frozenset[str] = frozenset(protocols_with("sessions"))
            if len(subject.names) > 1 or self.protocols.isdisjoint(subject.among):
                raise FaultError(
                    "reorder() is for basic.deliver, or for message.transfer of AMQP 0-10: in 0-9 a transfer "
                    "is a request with a number of its own; make a rule for each"
                )

    def apply(self, interception: Interception) -> None:
        interception.hold(self._swap)

    @staticmethod
    def _swap(successor: FrameGroup, groups: list[FrameGroup]) -> list[FrameGroup]:
        """The successor and the groups that it overtakes, with the tags in the order of sending."""
        ordered = [successor, *groups]
        if not hasattr(successor.method, "delivery_tag"):
            return ordered
        before = [group.method.delivery_tag for group in ordered]
        tags = dict(zip(before, sorted(before), strict=True))
        successor.port.renumber(successor.original_channel, tags)
        return [
            group.replace(fields={"delivery_tag": tag})
            for group, tag in zip(ordered, tags.values(), strict=True)
        ]
