"""Run all tests of rules without their bodies: `python -m compat_tests.tools.blanking [PATH...] [-n N]`.

Every rule must be uncovered then. Tests count one by one in the report, so what all empty bodies together do
not show, no single one does: to remove the body of any marked test changes the report. Prints the tests that
count nevertheless, and ends with 1 if there are any.

With `--mute` they have their bodies, and brokers that answer everything and deliver nothing. Tests that pass
there show nothing of a rule about deliveries; `mute.toml` has those that are excused, each with the reason.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

import pytest

from compat_tests.tools.conformance import ROOT, Results, read_catalogues

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDERS = ("protocol", "unit", "broker")
MUTE_FOLDERS = ("protocol",)
EXCUSED = Path(__file__).with_name("mute.toml")
_DELIVERIES = re.compile(r"\b(re)?deliver|\bcredits?\b|prefetch|\bacquires?\b", re.IGNORECASE)
"""What the summary of a rule about deliveries has."""


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


def excused_tests() -> set[str]:
    """The tests that `mute.toml` excuses."""
    with EXCUSED.open("rb") as file:
        groups = tomllib.load(file)["excused"]
    return {f"compat_tests/protocol/{test}" for group in groups for test in group["tests"]}


def passing_without_deliveries(results: Results) -> list[str]:
    """The tests of rules about deliveries that pass without any, and are not excused: `rule: test`.

    A test that is excused and does not pass is in the list, too: its excuse must go.
    """
    excused = excused_tests()
    passing: dict[str, str] = {}
    for catalogue in read_catalogues().values():
        for rule in catalogue.rules.values():
            if _DELIVERIES.search(rule.summary):
                shown = [test for test, each in results.tests(rule.id, "passed") if "wire" in each.kinds]
                passing.update(dict.fromkeys(shown, rule.id))
    ran = {test for rule in results.shown for test, _ in results.tests(rule)}
    wrong = [f"{rule}: {test}" for test, rule in sorted(passing.items()) if test not in excused]
    return wrong + [f"excused without need: {test}" for test in sorted((excused & ran) - passing.keys())]


def main(arguments: list[str]) -> int:
    """Run, and print what counts."""
    parser = argparse.ArgumentParser(prog="python -m compat_tests.tools.blanking", description=__doc__)
    parser.add_argument("path", nargs="*")
    parser.add_argument("--mute", action="store_true", help="with bodies, on brokers that deliver nothing")
    parser.add_argument("-n", type=int, default=2, help="processes (default: 2)")
    options = parser.parse_args(arguments)
    folders = MUTE_FOLDERS if options.mute else FOLDERS
    paths = options.path or [str(ROOT / "compat_tests" / each) for each in folders]
    keeper = _Keeper()
    with tempfile.TemporaryDirectory() as folder:
        spread = ["-n", str(options.n), "--dist", "loadgroup"] if options.n else []
        report = str(Path(folder) / "report.md")
        pytest.main(
            [
                *(*paths, *spread, "-q", "--no-header", "--tb=no", "--timeout=60", "--conformance", report),
                "--mute" if options.mute else "--blank",
            ],
            plugins=[keeper],
        )
    tests = {
        test for rule in keeper.results.shown for test, _ in keeper.results.tests(rule, "empty", "passed")
    }
    wrong = passing_without_deliveries(keeper.results) if options.mute else counting(keeper.results)
    without = "deliveries" if options.mute else "bodies"
    print(
        f"{len(keeper.results.shown)} rules, {len(tests)} tests pass without {without}, {len(wrong)} wrongly"
    )
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong or not tests else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
