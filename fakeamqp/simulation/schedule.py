"""Schedules: what is drawn when more than one thing can happen next, and how it is repeated.

Theory of operation. What can go on in several ways asks `Schedule.choose` for a number; 0 is the first-come
choice, which asyncio would make on a network without delays. Each question has a kind and names what it is
about, in words that contain no address of an object and no hash: so it has the same name in every process.

A choice other than 0 is a deviation. A seed draws how probable deviations of each kind are, then each
choice, all from one `random.Random(seed)`. Seeds with few deviations find other failures than those with
many.

A schedule is repeated by its deviations alone: by the kind, the name and which question of that name it was.
Therefore a deviation keeps its meaning when others are left out, which is how schedules are shrunk.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from fakeamqp.model.races import Late, RaceKind

if TYPE_CHECKING:
    from fakeamqp.simulation.steps import Steps

#: The kinds of decisions, in the order in which their rates are drawn.
#:
#: - latency: how slow one direction of a connection is
#: - delay: how long the bytes that are sent now are under way
#: - cut: how many of the bytes that have come are received at once
#: - pause: whether the process is held up until something else is due as well
#: - task: which of the tasks that are ready goes on first
#: - those of `fakeamqp.model.races.RaceKind`: the delay of a late outcome of the broker
KINDS = ("latency", "delay", "cut", "pause", "task", *get_args(RaceKind))

#: How long bytes are under way: iterations of the loop, then seconds.
DELAYS: tuple[tuple[int, float], ...] = (
    (0, 0.0),
    (1, 0.0),
    (2, 0.0),
    (4, 0.0),
    (8, 0.0),
    (0, 0.0001),
    (0, 0.001),
    (0, 0.01),
    (0, 0.1),
)
#: How slow a direction is, in seconds.
LATENCIES = (0.0, 0.0001, 0.001, 0.01, 0.1)
#: How late something is that a broker does, in seconds.
LATENESS = (0.0, 0.001, 0.01, 0.1)
#: How many bytes are received at once: all, half of them, the first, all but the last.
CUTS = ("all", "half", "one", "all but one")

#: What a decision is called: kind, what it is about, and which decision about it, from 1 on.
Key = tuple[str, str, int]

_RATES = (0.0, 0.02, 0.1, 0.3, 0.6)
_LATENESS_RATES = (0.0, 0.0, 0.05, 0.2, 0.5)
_RATES_OF = {
    "cut": (0.0, 0.0, 0.0, 0.02, 0.1),
    "task": (0.0, 0.0, 0.02, 0.1, 0.5),
    **dict.fromkeys(get_args(RaceKind), _LATENESS_RATES),
}
_LATENESS_KINDS: dict[str, RaceKind] = {kind: kind for kind in get_args(RaceKind)}


class Decision(NamedTuple):
    """One choice of a schedule."""

    #: Position among the decisions of the run, from 1 on.
    number: int
    #: Simulated time, in seconds.
    time: float
    kind: str
    #: What it is about: a direction of a connection, a timer, the task that came first, or a channel.
    what: str
    #: Which decision of this kind about it, from 1 on.
    nth: int
    #: How many choices there were.
    options: int
    #: The choice; 0 is first-come.
    chosen: int
    #: The task that went first, if that is what was chosen.
    other: str = ""
    #: What it is about, as texts call it: by the names of connections and tasks, if it has any.
    named: str = ""

    @property
    def key(self) -> Key:
        """What the decision is called in every run."""
        return self.kind, self.what, self.nth

    @property
    def text(self) -> str:
        """The choice in words."""
        chosen, what = self.chosen, self.named or self.what
        if kind := _LATENESS_KINDS.get(self.kind):
            return str(Late(kind, what, self.nth, LATENESS[chosen]))
        if self.kind == "delay":
            return f"bytes {what} are under way for {delay_text(chosen)}"
        if self.kind == "latency":
            return f"everything {what} takes {_seconds(LATENCIES[chosen])}"
        if self.kind == "cut":
            return f"bytes {what} are received {CUTS[chosen] + ' first' if chosen else 'together'}"
        if self.kind == "pause":
            return f"the process is held up; {what} is late" if chosen else f"{what} is on time"
        return f"{self.other} goes on before {what}" if chosen else f"{what} goes on first"

    def __str__(self) -> str:
        return (
            f"decision {self.number} at {self.time:.6g} s: {self.text} "
            f"(choice {self.chosen} of {self.options}, {self.kind} {self.nth})"
        )


def delay_text(chosen: int) -> str:
    """An index of `DELAYS` in words."""
    iterations, seconds = DELAYS[chosen]
    if seconds:
        return _seconds(seconds)
    return "no time" if not iterations else f"{iterations} more iteration{'s' if iterations > 1 else ''}"


def _seconds(seconds: float) -> str:
    return "no time" if not seconds else f"{seconds * 1000:g} ms"


class Schedule:
    """Makes the choices of one run, and remembers them.

    Args:
        seed: draws the choices. Seed 0 makes first-come choices.
        deviations: choices that are made instead of drawing, by their keys; all others are first-come.
        kinds: the kinds of decisions that may deviate.
    """

    __slots__ = ("_counts", "_deviations", "_draws", "_made", "_rates", "_servers", "names", "seed", "steps")

    def __init__(
        self,
        seed: int = 0,
        *,
        deviations: Mapping[Key, int] | None = None,
        kinds: Iterable[str] = KINDS,
    ) -> None:
        allowed = set(kinds)
        unknown = allowed.difference(KINDS)
        if unknown:
            raise ValueError(f"unknown kinds of decisions {sorted(unknown)}; there are {', '.join(KINDS)}")
        self.seed: int = seed
        # The fields of decisions: a tuple is made in a third of the time.
        self._made: list[tuple[Any, ...]] = []
        self._counts: dict[tuple[str, str], int] = {}
        #: What directions of connections, and tasks with a name, are called in texts.
        self.names: dict[str, str] = {}
        #: The order of the steps of the app's tasks, if it is to be noted.
        self.steps: Steps | None = None
        self._servers: list[str] = []
        self._deviations = None if deviations is None else dict(deviations)
        draw = random.Random(seed)
        # Sources of their own, so that what a broker does leaves what the network does as it is.
        self._draws = {
            kind: (random.Random(f"{seed}:{kind}") if kind in _LATENESS_KINDS else draw).random
            for kind in KINDS
        }
        self._rates: dict[str, float] = {}
        for kind in KINDS:
            rates = _RATES_OF.get(kind, _RATES)
            rate = rates[int(self._draws[kind]() * len(rates))]
            self._rates[kind] = rate if seed and kind in allowed else 0.0

    def deviates(self, kind: str) -> bool:
        """Whether decisions of this kind can be other than first-come."""
        return self._deviations is not None or self._rates[kind] > 0

    def choose(self, kind: str, what: str, options: int, time: float) -> int:
        """Choose one of `options` possibilities; 0 is first-come."""
        name = (kind, what)
        nth = self._counts[name] = self._counts.get(name, 0) + 1
        if self._deviations is not None:
            chosen = min(self._deviations.get((kind, what, nth), 0), options - 1)
        elif (draw := self._draws[kind])() < self._rates[kind]:
            chosen = 1 + int(draw() * (options - 1))
        else:
            chosen = 0
        self._made.append((time, kind, what, nth, options, chosen))
        return chosen

    def name_connection(self, way: str, name: str) -> None:
        """Name a connection; `way` has the addresses of client and broker: "a:1 -> b:2"."""
        client, server = way.split(" -> ")
        if server not in self._servers:
            self._servers.append(server)
        nth = self._servers.index(server) + 1
        broker = "broker" if nth == 1 else f"broker {nth}"
        self.names[way] = f"{name} -> {broker}"
        self.names[f"{server} -> {client}"] = f"{broker} -> {name}"

    def note(self, other: str) -> None:
        """Name what the last decision chose."""
        self._made[-1] = (*self._made[-1], other)

    @property
    def decisions(self) -> list[Decision]:
        """All decisions of the run so far."""
        made = (Decision(number, *made) for number, made in enumerate(self._made, 1))
        names = self.names
        return [
            each._replace(named=names.get(each.what, ""), other=names.get(each.other, each.other))
            for each in made
        ]

    @property
    def deviations(self) -> dict[Key, int]:
        """The choices that were not first-come. They repeat the run."""
        return {(made[1], made[2], made[3]): made[5] for made in self._made if made[5]}

    def __repr__(self) -> str:
        made = f"{len(self._made)} decisions, {len(self.deviations)} deviations"
        return f"<{type(self).__name__} seed={self.seed} {made}>"
