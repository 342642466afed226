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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple, cast

from fakeamqp.dialects import protocol_named
from fakeamqp.errors import near_match
from fakeamqp.faults import actions, closing
from fakeamqp.faults.actions import DELIVERIES, Action
from fakeamqp.faults.closing import When
from fakeamqp.faults.errors import FaultError, check_number
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.lasting import Alarm, Flow, LastingFault
from fakeamqp.faults.matching import CONFIRM, Subject, subject_of
from fakeamqp.faults.rule import BaseRule
from fakeamqp.faults.shapers import How

if TYPE_CHECKING:
    from fakeamqp.faults.executor import FaultExecutor, Interception
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.port import Cancellable, FaultPort

_PUBLISHES = ("basic.publish", "message.transfer", "transfer")
_WORK_0_9_1 = ("basic.publish", "basic.ack", "basic.get", "basic.consume", "queue.declare", "queue.bind")
_WORK_0_9 = (*_WORK_0_9_1, "message.transfer", "message.consume", "message.get")
_WORK_0_10 = (
    "message.transfer",
    "message.accept",
    "message.subscribe",
    "message.flow",
    "queue.declare",
    "queue.query",
    "exchange.bind",
)
_WORK_1_0 = ("transfer", "disposition", "attach", "flow")
_WORK = (*_WORK_0_9_1, *_WORK_0_10, *_WORK_1_0)
"""What clients do all the time, and chaos disturbs."""
_SETTLEMENTS = (
    "basic.ack",
    "basic.nack",
    "basic.reject",
    "message.accept",
    "message.release",
    "message.reject",
    "message.ok",
    "disposition",
)
_LOGINS = ("connection.start-ok", "sasl-init")
_HANDSHAKE = (*_LOGINS, "connection.open", "channel.open", "session.attach", "open", "begin")


class Drawn(NamedTuple):
    """A fault that chaos can draw: the methods that it can happen to, and what draws its action."""

    methods: tuple[str, ...]
    make: Callable[[Random], Action]
    direction: str | None = None
    needs: str = ""
    """The capabilities of the protocols in which it happens, one of which is enough; empty for all."""
    loses: bool = False
    """True if a client may wait for what is lost: chaos resets the connection soon after."""

    def happens_in(self, protocol: str) -> bool:
        """True if it can happen on connections of a protocol."""
        return not self.needs or not protocol_named(protocol).capabilities.isdisjoint(self.needs.split())


class Deferred(Action):
    """Acts on the broker once the current dispatch has returned.

    A handle that `act` returns is removed after so many seconds. `while_open`: it needs the connection.
    """

    def __init__(
        self,
        words: str,
        act: Callable[[Chaos, FrameGroup], object],
        seconds: float = 0.0,
        *,
        while_open: bool = True,
    ) -> None:
        self.words: str = f"{words} for {seconds:g} s" if seconds else words
        self._act = act
        self._seconds = seconds
        self._while_open = while_open

    def apply(self, interception: Interception) -> None:
        rule, group = cast("ChaosRule", interception.rule), interception.group

        def act() -> None:
            if not rule.removed and (group.port.open or not self._while_open):
                made = self._act(rule.chaos, group)
                if isinstance(made, Handle):
                    rule.chaos.remove_later(made, self._seconds)

        interception.executor.defer(interception, act, f"fault: {self.words}")


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
        chaos = cast("ChaosRule", interception.rule).chaos
        chaos.remove_later(_PendingReset(interception), self._seconds)


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


def _for_a_while(words: str, begin: Callable[[Chaos, FrameGroup], object]) -> Callable[[Random], Action]:
    """A fault that is removed again after a drawn time."""
    return lambda draw: Deferred(words, begin, round(draw.uniform(0.02, 0.5), 3))


def _slow(draw: Random) -> Action:
    seconds = round(draw.uniform(0.001, 0.02), 4)
    return _for_a_while(
        f"delay its bytes by {seconds:g} s",
        lambda chaos, group: chaos.executor.network.on(group.port.name).latency(seconds),
    )(draw)


