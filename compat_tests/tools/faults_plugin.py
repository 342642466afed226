"""Pytest plugin: `--record-faults` writes down what clients do about faults, and the page about it.

What has been seen travels in `user_properties`, so it is the same under xdist.
"""

from __future__ import annotations

import pytest

_PROPERTY = "fault-cell"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("fakeamqp").addoption(
        "--record-faults",
        action="store_true",
        help="write what clients do about faults to compat_tests/faults/expected and docs/faults.md",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Write where there is one process only: not in the workers of xdist."""
    if config.getoption("--record-faults") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Writer(), "faults-writer")


class _Writer:
    """Collects cells, and writes them at the end."""

    def __init__(self) -> None:
        self.seen: dict[str, dict[str, str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a cell of a test that has passed."""
        if report.when == "call" and report.passed:
            for name, value in report.user_properties:
                if name == _PROPERTY:
                    client, fault, cell = value  # type: ignore[misc]
                    self.seen.setdefault(client, {})[fault] = cell

    def pytest_sessionfinish(self) -> None:
        """Write the columns, then the page."""
        from compat_tests.faults import expected
        from compat_tests.faults.catalogue import FAULTS
        from compat_tests.faults.links import LINK_FAULTS
        from compat_tests.faults.page import PAGE, with_tables

        for client, cells in self.seen.items():
            column = expected.read(client)
            column.learn(cells)
            column.versions = expected.installed(client)
            expected.write(client, column, [*FAULTS, *LINK_FAULTS])
        PAGE.write_text(with_tables(PAGE.read_text("utf-8")), encoding="utf-8")
