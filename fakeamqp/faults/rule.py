"""`Rule`: what it concerns, when it fires, and what it does then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any

from fakeamqp.faults import actions
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.frame_group import HEARTBEAT
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.keywords import checked
from fakeamqp.faults.replies import reply_text
from fakeamqp.faults.trigger import Trigger

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.faults.actions import Action, How, When
    from fakeamqp.faults.connection_selector import ConnectionSelector
    from fakeamqp.faults.fault_port import FaultPort
    from fakeamqp.faults.frame_group import FrameGroup
    from fakeamqp.faults.interception import Interception
    from fakeamqp.faults.matching import Condition
    from fakeamqp.faults.subjects import Subject
    from fakeamqp.faults.tap import FaultTap

__all__ = ["Rule"]

_MOST_MISSES = 50


class Rule(Handle):
    """Fires when a matching method passes, and acts on it. Made by `Faults.on`.

    Its methods add triggers and actions: `on("basic.publish").after(3).nack()`. Several actions are applied
    in the order they are added. A rule without an action only counts. If several rules match, the first that
    fires takes the method.
    """

    def __init__(
        self,
        tap: FaultTap,
        subject: Subject,
        conditions: list[Condition],
        connection: ConnectionSelector | None,
        part: str | None,
        random: Random,
    ) -> None:
        super().__init__(tap.context)
        self.subject = subject
        self.part = part
        self.actions: list[Action] = []
        self._protocols = subject.among
        """The protocols that have the methods and all actions."""
        self._tap = tap
        self._conditions = conditions
        self._connection = connection
        self._random = random
        self._trigger = Trigger(random)
        self._held: list[Interception] = []
        self._near: dict[str, None] = {}

    # --- when it fires --------------------------------------------------------------------------------

    def once(self) -> Self:
        """Fire once at most."""
        return self.times(1)

    @checked
    def times(self, n: int) -> Self:
        """Fire `n` times at most."""
        self._trigger.limit = _count(n, "times")
        return self

    @checked
    def on_call(self, n: int) -> Self:
        """Fire only when the `n`th matching method passes; 1 is the first."""
        self._trigger.only = _count(n, "on_call")
        return self

    @checked
    def after(self, n: int) -> Self:
        """Let the first `n` matching methods pass."""
        self._trigger.after = _count(n, "after", least=0)
        return self

    @checked
    def with_probability(self, p: float) -> Self:
        """Fire with probability `p`, drawn from the broker's seed: the same seed, the same draws."""
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            raise FaultError(f"a probability is between 0 and 1, not {p!r}")
        self._trigger.probability = p
        return self

    @property
    def anywhere(self) -> bool:
        """True if it concerns all connections."""
        return self._connection is None

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

    def fail(self, error: BaseException, group: FrameGroup) -> None:
        """Keep an error that a condition or an action has raised, for `wait` and `verify` to raise.

        Raises:
            KeyboardInterrupt, SystemExit: the error was one of these.
        """
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        self._tap.note(group.port, f"{self} has failed: {error!r}")
        if hasattr(error, "add_note"):  # Since Python 3.11.
            error.add_note(f"raised in a fault rule: {self}\nat: {group}")
        self._fail(error)

    def asks(self, name: str) -> bool:
        """True if it has a condition of this name."""
        return any(condition.name == name for condition in self._conditions)

    def fires(self, group: FrameGroup) -> bool:
        """Count a matching frame group; returns whether the rule fires."""
        fires = self._trigger.count(self._hits)
        if fires:
            self._count_hit()
        return fires

    def _miss(self, group: FrameGroup, why: str) -> None:
        if len(self._near) < _MOST_MISSES:
            self._near.setdefault(f"{group}: {why}")

    @property
    def calls(self) -> int:
        """How many methods matched, whether or not the rule fired."""
        return self._trigger.calls

    # --- what it does ---------------------------------------------------------------------------------

    @checked
    def drop(self) -> Self:
        """Drop it: a received method is not executed and gets no answer; a sent one is not sent."""
        return self._act(actions.Drop())

    @checked
    def nack(self) -> Self:
        """Refuse a publish with basic.nack; or replace a confirm by a nack, though the message is stored."""
        return self._act(actions.Nack())

    @checked
    def return_message(self, code: int = 312, text: str = "NO_ROUTE") -> Self:
        """Return a publish with basic.return, as if it were unroutable, and confirm it."""
        return self._act(actions.ReturnMessage(code, text))

    @checked
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

    @checked
    def close_channel(self, code: int = 406, text: str | None = None, when: When = "instead") -> Self:
        """Close its channel.

        Args:
            code: any reply code.
            text: the reply text; by default the name of the code, and that a test asked for it.
            when: "instead" of executing the method; "before" its answer, which is never sent; or "after" it.
        """
        return self._act(actions.CloseChannel(code, reply_text(code, text), when))

    @checked
    def close_connection(self, code: int = 320, text: str | None = None, when: When = "instead") -> Self:
        """Close its connection; the arguments are those of `close_channel`."""
        return self._act(actions.CloseConnection(code, reply_text(code, text), when))

    @checked
    def disconnect(self, how: How = "fin", when: When = "instead") -> Self:
        """End its connection without a close method.

        Args:
            how: "fin" ends the stream in order; "reset" by a TCP reset; "silence" leaves the connection open
                and neither sends nor reads.
            when: see `close_channel`.
        """
        return self._act(actions.Disconnect(how, when))

    @checked
    def cut(self, after: int | str = "method", how: How = "fin") -> Self:
        """Send only part of it, then end the connection.

        Args:
            after: the number of bytes to send, or the last frame to send: "method" or "header".
            how: see `disconnect`.
        """
        return self._act(actions.CutConnection(after, how))

    @checked
    def refuse_login(self, text: str | None = None) -> Self:
        """Refuse the login of a connection.start-ok as for a wrong password."""
        return self._act(actions.RefuseLogin(text))

    @checked
    def crash(self, when: When = "before", durable: bool = True) -> Self:
        """Crash the broker and restart it on the same port.

        Args:
            when: see `close_channel`.
            durable: True keeps what survives a crash; False: the broker starts empty.
        """
        return self._act(actions.CrashBroker(when, durable))

    @checked
    def delay(self, seconds: float, jitter: float = 0.0) -> Self:
        """Delay it on the broker's clock.

        Args:
            seconds: how long.
            jitter: up to so many seconds more, drawn from the broker's seed.
        """
        return self._act(actions.Delay(seconds, jitter, self._random))

    @checked
    def hold(self) -> Self:
        """Hold it until `release`."""
        return self._act(actions.HoldBack(self._held))

    @checked
    def duplicate(self, times: int = 1) -> Self:
        """Pass it on `times` more times; duplicates of deliveries have their own delivery tags."""
        return self._act(actions.Duplicate(_count(times, "duplicate")))

    def replace(self, **changes: Any) -> Self:
        """Replace fields of the method, properties, `body` or `channel`.

        A value that is callable is called with the old value. `properties` is a dict, for a property that has
        the name of a field.
        """
        return self._act(actions.Replace(self.subject, changes))

    @checked
    def malform(self, how: str) -> Self:
        """Send it malformed; `fakeamqp.faults.malformed` lists the ways."""
        return self._act(actions.Malform(how))

    @checked
    def call(self, function: Callable[[FrameGroup], object]) -> Self:
        """Call `function` with it, inside the engine, and pass it on."""
        return self._act(actions.CallFunction(function))

    def _act(self, action: Action) -> Self:
        action.check(self.subject, self.part)
        protocols = self._protocols if action.protocols is None else self._protocols & action.protocols
        if not protocols:
            raise FaultError(
                f"no protocol has all actions of this rule: none can also {action.words}; make another rule"
            )
        with self._context:
            self._protocols = protocols
            self.actions.append(action)
            for port in self._tap.ports():
                self.enforce_heartbeats(port)
        return self

    def enforce_heartbeats(self, port: FaultPort) -> None:
        """Apply the heartbeat timeout to a connection if this rule drops the client's heartbeats."""
        subject = self.subject
        if subject.direction == "sent" or HEARTBEAT not in subject.names:
            return
        drops = any(isinstance(action, actions.Drop) for action in self.actions)
        if drops and (self._connection is None or self._connection.selects(port)):
            port.enforce_heartbeats()

    # --- what it holds --------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """How many methods it holds."""
        return len(self._held)

    @checked
    def release(self, count: int | None = None, *, reverse: bool = False, multiple: bool = False) -> int:
        """Release what `hold` keeps, oldest first.

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
            _count(count, "release", least=0)
        if multiple and not self.subject.confirms:
            raise FaultError(
                "multiple=True combines confirms only: on('confirm').hold(), release(multiple=True)"
            )
        if multiple and reverse:
            raise FaultError("a multiple confirm covers lower tags: release(multiple=True) without reverse")
        with self._context:
            released: set[Interception] = set()
            while True:
                among = [each for each in self._held if each not in released]
                if reverse:
                    among.reverse()
                among = among[: None if count is None else count - len(released)]
                if not among:
                    return len(released)
                released.update(among)
                # In place, because the `HoldBack` action has the same list.
                self._held[:] = [each for each in self._held if each not in released]
                for each in actions.combine_confirms(among) if multiple else among:
                    each.release()

    def forget(self, interception: Interception) -> None:
        """Forget a held interception whose connection is gone."""
        if interception in self._held:
            self._held.remove(interception)

    def _withdraw(self) -> None:
        self._held.clear()
        self._tap.remove(self)
        self._tap.settle()

    # --- in words -------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """The rule in words."""
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
        done = ", then ".join(action.words for action in self.actions) or "count it"
        return f"when {what}: {done}{self._trigger.words}"

    def near_misses(self) -> Iterable[str]:
        """What passed and almost matched."""
        calls = self._trigger.calls
        if calls:
            if calls == self._hits:
                return ()
            each = " each time" if self._hits else ""
            return [f"{calls} matched, but the rule was not to fire{each}{self._trigger.words}"]
        return tuple(self._near)


def _count(n: int, name: str, least: int = 1) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < least:
        raise FaultError(f"{name} takes a whole number from {least} on, not {n!r}")
    return n