def _slices(draw: Random) -> Action:
    octets = draw.randrange(1, 64)
    return _for_a_while(
        f"slice its bytes into pieces of {octets}",
        lambda chaos, group: chaos.executor.network.on(group.port.name).slice(octets),
    )(draw)


def _alarm(chaos: Chaos, group: FrameGroup) -> object:
    return Alarm(chaos.executor.context, "low on memory").start(chaos.handles)


def _stall(chaos: Chaos, group: FrameGroup) -> object:
    return chaos.executor.network.on(group.port.name).hang()


def _flow(chaos: Chaos, group: FrameGroup) -> object:
    if not group.port.channel_open(group.channel):
        return None
    return Flow(chaos.executor.context, [(group.port, group.channel)], active=False).start(chaos.handles)


def _restart(chaos: Chaos, group: FrameGroup) -> None:
    chaos.executor.context.restart(crash=False, durable=True)


def _when(draw: Random) -> When:
    return draw.choice(("instead", "before", "after"))


def _how(draw: Random) -> How:
    return draw.choice(("fin", "reset"))


def _late(draw: Random) -> Action:
    return actions.Delay(round(draw.uniform(0.001, 0.05), 4), 0.0)


def _failed_command(draw: Random) -> Action:
    code = draw.choice(("not-found", "resource-locked", "resource-limit-exceeded"))
    return actions.CommandException(code, None, None)


def _cut(draw: Random) -> Action:
    return closing.CutConnection(draw.choice(("method", "header", draw.randrange(60))), _how(draw))


def _close(action: type[closing.CloseConnection], *codes: int) -> Callable[[Random], Action]:
    return lambda draw: action(draw.choice(codes), None, _when(draw))


def _detached(draw: Random) -> Action:
    condition = draw.choice(("amqp:not-found", "amqp:resource-locked", "amqp:resource-deleted"))
    return closing.DetachLink(condition, None, _when(draw))


def _malformed(*ways: str) -> Callable[[Random], Action]:
    return lambda draw: actions.Malform(draw.choice(ways))


FAULTS: dict[str, Drawn] = {
    "nack": Drawn(("basic.publish", "transfer"), lambda draw: actions.Nack(), "received", "confirms links"),
    "rejected-transfer": Drawn(("message.transfer",), lambda draw: actions.Nack(), "received", "requests"),
    "false-nack": Drawn((CONFIRM,), lambda draw: actions.Nack()),
    "return": Drawn(
        ("basic.publish", "transfer"), lambda draw: actions.ReturnMessage(312, "NO_ROUTE"), "received"
    ),
    "lost-publish": Drawn(_PUBLISHES, lambda draw: actions.Drop(), "received", loses=True),
    "lost-confirm": Drawn((CONFIRM,), lambda draw: actions.Drop(), loses=True),
    "late-publish": Drawn(_PUBLISHES, _late, "received"),
    "late-ack": Drawn(_SETTLEMENTS, _late, "received"),
    "late-confirm": Drawn((CONFIRM,), _late),
    "late-completion": Drawn(("session.completed",), _late, "sent", "sessions"),
    "late-outcome": Drawn(("disposition",), _late, "sent", "links"),
    "lost-outcome": Drawn(("disposition",), lambda draw: actions.Drop(), "sent", "links", loses=True),
    "late-delivery": Drawn(DELIVERIES, _late, "sent"),
    "duplicate-publish": Drawn(_PUBLISHES, lambda draw: actions.Duplicate(1), "received"),
    "duplicate-delivery": Drawn(DELIVERIES, lambda draw: actions.Duplicate(1), "sent"),
    "close-channel": Drawn(
        (*_WORK_0_9, *_WORK_1_0), _close(closing.CloseChannel, 404, 405, 406), "received", "channels links"
    ),
    "close-connection": Drawn(
        (*_WORK_0_9, *_WORK_1_0), _close(closing.CloseConnection, 320, 501, 541), "received", "channels links"
    ),
    "detached-link": Drawn(("transfer", "attach", "flow"), _detached, "received", "links"),
    "forced-close": Drawn(_WORK_0_10, _close(closing.CloseConnection, 320, 501), "received", "sessions"),
    "disconnect": Drawn(_WORK, lambda draw: closing.Disconnect(_how(draw), _when(draw)), "received"),
    "broken-handshake": Drawn(_HANDSHAKE, lambda draw: closing.Disconnect(_how(draw), "instead")),
    "failed-command": Drawn(_WORK_0_10, _failed_command, "received", "sessions"),
    "refused-login": Drawn(_LOGINS, lambda draw: closing.RefuseLogin(None)),
    "crash": Drawn(_PUBLISHES, lambda draw: closing.CrashBroker(_when(draw), True), "received"),
    "cut-delivery": Drawn(DELIVERIES, _cut, "sent"),
    "malformed": Drawn(
        ("basic.deliver", "basic.get-ok"), _malformed("bad-frame-end", "unknown-type", "unknown-method")
    ),
    "malformed-transfer": Drawn(
        ("message.transfer",), _malformed("bad-flags", "unknown-type", "unknown-method"), "sent", "sessions"
    ),
    "malformed-performative": Drawn(
        ("transfer", "attach"), _malformed("undersize", "unknown-type", "unknown-method"), "sent", "links"
    ),
    "stall": Drawn(_WORK, _for_a_while("stall its connection", _stall), "received"),
    "slow": Drawn(_WORK, _slow, "received"),
    "slices": Drawn(_WORK, _slices, "received"),
    "alarm": Drawn(_PUBLISHES, _for_a_while("sound an alarm", _alarm), "received"),
    "flow": Drawn(("basic.publish", "transfer"), _for_a_while("stop its channel", _flow)),
    "cancel-consumers": Drawn(("basic.ack",), lambda draw: CancelConsumers(), "received"),
    "restart": Drawn(
        _PUBLISHES, lambda draw: Deferred("restart the broker", _restart, while_open=False), "received"
    ),
}
"""The faults by name."""


