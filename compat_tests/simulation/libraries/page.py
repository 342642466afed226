"""Keeps the results, and writes the tables of docs/simulation-findings.md."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from compat_tests.reliability.results import commit, laid_out
from compat_tests.simulation.libraries.running import Outcome
from compat_tests.simulation.libraries.workload import Broken
from compat_tests.tools import tables

__all__ = ["PAGE", "RESULTS", "keep", "load", "with_tables", "write"]

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[3] / "docs" / "simulation-findings.md"
# How many seeds of a kind of failure the page shows.
_SEEDS = 4


def load() -> dict[str, Any]:
    """What was found, by workload."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return found


def keep(outcome: Outcome) -> None:
    """Add what came of a workload to the results."""
    workload = outcome.workload
    results = load()
    results[workload.name] = {
        "promise": workload.promise,
        "source": workload.source,
        "faults": workload.faults,
        "schedules": outcome.schedules,
        "versions": outcome.versions,
        "python": platform.python_version(),
        "commit": commit(),
        "day": datetime.now(timezone.utc).date().isoformat(),
        "failures": {kind: _failure(outcome, kind) for kind in outcome.seeds},
    }
    RESULTS.write_text(f"{laid_out(results)}\n", encoding="utf-8")


def _failure(outcome: Outcome, kind: str) -> dict[str, Any]:
    example = outcome.examples[kind]
    error = example.failure.shrunk_error
    return {
        "finding": outcome.workload.known.get(kind),
        "count": len(outcome.seeds[kind]),
        "seeds": outcome.seeds[kind][:20],
        "example": example.failure.seed,
        "needed decisions": [decision.text for decision in example.failure.needed],
        "needed faults": list(example.faults),
        "plan": list(error.plans) if isinstance(error, Broken) else [],
    }


def with_tables(page: str) -> str:
    """The page with its tables as they should be."""
    return tables.with_tables(page, {"runs": _runs, "examples": _examples})


def write() -> None:
    """Write the tables anew."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def _runs() -> str:
    results = load()
    promises, faults = _once("promise", "source"), _once("faults")
    rows = [
        [
            name,
            promises(found),
            faults(found),
            f"{sum(each['count'] for each in found['failures'].values())} of {found['schedules']:,}".replace(
                ",", " "
            ),
            "<br>".join(_link(each["finding"]) for each in found["failures"].values()) or "nothing",
        ]
        for name, found in results.items()
    ]
    versions = {f"{name} {each}" for found in results.values() for name, each in found["versions"].items()}
    pythons = {found["python"] for found in results.values()}
    days = sorted({found["day"] for found in results.values()})
    head = f"{', '.join(sorted(versions))}; Python {', '.join(sorted(pythons))}; {', '.join(days)}:\n\n"
    return head + tables.table(["Workload", "Promise", "Faults", "Failed", "Found"], rows)


def _once(text: str, source: str = "") -> Callable[[dict[str, Any]], str]:
    """The text of each workload, with its source in brackets; "as above" for that of the row before."""
    last = ""

    def shown(found: dict[str, Any]) -> str:
        nonlocal last
        before, last = last, found[text] + (f" ({found[source]})" if source else "")
        return "as above" if last == before else last

    return shown


def _examples() -> str:
    rows = []
    for name, found in load().items():
        for kind, each in found["failures"].items():
            decisions = "<br>".join(each["needed decisions"]) or "none"
            faults = (
                "<br>".join(f"`{_short(line)}`" for line in each["needed faults"]) or "those of the workload"
            )
            seeds = ", ".join(map(str, each["seeds"][:_SEEDS]))
            rows.append([_link(each["finding"]), name, kind, seeds, str(each["example"]), faults, decisions])
    order = {link: number for number, link in enumerate(dict.fromkeys(row[0] for row in rows))}
    rows.sort(key=lambda row: order[row[0]])
    return tables.table(
        [
            "Finding",
            "Workload",
            "Failure",
            "First seeds",
            "Shrunk seed",
            "Faults that are enough",
            "Deviations from first-come order",
        ],
        rows,
    )


def _short(line: str) -> str:
    """A line of a plan without what can be read from its end."""
    place, _, words = line.partition(": ")
    return f"{place}: {words}".replace("|", "\\|")


def _link(finding: str | None) -> str:
    return f"[{finding}](#{finding})" if finding else "not explained"
