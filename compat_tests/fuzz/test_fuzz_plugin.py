"""A failed property test says how to see it fail again, and that command does show it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SOURCE = """
    from hypothesis import given, strategies as st
    from compat_tests.fuzz.profile import examples

    drawn = []

    @examples(40)
    @given(st.integers(0, 10**30))
    def test_draw(number):
        drawn.append(number)

    @examples(40)
    @given(st.integers(0, 10**30))
    def test_fail(number):
        assert drawn == []
"""


def run(pytester: pytest.Pytester, factor: str | None, *args: str) -> pytest.RunResult:
    environment = {name: value for name, value in os.environ.items() if name != "FAKEAMQP_FUZZ"}
    environment |= {"PYTHONPATH": str(ROOT)} | ({"FAKEAMQP_FUZZ": factor} if factor else {})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "compat_tests.tools.fuzz_plugin",
        "-p",
        "no:cacheprovider",
        *args,
    ]
    done = subprocess.run(command, cwd=pytester.path, env=environment, capture_output=True, text=True)
    return pytest.RunResult(done.returncode, done.stdout.splitlines(), done.stderr.splitlines(), 0)


@pytest.fixture(autouse=True)
def property_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_a=SOURCE)


def drawn(result: pytest.RunResult) -> str:
    return re.findall(r"assert \[.*\] == \[\]", str(result.stdout))[0]


def test_printed_command_draws_the_same_examples_again(pytester: pytest.Pytester) -> None:
    result = run(pytester, "1", "--hypothesis-seed=77")
    result.stdout.fnmatch_lines(["property tests: 1 of their examples, seed 77"])
    result.stdout.fnmatch_lines(
        [
            "*To draw the same examples again*",
            "FAKEAMQP_FUZZ=1 python -m pytest 'test_a.py::test_fail' --hypothesis-seed=77",
        ]
    )
    result.stdout.fnmatch_lines(["*@reproduce_failure(*"])
    assert drawn(run(pytester, "1", "--hypothesis-seed=77")) == drawn(result)
    assert drawn(run(pytester, "1", "--hypothesis-seed=78")) != drawn(result)


def test_default_run_draws_the_same_tenth_of_the_examples(pytester: pytest.Pytester) -> None:
    result = run(pytester, None)
    result.stdout.fnmatch_lines(["property tests: 0.1 of their examples, the same at every run"])
    result.stdout.no_fnmatch_line("*To draw the same examples again*")
    assert drawn(run(pytester, None)) == drawn(result)
