"""The traceback of an error of fakeamqp ends at the line of the test."""

from __future__ import annotations

import importlib
import re

import pytest

from compat_tests.plugin.conftest import WriteTests
from compat_tests.tools.api_page import MODULES, names

FRAME = re.compile(r"(fakeamqp|pytest_plugin)/\S+\.py:\d+")
"""A line of a traceback with a place in the packages of this project."""

WAITS = """
    def test_wait(amqp_broker):
        amqp_broker.queue("q").wait_for(ready=1, timeout=0.01)  # the line

    def test_expectation(amqp_broker):
        amqp_broker.expect_published(timeout=0.01)  # the line

    def test_view(amqp_broker):
        amqp_broker.queue("q").ready  # the line

    def test_fault(amqp_faults):
        amqp_faults.on("publish")  # the line

    def test_coroutine(amqp_broker):
        asyncio.run(amqp_broker.expect_published.aio(timeout=0.01))  # the line

    def test_missing_definitions(amqp_broker):
        amqp_broker.load_definitions("no.json")  # the line

    def test_wrong_definitions(amqp_broker):
        arguments = {"x-max-length": "many"}
        amqp_broker.load_definitions({"queues": [{"name": "q", "arguments": arguments}]})  # the line

    def test_wrong_policy(amqp_broker):
        entry = {"name": "p", "pattern": "(", "definition": {"max-length": 1}}
        try:
            amqp_broker.load_definitions({"policies": [entry]})  # the line
        except Exception as problem:
            raise RuntimeError("the test's own error")  # the line

    def test_predicate(amqp_broker):
        amqp_broker.wait_for(
            lambda: amqp_broker.exchange("x").bindings  # the line
        )

    class TestCase(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def take(self, amqp_broker):
            self.broker = amqp_broker

        def test_case(self):
            self.broker.publish(5)  # the line
"""


def test_traceback_of_an_error_has_no_frame_of_fakeamqp(write_tests: WriteTests) -> None:
    result = write_tests(WAITS).run(failed=10)
    lines = result.stdout.lines
    assert sum(line.startswith(">") and line.endswith("# the line") for line in lines) == 11
    assert [line for line in lines if FRAME.search(line)] == []
    assert {
        line.split(":")[0].split()[-1] for line in lines if line.startswith("E   ") and "fakeamqp." in line
    } == {
        "fakeamqp.WaitTimeout",
        "fakeamqp.errors.NotPublished",
        "fakeamqp.errors.NoSuchQueue",
        "fakeamqp.errors.NoSuchExchange",
        "fakeamqp.errors.BadBody",
        "fakeamqp.BrokerError",
        "fakeamqp.errors.DefinitionsError",
        "fakeamqp.faults.FaultError",
    }


def test_full_trace_option_shows_frames_of_fakeamqp(write_tests: WriteTests) -> None:
    result = write_tests(WAITS).run(
        "--full-trace", "-k", "test_wait", failed=1, said=["*handles.py:*: WaitTimeout"]
    )
    assert [line for line in result.stdout.lines if FRAME.search(line)]


def test_bugs_keep_their_frames(write_tests: WriteTests) -> None:
    write_tests("""
        def test_it(amqp_broker, monkeypatch):
            monkeypatch.setattr("fakeamqp.inspect.handles.find_queue", lambda *_: 1 / 0)
            amqp_broker.queue("q").ready
    """).run(failed=1, said=["*handles.py:*", "*ZeroDivisionError"])


def test_a_fixture_that_fails_reports_the_text(write_tests: WriteTests) -> None:
    result = write_tests("""
        @pytest.mark.amqp(host="192.0.2.1")
        def test_it(amqp_broker):
            pass
    """).run(errors=1)
    lines = result.stdout.lines
    at = next(number for number, line in enumerate(lines) if "ERROR at setup of test_it" in line)
    assert lines[at + 1].startswith("fakeamqp.errors.CannotListen: ")


@pytest.mark.parametrize("module", [name for name in MODULES if not name.startswith("fakeamqp.spark")])
def test_errors_have_the_name_under_which_they_are_imported(module: str) -> None:
    for name, value in names(importlib.import_module(module)).items():
        if isinstance(value, type) and issubclass(value, BaseException):
            assert value.__module__ in MODULES, name
            assert getattr(importlib.import_module(value.__module__), name) is value


SPARK = '''
    TEXT = """Failed to initialize Python data source writer: Traceback (most recent call last):
      File "columns.py", line 7, in find_columns
    fakeamqp.spark.errors.ColumnError: no column 'rooting_key'; did you mean 'routing_key'?
     SQLSTATE: 38000"""

    class AnalysisException(Exception):
        __module__ = "pyspark.errors.exceptions.captured"

    def test_write(amqp_broker):
        raise AnalysisException(TEXT)
'''


@pytest.mark.parametrize("full", [False, True], ids=["short", "full"])
def test_an_error_of_spark_begins_with_its_cause(write_tests: WriteTests, full: bool) -> None:
    result = write_tests(SPARK).run(*["--full-trace"] * full, failed=1)
    lines = [line for line in result.outlines if line.startswith("E ")]
    cause = "fakeamqp.spark.errors.ColumnError: no column 'rooting_key'; did you mean 'routing_key'?"
    if full:
        assert "SQLSTATE" in "\n".join(lines)
    else:
        assert lines == [f"E   {cause}", "E   (AnalysisException of Spark; --full-trace shows all of it)"]
        result.stdout.fnmatch_lines([f"FAILED *::test_write - {cause[:21]}*"])
