"""Measure Spark with AMQP, by turns with RabbitMQ where it is installed, and write docs/spark-benchmarks.md.

python -m compat_tests.benchmarks.spark_report [--quick] [--only SECTION] [--runs N] [--rows N] [--events N]
    [--output FILE]
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import pyspark

from compat_tests.benchmarks import load, shards, trace_soak
from compat_tests.benchmarks.spark_routes import PLAIN, ROUTES, Bench, rate
from compat_tests.benchmarks.streaming import KINDS, suite_seconds
from compat_tests.differential import rabbitmq_node
from fakeamqp.spark import local_session

RABBITMQ = ("3.10", "4.3")
OUTPUT = Path(__file__).parents[2] / "docs" / "spark-benchmarks.md"
HEADING = """# Benchmarks of Spark with AMQP

This page has the speed of the Spark source and sink, of a suite of tests and of queries about traces.
`python -m compat_tests.benchmarks.spark_report` writes it. Times depend on the machine and its other load.
The figures of one row were measured in turn. `--only` measures one section again, when the machine may be
faster or slower than for the other sections.

{machine} PySpark {pyspark}, `local[2]`.
"""
ROUTES_HEAD = """
## Routes

Rows per second from the start of a query to its end, in a session that has run such a query before. Messages
are 200 bytes of JSON with a message id, a timestamp and two headers. Publishes are confirmed. The spool is
synced to the disk. The number in brackets is the rate divided by that of pika's plain consumer on the same
broker, measured just before; the last column is the goal for this share with many messages. A streaming query
takes a second or more to start. In this time pika takes tens of thousands of messages.

The clients of the first two rows only count messages, so they show the time of the broker. The first uses
automatic acknowledgements. The second takes all messages and requeues them, as every batch read of a queue
must.

"""
SUITE_HEAD = """
## A suite of tests

Seconds from `pytest` to its end: four tests of a job that parses orders, drops duplicates, totals them by
windows and publishes alerts, with a second query for dead letters. `compat_tests/benchmarks/streaming_suite`
has these tests. The cache of fast mode existed before.

| session | seconds | goal, at most |
|---|---:|---:|
"""
SOAK_HEAD = """
## Traces of a soak

Recordings of a broker under load, about {events:,} events in JSON Lines, are converted to Parquet and
answer every question of `fakeamqp.spark.traces`. Links repeat ten recordings of about 90,000 events each.
Every link is a file and a run of its own. The prototype consisted of single queries over generated rows; its
`conformance` checked one rule of twenty.

"""


def machine() -> str:
    """The interpreter and the processors of this machine."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {os.cpu_count()} processors, {platform.machine()}."


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows, one run: to see whether it works")
    parser.add_argument("--runs", type=int, default=3, help="of each route and suite (default: %(default)s)")
    parser.add_argument(
        "--rows", type=int, default=300_000, help="of the longest routes (default: %(default)s)"
    )
    parser.add_argument("--events", type=int, default=10_000_000, help="of the soak (default: %(default)s)")
    parser.add_argument(
        "--only", choices=("routes", "shards", "suite", "soak"), help="measure this section, keep the others"
    )
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to write (default: %(default)s)")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.rows, options.events = 1, 2_000, 10_000
    sections: dict[str, Callable[[], Iterable[str]]] = {
        "routes": lambda: routes((1_000 if options.quick else 10_000, options.rows), options.runs),
        "shards": lambda: sharded(2_000 if options.quick else 100_000),
        "suite": lambda: suite(options.runs),
        "soak": lambda: soak(options.events),
    }
    if options.only:
        texts = split(options.output.read_text("utf-8"))
        texts[1 + list(sections).index(options.only)] = "".join(sections[options.only]())
    else:
        heading = HEADING.format(machine=machine(), pyspark=pyspark.__version__)
        texts = [heading, *("".join(section()) for section in sections.values())]
    options.output.write_text("".join(texts), "utf-8")
    print(options.output.read_text("utf-8"))


def split(page: str) -> list[str]:
    """The heading of the page, and its sections."""
    heading, *sections = page.split("\n## ")
    return [heading, *(f"\n## {section}" for section in sections)]


def routes(sizes: tuple[int, ...], runs: int) -> Iterator[str]:
    """The section about routes."""
    yield ROUTES_HEAD
    with ExitStack() as stack:
        spark = stack.enter_context(local_session(app_name="benchmarks"))
        folder = Path(stack.enter_context(TemporaryDirectory()))
        benches = {}
        for name, url in stack.enter_context(brokers()).items():
            benches[name] = Bench(spark, url, folder)
            stack.callback(benches[name].close)
        columns = [(name, size) for size in sizes for name in benches]
        yield "| | " + " | ".join(f"{name}, {size:,}" for name, size in columns) + " | share, at least |\n"
        yield "|---|" + "---:|" * (len(columns) + 1) + "\n"
        for route in ROUTES:
            for bench in benches.values():
                rate(bench, route, 1_000)
            rates: dict[tuple[str, int], list[float]] = {column: [] for column in columns}
            shares: dict[tuple[str, int], list[float]] = {column: [] for column in columns}
            for _ in range(runs):
                for name, size in columns:
                    plain = rate(benches[name], PLAIN, size)
                    rates[name, size].append(rate(benches[name], route, size))
                    shares[name, size].append(rates[name, size][-1] / plain)
            cells = [f"{median(rates[each]):,.0f} ({median(shares[each]):.2f})" for each in columns]
            yield f"| {route.name} | " + " | ".join(cells) + f" | {route.least or ''} |\n"
    yield f"\nMedians; runs: {runs}.\n"


def sharded(rows: int) -> Iterator[str]:
    """The section about shards."""
    yield shards.HEAD
    with brokers() as urls:
        yield from shards.table(urls, rows)


def suite(runs: int) -> Iterator[str]:
    """The section about the suite of tests, by kind of session."""
    yield SUITE_HEAD
    seconds: dict[str, list[float]] = {kind.name: [] for kind in KINDS}
    with local_session(fast=True):
        pass  # Fills the cache.
    for run in range(runs):
        for kind in KINDS:
            if kind.most is not None or not run:  # The other one takes minutes.
                seconds[kind.name].append(suite_seconds(kind))
    for kind in KINDS:
        yield f"| {kind.name} | {median(seconds[kind.name]):.1f} | {kind.most or ''} |\n"


def soak(events: int) -> Iterator[str]:
    """The section about traces."""
    yield SOAK_HEAD.format(events=events)
    yield trace_soak.HEAD
    yield from trace_soak.rows(events)


@contextmanager
def brokers() -> Iterator[dict[str, str]]:
    """The brokers that are measured, by name: their URLs."""
    with ExitStack() as stack:
        serving = [stack.enter_context(load.fakeamqp_serving())]
        for series in RABBITMQ:
            if rabbitmq_node.available(series) is None:
                serving.append(stack.enter_context(load.rabbitmq_serving(series)))
        yield {each.name: each.url for each in serving}


if __name__ == "__main__":
    main()
