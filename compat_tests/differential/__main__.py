"""Compare the broker with RabbitMQ: `python -m compat_tests.differential --version 4.3 'frame/*'`."""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from compat_tests.differential.comparison import SERIES, Outcome, all_cases, fits, side_by_side
from compat_tests.differential.differences import Lists, problem
from compat_tests.differential.rabbitmq_node import RabbitMQError, available
from fakeamqp.model.personality import PERSONALITIES


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen cases on RabbitMQ and on the broker, and print those whose outcomes differ.

    Returns:
        The exit status: 0 where all is as the lists of known differences say, 1 where it is not, 2 without a
        node.
    """
    parser = argparse.ArgumentParser(
        prog="python -m compat_tests.differential", description=(main.__doc__ or "").split("\n")[0]
    )
    parser.add_argument("cases", nargs="*", default=["*"], help="ids of cases; * stands for anything")
    parser.add_argument(
        "--version", action="append", choices=SERIES, help="a series of RabbitMQ; default: all at hand"
    )
    parser.add_argument("--personality", choices=PERSONALITIES, help="of the broker; default: of the series")
    parser.add_argument("--permit", action="append", default=[], help="a deprecated feature that both permit")
    parser.add_argument("--deny", action="append", default=[], help="a deprecated feature that both deny")
    parser.add_argument("--all", action="store_true", help="print the cases that are equal as well")
    parser.add_argument("--new", action="store_true", help="print only what the lists do not say")
    parser.add_argument("--update", action="store_true", help="write the lists of known differences anew")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the cases that differ to a file")
    options = parser.parse_args(arguments)
    if options.update and (options.personality or options.permit or options.deny):
        parser.error("the lists are about the personality of each series, with nothing permitted or denied")
    chosen = [
        case for case in all_cases().values() if any(fits(pattern, case.id) for pattern in options.cases)
    ]
    if not chosen:
        parser.error(f"there is no case {' or '.join(options.cases)}")

    def measured(series: str) -> Measured:
        with side_by_side(
            series, personality=options.personality, permit=options.permit, deny=options.deny
        ) as both:
            found = both.compare_all(chosen, lambda case, outcome: problem(series, case.id, outcome))
            return Measured(series, both.node.version, both.personality, found)

    logging.disable()  # The broker tells of every broken client.
    wanted = options.version or [series for series in SERIES if available(series) is None]
    if not wanted:
        print(*{str(available(series)) for series in SERIES}, sep="\n", file=sys.stderr)
        return 2
    try:
        with ThreadPoolExecutor(len(wanted)) as pool:
            results = list(pool.map(measured, wanted))
    except RabbitMQError as error:
        print(error, file=sys.stderr)
        return 2
    for result in results:
        result.show(everything=options.all, listed=not options.new)
    if options.json is not None:
        content = {
            each.series: {
                "version": each.version,
                "differing": {k: v._asdict() for k, v in each.differing.items()},
            }
            for each in results
        }
        options.json.write_text(json.dumps(content, indent=1) + "\n")
    if options.update:
        Lists.read().updated({each.series: each.outcomes for each in results}).write()
    return 1 if any(each.problems for each in results) else 0


class Measured(NamedTuple):
    """What came of the cases on one series."""

    series: str
    version: str
    personality: str
    outcomes: dict[str, Outcome]

    @property
    def differing(self) -> dict[str, Outcome]:
        return {case_id: outcome for case_id, outcome in self.outcomes.items() if outcome.differs}

    @property
    def problems(self) -> list[str]:
        """The cases that are not as the lists say."""
        return [
            case_id for case_id, outcome in self.outcomes.items() if problem(self.series, case_id, outcome)
        ]

    def show(self, *, everything: bool, listed: bool) -> None:
        """Print the cases, and how many are equal."""
        unlisted = set(self.problems)
        for case_id, outcome in self.outcomes.items():
            if case_id in unlisted or everything or (listed and outcome.differs):
                notes = ("" if outcome.differs else "equal", "not as listed" if case_id in unlisted else "")
                print(f"{case_id} on {self.series}: {', '.join(filter(None, notes)) or 'listed'}\n{outcome}")
        print(
            f"RabbitMQ {self.version} and {self.personality}: "
            f"{len(self.outcomes) - len(self.differing)} of {len(self.outcomes)} cases equal, "
            f"{len(self.differing)} differ, {len(unlisted)} are not as listed"
        )


if __name__ == "__main__":
    sys.exit(main())
