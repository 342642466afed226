"""What faults need of the broker. The broker hands it in: see `fakeamqp.fault_context`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.faults.next_tap import NextTap
    from fakeamqp.faults.port import TappedConnection

__all__ = ["BrokerContext", "Cancellable"]


class Cancellable(Protocol):
    """A timer."""

    def cancel(self) -> None:
        """Stop the timer, unless it has already run."""


class BrokerContext(Protocol):
    """What faults need of the broker. As a context manager it holds the engine's lock."""

    def __enter__(self) -> Self:
        """Take the engine's lock."""

    def __exit__(self, *error: Any) -> None:
        """Send what the block has caused, and release the engine's lock."""

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool:
        """Wait at most `timeout` real seconds until the predicate holds; returns whether it did."""

    async def wait_until_async(self, predicate: Callable[[], object], timeout: float) -> bool:
        """`wait_until` for coroutines: the event loop keeps running."""

    def span(self, timeout: float) -> str:
        """How long a wait was, for a timeout error."""

    def report(self) -> str:
        """Text to append to a timeout error: hints, what the broker holds, and the latest events."""

    @property
    def seed(self) -> int | str | None:
        """The seed that the broker was made with; without one, that of the simulation; or None."""

    def now(self) -> float:
        """The current instant of the broker's clock, in seconds."""

    def call_at(self, due: float, callback: Callable[[], object], label: str) -> Cancellable:
        """Call `callback` at an instant of the broker's clock."""

    def connections(self) -> Iterable[TappedConnection]:
        """The open connections, oldest first."""

    def alias(self, name: str) -> str | None:
        """The short name that the trace gives a connection, such as "c1", or None."""

    def wrap_connections(self, wrap: Callable[[Any, Callable[[], object]], Any] | None) -> None:
        """Put a wrapper around every connection, open or to come; None removes it from idle connections."""

    def refuse(self, refusing: bool) -> None:
        """Close the listening port, so that the operating system refuses connections; or open it again."""

    def note(self, connection: str, event: str, detail: str) -> None:
        """Add an event of a connection to the trace."""

    @property
    def exchange_types(self) -> frozenset[str]:
        """The names of the exchange types."""

    @property
    def simulation_seed(self) -> int | str | None:
        """The seed of the simulation that the broker runs in; None outside of simulations."""

    def next_tap(self) -> NextTap | None:
        """The tap that is in place without faults (the trace's recorder), or None."""

    def install(self, tap: Any) -> None:
        """Make `tap` the broker's tap; None restores the one that was there before."""

    def restart(self, *, crash: bool, durable: bool) -> None:
        """Restart the broker on the same port."""

    def block(self, source: str, reason: str | None) -> None:
        """Block all publishers; with None, end this source's alarm."""

    def redirect(
        self, host: str | None, known_hosts: tuple[str, ...] = (), note: Callable[[], object] = ...
    ) -> None:
        """Redirect clients that open a connection; None stops it. `note` is called once per client."""

    def cancel_consumers(self, queue: str, virtual_host: str) -> int:
        """Cancel the consumers of a queue from the server's side; returns how many there were."""
