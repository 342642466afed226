"""The base class of actions, and how chaos draws them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fakeamqp.dialects import protocol_named
from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError

if TYPE_CHECKING:
    from fakeamqp.faults.executor import Interception
    from fakeamqp.faults.subjects import Subject

__all__ = ["DELIVERIES", "PUBLISHES", "WORK", "WORK_0_9_X", "WORK_0_10", "Action", "Drawn", "one_of"]

PUBLISHES = ("basic.publish", "message.transfer")
DELIVERIES = ("basic.deliver", "message.transfer")
_WORK_0_9_1 = ("basic.publish", "basic.ack", "basic.get", "basic.consume", "queue.declare", "queue.bind")
WORK_0_9_X = (*_WORK_0_9_1, "message.transfer", "message.consume", "message.get")
WORK_0_10 = (
    "message.transfer",
    "message.accept",
    "message.subscribe",
    "message.flow",
    "queue.declare",
    "queue.query",
    "exchange.bind",
)
WORK = (*_WORK_0_9_1, *WORK_0_10)
"""What clients do all the time, and chaos disturbs."""


class Drawn(NamedTuple):
    """A fault that chaos can draw.

    Args:
        methods: what it can happen to.
        make: draws its action.
        direction: the direction of the methods, if it matters.
        needs: the capability of the protocols in which it happens; empty for all.
        loses: True if a client may wait for what is lost: chaos resets the connection soon after.
    """

    methods: tuple[str, ...]
    make: Callable[[Random], Action]
    direction: str | None = None
    needs: str = ""
    loses: bool = False

    def happens_in(self, protocol: str) -> bool:
        """True if it can happen on connections of a protocol."""
        return not self.needs or self.needs in protocol_named(protocol).capabilities


class Action:
    """One action of a rule. `words` says in a sentence fragment what it does.

    An action is offered by the method of `Rule` that is its row: see `fakeamqp.faults.rule.ACTIONS`.
    """

    words = ""
    label: ClassVar[str] = ""
    """What a form calls it; empty if forms do not offer it."""
    prefilled: ClassVar[Mapping[str, Any]] = {}
    """By argument: what a form proposes where the method of `Rule` has no default."""
    drawn: ClassVar[Mapping[str, Drawn]] = {}
    """By the name of the fault in a plan: how chaos draws it."""
    drops = False
    """True if nothing of the frame group passes on."""
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
