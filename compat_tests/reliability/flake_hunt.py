"""Look for tests that fail now and then: `make flake-hunt`.

The quick tests run many times, each in another order (`compat_tests/tools/shuffle.py`), with all warnings
as errors, in Python's development mode, with a collector that never rests, in more processes than there are
processors, and beside processes that are always busy. Half of the orders come from fixed seeds, half from
fresh ones. One failure in all runs is one too many. `--record` keeps the runs in `flakes.json`, from which
`docs/reliability.md` is made.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

from compat_tests.reliability import page, results

__all__ = ["NAME", "main"]

NAME = "flakes"
ROOT = Path(__file__).parents[2]
_HOG = "while True: pass"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite as often as asked for. Returns how many runs failed."""
    parser = argparse.ArgumentParser("python -m compat_tests.reliability.flake_hunt", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many times (%(default)s)")
    parser.add_argument("--hogs", type=int, default=os.cpu_count() or 1, help="busy processes (%(default)s)")
    parser.add_argument("--processes", type=int, default=3 * (os.cpu_count() or 1), help="(%(default)s)")
    parser.add_argument("--seed", type=int, action="append", help="this order, instead of all others")
    parser.add_argument("--record", action="store_true", help="keep the runs in the results and on the page")
    parser.add_argument(
        "--add", action="store_true", help="keep the runs of before, and do those that are left"
    )
    parser.add_argument("tests", nargs="*", default=["compat_tests", "examples"], help="(%(default)s)")
    given = parser.parse_args(arguments)
    before = results.load(NAME) if given.add else None
    runs = before["runs"] if before else []
    done = len(runs)
    seeds = given.seed or left(given.runs, [each["seed"] for each in runs])
    with hogs(given.hogs):
        for number, seed in enumerate(seeds, 1):
            runs.append(run(seed, given.processes, given.tests))
            print(f"run {number} of {len(seeds)}: {summary(runs[-1])}", flush=True)
            if given.record or given.add:
                results.write(NAME, "make flake-hunt", {"hogs": given.hogs, "runs": runs})
                page.main()
    return sum(bool(each["failed"]) for each in runs[done:])


def left(number: int, done: Sequence[int]) -> list[int]:
    """The seeds of so many runs, of which some are done: half of the seeds are fixed, half are fresh."""
    fixed = range(1, number // 2 + 1)
    fresh = number - len(fixed) - sum(seed not in fixed for seed in done)
    return [
        *(seed for seed in fixed if seed not in done),
        *(SystemRandom().randrange(number, 2**31) for _ in range(fresh)),
    ]


@contextmanager
def hogs(count: int) -> Iterator[None]:
    """Processes that never wait, until the block ends."""
    busy = [subprocess.Popen([sys.executable, "-c", _HOG]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def run(seed: int, processes: int, tests: Sequence[str]) -> dict[str, Any]:
    """One run in the order of a seed: how many tests passed and were skipped, and which failed."""
    with TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", *tests, "--tier", "quick"]
        command += ["-n", str(processes), "--dist", "loadgroup", "--timeout=600"]
        command += ["-W", "error", "--shuffle", str(seed), f"--junitxml={report}", "-q"]
        environment = {**os.environ, "PYTHONDEVMODE": "1"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        seconds = time.monotonic() - started
        if not report.exists():
            sys.exit(f"pytest made no report:\n{done.stdout}\n{done.stderr}")
        found = {"seed": seed, "commit": results.commit(), "seconds": round(seconds), **read(report)}
    if found["failed"] or done.returncode:
        print(done.stdout, file=sys.stderr)
        found["failed"] = found["failed"] or [f"pytest ended with {done.returncode}"]
    return found


def read(report: Path) -> dict[str, Any]:
    """What a report in JUnit's format says."""
    passed = skipped = 0
    failed = []
    for case in ElementTree.parse(report).iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(f"{case.get('classname')}.{case.get('name')}")
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return {"passed": passed, "skipped": skipped, "failed": failed}


def summary(run: dict[str, Any]) -> str:
    """One line."""
    counts = f"{run['passed']} passed, {run['skipped']} skipped, {len(run['failed'])} failed"
    return "\n    ".join([f"seed {run['seed']}: {counts}, {run['seconds']} s", *run["failed"]])


if __name__ == "__main__":
    sys.exit(main())
