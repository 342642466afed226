"""What the fixtures cost each test that uses them: runs pytest on tests that do nothing.

`python -m compat_tests.benchmarks.side_by_side.fixture_costs NUMBER` prints the median of so many tests for
each of `TESTS`, in microseconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

__all__ = ["TESTS", "measure"]

TESTS = (
    "def test()",
    "def test(amqp_broker)",
    "def test(amqp_broker_session)",
    "def test(amqp_clock)",
    "def test(amqp_faults)",
    "def test(pika_connection)",
    "def test(pika_channel)",
    "async def test()",
    "async def test(amqp_broker)",
    "async def test(aio_pika_connection)",
)
"""The heads of the tests, by which the costs are named."""


def measure(tests: int) -> dict[str, float]:
    """Microseconds of a test with each of the heads, from the set-up to the tear-down, in a new process.

    Raises:
        CalledProcessError: a test failed.
    """
    # Other plugins would add to the costs.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "compat_tests.benchmarks.side_by_side.fixture_costs", str(tests)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    costs: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return costs


class Stopwatch:
    """Plugin that adds up the phases of each test."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.rpartition("::")[2]
        self.seconds[name] += report.duration  # type: ignore[assignment]


def main(tests: int) -> int:
    """Run so many tests of each kind in turn, after one that does not count."""
    lines = ["import pytest"]
    for number in range(tests + 1):
        for kind, head in enumerate(TESTS):
            name = head.replace("test(", f"test_{number}_{kind}(")
            lines += ["@pytest.mark.asyncio"] * head.startswith("async") + [f"{name}: pass"]
    stopwatch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "test_costs.py")
        file.write_text("\n".join(lines))
        plugins = ["-p", "fakeamqp", "-p", "asyncio", "-o", "asyncio_default_fixture_loop_scope=function"]
        code = pytest.main([str(file), f"--rootdir={folder}", "-q", *plugins], plugins=[stopwatch])
    costs = {
        head: median(stopwatch.seconds[f"test_{number}_{kind}"] for number in range(1, tests + 1)) * 1e6
        for kind, head in enumerate(TESTS)
    }
    print(f"\n{json.dumps(costs)}")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
