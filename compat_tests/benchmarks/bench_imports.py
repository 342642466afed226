"""What importing costs; see `imports`."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pytest_benchmark.fixture import BenchmarkFixture


@pytest.mark.benchmark(group="start of an interpreter")
@pytest.mark.parametrize("statement", ["pass", "import fakeamqp", "from fakeamqp import Broker"])
def bench_import(benchmark: BenchmarkFixture, statement: str) -> None:
    command = [sys.executable, "-c", statement]
    benchmark.pedantic(subprocess.run, args=(command,), kwargs={"check": True}, rounds=10, warmup_rounds=1)
