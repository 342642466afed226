"""How processes share the suite under pytest-xdist: test by test, but all that starts a Spark in one process.

A Java takes a gigabyte and both processors for seconds. xdist's own groups are written into the ids of tests,
which pytest reads no longer since 9.2; the scheduler here goes by the files that the tests are in.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

__all__ = ["Scheduler"]

_TOGETHER = {
    "spark": (
        "compat_tests/spark/",
        "compat_tests/crashes/",
        "compat_tests/benchmarks/test_trace_soak.py",
        "compat_tests/plugin/test_spark_fixtures.py",
        "examples/spark_",
    ),
    # The tests of each are the results of one run of other suites.
    "qpid": ("compat_tests/clients/test_qpid_python.py",),
    "qpid over 0-9": ("compat_tests/clients/test_qpid_0_9.py",),
    "txamqp": ("compat_tests/clients/test_txamqp.py",),
}


class Scheduler(LoadScopeScheduling):
    """Hands out tests one by one, but together what belongs together. The largest lot is handed out first."""

    def _split_scope(self, nodeid: str) -> str:
        for lot, files in _TOGETHER.items():
            if nodeid.startswith(files):
                return lot
        return nodeid
