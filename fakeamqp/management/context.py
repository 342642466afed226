"""What requests work with: the broker, and ways to read and change it from the thread of the HTTP server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

from fakeamqp.management.choices import choices_for
from fakeamqp.management.counters import Statistics

if TYPE_CHECKING:
    from fakeamqp.broker import Broker
    from fakeamqp.companions import Surroundings
    from fakeamqp.management.inspector import Inspector
    from fakeamqp.model.state import BrokerState

__all__ = ["Management"]

S = TypeVar("S")
T = TypeVar("T")

_SLICE = 100
"""How many things are read with the lock held; a hundred queues take about a millisecond."""


class Management:
    """What the requests of one broker work with.

    Args:
        surroundings: the broker and its engine.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self.broker: Broker = surroundings.broker
        self.engine = surroundings.engine
        self._state = surroundings.state
        self.statistics = Statistics(surroundings.state.clock.now)
        self.choices = choices_for(surroundings.state.personality)
        self.began = surroundings.state.clock.now()
        #: The numeric address and the port of the HTTP server.
        self.http_address = ("", 0)
        self.logins = [0, 0]
        """How many requests have logged in, and how many have failed to."""

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
        while slice_ := list(islice(left, _SLICE)):
            with self.engine:
                views += [seen for each in slice_ if (seen := view(each)) is not None]
        return views

    @cached_property
    def inspector(self) -> Inspector:
        """What the inspector page works with."""
        from fakeamqp.management.inspector import Inspector

        return Inspector(self.broker, self.engine, self._state)

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
