"""Actions that wait: for a time, or for the test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import TYPE_CHECKING

from fakeamqp.faults.actions.action import Action
from fakeamqp.faults.errors import FaultError

if TYPE_CHECKING:
    from random import Random

    from fakeamqp.faults.connection_state import ConnectionFaultState
    from fakeamqp.faults.interception import Interception

__all__ = ["Delay", "HoldBack", "combine_confirms"]


class Delay(Action):
    """Delays a frame group."""

    fits_half = True

    def __init__(self, seconds: float, jitter: float, random: Random) -> None:
        for name, value in (("delay", seconds), ("jitter", jitter)):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not isfinite(value) or value < 0:
                raise FaultError(f"a {name} is a number of seconds from 0 on, not {value!r}")
        self._seconds = seconds
        self._jitter = jitter
        self._random = random
        self.words: str = f"delay it by {seconds:g} s" + (f" and up to {jitter:g} s more" if jitter else "")

    def apply(self, interception: Interception) -> None:
        """Wait on the broker's clock."""
        seconds = self._seconds + (self._random.uniform(0, self._jitter) if self._jitter else 0.0)
        if seconds:
            interception.delay(seconds)


class HoldBack(Action):
    """Holds a frame group until the test releases it."""

    words = "hold it"
    fits_half = True

    def __init__(self, held: list[Interception]) -> None:
        self._held = held

    def apply(self, interception: Interception) -> None:
        """Wait for `Rule.release`."""
        if interception.hold():
            self._held.append(interception)


def combine_confirms(interceptions: Iterable[Interception]) -> Iterator[Interception]:
    """Combine confirms of consecutive publishes, channel by channel and in the order of their tags.

    A `multiple` confirm covers every lower tag that the client still waits for. So a combined confirm never
    spans a publish that is unconfirmed or confirmed otherwise.

    Returns:
        The interceptions to release; the others are consumed.
    """
    by_channel: dict[tuple[ConnectionFaultState, int], list[Interception]] = {}
    for interception in interceptions:
        by_channel.setdefault((interception.state, interception.group.channel), []).append(interception)
    for (state, channel), batch in by_channel.items():
        batch.sort(key=_tag)
        tags = {_tag(interception) for interception in batch}
        foreign = [tag for tag in batch[0].tap.outstanding(state, channel) if tag not in tags]
        run: list[Interception] = []
        for interception in batch:
            if run and (
                interception.group.name != run[-1].group.name or (foreign and foreign[0] < _tag(interception))
            ):
                yield _run(run)
                run = []
            run.append(interception)
        if run:
            yield _run(run)


def _run(interceptions: list[Interception]) -> Interception:
    *covered, last = interceptions
    for interception in covered:
        interception.abandon()
    if covered:
        last.groups = [group.replace(fields={"multiple": True}) for group in last.groups]
    return last


def _tag(interception: Interception) -> int:
    tag: int = interception.group.method.delivery_tag
    return tag
