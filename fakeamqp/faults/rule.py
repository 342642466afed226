"""Rules as data, a condition, a trigger and actions; and `Rule`, whose methods add triggers and actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from fakeamqp.faults import actions, closing
from fakeamqp.faults.actions import Action
from fakeamqp.faults.closing import When
from fakeamqp.faults.errors import FaultError, check_count, check_possible, checked
from fakeamqp.faults.frame_group import HEARTBEAT
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.shapers import How

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.faults.executor import FaultExecutor
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.matching import Condition, ConnectionSelector, Subject
    from fakeamqp.faults.port import FaultPort

_MOST_MISSES = 50


class BaseRule(Handle):
    """A rule: which frame groups it concerns, which of them fire it, and the actions that it has then."""

    calls: int
    """How many methods matched, whether or not the rule fired."""

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
        self._subject = subject
        self._part = part
        """"header" if it acts before the body."""
        self._actions: list[Action] = []
        self._random: Random = random or Random(0)
        self._protocols = subject.among
        """The protocols that have the methods and all actions."""
        self._executor = executor
        self._conditions = conditions
        self._connection = connection
        self.calls = 0
        self._limit: int | None = None
        """The largest number of hits."""
        self._only: int | None = None
        """The only call that fires; 1 is the first."""
        self._after = 0
        """The number of first calls that do not fire."""
        self._probability: float | None = None
        self._near: dict[str, None] = {}

    # --- when it fires --------------------------------------------------------------------------------

    @property
    def _anywhere(self) -> bool:
        """True if it concerns all connections."""
        return self._connection is None

    def _asks(self, name: str) -> bool:
        """True if it has a condition of this name."""
        return any(condition.name == name for condition in self._conditions)

    def _may_want(self, group: FrameGroup) -> bool:
        """True if it may match a frame group of which only the method has arrived.

        A frame group that no rule may want need not be kept until it is complete.
        """
        return self._matches(group, begun=True)

    def _matches(self, group: FrameGroup, *, begun: bool = False) -> bool:
        """True if a frame group matches. Near misses are remembered for error texts."""
        subject = self._subject
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
            for condition in self._conditions:
                if begun and not (condition.early and group.known_early(condition.name)):
                    return True
                if not condition.holds(group):
                    if len(self._near) < _MOST_MISSES:
                        self._miss(group, condition.miss(group))
                    return False
        except BaseException as error:
            self._fail(error, group)
            return False
        return True

    def _miss(self, group: FrameGroup, why: str) -> None:
        if len(self._near) < _MOST_MISSES:
            self._near.setdefault(f"{group}: {why}")

    def _fires(self, group: FrameGroup) -> bool:
        """Count a matching frame group; returns whether the rule fires."""
        self.calls += 1
        fires = (
            self.calls > self._after
            and (self._only is None or self.calls == self._only)
            and (self._limit is None or self.hits < self._limit)
            and (self._probability is None or self._random.random() < self._probability)
        )
        self.hits: int = self.hits + fires
        return fires

    # --- in force -------------------------------------------------------------------------------------

    def _fail(self, error: BaseException, group: FrameGroup) -> None:
        """Keep an error that a condition or an action has raised, for `wait` and `verify` to raise.

        Raises:
            KeyboardInterrupt, SystemExit: the error was one of these.
        """
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        self._executor.note(group.port, f"{self} has failed: {error!r}")
        if hasattr(error, "add_note"):  # Since Python 3.11.
            error.add_note(f"raised in a fault rule: {self}\nat: {group}")
        if self.error is None:
            self.error: BaseException | None = error

    def _enforce_heartbeats(self, port: FaultPort) -> None:
        """Apply the heartbeat timeout to a connection if this rule drops the client's heartbeats."""
        subject = self._subject
        if subject.direction == "sent" or HEARTBEAT not in subject.names:
            return
        drops = any(action.drops for action in self._actions)
        if drops and (self._connection is None or self._connection.selects(port)):
            port.enforce_heartbeats()

    def _withdraw(self) -> None:
        self._executor.remove(self)
        self._executor.settle()

    # --- in words -------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """The rule in words."""
        done = ", then ".join(action.words for action in self._actions) or "count it"
        return f"when {self._what}: {done}{self._trigger}"

    @property
    def _trigger(self) -> str:
        """When it fires, such as " (after 3)"; "" if every call fires."""
        words = []
        if self._only is not None:
            words.append(f"only number {self._only}")
        if self._after:
            words.append(f"after {self._after}")
        if self._limit is not None:
            words.append("once at most" if self._limit == 1 else f"{self._limit} times at most")
        if self._probability is not None:
            words.append(f"with probability {self._probability:g}")
        return f" ({', '.join(words)})" if words else ""

    @cached_property
    def _what(self) -> str:
        """What it concerns, in words."""
        words = [str(self._subject)]
        asked = [str(condition) for condition in self._conditions]
        if asked:
            words.append("with " + " and ".join(asked))
        if self._connection is not None:
            words.append(f"on connection {self._connection.said!r}")
        words.append("comes" if self._subject.direction == "received" else "is to be sent")
        if self._part is not None:
            words.append(f"as far as its {self._part}")
        return " ".join(words)

    def near_misses(self) -> Iterable[str]:
        """What passed and almost matched."""
        if not self.calls:
            return tuple(self._near)
        if self.calls == self.hits:
            return ()
        each = " each time" if self.hits else ""
        return [f"{self.calls} matched, but the rule was not to fire{each}{self._trigger}"]


