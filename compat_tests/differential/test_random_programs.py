"""Random programs on RabbitMQ and on the broker bring about the same, or the difference is a listed one.

A program's times to live are short and really pass. A program in which a player fell behind says nothing
and is run again with more time.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from compat_tests.differential.program_player import ProgramPlayer
from compat_tests.differential.rabbitmq_node import RabbitMQNode, available
from compat_tests.differential.raw_client import Address
from compat_tests.fuzz.profile import FACTOR
from compat_tests.programs import program as p
from compat_tests.programs.program import Advance, Operation, Program, listing, scaled
from compat_tests.programs.races import MARGIN, survey
from compat_tests.programs.seeds import USUAL_SEED, seed_of
from compat_tests.programs.strategies import REAL, programs
from fakeamqp import Broker

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LISTED_FOR = "3.10."
"""The RabbitMQ that the known differences were measured with."""
PERSONALITY = "rabbitmq-3.13"
USUAL, FRESH = 150, 30
"""The number of programs that are the same at every run, and of those `make fuzz` draws (times factor)."""
AT_ONCE = 8
PACES = (0.6, 1.5, 4.0)
"""Real seconds for a second of a program: more where there was not enough time."""
LONGEST = 3.0
"""Seconds that may pass in a program."""
DEEPEST = 5
"""How often RabbitMQ's queues are asked for their counts: as often as a message may pass on at once."""
TIME_TO_SHRINK = 30.0
MOST_UNDECIDED = 0.1
"""The part of the programs that may take too long before the test is no test."""


# --- programs ----------------------------------------------------------------------------------------------


def drawn(chosen_seed: int, count: int) -> list[Program]:
    """Programs that are the same wherever they are run, and in which something happens."""
    found: dict[str, Program] = {}

    @seed(chosen_seed)
    @settings(
        max_examples=count * 8,
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


def last_death(text: str) -> str:
    return re.sub(r", x-last-death-\w+=S:'[^']*'", "", text)


def order_of_fields(text: str) -> str:
    def put_in_order(entry: re.Match[str]) -> str:
        return "{" + ", ".join(sorted(re.findall(r"[a-z-]+=(?:\[[^\]]*\]|[^,]+)", entry[1]))) + "}"

    return re.sub(r"\{([^{}]*reason=S:[^{}]*)\}(?=[\],])", put_in_order, text)


REWRITES: dict[str, Callable[[str], str]] = {each.__name__: each for each in (last_death, order_of_fields)}


@dataclass(frozen=True)
class Difference:
    """An entry of the list."""

    kind: str
    reason: str
    program: str
    rewrite: str = ""

    @property
    def operations(self) -> Program:
        """The program that shows it."""
        names = {name: getattr(p, name) for name in p.__all__}
        program: Program = eval(self.program.strip(), {**names, "run_program": list})
        return program


def _known_differences() -> tuple[Difference, ...]:
    path = Path(__file__).with_name("known_differences_of_programs.toml")
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["difference"]
    return tuple(Difference(**entry) for entry in entries)


DIFFERENCES = _known_differences()


def rewritten(text: str, but: str = "") -> str:
    """What came, without what is known to differ; `but` names a difference to be left."""
    for name, rewrite in REWRITES.items():
        if name != but:
            text = rewrite(text)
    return text


# --- running -----------------------------------------------------------------------------------------------


class Played(NamedTuple):
    """What came of each operation of a program, and whether all was done in time."""

    outcomes: list[str]
    in_time: bool


class TooSlow(Exception):
    """Not even with a lot of time was everything done in time."""


class Brokers:
    """RabbitMQ and the broker, side by side."""

    def __init__(self, node: RabbitMQNode, broker: Broker) -> None:
        self._rabbitmq = Address("127.0.0.1", node.port)
        self._broker = Address("127.0.0.1", broker.port)

    def difference(self, program: Sequence[Operation], but: str = "") -> str:
        """Where the outcomes part first; empty where they do not.

        Raises:
            TooSlow: the machine was too busy to tell.
        """
        for pace in PACES:
            there = _play(self._rabbitmq, program, pace, DEEPEST)
            here = _play(self._broker, program, pace, 1)
            if there.in_time and here.in_time:
                break
        else:
            raise TooSlow
        for number, (rabbitmq, fakeamqp) in enumerate(zip(there.outcomes, here.outcomes, strict=True)):
            if rewritten(rabbitmq, but) != rewritten(fakeamqp, but):
                done = program[: number + 1]
                return (
                    f"{done[-1]!r}, the last of these:\n{listing(done)}\n"
                    f"  RabbitMQ: {_lines(rabbitmq)}\n  fakeamqp: {_lines(fakeamqp)}"
                )
        return ""

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


@pytest.fixture(scope="module")
def brokers() -> Iterator[Brokers]:
    reason = available()
    if reason is not None:
        pytest.skip(reason)
    with RabbitMQNode() as node, Broker(personality=PERSONALITY) as broker:
        if not node.version.startswith(LISTED_FOR):
            pytest.skip(f"differences are listed for RabbitMQ {LISTED_FOR}*, this is {node.version}")
        yield Brokers(node, broker)


# --- tests -------------------------------------------------------------------------------------------------


def test_random_programs_bring_about_what_they_do_on_rabbitmq(
    brokers: Brokers, request: pytest.FixtureRequest
) -> None:
    chosen_seed = seed_of(request.config)
    chosen = drawn(USUAL_SEED, USUAL)
    # New programs find differences that were always there, so that only `make fuzz` looks for them.
    if chosen_seed != USUAL_SEED and FACTOR > 1:
        chosen += drawn(chosen_seed, int(FRESH * FACTOR))
    too_slow: list[Program] = []

    def compare(program: Program) -> str:
        try:
            return brokers.difference(program)
        except TooSlow:
            too_slow.append(program)
            return ""

    with ThreadPoolExecutor(AT_ONCE) as pool:
        differences = list(pool.map(compare, chosen))
    parted = [program for program, difference in zip(chosen, differences, strict=True) if difference]
    if parted:
        shortest = brokers.shrunk(min(parted, key=len))
        pytest.fail(
            f"{len(parted)} of {len(chosen)} programs part (--hypothesis-seed={chosen_seed}); "
            f"after {compare(shortest) or differences[chosen.index(parted[0])]}",
            pytrace=False,
        )
    if len(too_slow) > len(chosen) * MOST_UNDECIDED:
        pytest.skip(f"this machine is too busy: {len(too_slow)} of {len(chosen)} programs say nothing")


@pytest.mark.parametrize("entry", DIFFERENCES, ids=lambda entry: entry.rewrite or entry.reason[:40])
def test_known_differences_differ(entry: Difference, brokers: Brokers) -> None:
    program = entry.operations
    assert survey(program).robust is bool(entry.rewrite)
    assert brokers.difference(program, but=entry.rewrite), "no longer differs; take it off the list"
    if entry.rewrite:
        difference = brokers.difference(program)
        assert not difference, difference


def test_known_differences_are_explained() -> None:
    assert {entry.rewrite for entry in DIFFERENCES} - {""} == set(REWRITES)
    assert {entry.kind for entry in DIFFERENCES} <= {"3.13", "deliberate"}
    assert all(entry.reason for entry in DIFFERENCES)
