"""Run all benchmarks once, interleaved with RabbitMQ where it is installed, and write docs/benchmarks.md.

python -m compat_tests.benchmarks.report [--quick] [--output FILE]
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from compat_tests.benchmarks import expiry, load, tap, trace
from compat_tests.benchmarks.cases import CASES, Case
from compat_tests.benchmarks.cycle import client_cycle, fresh_broker_cycle
from compat_tests.benchmarks.imports import import_seconds
from compat_tests.benchmarks.ladder import climb
from compat_tests.differential import rabbitmq_node
from fakeamqp import Broker

OUTPUT = Path(__file__).parents[2] / "docs" / "benchmarks.md"
HEADING = """# Benchmarks

`python -m compat_tests.benchmarks.report` writes this page. Times depend on the machine and on its load.
Ratios compare medians of measurements that alternate in one run, so the load of the machine affects both
sides equally. `make bench` runs the same measurements one by one and shows their spread.

{machine}
"""
CYCLE = """
## A broker per test

The test starts a broker, connects with pika, declares a queue, publishes with confirm, gets the message,
closes the connection and stops the broker. The other rows show the client's part only, on a broker that is
already running.

| | median | 90 % of runs |
|---|---:|---:|
"""
LOAD = """
## Raw load

Another process publishes encoded messages of 100 bytes as fast as the broker reads them. It counts the
messages that one consumer without acknowledgements receives. `bare loop` is a server that only moves the
same number of bytes: the upper limit of the measurement. `fakeamqp serve` records neither history nor
trace.

"""
TRACE = """
## Trace

Messages per second without a trace and with a full trace of 10,000 events, and the part of the throughput
that the trace costs. All rows except the last use one thread without sockets. They alternate between runs
of a thousand messages with and without a trace, and measure processor time. The cost is the median over the
pairs. The last row uses the raw load from above on two brokers in alternation, and measures elapsed time.

| | off | on | cost |
|---|---:|---:|---:|
"""
TAP = """
## Tap

The part of the throughput that the [tap](glossary.md#tap) costs, without a trace and without a fault that
affects the messages. The method is the same as for the trace. "Nothing installed" compares the package with
a copy that does not test for the tap while it processes a message, in {processes} pairs of processes. The
other columns compare, in one process, a broker with nothing installed and a broker with one of these
faults:

- unrelated rule: `faults.on("queue.delete").drop()`
- rule for other publishes: `faults.on("basic.publish", routing_key="elsewhere").drop()`
- rule that does not fire: `faults.on("basic.publish").after(10**9).drop()`, which has to read every publish
  completely
- network of another connection: `faults.network.on("elsewhere").latency(1)`

{head}"""
IMPORTS = """
## Imports

The time that the import adds to the start of an interpreter, with compiled files and without them.

| | compiled | not compiled |
|---|---:|---:|
"""
LADDER = """
## Virtual time

A message passes through three retry queues with delays of 5 s, 1 min and 10 min, to a real pika consumer.
The test moves the time with `clock.advance`. The time includes the connection and the declarations.

| | median | 90 % of runs |
|---|---:|---:|
"""
EXPIRY = """
The clock advances past messages that expire one millisecond after another. The table shows messages per
second, and the memory per message in bytes before and after the expiry. All messages share one body of 100
bytes.

| | {many} messages | {fewer} messages | bytes waiting | bytes afterwards |
|---|---:|---:|---:|---:|
"""
INSIDE = """
## Parts of the broker

Operations per second, in one thread without sockets.

"""


def main() -> None:
    """Run the benchmarks and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer runs, to check that the program works")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to write (default: %(default)s)")
    options = parser.parse_args()
    many = 20_000 if options.quick else 1_000_000
    processes = 1 if options.quick else 7
    with ExitStack() as stack:
        node = None
        if rabbitmq_node.available() is None:
            node = stack.enter_context(rabbitmq_node.RabbitMQNode(spins=True))
        parts = [
            HEADING.format(machine=machine()),
            CYCLE,
            *cycle_rows(node, 20 if options.quick else 150),
            LOAD,
            *load_rows(node, *((20_000, 1) if options.quick else (300_000, 7))),
            TRACE,
            *trace.rows(*((5, 20_000, 1) if options.quick else (400, 200_000, 7))),
            TAP.format(processes=processes, head=tap.HEAD),
            *tap.rows(processes, 4 if options.quick else 100),
            IMPORTS,
            *import_rows(2 if options.quick else 10),
            LADDER,
            ladder_row(5 if options.quick else 100),
            EXPIRY.format(many=f"{many:,}", fewer=f"{many // 10:,}"),
            *expiry_rows(many),
            INSIDE,
            *inside_rows(0.02 if options.quick else 0.4),
        ]
    options.output.write_text("".join(parts), "utf-8")
    print(options.output.read_text("utf-8"))


def machine() -> str:
    """The interpreter and the processors of this machine."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {os.cpu_count()} processors, {platform.machine()}."


def cycle_rows(node: rabbitmq_node.RabbitMQNode | None, runs: int) -> Iterator[str]:
    with Broker() as broker:
        cycles: dict[str, Callable[[], None]] = {
            "fresh broker, everything": fresh_broker_cycle,
            "running fakeamqp, the client's part": lambda: client_cycle(broker.url),
        }
        if node is not None:
            cycles[f"running RabbitMQ {node.version}, the client's part"] = lambda: client_cycle(node.url)
        seconds: dict[str, list[float]] = {name: [] for name in cycles}
        for run in range(runs + 3):
            for name, cycle in cycles.items():
                start = time.perf_counter()
                cycle()
                if run >= 3:
                    seconds[name].append(time.perf_counter() - start)
    for name, measured in seconds.items():
        most = sorted(measured)[int(len(measured) * 0.9)]
        yield f"| {name} | {median(measured) * 1000:.1f} ms | {most * 1000:.1f} ms |\n"


def load_rows(node: rabbitmq_node.RabbitMQNode | None, messages: int, runs: int) -> Iterator[str]:
    with ExitStack() as stack:
        addresses = [stack.enter_context(load.fakeamqp_serving())]
        if node is not None:
            addresses.append(load.Address(f"RabbitMQ {node.version}", "127.0.0.1", node.port))
        addresses.append(stack.enter_context(load.sink_serving()))
        names = [address.name for address in addresses]
        yield "| messages per second | " + " | ".join(names) + " |"
        yield " fakeamqp / RabbitMQ |\n" if node is not None else "\n"
        yield "|---|" + "---:|" * (len(names) + (node is not None)) + "\n"
        for same_channel in (True, False):
            rates = load.take_turns(addresses, messages, runs, same_channel=same_channel)
            medians = [median(rates[name]) for name in names]
            yield f"| {'same channel number' if same_channel else 'different channel numbers'} | "
            yield " | ".join(f"{rate:,.0f}" for rate in medians) + " |"
            yield f" {medians[0] / medians[1]:.2f} |\n" if node is not None else "\n"
    yield f"\nMedians; runs: {runs}, of {messages:,} messages each.\n"


def import_rows(runs: int) -> Iterator[str]:
    for statement in ("import fakeamqp", "from fakeamqp import Broker"):
        times = [import_seconds(statement, compiled=compiled, runs=runs) for compiled in (True, False)]
        yield f"| `{statement}` | " + " | ".join(f"{seconds * 1000:.0f} ms" for seconds in times) + " |\n"


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
