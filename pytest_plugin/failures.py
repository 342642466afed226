"""Where and how a test failed, for the pages of its brokers."""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from fakeamqp.trace import Failure

from . import endpoints, options

if TYPE_CHECKING:
    from .endpoints import AnyEndpoint

__all__ = ["failure_of", "forget", "note", "noted"]

_NOTED: pytest.StashKey[dict[int, Failure]] = pytest.StashKey()


def failure_of(item: pytest.Item, problem: pytest.ExceptionInfo[BaseException], event: int = 0) -> Failure:
    """The failure of a test by an exception; `event` is the number of events of the trace before it."""
    function: Any = getattr(item, "function", None)
    lines: list[str] = []
    first = 1
    # A generated test has no source.
    with suppress(OSError, TypeError):
        lines, first = inspect.getsourcelines(function)
    within = range(first, first + len(lines))
    here = [each.lineno + 1 for each in problem.traceback if each.path == item.path]
    line = next((number for number in reversed(here) if number in within), first)
    return Failure(
        test=item.nodeid,
        text=problem.exconly(tryshort=True),
        file=item.path.name,
        source=tuple(each.rstrip("\n") for each in lines),
        first=first,
        line=line,
        event=event,
    )


def note(item: pytest.Item, problem: pytest.ExceptionInfo[BaseException]) -> None:
    """Keep the first failure of a test until the recordings of its endpoints are written."""
    if "html" not in options.trace_formats(item.config) or options.trace_folder(item.config) is None:
        return
    kept = item.stash.setdefault(_NOTED, {})
    for endpoint in endpoints.of(item):
        if endpoint._recorder is not None and id(endpoint) not in kept:
            count = len(endpoints.trace(item, endpoint).events)
            kept[id(endpoint)] = failure_of(item, problem, count)


def forget(item: pytest.Item) -> None:
    """The run of a test has ended."""
    if _NOTED in item.stash:
        del item.stash[_NOTED]


def noted(item: pytest.Item, endpoint: AnyEndpoint) -> Failure | None:
    """The failure of a test as the page of one of its endpoints shows it; None if it passed."""
    return item.stash.get(_NOTED, {}).get(id(endpoint))
