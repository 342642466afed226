"""What can be wrong with faults themselves. All of it is the test's, none of it the peer's."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from fakeamqp.errors import FakeAMQPError

__all__ = ["FaultError", "FaultNotSeen", "UnusedFault", "check_channel", "near_match"]


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
    if not 0 < len(names) <= most:
        return ""
    return f"; there {'are' if len(names) > 1 else 'is only'} {', '.join(map(repr, names))}"


def check_channel(number: object) -> None:
    """Whether a frame can be on such a channel.

    Raises:
        FaultError: no.
    """
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 0xFFFF:
        raise FaultError(f"a channel is a number from 0 to 65535, not {number!r}")
