"""The protocol tests that fail on a node of RabbitMQ, and how many pass there.

The lists are in `protocol/known_differences/`: one for each series, and `shared.toml` for what is in several.
An entry has the tests, what RabbitMQ does, and why the broker does otherwise. `results.json` beside them has
what `--record-on` counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compat_tests.differential.comparison import SERIES, fits
from compat_tests.differential.differences import SHARED

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["FOLDER", "Difference", "Results", "covering", "differences_of", "entries", "id_of", "results"]

FOLDER = Path(__file__).parents[1] / "protocol" / "known_differences"
_RESULTS = FOLDER / "results.json"
SKIPPED = "needs "
"""How the reason of a skip begins that is about what a test needs."""


@dataclass(frozen=True)
class Difference:
    """An entry. `tests` are ids such as `test_ttl.py::test_name[case]`, in which `*` stands for anything.

    An id without a case stands for all cases.
    """

    tests: tuple[str, ...]
    kind: str
    rabbitmq: str
    reason: str
    versions: tuple[str, ...]
    sometimes: bool = False
    """The tests pass at times: what RabbitMQ does depends on the load of the machine."""

    def covers(self, test: str) -> bool:
        return any(fits(each, test) or fits(each, test.partition("[")[0]) for each in self.tests)

    @property
    def file(self) -> str:
        """The file of its tests."""
        return self.tests[0].partition("::")[0]


@cache
def entries() -> list[Difference]:
    """All entries."""
    found = []
    for name in (SHARED, *SERIES):
        text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
        for entry in tomllib.loads(text).get("difference", []):
            given: dict[str, Any] = {"versions": [name], **entry}
            for key in ("tests", "versions"):
                given[key] = tuple(given[key])
            found.append(Difference(**given))
    return found


def differences_of(series: str) -> list[Difference]:
    """The entries about a series."""
    return [each for each in entries() if series in each.versions]


def covering(series: str, test: str) -> Difference | None:
    """The entry about a test on a series."""
    return next((each for each in differences_of(series) if each.covers(test)), None)


def id_of(item: pytest.Item) -> str:
    """The id of a test in the lists."""
    return f"{item.path.name}::{item.nodeid.partition('::')[2]}"


@dataclass
class Results:
    """How many cases had which outcome."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """Passed, failed, different (as listed), and skipped for another reason than a need."""
    skipped: Counter[str] = field(default_factory=Counter)
    """By what they need first."""

    def count(self, report: pytest.TestReport) -> None:
        """Count the outcome of a case."""
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        _, need, text = reason.partition(SKIPPED)
        if hasattr(report, "wasxfail") and report.outcome == "skipped":
            self.outcomes["different"] += 1
        elif report.outcome == "skipped" and need:
            self.skipped[text.split(", ")[0]] += 1
        else:
            self.outcomes[report.outcome] += 1

    @property
    def ran(self) -> int:
        """How many cases ran on the node."""
        return sum(self.outcomes.values()) - self.outcomes["skipped"]

    def __str__(self) -> str:
        told = [f"{count} {outcome}" for outcome, count in sorted(self.outcomes.items())]
        needs = ", ".join(f"{need} {count}" for need, count in self.skipped.most_common())
        return f"{self.ran} ran: {', '.join(told)}; {sum(self.skipped.values())} were skipped: {needs}"

    def write(self, series: str, version: str) -> None:
        """Keep them as the results of a series."""
        kept = json.loads(_RESULTS.read_text(encoding="utf-8")) if _RESULTS.exists() else {}
        kept[series] = {
            "version": version,
            "outcomes": dict(sorted(self.outcomes.items())),
            "skipped": dict(sorted(self.skipped.items())),
        }
        _RESULTS.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def results() -> Mapping[str, Any]:
    """The kept results, by series."""
    kept: dict[str, Any] = json.loads(_RESULTS.read_text(encoding="utf-8"))
    return kept
