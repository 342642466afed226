"""What a test holds on to after it has asked for a fault, whatever level the fault is on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from fakeamqp.faults.errors import FaultError, FaultNotSeen, UnusedFault

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Handle", "Handles", "Stage"]

_MOST_MISSES = 3


class Stage(Protocol):
    """What a handle needs of the broker."""

    def __enter__(self) -> Any:
        """Have the broker stand still."""

    def __exit__(self, *error: Any) -> None:
        """Have it go on, and send what came of it."""

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool:
        """Wait until a predicate holds, at most `timeout` real seconds; whether it did."""

    def remark(self) -> str:
        """What to add where somebody waited in vain because time stands still; otherwise ""."""


class Handle:
    """One fault that was asked for. It is in force until it is removed, or used up.

    As a context manager it is removed at the end of the block. A subclass says `sentence`, may say
    `near_misses` and `_withdraw`, and calls `_count_hit` inside the engine.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._hits = 0
        self._removed = False
        self._optional = False
        self._error: BaseException | None = None
        self._error_told = False

    # --- what a subclass says -------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """What the fault does, and to what, in one sentence without a full stop."""
        raise NotImplementedError

    def near_misses(self) -> Iterable[str]:
        """What almost fitted, in words, where the fault has not happened."""
        return ()

    def _withdraw(self) -> None:
        """Undo what is in force; called once, inside the engine."""

    def _count_hit(self, count: int = 1) -> None:
        """It has happened; to be called inside the engine."""
        self._hits += count

    def _fail(self, error: BaseException) -> None:
        """A function of the test's has raised this, inside the engine, where nobody can be told."""
        if self._error is None:
            self._error = error

    # --- what a test sees -----------------------------------------------------------------------------

    @property
    def hits(self) -> int:
        """How often it has happened so far."""
        return self._hits

    @property
    def removed(self) -> bool:
        """Whether it has been taken away."""
        return self._removed

    @property
    def used(self) -> bool:
        """Whether it has happened, or need not."""
        return self._hits > 0 or self._optional

    @property
    def error(self) -> BaseException | None:
        """The first thing that a function of the test's has raised in it; `wait` and `verify` raise that."""
        return self._error

    def optional(self) -> Self:
        """Do not complain if it never happens."""
        self._optional = True
        return self

    def wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until it has happened `n` times, counted from the beginning.

        Args:
            n: how many hits.
            timeout: how many real seconds to wait.

        Raises:
            FaultNotSeen: it has not; the text says how often it did, and what almost fitted.
            FaultError: `n` is no positive number.
            Exception: what a function of the test's raised in it meanwhile, if one did.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise FaultError(f"wait for at least one hit: wait(1), not wait({n!r})")
        seen = self._stage.wait_until(lambda: self._hits >= n or self._failed, timeout)
        self.raise_error()
        if not seen:
            with self._stage:
                often = "not at all" if not self._hits else f"only {_times(self._hits)}"
                lines = [f"waited {timeout:g} s, and this happened {often} instead of {_times(n)}:"]
                lines += [f"  {self.sentence}", *self._misses()]
                raise FaultNotSeen("\n".join(lines) + self._stage.remark())

    async def wait_async(self, n: int = 1, timeout: float = 5.0) -> None:
        """`wait`, for a coroutine: the event loop goes on meanwhile."""
        import asyncio

        await asyncio.to_thread(self.wait, n, timeout)

    def raise_error(self) -> None:
        """Raise what a function of the test's raised in it, once."""
        if self._failed:
            self._error_told = True
            assert self._error is not None
            raise self._error

    @property
    def _failed(self) -> bool:
        """Whether a function has raised something that nobody was told of."""
        return self._error is not None and not self._error_told

    def remove(self) -> None:
        """Take it away: what it held goes on its way. Twice is once."""
        with self._stage:
            if not self._removed:
                self._removed = True
                self._withdraw()

    def complaint(self) -> str:
        """What to say of it where it ought to have happened: the sentence, and what almost fitted."""
        return "\n".join([self.sentence, *self._misses()])

    def _misses(self) -> Iterator[str]:
        misses = list(self.near_misses())
        yield from (f"    near miss: {miss}" for miss in misses[:_MOST_MISSES])
        if len(misses) > _MOST_MISSES:
            yield f"    ... and {len(misses) - _MOST_MISSES} more"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        state = "removed" if self._removed else "in force"
        return f"<{type(self).__name__}: {self.sentence}; {state}, hits={self._hits}>"


class Handles:
    """Every fault of one broker that was asked for since the last `clear`, oldest first."""

    def __init__(self) -> None:
        self._handles: list[Handle] = []

    def __iter__(self) -> Iterator[Handle]:
        """All of them, also those that have been removed."""
        return iter(tuple(self._handles))

    @property
    def in_force(self) -> tuple[Handle, ...]:
        """Those that have not been removed."""
        return tuple(handle for handle in self._handles if not handle.removed)

    def add(self, handle: Handle) -> None:
        """One more."""
        self._handles.append(handle)

    def discard(self, handle: Handle) -> None:
        """Forget one, if it is here: nobody will ask for it."""
        if handle in self._handles:
            self._handles.remove(handle)

    def clear(self) -> None:
        """Remove all, the latest first, and forget them."""
        # What goes on meanwhile may meet faults that are still there, and those make new ones.
        while self._handles:
            self._handles.pop().remove()

    def verify(self) -> None:
        """Complain of those that never happened, removed or not.

        Raises:
            UnusedFault: there are some, and they are not optional.
            Exception: what a function of the test's raised in one of them, if that is not known yet.
        """
        for handle in self._handles:
            handle.raise_error()
        unused = [handle for handle in self._handles if not handle.used]
        if not unused:
            return
        number = "a fault was" if len(unused) == 1 else f"{len(unused)} faults were"
        lines = [f"{number} installed and never happened (say .optional() where that is all right):"]
        lines += [f"  - {handle.complaint()}" for handle in unused]
        raise UnusedFault("\n".join(lines))


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
