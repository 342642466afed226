"""The root of every error fakeamqp raises. A leaf: every room may import it, and it imports none."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["FakeAMQPError", "near_match"]


class FakeAMQPError(Exception):
    """Base class of all errors that fakeamqp raises on purpose; the text says what to do about it."""


def near_match(name: object, known: Iterable[str], most: int = 12) -> str:
    """How to go on after "there is no such ...": the nearest known name, or all of at most `most`."""
    import difflib  # Only on the way to an error.

    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not 0 < len(names) <= most:
        return ""
    return f"; there {'are' if len(names) > 1 else 'is only'} {', '.join(map(repr, names))}"
