from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

# An inner run forgets what it imports. What is imported here it finds: that saves time, and trustme's native
# parts cannot be loaded twice.
import aio_pika  # noqa: F401
import pika  # noqa: F401
import pytest
import trustme  # noqa: F401

import fakeamqp.broker
import fakeamqp.trace.timeline  # noqa: F401

# What pytest-asyncio wants to be told, and warnings that must not be lost in an inner run.
INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
addopts = -p no:cacheprovider -p no:hypothesispytest
filterwarnings =
    error::ResourceWarning
    error::pytest.PytestUnraisableExceptionWarning
    error::pytest.PytestUnhandledThreadExceptionWarning
"""

RunTests = Callable[..., pytest.RunResult]


@pytest.fixture
def run_tests(pytester: pytest.Pytester) -> RunTests:
    """Write a test module, run pytest on it inside this process, and return the result."""

    def run(source: str, *arguments: str) -> pytest.RunResult:
        pytester.makeini(INI)
        pytester.makepyfile(test_inner=dedent(source))
        return pytester.runpytest_inprocess(*arguments)

    return run


@pytest.fixture
def run_tests_apart(pytester: pytest.Pytester) -> RunTests:
    """The same in a process of its own."""

    def run(source: str, *arguments: str) -> pytest.RunResult:
        pytester.makeini(INI)
        pytester.makepyfile(test_inner=dedent(source))
        return pytester.runpytest_subprocess(*arguments, timeout=120)

    return run
