"""Runs clients' suites on RabbitMQ and on the broker: `python -m compat_tests.client_suites [SUITE ...]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from compat_tests.client_suites.differences import problems, problems_of_equals
from compat_tests.client_suites.running import (
    Comparison,
    SuiteError,
    measured,
    measured_in_loops,
    measured_through_proxy,
)
from compat_tests.client_suites.sources import Unavailable, source
from compat_tests.client_suites.suites import SUITES
from compat_tests.client_suites.targets import VERSIONS
from compat_tests.differential.rabbitmq_node import RabbitMQError, available

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run suites and print what differs.

    Returns:
        The exit status: 1 where a test differs that is not in the list, 2 where nothing could be run.
    """
    parser = argparse.ArgumentParser(
        prog="python -m compat_tests.client_suites", description=(main.__doc__ or "").split("\n")[0]
    )
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)} (default: all)")
    parser.add_argument("--version", action="append", choices=VERSIONS, help="a series (default: all)")
    parser.add_argument(
        "--runtimes",
        action="store_true",
        help="run asyncio's suites on the broker in a thread and in their event loops instead",
    )
    parser.add_argument(
        "--proxy",
        action="store_true",
        help=f"run them on RabbitMQ {VERSIONS[-1]} and through a proxy instead, and compare its legs",
    )
    parser.add_argument("--failed", action="store_true", help="print what fails on both, too")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.suites if name not in SUITES]:
        parser.error(f"there is no suite {unknown[0]!r}; there are {', '.join(SUITES)}")
    if options.runtimes and (threads := [name for name in options.suites if not SUITES[name].in_loops]):
        parser.error(f"the tests of {threads[0]} have no event loops")
    try:
        if options.runtimes:
            names = options.suites or [name for name, suite in SUITES.items() if suite.in_loops]
            in_loops = measured_in_loops({SUITES[name]: source(SUITES[name]) for name in names})
            found = [(compared, problems_of_equals(compared)) for compared in in_loops]
        elif options.proxy:
            found = _through_proxy(options.suites or list(SUITES))
        else:
            found = _on_nodes(options.suites or list(SUITES), options.version or VERSIONS)
    except (RabbitMQError, SuiteError, Unavailable) as error:
        print(error, file=sys.stderr)
        return 2
    wrong = 0
    for compared, unlisted in found:
        for side, target in enumerate(compared.targets):
            counts, seconds = compared.counts(side), compared.seconds(side)
            print(f"{compared.suite} {compared.suite.version} on {target}: {counts} in {seconds:.0f} s")
        for test in compared.differing():
            print(compared.explained(test))
        if options.failed:
            for test in compared.outcomes[0]:
                if compared.statuses(test) == ("failed", "failed"):
                    print(compared.explained(test))
        wrong += len(unlisted)
    print(f"{wrong} not as listed" if wrong else "all as listed")
    return 1 if wrong else 0


def _on_nodes(names: Sequence[str], versions: Sequence[str]) -> list[tuple[Comparison, list[str]]]:
    _check(versions)
    found = measured({SUITES[name]: source(SUITES[name]) for name in names}, versions)
    return [(each, problems(version, each)) for version, all_of in found.items() for each in all_of]


def _through_proxy(names: Sequence[str]) -> list[tuple[Comparison, list[str]]]:
    _check(VERSIONS[-1:])
    found = []
    for compared, traffic in measured_through_proxy({SUITES[name]: source(SUITES[name]) for name in names}):
        print(
            f"{compared.suite}: {traffic.connections} connections, {traffic.frames} frames, "
            f"{traffic.heartbeats} heartbeats, {traffic.bytes} bytes; not the same on both legs: "
            f"{len(traffic.problems)}",
            *traffic.problems,
            sep="\n  ",
        )
        found.append((compared, [*problems_of_equals(compared), *traffic.problems]))
    return found


def _check(versions: Sequence[str]) -> None:
    for version in versions:
        if reason := available(version):
            raise RabbitMQError(reason)


if __name__ == "__main__":
    sys.exit(main())
