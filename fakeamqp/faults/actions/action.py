"""What all actions have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError

if TYPE_CHECKING:
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.subjects import Subject

__all__ = ["Action", "one_of"]


class Action:
    """One thing to do."""

    words = ""
    fits_half = False
    """Whether it can follow on half a method: one whose body has not come yet."""
    protocols: frozenset[str] | None = None
    """The protocols in which it can be done; None is all."""

    def check(self, subject: Subject, part: str | None) -> None:
        """Whether it fits the rule.

        Raises:
            FaultError: no.
        """
        if part is not None and not self.fits_half:
            raise FaultError(f"half of {subject} can only be followed by an end, not: {self.words}")

    def act(self, flight: Flight) -> None:
        """Do it."""
        raise NotImplementedError

    def _only(self, subject: Subject, names: Iterable[str], verb: str) -> None:
        """Raise FaultError unless the rule is about one of these methods and nothing else."""
        allowed = frozenset(names)
        if subject.confirms or not subject.names <= allowed:
            raise FaultError(f"{verb} is for {' and '.join(sorted(allowed))}, not for {subject}")


def one_of(value: Any, known: Iterable[str], name: str) -> Any:
    """`value`, which must be one of those known.

    Raises:
        FaultError: it is not; the text has the nearest.
    """
    names = tuple(known)
    if value not in names:
        raise FaultError(f"{name} cannot be {value!r}{near_match(value, names, len(names))}")
    return value
