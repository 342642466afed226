"""Finds fixtures of the project under test.

pytest has no public way to check whether a fixture exists: `getfixturevalue` runs it, and keeps a failure. So
this module reads pytest's internal registry, whose form has not changed since pytest 8.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

__all__ = ["find", "place", "relies_on"]


def find(request: pytest.FixtureRequest, name: str) -> pytest.FixtureDef[Any] | None:
    """The fixture that a test would get by this name, or None."""
    # From the test, not from the node of the fixture's scope, which is above the conftest files.
    found = request._fixturemanager.getfixturedefs(name, request._pyfuncitem)
    return found[-1] if found else None


def relies_on(request: pytest.FixtureRequest, fixture: pytest.FixtureDef[Any], name: str) -> bool:
    """Whether `fixture` depends on the fixture `name`, directly or indirectly."""
    return name in set(_taken(request, fixture, set()))


def place(fixture: pytest.FixtureDef[Any]) -> str:
    """Where the fixture is defined, for messages: `conftest.py:12`."""
    code = getattr(fixture.func, "__code__", None)
    return "elsewhere" if code is None else f"{code.co_filename}:{code.co_firstlineno}"


def _taken(request: pytest.FixtureRequest, fixture: pytest.FixtureDef[Any], seen: set[str]) -> Iterator[str]:
    for name in fixture.argnames:
        if name not in seen:
            seen.add(name)
            yield name
            other = find(request, name)
            if other is not None:
                yield from _taken(request, other, seen)
