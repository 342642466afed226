"""Random programs on RabbitMQ and on the broker, and the differences between them that are known.

A program's times to live are short and really pass. A program in which a player fell behind says nothing
and is run again with more time.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings

from compat_tests.differential.comparison import SideBySide
from compat_tests.differential.program_player import ProgramPlayer
from compat_tests.differential.raw_client import Address
from compat_tests.programs import program as p
from compat_tests.programs.program import Advance, Operation, Program, listing, scaled
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
        seconds = sum(each.seconds for each in program if isinstance(each, Advance))
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
    def operations(self) -> Program:
        """The program that shows it."""
        names = {name: getattr(p, name) for name in p.__all__}
        program: Program = eval(self.program.strip(), {**names, "run_program": list})
        return program


def _known_differences() -> tuple[Difference, ...]:
    path = Path(__file__).with_name("known_differences") / "programs.toml"
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["difference"]
    return tuple(Difference(**{**entry, "versions": tuple(entry["versions"])}) for entry in entries)


DIFFERENCES = _known_differences()


# --- running -----------------------------------------------------------------------------------------------


class Played(NamedTuple):
    """What came of each operation of a program, and whether all was done in time."""

    outcomes: list[str]
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

    def difference(self, program: Sequence[Operation]) -> str:
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
        for number, (rabbitmq, fakeamqp) in enumerate(zip(there.outcomes, here.outcomes, strict=True)):
            if rabbitmq != fakeamqp:
                done = program[: number + 1]
                return (
                    f"{done[-1]!r}, the last of these:\n{listing(done)}\n"
                    f"  RabbitMQ: {_lines(rabbitmq)}\n  fakeamqp: {_lines(fakeamqp)}"
                )
        return ""

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


def _play(address: Address, program: Sequence[Operation], pace: float, rounds: int) -> Played:
    prefix = f"{secrets.token_hex(4)}."
    player = ProgramPlayer(address, prefix, pace, rounds)
    try:
        outcomes = []
        for operation in program:
            done = player.perform(operation if isinstance(operation, Advance) else scaled(operation, pace))
            outcomes.append(re.sub(r"T:\d{9,}", "T:~", done.replace(prefix, "")))
        return Played(outcomes, player.latest < MARGIN / 1000 * pace * 2 / 3)
    finally:
        player.close()


def _lines(outcome: str) -> str:
    return outcome.replace(" ; ", "\n            ")
