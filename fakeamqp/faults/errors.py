"""Errors in the use of faults, and the checks that raise them. They concern the test, never the peer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import CO_VARKEYWORDS
from math import isfinite
from typing import ParamSpec, TypeVar

from fakeamqp.errors import FakeAMQPError, WaitTimeout, near_match

P = ParamSpec("P")
T = TypeVar("T")


class FaultError(FakeAMQPError):
    """A fault is not possible: a name is misspelled, or an action does not fit its method."""

    __module__ = "fakeamqp.faults"


class FaultNotSeen(WaitTimeout):
    """A fault has not happened as often as `wait` expected; the text lists near misses."""

    __module__ = "fakeamqp.faults"


class UnusedFault(FakeAMQPError):
    """Faults were installed and never happened, so the test has not tested them."""

    __module__ = "fakeamqp.faults"


def check_possible(name: str, impossible: Mapping[str, str]) -> None:
    """Raise `FaultError` if this broker cannot cause the fault; `impossible` gives the reason by name."""
    if name in impossible:
        raise FaultError(f"{name}() is not possible: {impossible[name]}")


def check_channel(number: object) -> None:
    """Raise `FaultError` unless a frame can have this channel."""
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 0xFFFF:
        raise FaultError(f"a channel is a number from 0 to 65535, not {number!r}")


def check_count(said: str, n: object, least: int = 1) -> None:
    """Raise `FaultError` unless `n` is a whole number from `least` on. `said` begins the sentence."""
    if isinstance(n, bool) or not isinstance(n, int) or n < least:
        raise FaultError(f"{said} a whole number from {least} on, not {n!r}")


def check_number(said: str, n: object, *, above: bool = False) -> None:
    """Raise `FaultError` unless `n` is a finite number from 0 on, or (`above`) above it."""
    number = isinstance(n, int | float) and not isinstance(n, bool) and isfinite(n)
    if not number or n < 0 or (above and n == 0):  # type: ignore[operator]
        raise FaultError(f"{said} {'above 0' if above else 'from 0 on'}, not {n!r}")


def checked(method: Callable[P, T]) -> Callable[P, T]:
    """Make a method raise `FaultError` for a misspelled keyword; the text names the nearest one.

    A method that takes any keyword checks them itself.
    """
    code = method.__code__
    if code.co_flags & CO_VARKEYWORDS:
        return method
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    owner = method.__qualname__.partition(".")[0].lower()
    called = f"network.{method.__name__}" if owner == "network" else method.__name__

    @wraps(method)
    def call(*args: P.args, **keywords: P.kwargs) -> T:
        for name in keywords:
            if name not in known:
                hint = near_match(name, known) if known else ", and takes none at all"
                raise FaultError(f"{called}() has no argument {name!r}{hint}")
        return method(*args, **keywords)

    return call
