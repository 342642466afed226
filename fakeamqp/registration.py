"""Functions and objects of a test that a broker uses until the test takes them back."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

from fakeamqp.errors import FakeAMQPError, WaitTimeout
from fakeamqp.inspect.hints import span, wait_report
from fakeamqp.model.errors import InternalError

if TYPE_CHECKING:
    from typing_extensions import Self

    from fakeamqp.model.state import BrokerState

__all__ = ["BadRegistration", "Registration"]

P = ParamSpec("P")
T = TypeVar("T")


class _Engine(Protocol):
    """What a registration needs of the engine."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def wait_until(self, predicate: Callable[[], object], timeout: float) -> bool: ...

    async def wait_until_async(self, predicate: Callable[[], object], timeout: float) -> bool: ...


class BadRegistration(FakeAMQPError):
    """An invalid registration; the text says why."""

    __module__ = "fakeamqp.services"


class Registration:
    """A handler or transport of the test that a broker uses until it is removed, or until its context ends.

    Attributes:
        error: the first exception that it has raised in the broker. `wait` raises it, and with the pytest
            plugin it fails the test.
    """

    def __init__(self, engine: _Engine, state: BrokerState, what: str) -> None:
        self._engine = engine
        self._state = state
        self._what = what
        self._calls = 0
        self._removed = False
        self._error_told = False
        self.error: BaseException | None = None
        self._withdraw: Callable[[], object] = lambda: None

    def __repr__(self) -> str:
        state = "removed" if self._removed else "in use"
        return f"<Registration: {self._what}; {state}, calls={self._calls}>"

    @property
    def calls(self) -> int:
        """The number of calls by the broker."""
        return self._calls

    def wait(self, n: int = 1, timeout: float = 5.0) -> None:
        """Wait until the broker has called it `n` times in total.

        Args:
            n: the number of calls.
            timeout: in real seconds.

        Raises:
            WaitTimeout: there were fewer calls.
            Exception: the exception that it has raised in the broker.
        """
        self._check_called(n, timeout, self._engine.wait_until(self._called(n), timeout))

    async def wait_async(self, n: int = 1, timeout: float = 5.0) -> None:
        """`wait` for coroutines: it does not block the event loop."""
        self._check_called(n, timeout, await self._engine.wait_until_async(self._called(n), timeout))

    def _called(self, n: int) -> Callable[[], bool]:
        return lambda: self._calls >= n or self._failed

    def _check_called(self, n: int, timeout: float, called: bool) -> None:
        self.raise_error()
        if not called:
            with self._engine:
                often = f"{self._calls} times in {span(self._state, timeout)}"
                text = f"{self._what} was called {often}, and not {n}"
                raise WaitTimeout(text + wait_report(self._state))

    def raise_error(self) -> None:
        """Raise the exception that it has raised in the broker, once."""
        if self._failed:
            self._error_told = True
            assert self.error is not None
            raise self.error

    def remove(self) -> None:
        """End its use by the broker. Idempotent."""
        with self._engine:
            if not self._removed:
                self._removed = True
                self._withdraw()

    @property
    def _failed(self) -> bool:
        return self.error is not None and not self._error_told

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def guard(self, function: Callable[P, T]) -> Callable[P, T]:
        """`function` for the broker: an exception is kept for the test, and closes the connection."""

        def guarded(*args: P.args, **keywords: P.kwargs) -> T:
            self._calls += 1
            try:
                return function(*args, **keywords)
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # including pytest's outcome exceptions
                self.error = self.error or error
                raise InternalError(f"{self._what} has failed: {error!r}") from error

        return guarded

    def until_removed(self, withdraw: Callable[[], object]) -> Self:
        """Set the function that undoes the registration."""
        self._withdraw = withdraw
        return self