def actions_of(fault: str, draw: Random) -> list[Action]:
    """Draw the actions of a fault."""
    drawn = FAULTS[fault]
    made = [drawn.make(draw)]
    if drawn.loses:
        made.append(ResetLater(round(draw.uniform(0.05, 0.5), 3)))
    return made


_ODDS = {
    "nack": (0.03, 0, 0.03, 0),
    "rejected-transfer": (0.03, 0, 0.03, 0),
    "false-nack": (0, 0, 0, 0.02),
    "return": (0, 0, 0.01, 0),
    "lost-publish": (0, 0.005, 0, 0.01),
    "lost-confirm": (0, 0.005, 0, 0.01),
    "late-publish": (0.03, 0, 0, 0),
    "late-ack": (0.03, 0, 0, 0),
    "late-confirm": (0.05, 0.05, 0.03, 0),
    "late-completion": (0.02, 0, 0, 0),
    "late-outcome": (0.05, 0.05, 0.03, 0),
    "lost-outcome": (0, 0.005, 0, 0.01),
    "late-delivery": (0.05, 0.05, 0, 0),
    "duplicate-publish": (0, 0, 0, 0.02),
    "duplicate-delivery": (0.02, 0, 0, 0.03),
    "close-channel": (0, 0, 0.01, 0),
    "close-connection": (0, 0, 0.005, 0),
    "detached-link": (0, 0, 0.01, 0),
    "forced-close": (0, 0, 0.005, 0),
    "disconnect": (0, 0.01, 0, 0),
    "broken-handshake": (0, 0.02, 0, 0),
    "failed-command": (0, 0, 0.02, 0),
    "refused-login": (0, 0, 0.01, 0),
    "crash": (0, 0, 0.005, 0),
    "cut-delivery": (0, 0.01, 0, 0.01),
    "malformed": (0, 0, 0, 0.01),
    "malformed-transfer": (0, 0, 0, 0.01),
    "malformed-performative": (0, 0, 0, 0.01),
    "stall": (0, 0.005, 0, 0),
    "slow": (0.005, 0.01, 0, 0),
    "slices": (0.005, 0.01, 0, 0),
    "alarm": (0, 0, 0.005, 0),
    "flow": (0, 0, 0.002, 0),
    "cancel-consumers": (0, 0, 0.005, 0),
    "restart": (0, 0, 0.002, 0),
}
"""By fault: its probability in "gentle", "network", "broker" and "hostile", at each method that it fits."""
PROFILES: dict[str, dict[str, float]] = {
    profile: {name: odds[column] for name, odds in _ODDS.items() if odds[column]}
    for column, profile in enumerate(("gentle", "network", "broker", "hostile"))
}
"""By name: the probability of each fault."""
PROFILES["mixed"] = {
    name: min(profile[name] for profile in PROFILES.values() if name in profile)
    for name in FAULTS
    if not name.startswith("malformed")
}


