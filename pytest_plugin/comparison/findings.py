"""What changed between two personalities for one test, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from . import conversation as conversations, runs
from .search import smallest

if TYPE_CHECKING:
    from fakeamqp import Personality
    from fakeamqp.settings import ChoiceDifference

    from .conversation import Parting
    from .runs import Run

__all__ = ["Cause", "Finding", "investigate"]

_KNOWN: pytest.StashKey[dict[str, None]] = pytest.StashKey()
"""Choices that made a difference for an earlier test, latest last."""
_MOST_KNOWN = 5
_MOST_RUNS = 100
_MOST_CAUSES = 5


@dataclass(frozen=True)
class Cause:
    """Choices that make the difference, proved by a run.

    Args:
        choices: those that the first personality took from the second one; for each its name, both values,
            what it decides, and its source.
        lines: where the conversation parts with these choices: on the first personality, and with them. None
            is the end of what was said; empty if the conversations do not part.
        alike: whether the second personality says the same at this point, where it parts from the first one.
    """

    choices: list[list[str]]
    lines: list[str | None]
    alike: bool


@dataclass
class Finding:
    """What changed for one test. Only texts and numbers, so that pytest-xdist can send it.

    Args:
        names: of the personalities.
        outcomes: of the test on each.
        reason: why it failed on the second one, or else on the first one; "" without a failure.
        lines: where the conversations part; empty if they do not.
        causes: what makes the difference; several are independent of each other.
        note: why `causes` is empty or not complete; "" if it is complete.
        runs: how often the test ran to find the causes.
    """

    names: list[str]
    outcomes: list[str]
    reason: str = ""
    lines: list[str | None] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    note: str = ""
    runs: int = 0

    @property
    def same(self) -> bool:
        """Whether nothing changed."""
        return self.outcomes[0] == self.outcomes[1] and not self.lines

    def as_data(self) -> dict[str, Any]:
        """The finding for a report of pytest."""
        return {**vars(self), "causes": [vars(cause) for cause in self.causes]}

    @classmethod
    def of_data(cls, data: dict[str, Any]) -> Finding:
        """The finding in a report of pytest."""
        return cls(**{**data, "causes": [Cause(**cause) for cause in data["causes"]]})


def investigate(item: pytest.Item, pair: tuple[Personality, Personality], first: Run, second: Run) -> Finding:
    """Compare two runs of `item`; if they differ, run it again to find the choices that make it so."""
    finding = Finding(
        [each.name for each in pair], [first.outcome, second.outcome], second.reason or first.reason
    )
    parted = conversations.parting(first.conversation, second.conversation, {})
    if first.outcome == second.outcome and parted is None:
        return finding
    finding.lines = _lines(parted)
    if item.config.getoption("usepdb", False):
        finding.note = "no cause was looked for, because --pdb would stop in every run"
        return finding
    investigation = _Investigation(item, pair, first, second)
    try:
        investigation.into(finding)
    except _TooManyRuns:
        finding.note = f"{_MOST_RUNS} runs were not enough to find the cause"
    finding.runs = investigation.runs
    return finding


class _TooManyRuns(Exception):
    pass


class _Investigation:
    """Runs a test with some choices of the second personality, on the first one."""

    def __init__(
        self, item: pytest.Item, pair: tuple[Personality, Personality], first: Run, second: Run
    ) -> None:
        self._item = item
        self._pair = pair
        self._first = first
        self._second = second
        self._choices = {each.name: each for each in pair[0].differences(pair[1])}
        self._parted: Parting | None = None
        self._known = item.config.stash.setdefault(_KNOWN, {})
        self._done: dict[frozenset[str], Run] = {}
        self.runs = 0

    def into(self, finding: Finding) -> None:
        """Complete a finding."""
        everything = tuple(self._choices)
        pairs = [(self._first, self._run(())), (self._second, self._run(everything))]
        steady = conversations.steady([(run.conversation, again.conversation) for run, again in pairs])
        self._parted = conversations.parting(self._first.conversation, self._second.conversation, steady)
        finding.lines = _lines(self._parted)
        for name, (run, again) in zip(finding.names, pairs, strict=True):
            if run.outcome != again.outcome:
                outcomes = f"{run.outcome}, then {again.outcome}"
                finding.note = f"the test has no steady outcome on {name}: {outcomes}"
                return
        if self._outcome_is_same and self._parted is None:
            return  # The conversations differ from run to run, not from personality to personality.
        finding.causes.extend(self._causes(everything, steady))
        if finding.causes:
            return
        if self._outcome_is_same:
            finding.lines = []  # Only the choices differ. What none of them brings about comes by chance.
        else:
            finding.note = "no choices were found with which the difference shows in every run"

    @property
    def _outcome_is_same(self) -> bool:
        return self._first.outcome == self._second.outcome

    def _causes(self, names: tuple[str, ...], steady: dict[conversations.Stream, int]) -> Iterator[Cause]:
        """Causes that are independent of each other: each makes the difference by itself."""
        for _ in range(_MOST_CAUSES):
            found = self._smallest(names)
            if not self._proved(found):
                return
            if len(found) == 1:
                self._known[found[0]] = None
            said = self._run(found).conversation
            changed = conversations.parting(self._first.conversation, said, steady)
            alike = (
                changed is not None
                and self._parted is not None
                and changed.at == self._parted.at
                and conversations.shows(said, self._parted)
            )
            yield Cause([_description(self._choices[name]) for name in found], _lines(changed), alike)
            names = tuple(name for name in names if name not in found)
            if not names or not self._shows(names):
                return

    def _smallest(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Some of the choices that make the difference. Tests of one app often have the same cause."""
        for known in list(self._known)[-_MOST_KNOWN:]:
            if known in names and self._shows((known,)):
                return (known,)
        return smallest(names, self._shows)

    def _proved(self, names: tuple[str, ...]) -> bool:
        """Whether the difference shows with these choices and not without one of them, in runs of their own.

        In the search a difference that comes and goes by chance would lead to any choices. More than an
        outcome, the order of a conversation can depend on chance, so that is looked at twice.
        """
        without = [tuple(other for other in names if other != name) for name in names]
        for _ in range(2 if self._outcome_is_same else 1):
            for each in (names, *without):
                self._done.pop(frozenset(each), None)
            if not self._shows(names) or any(self._shows(each) for each in without):
                return False
        return True

    def _shows(self, names: Sequence[str]) -> bool:
        """Whether the first personality with these choices of the second one does as the second one."""
        run = self._run(tuple(names))
        if not self._outcome_is_same:
            return run.outcome == self._second.outcome
        assert self._parted is not None
        return conversations.shows(run.conversation, self._parted)

    def _run(self, names: tuple[str, ...]) -> Run:
        key = frozenset(names)
        if key not in self._done:
            if self.runs == _MOST_RUNS:
                raise _TooManyRuns
            self.runs += 1
            first, second = self._pair
            self._done[key] = runs.run(self._item, first.adopting(second, names), repeating=True)
        return self._done[key]


def _lines(parted: Parting | None) -> list[str | None]:
    if parted is None:
        return []
    return [None if turn is None else turn.line.text for turn in (parted.first, parted.second)]


def _description(choice: ChoiceDifference) -> list[str]:
    value, other = _values(choice.value, choice.other)
    return [choice.name, value, other, choice.text, choice.source]


def _values(value: object, other: object) -> tuple[str, str]:
    """Both values; of long collections, what the other one does not have."""
    if isinstance(value, tuple) and isinstance(other, tuple) and len(value) + len(other) > 8:
        return _only(value, other), _only(other, value)
    return repr(value), repr(other)


def _only(these: tuple[object, ...], others: tuple[object, ...]) -> str:
    rest = [repr(each) for each in these if each not in others]
    return f"with {', '.join(rest)}" if rest else "without"
