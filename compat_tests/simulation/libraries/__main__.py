"""Runs real libraries under many schedules: `python -m compat_tests.simulation.libraries`.

Without arguments it runs every workload under 2 000 schedules, which takes an hour or two, and writes the
results to `results.json` and the tables of docs/simulation-findings.md. With names it runs these workloads
only; with fewer schedules it prints what it finds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from compat_tests.simulation.libraries import catalogue, page
from compat_tests.simulation.libraries.running import Outcome, run

SCHEDULES = 2000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run workloads; the exit status is 1 if there is a failure that is not known."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.simulation.libraries")
    parser.add_argument("workloads", nargs="*", help="names, or parts of them; all by default")
    parser.add_argument("--schedules", type=int, default=SCHEDULES, metavar="N", help="2000 by default")
    parser.add_argument("--seed", type=int, metavar="N", help="only this seed; prints the failure in full")
    parser.add_argument("--list", action="store_true", help="list the workloads")
    parser.add_argument("--page", action="store_true", help="only write the page from the results")
    chosen = parser.parse_args(arguments)
    if chosen.page:
        page.write()
        return 0
    named = [
        workload
        for workload in catalogue.workloads()
        if not chosen.workloads or any(part in workload.name for part in chosen.workloads)
    ]
    for module, distribution in catalogue.missing().items():
        print(f"without the workloads of {module}: {distribution} is not installed")
    if chosen.list:
        for workload in named:
            print(f"{workload.name}: {workload.promise}")
        return 0
    seeds = range(chosen.schedules) if chosen.seed is None else [chosen.seed]
    keeps = chosen.seed is None and chosen.schedules >= SCHEDULES
    unknown = False
    for workload in named:
        before = time.monotonic()
        outcome = run(workload, seeds)
        _print(outcome, time.monotonic() - before, in_full=chosen.seed is not None)
        unknown = unknown or bool(outcome.unknown)
        if keeps:
            page.keep(outcome)
    if keeps:
        page.write()
    return int(unknown)


def _print(outcome: Outcome, seconds: float, in_full: bool) -> None:
    failed = sum(map(len, outcome.seeds.values()))
    print(f"{outcome.workload.name}: {failed} of {outcome.schedules} fail ({seconds:.0f} s)", flush=True)
    for kind, seeds in outcome.seeds.items():
        known = outcome.workload.known.get(kind, "not known")
        print(f"  {kind} ({known}): {len(seeds)} seeds, {', '.join(map(str, seeds[:8]))}", flush=True)
        if in_full:
            example = outcome.examples[kind]
            print("\n".join(example.faults))
            print(example.failure.text)


if __name__ == "__main__":
    sys.exit(main())
