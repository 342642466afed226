"""Plans: which fault happened where, a line each, to be read by people and by `chaos(plan=...)`."""

from __future__ import annotations

import re
from ast import literal_eval
from typing import NamedTuple

from fakeamqp.errors import near_match
from fakeamqp.faults.chaos.catalogue import FAULTS
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.subjects import subject_of

__all__ = ["MethodPlace", "head_of", "parse_plan"]


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
