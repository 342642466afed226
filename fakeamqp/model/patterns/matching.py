"""Runs patterns: a backtracking search that tries nothing twice, and ends after a number of steps.

A program is a list of operations. A state of a search is a place in the program, a place in the text, the
counts of the repetitions around it, and the texts of the groups that back references name. What follows from
a state depends on nothing else, so the search remembers its states: one that has failed fails again, and one
from which a lookaround or an atomic group has matched matches again. So most searches take steps in
proportion to the length of the text times that of the pattern. Back references, counts and empty repetitions
can multiply the states; then the bound ends the search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from fakeamqp.model.patterns import MOST_STEPS, octets

# What an operation does, and its two arguments. Jumps are relative to the operation. Sets are strings: 255
# characters take 300 bytes as a string, and 16 000 as a set.
SET = 0  # Take one character of a set.
MANY = 1  # Take any number of characters of a set; whether as few as possible.
WAYS = 2  # Try ways, a list of `Way`, one after the other.
JUMP = 3  # Go on elsewhere.
ENTER = 4  # Begin a repetition.
TURN = 5  # Begin a turn of a repetition, `Repeats`; where it ends.
CHECK = 6  # Go on if a function of text and place holds.
OPEN = 7  # Begin a group, given its slot.
CLOSE = 8  # End a group, given its slot.
SAME = 9  # Take what a group has taken, given its slot; whether case is ignored.
IF = 10  # Go on if a group has taken something, given its slot; else elsewhere.
BACK = 11  # Go back by a number of characters.
LOOK = 12  # Match what follows without taking it; whether it must not match; where to go on.
ATOM = 13  # Take the first match of what follows, and no other; where to go on.
END = 14  # The end of the pattern, or of what LOOK or ATOM match.

Operation: TypeAlias = "tuple[int, Any, Any]"


class Way(NamedTuple):
    """One alternative of an operation."""

    jump: int
    first: str | None
    """The characters with which it begins; None if it may take none."""


class Repeats(NamedTuple):
    """How a group is repeated."""

    low: int
    high: int | None
    lazy: bool
    may_be_empty: bool
    """Whether the group may match without taking a character."""


_Loops: TypeAlias = "tuple[int, int, Any] | None"
"""The turns of the innermost repetition, where the last one began, and the repetition around it."""
_Groups: TypeAlias = "tuple[Any, ...]"
"""For each slot the text that a group has taken, or None; then for each slot where the group has begun."""
_State: TypeAlias = "tuple[int, int, _Loops, _Groups]"
_NEW: Any = object()
_MOST_WAYS_KEPT = 16
_MOST_TARGETS_KEPT = 256


class Program:
    """A compiled pattern.

    A match begins with one of the characters `first`, unless this is None. `slots` groups are kept, and
    repetitions are nested to `depth`. An anchored match begins at the start of the text.
    """

    __slots__ = ("_anchored", "_first", "_forgets", "_operations", "_slots", "_targets", "_weight")

    def __init__(
        self,
        operations: Sequence[Operation],
        slots: int = 0,
        first: str | None = None,
        *,
        anchored: bool = False,
        depth: int = 0,
    ) -> None:
        self._operations = operations
        self._slots = slots
        self._first = first
        self._anchored = anchored
        self._weight = 1 + (2 * slots + depth) // 16
        """The steps for a state that is remembered: its hash takes time."""
        self._forgets = any(
            code == TURN and first.may_be_empty and first.high is None for code, first, _ in operations
        )
        """Whether a state can fail only because the search comes from it: an empty turn leads back to it."""
        self._targets: dict[tuple[int, str], list[int]] = {}
        """Where ways lead, for a place in the program and the next character."""

    def search(self, text: str) -> bool:
        """Whether the pattern fits a part of the text. False if the bound ends the search."""
        return self.run(text)[0]

    def run(self, text: str) -> tuple[bool, int]:
        """Search, and count the steps: more than `MOST_STEPS` if the bound has ended the search."""
        text = octets(text)
        memo: dict[_State, tuple[int, _Groups] | None] = {}
        groups: _Groups = (None,) * (2 * self._slots)
        steps = 0
        for start in range(1 if self._anchored else len(text) + 1):
            if self._first is None or (start < len(text) and text[start] in self._first):
                fits, steps = self._from((0, start, None, groups), text, memo, steps)
                if fits:
                    return True, steps
            steps += 1
            if steps > MOST_STEPS:
                break
        return False, steps

    def _from(
        self, start: _State, text: str, memo: dict[_State, tuple[int, _Groups] | None], steps: int
    ) -> tuple[bool, int]:
        """Search from the state `start` on.

        The memo has for each state so far the end and the groups of the match of the lookaround or the atomic
        group around it, or None if there is no match yet. `steps` are those taken so far.
        """
        operations, slots, end = self._operations, self._slots, len(text)
        stack: list[tuple[_State, int]] = [(start, 0)]
        """States to try later, and how long the trail was."""
        trail: list[_State] = []
        """The states on the way to the present one that are in the memo."""
        log: list[_State] = []
        """All states that came into the memo, if some must be forgotten."""
        frames: list[tuple[_State, list[tuple[_State, int]], list[_State], int]] = []
        """The searches to resume after a lookaround or an atomic group."""
        while True:
            if stack:
                (at, place, loops, groups), passed = stack.pop()
                del trail[passed:]
            elif not frames:
                return False, steps
            else:
                (at, place, loops, groups), stack, trail, _ = frames.pop()
                code, negated, after = operations[at]
                if code == ATOM or not negated:
                    continue
                at += after
            while True:
                steps += 1
                if steps > MOST_STEPS:
                    return False, steps
                code, first, second = operations[at]
                if code == SET:
                    if place == end or text[place] not in first:
                        break
                    at += 1
                    place += 1
                    continue
                if code == JUMP:
                    at += first
                    continue
                if code == CHECK:
                    if not first(text, place):
                        break
                    at += 1
                    continue
                matched: tuple[int, _Groups] | None = None
                if code <= TURN and code != ENTER:
                    state = at, place, loops, groups
                    steps += self._weight
                    matched = memo.get(state, _NEW)
                    if matched is _NEW:
                        matched = memo[state] = None
                        trail.append(state)
                        if self._forgets:
                            log.append(state)
                    elif matched is None:
                        if code != TURN or not first.may_be_empty or first.high is not None:
                            break
                        # After an empty turn, the search goes on behind the repetition. If the state has
                        # failed before, this fails as well.
                        assert loops is not None
                        if loops[0] < first.low:
                            break
                        at, loops = at + second, loops[2]
                        continue
                if matched is None and code != END:
                    if code == MANY:
                        fits = place < end and text[place] in first
                        if not second and fits:
                            stack.append(((at + 1, place, loops, groups), len(trail)))
                            place += 1
                        else:
                            if fits:
                                stack.append(((at, place + 1, loops, groups), len(trail)))
                            at += 1
                    elif code == WAYS:
                        ways = self._targets.get((at, text[place : place + 1]))
                        if ways is None:
                            steps += len(first)
                            ways = self._ways(at, text[place : place + 1])
                        if not ways:
                            break
                        steps += len(ways)
                        stack += [((way, place, loops, groups), len(trail)) for way in ways[:0:-1]]
                        at = ways[0]
                    elif code == ENTER:
                        loops = 0, -1, loops
                        at += 1
                    elif code == TURN:
                        assert loops is not None
                        count, began, outer = loops
                        low, high, lazy, may_be_empty = first
                        leave: _State = at + second, place, outer, groups
                        if count == high or (count and began == place):
                            # After an empty turn, all others could be empty as well.
                            at, _, loops, _ = leave
                            continue
                        count = count + 1 if high is not None or count < low else low
                        again: _State = (
                            at + 1,
                            place,
                            (count, place if may_be_empty and high is not None else -1, outer),
                            groups,
                        )
                        if loops[0] >= low:
                            stack.append((again if lazy else leave, len(trail)))
                            at, _, loops, _ = leave if lazy else again
                        else:
                            at, _, loops, _ = again
                    elif code == OPEN:
                        steps += slots >> 3
                        groups = _with(groups, slots + first, place)
                        at += 1
                    elif code == CLOSE:
                        taken = text[groups[slots + first] : place]
                        steps += (slots + len(taken)) >> 3
                        groups = _with(_with(groups, slots + first, None), first, taken)
                        at += 1
                    elif code == SAME:
                        taken = groups[first]
                        if taken is None:
                            break
                        steps += len(taken) >> 3
                        found = text[place : place + len(taken)]
                        if found != taken and not (second and found.lower() == taken.lower()):
                            break
                        place += len(taken)
                        at += 1
                    elif code == IF:
                        at += 1 if groups[first] is not None else second
                    elif code == BACK:
                        if place < first:
                            break
                        place -= first
                        at += 1
                    else:  # LOOK and ATOM.
                        frames.append(((at, place, loops, groups), stack, trail, len(log)))
                        stack, trail, loops = [], [], None
                        at += 1
                    continue
                if not frames:
                    return True, steps
                if matched is None:
                    matched = place, groups
                for state in trail:
                    memo[state] = matched
                (at, place, loops, groups), stack, trail, logged = frames.pop()
                for state in log[logged:]:
                    if memo.get(state) is None:
                        memo.pop(state, None)
                del log[logged:]
                code, negated, after = operations[at]
                if code == ATOM:
                    place, groups = matched
                elif negated:
                    break
                else:
                    groups = matched[1]
                at += after

    def _ways(self, at: int, character: str) -> list[int]:
        """Where the ways of an operation lead that can begin with a character, "" at the end of the text."""
        found = [
            at + jump
            for jump, first in self._operations[at][1]
            if first is None or (character and character in first)
        ]
        if len(found) <= _MOST_WAYS_KEPT:
            if len(self._targets) >= _MOST_TARGETS_KEPT:
                self._targets.clear()
            self._targets[at, character] = found
        return found


def _with(groups: _Groups, index: int, value: object) -> _Groups:
    return (*groups[:index], value, *groups[index + 1 :])
