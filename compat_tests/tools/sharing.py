"""How processes share the suite under pytest-xdist: file by file, but what is slow to start in lots.

A Java takes a gigabyte and both processors for seconds, so the tests of Spark share one. The jobs that are
killed have Javas of their own and wait for them: they run beside it. The RabbitMQ nodes of the differential
tests are started once as well, as are those that the suites of clients run on, the browser of the inspector's
tests, and what else the tests of a file share. Where single tests take long they are handed out one by one.
xdist's own groups are written into the ids of tests, which pytest reads no longer since 9.2; the scheduler
here goes by the files of the tests.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

__all__ = ["Scheduler"]

_LOTS = {
    "compat_tests/spark/": "spark",
    "examples/spark_": "spark",
    "compat_tests/differential/test_header_0_9.py": "header of 0-9",
    "compat_tests/differential/": "nodes",
    "compat_tests/client_suites/": "clients' suites",
    "compat_tests/crashes/": "killed jobs",
    "compat_tests/faults/test_through_proxy.py": "nodes",
    "compat_tests/benchmarks/test_trace_soak.py": "killed jobs",
    "compat_tests/pages/test_inspector_page.py": "inspector page",
    "compat_tests/plugin/test_spark_sessions.py": "killed jobs",
    "compat_tests/unit/test_conformance": "marks of all tests",
    "compat_tests/unit/test_deleted_protocols.py": "deleted protocols",
}
"""The lots of tests that share what is slow to start, by the first part of their ids; the longest first."""
_ONE_BY_ONE = (
    "compat_tests/benchmarks/",
    "compat_tests/cli/",
    "compat_tests/faults/",
    "compat_tests/fuzz/",
    "compat_tests/pages/",
    "compat_tests/plugin/",
)


class Scheduler(LoadScopeScheduling):
    """Hands out lots as they are found: those of Spark and of the nodes, the longest, first."""

    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        # Not by the number of tests, which does not say how long they take.
        config.option.loadscopereorder = False
        # A random order mixes the tests of all files in every process.
        self._shuffled = config.getoption("--shuffle") is not None

    def _split_scope(self, nodeid: str) -> str:
        for start, lot in _LOTS.items():
            if nodeid.startswith(start):
                return lot
        alone = self._shuffled or nodeid.startswith(_ONE_BY_ONE)
        return nodeid if alone else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: Any) -> None:
        for lot in reversed(_LOTS.values()):
            if lot in self.workqueue:
                self.workqueue.move_to_end(lot, last=False)
        super()._assign_work_unit(node)
