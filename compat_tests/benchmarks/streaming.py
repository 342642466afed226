"""How long a small suite of streaming tests takes, from the command to its end, by the kind of its session.

The suite is `streaming_suite`: four tests of a job that parses, drops duplicates, totals by windows and
publishes, with a second query for dead letters. Each kind runs in a process of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = ["KINDS", "Kind", "suite_seconds"]

SUITE = Path(__file__).with_name("streaming_suite")
TESTS = 4


@dataclass(frozen=True)
class Kind:
    """A way to have a session: what it is called, how pytest is told, and what the suite should take at most.

    `most` is in seconds on two processors that do nothing else.
    """

    name: str
    arguments: tuple[str, ...]
    most: float | None


KINDS = (
    Kind("a session with Spark's defaults", ("-p", "default_session"), None),
    Kind("amqp_spark", (), 21),
    Kind("amqp_spark, fast mode", ("--amqp-spark-fast",), 12),
)


def suite_seconds(kind: Kind, timeout: float = 900) -> float:
    """Run the suite once, and return how many seconds it took.

    Raises:
        AssertionError: if not all of its tests have passed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "suite")
        shutil.copytree(SUITE, folder, ignore=shutil.ignore_patterns("__pycache__"))
        # Under that name it is no test of this project.
        folder.joinpath("tests_of_alerts.py").rename(folder / "test_alerts.py")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *kind.arguments]
        begin = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(folder), "PYSPARK_PYTHON": sys.executable},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        seconds = time.perf_counter() - begin
    assert f"{TESTS} passed" in done.stdout, done.stdout + done.stderr
    return seconds
