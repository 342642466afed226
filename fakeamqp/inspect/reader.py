"""How inspection reads a broker's state from any thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from fakeamqp.model.state import BrokerState

__all__ = ["StateReader"]

T = TypeVar("T")


class StateReader(Protocol):
    """Calls functions of a broker's state inside the engine."""

    def read(self, question: Callable[[BrokerState], T], /) -> T:
        """Return what `question` returns for the broker's state."""

    def change(self, act: Callable[[BrokerState], T], /) -> T:
        """Return what `act` returns, once the operations that it began have ended."""

    def wait_for(
        self,
        predicate: Callable[[BrokerState], object],
        /,
        timeout: float = 5.0,
        *,
        every: float | None = None,
    ) -> bool:
        """Wait until `predicate` is true for the broker's state.

        Args:
            predicate: evaluated now and after every turn of the event loop.
            timeout: in real seconds.
            every: evaluate it also after so many seconds without a turn.

        Returns:
            Whether it became true in time.
        """

    async def wait_for_async(
        self,
        predicate: Callable[[BrokerState], object],
        /,
        timeout: float = 5.0,
        *,
        every: float | None = None,
    ) -> bool:
        """`wait_for` for coroutines: it does not block the event loop of the caller."""
