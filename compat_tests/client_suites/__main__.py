"""Runs clients' suites on RabbitMQ and on the broker: `python -m compat_tests.client_suites [SUITE ...]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from compat_tests.client_suites.differences import problems
from compat_tests.client_suites.running import SuiteError, measured
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
    parser.add_argument("--failed", action="store_true", help="print what fails on both, too")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.suites if name not in SUITES]:
        parser.error(f"there is no suite {unknown[0]!r}; there are {', '.join(SUITES)}")
    versions = options.version or VERSIONS
    try:
        for version in versions:
            if reason := available(version):
                raise RabbitMQError(reason)
        chosen = {SUITES[name]: source(SUITES[name]) for name in options.suites or SUITES}
        found = measured(chosen, versions)
    except (RabbitMQError, SuiteError, Unavailable) as error:
        print(error, file=sys.stderr)
        return 2
    wrong = 0
    for version, comparisons in found.items():
        for compared in comparisons:
            for side, target in enumerate(compared.targets):
                counts, seconds = compared.counts(side), compared.seconds(side)
                print(f"{compared.suite} {compared.suite.version} on {target}: {counts} in {seconds:.0f} s")
            for test in compared.differing():
                print(compared.explained(test))
            if options.failed:
                for test in compared.outcomes[0]:
                    if compared.statuses(test) == ("failed", "failed"):
                        print(compared.explained(test))
            wrong += len(problems(version, compared))
    print(f"{wrong} not as listed" if wrong else "all as listed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
