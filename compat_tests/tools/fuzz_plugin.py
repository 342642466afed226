"""Pytest plugin: how many examples property tests draw, and how to draw those of a failed test again.

See `compat_tests/fuzz/profile.py`. The plugin is loaded before any test module, because a test reads its
settings when it is defined.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from compat_tests.fuzz.profile import FACTOR, FRESH, load_profile

__all__ = ["TITLE"]

TITLE = "To draw the same examples again"

load_profile()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what is drawn."""
    seed = _seed(config)
    which = "the same at every run" if not FRESH else "new ones" if seed is None else f"seed {seed}"
    return f"property tests: {FACTOR:g} of their examples, {which}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the command that draws the same examples again into the report of a failed test."""
    report = yield
    seed = _seed(item.config)
    if report.failed and FRESH and seed is not None:
        again = f"FAKEAMQP_FUZZ={FACTOR:g} python -m pytest '{item.nodeid}' --hypothesis-seed={seed}"
        report.sections.append((TITLE, again))
    return report


def _seed(config: pytest.Config) -> str | None:
    """What `--hypothesis-seed` says: a number, or that each run has one of its own."""
    given: str | None = config.getoption("--hypothesis-seed", default=None)
    return None if given == "random" else given
