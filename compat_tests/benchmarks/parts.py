"""Measure parts of the broker, and write their tables in docs/benchmarks-internal.md: `make bench-parts`.

python -m compat_tests.benchmarks.parts [--quick] [--output FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from compat_tests.benchmarks import expiry, tap, trace
from compat_tests.benchmarks.cases import Case
from compat_tests.benchmarks.cases_1_0 import CASES
from compat_tests.benchmarks.ladder import climb
from compat_tests.benchmarks.side_by_side.page import INTERNAL
from compat_tests.tools import tables
from fakeamqp import Broker

TRACE = "| | off | on | cost |\n|---|---:|---:|---:|\n"
LADDER = "| | median | 90 % of runs |\n|---|---:|---:|\n"
EXPIRY = """| | {many} messages | {fewer} messages | bytes waiting | bytes afterwards |
|---|---:|---:|---:|---:|
"""


def main() -> None:
    """Run the benchmarks and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer runs, to check that the program works")
    parser.add_argument("--output", type=Path, default=INTERNAL, help="the page to write (%(default)s)")
    options = parser.parse_args()
    many = 20_000 if options.quick else 1_000_000
    parts = {
        "trace": [TRACE, *trace.rows(*((5, 20_000, 1) if options.quick else (400, 200_000, 7)))],
        "tap": [tap.HEAD, *tap.rows(*((1, 4) if options.quick else (7, 100)))],
        "ladder": [LADDER, ladder_row(5 if options.quick else 100)],
        "expiry": [EXPIRY.format(many=f"{many:,}", fewer=f"{many // 10:,}"), *expiry_rows(many)],
        "parts": inside_rows(0.02 if options.quick else 0.4),
    }
    made = {name: "".join(rows) for name, rows in parts.items()}
    page = INTERNAL.read_text("utf-8")
    page = tables.with_tables(page, {name: (lambda text=text: text) for name, text in made.items()})
    options.output.write_text(page, "utf-8")
    print("\n".join(made.values()))


def ladder_row(runs: int) -> str:
    seconds = []
    for run in range(runs + 3):
        with Broker(clock="virtual") as broker:
            start = time.perf_counter()
            climb(broker)
            if run >= 3:
                seconds.append(time.perf_counter() - start)
    most = sorted(seconds)[int(len(seconds) * 0.9)]
    return f"| three hops, eleven minutes | {median(seconds) * 1000:.1f} ms | {most * 1000:.1f} ms |\n"


def expiry_rows(messages: int) -> Iterator[str]:
    for name, dead_lettered in (("dropped", False), ("dead-lettered", True)):
        rates = [
            expiry.measure(each, dead_lettered=dead_lettered).rate for each in (messages, messages // 10)
        ]
        waiting, afterwards = expiry.bytes_per_message(messages // 10, dead_lettered=dead_lettered)
        yield f"| {name} | " + " | ".join(f"{rate:,.0f}" for rate in rates)
        yield f" | {waiting:,.0f} | {afterwards:,.0f} |\n"


def inside_rows(seconds: float) -> Iterator[str]:
    group = ""
    for case in CASES:
        if case.group != group:
            yield "\n" * bool(group) + f"| {case.group} | per second |\n|---|---:|\n"
            group = case.group
        yield f"| {case.name} | {operations_per_second(case, seconds):,.0f} |\n"


def operations_per_second(case: Case, seconds: float) -> float:
    """The best of five runs."""
    run = case.make()
    run()
    best = 0.0
    for _ in range(5):
        calls = 0
        start = now = time.perf_counter()
        while now - start < seconds / 5:
            for _ in range(10):
                run()
            calls += 10
            now = time.perf_counter()
        best = max(best, calls * case.operations / (now - start))
    return best


if __name__ == "__main__":
    main()
