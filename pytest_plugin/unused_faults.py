"""Fails a test if one of its faults never happened, because the test has not tested what it claims.

A bug of the broker or of a proxy, which it survives, is an error of the test too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from fakeamqp.errors import unread_results

from . import endpoints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.outcomes import Failed

    from fakeamqp.faults import Faults

    from .endpoints import AnyEndpoint

else:
    Failed = pytest.fail.Exception  # The same class by its public name, which type checkers cannot follow.

__all__ = ["Told", "check_failures", "clear", "complaint", "place", "settle", "verify"]

_GRACE = 1.0
"""How many seconds an endpoint may take to process what clients sent before the test ended."""


class Told(Failed):
    """A failure after the test has passed, which points to the test; see `place`."""


class _Unread(Told):
    """The failure of the test, reported by the text and the name of the corresponding warning."""

    __module__ = "builtins"
    __qualname__ = __name__ = "UnreadResult"


class _Unused(Told):
    """The failure of the test, reported by its text and the name of the corresponding error."""

    __module__ = "builtins"
    __qualname__ = __name__ = "UnusedFault"


class _Bug(Told):
    """The error of the test, reported by the text of the log line."""

    __module__ = "builtins"
    __qualname__ = __name__ = "BrokerFailure"


def check_failures(item: pytest.Item) -> None:
    """Raise if an endpoint of `item` has recorded an exception of its own since the last test."""
    failures = [failure for each in endpoints.of(item) for failure in each._engine.failures.untold()]
    if failures:
        raise _Bug("\n".join(f"bug in fakeamqp: {failure}" for failure in failures), pytrace=False)


def verify(item: pytest.Item) -> None:
    """Fail `item` if a fault never happened and is not optional, or if it has not read a result.

    An exception that a callback of the test has raised in the broker is raised first.
    """
    from fakeamqp import FakeAMQPError

    for broker in endpoints.brokers(item):
        if broker._amqp_0_9 is not None:
            broker._amqp_0_9.raise_errors()
        if broker._services is not None:
            with suppress(FakeAMQPError):  # A broker in an event loop cannot wait here.
                broker.wait_until_idle(timeout=_GRACE)
            broker._services.raise_errors()
    for _, faults in _faulty(item):
        faults.raise_errors()
    if unread_results:
        raise _Unread("\n".join(unread_results), pytrace=False)
    said = complaint(item)
    if said:
        raise _Unused(said, pytrace=False)


async def settle(item: pytest.Item) -> None:
    """Let endpoints that run in the loop of the caller process what clients have sent, for `verify`."""
    from fakeamqp import BrokerError

    served = [broker for broker in endpoints.brokers(item) if broker._services is not None]
    for endpoint in (*served, *(faulty for faulty, _ in _faulty(item))):
        with suppress(BrokerError):
            await endpoint.wait_until_idle.aio(_GRACE)


def complaint(item: pytest.Item) -> str:
    """The report of faults of `item` that never happened and are not optional; "" if there are none."""
    said = [(endpoint, _unused(endpoint, faults)) for endpoint, faults in _faulty(item)]
    one = len(endpoints.of(item)) == 1
    return "\n".join(text if one else f"{endpoints.named(each)}: {text}" for each, text in said if text)


def place(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Let a failure that is `Told` point to `item` instead of to the plugin."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if call.excinfo is not None and isinstance(call.excinfo.value, Told) and crash is not None:
        crash.path, crash.lineno = str(item.path), (item.location[1] or 0) + 1


def clear(item: pytest.Item) -> None:
    """Remove all faults of `item`, so that fixtures can close their connections."""
    for _, faults in _faulty(item):
        faults.clear()


def _faulty(item: pytest.Item) -> Iterator[tuple[AnyEndpoint, Faults]]:
    """The endpoints with faults. Reading `endpoint.faults` would import that package for all others."""
    for endpoint in endpoints.of(item):
        if endpoint._faults is not None:
            yield endpoint, endpoint._faults


def _unused(endpoint: AnyEndpoint, faults: Faults) -> str:
    from fakeamqp import FakeAMQPError

    try:
        faults.raise_errors()
    except BaseException as error:  # including pytest's outcome exceptions
        return f"a callback of the test has failed in a fault: {error!r}"
    said = _said(faults)
    if said:
        # Clients do not wait for what they send, so the test may end before it has been read.
        with suppress(FakeAMQPError):
            endpoint.wait_until_idle(timeout=_GRACE)
        said = _said(faults)
    return said


def _said(faults: Faults) -> str:
    from fakeamqp.faults import UnusedFault

    try:
        faults.verify()
    except UnusedFault as unused:
        return str(unused)
    return ""
