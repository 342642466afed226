"""The base class of actions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError

if TYPE_CHECKING:
    from fakeamqp.faults.interception import Interception
    from fakeamqp.faults.subjects import Subject

__all__ = ["Action", "one_of"]


class Action:
    """One action of a rule. `words` says in a sentence fragment what it does."""

    words = ""
    fits_half = False
    """True if it can act on a method whose body has not arrived yet."""
    protocols: frozenset[str] | None = None
    """The protocols that have this action; None for all."""

    def check(self, subject: Subject, part: str | None) -> None:
        """Check that the action fits the rule.

        Raises:
            FaultError: it does not.
        """
        if part is not None and not self.fits_half:
            raise FaultError(
                f"with part={part!r} only call(), delay(), hold() and close actions are possible, "
                f"not: {self.words}"
            )

    def apply(self, interception: Interception) -> None:
        """Apply the action to the frame groups of an interception."""
        raise NotImplementedError

    def _only(self, subject: Subject, names: Iterable[str], verb: str) -> None:
        """Raise `FaultError` unless the rule is about these methods only."""
        allowed = frozenset(names)
        if subject.confirms or not subject.names <= allowed:
            raise FaultError(f"{verb} is for {' and '.join(sorted(allowed))}, not for {subject}")


def one_of(value: Any, known: Iterable[str], name: str) -> Any:
    """Return `value` if it is one of the known values.

    Raises:
        FaultError: it is not; the text names the nearest one.
    """
    names = tuple(known)
    if value not in names:
        raise FaultError(f"{name} cannot be {value!r}{near_match(value, names, len(names))}")
    return value
