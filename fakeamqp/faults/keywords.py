"""Checks of keyword arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from fakeamqp.errors import near_match
from fakeamqp.faults.errors import FaultError

__all__ = ["checked"]

P = ParamSpec("P")
T = TypeVar("T")


def checked(method: Callable[P, T]) -> Callable[P, T]:
    """Make a method raise `FaultError` for a misspelled keyword; the text names the nearest one."""
    code = method.__code__
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
