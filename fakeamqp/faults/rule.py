"""`Rule`: the handle of a fault rule. Its methods add triggers and actions, and are the rows of `ACTIONS`."""

from __future__ import annotations

from collections.abc import Callable
from inspect import CO_VARKEYWORDS
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, get_args

from fakeamqp.faults.actions.answers import CommandException, Drop, Nack, ReturnMessage
from fakeamqp.faults.actions.changes import CallFunction, Duplicate, Malform, Replace
from fakeamqp.faults.actions.closing import (
    CloseChannel,
    CloseConnection,
    CrashBroker,
    CutConnection,
    Disconnect,
    How,
    RefuseLogin,
    When,
)
from fakeamqp.faults.actions.waiting import Delay, HoldBack, Reorder
from fakeamqp.faults.base_rule import BaseRule
from fakeamqp.faults.errors import FaultError, check_count, checked

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.faults.actions.action import Action
    from fakeamqp.faults.frame_group import FrameGroup

__all__ = ["ACTIONS", "ActionRow", "Rule"]

P = ParamSpec("P")
T = TypeVar("T")

_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "int": ("integer", ()),
    "int | None": ("integer", ()),
    "int | str": ("integer", ()),
    "float": ("number", ()),
    "str | None": ("text", ()),
    "str": ("text", ()),
    "When": ("choice", get_args(When)),
    "How": ("choice", get_args(How)),
}
"""By annotation: the kind of an argument in a form, and its choices."""


class ActionRow(NamedTuple):
    """An action, as forms, chaos and documentation see it.

    Args:
        name: the method of `Rule` that adds it.
        action: its class, which knows the methods that it fits, its label and how chaos draws it.
        method: the method of `Rule`: its arguments, and its docstring with their units.
    """

    name: str
    action: type[Action]
    method: Callable[..., object]

    @property
    def help(self) -> str:
        """What it does, in one line."""
        return (self.method.__doc__ or "").partition("\n")[0]

    @property
    def arguments(self) -> tuple[dict[str, Any], ...]:
        """The arguments that a form can ask for: `name`, `kind`, and `choices` or the proposed `value`."""
        made = []
        for name, annotation in self.method.__annotations__.items():
            if name != "return" and annotation in _KINDS:
                kind, choices = _KINDS[annotation]
                argument: dict[str, Any] = {"name": name, "kind": kind}
                if choices:
                    argument["choices"] = list(choices)
                elif name in self.action.prefilled:
                    argument["value"] = self.action.prefilled[name]
                made.append(argument)
        return tuple(made)


ACTIONS: dict[str, ActionRow] = {}
"""By the name of the method of `Rule`: the actions."""


