"""Operations over many objects, cut into slices so that other connections are served meanwhile.

An operation is an iterator: each of its steps settles, routes or frees some hundred messages, or changes some
other objects, and leaves the model consistent. The runtime says when a slice is over (`pauses`), and goes on
with the rest in later turns (`step`). Without a runtime an operation runs to its end at once. So the order of
its effects is always the same, and only what other connections do can come between them.

The connection that asked for an operation handles no further input until it has ended
(`OperationRequester.busy`), and its operations run one after another. Operations of several connections take
turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar, overload

STEP = 256
"""How many messages or bindings a step covers: a fraction of a millisecond to two milliseconds of work."""

_T = TypeVar("_T")


class OperationRequester(Protocol):
    """The connection that asked for an operation."""

    busy: bool
    """Whether the connection waits for an operation, and handles no input."""

    def operations_ended(self) -> None:
        """The last operation that the connection waited for has ended."""


class Operations:
    """The operations of one broker that have not ended yet."""

    __slots__ = ("busy_seconds", "pauses", "pending", "requester")

    def __init__(self) -> None:
        self.pending: dict[OperationRequester | None, deque[Iterator[object]]] = {}
        """Those that have not ended yet, by the connection that asked for them."""
        self.requester: OperationRequester | None = None
        """The connection whose input is being handled."""
        self.pauses: Callable[[], bool] | None = None
        """Whether the slice is over; None if operations run to their end."""
        self.busy_seconds: float = 0.0
        """Real seconds of all turns that kept peers waiting. Timeouts about peers are longer by as much."""

    def run(self, steps: Iterator[object], requester: OperationRequester | None = None) -> None:
        """Carry out an operation for `requester`, by default the connection whose input is being handled.

        It begins at once unless the connection waits for an earlier one. An exception of its first slice is
        raised here, one of a later slice by `step`.
        """
        requester = requester or self.requester
        earlier = self.pending.get(requester) if requester is not None else None
        if earlier is not None:
            earlier.append(steps)
            return
        pauses = self.pauses
        for _ in steps:
            if pauses is not None and pauses():
                self.pending.setdefault(requester, deque()).append(steps)
                if requester is not None:
                    requester.busy = True
                return

    def then(self, act: Callable[[], object], requester: OperationRequester | None = None) -> None:
        """Call `act` once the operations that a connection waits for have ended, perhaps at once.

        By default it is the connection whose input is being handled.
        """
        requester = requester or self.requester
        earlier = None if requester is None else self.pending.get(requester)
        if earlier is None:
            act()
        else:
            earlier.append(_calling(act))

    def step(self) -> None:
        """Go on with the operations until the slice is over."""
        while self.pending:
            requester = next(iter(self.pending))
            if not self._continue(requester):
                self.pending[requester] = self.pending.pop(requester)
                return

    def _continue(self, requester: OperationRequester | None) -> bool:
        """Go on with the operations of one connection. False if the slice ended before them."""
        waiting = self.pending[requester]
        pauses = self.pauses
        while waiting:
            before, self.requester = self.requester, requester
            try:
                for _ in waiting[0]:
                    if pauses is not None and pauses():
                        return False
            except BaseException:
                self._ended(requester)
                raise
            finally:
                self.requester = before
            self._ended(requester)
        return True

    def _ended(self, requester: OperationRequester | None) -> None:
        waiting = self.pending[requester]
        waiting.popleft()
        if not waiting:
            del self.pending[requester]
            if requester is not None:
                requester.busy = False
                requester.operations_ended()

    def finish(self) -> None:
        """Carry out all operations to their end."""
        pauses, self.pauses = self.pauses, None
        try:
            self.step()
        finally:
            self.pauses = pauses


def _calling(act: Callable[[], object]) -> Iterator[None]:
    act()
    yield from ()


def carry_out(steps: Iterator[object]) -> Any:
    """Carry out an operation to its end, whatever the runtime says, and return its result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


class Values(Sequence[_T]):
    """The values of a dict that nothing else uses, in its order.

    A list of a million values, which lie scattered in memory, takes 60 milliseconds to make, and 50 more to
    clear the dict (measured). `in_steps` walks these values without a list, and empties the dict in steps.
    """

    __slots__ = ("_of",)

    def __init__(self, of: dict[Any, _T]) -> None:
        self._of = of

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[_T]:
        return iter(self._of.values())

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> list[_T]: ...
    def __getitem__(self, index: int | slice) -> _T | list[_T]:
        if index == 0:
            return next(iter(self))
        return list(self)[index]

    def freeing(self) -> Iterator[None]:
        """Steps that remove the values."""
        take = self._of.popitem
        while self._of:
            for _ in range(min(STEP, len(self._of))):
                take()
            yield


def in_steps(
    items: Sequence[_T], act: Callable[[Sequence[_T]], object], *, owned: bool = False, step: int = STEP
) -> Iterator[None]:
    """Steps that call `act` with one part of the items after the other, each of at most `step` items.

    Afterwards `Values` are empty, and so is a list with `owned`, which the caller gives up.
    """
    if len(items) <= step:
        act(items)
        return
    if isinstance(items, Values):
        walk = iter(items)
        while part := list(islice(walk, step)):
            act(part)
            yield
        yield from items.freeing()
        return
    # From a reversed list, the parts are taken off cheaply, and nothing is left to be freed at the end.
    left = items if owned and isinstance(items, list) else list(items)
    left.reverse()
    del items
    while True:
        part = left[-step:]
        del left[-step:]
        part.reverse()
        act(part)
        if not left:
            return
        yield


def gathered(parts: Iterable[Iterator[None]], step: int = STEP) -> Iterator[None]:
    """Steps that each take `step` steps of the parts, one part after the other.

    A step of a part begins with its `yield`.
    """
    left = step
    for part in parts:
        for _ in part:
            if not left:
                yield
                left = step
            left -= 1


def freeing(items: list[Any] | deque[Any]) -> Iterator[None]:
    """Steps that remove the items, which frees those that nothing else refers to."""
    take = items.pop
    while True:
        for _ in range(min(STEP, len(items))):
            take()
        if not items:
            return
        yield