P = ParamSpec("P")
T = TypeVar("T")


ACTIONS: dict[str, type[Action]] = {}
"""By the name of the method of `Rule` that adds it, which has its arguments and its help: the actions."""


def _row(action: type[Action]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a method of `Rule` the row of an action."""

    def enter(method: Callable[P, T]) -> Callable[P, T]:
        ACTIONS[method.__name__] = action
        return checked(method)

    return enter


class Rule(BaseRule):
    """Fires when a matching method passes, and acts on it. Made by `Faults.on`.

    Its methods add triggers and actions: `on("basic.publish").after(3).nack()`. Several actions are applied
    in the order they are added. A rule without an action only counts. If several rules match, the first that
    fires takes the method.
    """

    # --- when it fires --------------------------------------------------------------------------------

    def once(self) -> Self:
        """Fire once at most."""
        return self.times(1)

    @checked
    def times(self, n: int) -> Self:
        """Fire `n` times at most."""
        check_count("times takes", n)
        self._limit = n
        return self

    @checked
    def on_call(self, n: int) -> Self:
        """Fire only when the `n`th matching method passes; 1 is the first."""
        check_count("on_call takes", n)
        self._only = n
        return self

    @checked
    def after(self, n: int) -> Self:
        """Let the first `n` matching methods pass."""
        check_count("after takes", n, least=0)
        self._after = n
        return self

    @checked
    def with_probability(self, p: float) -> Self:
        """Fire with probability `p`, drawn from the broker's seed: the same seed, the same draws."""
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            raise FaultError(f"a probability is between 0 and 1, not {p!r}")
        self._probability = p
        return self

    # --- what it does ---------------------------------------------------------------------------------

    @_row(actions.Nack)
    def nack(self) -> Self:
        """Refuse a publish with basic.nack; or replace a confirm by a nack, though the message is stored."""
        return self._act(actions.Nack())

    @_row(actions.ReturnMessage)
    def return_message(self, code: int = 312, text: str = "NO_ROUTE") -> Self:
        """Return a publish with basic.return, as if it were unroutable, and confirm it."""
        return self._act(actions.ReturnMessage(code, text))

    @_row(actions.Drop)
    def drop(self) -> Self:
        """Drop it: a received method is not executed and gets no answer; a sent one is not sent."""
        return self._act(actions.Drop())

    @_row(actions.Delay)
    def delay(self, seconds: float, jitter: float = 0.0) -> Self:
        """Delay it on the broker's clock.

        Args:
            seconds: how long.
            jitter: up to so many seconds more, drawn from the broker's seed.
        """
        return self._act(actions.Delay(seconds, jitter))

    @_row(actions.HoldBack)
    def hold(self) -> Self:
        """Hold it until `release`."""
        return self._act(actions.HoldBack())

    @_row(actions.Reorder)
    def reorder(self) -> Self:
        """Send a delivery behind the next one of its channel, each with a tag that settles it.

        Delivery tags stay ascending as a client sees them. A delivery without a successor is sent when the
        rule is removed, or when `release` is called.
        """
        return self._act(actions.Reorder())

    @_row(actions.Duplicate)
    def duplicate(self, times: int = 1) -> Self:
        """Pass it on `times` more times; duplicates of deliveries have their own delivery tags."""
        return self._act(actions.Duplicate(times))

    @_row(closing.CloseChannel)
    def close_channel(self, code: int | str = 406, text: str | None = None, when: When = "instead") -> Self:
        """Close its channel; in AMQP 1.0, end its session.

        Args:
            code: any reply code; or a condition of AMQP 1.0 such as "amqp:not-found". There, a reply code
                stands for the condition that comes nearest.
            text: the reply text; by default the name of the code, and that a test asked for it.
            when: "instead" of executing the method; "before" its answer, which is never sent; or "after" it.
        """
        return self._act(closing.CloseChannel(code, text, when))

    @_row(closing.CloseConnection)
    def close_connection(
        self, code: int | str = 320, text: str | None = None, when: When = "instead"
    ) -> Self:
        """Close its connection; the arguments are those of `close_channel`."""
        return self._act(closing.CloseConnection(code, text, when))

    @_row(closing.DetachLink)
    def detach(
        self, condition: str = "amqp:internal-error", text: str | None = None, when: When = "instead"
    ) -> Self:
        """Detach its link of AMQP 1.0; an attach is refused. The rest of its session goes on.

        Args:
            condition: of the error, such as "amqp:not-found".
            text: the description; by default that a test asked for it.
            when: see `close_channel`.
        """
        return self._act(closing.DetachLink(condition, text, when))

    @_row(closing.Disconnect)
    def disconnect(self, how: How = "fin", when: When = "instead") -> Self:
        """End its connection without a close method.

        Args:
            how: "fin" ends the stream in order; "reset" by a TCP reset; "silence" leaves the connection open
                and neither sends nor reads.
            when: see `close_channel`.
        """
        return self._act(closing.Disconnect(how, when))

    @_row(actions.CommandException)
    def exception(
        self, code: int | str = 541, text: str | None = None, field_index: int | None = None
    ) -> Self:
        """Answer a command of AMQP 0-10 with execution.exception instead of executing it.

        The exception ends the session. On connections of other protocols the rule does not fire.

        Args:
            code: the error code or its name, such as 404 or "not-found".
            text: the description; by default the name of the code, and that a test asked for it.
            field_index: the index of the field to blame, from 0.
        """
        return self._act(actions.CommandException(code, text, field_index))

    @_row(closing.RefuseLogin)
    def refuse_login(self, text: str | None = None) -> Self:
        """Refuse the login of a connection.start-ok as for a wrong password."""
        return self._act(closing.RefuseLogin(text))

    @_row(closing.CrashBroker)
    def crash(self, when: When = "before", durable: bool = True) -> Self:
        """Crash the broker and restart it on the same port.

        Args:
            when: see `close_channel`.
            durable: True keeps what survives a crash; False: the broker starts empty.
        """
        check_possible("crash", self._context.impossible)
        return self._act(closing.CrashBroker(when, durable))

    @_row(closing.CutConnection)
    def cut(self, after: int | str = "method", how: How = "fin") -> Self:
        """Send only part of it, then end the connection.

        Args:
            after: the number of bytes to send, or the last frame to send: "method" or "header".
            how: see `disconnect`.
        """
        return self._act(closing.CutConnection(after, how))

    @_row(actions.Replace)
    def replace(self, **changes: Any) -> Self:
        """Replace fields of the method, properties, `body` or `channel`.

        A value that is callable is called with the old value. `properties` is a dict, for a property that has
        the name of a field.
        """
        return self._act(actions.Replace(self._subject, changes))

    @_row(actions.Malform)
    def malform(self, how: str) -> Self:
        """Send it malformed; `fakeamqp.faults.MALFORMATIONS` lists the ways."""
        return self._act(actions.Malform(how))

    @_row(actions.CallFunction)
    def call(self, function: Callable[[FrameGroup], object]) -> Self:
        """Call `function` with it, inside the engine, and pass it on."""
        return self._act(actions.CallFunction(function))

    def _act(self, action: Action) -> Self:
        if self._part is not None and not action.fits_half:
            raise FaultError(
                f"with part={self._part!r} only call(), delay(), hold() and close actions are possible, "
                f"not: {action.words}"
            )
        action.check(self._subject)
        protocols = self._protocols if action.protocols is None else self._protocols & action.protocols
        if not protocols:
            raise FaultError(
                f"no protocol has all actions of this rule: none can also {action.words}; make another rule"
            )
        with self._context:
            self._protocols = protocols
            self._actions.append(action)
            for port in self._executor.ports():
                self._enforce_heartbeats(port)
        return self

    # --- what it holds --------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """How many methods it holds."""
        return len(self._executor.held(self))

    @checked
    def release(self, count: int | None = None, *, reverse: bool = False, multiple: bool = False) -> int:
        """Release the methods that `hold` keeps, oldest first.

        Methods that wait behind a released one on its channel may be held in turn; without a `count` they are
        released as well.

        Args:
            count: how many; all by default.
            reverse: the latest first.
            multiple: combine publisher confirms of one channel into one confirm with `multiple` set, unless
                it would cover publishes that are unconfirmed or confirmed otherwise.

        Returns:
            How many were released.

        Raises:
            FaultError: `count` is not a number; or `multiple` is used without confirms, or with `reverse`.
        """
        if count is not None:
            check_count("release takes", count, least=0)
        if multiple and not self._subject.confirms:
            raise FaultError(
                "multiple=True combines confirms only: on('confirm').hold(), release(multiple=True)"
            )
        if multiple and reverse:
            raise FaultError("a multiple confirm covers lower tags: release(multiple=True) without reverse")
        with self._context:
            return self._executor.release(self, count, reverse=reverse, multiple=multiple)
