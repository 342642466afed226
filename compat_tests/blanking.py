"""Run all tests of rules without their bodies: `python -m compat_tests.blanking [PATH...] [-n PROCESSES]`.

Every rule must be uncovered then. Tests count one by one in the report, so what all empty bodies together do
not show, no single one does: to remove the body of any marked test changes the report. Prints the tests that
count nevertheless, and ends with 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import pytest

from compat_tests.conformance import ROOT, Results

FOLDERS = ("protocol", "unit", "broker")


class _Keeper:
    """Keeps the results of a run."""

    results = Results()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Take them from the reporter."""
        reporter = session.config.pluginmanager.get_plugin("conformance-reporter")
        if reporter is not None:
            self.results = reporter.results


def counting(results: Results) -> list[str]:
    """The tests of a run without bodies that count all the same: `rule: test`."""
    return [f"{rule}: {test}" for rule in sorted(results.shown) for test, _ in results.tests(rule, "passed")]


def main(arguments: list[str]) -> int:
    """Run, and print what counts."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.blanking", description=__doc__)
    parser.add_argument("path", nargs="*", default=[str(ROOT / "compat_tests" / each) for each in FOLDERS])
    parser.add_argument("-n", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    keeper = _Keeper()
    with tempfile.TemporaryDirectory() as folder:
        spread = ["-n", str(options.n), "--dist", "loadgroup"] if options.n else []
        report = str(Path(folder) / "report.md")
        pytest.main(
            [*options.path, *spread, "-q", "--no-header", "--tb=line", "--blank", "--conformance", report],
            plugins=[keeper],
        )
    tests = {
        test for rule in keeper.results.shown for test, _ in keeper.results.tests(rule, "empty", "passed")
    }
    wrong = counting(keeper.results)
    print(f"{len(keeper.results.shown)} rules, {len(tests)} tests without bodies, {len(wrong)} count even so")
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong or not tests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
