"""A fault that never happened fails its test: the test has not tested what it says."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from . import brokers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.outcomes import Failed

    from fakeamqp import Broker
    from fakeamqp.faults import Faults

else:
    Failed = pytest.fail.Exception  # The same, by its public name, which type checkers cannot follow.

__all__ = ["clear", "complaint", "place", "verify"]

_GRACE = 1.0
"""How many seconds a broker has to deal with what clients sent before the test was over."""


class _Unused(Failed):
    """How the test fails: with no more than a text, and under the name of the error that it stands for."""

    __module__ = "builtins"
    __qualname__ = __name__ = "UnusedFault"


def verify(item: pytest.Item) -> None:
    """Fail `item` if there are faults that never happened and are not optional.

    What a function of the test's has raised, where nobody was there to be told, comes first.
    """
    for broker in brokers.of(item):
        if broker._amqp_0_9 is not None:
            broker._amqp_0_9.raise_errors()
    for _, faults in _faulty(item):
        faults.raise_errors()
    said = complaint(item)
    if said:
        raise _Unused(said, pytrace=False)


def complaint(item: pytest.Item) -> str:
    """What to say of faults of `item` that never happened and are not optional; "" where there are none."""
    said = [(broker, _unused(broker, faults)) for broker, faults in _faulty(item)]
    one = len(brokers.of(item)) == 1
    return "\n".join(text if one else f"{brokers.named(broker)}: {text}" for broker, text in said if text)


def place(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Say that what `verify` complains of is where `item` is, and not where it has raised its error."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if call.excinfo is not None and isinstance(call.excinfo.value, _Unused) and crash is not None:
        crash.path, crash.lineno = str(item.path), (item.location[1] or 0) + 1


def clear(item: pytest.Item) -> None:
    """End all faults of `item`, so that fixtures can close what they have opened."""
    for _, faults in _faulty(item):
        faults.clear()


def _faulty(item: pytest.Item) -> Iterator[tuple[Broker, Faults]]:
    """The brokers whose faults somebody has asked for; asking for them here would import a whole room."""
    for broker in brokers.of(item):
        if broker._faults is not None:
            yield broker, broker._faults


def _unused(broker: Broker, faults: Faults) -> str:
    from fakeamqp import BrokerError

    try:
        faults.raise_errors()
    except BaseException as error:  # of whatever kind: pytest has some of its own
        return f"a function of the test has failed in a fault: {error!r}"
    said = _said(faults)
    if said:
        # A client need not wait for what it sends, so the test may be over before the broker has read it.
        with suppress(BrokerError):
            broker.wait_until_idle(timeout=_GRACE)
        said = _said(faults)
    return said


def _said(faults: Faults) -> str:
    from fakeamqp.faults import UnusedFault

    try:
        faults.verify()
    except UnusedFault as unused:
        return str(unused)
    return ""
