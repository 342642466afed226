"""A rule as data: a condition, a trigger and actions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING

from fakeamqp.faults.frame_group import HEARTBEAT
from fakeamqp.faults.handle import Handle

if TYPE_CHECKING:
    from fakeamqp.faults.actions.action import Action
    from fakeamqp.faults.condition import Condition, ConnectionSelector
    from fakeamqp.faults.executor import FaultExecutor
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.port import FaultPort
    from fakeamqp.faults.subjects import Subject

__all__ = ["BaseRule", "Trigger"]

_MOST_MISSES = 50


class Trigger:
    """Counts the frame groups that match a rule, and decides which of them fire it.

    Args:
        random: draws for `probability`.
    """

    def __init__(self, random: Random) -> None:
        self.calls: int = 0
        """How many frame groups matched."""
        self.limit: int | None = None
        """The largest number of hits."""
        self.only: int | None = None
        """The only call that fires; 1 is the first."""
        self.after = 0
        """The number of first calls that do not fire."""
        self.probability: float | None = None
        self._random = random

    def count(self, hits: int) -> bool:
        """Count one call; returns whether the rule fires, which has fired `hits` times so far."""
        self.calls += 1
        return (
            self.calls > self.after
            and (self.only is None or self.calls == self.only)
            and (self.limit is None or hits < self.limit)
            and (self.probability is None or self._random.random() < self.probability)
        )

    @property
    def words(self) -> str:
        """The trigger in words, such as " (after 3)"; "" if every call fires."""
        words = []
        if self.only is not None:
            words.append(f"only number {self.only}")
        if self.after:
            words.append(f"after {self.after}")
        if self.limit is not None:
            words.append("once at most" if self.limit == 1 else f"{self.limit} times at most")
        if self.probability is not None:
            words.append(f"with probability {self.probability:g}")
        return f" ({', '.join(words)})" if words else ""


class BaseRule(Handle):
    """A rule: which frame groups it concerns, which of them fire it, and the actions that it has then.

    Args:
        executor: carries out the rule while it is in force.
        subject: the methods.
        conditions: what their fields must be.
        connection: the connections; None for all.
        part: "header" if it acts before the body.
        random: draws for its trigger and its actions.
    """

    def __init__(
        self,
        executor: FaultExecutor,
        subject: Subject,
        conditions: Sequence[Condition] = (),
        connection: ConnectionSelector | None = None,
        part: str | None = None,
        random: Random | None = None,
    ) -> None:
        super().__init__(executor.context)
        self.subject = subject
        self.part = part
        self.actions: list[Action] = []
        self.random: Random = random or Random(0)
        self._protocols = subject.among
        """The protocols that have the methods and all actions."""
        self._executor = executor
        self._conditions = conditions
        self._connection = connection
        self._trigger = Trigger(self.random)
        self._near: dict[str, None] = {}
        self._what = ""
        """What it concerns, in words; empty before `sentence` is read."""

    # --- when it fires --------------------------------------------------------------------------------

    @property
    def anywhere(self) -> bool:
        """True if it concerns all connections."""
        return self._connection is None

    def asks(self, name: str) -> bool:
        """True if it has a condition of this name."""
        return any(condition.name == name for condition in self._conditions)

    def may_want(self, group: FrameGroup) -> bool:
        """True if it may match a frame group of which only the method has arrived.

        A frame group that no rule may want need not be kept until it is complete.
        """
        return self._matches(group, begun=True)

    def matches(self, group: FrameGroup) -> bool:
        """True if a frame group matches. Near misses are remembered for error texts."""
        return self._matches(group)

    def _matches(self, group: FrameGroup, *, begun: bool = False) -> bool:
        """See `matches`. `begun`: the content has not arrived yet."""
        subject = self.subject
        if group.direction != subject.direction or group.name not in subject.names:
            return False
        if group.protocol.name not in self._protocols:
            said = " or ".join(sorted(self._protocols))
            self._miss(group, f"the connection speaks {group.protocol.name}, not {said}")
            return False
        if subject.confirms and not group.settles:
            return False
        if self._connection is not None and not self._connection.selects(group.port):
            names = self._connection.names(group.port)
            self._miss(group, f"the connection is {names}, not {self._connection.said!r}")
            return False
        if self._conditions and group.method is None:
            return begun and not group.method_complete
        try:
            return self._conditions_hold(group, begun=begun)
        except BaseException as error:
            self.fail(error, group)
            return False

    def _conditions_hold(self, group: FrameGroup, *, begun: bool) -> bool:
        for condition in self._conditions:
            if begun and not (condition.early and group.known_early(condition.name)):
                return True
            if not condition.holds(group):
                if len(self._near) < _MOST_MISSES:
                    self._miss(group, condition.miss(group))
                return False
        return True

    def _miss(self, group: FrameGroup, why: str) -> None:
        if len(self._near) < _MOST_MISSES:
            self._near.setdefault(f"{group}: {why}")

    def fires(self, group: FrameGroup) -> bool:
        """Count a matching frame group; returns whether the rule fires."""
        fires = self._trigger.count(self._hits)
        if fires:
            self._hits += 1
        return fires

    @property
    def calls(self) -> int:
        """How many methods matched, whether or not the rule fired."""
        return self._trigger.calls

    # --- in force -------------------------------------------------------------------------------------

    def fail(self, error: BaseException, group: FrameGroup) -> None:
        """Keep an error that a condition or an action has raised, for `wait` and `verify` to raise.

        Raises:
            KeyboardInterrupt, SystemExit: the error was one of these.
        """
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        self._executor.note(group.port, f"{self} has failed: {error!r}")
        if hasattr(error, "add_note"):  # Since Python 3.11.
            error.add_note(f"raised in a fault rule: {self}\nat: {group}")
        self._fail(error)

    def enforce_heartbeats(self, port: FaultPort) -> None:
        """Apply the heartbeat timeout to a connection if this rule drops the client's heartbeats."""
        subject = self.subject
        if subject.direction == "sent" or HEARTBEAT not in subject.names:
            return
        drops = any(action.drops for action in self.actions)
        if drops and (self._connection is None or self._connection.selects(port)):
            port.enforce_heartbeats()

    def _withdraw(self) -> None:
        self._executor.remove(self)
        self._executor.settle()

    # --- in words -------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """The rule in words."""
        self._what = self._what or self._concerns()
        done = ", then ".join(action.words for action in self.actions) or "count it"
        return f"when {self._what}: {done}{self._trigger.words}"

    def _concerns(self) -> str:
        received = self.subject.direction == "received"
        words = [str(self.subject)]
        asked = [str(condition) for condition in self._conditions]
        if asked:
            words.append("with " + " and ".join(asked))
        if self._connection is not None:
            words.append(f"on connection {self._connection.said!r}")
        words.append("comes" if received else "is to be sent")
        what = " ".join(words)
        if self.part is not None:
            what += f" as far as its {self.part}"
        return what

    def near_misses(self) -> Iterable[str]:
        """What passed and almost matched."""
        calls = self._trigger.calls
        if calls:
            if calls == self._hits:
                return ()
            each = " each time" if self._hits else ""
            return [f"{calls} matched, but the rule was not to fire{each}{self._trigger.words}"]
        return tuple(self._near)