def _probabilities_of(profile: str | Mapping[str, float]) -> Mapping[str, float]:
    """The probabilities by fault of a profile, given by its name or as they are."""
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise FaultError(f"there is no profile {profile!r}{near_match(profile, PROFILES)}")
        return PROFILES[profile]
    if not isinstance(profile, Mapping):
        raise FaultError(f"a profile is a name or a dict of probabilities, not {profile!r}")
    for name, probability in profile.items():
        if name not in FAULTS:
            raise FaultError(f"chaos has no fault {name!r}{near_match(name, FAULTS)}")
        if not isinstance(probability, int | float) or not 0 <= probability <= 1:
            raise FaultError(f"the probability of {name!r} is between 0 and 1, not {probability!r}")
    return profile


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
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                place, fault = _parse_line(line)
            except FaultError as problem:
                raise FaultError(f"line {number} of the plan cannot be read: {problem}") from None
            parsed[place] = fault
    return parsed


def _parse_line(line: str) -> tuple[MethodPlace, str]:
    found = _LINE.match(line.strip())
    if found is None or found["fault"] not in FAULTS:
        raise FaultError(repr(line) + ("" if found is None else near_match(found["fault"], FAULTS)))
    connection, direction, method, number, channel, fault = found.groups()
    entry = FAULTS[fault]
    subject_of((method,), None)
    if method not in entry.methods or direction != subject_of(entry.methods, entry.direction).direction:
        raise FaultError(f"{fault!r} does not happen to a {direction} {method}")
    return MethodPlace(connection, direction, method, int(channel), int(number)), fault


