"""Faults drawn at random, by a seed: for soak tests that want to know what nobody thought of.

Whether something happens to a method depends on the seed and on which method it is: of which connection, in
which direction, on which channel, the how-manieth of its kind. It does not depend on what other connections
do meanwhile, so the same program gets the same faults, however its threads take turns. Connections are told
apart by the name the client gave itself, and otherwise by the order in which they came.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.faults import actions
from fakeamqp.faults.errors import FaultError, near_match
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.replies import reply_text
from fakeamqp.faults.rule import Rule
from fakeamqp.faults.subjects import CONFIRM, Subject, subject_of

if TYPE_CHECKING:
    from fakeamqp.faults.actions import Action
    from fakeamqp.faults.line import Line
    from fakeamqp.faults.tap import FaultTap
    from fakeamqp.faults.units import Unit

__all__ = ["FAULTS", "PROFILES", "Chaos"]


class _Kind(NamedTuple):
    """A kind of fault: what it can happen to, and what is done then, by a draw."""

    methods: tuple[str, ...]
    make: Callable[[Random], list[Action]]
    direction: str | None = None


def _moment(draw: Random) -> actions.When:
    return draw.choice(("instead", "before", "after"))


def _end(draw: Random) -> actions.How:
    return draw.choice(("fin", "reset"))


def _delay(draw: Random) -> list[Action]:
    return [actions.Delay(round(draw.uniform(0.001, 0.05), 4), 0.0, draw)]


def _close_channel(draw: Random) -> list[Action]:
    code = draw.choice((404, 405, 406))
    return [actions.CloseChannel(code, reply_text(code, None), _moment(draw))]


def _close_connection(draw: Random) -> list[Action]:
    code = draw.choice((320, 501, 541))
    return [actions.CloseConnection(code, reply_text(code, None), _moment(draw))]


_WORK = ("basic.publish", "basic.ack", "basic.get", "basic.consume", "queue.declare", "queue.bind")

FAULTS: dict[str, _Kind] = {
    "nack": _Kind(("basic.publish",), lambda draw: [actions.Nack()]),
    "return": _Kind(("basic.publish",), lambda draw: [actions.Return(312, "NO_ROUTE")]),
    "lost-publish": _Kind(("basic.publish",), lambda draw: [actions.Drop()]),
    "late-publish": _Kind(("basic.publish",), _delay),
    "late-ack": _Kind(("basic.ack", "basic.nack", "basic.reject"), _delay, "received"),
    "lost-confirm": _Kind((CONFIRM,), lambda draw: [actions.Drop()]),
    "late-confirm": _Kind((CONFIRM,), _delay),
    "false-nack": _Kind((CONFIRM,), lambda draw: [actions.Nack()]),
    "late-delivery": _Kind(("basic.deliver",), _delay),
    "duplicate-delivery": _Kind(("basic.deliver",), lambda draw: [actions.Duplicate(1)]),
    "cut-delivery": _Kind(
        ("basic.deliver",),
        lambda draw: [actions.Cut(draw.choice(("method", "header", draw.randrange(60))), _end(draw))],
    ),
    "disconnect": _Kind(_WORK, lambda draw: [actions.Disconnect(_end(draw), _moment(draw))], "received"),
    "broken-handshake": _Kind(
        ("connection.start-ok", "connection.open", "channel.open"),
        lambda draw: [actions.Disconnect(_end(draw), "instead")],
    ),
    "close-channel": _Kind(_WORK, _close_channel, "received"),
    "close-connection": _Kind(_WORK, _close_connection, "received"),
    "crash": _Kind(("basic.publish",), lambda draw: [actions.Crash(_moment(draw), True)]),
    "malformed": _Kind(
        ("basic.deliver", "basic.get-ok"),
        lambda draw: [actions.Malform(draw.choice(("bad-frame-end", "unknown-type", "unknown-method")))],
    ),
}
"""By name: the faults that can be drawn."""

PROFILES: dict[str, dict[str, float]] = {
    "gentle": {
        "nack": 0.03,
        "late-publish": 0.03,
        "late-confirm": 0.05,
        "late-delivery": 0.05,
        "late-ack": 0.03,
        "duplicate-delivery": 0.02,
    },
    "network": {
        "disconnect": 0.01,
        "broken-handshake": 0.02,
        "cut-delivery": 0.01,
        "late-delivery": 0.05,
        "late-confirm": 0.05,
    },
    "broker": {
        "nack": 0.03,
        "return": 0.01,
        "close-channel": 0.01,
        "close-connection": 0.005,
        "crash": 0.005,
        "late-confirm": 0.03,
    },
    "hostile": {
        "malformed": 0.01,
        "lost-confirm": 0.01,
        "lost-publish": 0.01,
        "false-nack": 0.02,
        "duplicate-delivery": 0.03,
        "cut-delivery": 0.01,
    },
}
"""By name: how likely each fault is whenever it could happen."""
PROFILES["mixed"] = {
    name: probability
    for profile in ("gentle", "network", "broker")
    for name, probability in PROFILES[profile].items()
}


class _Place(NamedTuple):
    """Which of all methods."""

    connection: str
    direction: str
    method: str
    channel: int
    number: int

    def __str__(self) -> str:
        return (
            f"connection {self.connection}: {self.direction} {self.method} number {self.number} "
            f"on channel {self.channel}"
        )


_LINE = re.compile(
    r"connection (?P<connection>.+): (?P<direction>received|sent) (?P<method>\S+) number (?P<number>\d+) "
    r"on channel (?P<channel>\d+): (?P<fault>\S+)(?: \(.*\))?$"
)


class Chaos(Handle):
    """Faults at random; `plan` is what has happened so far, and happens again where it is given as `plan`.

    Args:
        tap: what all methods pass.
        seed: the same seed, the same faults.
        profile: "gentle", "network", "broker", "hostile" or "mixed" (the first three), or the probability of
            each fault by its name in `FAULTS`.
        intensity: multiplies all probabilities.
        plan: the plan of an earlier run, to have exactly that happen; `profile` is not looked at then.

    Raises:
        FaultError: there is no such profile or fault, or the plan cannot be read.
    """

    def __init__(
        self,
        tap: FaultTap,
        seed: int | str = 0,
        profile: str | Mapping[str, float] = "mixed",
        *,
        intensity: float = 1.0,
        plan: str | None = None,
    ) -> None:
        super().__init__(tap.host)
        self._tap = tap
        self._seed = seed
        self._profile = profile if isinstance(profile, str) else "a profile of its own"
        self._weights = {name: weight * intensity for name, weight in _weights(profile).items()}
        self._planned = None if plan is None else _parsed(plan)
        if self._planned is not None:
            self._weights = dict.fromkeys(self._planned.values(), 1.0)
        self._counts: Counter[tuple[str, str, str, int]] = Counter()
        self._names: dict[Line, str] = {}
        self._happened: list[str] = []
        self._dice = [_Die(tap, subject, self) for subject in _subjects(self._weights)]
        self.optional()

    def begin(self) -> None:
        """Look at everything from now on."""
        for die in self._dice:
            self._tap.add(die)

    @property
    def plan(self) -> str:
        """What has happened so far, a line each. `chaos(seed, plan=...)` makes it happen again."""
        return "\n".join((f"# seed {self._seed!r}, profile {self._profile}", *self._happened))

    @property
    def sentence(self) -> str:
        """See `Handle`."""
        what = "a given plan" if self._planned is not None else f"seed {self._seed!r}, {self._profile}"
        return f"faults at random ({what}), {len(self._happened)} so far"

    def draw(self, unit: Unit, kinds: Iterable[str], *, confirms: bool) -> list[Action]:
        """What is done to a unit; nothing most of the time."""
        method = CONFIRM if confirms else unit.name
        key = (self._name(unit.line), unit.direction, method, unit.channel)
        self._counts[key] += 1
        place = _Place(*key, self._counts[key])
        draw = Random(f"{self._seed}:{':'.join(map(str, place))}")
        chosen = self._choose(draw, kinds) if self._planned is None else self._planned.get(place)
        if chosen is None:
            return []
        made = FAULTS[chosen].make(Random(f"{self._seed}:{chosen}:{':'.join(map(str, place))}"))
        words = ", then ".join(action.words for action in made)
        self._happened.append(f"{place}: {chosen} ({words})")
        self._count_hit()
        return made

    def _choose(self, draw: Random, kinds: Iterable[str]) -> str | None:
        left = draw.random()
        for name in kinds:
            left -= self._weights[name]
            if left < 0:
                return name
        return None

    def _name(self, line: Line) -> str:
        """What a connection is called in the plan. It is named late, when the client has said its name."""
        name = line.client_name
        if name is not None:
            return repr(name)
        return self._names.setdefault(line, f"number {len(self._names) + 1}")

    def _withdraw(self) -> None:
        for die in self._dice:
            self._tap.remove(die)
        self._tap.settle()


class _Die(Rule):
    """Rolls for the methods of one subject."""

    def __init__(self, tap: FaultTap, subject: tuple[Subject, tuple[str, ...]], chaos: Chaos) -> None:
        super().__init__(tap, subject[0], [], None, None, Random(0))
        self._kinds = subject[1]
        self._chaos = chaos

    def fires(self, unit: Unit) -> bool:
        """Draw for this one."""
        kinds = [name for name in self._kinds if self.subject.confirms or unit.name in FAULTS[name].methods]
        self.actions = self._chaos.draw(unit, kinds, confirms=self.subject.confirms) if kinds else []
        return bool(self.actions)

    @property
    def sentence(self) -> str:
        """What it does just now."""
        return "chaos: " + ", then ".join(action.words for action in self.actions)


def _weights(profile: str | Mapping[str, float]) -> dict[str, float]:
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise FaultError(f"there is no profile {profile!r}{near_match(profile, PROFILES)}")
        return dict(PROFILES[profile])
    for name, probability in profile.items():
        if name not in FAULTS:
            raise FaultError(f"there is no fault {name!r} to be drawn{near_match(name, FAULTS)}")
        if not 0 <= probability <= 1:
            raise FaultError(f"the probability of {name!r} is between 0 and 1, not {probability!r}")
    return dict(profile)


def _subjects(names: Iterable[str]) -> list[tuple[Subject, tuple[str, ...]]]:
    """What has to be looked at for these faults, and which of them can happen there."""
    by_direction: dict[tuple[str, bool], list[str]] = {}
    for name in sorted(names):
        subject = subject_of(FAULTS[name].methods, FAULTS[name].direction)
        by_direction.setdefault((subject.direction, subject.confirms), []).append(name)
    made = []
    for (direction, _), kinds in by_direction.items():
        methods = tuple(dict.fromkeys(method for name in kinds for method in FAULTS[name].methods))
        made.append((subject_of(methods, direction), tuple(kinds)))
    return made


def _parsed(plan: str) -> dict[_Place, str]:
    parsed = {}
    for number, line in enumerate(plan.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.match(line.strip())
        if found is None or found["fault"] not in FAULTS:
            hint = "" if found is None else near_match(found["fault"], FAULTS)
            raise FaultError(f"line {number} of the plan cannot be read: {line!r}{hint}")
        place = _Place(
            found["connection"],
            found["direction"],
            found["method"],
            int(found["channel"]),
            int(found["number"]),
        )
        parsed[place] = found["fault"]
    return parsed
