"""What faults need of a broker, in one place: they know the wire, and this knows the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.inspect.hints import time_hint
from fakeamqp.model.exchanges import EXCHANGE_TYPES
from fakeamqp.model.state import Redirect

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.inspect import QueueInspector
    from fakeamqp.model.state import BrokerState
    from fakeamqp.model.timers import Timer
    from fakeamqp.runtime import Engine
    from fakeamqp.trace import Recorder

__all__ = ["FaultHost"]


class Owner(Protocol):
    """What a broker's owner can do to it as a whole."""

    def restart(self, *, crash: bool, durable: bool) -> None:
        """Restart on the same port."""

    def queue(self, name: str, virtual_host: str) -> QueueInspector:
        """A live look at one queue."""


class FaultHost:
    """A broker as its faults see it: `faults.line.Host`."""

    exchange_types = frozenset(EXCHANGE_TYPES)

    def __init__(self, owner: Owner, state: BrokerState, engine: Engine, recorder: Recorder | None) -> None:
        self._owner = owner
        self._state = state
        self._engine = engine
        self._recorder = recorder

    @property
    def seed(self) -> int | str | None:
        """The seed that the broker was made with."""
        return self._state.seed

    def __enter__(self) -> Self:
        self._engine.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._engine.__exit__(*error)

    def now(self) -> float:
        """The instant on the broker's clock, in seconds."""
        return self._state.clock.now()

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Timer:
        """Have something done at an instant of the broker's clock."""
        return self._state.timers.call_at(due, callback, label)

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool:
        """Wait until a predicate holds, at most `timeout` real seconds; whether it did."""
        return self._engine.wait_until(predicate, timeout)

    def remark(self) -> str:
        """What to add where somebody waited in vain because time stands still; otherwise ""."""
        return time_hint(self._state)

    def linked(self) -> Iterable[Any]:
        """The open connections, oldest first."""
        return list(self._state.connections)

    def alias(self, name: str) -> str | None:
        """The short name that the trace gives a connection."""
        return None if self._recorder is None else self._recorder.alias(name)

    def onlooker(self) -> Recorder | None:
        """The recorder, if there is one."""
        return self._recorder

    def install(self, tap: Any) -> None:
        """Have everything pass `tap`, or (None) only the recorder."""
        self._state.tap = self._recorder if tap is None else tap

    def note(self, connection: str, event: str, detail: str) -> None:
        """Have the trace show what has happened to a connection."""
        if self._recorder is not None:
            self._recorder.connection(connection, event, detail)

    def wrap_connections(self, wrap: Callable[[Any, Callable[[], object]], Any] | None) -> None:
        """Put something around every connection, now and later; None takes it off where it is idle."""
        self._engine.wrap_connections(wrap)

    def refuse(self, refusing: bool) -> None:
        """Have the operating system refuse dials, or not any more."""
        self._engine.refuse(refusing)

    def restart(self, *, crash: bool, durable: bool) -> None:
        """Restart the broker on the same port."""
        self._owner.restart(crash=crash, durable=durable)

    def block(self, reason: str | None) -> None:
        """Hold back all publishers; None lets them go on."""
        if reason is None:
            self._state.unblock()
        else:
            self._state.block(reason)

    def redirect(
        self,
        host: str | None,
        known_hosts: tuple[str, ...] = (),
        note: Callable[[], object] = lambda: None,
    ) -> None:
        """Send clients that open a connection elsewhere, or (None) no more; `note` is called for each."""
        self._state.redirect = None if host is None else Redirect(host, known_hosts, note)

    def cancel_consumers(self, queue: str, virtual_host: str) -> int:
        """End the consumers of a queue; how many there were."""
        return self._owner.queue(queue, virtual_host).cancel_consumers()
