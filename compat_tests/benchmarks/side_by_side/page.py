"""Writes tables of the pages about benchmarks: `python -m compat_tests.benchmarks.side_by_side.page`.

The figures come from `side_by_side.json` beside this module, which `make bench` writes; it prints the same
tables. `profile.json` comes from `make bench-profile`. The tables of `compat_tests.benchmarks.parts` stay as
they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from compat_tests.benchmarks.side_by_side import plots
from compat_tests.benchmarks.side_by_side.cases import CASES
from compat_tests.benchmarks.side_by_side.targets import IN_LOOP, IN_THREAD, RABBITMQ, SERVE, TARGETS
from compat_tests.reliability import results
from compat_tests.tools import tables

__all__ = [
    "FOLDER",
    "INTERNAL",
    "NAME",
    "PAGE",
    "PAGES",
    "PROFILE",
    "STARTS",
    "line",
    "main",
    "text",
    "with_tables",
]

FOLDER = Path(__file__).parent
NAME = "side_by_side"
PROFILE = "profile"
STARTS = "starts"
PAGE = Path(__file__).parents[3] / "docs" / "benchmarks.md"
INTERNAL = PAGE.with_name("benchmarks-internal.md")
PAGES = {
    PAGE: ("start", "run", "rates", "times", "load", "fixtures", "imports", "plots"),
    INTERNAL: ("ratios", "processor", "profile"),
}
"""The pages, and the tables on each."""
_TIMED = {case.name for case in CASES if case.timed} | {"fixtures", "imports"}

Results = dict[str, Any]


@dataclass(frozen=True)
class Ratio:
    """A ratio that the project wants to reach."""

    case: str
    target: str
    others: tuple[str, ...]
    """The best of these is compared with."""
    wanted: float
    timed: bool = False
    """Whether it is a ratio of times, which is to be small; otherwise one of rates."""

    def of(self, found: Results) -> float | None:
        """What was measured, or None if nothing was."""
        targets = found["cases"].get(self.case, {})
        others = [median(targets[other]["time"]) for other in self.others if other in targets]
        if self.target not in targets or not others:
            return None
        ratio: float = median(targets[self.target]["time"]) / min(others)
        return ratio if self.timed else 1 / ratio


_ANY = tuple(RABBITMQ)
RATIOS = (
    Ratio("pika: publish then consume", IN_THREAD, _ANY, 1.3),
    Ratio("pika: publish then consume", IN_THREAD, (SERVE,), 0.95),
    Ratio("pika: confirmed publish, window 1", IN_THREAD, _ANY, 1.5),
    Ratio("pika: declare", IN_THREAD, _ANY, 0.6, timed=True),
    *(
        Ratio(case, target, _ANY, wanted)
        for case in ("aio-pika: confirmed publish, window 1", "aio-pika: consume, ack each")
        for target, wanted in ((IN_THREAD, 1.3), (IN_LOOP, 1.6))
    ),
    Ratio("pika: connect to close", IN_THREAD, _ANY, 0.4, timed=True),
    Ratio("aio-pika: connect to close", IN_THREAD, _ANY, 0.4, timed=True),
    Ratio("load: same channel number", SERVE, ("RabbitMQ 3.10",), 1.75),
    Ratio("load: same channel number", SERVE, ("RabbitMQ 4.3",), 4),
)


# --- figures -------------------------------------------------------------------------------------------


def figure(case: str, measured: dict[str, list[float]]) -> str:
    """The median of the rounds, as a time or as a rate, and half of the distance between the quartiles."""
    times = measured["time"]
    middle = median(times)
    spread = ""
    if len(times) > 1:
        low, _, high = quantiles(times, n=4, method="inclusive")
        spread = f" ±{(high - low) / 2 / middle:.0%}"
    if case not in _TIMED:
        return f"{1e6 / middle:,.0f}{spread}"
    return f"{middle / 1000:,.1f} ms{spread}" if middle >= 1000 else f"{middle:,.0f} µs{spread}"


def load_of(measured: dict[str, list[float]]) -> str:
    """Processor time and switches of an operation."""
    return f"{median(measured['processor']):,.0f} µs, {median(measured['switches']):.2f}"


def line(case: str, targets: dict[str, dict[str, list[float]]]) -> str:
    """One case in a line, while the others are measured."""
    return "; ".join([case, *(f"{target} {figure(case, each)}" for target, each in targets.items())])


# --- tables --------------------------------------------------------------------------------------------


def _run(found: Results) -> str:
    """What was run where."""
    versions = ", ".join(f"{name} {found['versions'][name]}" for name in ("pika", "aio-pika"))
    missing = "".join(
        f"\n{target} was not measured: {reason}.\n" for target, reason in found["missing"].items()
    )
    where = ""
    if "commit" in found:
        where = (
            f"`{found['command']}` on commit {found['commit']}: Python {found['python']}, {versions}, "
            f"{found['processors']} processors, {found['day']}. "
        )
    return f"{where}Medians of {found['rounds']} rounds.\n{missing}"


def _ratios(found: Results) -> str:
    rows = []
    for each in RATIOS:
        ratio = each.of(found)
        rival = "RabbitMQ" if each.others == _ANY else found["versions"].get(each.others[0], each.others[0])
        rival = each.others[0] if each.others == (SERVE,) else rival
        kind = "time" if each.timed else "rate"
        rows.append(
            [
                each.case,
                f"{each.target} / {rival}, {kind}",
                "" if ratio is None else f"{ratio:.2f}",
                f"{'≤' if each.timed else '≥'} {each.wanted:g}",
            ]
        )
    return tables.table(["Case", "Ratio", "Measured", "Goal"], rows)


def _by_target(shown: Callable[[str, dict[str, list[float]]], str], wanted: Callable[[str], bool]) -> Any:
    """A table with a row for each case, and a column for each target."""

    def made(found: Results) -> str:
        cases = {name: targets for name, targets in found["cases"].items() if wanted(name)}
        every = dict.fromkeys(target for targets in cases.values() for target in targets)
        columns = sorted(every, key=[*TARGETS, *every].index)
        rows = [
            [name, *(shown(name, targets[each]) if each in targets else "" for each in columns)]
            for name, targets in cases.items()
        ]
        head = [found["versions"].get(each, each) if each in RABBITMQ else each for each in columns]
        return tables.table(["", *head], rows)

    return made


def _listed(case: str) -> Callable[[Results], str]:
    """A table with a row for each target of one case."""

    def made(found: Results) -> str:
        measured = found["cases"].get(case, {})
        return tables.table(
            ["", "median"], [[f"`{name}`", figure(case, each)] for name, each in measured.items()]
        )

    return made


def _of_clients(name: str) -> bool:
    return ":" in name and not name.startswith("load")


def _profile(found: Results) -> str:
    rows = [
        [case, target, *(f"{shares[part]:.0f}%" for part in found["parts"])]
        for case, targets in found["cases"].items()
        for target, shares in targets.items()
    ]
    where = f"`{found['command']}` on commit {found['commit']}, Python {found['python']}, {found['day']}:"
    return f"{where}\n\n{tables.table(['', '', *found['parts']], rows)}"


def _starts(found: Results) -> str:
    rows = [
        [name, f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"]
        for name, seconds in found["seconds"].items()
    ]
    where = (
        f"`{found['command']}` on commit {found['commit']}, {found['processors']} processors, {found['day']}."
    )
    return f"{tables.table(['Start, publish, confirm, get, stop', 'median'], rows)}\n{where}\n"


_MADE: dict[str, Callable[[Results], str]] = {
    "run": _run,
    "ratios": _ratios,
    "rates": _by_target(figure, lambda name: _of_clients(name) and name not in _TIMED),
    "times": _by_target(figure, lambda name: _of_clients(name) and name in _TIMED),
    "processor": _by_target(lambda _case, measured: load_of(measured), _of_clients),
    "load": _by_target(figure, lambda name: name.startswith("load")),
    "fixtures": _listed("fixtures"),
    "imports": _listed("imports"),
    "plots": lambda _found: "".join(f"![{text}](images/{file})\n" for file, text in plots.PLOTS.items()),
}


def text(found: Results) -> str:
    """All tables that are not empty, for a terminal."""
    return "\n".join(_tables(found))


def _tables(found: Results) -> Iterator[str]:
    for name, made in _MADE.items():
        table = made(found)
        if name != "plots" and (not table.startswith("|") or table.count("\n") > 2):
            yield f"{name}:\n{table}"


def with_tables(path: Path) -> str:
    """The text of a page with its tables as they should be."""
    made = {
        **{name: _kept(NAME, make) for name, make in _MADE.items()},
        "profile": _kept(PROFILE, _profile),
        "start": _kept(STARTS, _starts),
    }
    return tables.with_tables(path.read_text("utf-8"), {name: made[name] for name in PAGES[path]})


def _kept(name: str, make: Callable[[Results], str]) -> Callable[[], str]:
    found = results.load(name, FOLDER)
    return lambda: make(found) if found else "Not measured yet.\n"


def main() -> None:
    """Write the pages anew, and draw the pictures."""
    for path in PAGES:
        path.write_text(with_tables(path), encoding="utf-8")
    found = results.load(NAME, FOLDER)
    if found is not None:
        plots.draw(found)


if __name__ == "__main__":
    main()
