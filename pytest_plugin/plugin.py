"""The hooks through which pytest calls this plugin."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from . import brokers, marker, options, recordings, report, unused_faults

__all__ = [
    "pytest_addoption",
    "pytest_configure",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "pytest_terminal_summary",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the command line options and the corresponding ini options."""
    options.declare(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options, register the marker, and register fixtures for pytest-asyncio if it is installed."""
    options.check(config)
    config.addinivalue_line("markers", marker.DESCRIPTION)
    ignored = options.ignored(config)
    if ignored is not None and not hasattr(config, "workerinput"):
        recordings.warn(config, ignored)
    if config.pluginmanager.has_plugin("asyncio"):
        from .fixtures import aio_pika_on_pytest_asyncio

        config.pluginmanager.register(aio_pika_on_pytest_asyncio, "fakeamqp-pytest-asyncio")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail on a misspelled marker before the setup, even if no fixture reads the marker."""
    marker.broker_options(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a passing test if one of its faults never happened.

    A unittest class reports failures and skips only later; they then replace this failure.
    """
    result = yield
    unused_faults.verify(item)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Remove the faults of the test before its fixtures close their connections, which faults could block."""
    try:
        unused_faults.clear(item)
    finally:
        result = yield
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the timelines of its brokers to the report of a failed test."""
    result = yield
    if result.failed:
        unused_faults.place(item, call, result)
        result.sections.extend(report.sections(item, result))
    if result.when == "teardown":
        brokers.forget(item)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the recordings of failed tests."""
    failed = [*terminalreporter.getreports("error"), *terminalreporter.getreports("failed")]
    lines = list(dict.fromkeys(report.recorded(failed)))
    if lines:
        terminalreporter.section("AMQP recordings")
        for line in lines:
            terminalreporter.write_line(line)
