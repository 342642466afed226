"""Chaos: faults drawn at random by a seed, for soak tests.

Whether a fault happens to a method depends on the seed and on the method's place: its connection, direction,
channel, and its number among the methods of its kind there. It does not depend on what other connections do
meanwhile. So the same program gets the same faults, whatever turns its threads take. Connections are told
apart by the name the client gives itself, or by the order in which they come.

No fault leaves a client waiting for ever: if something is lost, the connection is reset soon after; faults
that last (an alarm, silence, a slow network) last less than a second of the broker's clock.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from random import Random
from typing import TYPE_CHECKING, NamedTuple, cast

from fakeamqp.errors import near_match
from fakeamqp.faults.actions import PUBLISHES, WORK, Action, Drawn
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.lasting import Alarm, Flow
from fakeamqp.faults.matching import CONFIRM, Subject, subject_of
from fakeamqp.faults.rule import ACTIONS, BaseRule

if TYPE_CHECKING:
    from fakeamqp.faults.executor import FaultExecutor, Interception
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.handle import Handles
    from fakeamqp.faults.network import Network
    from fakeamqp.faults.port import Cancellable, FaultPort

__all__ = ["FAULTS", "PROFILES", "Chaos", "MethodPlace", "actions_of", "head_of", "parse_plan"]


class Deferred(Action):
    """Acts on the broker once the current dispatch has returned.

    Args:
        words: what it does.
        act: acts on the broker because of a frame group. A handle that it returns is removed later.
        seconds: how long the handle stays in force, or 0.
    """

    def __init__(self, words: str, act: Callable[[Chaos, FrameGroup], object], seconds: float = 0.0) -> None:
        self.words: str = f"{words} for {seconds:g} s" if seconds else words
        self._act = act
        self._seconds = seconds

    def apply(self, interception: Interception) -> None:
        rule, group = _chaos_rule(interception), interception.group

        def act() -> None:
            if not rule.removed and group.port.open:
                made = self._act(rule.chaos, group)
                if isinstance(made, Handle):
                    rule.chaos.remove_later(made, self._seconds)

        interception.executor.defer(interception, act, f"fault: {self.words}")


class Restart(Action):
    """Restarts the broker in order."""

    words = "restart the broker"

    def apply(self, interception: Interception) -> None:
        executor, rule = interception.executor, interception.rule

        def restart() -> None:
            if not rule.removed:
                executor.context.restart(crash=False, durable=True)

        executor.defer(interception, restart, f"fault: {self.words}")


class _PendingReset(Handle):
    """Resets a connection when it is removed."""

    sentence = "a connection on which something was lost ends soon"

    def __init__(self, interception: Interception) -> None:
        super().__init__(interception.executor.context)
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
        super().__init__("cancel the consumers of its queue", lambda chaos, group: None)

    def apply(self, interception: Interception) -> None:
        """The queue is looked up before the delivery is settled."""
        group = interception.group
        held = group.port.held_messages(group.channel, group.method)
        virtual_host = group.port.virtual_host
        if held and virtual_host is not None:
            queue = held[-1][0]
            self._act = lambda chaos, group: chaos.executor.context.cancel_consumers(queue, virtual_host)
            super().apply(interception)


def _chaos_rule(interception: Interception) -> ChaosRule:
    return cast("ChaosRule", interception.rule)


def _for_a_while(words: str, begin: Callable[[Chaos, FrameGroup], object]) -> Callable[[Random], Action]:
    """A fault that is removed again after a drawn time."""
    return lambda draw: Deferred(words, begin, round(draw.uniform(0.02, 0.5), 3))


def _slow(draw: Random) -> Action:
    seconds = round(draw.uniform(0.001, 0.02), 4)

    def begin(chaos: Chaos, group: FrameGroup) -> object:
        return chaos.network.on(group.port.name).latency(seconds)

    return _for_a_while(f"delay its bytes by {seconds:g} s", begin)(draw)


def _slices(draw: Random) -> Action:
    octets = draw.randrange(1, 64)

    def begin(chaos: Chaos, group: FrameGroup) -> object:
        return chaos.network.on(group.port.name).slice(octets)

    return _for_a_while(f"slice its bytes into pieces of {octets}", begin)(draw)


def _alarm(chaos: Chaos, group: FrameGroup) -> object:
    return Alarm(chaos.executor.context, "low on memory").start(chaos.handles)


def _stall(chaos: Chaos, group: FrameGroup) -> object:
    return chaos.network.on(group.port.name).hang()


def _flow(chaos: Chaos, group: FrameGroup) -> object:
    if not group.port.channel_open(group.channel):
        return None
    flow = Flow(chaos.executor.context, [(group.port, group.channel)], active=False)
    return flow.start(chaos.handles)


FAULTS: dict[str, Drawn] = {
    **{name: drawn for row in ACTIONS.values() for name, drawn in row.action.drawn.items()},
    "stall": Drawn(WORK, _for_a_while("stall its connection", _stall), "received"),
    "slow": Drawn(WORK, _slow, "received"),
    "slices": Drawn(WORK, _slices, "received"),
    "alarm": Drawn(PUBLISHES, _for_a_while("sound an alarm", _alarm), "received"),
    "flow": Drawn(("basic.publish",), _for_a_while("stop its channel", _flow)),
    "cancel-consumers": Drawn(("basic.ack",), lambda draw: CancelConsumers(), "received"),
    "restart": Drawn(PUBLISHES, lambda draw: Restart(), "received"),
}
"""The faults by name."""


def actions_of(fault: str, draw: Random) -> list[Action]:
    """Draw the actions of a fault."""
    drawn = FAULTS[fault]
    actions = [drawn.make(draw)]
    if drawn.loses:
        actions.append(ResetLater(round(draw.uniform(0.05, 0.5), 3)))
    return actions


PROFILES: dict[str, dict[str, float]] = {
    "gentle": {
        "nack": 0.03,
        "rejected-transfer": 0.03,
        "late-publish": 0.03,
        "late-confirm": 0.05,
        "late-completion": 0.02,
        "late-delivery": 0.05,
        "late-ack": 0.03,
        "duplicate-delivery": 0.02,
        "slow": 0.005,
        "slices": 0.005,
    },
    "network": {
        "disconnect": 0.01,
        "broken-handshake": 0.02,
        "cut-delivery": 0.01,
        "late-delivery": 0.05,
        "late-confirm": 0.05,
        "lost-publish": 0.005,
        "lost-confirm": 0.005,
        "stall": 0.005,
        "slow": 0.01,
        "slices": 0.01,
    },
    "broker": {
        "nack": 0.03,
        "rejected-transfer": 0.03,
        "return": 0.01,
        "close-channel": 0.01,
        "close-connection": 0.005,
        "failed-command": 0.02,
        "forced-close": 0.005,
        "refused-login": 0.01,
        "cancel-consumers": 0.005,
        "alarm": 0.005,
        "flow": 0.002,
        "restart": 0.002,
        "crash": 0.005,
        "late-confirm": 0.03,
    },
    "hostile": {
        "malformed": 0.01,
        "malformed-transfer": 0.01,
        "lost-confirm": 0.01,
        "lost-publish": 0.01,
        "false-nack": 0.02,
        "duplicate-publish": 0.02,
        "duplicate-delivery": 0.03,
        "cut-delivery": 0.01,
    },
}
"""By name: the probability of each fault at every method that it can happen to."""
PROFILES["mixed"] = {
    name: min(profile[name] for profile in PROFILES.values() if name in profile)
    for name in FAULTS
    if not name.startswith("malformed")
}


def probabilities_of(profile: str | Mapping[str, float]) -> dict[str, float]:
    """The probabilities by fault of a profile, given by its name or as they are.

    Raises:
        FaultError: there is no such profile or fault, or a value is not a probability.
    """
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise FaultError(f"there is no profile {profile!r}{near_match(profile, PROFILES)}")
        return dict(PROFILES[profile])
    if not isinstance(profile, Mapping):
        raise FaultError(f"a profile is a name or a dict of probabilities, not {profile!r}")
    for name, probability in profile.items():
        if name not in FAULTS:
            raise FaultError(f"chaos has no fault {name!r}{near_match(name, FAULTS)}")
        if not isinstance(probability, int | float) or not 0 <= probability <= 1:
            raise FaultError(f"the probability of {name!r} is between 0 and 1, not {probability!r}")
    return dict(profile)


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
