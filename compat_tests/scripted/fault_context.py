"""What faults need of a broker, for a broker without sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from typing_extensions import Self

from fakeamqp.model.exchanges import EXCHANGE_TYPES
from fakeamqp.model.state import Redirect
from fakeamqp.model.timers import Timer

__all__ = ["FaultContext"]


class FaultContext:
    """A `BrokerContext` of a `Server` that has a `next_tap` and can `restart`. `wait_until` never waits."""

    exchange_types = EXCHANGE_TYPES
    impossible: dict[str, str] = {}  # noqa: RUF012
    simulation_seed = None

    def __init__(self, server: Any) -> None:
        self._server = server
        self._depth = 0

    @property
    def seed(self) -> int | str | None:
        return self._server.state.seed

    def __enter__(self) -> Self:
        self._depth += 1
        return self

    def __exit__(self, *error: object) -> None:
        self._depth -= 1

    def now(self) -> float:
        return self._server.clock.now()

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Timer:
        return self._server.state.timers.call_at(due, callback, label)

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool:
        return bool(predicate())

    def span(self, timeout: float) -> str:
        return f"{timeout:g} s"

    def report(self) -> str:
        return ""

    def connections(self) -> Iterable[Any]:
        return list(self._server.state.connections)

    def alias(self, name: str) -> str | None:
        alias = getattr(self._server.next_tap, "alias", None)
        return None if alias is None else alias(name)

    def next_tap(self) -> Any:
        return self._server.next_tap

    def install(self, tap: Any) -> None:
        self._server.state.tap = self._server.next_tap if tap is None else tap

    def note(self, connection: str, event: str, detail: str) -> None:
        if self._server.next_tap is not None:
            self._server.next_tap.connection(connection, event, detail)

    def wrap_connections(self, wrap: Callable[[Any, Callable[[], object]], Any] | None) -> None:
        raise AssertionError("rules have no business with transports")

    def refuse(self, refusing: bool) -> None:
        raise AssertionError("rules have no business with listeners")

    def restart(self, *, crash: bool, durable: bool) -> None:
        self._server.restart(crash=crash, durable=durable)

    def block(self, source: str, reason: str | None) -> None:
        if reason is None:
            self._server.state.unblock(source)
        else:
            self._server.state.block(reason, source)

    def redirect(
        self, host: str | None, known_hosts: tuple[str, ...] = (), note: Callable[[], object] = lambda: None
    ) -> None:
        self._server.state.redirect = None if host is None else Redirect(host, known_hosts, note)

    def cancel_consumers(self, queue: str, virtual_host: str) -> int:
        return self._server.state.virtual_hosts[virtual_host].queues.require(queue).cancel_all()
