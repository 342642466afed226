"""What requests work with: the broker, and ways to read and change it from the thread of the HTTP server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from fakeamqp.management.choices import ManagementChoices
from fakeamqp.management.counters import Statistics
from fakeamqp.runtime.clock import RealClock

if TYPE_CHECKING:
    from fakeamqp.broker import Broker
    from fakeamqp.management.choices import ManagementChoices
    from fakeamqp.model.state import BrokerState
    from fakeamqp.runtime.engine import Engine

S = TypeVar("S")
T = TypeVar("T")

_SLICE_SECONDS = 0.002
"""Real seconds for which things are read with the lock held."""


class Management:
    """What the requests of one broker work with.

    Args:
        broker: the broker.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker: Broker = broker
        self.engine: Engine = broker._engine
        self._state = broker._state
        self.statistics: Statistics = Statistics(self._state.clock.now)
        self.choices: ManagementChoices = self._state.personality.extension(ManagementChoices)
        self.began: float = self._state.clock.now()
        #: The numeric address and the port of the HTTP server.
        self.http_address: tuple[str, int] = ("", 0)
        self.logins: list[int] = [0, 0]
        """How many requests have logged in, and how many have failed to."""

    @property
    def speaks_tls(self) -> bool:
        """Whether clients connect with TLS."""
        from fakeamqp.broker import BrokerError

        try:
            return self.broker.tls is not None
        except BrokerError:
            return False

    def read(self, question: Callable[[BrokerState], T], /) -> T:
        """Return what `question` returns for the broker's state, inside the engine. It must be short."""
        with self.engine:
            return question(self._state)

    def read_each(
        self, things: Callable[[BrokerState], Iterable[S]], view: Callable[[S], T | None], /
    ) -> list[T]:
        """Read many things, a slice of them at a time.

        Between two slices others use the broker. So `view` may get a thing that was removed meanwhile; it
        returns None for what is to be left out.

        Args:
            things: returns all of them; it must be short.
            view: reads one, inside the engine, into something that does not change.
        """
        with self.engine:
            left: Iterator[S] = iter(list(things(self._state)))
        views: list[T] = []
        while self._read_slice(left, view, views):
            pass
        return views

    def _read_slice(self, left: Iterator[S], view: Callable[[S], T | None], views: list[T]) -> bool:
        """Read some of the things; return whether there may be more."""
        with self.engine:
            ends = RealClock.now() + _SLICE_SECONDS
            for each in left:
                seen = view(each)
                if seen is not None:
                    views.append(seen)
                if RealClock.now() >= ends:
                    return True
        return False

    def change(self, act: Callable[[BrokerState], T], /) -> T:
        """Return what `act` returns, inside the engine, once the operations that it began have ended."""
        with self.engine, self.engine.in_slices() as between:
            result = act(self._state)
            between()
            return result

    def carry_out(self, steps: Callable[[BrokerState], Iterator[object]], /) -> None:
        """Carry out an operation of many steps, so that peers are served between them."""
        with self.engine:
            self.engine.carry_out(steps(self._state))

    def cleared(self) -> None:
        """The broker was reset or restarted."""
        self.statistics.clear()
        self.began = self._state.clock.now()
        self.logins = [0, 0]
