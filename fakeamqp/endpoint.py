"""`Endpoint`: what `Broker` and `Proxy` have in common: life cycle, address, faults, trace, checks, waits."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast
from weakref import finalize

from fakeamqp.blocking import BlockingMethod, blocking, blocking_start
from fakeamqp.connection import bracketed
from fakeamqp.errors import BrokerError, WaitTimeout, nearest
from fakeamqp.inspect.inspection import MessageInspection, StateReader
from fakeamqp.runtime import RealClock, ThreadEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self

    from fakeamqp.admin import ProxyAdmin
    from fakeamqp.fault_context import Owner
    from fakeamqp.faults import Faults
    from fakeamqp.management.companion import ManagementCompanion
    from fakeamqp.model.state import BrokerState, ClientConnection
    from fakeamqp.model.tap import Tap
    from fakeamqp.runtime.clock.stepped import SteppedClock
    from fakeamqp.runtime.connection_driver import Accept
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.runtime.event_loop.engine import LoopClock, LoopEngine
    from fakeamqp.runtime.listener import Listener
    from fakeamqp.runtime.tls import ServerTLS
    from fakeamqp.trace.checks.checked import Checked
    from fakeamqp.trace.checks.finding import Allow
    from fakeamqp.trace.recorder import Recorder
    from fakeamqp.trace.timeline import Trace

    AnyClock: TypeAlias = RealClock | LoopClock | SteppedClock

Runtime: TypeAlias = Literal["thread", "asyncio"]
_RUNTIMES: tuple[Runtime, ...] = ("thread", "asyncio")

_PACKAGE = os.path.dirname(__file__) + os.sep
_CONNECTION_FORCED = 320


class NotIdle(BrokerError, WaitTimeout):
    """The broker did not become idle in time; the text says what keeps it busy."""

    __module__ = "fakeamqp.errors"


class NoFindings(BlockingMethod[..., None]):
    """`expect_no_findings` of a broker or a proxy: a call checks all so far, `during` a part of a test."""

    if TYPE_CHECKING:

        def __call__(self, *names: str, allow: Allow = (), timeout: float = 5.0) -> None:
            """Check the trace at the end of a test."""

        async def aio(self, *names: str, allow: Allow = (), timeout: float = 5.0) -> None:
            """Check the trace at the end of a test, for coroutines."""

    def during(self, *names: str, allow: Allow = (), timeout: float = 5.0) -> Checked:
        """A context in which the checks of the trace hold: from here on.

        >>> with broker.expect_no_findings.during() as checked:
        ...     publish_and_consume()
        ...     checked.step()

        The end of the context waits like `expect_no_findings`, unless the test has failed already. `step()`
        checks what has happened since the previous step. It takes as long as the new events need: the checks
        "lost", "duplicates" and "answers" run then, all others at the end. Coroutines use `async with`.

        Args:
            names: the checks to run; without names all of them. See `Trace.findings`.
            allow: rules and reasons that are no findings. See `Trace.findings`.
            timeout: how long the end waits, in real seconds.

        Raises:
            CheckFailed: by `step()` or at the end: there are findings.
            TraceIncomplete: by `step()` or at the end: the trace has dropped events before they were checked.
            UnknownCheck: there is no check of this name.
            UnknownRule: `allow` names no rule and no reason.
            BrokerError: the trace is switched off.
        """
        checked: Checked = self.__self__._checked(names, allow, timeout)
        return checked


if TYPE_CHECKING:

    class _blocking_check:
        def __init__(self, method: Callable[..., Any]) -> None: ...

        def coroutine(self, function: Callable[..., Any]) -> Callable[..., Any]: ...

        def __get__(self, instance: object, owner: type | None = None) -> NoFindings: ...

else:

    class _blocking_check(blocking):
        bound = NoFindings


class Endpoint(MessageInspection):
    """Where clients connect to. A subclass makes `_state`, then calls `_compose`."""

    _kind = "broker"
    """What it is, in texts."""
    _shutdown: str
    """Why a stop and a reset close connections."""
    _path = "/%2F"
    """The path of `url`."""
    _impossible: ClassVar[Mapping[str, str]] = {}
    """Why it cannot do what a broker can, by name."""
    _state: BrokerState
    _engine: Engine
    _recorder: Recorder | None
    _observer: Tap | None
    """The tap without faults: the recorder, or what counts in front of it."""

    def __init__(self, host: str, port: int, tls: bool | ServerTLS, runtime: str) -> None:
        self._in_loop = in_loop(runtime)
        self._machine: RealClock | LoopClock = RealClock()
        if self._in_loop:
            from fakeamqp.runtime.event_loop.engine import LoopClock

            self._machine = LoopClock()
        self._host = host
        self._asked_port = port
        self._tls_wanted = tls
        self._tls: ServerTLS | None = None
        self._faults: Faults | None = None
        self._management: ManagementCompanion | None = None
        self._listeners: tuple[Listener, ...] = ()
        self._address: tuple[str, int] | None = None
        """The address of the latest start."""
        self._in_transition = False
        """Whether a start or a stop goes on, or was interrupted."""
        self._dropped: finalize[..., Any] = finalize(self, bool)
        self._dropped.detach()

    def _compose(self, clock: AnyClock, accept: Accept, recorder: Recorder | None) -> None:
        state = self._state
        state.stage = "not started"
        state.tap = state.memory.trace = self._recorder = self._observer = recorder
        state.latest_events = None if recorder is None else recorder.timeline
        self._engine = _engine_of(state, clock, self._machine, accept)
        self._reader = StateReader(self._engine, state)

    # --- life cycle -----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether clients can connect."""
        return self._engine.running

    @blocking_start
    def start(self) -> Self:
        """Start it; clients can connect when this returns. Does nothing while it runs.

        A start after `stop` uses the same port, also if 0 was asked for. A broker keeps its durable state.

        Raises:
            PortInUse: another socket uses the port.
            TLSUnavailable: the package that TLS needs is not installed.
            BrokerError: it runs in an event loop.
            OSError: the recording of a proxy cannot be written.
        """
        if self._in_loop:
            raise BrokerError(
                f"a {self._kind} with runtime='asyncio' starts in its event loop: use `async with "
                f"{self._kind}:`, or `await {self._kind}.start.aio()`"
            )
        engine = cast("ThreadEngine", self._engine)
        with engine.one_by_one():
            if self._runs():
                return self
            port = self._prepare_start()
            try:
                engine.start()
                self._listeners = engine.listen_on(self._host, port, tls=self._tls)
                if self._management is not None:
                    self._management.start(self._host)
            except BaseException:
                self._stop_engine()
                raise
            self._started()
        return self

    @start.coroutine
    async def _start_coroutine(self) -> Self:
        """`start` for coroutines. With `runtime="asyncio"` it runs in the event loop of the caller.

        Raises:
            PortInUse: another socket uses the port.
            TLSUnavailable: the package that TLS needs is not installed.
        """
        if not self._in_loop:
            return self.start()
        if self._runs():
            return self
        port = self._prepare_start()
        engine = cast("LoopEngine", self._engine)
        try:
            engine.start()
            if self._recorder is not None and self._address is None:
                self._recorder.set_off()  # It may have been made before the loop of a simulation.
            self._listeners = await engine.listen_on(self._host, port, tls=self._tls)
        except BaseException:
            self._stop_engine()
            raise
        self._started()
        return self

    def _runs(self) -> bool:
        """Whether it runs. What an interrupted start or stop has left is stopped."""
        if self._in_transition:
            self.stop()
            return False
        return self._engine.running

    def _prepare_start(self) -> int:
        """Get what the start needs; returns the port to listen on, 0 for any."""
        self._in_transition = True
        if self._tls_wanted and self._tls is None:
            from fakeamqp.runtime.tls import ServerTLS

            # A temporary one lasts as long as this object, so that clients can reconnect after a restart.
            given = self._tls_wanted
            self._tls = given if isinstance(given, ServerTLS) else ServerTLS.throwaway()
        return self._asked_port or (self._address[1] if self._address else 0)

    def _started(self) -> None:
        self._address = self._listeners[0].address
        self._dropped.detach()
        self._dropped = finalize(self, _warn_of_drop, self._engine, self._address, *_caller())
        self._state.stage = "running"
        self._in_transition = False

    @blocking
    def stop(self) -> None:
        """Close all connections with a handshake, then close every socket and end every thread. Idempotent.

        Messages and history can still be inspected, and so can the queues of a broker.
        """
        with self._engine.one_by_one():
            self._in_transition = True
            try:
                if self._management is not None:
                    self._management.stop()
            finally:
                try:
                    if self._engine.running:
                        self._close_all()
                        self._state.stage = "stopped"
                finally:
                    try:
                        self._stop_engine()
                    finally:
                        self._dropped.detach()
                        self._listeners = ()
                        if self._tls is not None and self._tls is not self._tls_wanted:
                            self._tls.close()
            # On the loop's own thread, the engine stops when the turn ends.
            self._in_transition = self._engine.running

    def _stop_engine(self) -> None:
        self._engine.stop()

    @stop.coroutine
    async def _stop_coroutine(self) -> None:
        """`stop` for coroutines. In an event loop, the loop has closed all streams afterwards."""
        self.stop()
        await self._engine.stopped()

    def reset(self) -> None:
        """Close all connections, and forget messages, trace and faults."""
        self._reset("the last reset")

    def _reset(self, name: str) -> None:
        """`reset`; errors about what it has removed call it by this name."""
        with self._engine:
            if self._faults is not None:
                self._faults.clear()
            if self._engine.running:
                self._close_all()
                self._engine.disconnect_all()
            self._state.clear(name)
            self._state.populate()
            if self._engine.stepped is not None:
                self._engine.stepped.reset()
            self._populate()
            if self._recorder is not None:
                self._recorder.clear()
            if self._management is not None:
                self._management.cleared()

    def _populate(self) -> None:
        """Add what the initial state has."""

    def _close_all(self) -> None:
        with self._engine:
            self._close_forced(lambda _: True, self._shutdown)

    def _close_forced(self, closes: Callable[[ClientConnection], bool], why: str) -> None:
        for connection in list(self._state.connections):
            if closes(connection):
                connection.close_by_operator(_CONNECTION_FORCED, f"CONNECTION_FORCED - {why}")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return await self.start.aio()

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        await self.stop.aio()

    # --- address --------------------------------------------------------------------------------------

    @property
    def host(self) -> str:
        """The address that it listens on; of "localhost" it is 127.0.0.1."""
        return self._running_address()[0]

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._running_address()[1]

    def _running_address(self) -> tuple[str, int]:
        self._state.check_started()
        assert self._address is not None
        return self._address

    def _url_with(self, login: str) -> str:
        host, port = self._running_address()
        scheme = "amqps" if self._tls_wanted else "amqp"
        return f"{scheme}://{login}{bracketed(host)}:{port}{self._path}"

    @property
    def tls(self) -> ServerTLS:
        """Certificates: `client_context` for clients, `ca_file`, and `client_certificate(name)` for EXTERNAL.

        Raises:
            BrokerError: clients do not use TLS, or it has not been started.
        """
        if not self._tls_wanted:
            raise BrokerError(
                f"this {self._kind} does not speak TLS; make it with {type(self).__name__}(tls=True)"
            )
        self._state.check_started()
        assert self._tls is not None
        return self._tls

    # --- administration -------------------------------------------------------------------------------

    @property
    def admin(self) -> ProxyAdmin:
        """The URLs of its HTTP interfaces, and what it takes of memory."""
        from fakeamqp.admin import ProxyAdmin

        return ProxyAdmin(self)

    # --- faults ---------------------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        """Faults to inject: rules about methods, the network, alarms."""
        if self._faults is None:
            from fakeamqp.fault_context import FaultContext
            from fakeamqp.faults import Faults

            owner = cast("Owner", self)  # Nothing that is impossible is asked of it.
            self._faults = Faults(
                FaultContext(
                    owner, self._state, self._engine, self._recorder, self._observer, self._impossible
                )
            )
        return self._faults

    # --- HTTP -----------------------------------------------------------------------------------------

    def _accompany(
        self,
        *,
        control: bool,
        control_port: int | None,
        hosts: Iterable[str] = (),
        management: bool = False,
        management_port: int | None = None,
    ) -> ManagementCompanion | None:
        """The HTTP server that the arguments ask for; None if they ask for none."""
        api = management or management_port is not None
        if not (api or control or control_port is not None):
            return None
        if self._in_loop:
            raise BrokerError(
                "HTTP is served on a thread of its own, so it needs a broker with runtime='thread'"
            )
        if control_port and management_port and control_port != management_port:
            raise BrokerError(
                f"control_port={control_port} and management_port={management_port}: the control interface "
                "and the HTTP API share one port; give one of them"
            )
        # By its name: the broker imports no outer package.
        companion = import_module("fakeamqp.management.companion").ManagementCompanion
        made: ManagementCompanion = companion(
            self, port=control_port or management_port or 0, hosts=hosts, api=api
        )
        return made

    def _http_url(self) -> str:
        """The URL of the HTTP server, as a client of this machine writes it."""
        if self._management is None:
            name = type(self).__name__
            raise BrokerError(f"there is no control interface; create it with {name}(control=True)")
        self._state.check_started()
        assert self._management.address is not None
        host, port = self._management.address
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"http://{bracketed(host)}:{port}"

    # --- waits and checks -----------------------------------------------------------------------------

    @blocking
    def wait_until_idle(self, timeout: float = 5.0) -> None:
        """Wait until the broker has processed all input and sent all output, and no timer is due.

        Raises:
            NotIdle: the broker is still busy after `timeout` real seconds.
        """
        self._state.check_started()
        if not self._engine.wait_until(self._engine.quiet, timeout):
            raise NotIdle(self._reader.read(lambda state: _still_busy(state, timeout)))

    @wait_until_idle.coroutine
    async def _wait_until_idle_coroutine(self, timeout: float = 5.0) -> None:
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

    @_blocking_check
    def expect_no_findings(self, *names: str, allow: Allow = (), timeout: float = 5.0) -> None:
        """Check the trace at the end of a test.

        No confirmed message may be lost, and none delivered twice unless as redelivered; clients may hold no
        message; each request needs one answer; each queue keeps its order; and more: see
        `Trace.findings`. The method waits until the broker is idle, and until clients hold no message and no
        request is open.

        Args:
            names: the checks to run; without names all of them.
            allow: rules, or reasons for the loss of a message, that are no findings. See `Trace.findings`.
            timeout: how long to wait, in real seconds.

        Raises:
            CheckFailed: there are findings; the text shows the events that led to each.
            TraceIncomplete: the trace has dropped events.
            UnknownCheck: there is no check of this name.
            UnknownRule: `allow` names no rule and no reason.
            BrokerError: the trace is switched off, or the broker does not become idle in time.
        """
        self._checked(names, allow, timeout, from_start=True).finish()

    @expect_no_findings.coroutine
    async def _expect_no_findings_coroutine(
        self, *names: str, allow: Allow = (), timeout: float = 5.0
    ) -> None:
        await self._checked(names, allow, timeout, from_start=True).finish.aio()

    def _checked(
        self, names: tuple[str, ...], allow: Allow, timeout: float, *, from_start: bool = False
    ) -> Checked:
        from fakeamqp.trace.checks.checked import Checked

        return Checked(self, self._running_recorder(), names, allow, timeout, from_start=from_start)

    def _running_recorder(self) -> Recorder:
        if self._recorder is None:
            raise BrokerError("the trace is off; create the broker with trace=10_000, for example")
        return self._recorder


def _caller() -> tuple[str, int]:
    """The file and the line that called this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def _warn_of_drop(engine: Engine, address: tuple[str, int], file: str, line: int) -> None:
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
    return busy + wait_report(state, "wait_until_idle.aio")


def in_loop(runtime: str) -> bool:
    """Whether an endpoint runs in an event loop. Raises BrokerError if there is no such runtime."""
    if runtime not in _RUNTIMES:
        near = nearest(str(runtime), _RUNTIMES)
        raise BrokerError(
            f"unknown runtime {runtime!r}; "
            + (f"did you mean {near[0]!r}?" if near else "there are 'thread' and 'asyncio'")
        )
    return runtime == "asyncio"


def _engine_of(state: BrokerState, clock: AnyClock, machine: RealClock | LoopClock, accept: Accept) -> Engine:
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
