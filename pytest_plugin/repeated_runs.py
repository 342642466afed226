"""Runs of a test before the one that pytest is told about."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Literal

import pytest

from . import endpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["forget", "keeping_parents", "run_quietly"]


def forget(item: pytest.Item) -> None:
    """Remove what a run leaves in `item`: its output, and the instance of a test class."""
    item._report_sections.clear()
    if isinstance(item, pytest.Function) and getattr(item, "_instance", None) is not None:
        item._obj = None
        del item._instance


def keeping_parents(item: pytest.Item) -> pytest.Item:
    """A "next item" for the teardown of `item` that leaves the fixtures of its parents set up."""
    return copy.copy(item)


def run_quietly(item: pytest.Function) -> BaseException | None:
    """Run `item` once, without reports, and without the hooks that look at failures, such as `--pdb`.

    Returns:
        The first exception of the setup, the test and the teardown; None if it passes.
    """
    forget(item)
    properties = list(item.user_properties)
    if not item._request:
        item._initrequest()
    errors = [error for error in _phases(item) if error is not None]
    item._request = False  # type: ignore[assignment]
    item.funcargs = None  # type: ignore[assignment]
    item.user_properties[:] = properties
    forget(item)
    endpoints.forget(item)
    return errors[0] if errors else None


def _phases(item: pytest.Function) -> Iterator[BaseException | None]:
    hooks = item.ihook
    setup = _error(lambda: hooks.pytest_runtest_setup(item=item), "setup")
    yield setup
    if setup is None:
        yield _error(lambda: hooks.pytest_runtest_call(item=item), "call")
    following = keeping_parents(item)
    yield _error(lambda: hooks.pytest_runtest_teardown(item=item, nextitem=following), "teardown")


def _error(hook: Callable[[], object], when: Literal["setup", "call", "teardown"]) -> BaseException | None:
    call = pytest.CallInfo.from_call(hook, when, reraise=(KeyboardInterrupt, pytest.exit.Exception))
    return None if call.excinfo is None else call.excinfo.value
