"""The hooks through which pytest calls this plugin."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias

import pytest

from fakeamqp.errors import unread_results

from . import (
    endpoints,
    failures,
    inspecting,
    marker,
    options,
    recordings,
    report,
    session_broker,
    unused_faults,
)
from .fixtures.event_loops import ON_PYTEST_ASYNCIO
from .simulated import chosen as simulated

__all__ = [
    "pytest_addoption",
    "pytest_configure",
    "pytest_exception_interact",
    "pytest_fixture_setup",
    "pytest_generate_tests",
    "pytest_load_initial_conftests",
    "pytest_pyfunc_call",
    "pytest_report_teststatus",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "pytest_terminal_summary",
]

_Status: TypeAlias = "tuple[str, str, str | tuple[str, Any]] | None"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the command line options and the corresponding ini options."""
    options.declare(parser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, object, object]:
    """Set the environment variables of `amqp_env` before anything of the project is imported."""
    options.check_broker(early_config)
    session_broker.set_environment(early_config)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options, register the marker, and register fixtures for pytest-asyncio if it is installed."""
    options.check(config)
    config.addinivalue_line("markers", marker.DESCRIPTION)
    ignored = options.ignored(config)
    if ignored is not None and not hasattr(config, "workerinput"):
        recordings.warn(config, ignored)
    if config.pluginmanager.has_plugin("asyncio"):
        try:
            from .fixtures import on_pytest_asyncio
        except TypeError:  # pytest-asyncio before 0.24, whose fixtures have no loop_scope.
            return
        config.pluginmanager.register(on_pytest_asyncio, ON_PYTEST_ASYNCIO)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let a test run once for each personality if its marker names several."""
    marker.parametrize(metafunc)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a simulated test under its schedules; with `--amqp-compare`, others on both personalities."""
    if simulated.explored(item):
        from .simulated import schedules

        schedules.run_under_all(item, nextitem)
        return True
    if options.compared(item.config) is None:
        return None
    from .comparison import chosen, protocol

    if not chosen.applies(item):
        return None
    protocol.run_on_both(item, nextitem)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail on a misspelled marker before the setup, even if no fixture reads the marker.

    The broker of the session belongs to this test before its fixtures are set up.
    """
    unread_results.clear()
    marker.broker_options(item)
    marker.request_environment(item)
    simulated.request(item)
    if options.real_url_of(item) is not None:
        from . import real_broker

        real_broker.check_needs(item)
    session_broker.begin(item)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Run the asynchronous fixtures of a simulated test in its simulation, before other plugins see them."""
    function = simulated.asynchronous(fixturedef.func)
    if function is None or not simulated.owns(request):
        return (yield)
    from .simulated import runs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixturedef, "func", runs.synchronous(function, request))
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the coroutine of a simulated test in its simulation."""
    if not simulated.applies(pyfuncitem):
        return None
    from .simulated import runs

    runs.test(pyfuncitem)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a passing test if one of its faults never happened, or if the checks of its marker find something.

    A unittest class reports failures and skips only later; they then replace this failure.
    """
    result = yield
    unused_faults.verify(item)
    if marker.arguments(item).get("checks") and not simulated.applies(item):
        from . import checks

        checks.verify(item)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Remove the faults of the test before its fixtures close their connections, which faults could block.

    A bug of a broker is an error here, whether the test has passed or not.
    """
    try:
        unused_faults.clear(item)
    finally:
        result = yield
    unused_faults.check_failures(item)
    if simulated.applies(item):
        from .simulated import schedules

        schedules.verify(item)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the timelines of its brokers to the report of a failed test, and shorten tracebacks."""
    full = item.config.getoption("fulltrace", False)
    if not full and (call.excinfo is not None or getattr(item, "_excinfo", None)):
        from . import tracebacks

        tracebacks.shorten(item, call)
    if call.excinfo is not None:
        report.leave_out_events(item, call.excinfo.value)
        if simulated.applies(item):
            from .simulated import schedules

            schedules.note(item)
    result = yield
    if result.failed:
        if not full and call.excinfo is not None:
            from . import tracebacks

            result.longrepr = tracebacks.text_instead(call) or result.longrepr
            tracebacks.with_cause_first(result, call)
        unused_faults.place(item, call, result)
        if simulated.applies(item):
            from .simulated import schedules

            result.sections.extend(schedules.sections(item))
        result.sections.extend(report.sections(item, result))
        if call.excinfo is not None:
            failures.note(item, call.excinfo)
    if result.when == "teardown":
        session_broker.end(item)
        report.note_recordings(item, result)
        if options.compared(item.config) is not None:
            from .comparison import runs

            runs.note(item, endpoints.brokers(item))
        recordings.end(item)
        endpoints.forget(item)
    return result


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(
    node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object], report: object
) -> None:
    """With `--amqp-inspect`, hold the brokers of a failed test open.

    The last hook: pytest-timeout has stopped its timer, and the debugger of `--pdb` has ended.
    """
    if options.inspected(node.config) and isinstance(node, pytest.Item) and call.excinfo is not None:
        inspecting.hold(node, call.excinfo)


@pytest.hookimpl(wrapper=True)
def pytest_report_teststatus(
    report: pytest.CollectReport | pytest.TestReport, config: pytest.Config
) -> Generator[None, _Status, _Status]:
    """With `--amqp-compare -v`, show the personality of each run."""
    result = yield
    if result is None or options.compared(config) is None:
        return result
    from .comparison import protocol

    category, letter, word = result
    return category, letter, protocol.outcome_word(report, word)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the recordings of failed tests, say where all are, and report what `--amqp-compare` has found."""
    failed = [*terminalreporter.getreports("error"), *terminalreporter.getreports("failed")]
    lines = list(dict.fromkeys(report.recorded(failed)))
    where = report.recordings_line(terminalreporter)
    if lines:
        terminalreporter.section("AMQP recordings")
        for line in lines:
            terminalreporter.write_line(line)
    if where:
        terminalreporter.write_line(where)
    compared = options.compared(terminalreporter.config)
    if compared is not None:
        from .comparison import summary

        summary.write(terminalreporter, compared)
