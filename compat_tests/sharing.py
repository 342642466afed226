"""How processes share the suite under pytest-xdist: file by file, but all that starts a Spark in two.

A Java takes a gigabyte and both processors for seconds, so the tests of Spark share one. The jobs that are
killed have Javas of their own and wait for them: they run beside it. What the tests of a file share, such as
a RabbitMQ, is made once. Where single tests take long they are handed out one by one. xdist's own groups are
written into the ids of tests, which pytest reads no longer since 9.2; the scheduler here goes by the files of
the tests.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

__all__ = ["Scheduler"]

_SPARK = {
    "compat_tests/spark/": "spark",
    "examples/spark_": "spark",
    "compat_tests/crashes/": "killed jobs",
    "compat_tests/benchmarks/test_trace_soak.py": "killed jobs",
    "compat_tests/plugin/test_spark_sessions.py": "killed jobs",
}
"""The lots of the tests that start a Spark, by the first part of their ids; the longest lot first."""
_ONE_BY_ONE = (
    "compat_tests/benchmarks/",
    "compat_tests/cli/",
    "compat_tests/faults/",
    "compat_tests/fuzz/",
    "compat_tests/pages/",
    "compat_tests/plugin/",
)


class Scheduler(LoadScopeScheduling):
    """Hands out lots as they are found: those of Spark, the longest, first, and what is quick last."""

    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        # Not by the number of tests, which does not say how long they take.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        for start, lot in _SPARK.items():
            if nodeid.startswith(start):
                return lot
        return nodeid if nodeid.startswith(_ONE_BY_ONE) else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: Any) -> None:
        for lot in reversed(_SPARK.values()):
            if lot in self.workqueue:
                self.workqueue.move_to_end(lot, last=False)
        super()._assign_work_unit(node)
