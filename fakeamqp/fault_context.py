"""What faults need of a broker or a proxy, handed to them by it. Faults import neither them nor the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.inspect.hints import span, wait_report
from fakeamqp.model.exchanges import EXCHANGE_TYPES
from fakeamqp.model.state import Redirect

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.inspect import QueueHandle
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.tap import Tap
    from fakeamqp.model.timers import Timer
    from fakeamqp.runtime.engine import Engine
    from fakeamqp.trace import Recorder


class Owner(Protocol):
    """The parts of `Broker` that faults use."""

    def restart(self, *, crash: bool, durable: bool) -> None:
        """Restart on the same port."""

    def queue(self, name: str, virtual_host: str) -> QueueHandle:
        """The inspector of one queue."""


class FaultContext:
    """Implements `faults.port.BrokerContext` for a running broker; the methods are documented there.

    `observer` is the tap of the broker without faults: the recorder, or what counts in front of it.
    """

    exchange_types = EXCHANGE_TYPES

    def __init__(
        self,
        owner: Owner,
        state: BrokerState,
        engine: Engine,
        recorder: Recorder | None,
        observer: Tap | None,
        impossible: Mapping[str, str],
    ) -> None:
        self._owner = owner
        self._state = state
        self._engine = engine
        self._recorder = recorder
        self._observer = observer
        self.impossible: Mapping[str, str] = impossible

    @property
    def seed(self) -> int | str | None:
        seed = self._state.seed
        return self._engine.seed if seed is None else seed

    @property
    def simulation_seed(self) -> int | str | None:
        return self._engine.seed

    def __enter__(self) -> Self:
        self._engine.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._engine.__exit__(*error)

    def now(self) -> float:
        return self._state.clock.now()

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Timer:
        return self._state.timers.call_at(due, callback, label)

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool:
        return self._engine.wait_until(predicate, timeout)

    async def wait_until_async(self, predicate: Callable[[], object], timeout: float) -> bool:
        return await self._engine.wait_until_async(predicate, timeout)

    def span(self, timeout: float) -> str:
        return span(self._state, timeout)

    def report(self) -> str:
        return wait_report(self._state)

    def connections(self) -> Iterable[Any]:
        return list(self._state.connections)

    def alias(self, name: str) -> str | None:
        return None if self._recorder is None else self._recorder.alias(name)

    def next_tap(self) -> Tap | None:
        return self._observer

    def install(self, tap: Any) -> None:
        self._state.tap = self._observer if tap is None else tap

    def note(self, connection: str, event: str, detail: str) -> None:
        if self._observer is not None:
            self._observer.connection(connection, event, detail)

    def wrap_connections(self, wrap: Callable[[Any, Callable[[], object]], Any] | None) -> None:
        self._engine.wrap_connections(wrap)

    def refuse(self, refusing: bool) -> None:
        self._engine.refuse(refusing)

    def restart(self, *, crash: bool, durable: bool) -> None:
        self._owner.restart(crash=crash, durable=durable)

    def block(self, source: str, reason: str | None) -> None:
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
        self._state.redirect = None if host is None else Redirect(host, known_hosts, note)

    def cancel_consumers(self, queue: str, virtual_host: str) -> int:
        return self._owner.queue(queue, virtual_host).cancel_consumers()
