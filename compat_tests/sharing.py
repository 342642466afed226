"""How processes share the suite under pytest-xdist: test by test, but all that starts a Spark in one process.

A Java takes a gigabyte and both processors for seconds. xdist's own groups are written into the ids of tests,
which pytest reads no longer since 9.2; the scheduler here goes by the files that the tests are in.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

__all__ = ["Scheduler"]

_STARTS_SPARK = (
    "compat_tests/spark/",
    "compat_tests/crashes/",
    "compat_tests/benchmarks/test_trace_soak.py",
    "compat_tests/plugin/test_spark_fixtures.py",
    "examples/spark_",
)


class Scheduler(LoadScopeScheduling):
    """Hands out tests one by one, and those on Spark together. The largest lot is handed out first."""

    def _split_scope(self, nodeid: str) -> str:
        return "spark" if nodeid.startswith(_STARTS_SPARK) else nodeid
