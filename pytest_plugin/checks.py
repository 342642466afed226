"""Fails a test whose marker asks for the checks of the trace, if these find something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import brokers, marker
from .unused_faults import Told

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

__all__ = ["problem", "verify"]


class _CheckFailed(Told):
    """The failure of the test, reported by its text and the name of the corresponding error."""

    __module__ = "builtins"
    __qualname__ = __name__ = "CheckFailed"


def verify(item: pytest.Item) -> None:
    """Fail `item` if its marker asks for checks, and these find something in a trace of its brokers."""
    given = marker.arguments(item)
    if not given.get("checks"):
        return
    from fakeamqp.trace import CheckFailed, TraceIncomplete

    names, allow = _names(given), given.get("allow", ())
    for broker in brokers.of(item):
        try:
            broker.expect_no_findings(*names, allow=allow)
        except (CheckFailed, TraceIncomplete) as error:
            said = str(error)
        else:
            continue
        one = len(brokers.of(item)) == 1
        raise _CheckFailed(said if one else f"{brokers.named(broker)}: {said}", pytrace=False)


def problem(given: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a marker; "" if nothing is."""
    if "checks" not in given:
        return "allow=... is about checks; add checks=True" if "allow" in given else ""
    from fakeamqp.trace.checks import UnknownCheck, UnknownRule
    from fakeamqp.trace.checks.findings import allowed, chosen

    try:
        chosen(_names(given), at_end=True)
        allowed(given.get("allow", ()))
    except (UnknownCheck, UnknownRule) as error:
        return str(error)
    except TypeError:
        return f"checks={given['checks']!r}: give True, or the names of checks"
    return ""


def _names(given: Mapping[str, Any]) -> tuple[str, ...]:
    checks = given["checks"]
    if isinstance(checks, bool):
        return ()
    return (checks,) if isinstance(checks, str) else tuple(checks)
