"""The section about compared tests at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from .protocol import finding_of

if TYPE_CHECKING:
    import pytest

    from .findings import Cause, Finding

__all__ = ["write"]

_WIDTH = 120
"""How much of a line is shown."""


def write(reporter: pytest.TerminalReporter, names: tuple[str, str]) -> None:
    """Write the section: how many tests changed, and for each of them what changed and why."""
    found = list(_findings(reporter))
    reporter.write_sep("=", f"AMQP comparison: {names[0]} and {names[1]}")
    for line in _overview([finding for _, finding in found], names):
        reporter.write_line(line)
    for nodeid, finding in found:
        if not finding.same:
            reporter.write_line("")
            for line in _section(nodeid, finding):
                reporter.write_line(line)


def _findings(reporter: pytest.TerminalReporter) -> Iterator[tuple[str, Finding]]:
    for reports in reporter.stats.values():
        for report in reports:
            finding = finding_of(report)
            if finding is not None:
                yield report.nodeid, finding


def _overview(findings: list[Finding], names: tuple[str, str]) -> Iterator[str]:
    if not findings:
        yield "no test took a broker from a fixture, without a personality of its own"
        return
    same = sum(finding.same for finding in findings)
    yield f"{_count(len(findings))} ran on both, {same} with no difference"
    for outcomes in dict.fromkeys(tuple(each.outcomes) for each in findings if not each.same):
        count = sum(tuple(finding.outcomes) == outcomes and not finding.same for finding in findings)
        if outcomes[0] == outcomes[1]:
            yield f"{_count(count)} {outcomes[0]} on both, with a difference"
        else:
            yield f"{_count(count)} {outcomes[0]} on {names[0]} and {outcomes[1]} on {names[1]}"


def _section(nodeid: str, finding: Finding) -> Iterator[str]:
    first, second = finding.names
    if finding.outcomes[0] == finding.outcomes[1]:
        yield f"{nodeid}: {finding.outcomes[0]} on both"
    else:
        yield f"{nodeid}: {finding.outcomes[0]} on {first}, {finding.outcomes[1]} on {second}"
    if finding.reason:
        yield f"  {_cut(finding.reason)}"
    for number, cause in enumerate(finding.causes):
        if number:
            yield "  And by itself:"
        yield from _cause(cause, finding)
    if not finding.causes and finding.lines:
        yield from _parting(finding.lines, first, second)
    if finding.note:
        yield f"  No cause: {finding.note}."


def _cause(cause: Cause, finding: Finding) -> Iterator[str]:
    first, second = finding.names
    names = [name for name, *_ in cause.choices]
    with_them = f"{first} with {_list(names)} of {second}"
    if cause.lines:
        yield from _parting(cause.lines, first, second if cause.alike else with_them)
    else:
        yield "  What clients and broker said is the same on both; the test sees another difference."
    for name, value, other, text, source in cause.choices:
        yield f"  Choice {name}: {value} in {first}, {other} in {second}"
        told = " ".join((text, f"Source: {source}." if source else "")).strip()
        if told:
            yield f"    {told}"
    yield f"  Proved: the test does the same on {with_them} ({finding.runs} more runs)."


def _parting(lines: list[str | None], first: str, second: str) -> Iterator[str]:
    start = _start([line or "" for line in lines])
    yield "  First difference:"
    for name, line in zip((first, second), lines, strict=True):
        yield f"    on {name}:"
        yield f"      {'(nothing more)' if line is None else _cut(line, start)}"


def _start(lines: list[str]) -> int:
    """Where to begin to show lines: at the beginning, if their difference is not too far from it."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(*lines, strict=False)))
    return 0 if common < _WIDTH - 20 else common - 40


def _cut(line: str, start: int = 0) -> str:
    shown = line[start : start + _WIDTH]
    return f"{'…' if start else ''}{shown}{'…' if start + _WIDTH < len(line) else ''}"


def _list(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _count(number: int) -> str:
    return f"{number} test{'' if number == 1 else 's'}"
