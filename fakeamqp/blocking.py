"""Methods that wait, with a form for coroutines each: `queue.wait_for()`, `await queue.wait_for.aio()`."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import MethodType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

__all__ = ["BlockingMethod", "blocking", "blocking_start", "blocking_wait"]


class BlockingMethod(Generic[P, R]):
    """A method of an object: a call blocks, and `aio` is the same for coroutines."""

    def __init__(self, owner: object, method: Callable[..., R], coroutine: Callable[..., Any]) -> None:
        self._call: Callable[..., R] = MethodType(method, owner)
        self.aio: Callable[P, Coroutine[Any, Any, R]] = MethodType(coroutine, owner)
        """The method for coroutines: it does not block the event loop."""
        self.__doc__ = method.__doc__

    def __call__(self, *args: P.args, **keywords: P.kwargs) -> R:
        return self._call(*args, **keywords)

    @property
    def __signature__(self) -> object:
        from inspect import signature  # Only for help.

        return signature(self._call)

    def __getattr__(self, name: str) -> Any:
        # The name, the signature and the text are those of the method.
        return getattr(self._call, name)

    def __repr__(self) -> str:
        return repr(self._call)


class blocking(Generic[P, R]):
    """Makes a method that waits; `coroutine` adds its form for coroutines, which has the same arguments."""

    bound: type[BlockingMethod[..., Any]] = BlockingMethod
    """The class of the method of an object."""

    def __init__(self, method: Callable[Concatenate[Any, P], R]) -> None:
        self._method = method
        self._coroutine: Callable[..., Any]

    def coroutine(
        self, function: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]
    ) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]:
        """Make a function the form for coroutines."""
        self._coroutine = function
        self._method.aio = function  # type: ignore[attr-defined]
        if function.__doc__ is None:
            function.__doc__ = f"`{self._method.__name__}` for coroutines: it does not block the event loop."
        return function

    if TYPE_CHECKING:

        def __get__(self, instance: object, owner: type | None = None) -> BlockingMethod[P, R]: ...

    else:

        def __get__(self, instance, owner=None):
            # Of the class it is the function, as help() and inspect know it.
            if instance is None:
                return self._method
            return self.bound(instance, self._method, self._coroutine)


if TYPE_CHECKING:
    S = TypeVar("S")

    # Type checkers lose type variables of a method that pass through a ParamSpec, so these are written out.

    class Starts(Generic[S]):
        """The type of `Broker.start`: it returns its broker."""

        def __call__(self) -> S: ...

        async def aio(self) -> S: ...

    class WaitsFor:
        """The type of `Broker.wait_for`: it returns what the predicate returns."""

        def __call__(self, predicate: Callable[[], T], /, timeout: float = 5.0) -> T: ...

        async def aio(self, predicate: Callable[[], T], /, timeout: float = 5.0) -> T: ...

    class blocking_start:
        """`blocking` for `start`."""

        def __init__(self, method: Callable[..., Any]) -> None: ...

        def coroutine(self, function: Callable[..., T]) -> Callable[..., T]: ...

        def __get__(self, instance: S, owner: type | None = None) -> Starts[S]: ...

    class blocking_wait:
        """`blocking` for `wait_for`."""

        def __init__(self, method: Callable[..., Any]) -> None: ...

        def coroutine(self, function: Callable[..., T]) -> Callable[..., T]: ...

        def __get__(self, instance: object, owner: type | None = None) -> WaitsFor: ...

else:
    blocking_start = blocking_wait = blocking
