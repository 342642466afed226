"""Faults drawn at random, by a seed: for soak tests that want to know what nobody thought of.

Whether something happens to a method depends on the seed and on which method it is: of which connection, in
which direction, on which channel, the how-manieth of its kind. It does not depend on what other connections
do meanwhile, so the same program gets the same faults, however its threads take turns. Connections are told
apart by the name the client gave itself, and otherwise by the order in which they came.

No fault leaves a client waiting for ever: where something is lost, the connection ends soon after, and what
lasts (an alarm, silence, a slow network) lasts for less than a second of the broker's clock.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import isfinite
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from fakeamqp.errors import near_match
from fakeamqp.faults import actions
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.replies import reply_text
from fakeamqp.faults.rule import Rule
from fakeamqp.faults.subjects import CONFIRM, Subject, subject_of

if TYPE_CHECKING:
    from fakeamqp.faults.actions import Action
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.handle import Handles
    from fakeamqp.faults.line import Cancellable, FaultPort
    from fakeamqp.faults.room import Faults
    from fakeamqp.faults.tap import FaultTap
    from fakeamqp.faults.units import Unit

__all__ = ["FAULTS", "PROFILES", "Chaos"]


class _Kind(NamedTuple):
    """A kind of fault: what it can happen to, and what is done then, by a draw."""

    methods: tuple[str, ...]
    make: Callable[[Random], list[Action]]
    direction: str | None = None
    only: tuple[str, ...] = ()
    """The protocols in which it happens, where it is not all."""


class _Soon(actions.Action):
    """Something happens to the broker, as soon as nobody is in the midst of anything.

    Args:
        words: what.
        do: does it to the broker's faults, on account of the method; a handle it returns is removed later.
        seconds: how long that lasts, or 0.
    """

    def __init__(self, words: str, do: Callable[[Faults, Unit], object], seconds: float = 0.0) -> None:
        self.words = f"{words} for {seconds:g} s" if seconds else words
        self._do = do
        self._seconds = seconds

    def act(self, flight: Flight) -> None:
        """See `Action`."""
        rule, unit = flight.rule, flight.unit
        assert isinstance(rule, _Die)

        def do() -> None:
            if not rule.removed and unit.line.open:
                made = self._do(rule.chaos.room, unit)
                if isinstance(made, Handle):
                    rule.chaos.lasts(made, self._seconds)

        flight.tap.soon(flight, do, f"fault: {self.words}")


class _Restart(actions.Action):
    """The broker restarts in order."""

    words = "restart the broker"

    def act(self, flight: Flight) -> None:
        """See `Action`."""
        tap, rule = flight.tap, flight.rule

        def restart() -> None:
            if not rule.removed:
                tap.host.restart(crash=False, durable=True)

        tap.soon(flight, restart, f"fault: {self.words}")


class _Parting(Handle):
    """Its connection ends when this is removed."""

    sentence = "a connection on which something was lost ends soon"

    def __init__(self, flight: Flight) -> None:
        super().__init__(flight.tap.host)
        self._line = flight.unit.line

    def _withdraw(self) -> None:
        if self._line.open:
            self._line.end(reset=True)


class _PartSoon(actions.Action):
    """The connection is reset before long."""

    def __init__(self, seconds: float) -> None:
        self.words = f"reset its connection {seconds:g} s later"
        self._seconds = seconds

    def act(self, flight: Flight) -> None:
        """See `Action`."""
        assert isinstance(flight.rule, _Die)
        flight.rule.chaos.lasts(_Parting(flight), self._seconds)


def _moment(draw: Random) -> actions.When:
    return draw.choice(("instead", "before", "after"))


def _end(draw: Random) -> actions.How:
    return draw.choice(("fin", "reset"))


def _delay(draw: Random) -> list[Action]:
    return [actions.Delay(round(draw.uniform(0.001, 0.05), 4), 0.0, draw)]


def _close_channel(draw: Random) -> list[Action]:
    code = draw.choice((404, 405, 406))
    return [actions.CloseChannel(code, reply_text(code, None), _moment(draw))]


def _force_close(draw: Random) -> list[Action]:
    code = draw.choice((320, 501))
    return [actions.CloseConnection(code, reply_text(code, None), _moment(draw))]


def _fail(draw: Random) -> list[Action]:
    return [
        actions.Fail(draw.choice(("not-found", "resource-locked", "resource-limit-exceeded")), None, None)
    ]


def _close_connection(draw: Random) -> list[Action]:
    code = draw.choice((320, 501, 541))
    return [actions.CloseConnection(code, reply_text(code, None), _moment(draw))]


def _lost(draw: Random) -> list[Action]:
    return [actions.Drop(), _PartSoon(round(draw.uniform(0.05, 0.5), 3))]


def _while(words: str, begin: Callable[[Faults, Unit], object]) -> Callable[[Random], list[Action]]:
    """Something lasts for a while."""
    return lambda draw: [_Soon(words, begin, round(draw.uniform(0.02, 0.5), 3))]


def _slow(draw: Random) -> list[Action]:
    seconds = round(draw.uniform(0.001, 0.02), 4)

    def begin(room: Faults, unit: Unit) -> object:
        return room.network.on(unit.line.name).latency(seconds)

    return _while(f"have its bytes take {seconds:g} s", begin)(draw)


def _slices(draw: Random) -> list[Action]:
    octets = draw.randrange(1, 64)

    def begin(room: Faults, unit: Unit) -> object:
        return room.network.on(unit.line.name).slice(octets)

    return _while(f"have its bytes come in pieces of {octets}", begin)(draw)


def _alarm(room: Any, unit: Unit) -> object:
    return room.memory_alarm().optional()


def _stall(room: Faults, unit: Unit) -> object:
    return room.network.on(unit.line.name).hang()


def _flow(room: Faults, unit: Unit) -> object:
    if not unit.line.channel_open(unit.channel):
        return None
    return room.channel_flow(connection=unit.line.name, channel=unit.channel)


class _CancelConsumers(_Soon):
    """The consumers of the queue that a delivery came from are cancelled."""

    def __init__(self) -> None:
        super().__init__("cancel the consumers of its queue", lambda room, unit: None)

    def act(self, flight: Flight) -> None:
        """See `Action`. What queue that is, is known before the delivery is settled."""
        unit = flight.unit
        line: Any = unit.line
        held = line.held_messages(unit.channel, unit.method.delivery_tag, unit.method.multiple)
        virtual_host = unit.line.virtual_host
        if held and virtual_host is not None:
            queue = held[-1][0]
            self._do = lambda room, unit: room.cancel_consumers(queue, virtual_host)
            super().act(flight)


_FAMILY = ("0-9-1", "0-9", "0-8")
_WORK_0_9_1 = ("basic.publish", "basic.ack", "basic.get", "basic.consume", "queue.declare", "queue.bind")
_WORK_0_9_X = (*_WORK_0_9_1, "message.transfer", "message.consume", "message.get")
_WORK_0_10 = (
    "message.transfer",
    "message.accept",
    "message.subscribe",
    "message.flow",
    "queue.declare",
    "queue.query",
    "exchange.bind",
)
_WORK = (*_WORK_0_9_1, *_WORK_0_10)
_PUBLISHES = ("basic.publish", "message.transfer")
_DELIVERIES = ("basic.deliver", "message.transfer")

FAULTS: dict[str, _Kind] = {
    "nack": _Kind(("basic.publish",), lambda draw: [actions.Nack()], only=("0-9-1",)),
    "rejected-transfer": _Kind(
        ("message.transfer",), lambda draw: [actions.Nack()], "received", only=("0-9",)
    ),
    "return": _Kind(("basic.publish",), lambda draw: [actions.Return(312, "NO_ROUTE")]),
    "lost-publish": _Kind(_PUBLISHES, _lost, "received"),
    "duplicate-publish": _Kind(_PUBLISHES, lambda draw: [actions.Duplicate(1)], "received"),
    "late-publish": _Kind(_PUBLISHES, _delay, "received"),
    "late-ack": _Kind(
        (
            "basic.ack",
            "basic.nack",
            "basic.reject",
            "message.accept",
            "message.release",
            "message.reject",
            "message.ok",
        ),
        _delay,
        "received",
    ),
    "lost-confirm": _Kind((CONFIRM,), _lost),
    "late-confirm": _Kind((CONFIRM,), _delay),
    "false-nack": _Kind((CONFIRM,), lambda draw: [actions.Nack()]),
    "late-completion": _Kind(("session.completed",), _delay, "sent", only=("0-10",)),
    "late-delivery": _Kind(_DELIVERIES, _delay, "sent"),
    "duplicate-delivery": _Kind(_DELIVERIES, lambda draw: [actions.Duplicate(1)], "sent"),
    "cut-delivery": _Kind(
        _DELIVERIES,
        lambda draw: [actions.Cut(draw.choice(("method", "header", draw.randrange(60))), _end(draw))],
        "sent",
    ),
    "disconnect": _Kind(_WORK, lambda draw: [actions.Disconnect(_end(draw), _moment(draw))], "received"),
    "broken-handshake": _Kind(
        ("connection.start-ok", "connection.open", "channel.open", "session.attach"),
        lambda draw: [actions.Disconnect(_end(draw), "instead")],
    ),
    "refused-login": _Kind(("connection.start-ok",), lambda draw: [actions.RefuseLogin(None)]),
    "stall": _Kind(_WORK, _while("stall its connection", _stall), "received"),
    "slow": _Kind(_WORK, _slow, "received"),
    "slices": _Kind(_WORK, _slices, "received"),
    "alarm": _Kind(_PUBLISHES, _while("sound an alarm", _alarm), "received"),
    "flow": _Kind(("basic.publish",), _while("stop its channel", _flow)),
    "cancel-consumers": _Kind(("basic.ack",), lambda draw: [_CancelConsumers()], "received"),
    "restart": _Kind(_PUBLISHES, lambda draw: [_Restart()], "received"),
    "close-channel": _Kind(_WORK_0_9_X, _close_channel, "received", only=_FAMILY),
    "close-connection": _Kind(_WORK_0_9_X, _close_connection, "received", only=_FAMILY),
    "failed-command": _Kind(_WORK_0_10, _fail, "received", only=("0-10",)),
    "forced-close": _Kind(_WORK_0_10, _force_close, "received", only=("0-10",)),
    "crash": _Kind(_PUBLISHES, lambda draw: [actions.Crash(_moment(draw), True)], "received"),
    "malformed": _Kind(
        ("basic.deliver", "basic.get-ok"),
        lambda draw: [actions.Malform(draw.choice(("bad-frame-end", "unknown-type", "unknown-method")))],
    ),
    "malformed-transfer": _Kind(
        ("message.transfer",),
        lambda draw: [actions.Malform(draw.choice(("bad-flags", "unknown-type", "unknown-method")))],
        "sent",
        only=("0-10",),
    ),
}
"""By name: the faults that can be drawn."""

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
"""By name: how likely each fault is whenever it could happen."""
PROFILES["mixed"] = {
    name: min(profile[name] for profile in PROFILES.values() if name in profile)
    for name in FAULTS
    if not name.startswith("malformed")
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


_HEAD = re.compile(
    r"# seed (?P<seed>-?\d+|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")(?:, profile (?P<profile>.*))?"
)
_LINE = re.compile(
    r"connection (?P<connection>.+): (?P<direction>received|sent) (?P<method>\S+) number (?P<number>\d+) "
    r"on channel (?P<channel>\d+): (?P<fault>\S+)(?: \(.*\))?$"
)


class Chaos(Handle):
    """Faults at random; `plan` is what has happened so far, and happens again where it is given as `plan`.

    Args:
        room: all faults of the broker.
        tap: what all methods pass.
        handles: those of the room.
        seed: the same seed, the same faults.
        profile: "gentle", "network", "broker", "hostile" or "mixed" (all that is well-formed), or the
            probability of each fault by its name in `FAULTS`.
        intensity: multiplies all probabilities.
        plan: the plan of an earlier run, to have exactly that happen. It says its seed; neither `seed` nor
            `profile` is looked at then.

    Raises:
        FaultError: there is no such profile or fault, or the plan cannot be read.
    """

    def __init__(
        self,
        room: Faults,
        tap: FaultTap,
        handles: Handles,
        seed: int | str = 0,
        profile: str | Mapping[str, float] = "mixed",
        *,
        intensity: float = 1.0,
        plan: str | None = None,
    ) -> None:
        super().__init__(tap.host)
        self.room = room
        self._tap = tap
        self._handles = handles
        self._seed = seed
        if isinstance(seed, bool) or not isinstance(seed, int | str):
            raise FaultError(f"a seed is a whole number or a str, not {seed!r}")
        if isinstance(intensity, bool) or not isinstance(intensity, int | float) or not _is_amount(intensity):
            raise FaultError(f"an intensity is a number from 0 on, not {intensity!r}")
        self._profile = profile if isinstance(profile, str) else "a profile of its own"
        self._weights = {name: weight * intensity for name, weight in _weights(profile).items()}
        self._planned = None if plan is None else _parsed(plan)
        if self._planned is not None and plan is not None:
            self._seed, self._profile = _head_of(plan, seed)
            self._weights = dict.fromkeys(self._planned.values(), 1.0)
        self._counts: Counter[tuple[str, str, str, int]] = Counter()
        self._names: dict[FaultPort, str] = {}
        self._came = 0
        self._happened: list[str] = []
        self._lasting: dict[Handle, Cancellable] = {}
        self._census = _Census(tap, self)
        self._dice = [_Die(tap, subject, self) for subject in _subjects(self._weights)]
        self.optional()

    def begin(self) -> None:
        """Look at everything from now on."""
        for line in self._tap.lines():
            self.came(line)
        self._tap.add(self._census)
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
        key = (self._name(unit), unit.direction, method, unit.channel)
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

    def came(self, line: FaultPort) -> None:
        """A connection has come: until its client has said its name, it has a number."""
        if line not in self._names:
            self._names = {known: name for known, name in self._names.items() if known.open}
            self._came += 1
            self._names[line] = f"number {self._came}"

    def _name(self, unit: Unit) -> str:
        """What the connection of a unit is called in the plan."""
        name = unit.line.client_name
        if name is None:
            said = (getattr(unit.method, "client_properties", None) or {}).get("connection_name")
            name = said if isinstance(said, str) else None
        if name is not None:
            return repr(name)
        self.came(unit.line)
        return self._names[unit.line]

    def lasts(self, fault: Handle, seconds: float) -> None:
        """A fault ends after so long, or when all this does."""
        fault.optional()

        def end() -> None:
            self._lasting.pop(fault).cancel()
            self._handles.discard(fault)
            fault.remove()

        host = self._tap.host
        self._lasting[fault] = host.call_at(host.now() + seconds, end, f"fault: {fault.sentence}, no more")

    def _withdraw(self) -> None:
        for die in self._dice:
            die.retire()
        lasting, self._lasting = self._lasting, {}
        for fault, timer in lasting.items():
            timer.cancel()
            self._handles.discard(fault)
            fault.remove()
        self._tap.remove(self._census)
        for die in self._dice:
            self._tap.remove(die)
        self._tap.settle()


class _Census(Rule):
    """Sees every connection that comes, for its number not to depend on what else is looked at."""

    def __init__(self, tap: FaultTap, chaos: Chaos) -> None:
        super().__init__(tap, subject_of(("connection.start",), "sent"), [], None, None, Random(0))
        self._chaos = chaos

    def looks_at(self, unit: Unit, *, begun: bool = False) -> bool:
        """Never interfere."""
        if unit.name == "connection.start":
            self._chaos.came(unit.line)
        return False


class _Die(Rule):
    """Rolls for the methods of one subject."""

    def __init__(self, tap: FaultTap, subject: tuple[Subject, tuple[str, ...]], chaos: Chaos) -> None:
        super().__init__(tap, subject[0], [], None, None, Random(0))
        self._kinds = subject[1]
        self.chaos = chaos

    def fires(self, unit: Unit) -> bool:
        """Draw for this one."""
        if self.removed:
            return False
        kinds = [
            name
            for name in self._kinds
            if self.subject.confirms
            or (unit.name in FAULTS[name].methods and _happens_in(FAULTS[name], unit.protocol.name))
        ]
        self.actions = self.chaos.draw(unit, kinds, confirms=self.subject.confirms) if kinds else []
        return bool(self.actions)

    def retire(self) -> None:
        """Do nothing any more, also to what is on its way."""
        self._removed = True

    @property
    def sentence(self) -> str:
        """What it does just now."""
        return "chaos: " + ", then ".join(action.words for action in self.actions)


def _happens_in(kind: _Kind, protocol: str) -> bool:
    return not kind.only or protocol in kind.only


def _is_amount(number: float) -> bool:
    return isfinite(number) and number >= 0


def _weights(profile: str | Mapping[str, float]) -> dict[str, float]:
    if isinstance(profile, str):
        if profile not in PROFILES:
            raise FaultError(f"there is no profile {profile!r}{near_match(profile, PROFILES)}")
        return dict(PROFILES[profile])
    if not isinstance(profile, Mapping):
        raise FaultError(f"a profile is a name or a dict of probabilities, not {profile!r}")
    for name, probability in profile.items():
        if name not in FAULTS:
            raise FaultError(f"there is no fault {name!r} to be drawn{near_match(name, FAULTS)}")
        if not isinstance(probability, int | float) or not 0 <= probability <= 1:
            raise FaultError(f"the probability of {name!r} is between 0 and 1, not {probability!r}")
    return dict(profile)


def _subjects(names: Iterable[str]) -> list[tuple[Subject, tuple[str, ...]]]:
    """What has to be looked at for these faults, and which of them can happen there."""
    by_direction: dict[tuple[str, bool], list[str]] = {}
    for name in sorted(names):
        subject = subject_of(FAULTS[name].methods, FAULTS[name].direction)
        by_direction.setdefault((subject.direction, subject.confirms), []).append(name)
    made = []
    # Always in one order, for what they let go in the end to go in one order.
    for (direction, _), kinds in sorted(by_direction.items()):
        methods = tuple(dict.fromkeys(method for name in kinds for method in FAULTS[name].methods))
        made.append((subject_of(methods, direction), tuple(kinds)))
    return made


def _head_of(plan: str, seed: int | str) -> tuple[int | str, str]:
    """The seed that a plan says, or else `seed`; and the profile that it was drawn from."""
    found = _HEAD.match(plan.lstrip())
    if found is None:
        return seed, "a given plan"
    said = literal_eval(found["seed"])
    return said if isinstance(said, (int, str)) else seed, found["profile"] or "a given plan"


def _parsed(plan: str) -> dict[_Place, str]:
    if not isinstance(plan, str):
        raise FaultError(f"a plan is a str, not {plan!r}")
    parsed = {}
    for number, line in enumerate(plan.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.match(line.strip())
        if found is None or found["fault"] not in FAULTS:
            hint = "" if found is None else near_match(found["fault"], FAULTS)
            raise FaultError(f"line {number} of the plan cannot be read: {line!r}{hint}")
        _check_place(number, found["direction"], found["method"], found["fault"])
        place = _Place(
            found["connection"],
            found["direction"],
            found["method"],
            int(found["channel"]),
            int(found["number"]),
        )
        parsed[place] = found["fault"]
    return parsed


def _check_place(number: int, direction: str, method: str, fault: str) -> None:
    """Whether the fault can happen there at all."""
    kind = FAULTS[fault]
    try:
        subject_of((method,), None)
    except FaultError as problem:
        raise FaultError(f"line {number} of the plan cannot be read: {problem}") from None
    if method not in kind.methods or direction != subject_of(kind.methods, kind.direction).direction:
        raise FaultError(
            f"line {number} of the plan cannot be read: {fault!r} does not happen to a {direction} {method}"
        )
