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
    """Declare the command line options and their ini twins."""
    options.declare(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options, make the marker known, and join hands with pytest-asyncio where it is installed."""
    options.check(config)
    config.addinivalue_line("markers", marker.DESCRIPTION)
    unheeded = options.unheeded(config)
    if unheeded is not None and not hasattr(config, "workerinput"):
        recordings.warn(config, unheeded)
    if config.pluginmanager.has_plugin("asyncio"):
        from .fixtures import aio_pika_on_pytest_asyncio

        config.pluginmanager.register(aio_pika_on_pytest_asyncio, "fakeamqp-pytest-asyncio")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a misspelled marker before anything is set up, even if no fixture would have read it."""
    marker.broker_options(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that would have passed, if one of its faults never happened.

    A unittest class keeps failures and skips to itself until the report is made; they take the place of this
    one then.
    """
    result = yield
    unused_faults.verify(item)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """End the faults of the test before its fixtures say goodbye to the broker, which might never answer."""
    try:
        unused_faults.clear(item)
    finally:
        result = yield
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what happened in every broker of a failed test into its report."""
    result = yield
    if result.failed:
        unused_faults.place(item, call, result)
        result.sections.extend(report.sections(item, result))
    if result.when == "teardown":
        brokers.forget(item)
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once more where the recordings of failed tests are."""
    failed = [*terminalreporter.getreports("error"), *terminalreporter.getreports("failed")]
    lines = list(dict.fromkeys(report.recorded(failed)))
    if lines:
        terminalreporter.section("AMQP recordings")
        for line in lines:
            terminalreporter.write_line(line)
