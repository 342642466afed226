"""`Chaos`: the handle of faults drawn at random, its rules, and its plan.

A plan says which fault happened where, a line each, to be read by people and by `chaos(plan=...)`.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections import Counter
from collections.abc import Iterable, Mapping
from math import isfinite
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from fakeamqp.errors import near_match
from fakeamqp.faults.base_rule import BaseRule
from fakeamqp.faults.chaos.catalogue import FAULTS, actions_of, probabilities_of
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.subjects import CONFIRM, Subject, subject_of

if TYPE_CHECKING:
    from fakeamqp.faults.actions.action import Action
    from fakeamqp.faults.context import Cancellable
    from fakeamqp.faults.executor import FaultExecutor
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.handle import Handles
    from fakeamqp.faults.network import Network
    from fakeamqp.faults.port import FaultPort

__all__ = ["Chaos", "MethodPlace", "head_of", "parse_plan"]


class MethodPlace(NamedTuple):
    """The place of one method: the `number`th of its kind on its channel."""

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


_HEAD = re.compile(
    r"# seed (?P<seed>-?\d+|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?:, profile (?P<profile>.*))?"
)
_LINE = re.compile(
    r"connection (?P<connection>.+): (?P<direction>received|sent) (?P<method>\S+) number (?P<number>\d+) "
    r"on channel (?P<channel>\d+): (?P<fault>\S+)(?: \(.*\))?$"
)


def head_of(plan: str, seed: int | str) -> tuple[int | str, str]:
    """The seed in a plan's head, otherwise `seed`; and the profile that the plan was drawn from."""
    found = _HEAD.match(plan.lstrip())
    if found is None:
        return seed, "a given plan"
    said = literal_eval(found["seed"])
    return said if isinstance(said, (int, str)) else seed, found["profile"] or "a given plan"


