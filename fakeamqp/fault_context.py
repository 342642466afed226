"""What faults need of a broker, handed to them by `Broker`. Faults import neither broker nor model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.inspect.hints import span, wait_report
from fakeamqp.model.exchanges import EXCHANGE_TYPES
from fakeamqp.model.state import Redirect

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.faults.port import BrokerContext
    from fakeamqp.inspect import QueueInspector
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.tap import Tap
    from fakeamqp.model.timers import Timer
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.trace import Recorder

__all__ = ["FaultContext"]


class Owner(Protocol):
    """The parts of `Broker` that faults use."""

    def restart(self, *, crash: bool, durable: bool) -> None:
        """Restart on the same port."""

    def queue(self, name: str, virtual_host: str) -> QueueInspector:
        """The inspector of one queue."""


class FaultContext:
    """Implements `faults.port.BrokerContext` for a running broker; the methods are documented there.

    Args:
        owner: the broker.
        state: its model.
        engine: what runs it.
        recorder: the trace's recorder, or None without a trace.
        observer: the tap of the broker without faults: the recorder, or what counts in front of it; or None.
    """

    exchange_types = EXCHANGE_TYPES

    def __init__(
        self,
        owner: Owner,
        state: BrokerState,
        engine: Engine,
        recorder: Recorder | None,
        observer: Tap | None,
    ) -> None:
        self._owner = owner
        self._state = state
        self._engine = engine
        self._recorder = recorder
        self._observer = observer

    @property
    def seed(self) -> int | str | None:
        """The broker's seed; without one, that of the simulation."""
        seed = self._state.seed
        return self._engine.seed if seed is None else seed

    @property
    def simulation_seed(self) -> int | str | None:
        """The seed of the simulation that the broker runs in, or None."""
        return self._engine.seed

    def __enter__(self) -> Self:
        self._engine.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._engine.__exit__(*error)

    def now(self) -> float:
        """The current instant of the broker's clock, in seconds."""
        return self._state.clock.now()

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Timer:
        """Set a timer on the broker's clock."""
        return self._state.timers.call_at(due, callback, label)

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool:
        """Wait at most `timeout` real seconds; returns whether the predicate held."""
        return self._engine.wait_until(predicate, timeout)

    async def wait_until_async(self, predicate: Callable[[], object], timeout: float) -> bool:
        """`wait_until` for coroutines: the event loop keeps running."""
        return await self._engine.wait_until_async(predicate, timeout)

    def span(self, timeout: float) -> str:
        """How long a wait was, for a timeout error; see `fakeamqp.inspect.hints.span`."""
        return span(self._state, timeout)

    def report(self) -> str:
        """Text to append to a timeout error; see `fakeamqp.inspect.hints.wait_report`."""
        return wait_report(self._state)

    def connections(self) -> Iterable[Any]:
        """The open connections, oldest first."""
        return list(self._state.connections)

    def alias(self, name: str) -> str | None:
        """The connection's short name in the trace, or None without a trace."""
        return None if self._recorder is None else self._recorder.alias(name)

    def next_tap(self) -> Tap | None:
        """The tap of the broker without faults; None if it has none."""
        return self._observer

    def install(self, tap: Any) -> None:
        """Make `tap` the broker's tap; None restores the one without faults."""
        self._state.tap = self._observer if tap is None else tap

    def note(self, connection: str, event: str, detail: str) -> None:
        """Add a connection event to the trace, if there is one."""
        if self._recorder is not None:
            self._recorder.connection(connection, event, detail)

    def wrap_connections(self, wrap: Callable[[Any, Callable[[], object]], Any] | None) -> None:
        """Wrap every connection, open or to come; None removes the wrapper from idle connections."""
        self._engine.wrap_connections(wrap)

    def refuse(self, refusing: bool) -> None:
        """Have the operating system refuse connections to the port, or accept them again."""
        self._engine.refuse(refusing)

    def restart(self, *, crash: bool, durable: bool) -> None:
        """Restart the broker on the same port."""
        self._owner.restart(crash=crash, durable=durable)

    def block(self, source: str, reason: str | None) -> None:
        """Block all publishers; with None, end this source's alarm."""
        if reason is None:
            self._state.unblock(source)
        else:
            self._state.block(reason, source)

    def redirect(
        self,
        host: str | None,
        known_hosts: tuple[str, ...] = (),
        note: Callable[[], object] = lambda: None,
    ) -> None:
        """Redirect clients that open a connection; None stops it. `note` is called once per client."""
        self._state.redirect = None if host is None else Redirect(host, known_hosts, note)

    def cancel_consumers(self, queue: str, virtual_host: str) -> int:
        """Cancel a queue's consumers; returns how many there were."""
        return self._owner.queue(queue, virtual_host).cancel_consumers()


if TYPE_CHECKING:

    def _check(context: FaultContext) -> BrokerContext:
        return context
