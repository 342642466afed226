"""What can be wrong with faults themselves. All of it is the test's, none of it the peer's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from fakeamqp.errors import FakeAMQPError

__all__ = ["FaultError", "FaultNotSeen", "UnusedFault", "near_match"]


class FaultError(FakeAMQPError):
    """A fault was asked for that cannot be: a name is misspelled, or an action does not fit its method."""


class FaultNotSeen(FakeAMQPError):
    """A fault did not happen as often as somebody waited for; the text says what came instead."""


class UnusedFault(FakeAMQPError):
    """Faults were installed and never happened, so that the test has not tested what it says."""


def near_match(name: object, known: Iterable[str], most: int = 12) -> str:
    """How to go on after "there is no such ...": the nearest known name, or all of at most `most`."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are {', '.join(map(repr, names))}" if 0 < len(names) <= most else ""
