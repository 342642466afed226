"""`Endpoint`: what `Broker` and `Proxy` have in common: an address, a trace, checks and waits."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from fakeamqp.errors import BrokerError, WaitTimeout, nearest
from fakeamqp.inspect.inspection import MessageInspection
from fakeamqp.runtime import RealClock, ThreadEngine

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState
    from fakeamqp.runtime.clock.stepped import SteppedClock
    from fakeamqp.runtime.connection_driver import Accept
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.runtime.event_loop.engine import LoopClock
    from fakeamqp.trace.checks.checked import Checked
    from fakeamqp.trace.checks.finding import Allow
    from fakeamqp.trace.recorder import Recorder
    from fakeamqp.trace.timeline import Trace

    AnyClock: TypeAlias = RealClock | LoopClock | SteppedClock

Runtime: TypeAlias = Literal["thread", "asyncio"]
_RUNTIMES: tuple[Runtime, ...] = ("thread", "asyncio")

_PACKAGE = os.path.dirname(__file__) + os.sep


class NotIdle(BrokerError, WaitTimeout):
    """The broker did not become idle in time; the text says what keeps it busy."""

    __module__ = "fakeamqp"


class Endpoint(MessageInspection):
    """Where clients connect to. A subclass starts and stops it."""

    _state: BrokerState
    _engine: Engine
    _recorder: Recorder | None
    _address: tuple[str, int] | None

    # --- address --------------------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The address that the broker listens on; of "localhost" it is 127.0.0.1."""
        return self._running_address()[0]

    @property
    def port(self) -> int:
        """The port that the broker listens on."""
        return self._running_address()[1]

    def _running_address(self) -> tuple[str, int]:
        self._state.check_started()
        assert self._address is not None
        return self._address

    # --- waits and checks -----------------------------------------------------------------------------

    def wait_until_idle(self, timeout: float = 5.0) -> None:
        """Wait until the broker has processed all input and sent all output, and no timer is due.

        Raises:
            NotIdle: the broker is still busy after `timeout` real seconds.
        """
        self._state.check_started()
        if not self._engine.wait_until(self._engine.quiet, timeout):
            raise NotIdle(self._reader.read(lambda state: _still_busy(state, timeout)))

    async def wait_until_idle_async(self, timeout: float = 5.0) -> None:
        """`wait_until_idle` for coroutines: it does not block the event loop."""
        self._state.check_started()
        if not await self._engine.wait_until_async(self._engine.quiet, timeout):
            raise NotIdle(self._reader.read(lambda state: _still_busy(state, timeout)))

    @property
    def trace(self) -> Trace:
        """What happened, in order, as an immutable trace.

        Raises:
            BrokerError: the trace is switched off.
        """
        recorder = self._running_recorder()
        with self._engine:
            return recorder.trace()

    def checked(self, *names: str, allow: Allow = (), timeout: float = 5.0) -> Checked:
        """A context in which the checks of the trace hold: those of `expect_no_findings`, from here on.

        >>> with broker.checked() as checked:
        ...     publish_and_consume()
        ...     checked.step()

        The end of the context waits like `expect_no_findings`, unless the test has failed already. `step()`
        checks what has happened since the previous step. It takes as long as the new events need: the checks
        "lost", "duplicates" and "answers" run then, all others at the end. Coroutines use `async with`.

        Args:
            names: the checks to run; without names all of them. See `Trace.check`.
            allow: rules and reasons that are no findings. See `Trace.check`.
            timeout: how long the end waits, in real seconds.

        Raises:
            CheckFailed: by `step()` or at the end: there are findings.
            TraceIncomplete: by `step()` or at the end: the trace has dropped events before they were checked.
            UnknownCheck: there is no check of this name.
            UnknownRule: `allow` names no rule and no reason.
            BrokerError: the trace is switched off.
        """
        return self._checked(names, allow, timeout)

    def expect_no_findings(self, *names: str, allow: Allow = (), timeout: float = 5.0) -> None:
        """Check the trace at the end of a test.

        No confirmed message may be lost, and none delivered twice unless as redelivered; clients may hold no
        message; each request needs one answer; each queue keeps its order; and more: see `Trace.check`. The
        method waits until the broker is idle, and until clients hold no message and no request is open.

        Args:
            names: the checks to run; without names all of them.
            allow: rules, or reasons for the loss of a message, that are no findings. See `Trace.check`.
            timeout: how long to wait, in real seconds.

        Raises:
            CheckFailed: there are findings; the text shows the events that led to each.
            TraceIncomplete: the trace has dropped events.
            UnknownCheck: there is no check of this name.
            UnknownRule: `allow` names no rule and no reason.
            BrokerError: the trace is switched off, or the broker does not become idle in time.
        """
        self._checked(names, allow, timeout, from_start=True).finish()

    async def expect_no_findings_async(self, *names: str, allow: Allow = (), timeout: float = 5.0) -> None:
        """`expect_no_findings` for coroutines: it does not block the event loop."""
        await self._checked(names, allow, timeout, from_start=True).finish_async()

    def _checked(
        self, names: tuple[str, ...], allow: Allow, timeout: float, *, from_start: bool = False
    ) -> Checked:
        from fakeamqp.trace.checks.checked import Checked

        return Checked(self, self._running_recorder(), names, allow, timeout, from_start=from_start)

    def _running_recorder(self) -> Recorder:
        if self._recorder is None:
            raise BrokerError("the trace is off; create the broker with trace=10_000, for example")
        return self._recorder

    @property
    def failures(self) -> tuple[BaseException, ...]:
        """Exceptions caused by bugs of the broker itself. Empty, whatever clients do."""
        return tuple(failure.error for failure in self._engine.failures)


