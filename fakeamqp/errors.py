"""The base class of all errors of fakeamqp. Every package may import this module, and it imports none."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["FakeAMQPError", "near_match"]


class FakeAMQPError(Exception):
    """Base class of all errors that fakeamqp raises on purpose; the text says what to do."""


def near_match(name: object, known: Iterable[str], most: int = 12) -> str:
    """The end of an error about an unknown name: the nearest known name, or up to `most` known names."""
    import difflib  # Imported only for errors.

    names = sorted(known)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean {near[0]!r}?"
    if not 0 < len(names) <= most:
        return ""
    return f"; there {'are' if len(names) > 1 else 'is only'} {', '.join(map(repr, names))}"
