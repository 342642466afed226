"""The regular expressions of operators: permissions, topic permissions and policies.

They are Python's, with one difference: no pattern takes long. Python's engine tries one way after the other,
so that `^(a+)+$` needs centuries for a name of 60 letters, and nothing can stop it. Patterns with more than
two quantifiers, or with one around a quantifier or alternatives, are therefore run on all ways at once, in
time that grows with the length of the pattern times that of the text. A backreference cannot be run so; such
a pattern is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Protocol, TypeAlias

from fakeamqp.errors import FakeAMQPError

__all__ = ["InvalidPattern", "Searching", "compiled"]

_MOST_STEPS = 2_000
"""The size of a program: `(x{100}){100}` would have 10 000 steps."""
_MOST_QUANTIFIERS = 2
"""How many quantifiers side by side Python's engine may run: its time is at worst a power of three then."""

_TOKEN = re.compile(
    r"""
    (?P<flags>\(\?[aiLmsu]+\))
    |(?P<comment>\(\?\#[^)]*\))
    |(?P<unknown>\(\?(?:P=|\([^)]*\)|>|[aiLmsux]*-?[imsx]+:)|\(\?[aiLmsux]*x|\\[1-9])
    |(?P<behind>\(\?<[=!])
    |(?P<look>\(\?[=!])
    |(?P<open>\((?:\?:|\?P<\w+>)?)
    |(?P<close>\))
    |(?P<alternative>\|)
    |(?P<quantifier>(?:[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\})[?+]?)
    |(?P<place>\^|\$|\\[AZbB])
    |(?P<single>
        \[\^?\]?(?:\\.|[^\]\\])*\]
        |\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|0[0-7]{0,2}|.)
        |.
    )
    """,
    re.VERBOSE | re.DOTALL,
)

_Node: TypeAlias = "Callable[[Program], None]"


class InvalidPattern(FakeAMQPError, ValueError):
    """A regular expression that is none, or that cannot be run in a time with a bound."""

    def __init__(self, problem: str, place: int = 0) -> None:
        super().__init__(f"{problem} (at {place})")
        self.problem = problem
        """What is wrong, without the place."""
        self.place = place
        """The index of the character, from 0."""


class Searching(Protocol):
    """A pattern to search with."""

    def search(self, text: str, /) -> object:
        """Return something true if the pattern fits a part of the text."""


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Searching:
    """Compile a pattern.

    Raises:
        InvalidPattern: see there.
    """
    try:
        by_python = re.compile(pattern)
    except re.error as error:
        raise InvalidPattern(error.msg, error.pos or 0) from None
    except (OverflowError, RecursionError) as error:
        raise InvalidPattern(str(error)) from None
    try:
        program = _Parser(pattern, by_python.flags).program()
    except RecursionError:
        raise InvalidPattern("the pattern has too many groups inside each other") from None
    return by_python if program is None else program


class Program:
    """The steps of a pattern, run on all ways at once.

    A step is a function of the text and a place in it, which returns the length of what it takes, -1 if it
    does not fit. Or it is a fork: a list of the steps to go on with.
    """

    def __init__(self) -> None:
        self.steps: list[_Step | list[int]] = []

    def add(self, step: _Step | list[int]) -> int:
        """Add a step and return its number.

        Raises:
            InvalidPattern: there are too many.
        """
        if len(self.steps) == _MOST_STEPS:
            raise InvalidPattern(
                f"the pattern is too large: written out, without counted repetitions, it has more than "
                f"{_MOST_STEPS} steps"
            )
        self.steps.append(step)
        return len(self.steps) - 1

    def search(self, text: str) -> bool:
        """Whether the pattern fits a part of the text."""
        return self._run(text, range(len(text) + 1))

    def fits(self, text: str, place: int) -> bool:
        """Whether the pattern fits the text from a place on."""
        return self._run(text, range(place, place + 1))

    def _run(self, text: str, starts: range) -> bool:
        steps = self.steps
        end = len(steps)
        now: list[int] = []
        for place in range(starts.start, len(text) + 1):
            if place in starts:
                now.append(0)
            elif not now:
                return False
            seen: set[int] = set()
            later: list[int] = []
            while now:
                number = now.pop()
                if number in seen:
                    continue
                seen.add(number)
                if number == end:
                    return True
                step = steps[number]
                if isinstance(step, list):
                    now += step
                elif (taken := step(text, place)) >= 0:
                    (later if taken else now).append(number + 1)
            now = later
        return False


_Step: TypeAlias = "Callable[[str, int], int]"