def caller() -> tuple[str, int]:
    """The file and the line that called this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def warn_of_drop(engine: Engine, address: tuple[str, int], file: str, line: int) -> None:
    """Warn that a running broker was dropped, or that the process ends. Clients may still use its engine."""
    if engine.running:
        warnings.warn_explicit(
            f"the broker on port {address[1]}, started in {file}, line {line}, was not stopped: call stop(), "
            "or use `with Broker() as broker`",
            ResourceWarning,
            file,
            line,
        )


def _still_busy(state: BrokerState, timeout: float) -> str:
    from fakeamqp.inspect.hints import wait_report

    unread = [f"{each.name} has not read {each.unsent} bytes" for each in state.connections if each.unsent]
    reason = "; ".join(unread) or "clients keep sending"
    busy = f"the broker is still busy after {timeout:g} s: {reason}"
    return busy + wait_report(state, "wait_until_idle_async")


def in_loop(runtime: str) -> bool:
    """Whether an endpoint runs in an event loop. Raises BrokerError if there is no such runtime."""
    if runtime not in _RUNTIMES:
        near = nearest(str(runtime), _RUNTIMES)
        raise BrokerError(
            f"unknown runtime {runtime!r}; "
            + (f"did you mean {near[0]!r}?" if near else "there are 'thread' and 'asyncio'")
        )
    return runtime == "asyncio"


def engine_of(state: BrokerState, clock: AnyClock, machine: RealClock | LoopClock, accept: Accept) -> Engine:
    """The engine of a broker or a proxy, in a thread or, with the clock of an event loop, in that."""
    if not hasattr(machine, "attach"):
        return ThreadEngine(
            clock,
            state.timers,
            accept,
            transport_timers=state.peer_timers,
            operations=state.operations,
            before_flush=state.memory.settle,
        )
    from fakeamqp.runtime.event_loop.engine import LoopEngine

    return LoopEngine(
        clock,
        state.timers,
        accept,
        transport_clock=cast("LoopClock", machine),
        transport_timers=state.peer_timers,
        operations=state.operations,
        before_flush=state.memory.settle,
    )
