"""A rule: what it is about, when it fires, and what it does then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any

from fakeamqp.faults import actions
from fakeamqp.faults.errors import FaultError
from fakeamqp.faults.handle import Handle
from fakeamqp.faults.keywords import checked
from fakeamqp.faults.replies import reply_text
from fakeamqp.faults.units import HEARTBEAT

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.faults.actions import Action, How, When
    from fakeamqp.faults.flight import Flight
    from fakeamqp.faults.line import FaultPort
    from fakeamqp.faults.matching import Condition
    from fakeamqp.faults.subjects import Subject
    from fakeamqp.faults.tap import FaultTap
    from fakeamqp.faults.units import Unit

__all__ = ["Rule"]

_MOST_MISSES = 50


class Rule(Handle):
    """Fires when a method of a certain kind passes, and does something to it. Made by `Faults.on`.

    What it does is said by calling one method after another: `on("basic.publish").after(3).nack()`. Several
    actions are done in the order they are named. A rule without an action only counts. Where several rules
    fit, the first that fires has the method to itself.
    """

    def __init__(
        self,
        tap: FaultTap,
        subject: Subject,
        wanted: list[Condition],
        connection: Connection | None,
        part: str | None,
        random: Random,
    ) -> None:
        super().__init__(tap.host)
        self.subject = subject
        self.part = part
        self.actions: list[Action] = []
        self._protocols = subject.among
        """In which it can do what it does."""
        self._tap = tap
        self._wanted = wanted
        self._connection = connection
        self._random = random
        self._calls = 0
        self._limit: int | None = None
        self._only: int | None = None
        self._after = 0
        self._probability: float | None = None
        self._held: list[Flight] = []
        self._near: dict[str, None] = {}

    # --- when it fires --------------------------------------------------------------------------------

    def once(self) -> Self:
        """Fire once at most."""
        return self.times(1)

    @checked
    def times(self, n: int) -> Self:
        """Fire `n` times at most."""
        self._limit = _count(n, "times")
        return self

    @checked
    def on_call(self, n: int) -> Self:
        """Fire only when the `n`th method that fits passes; 1 is the first."""
        self._only = _count(n, "on_call")
        return self

    @checked
    def after(self, n: int) -> Self:
        """Let the first `n` methods that fit pass."""
        self._after = _count(n, "after", least=0)
        return self

    @checked
    def with_probability(self, p: float) -> Self:
        """Fire with probability `p`, drawn from the broker's seed: the same seed, the same draws."""
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            raise FaultError(f"a probability is between 0 and 1, not {p!r}")
        self._probability = p
        return self

    @property
    def anywhere(self) -> bool:
        """Whether it is about all connections."""
        return self._connection is None

    def may_want(self, unit: Unit) -> bool:
        """Whether the rule might be about this one, of which only the method has come.

        What it is not about for certain need not be kept until it is whole.
        """
        return self._is_about(unit, begun=True)

    def looks_at(self, unit: Unit) -> bool:
        """Whether the rule is about this one; what almost fits is remembered for those who wonder."""
        return self._is_about(unit)

    def _is_about(self, unit: Unit, *, begun: bool = False) -> bool:
        """See `looks_at`. Of one that has only `begun`, the content is still to come."""
        subject = self.subject
        if unit.direction != subject.direction or unit.name not in subject.names:
            return False
        if unit.protocol.name not in self._protocols:
            said = " or ".join(sorted(self._protocols))
            self._miss(unit, f"the connection speaks {unit.protocol.name}, not {said}")
            return False
        if subject.confirms and not unit.settles:
            return False
        if self._connection is not None and not self._connection.is_line(unit.line):
            self._miss(
                unit, f"the connection is {self._connection.called(unit.line)}, not {self._connection.said!r}"
            )
            return False
        if self._wanted and unit.method is None:
            return begun and not unit.told
        try:
            for condition in self._wanted:
                if begun and not (condition.early and unit.tells_early(condition.name)):
                    return True
                if not condition.holds(unit):
                    if len(self._near) < _MOST_MISSES:
                        self._miss(unit, condition.miss(unit))
                    return False
        except BaseException as error:
            self.fail(error, unit)
            return False
        return True

    def fail(self, error: BaseException, unit: Unit) -> None:
        """A condition or an action has failed at this one, which nobody here can do anything about.

        Raises:
            KeyboardInterrupt, SystemExit: it was none of the rule's.
        """
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise error
        self._tap.note(unit.line, f"{self} has failed: {error!r}")
        if hasattr(error, "add_note"):  # since Python 3.11
            error.add_note(f"raised in a fault rule: {self}\nat: {unit}")
        self._fail(error)

    def asks(self, name: str) -> bool:
        """Whether it has a condition of this name."""
        return any(condition.name == name for condition in self._wanted)

    def fires(self, unit: Unit) -> bool:
        """One that fits has come: whether something is done to it."""
        self._calls += 1
        due = (
            self._calls > self._after
            and (self._only is None or self._calls == self._only)
            and (self._limit is None or self._hits < self._limit)
            and (self._probability is None or self._random.random() < self._probability)
        )
        if due:
            self._count_hit()
        return due

    def _miss(self, unit: Unit, why: str) -> None:
        if len(self._near) < _MOST_MISSES:
            self._near.setdefault(f"{unit}: {why}")

    @property
    def calls(self) -> int:
        """How many methods fitted, whether or not the rule fired."""
        return self._calls

    # --- what it does ---------------------------------------------------------------------------------

    @checked
    def drop(self) -> Self:
        """It is lost: a received one in the broker, without an answer; a sent one on its way."""
        return self._act(actions.Drop())

    @checked
    def nack(self) -> Self:
        """A publish is lost and answered with basic.nack; of a confirm: nack, though the message is there."""
        return self._act(actions.Nack())

    @checked
    def return_message(self, code: int = 312, text: str = "NO_ROUTE") -> Self:
        """A publish comes back with basic.return, as if no queue were there, and is confirmed."""
        return self._act(actions.Return(code, text))

    @checked
    def exception(
        self, code: int | str = 541, text: str | None = None, field_index: int | None = None
    ) -> Self:
        """Of a command of AMQP 0-10: it is not carried out, and answered with execution.exception.

        That ends its session. On connections of other protocols the rule does not fire.

        Args:
            code: the error code or its name, such as 404 or "not-found".
            text: the description; by default the name of the code, and that it was a fault.
            field_index: which field of the command is to blame, from 0.
        """
        return self._act(actions.Fail(code, text, field_index))

    @checked
    def close_channel(self, code: int = 406, text: str | None = None, when: When = "instead") -> Self:
        """Close its channel.

        Args:
            code: the reply code, any at all.
            text: the reply text; by default the name of the code, and that it was a fault.
            when: "instead" of carrying it out; "before" its answer, which never comes; or "after" it.
        """
        return self._act(actions.CloseChannel(code, reply_text(code, text), when))

    @checked
    def close_connection(self, code: int = 320, text: str | None = None, when: When = "instead") -> Self:
        """Close its connection; the arguments are those of `close_channel`."""
        return self._act(actions.CloseConnection(code, reply_text(code, text), when))

    @checked
    def disconnect(self, how: How = "fin", when: When = "instead") -> Self:
        """End its connection without a word.

        Args:
            how: "fin", an orderly end of the stream; "reset", as if the machine had been switched off and
                on; "silence": nothing is said any more, and nothing heard.
            when: see `close_channel`.
        """
        return self._act(actions.Disconnect(how, when))

    @checked
    def cut(self, after: int | str = "method", how: How = "fin") -> Self:
        """Send only part of it, then end the connection.

        Args:
            after: so many bytes, or the frame that is sent last: "method" or "header".
            how: see `disconnect`.
        """
        return self._act(actions.Cut(after, how))

    @checked
    def refuse_login(self, text: str | None = None) -> Self:
        """Of connection.start-ok: refuse the client as one whose password is wrong."""
        return self._act(actions.RefuseLogin(text))

    @checked
    def crash(self, when: When = "before", durable: bool = True) -> Self:
        """The broker crashes, and is there again on the same port.

        Args:
            when: see `close_channel`.
            durable: what would survive a crash does; False: it comes back as it was made.
        """
        return self._act(actions.Crash(when, durable))

    @checked
    def delay(self, seconds: float, jitter: float = 0.0) -> Self:
        """Let it wait, on the broker's clock.

        Args:
            seconds: how long.
            jitter: up to so many seconds more, drawn from the broker's seed.
        """
        return self._act(actions.Delay(seconds, jitter, self._random))

    @checked
    def hold(self) -> Self:
        """Let it wait until `release`."""
        return self._act(actions.Hold(self._held))

    @checked
    def duplicate(self, times: int = 1) -> Self:
        """Let it pass once more, or `times` times; copies of a delivery have delivery tags of their own."""
        return self._act(actions.Duplicate(_count(times, "duplicate")))

    def replace(self, **changes: Any) -> Self:
        """Change it: fields of the method, properties, `body` or `channel`.

        A value that can be called is given the old one. `properties` is a dict, for where a property and a
        field have one name.
        """
        return self._act(actions.Replace(self.subject, changes))

    @checked
    def malform(self, how: str) -> Self:
        """Send it malformed; see `fakeamqp.faults.malformed` for what there is in each protocol."""
        return self._act(actions.Malform(how))

    @checked
    def call(self, function: Callable[[Unit], object]) -> Self:
        """Call `function` with it, inside the engine, and let it pass."""
        return self._act(actions.Call(function))

    def _act(self, action: Action) -> Self:
        action.check(self.subject, self.part)
        protocols = self._protocols if action.protocols is None else self._protocols & action.protocols
        if not protocols:
            raise FaultError(f"there is no protocol in which it is possible to {action.words}, as well")
        with self._stage:
            self._protocols = protocols
            self.actions.append(action)
            for line in self._tap.lines():
                self.hold_to_heartbeats(line)
        return self

    def hold_to_heartbeats(self, line: FaultPort) -> None:
        """Where heartbeats of the client are dropped its silence has to count, whatever its clock."""
        subject = self.subject
        if subject.direction == "sent" or HEARTBEAT not in subject.names:
            return
        drops = any(isinstance(action, actions.Drop) for action in self.actions)
        if drops and (self._connection is None or self._connection.is_line(line)):
            line.hold_to_heartbeats()

    # --- what it holds --------------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """How many it holds."""
        return len(self._held)

    @checked
    def release(self, count: int | None = None, *, reverse: bool = False, multiple: bool = False) -> int:
        """Let go of what `hold` keeps, oldest first.

        Where one is let go that others on its channel wait behind, these are dealt with in turn: without
        a `count` they are let go as well.

        Args:
            count: how many; all when left out.
            reverse: the latest first.
            multiple: put publisher confirms of one channel together, with `multiple` set, where nothing else
                that is still to be confirmed would be covered.

        Returns:
            How many there were.

        Raises:
            FaultError: `count` is no number, or only confirms can be put together, and only in their order.
        """
        if count is not None:
            _count(count, "release", least=0)
        if multiple and not self.subject.confirms:
            raise FaultError(
                "only confirms can be put together: on('confirm').hold(), release(multiple=True)"
            )
        if multiple and reverse:
            raise FaultError("a confirm that is multiple covers those before it: release them in their order")
        with self._stage:
            released: set[Flight] = set()
            while True:
                among = [flight for flight in self._held if flight not in released]
                if reverse:
                    among.reverse()
                among = among[: None if count is None else count - len(released)]
                if not among:
                    return len(released)
                released.update(among)
                # In place: the action that holds has the same list.
                self._held[:] = [flight for flight in self._held if flight not in released]
                for flight in actions.put_together(among) if multiple else among:
                    flight.resume()

    def forget(self, flight: Flight) -> None:
        """The connection of one that waits is gone."""
        if flight in self._held:
            self._held.remove(flight)

    def _withdraw(self) -> None:
        self._held.clear()
        self._tap.remove(self)
        self._tap.settle()

    # --- what it says ---------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """The rule in words."""
        received = self.subject.direction == "received"
        words = [str(self.subject)]
        asked = [str(condition) for condition in self._wanted]
        if asked:
            words.append("with " + " and ".join(asked))
        if self._connection is not None:
            words.append(f"on connection {self._connection.said!r}")
        words.append("comes" if received else "is to be sent")
        what = " ".join(words)
        if self.part is not None:
            what += f" as far as its {self.part}"
        done = ", then ".join(action.words for action in self.actions) or "count it"
        return f"when {what}: {done}{self._times_in_words()}"

    def _times_in_words(self) -> str:
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

    def near_misses(self) -> Iterable[str]:
        """What passed and almost fitted."""
        if self._calls:
            if self._calls == self._hits:
                return ()
            each = " each time" if self._hits else ""
            return [f"{self._calls} fitted, but the rule was not to fire{each}{self._times_in_words()}"]
        return tuple(self._near)


class Connection:
    """Which connections a rule is about.

    Args:
        said: a connection's name, the short one of the trace, the one the client gave itself, or a handle.
        alias: says the short name of a connection.
    """

    def __init__(self, said: Any, alias: Callable[[str], str | None]) -> None:
        self.said = said if isinstance(said, str) else getattr(said, "name", said)
        if not isinstance(self.said, str) or not self.said:
            raise FaultError(f"a connection is named by a str, or is one of broker.connections, not {said!r}")
        self._alias = alias

    def called(self, line: Any) -> str:
        """All that a connection is called."""
        others = [repr(name) for name in (line.client_name, self._alias(line.name)) if name]
        return repr(line.name) + (f" ({', '.join(others)})" if others else "")

    def is_line(self, line: Any) -> bool:
        """Whether this is the one."""
        return self.said in (line.name, line.client_name) or self.said == self._alias(line.name)


def _count(n: int, name: str, least: int = 1) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < least:
        raise FaultError(f"{name} takes a whole number from {least} on, not {n!r}")
    return n