class Chaos(LastingFault):
    """Faults at random; made by `Faults.chaos`, which describes its arguments.

    `plan` is what has happened so far; given as `plan`, it happens again. The profile "mixed" has all faults
    with well-formed frames.
    """

    def __init__(
        self,
        executor: FaultExecutor,
        handles: list[Handle],
        seed: int | str,
        profile: str | Mapping[str, float],
        intensity: float,
        plan: str | None,
    ) -> None:
        super().__init__(executor.context)
        self.executor = executor
        self.handles = handles
        self._seed = seed
        if isinstance(seed, bool) or not isinstance(seed, int | str):
            raise FaultError(f"a seed is a whole number or a str, not {seed!r}")
        check_number("an intensity is a number", intensity)
        self._profile = profile if isinstance(profile, str) else "a profile of its own"
        self._probabilities = {name: p * intensity for name, p in _probabilities_of(profile).items()}
        self._planned: dict[MethodPlace, str] | None = None
        if plan is not None:
            self._planned = parse_plan(plan)
            self._seed, self._profile = head_of(plan, seed)
            self._probabilities = dict.fromkeys(self._planned.values(), 1.0)
        for name in sorted(executor.context.impossible.keys() & self._probabilities.keys()):
            if plan is not None or not isinstance(profile, str):
                raise FaultError(f"{name!r} is not possible: {executor.context.impossible[name]}")
            del self._probabilities[name]
        self._counts: Counter[tuple[str, str, str, int]] = Counter()
        self._names: dict[FaultPort, str] = {}
        self._connections = 0
        self._happened: list[str] = []
        self._timed: dict[Handle, Cancellable] = {}
        self._counter = ConnectionCounter(self)
        self._rules = list(self._make_rules())
        self._optional = True

    def _make_rules(self) -> Iterator[ChaosRule]:
        """The rules that can draw its faults: one for each direction, and one for confirms."""
        by_subject: dict[tuple[str, bool], list[str]] = {}
        for name in sorted(self._probabilities):
            subject = subject_of(FAULTS[name].methods, FAULTS[name].direction)
            by_subject.setdefault((subject.direction, subject.confirms), []).append(name)
        # Sorted, so that what the rules release at their end passes in a fixed order.
        for (direction, _), names in sorted(by_subject.items()):
            methods = tuple(dict.fromkeys(method for name in names for method in FAULTS[name].methods))
            yield ChaosRule(self, subject_of(methods, direction), names)

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

    def draw(self, group: FrameGroup, names: Iterable[str], *, confirms: bool) -> list[Action]:
        """The actions for a frame group; most of the time none."""
        method = CONFIRM if confirms else group.name
        key = (self._name(group), group.direction, method, group.channel)
        self._counts[key] += 1
        place = MethodPlace(*key, self._counts[key])
        here = ":".join(map(str, place))
        if self._planned is None:
            chosen = self._choose(Random(f"{self._seed}:{here}").random(), names)
        else:
            chosen = self._planned.get(place)
        if chosen is None:
            return []
        made = actions_of(chosen, Random(f"{self._seed}:{chosen}:{here}"))
        words = ", then ".join(action.words for action in made)
        self._happened.append(f"{place}: {chosen} ({words})")
        self._count_hit()
        return made

    def _choose(self, left: float, names: Iterable[str]) -> str | None:
        for name in names:
            left -= self._probabilities[name]
            if left < 0:
                return name
        return None

    def count_connection(self, port: FaultPort) -> None:
        """Give a new connection its number: it is the name in the plan until the client gives itself one."""
        if port not in self._names:
            self._names = {known: name for known, name in self._names.items() if known.open}
            self._connections += 1
            self._names[port] = f"number {self._connections}"

    def _name(self, group: FrameGroup) -> str:
        """The name of a frame group's connection in the plan."""
        name = group.port.client_name
        if name is None:
            name = (getattr(group.method, "client_properties", None) or {}).get("connection_name")
        if isinstance(name, str):
            return repr(name)
        self.count_connection(group.port)
        return self._names[group.port]

    def remove_later(self, fault: Handle, seconds: float) -> None:
        """Remove a fault after so many seconds, or when this handle is removed."""
        fault.optional()

        label = f"fault: {fault.sentence}, no more"
        due = self._context.now() + seconds
        self._timed[fault] = self._context.call_at(due, lambda: self._end(fault), label)

    def _end(self, fault: Handle) -> None:
        self._timed.pop(fault).cancel()
        if fault in self.handles:
            self.handles.remove(fault)
        fault.remove()

    def _withdraw(self) -> None:
        for rule in self._rules:
            rule.removed = True  # So that it does not act on frame groups that it has taken already.
        for fault in list(self._timed):
            self._end(fault)
        self.executor.remove(self._counter)
        for rule in self._rules:
            self.executor.remove(rule)
        self.executor.settle()


class ConnectionCounter(BaseRule):
    """Counts every new connection, so that its number does not depend on which methods are drawn for."""

    def __init__(self, chaos: Chaos) -> None:
        super().__init__(chaos.executor, subject_of(("connection.start",), "sent"))
        self._chaos = chaos

    def _matches(self, group: FrameGroup, *, begun: bool = False) -> bool:
        """Count, and never match."""
        if group.name == "connection.start":
            self._chaos.count_connection(group.port)
        return False


class ChaosRule(BaseRule):
    """Draws faults for the methods of one subject."""

    def __init__(self, chaos: Chaos, subject: Subject, names: Sequence[str]) -> None:
        super().__init__(chaos.executor, subject)
        self._names = names
        self.chaos = chaos

    def _fires(self, group: FrameGroup) -> bool:
        """Draw for this frame group."""
        if self.removed:
            return False
        names: Sequence[str] = self._names
        if not self._subject.confirms:
            possible = [name for name in names if FAULTS[name].happens_in(group.protocol.name)]
            names = [name for name in possible if group.name in FAULTS[name].methods]
        self._actions: list[Action] = (
            self.chaos.draw(group, names, confirms=self._subject.confirms) if names else []
        )
        return bool(self._actions)

    @property
    def sentence(self) -> str:
        """What it does to the current frame group."""
        return "chaos: " + ", then ".join(action.words for action in self._actions)
