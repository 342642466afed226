"""Writes the tables of docs/reliability.md: `python -m compat_tests.reliability.page`.

The figures come from the results beside this module. Each table names the command that makes them anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from compat_tests.reliability import results
from compat_tests.reliability.mutations import PARTS
from compat_tests.tools import tables

__all__ = ["PAGE", "main", "with_tables"]

_MILLISECONDS = ("milliseconds", "p50", "p99", "longest")
PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"


def with_tables(page: str) -> str:
    """The page with its tables as they should be."""
    return tables.with_tables(page, _TABLES)


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def _measured(name: str, shown: Callable[[dict[str, Any]], str]) -> Callable[[], str]:
    """The table of some results, below a line that says where they are from."""

    def made() -> str:
        found = results.load(name)
        if found is None:
            return "Not measured yet.\n"
        where = f"Python {found['python']}, {found['processors']} processors, {found['day']}"
        return f"`{found['command']}` on commit {found['commit']} ({where}):\n\n{shown(found)}"

    return made


def _flakes(found: dict[str, Any]) -> str:
    runs = found["runs"]
    row = [
        str(len(runs)),
        *(_span(run[name] for run in runs) for name in ("passed", "skipped")),
        "<br>".join(f"{run['seed']}: {name}" for run in runs for name in run["failed"]) or "none",
        _span(run["seconds"] for run in runs),
    ]
    head = [
        "Runs",
        "Passed in each",
        "Skipped in each",
        "Seed and name of tests that failed",
        "Seconds of a run",
    ]
    return tables.table(head, [row])


def _span(numbers: Iterable[int]) -> str:
    """The smallest and the largest number."""
    every = sorted(numbers)
    return str(every[0]) if every[0] == every[-1] else f"{every[0]} to {every[-1]}"


def _soak(found: dict[str, Any]) -> str:
    counts = ("published", "confirmed", "deliveries", "accepted", "rejected")
    rows = [
        [client, *(str(numbers[each]) for each in counts)] for client, numbers in found["messages"].items()
    ]
    faults = sum(found["faults"].values())
    problems = "<br>".join(found["problems"]) or "none"
    memory = [
        ["Days of the broker's time", str(found["days"])],
        ["Seconds", str(found["seconds"])],
        ["Faults", str(faults)],
        ["Counted objects: first day, highest, last day", _course(found["objects"])],
        ["MB of the process: first day, highest, last day", _course(found["megabytes"])],
        ["Problems: lost or repeated messages, growth, threads, sockets, timers", problems],
    ]
    messages = tables.table(["Client", *(each.capitalize() for each in counts)], rows)
    return f"{messages}\n{tables.table(['', ''], memory)}"


def _stalls(found: dict[str, Any]) -> str:
    largest = {each["operation"]: each for each in sorted(found["figures"], key=lambda each: each["number"])}
    rows = [
        [name, str(each["number"]), *(f"{each[column]:.0f}" for column in _MILLISECONDS)]
        for name, each in largest.items()
    ]
    return tables.table(["Operation", "n", "Time", "p50", "p99", "Longest"], rows)


def _mutants(found: dict[str, Any]) -> str:
    verdicts = Counter(each["verdict"].partition(":")[0] for each in found["survived"])
    left = [each for each in found["survived"] if each["verdict"].startswith("open")]
    counts = [
        ["Mutants, drawn with the seed", f"{found['sample']}, {found['seed']}"],
        ["Killed", f"{found['killed']} ({found['killed'] / found['sample']:.1%})"],
        ["Killed because a test took too long", str(found["timeouts"])],
        [
            "Killed in a later run only, by tests added since or by slow ones",
            str(verdicts.pop("killed since", 0)),
        ],
        *([f"Survive: {verdict}", str(count)] for verdict, count in sorted(verdicts.items())),
    ]
    rows = [[f"`{each['file']}`", each["function"], each["kind"], each["verdict"]] for each in left]
    survivors = tables.table(["File", "Function", "Changed", "Verdict"], rows) if rows else ""
    return f"{tables.table(['', ''], counts)}\n{survivors}".rstrip() + "\n"


def _parts() -> str:
    """The parts other than the model, and their survivors."""
    rows, left = [], []
    for part in PARTS:
        found = None if part == "model" else results.load(f"mutants-{part}")
        if found is None:
            continue
        survived = [each for each in found["survived"] if not each["verdict"].startswith("killed since")]
        left += [[f"`{each['file']}`", each["function"], each["kind"], each["verdict"]] for each in survived]
        share = found["killed"] / found["sample"]
        rows.append(
            [
                f"`{part}`",
                f"{found['sample']}, {found['seed']}",
                f"{found['killed_at_first'] / found['sample']:.1%}",
                f"{share:.1%}",
                str(found["equivalent"]),
                f"{found['commit']}, {found['day']}",
            ]
        )
    heads = ["Part", "Mutants, seed", "Killed at first", "Killed", "Survive: equivalent", "Commit, day"]
    survivors = tables.table(["File", "Function", "Changed", "Verdict"], left)
    return f"{tables.table(heads, rows)}\n{survivors}"


def _course(values: list[float]) -> str:
    return f"{values[0]}, {max(values)}, {values[-1]}"


_TABLES: dict[str, Callable[[], str]] = {
    "flakes": _measured("flakes", _flakes),
    "mutants": _measured("mutants", _mutants),
    "mutants-parts": _parts,
    "soak": _measured("soak", _soak),
    "stalls": _measured("stalls", _stalls),
    "stalls-million": _measured("stalls-million", _stalls),
}

if __name__ == "__main__":
    main()
