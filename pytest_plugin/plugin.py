"""The hooks through which pytest calls this plugin."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from . import marker, options, report

__all__ = ["pytest_addoption", "pytest_configure", "pytest_runtest_makereport", "pytest_runtest_setup"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the command line options and their ini twins."""
    options.declare(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options, make the marker known, and join hands with pytest-asyncio where it is installed."""
    options.check(config)
    config.addinivalue_line("markers", marker.DESCRIPTION)
    if config.pluginmanager.has_plugin("asyncio"):
        from .fixtures import aio_pika_on_pytest_asyncio

        config.pluginmanager.register(aio_pika_on_pytest_asyncio, "fakeamqp-pytest-asyncio")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a misspelled marker before anything is set up, even if no fixture would have read it."""
    marker.broker_options(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put the timeline of every broker of a failed test into its report."""
    result = yield
    if result.failed:
        result.sections.extend(report.timelines(item))
    if result.when == "teardown":
        report.forget(item)
    return result
