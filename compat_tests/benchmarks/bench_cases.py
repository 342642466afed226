"""Codecs, routing, settling and whole conversations inside the process."""

from __future__ import annotations

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compat_tests.benchmarks.cases import Case
from compat_tests.benchmarks.cases_0_10 import CASES


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=pytest.mark.benchmark(group=case.group), id=case.name) for case in CASES],
)
def bench_case(benchmark: BenchmarkFixture, case: Case) -> None:
    benchmark.extra_info["operations"] = case.operations
    benchmark(case.make())