def _row(action: type[Action]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a method of `Rule` the row of an action."""

    def enter(method: Callable[P, T]) -> Callable[P, T]:
        ACTIONS[method.__name__] = ActionRow(method.__name__, action, method)
        takes_any = bool(method.__code__.co_flags & CO_VARKEYWORDS)  # Such an action checks them itself.
        return method if takes_any else checked(method)

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
        check_count("times", n)
        self._trigger.limit = n
        return self

    @checked
    def on_call(self, n: int) -> Self:
        """Fire only when the `n`th matching method passes; 1 is the first."""
        check_count("on_call", n)
        self._trigger.only = n
        return self

    @checked
    def after(self, n: int) -> Self:
        """Let the first `n` matching methods pass."""
        check_count("after", n, least=0)
        self._trigger.after = n
        return self

    @checked
    def with_probability(self, p: float) -> Self:
        """Fire with probability `p`, drawn from the broker's seed: the same seed, the same draws."""
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            raise FaultError(f"a probability is between 0 and 1, not {p!r}")
        self._trigger.probability = p
        return self

    # --- what it does ---------------------------------------------------------------------------------

    @_row(Nack)
    def nack(self) -> Self:
        """Refuse a publish with basic.nack; or replace a confirm by a nack, though the message is stored."""
        return self._act(Nack())

    @_row(ReturnMessage)
    def return_message(self, code: int = 312, text: str = "NO_ROUTE") -> Self:
        """Return a publish with basic.return, as if it were unroutable, and confirm it."""
        return self._act(ReturnMessage(code, text))

    @_row(Drop)
    def drop(self) -> Self:
        """Drop it: a received method is not executed and gets no answer; a sent one is not sent."""
        return self._act(Drop())

    @_row(Delay)
    def delay(self, seconds: float, jitter: float = 0.0) -> Self:
        """Delay it on the broker's clock.

        Args:
            seconds: how long.
            jitter: up to so many seconds more, drawn from the broker's seed.
        """
        return self._act(Delay(seconds, jitter))

    @_row(HoldBack)
    def hold(self) -> Self:
        """Hold it until `release`."""
        return self._act(HoldBack())

    @_row(Reorder)
    def reorder(self) -> Self:
        """Send a delivery behind the next one of its channel, each with a tag that settles it.

        Delivery tags stay ascending as a client sees them. A delivery without a successor is sent when the
        rule is removed, or when `release` is called.
        """
        return self._act(Reorder())

    @_row(Duplicate)
    def duplicate(self, times: int = 1) -> Self:
        """Pass it on `times` more times; duplicates of deliveries have their own delivery tags."""
        return self._act(Duplicate(times))

    @_row(CloseChannel)
    def close_channel(self, code: int = 406, text: str | None = None, when: When = "instead") -> Self:
        """Close its channel.

        Args:
            code: any reply code.
            text: the reply text; by default the name of the code, and that a test asked for it.
            when: "instead" of executing the method; "before" its answer, which is never sent; or "after" it.
        """
        return self._act(CloseChannel(code, text, when))

    @_row(CloseConnection)
    def close_connection(self, code: int = 320, text: str | None = None, when: When = "instead") -> Self:
        """Close its connection; the arguments are those of `close_channel`."""
        return self._act(CloseConnection(code, text, when))

    @_row(Disconnect)
    def disconnect(self, how: How = "fin", when: When = "instead") -> Self:
        """End its connection without a close method.

        Args:
            how: "fin" ends the stream in order; "reset" by a TCP reset; "silence" leaves the connection open
                and neither sends nor reads.
            when: see `close_channel`.
        """
        return self._act(Disconnect(how, when))

    @_row(CommandException)
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
        return self._act(CommandException(code, text, field_index))

    @_row(RefuseLogin)
    def refuse_login(self, text: str | None = None) -> Self:
        """Refuse the login of a connection.start-ok as for a wrong password."""
        return self._act(RefuseLogin(text))

    @_row(CrashBroker)
    def crash(self, when: When = "before", durable: bool = True) -> Self:
        """Crash the broker and restart it on the same port.

        Args:
            when: see `close_channel`.
            durable: True keeps what survives a crash; False: the broker starts empty.
        """
        return self._act(CrashBroker(when, durable))

    @_row(CutConnection)
    def cut(self, after: int | str = "method", how: How = "fin") -> Self:
        """Send only part of it, then end the connection.

        Args:
            after: the number of bytes to send, or the last frame to send: "method" or "header".
            how: see `disconnect`.
        """
        return self._act(CutConnection(after, how))

    @_row(Replace)
    def replace(self, **changes: Any) -> Self:
        """Replace fields of the method, properties, `body` or `channel`.

        A value that is callable is called with the old value. `properties` is a dict, for a property that has
        the name of a field.
        """
        return self._act(Replace(self.subject, changes))

    @_row(Malform)
    def malform(self, how: str) -> Self:
        """Send it malformed; `fakeamqp.faults.malformed` lists the ways."""
        return self._act(Malform(how))

    @_row(CallFunction)
    def call(self, function: Callable[[FrameGroup], object]) -> Self:
        """Call `function` with it, inside the engine, and pass it on."""
        return self._act(CallFunction(function))

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
            for port in self._executor.ports():
                self.enforce_heartbeats(port)
        return self

    # --- what it holds --------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """How many methods it holds."""
        return len(self._executor.held(self))

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
            check_count("release", count, least=0)
        if multiple and not self.subject.confirms:
            raise FaultError(
                "multiple=True combines confirms only: on('confirm').hold(), release(multiple=True)"
            )
        if multiple and reverse:
            raise FaultError("a multiple confirm covers lower tags: release(multiple=True) without reverse")
        with self._context:
            return self._executor.release(self, count, reverse=reverse, multiple=multiple)