class _Parser:
    """Reads a pattern that Python's engine has accepted.

    Raises:
        InvalidPattern: it may take long and has parts that only Python's engine runs.
    """

    def __init__(self, pattern: str, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags & ~re.VERBOSE
        self._place = 0
        self._unknown = ""
        self._quantifiers = 0
        self._nested = False
        self._verbose = bool(flags & re.VERBOSE)

    def program(self) -> Program | None:
        """Read the pattern. None if Python's engine runs it fast enough."""
        node, _ = self._alternatives()
        if not self._nested and self._quantifiers <= _MOST_QUANTIFIERS:
            return None
        if self._unknown or self._verbose:
            raise InvalidPattern(
                f"with {self._unknown or '(?x)'!r} a pattern may have at most {_MOST_QUANTIFIERS} "
                f"quantifiers, and none around another or around alternatives: a search could take for ever"
            )
        program = Program()
        node(program)
        return program

    def _tokens(self) -> Iterator[tuple[str, str]]:
        while self._place < len(self._pattern):
            found = _TOKEN.match(self._pattern, self._place)
            assert found is not None and found.lastgroup is not None
            self._place = found.end()
            yield found.lastgroup, found[0]

    def _alternatives(self) -> tuple[_Node, bool]:
        """Read up to the end of the group or of the pattern.

        Returns:
            what was read, and whether a quantifier around it would make Python's engine take long.
        """
        alternatives: list[list[_Node]] = [[]]
        before = self._quantifiers
        long = False
        """Whether that holds for the last part."""
        for kind, text in self._tokens():
            parts = alternatives[-1]
            if kind == "close":
                break
            if kind == "alternative":
                alternatives.append([])
            elif kind == "quantifier":
                self._quantifiers += 1
                self._nested |= long
                long = True
                if len(text) > 1 and text.endswith("+"):
                    self._unknown = self._unknown or text
                parts[-1] = _repeated(parts[-1], *_bounds(text))
            elif kind not in ("flags", "comment"):
                part, long = self._part(kind, text)
                parts.append(part)
        node = _one_of([_in_order(parts) for parts in alternatives])
        return node, len(alternatives) > 1 or self._quantifiers > before

    def _part(self, kind: str, text: str) -> tuple[_Node, bool]:
        if kind == "open":
            return self._alternatives()
        if kind == "look":
            node, long = self._alternatives()
            return _look(node, ahead=text == "(?="), long
        if kind == "behind":  # Of a fixed length, so that Python's engine takes no time for it.
            start = self._place - len(text)
            self._alternatives()
            return _by_python(self._pattern[start : self._place], self._flags), False
        if kind == "unknown":
            self._unknown = self._unknown or text
            if text.startswith("("):
                self._alternatives()
            return _in_order([]), True
        return _by_python(text, self._flags), False


def _bounds(quantifier: str) -> tuple[int, int | None]:
    if quantifier[0] != "{":
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[quantifier[0]]
    low, comma, high = quantifier[1:].rstrip("?+").rstrip("}").partition(",")
    if not comma:
        return int(low), int(low)
    return int(low or 0), int(high) if high else None


def _by_python(text: str, flags: int) -> _Node:
    """A part that takes one character or none: what it means is left to Python's engine."""
    match = re.compile(text, flags).match

    def step(subject: str, place: int) -> int:
        found = match(subject, place)
        return -1 if found is None else found.end() - place

    def add(program: Program) -> None:
        program.add(step)

    return add


def _look(node: _Node, *, ahead: bool) -> _Node:
    @cache
    def inner() -> Program:
        program = Program()
        node(program)
        return program

    def step(subject: str, place: int) -> int:
        return 0 if inner().fits(subject, place) is ahead else -1

    def add(program: Program) -> None:
        inner()  # So that it raises now.
        program.add(step)

    return add


def _in_order(parts: list[_Node]) -> _Node:
    def add(program: Program) -> None:
        for part in parts:
            part(program)

    return add


def _one_of(alternatives: list[_Node]) -> _Node:
    if len(alternatives) == 1:
        return alternatives[0]

    def add(program: Program) -> None:
        fork: list[int] = []
        program.add(fork)
        ends: list[list[int]] = []
        for alternative in alternatives:
            fork.append(len(program.steps))
            alternative(program)
            ends.append([])
            program.add(ends[-1])
        for end in ends:
            end.append(len(program.steps))

    return add


def _repeated(part: _Node, low: int, high: int | None) -> _Node:
    def add(program: Program) -> None:
        for _ in range(low):
            before = len(program.steps)
            part(program)
            if len(program.steps) == before:  # A group with nothing in it.
                return
        if high is None:
            fork: list[int] = []
            start = program.add(fork)
            part(program)
            program.add([start])
            fork += (start + 1, len(program.steps))
            return
        forks: list[list[int]] = []
        for _ in range(high - low):
            forks.append([])
            number = program.add(forks[-1])
            forks[-1].append(number + 1)
            part(program)
        for fork in forks:
            fork.append(len(program.steps))

    return add
