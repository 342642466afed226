from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

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
IMPORTS = "import asyncio, unittest, aio_pika, pika, pytest\n"


@dataclass(frozen=True)
class InnerTests:
    """A test module that pytest can be run on.

    A run is compared with what is expected: `outcomes` as `assert_outcomes` takes them, `said` lines of the
    output as patterns, `usage_error` what pytest says of options with which it does not start.
    """

    pytester: pytest.Pytester

    def run(self, *options: str, **expected: Any) -> pytest.RunResult:
        """Run them inside this process."""
        gc.collect()  # Event loops that older pytest-asyncio left open would fail these tests.
        return self._check(self.pytester.runpytest_inprocess(*options), **expected)

    def run_apart(self, *options: str, **expected: Any) -> pytest.RunResult:
        """Run them in a process of their own."""
        return self._check(self.pytester.runpytest_subprocess(*options, timeout=120), **expected)

    def _check(
        self,
        result: pytest.RunResult,
        said: Sequence[str] = (),
        usage_error: Sequence[str] = (),
        **outcomes: int,
    ) -> pytest.RunResult:
        if outcomes:
            result.assert_outcomes(**outcomes)
        if said:
            result.stdout.fnmatch_lines(said)
        if usage_error:
            assert result.ret == pytest.ExitCode.USAGE_ERROR
            result.stderr.fnmatch_lines(usage_error)
        return result


WriteTests = Callable[[str], InnerTests]


@pytest.fixture
def write_tests(pytester: pytest.Pytester) -> WriteTests:
    """Writes a test module, `test_inner.py`, whose first line imports what most of them need."""

    def write(source: str) -> InnerTests:
        pytester.makeini(INI)
        imports = "" if "from __future__" in source else IMPORTS
        pytester.makepyfile(test_inner=imports + dedent(source).lstrip("\n"))
        return InnerTests(pytester)

    return write
