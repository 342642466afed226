"""Random programs on RabbitMQ and on the broker, and the differences between them that are known.

A program's times to live are short and really pass: a step has its time on the program's clock. A program in
which a player fell behind says nothing and is run again with more time. After every step all queues are asked
for their counts, more than once, so that what it has set going has come to rest.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings

from compat_tests.differential import script
from compat_tests.differential.comparison import SideBySide
from compat_tests.differential.raw_client import Address, Event
from compat_tests.differential.script import Call, Pause, Scene, call
from compat_tests.programs.check import first_difference
from compat_tests.programs.program import CONFIRMS, Program, in_order, scaled
from compat_tests.programs.races import MARGIN, survey
from compat_tests.programs.strategies import REAL, programs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

AT_ONCE = (8, 2, 1)
"""How many programs run at once, in the first look and in the next ones at what it left open."""
PACES = (0.6, 1.5, 4.0)
"""Real seconds for a second of a program: more where there was not enough time."""
LONGEST = 3.0
"""Seconds that may pass in a program."""
DEEPEST = 5
"""How often RabbitMQ's queues are asked for their counts: as often as a message may pass on at once."""
TIME_TO_SHRINK = 30.0
PATIENCE = 5.0
"""Seconds to wait for what must come."""
_CONTROL = 10
"""The channel on which queues are counted; what comes there is not told."""
_PREPARATIONS = ("queue.declare", "exchange.declare", "queue.bind")

__all__ = ["DIFFERENCES", "Comparison", "Difference", "ProgramsSideBySide", "drawn"]


# --- programs ----------------------------------------------------------------------------------------------


def drawn(chosen_seed: int, count: int) -> list[Program]:
    """Programs that are the same wherever they are run, and in which something happens."""
    found: dict[str, Program] = {}

    @seed(chosen_seed)
    @settings(
        max_examples=count * 20,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(REAL, shortest=12, longest=30))
    def draw(program: Program) -> None:
        # Hypothesis likes to try again what is nearly the same.
        key = repr(program[:6])
        if len(found) == count or key in found:
            return
        seconds = sum(step.seconds for step in program if isinstance(step, Pause))
        expected = survey(program)
        if expected.robust and seconds <= LONGEST and expected.deliveries + expected.deaths >= 4:
            found[key] = program

    draw()
    return list(found.values())


# --- known differences -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """An entry of the list."""

    kind: str
    reason: str
    program: str
    versions: tuple[str, ...]
    """The series that differ."""

    @property
    def steps(self) -> Program:
        """The program that shows it."""
        names = {name: getattr(script, name) for name in script.__all__}
        program: Program = eval(self.program.strip(), {**names, "run_program": list})
        return program


def _known_differences() -> tuple[Difference, ...]:
    path = Path(__file__).with_name("known_differences") / "programs.toml"
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["difference"]
    return tuple(Difference(**{**entry, "versions": tuple(entry["versions"])}) for entry in entries)


DIFFERENCES = _known_differences()


# --- running -----------------------------------------------------------------------------------------------


class Played(NamedTuple):
    """What came of each step of a program, and whether all was done in time."""

    outcomes: list[list[str]]
    in_time: bool


@dataclass(frozen=True)
class Comparison:
    """What came of many programs: how many there were, how many say nothing, and those that part."""

    count: int
    too_slow: int
    parted: list[tuple[Program, str]]


class TooSlow(Exception):
    """Not even with a lot of time was everything done in time."""


class ProgramsSideBySide:
    """RabbitMQ and the broker, side by side."""

    def __init__(self, series: str, both: SideBySide) -> None:
        self.series = series
        self._rabbitmq = Address("127.0.0.1", both.node.port)
        self._broker = Address("127.0.0.1", both.broker.port)

    def difference(self, program: Program) -> str:
        """Where the outcomes part first; empty where they do not.

        Raises:
            TooSlow: the machine was too busy to tell.
        """
        for pace in PACES:
            with ThreadPoolExecutor(1) as pool:
                playing = pool.submit(_play, self._rabbitmq, program, pace, DEEPEST)
                here = _play(self._broker, program, pace, 1)
                there = playing.result()
            if there.in_time and here.in_time:
                break
        else:
            raise TooSlow
        return first_difference(program, there.outcomes, here.outcomes, "RabbitMQ", "fakeamqp")

    def compare_all(self, programs: Iterable[Program]) -> Comparison:
        """Run programs on both, some at once. Those that part or say nothing are run again, at last alone.

        A busy RabbitMQ counts late, and a busy player falls behind.
        """

        def compare(program: Program) -> str | None:
            try:
                return self.difference(program)
            except TooSlow:
                return None

        chosen = list(programs)
        found: list[str | None] = [""] * len(chosen)
        again = list(range(len(chosen)))
        for at_once in AT_ONCE:
            with ThreadPoolExecutor(at_once) as pool:
                looks = list(pool.map(lambda place: compare(chosen[place]), again))
            for place, difference in zip(again, looks, strict=True):
                found[place] = difference
            again = [place for place in again if found[place] != ""]
        return Comparison(
            count=len(chosen),
            too_slow=found.count(None),
            parted=[(chosen[place], difference) for place in again if (difference := found[place])],
        )

    def shrunk(self, program: Program) -> Program:
        """A shorter program on which the brokers still part, as short as it gets in a while."""
        end = time.monotonic() + TIME_TO_SHRINK
        place = len(program)
        while place > 0 and time.monotonic() < end:
            place -= 1
            shorter = program[:place] + program[place + 1 :]
            with contextlib.suppress(TooSlow):
                if survey(shorter).robust and self.difference(shorter):
                    program = shorter
        return program


