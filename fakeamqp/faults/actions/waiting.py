"""What waits: on the broker's clock, or for the test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import TYPE_CHECKING

from fakeamqp.faults.actions.action import Action
from fakeamqp.faults.errors import FaultError

if TYPE_CHECKING:
    from random import Random

    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.wires import Wire

__all__ = ["Delay", "Hold", "put_together"]


class Delay(Action):
    """It waits."""

    fits_half = True

    def __init__(self, seconds: float, jitter: float, random: Random) -> None:
        for name, value in (("delay", seconds), ("jitter", jitter)):
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not isfinite(value) or value < 0:
                raise FaultError(f"a {name} is a number of seconds from 0 on, not {value!r}")
        self._seconds = seconds
        self._jitter = jitter
        self._random = random
        self.words = f"delay it by {seconds:g} s" + (f" and up to {jitter:g} s more" if jitter else "")

    def act(self, flight: Flight) -> None:
        """Wait on the broker's clock."""
        seconds = self._seconds + (self._random.uniform(0, self._jitter) if self._jitter else 0.0)
        if seconds:
            flight.wait(seconds)


class Hold(Action):
    """It waits until the test lets it go."""

    words = "hold it"
    fits_half = True

    def __init__(self, held: list[Flight]) -> None:
        self._held = held

    def act(self, flight: Flight) -> None:
        """Wait."""
        if flight.wait():
            self._held.append(flight)


def put_together(flights: Iterable[Flight]) -> Iterator[Flight]:
    """Confirms that are to go, in the order of their tags, one in the place of all that follow each other.

    A confirm that is `multiple` covers everything below it that the client still waits for, so one must not
    go over anything that is still open, or says something else.
    """
    by_channel: dict[tuple[Wire, int], list[Flight]] = {}
    for flight in flights:
        by_channel.setdefault((flight.wire, flight.unit.channel), []).append(flight)
    for (wire, channel), group in by_channel.items():
        group.sort(key=_tag)
        tags = {_tag(flight) for flight in group}
        foreign = [tag for tag in group[0].tap.outstanding(wire, channel) if tag not in tags]
        run: list[Flight] = []
        for flight in group:
            if run and (flight.unit.name != run[-1].unit.name or (foreign and foreign[0] < _tag(flight))):
                yield _run(run)
                run = []
            run.append(flight)
        if run:
            yield _run(run)


def _run(flights: list[Flight]) -> Flight:
    *covered, last = flights
    for flight in covered:
        flight.abandon()
    if covered:
        last.units = [unit.changed(fields={"multiple": True}) for unit in last.units]
    return last


def _tag(flight: Flight) -> int:
    tag: int = flight.unit.method.delivery_tag
    return tag
