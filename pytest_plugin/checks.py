"""Fails a test whose marker asks for the checks of the trace, if these find something."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import endpoints, marker
from .unused_faults import Told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest

    from .endpoints import AnyEndpoint

__all__ = ["problem", "verify", "verify_async"]


class _CheckFailed(Told):
    """The failure of the test, reported by its text and the name of the corresponding error."""

    __module__ = "builtins"
    __qualname__ = __name__ = "CheckFailed"


def verify(item: pytest.Item) -> None:
    """Fail `item` if its marker asks for checks, and these find something in a trace of its endpoints."""
    for endpoint, names, allow in _asked(item):
        with _told(item, endpoint):
            endpoint.expect_no_findings(*names, allow=allow)


async def verify_async(item: pytest.Item) -> None:
    """`verify` for endpoints that run in the loop of the caller."""
    for endpoint, names, allow in _asked(item):
        with _told(item, endpoint):
            await endpoint.expect_no_findings.aio(*names, allow=allow)


def _asked(item: pytest.Item) -> Iterator[tuple[AnyEndpoint, tuple[str, ...], Any]]:
    given = marker.arguments(item)
    if given.get("checks"):
        for endpoint in endpoints.of(item):
            yield endpoint, _names(given), given.get("allow", ())


@contextmanager
def _told(item: pytest.Item, endpoint: AnyEndpoint) -> Iterator[None]:
    """Report findings as the failure of the test."""
    from fakeamqp.trace import CheckFailed, TraceIncomplete

    try:
        yield
    except (CheckFailed, TraceIncomplete) as error:
        said = str(error)
    else:
        return
    one = len(endpoints.of(item)) == 1
    raise _CheckFailed(said if one else f"{endpoints.named(endpoint)}: {said}", pytrace=False) from None


def problem(given: Mapping[str, Any]) -> str:
    """What is wrong with the arguments of a marker; "" if nothing is."""
    if "checks" not in given:
        return f"allow={given['allow']!r} is about checks; add checks=True" if "allow" in given else ""
    checks, allow = given["checks"], given.get("allow", ())
    if not isinstance(checks, bool) and not _are_names(checks):
        return f"checks={checks!r}: give True, or the names of checks"
    if not isinstance(allow, (str, Collection)):
        return f"allow={allow!r}: give the names of rules or reasons"
    if checks and given.get("trace") == 0:
        return f"checks={checks!r} needs the trace, and trace=0 switches it off"
    from fakeamqp.trace.checks import UnknownCheck, UnknownRule
    from fakeamqp.trace.checks.checked import allowed, chosen

    try:
        chosen(_names(given), at_end=True)
        allowed(given.get("allow", ()))
    except UnknownCheck as error:
        return f"checks={checks!r}: {error}"
    except UnknownRule as error:
        return f"allow={allow!r}: {error}"
    return ""


def _are_names(checks: object) -> bool:
    return isinstance(checks, (str, list, tuple, set, frozenset)) and bool(checks)


def _names(given: Mapping[str, Any]) -> tuple[str, ...]:
    checks = given["checks"]
    if isinstance(checks, bool):
        return ()
    return (checks,) if isinstance(checks, str) else tuple(checks)
