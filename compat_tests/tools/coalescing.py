"""Pytest plugin: `--coalescing always` and `never` change when brokers leave clients alone for a moment.

What a test sees must not depend on it.
"""

from __future__ import annotations

import pytest

from fakeamqp.runtime import ThreadEngine
from fakeamqp.runtime.connection_driver import ConnectionDriver
from fakeamqp.runtime.thread.coalescing import Coalescing

__all__ = ["Always", "Never"]


class Always(Coalescing):
    """Every client is left alone after all its input."""

    def streams(self, driver: ConnectionDriver) -> bool:
        """All do."""
        return True

    def worth_it(self, driver: ConnectionDriver, came: int) -> bool:
        """It was, if anything came."""
        return came > 0


class Never(Coalescing):
    """All input is processed at once."""

    def streams(self, driver: ConnectionDriver) -> bool:
        """None does."""
        return False


HABITS = {"always": Always, "never": Never, "learned": None}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--coalescing",
        choices=HABITS,
        default="learned",
        help="when brokers leave clients alone",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Change the habit of all brokers."""
    ThreadEngine.coalescing = HABITS[config.getoption("--coalescing")]