def _play(address: Address, program: Program, pace: float, rounds: int) -> Played:
    player = _Player(address, pace, rounds)
    try:
        return Played([player.take(step) for step in program], player.latest < MARGIN / 1000 * pace * 2 / 3)
    finally:
        player.close()


class _Player:
    """Takes steps while time passes. `pace` is how many real seconds a second of the program takes.

    Queues are asked `rounds` times: as often as a message may pass from one to another at once.
    """

    def __init__(self, address: Address, pace: float, rounds: int) -> None:
        self.scene = Scene(address, f"{secrets.token_hex(4)}.")
        self.client = self.scene.client(channels=(1, _CONTROL))
        self.pace = pace
        self.rounds = rounds
        self.consumers: dict[str, int] = {}
        """How many each queue has."""
        self.exchanges: list[str] = []
        self.open = {1}
        self.passed = 0.0
        """Seconds on the program's clock, which stands still while queues and exchanges are declared."""
        self.started = 0.0
        self.latest = 0.0
        """The longest that anything was done behind its time, in real seconds."""

    def take(self, step: Call | Pause) -> list[str]:
        """Take a step and say what came of it, by channel."""
        if self.client.end:
            return ["closed"]
        if not self.started and not (isinstance(step, Call) and step.method in _PREPARATIONS):
            self.started = time.monotonic()
        self.told: list[str] = []
        if isinstance(step, Pause):
            self._pause(step.seconds)
        else:
            self._call(step)
        counts = self._settle_down()
        if self.started:
            self.latest = max(self.latest, time.monotonic() - self.started - self.passed * self.pace)
        return [self.scene.told([text]) for text in (*in_order(self.told), *counts)]

    def close(self) -> None:
        """Leave nothing behind."""
        if not self.client.end:
            for name in self.consumers:
                call("queue.delete", queue=name, ch=_CONTROL)(self.scene)
            for name in self.exchanges:
                call("exchange.delete", exchange=name, ch=_CONTROL)(self.scene)
        self.scene.close()

    def _call(self, step: Call) -> None:
        name, channel = step.arguments.get("queue", ""), step.arguments.get("ch", 1)
        for text in scaled(step, self.pace)(self.scene):
            self._tell(text)
        done = self.told[-1:] and f"{step.method}-ok(" in self.told[-1]
        if step.method == "channel.open":
            self.open.add(channel)
        elif step.method == "channel.close":
            self.open.discard(channel)
        elif step.method == "queue.declare" and done:
            self.consumers.setdefault(name, 0)
        elif step.method == "exchange.declare":
            self.exchanges.append(step.arguments["exchange"])
        elif step.method == "queue.delete" and done:
            # Every consumer is told; by a process of its own in RabbitMQ, so that it may take a moment.
            consumers = self.consumers.pop(name, 0)
            while sum("basic.cancel(" in text for text in self.told) < consumers:
                self._await("basic.cancel")
        elif (step.method, channel) == ("publish", CONFIRMS) and not any(
            re.search(r"basic.n?ack\(|channel.close", text) for text in self.told
        ):
            self._await("basic.ack", "basic.nack", "channel.close")

    def _pause(self, seconds: float) -> None:
        self.passed += seconds
        # The one place where time has to pass: nothing says that a time to live is not over yet.
        while (left := self.started + self.passed * self.pace - time.monotonic()) > 0:
            event = self.client.next(left / self.client.address.patience)
            if event is not None:
                self._tell(event.text)

    def _await(self, *names: str) -> Event:
        """Take what comes up to one of these methods, or the end."""
        while True:
            event = self.client.next(PATIENCE)
            if event is None:
                raise LookupError(f"{names} do not come")
            self._tell(event.text)
            if event.name in (*names, "closed"):
                return event

    def _tell(self, text: str) -> None:
        if found := re.match(r"(?:\[(\d+)\])?channel.close\(", text):
            self.open.discard(int(found[1] or 1))
        if not text.startswith(f"[{_CONTROL}]"):
            self.told.append(text)

    def _settle_down(self) -> list[str]:
        """Wait until what was set going has come to rest, and tell how many messages there are."""
        counts: list[str] = []
        self._pass_by()
        while self.consumers and not self.client.end and (gone := self._count(counts)):
            self.told.append(f"[{_CONTROL}]{gone} has gone")
            del self.consumers[gone]
        self._pass_by()
        return counts

    def _pass_by(self) -> None:
        """Have each channel do all that it has been asked to."""
        for channel in sorted(self.open):
            for text in self.client.barrier(channel):
                self._tell(text)

    def _count(self, counts: list[str]) -> str:
        """Ask all queues for their counts, again and again; the last answers are told.

        Returns:
            The name of a queue that there is no more: the channel is closed for the question.
        """
        counts.clear()
        asked = [*self.consumers] * self.rounds
        for name in asked:
            self.client.tell(_CONTROL, "queue.declare", queue=self.scene.named(name), passive=1)
        for place, name in enumerate(asked):
            event = self._await("queue.declare-ok", "channel.close")
            while event.name == "channel.close" and event.channel != _CONTROL:
                event = self._await("queue.declare-ok", "channel.close")
            found = re.search(r"message_count=(\d+), consumer_count=(\d+)", event.text)
            if found is None:
                if not self.client.end:
                    call("channel.open", ch=_CONTROL)(self.scene)
                return name
            self.consumers[name] = int(found[2])
            if place >= len(self.consumers) * (self.rounds - 1):
                counts.append(f"{name}: {found[1]} ready, {found[2]} consumers")
        return ""