def parse_plan(plan: str) -> dict[MethodPlace, str]:
    """The faults of a plan by their places.

    Raises:
        FaultError: a line cannot be read, or names a fault that cannot happen there.
    """
    if not isinstance(plan, str):
        raise FaultError(f"a plan is a str, not {plan!r}")
    parsed = {}
    for number, line in enumerate(plan.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        place, fault = _parse_line(number, line)
        parsed[place] = fault
    return parsed


def _parse_line(number: int, line: str) -> tuple[MethodPlace, str]:
    found = _LINE.match(line.strip())
    if found is None or found["fault"] not in FAULTS:
        hint = "" if found is None else near_match(found["fault"], FAULTS)
        raise FaultError(f"line {number} of the plan cannot be read: {line!r}{hint}")
    _check_place(number, found["direction"], found["method"], found["fault"])
    place = MethodPlace(
        found["connection"],
        found["direction"],
        found["method"],
        int(found["channel"]),
        int(found["number"]),
    )
    return place, found["fault"]


def _check_place(number: int, direction: str, method: str, fault: str) -> None:
    """Check that the fault can happen to the method."""
    entry = FAULTS[fault]
    try:
        subject_of((method,), None)
    except FaultError as problem:
        raise FaultError(f"line {number} of the plan cannot be read: {problem}") from None
    if method not in entry.methods or direction != subject_of(entry.methods, entry.direction).direction:
        raise FaultError(
            f"line {number} of the plan cannot be read: {fault!r} does not happen to a {direction} {method}"
        )


class Chaos(Handle):
    """Faults at random. `plan` is what has happened so far; given as `plan`, it happens again.

    Args:
        executor: the executor of the broker's rules.
        network: the network faults of the broker.
        handles: all faults of the broker.
        seed: the same seed draws the same faults.
        profile: "gentle", "network", "broker", "hostile" or "mixed" (all with well-formed frames), or the
            probability of each fault by its name in `FAULTS`.
        intensity: multiplies all probabilities.
        plan: the plan of an earlier run: exactly its faults happen. Its seed replaces `seed` and `profile`.

    Raises:
        FaultError: there is no such profile or fault, or the plan cannot be read.
    """

    def __init__(
        self,
        executor: FaultExecutor,
        network: Network,
        handles: Handles,
        seed: int | str = 0,
        profile: str | Mapping[str, float] = "mixed",
        *,
        intensity: float = 1.0,
        plan: str | None = None,
    ) -> None:
        super().__init__(executor.context)
        self.executor = executor
        self.network = network
        self.handles = handles
        self._seed = seed
        if isinstance(seed, bool) or not isinstance(seed, int | str):
            raise FaultError(f"a seed is a whole number or a str, not {seed!r}")
        if isinstance(intensity, bool) or not isinstance(intensity, int | float) or not _is_amount(intensity):
            raise FaultError(f"an intensity is a number from 0 on, not {intensity!r}")
        self._profile = profile if isinstance(profile, str) else "a profile of its own"
        self._probabilities = {name: p * intensity for name, p in probabilities_of(profile).items()}
        self._planned = None if plan is None else parse_plan(plan)
        if self._planned is not None and plan is not None:
            self._seed, self._profile = head_of(plan, seed)
            self._probabilities = dict.fromkeys(self._planned.values(), 1.0)
        self._counts: Counter[tuple[str, str, str, int]] = Counter()
        self._names: dict[FaultPort, str] = {}
        self._connections = 0
        self._happened: list[str] = []
        self._timed: dict[Handle, Cancellable] = {}
        self._counter = ConnectionCounter(executor, self)
        self._rules = _chaos_rules(executor, self, self._probabilities)
        self.optional()

    def begin(self) -> None:
        """Draw for every method from now on."""
        for port in self.executor.ports():
            self.count_connection(port)
        self.executor.add(self._counter)
        for rule in self._rules:
            self.executor.add(rule)

    @property
    def plan(self) -> str:
        """What has happened so far, a line each. `chaos(plan=...)` makes it happen again."""
        return "\n".join((f"# seed {self._seed!r}, profile {self._profile}", *self._happened))

    @property
    def sentence(self) -> str:
        what = "a given plan" if self._planned is not None else f"seed {self._seed!r}, {self._profile}"
        return f"faults at random ({what}), {len(self._happened)} so far"

    # --- the interface to its rules ---------------------------------------------------------------------

    def draw(self, group: FrameGroup, names: Iterable[str], *, confirms: bool) -> list[Action]:
        """The actions for a frame group; most of the time none."""
        method = CONFIRM if confirms else group.name
        key = (self._name(group), group.direction, method, group.channel)
        self._counts[key] += 1
        place = MethodPlace(*key, self._counts[key])
        drawn = Random(f"{self._seed}:{':'.join(map(str, place))}")
        chosen = self._choose(drawn, names) if self._planned is None else self._planned.get(place)
        if chosen is None:
            return []
        made = actions_of(chosen, Random(f"{self._seed}:{chosen}:{':'.join(map(str, place))}"))
        words = ", then ".join(action.words for action in made)
        self._happened.append(f"{place}: {chosen} ({words})")
        self._count_hit()
        return made

    def _choose(self, drawn: Random, names: Iterable[str]) -> str | None:
        left = drawn.random()
        for name in names:
            left -= self._probabilities[name]
            if left < 0:
                return name
        return None

    def count_connection(self, port: FaultPort) -> None:
        """Give a new connection its number, for the plan, until its client has given itself a name."""
        if port not in self._names:
            self._names = {known: name for known, name in self._names.items() if known.open}
            self._connections += 1
            self._names[port] = f"number {self._connections}"

    def _name(self, group: FrameGroup) -> str:
        """The name of a frame group's connection in the plan."""
        name = group.port.client_name
        if name is None:
            said = (getattr(group.method, "client_properties", None) or {}).get("connection_name")
            name = said if isinstance(said, str) else None
        if name is not None:
            return repr(name)
        self.count_connection(group.port)
        return self._names[group.port]

    def remove_later(self, fault: Handle, seconds: float) -> None:
        """Remove a fault after so many seconds, or when this handle is removed."""
        fault.optional()

        def end() -> None:
            self._timed.pop(fault).cancel()
            self.handles.discard(fault)
            fault.remove()

        context = self.executor.context
        label = f"fault: {fault.sentence}, no more"
        self._timed[fault] = context.call_at(context.now() + seconds, end, label)

    def _withdraw(self) -> None:
        for rule in self._rules:
            rule.retire()
        timed, self._timed = self._timed, {}
        for fault, timer in timed.items():
            timer.cancel()
            self.handles.discard(fault)
            fault.remove()
        self.executor.remove(self._counter)
        for rule in self._rules:
            self.executor.remove(rule)
        self.executor.settle()


def _is_amount(number: float) -> bool:
    return isfinite(number) and number >= 0


class ConnectionCounter(BaseRule):
    """Counts every new connection, so that its number does not depend on which methods are drawn for."""

    def __init__(self, executor: FaultExecutor, chaos: Chaos) -> None:
        super().__init__(executor, subject_of(("connection.start",), "sent"))
        self._chaos = chaos

    def matches(self, group: FrameGroup) -> bool:
        """Count, and never match."""
        if group.name == "connection.start":
            self._chaos.count_connection(group.port)
        return False


class ChaosRule(BaseRule):
    """Draws faults for the methods of one subject."""

    def __init__(
        self, executor: FaultExecutor, subject: Subject, names: tuple[str, ...], chaos: Chaos
    ) -> None:
        super().__init__(executor, subject)
        self._names = names
        self.chaos = chaos

    def fires(self, group: FrameGroup) -> bool:
        """Draw for this frame group."""
        if self.removed:
            return False
        names = [name for name in self._names if self._can_happen(name, group)]
        self.actions: list[Action] = (
            self.chaos.draw(group, names, confirms=self.subject.confirms) if names else []
        )
        return bool(self.actions)

    def _can_happen(self, name: str, group: FrameGroup) -> bool:
        fault = FAULTS[name]
        return self.subject.confirms or (
            group.name in fault.methods and fault.happens_in(group.protocol.name)
        )

    def retire(self) -> None:
        """Stop acting, also on frame groups that were taken already."""
        self._removed = True

    @property
    def sentence(self) -> str:
        """What it does to the current frame group."""
        return "chaos: " + ", then ".join(action.words for action in self.actions)


def _chaos_rules(executor: FaultExecutor, chaos: Chaos, faults: Iterable[str]) -> list[ChaosRule]:
    """The rules that can draw these faults: one for each direction, and one for confirms."""
    by_subject: dict[tuple[str, bool], list[str]] = {}
    for name in sorted(faults):
        subject = subject_of(FAULTS[name].methods, FAULTS[name].direction)
        by_subject.setdefault((subject.direction, subject.confirms), []).append(name)
    rules = []
    # Sorted, so that what the rules release at their end passes in a fixed order.
    for (direction, _), names in sorted(by_subject.items()):
        methods = tuple(dict.fromkeys(method for name in names for method in FAULTS[name].methods))
        rules.append(ChaosRule(executor, subject_of(methods, direction), tuple(names), chaos))
    return rules
