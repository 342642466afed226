"""From the start of a broker until a first message has gone through it and the broker has stopped.

Measured by `python -m compat_tests.benchmarks.side_by_side.starts`, for docs/benchmarks.md.
A container takes at least as long as the node in it.
"""

from __future__ import annotations

import sys
import time
from statistics import median

from compat_tests.benchmarks.side_by_side import page
from compat_tests.benchmarks.side_by_side.pika_steps import converse
from compat_tests.benchmarks.side_by_side.targets import RABBITMQ, obstacle, running
from compat_tests.reliability import results
from fakeamqp import Broker

__all__ = ["main"]

_OURS = "`Broker` in the process of the test"
_BODY = bytes(100)


def main() -> int:
    """Measure and write the page; returns the exit code."""
    seconds = {_OURS: [_in_process() for _ in range(50)][3:]}
    for target in RABBITMQ:
        if (reason := obstacle(target)) is not None:
            print(f"{target} is not measured: {reason}")
            continue
        seconds[f"a node of {target}"] = [_node(target) for _ in range(3)]
    found = {name: median(each) for name, each in seconds.items()}
    command = "python -m compat_tests.benchmarks.side_by_side.starts"
    results.write(page.STARTS, command, {"seconds": found}, page.FOLDER)
    page.main()
    return 0


def _in_process() -> float:
    begin = time.perf_counter()
    with Broker() as broker:
        converse(broker.url, _BODY)
    return time.perf_counter() - begin


def _node(target: str) -> float:
    begin = time.perf_counter()
    with running(target) as address:
        assert address is not None
        converse(f"amqp://guest:guest@{address.host}:{address.port}/%2F", _BODY)
    return time.perf_counter() - begin


if __name__ == "__main__":
    sys.exit(main())
