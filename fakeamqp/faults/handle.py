"""Handles: what every method that makes a fault returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from fakeamqp.blocking import blocking
from fakeamqp.faults.errors import FaultError, FaultNotSeen
from fakeamqp.lazy import raise_if_renamed

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.faults.port import BrokerContext

_MOST_MISSES = 3


class Handle:
    """One fault. It is in force until it is removed or done.

    As a context manager it is removed at the end of the block. A subclass defines `sentence`, may define
    `near_misses` and `_withdraw`, and calls `_count_hit` inside the engine.
    """

    hits: int
    """How often it has happened."""
    removed: bool
    """True once it was removed, or is done."""
    error: BaseException | None
    """The first error that a function of the test has raised in it; `wait` and `verify` raise it."""

    if not TYPE_CHECKING:
        __getattr__ = raise_if_renamed

    def __init__(self, context: BrokerContext) -> None:
        self.hits = 0
        self.removed = False
        self.error = None
        self._context = context
        self._optional = False
        self._error_told = False

    @property
    def sentence(self) -> str:
        """The fault in one sentence without a full stop."""
        raise NotImplementedError

    def near_misses(self) -> Iterable[str]:
        """In words: what almost matched a fault that has not happened."""
        return ()

    def _withdraw(self) -> None:
        """Undo the fault; called once, inside the engine."""

    def _count_hit(self, count: int = 1) -> None:
        self.hits += count

    @property
    def used(self) -> bool:
        """True if it has happened, or is optional."""
        return self.hits > 0 or self._optional

    def optional(self) -> Self:
        """Let `verify` pass if the fault never happens."""
        self._optional = True
        return self

    @blocking
    def wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until the fault has happened `n` times since its creation.

        Args:
            n: how many hits.
            timeout: how many real seconds to wait.

        Raises:
            FaultNotSeen: it has not; the text has its hits and near misses.
            FaultError: `n` is not a positive number.
            Exception: a function of the test has raised it meanwhile.
        """
        self._check_seen(n, timeout, self._context.wait_until(self._seen(n), timeout))

    @wait.coroutine
    async def _wait_coroutine(self, n: int = 1, timeout: float = 5.0) -> None:
        self._check_seen(n, timeout, await self._context.wait_until_async(self._seen(n), timeout))

    def _seen(self, n: int) -> Callable[[], bool]:
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise FaultError(f"wait for at least one hit: wait(1), not wait({n!r})")
        return lambda: self.hits >= n or self._failed

    def _check_seen(self, n: int, timeout: float, seen: bool) -> None:
        self._raise_error()
        if not seen:
            with self._context:
                often = "not at all" if not self.hits else f"only {_times(self.hits)}"
                lines = [
                    f"waited {self._context.span(timeout)}, and this happened {often} instead of {_times(n)}:"
                ]
                lines += [f"  {self.sentence}", *self._misses()]
                raise FaultNotSeen("\n".join(lines) + self._context.report())

    def _raise_error(self) -> None:
        """Raise the error of a function of the test, once."""
        if self._failed:
            self._error_told = True
            assert self.error is not None
            raise self.error

    @property
    def _failed(self) -> bool:
        """True if there is an error that was not raised yet."""
        return self.error is not None and not self._error_told

    def remove(self) -> None:
        """End the fault and release the frames that it held. A second call has no effect."""
        with self._context:
            if not self.removed:
                self.removed = True
                self._withdraw()

    def _complaint(self) -> str:
        """The sentence and the near misses, for the error that it never happened."""
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
        state = "removed" if self.removed else "in force"
        return f"<{type(self).__name__}: {self.sentence}; {state}, hits={self.hits}>"


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n} times"
