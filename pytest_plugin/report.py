"""The sections about brokers in the report of a failed test."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fakeamqp.errors import WaitTimeout

from . import endpoints, options, recordings, session_broker, unused_faults

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pytest

    from fakeamqp import Broker

    from .endpoints import AnyEndpoint

__all__ = ["leave_out_events", "note_recordings", "recorded", "recordings_line", "sections"]

_RECORDING = "AMQP recording"
_WRITTEN = "amqp_recordings"
"""The attribute of a report with the number of recordings; pytest-xdist sends it to the controller."""
_MOST_LATE = 20
"""The most late messages, confirms and acks that a report shows."""
_LEFT_OUT = re.compile(r"^(\(\d+ earlier events left out)\)$", re.MULTILINE)


def sections(item: pytest.Item, report: pytest.TestReport) -> Iterator[tuple[str, str]]:
    """Title and text of the sections for the report of a failed test."""
    if report.when == "call":
        unused = unused_faults.complaint(item)
        if unused and unused not in report.longreprtext:
            yield "AMQP faults that never happened", unused
    made = endpoints.of(item)
    for endpoint in made:
        if session_broker.is_idle_bystander(item, endpoint):
            continue
        title = "AMQP timeline" if len(made) == 1 else f"AMQP timeline of {endpoints.named(endpoint)}"
        yield title, _timeline(item, endpoint)
    for broker in endpoints.brokers(item):
        if broker.admin.race_seed is not None:
            yield "AMQP races", _races(broker, broker.admin.race_seed)
        missed = broker._state.resets.hints()
        if missed:
            yield "AMQP reset", "\n".join(missed)
    for endpoint in made:
        for plan in _plans(endpoint):
            yield "AMQP chaos plan", plan
    files = recordings.expected(item)
    if files:
        yield _RECORDING, "\n".join(_shown(files, item.config))


def leave_out_events(item: pytest.Item, error: BaseException | None) -> None:
    """Take the latest events out of the errors of waits, if the timelines of the report show them as well."""
    while error is not None:
        if isinstance(error, WaitTimeout):
            from fakeamqp.inspect.hints import LATEST_EVENTS

            rest, _, events = str(error).partition(f"\n{LATEST_EVENTS}\n")
            texts = (_timeline(item, endpoint) for endpoint in endpoints.of(item))
            shown = {line for text in texts for line in text.splitlines()}
            if events and shown.issuperset(line for line in events.splitlines() if line[0] != "("):
                error.args = (rest,)
        error = error.__cause__ or error.__context__


def recorded(reports: Iterable[pytest.TestReport]) -> Iterator[str]:
    """One recording of each failed test: the HTML page if there is one."""
    for report in reports:
        for title, text in report.sections:
            if title == _RECORDING:
                files = text.splitlines()
                shown = next((file for file in files if file.endswith(".html")), files[0])
                yield f"{report.nodeid}: {shown}"


def note_recordings(item: pytest.Item, report: pytest.TestReport) -> None:
    """Note in the report of the teardown, after which all files are written, how many there are."""
    written = sum(path.exists() for path in recordings.expected(item))
    if written:
        setattr(report, _WRITTEN, written)


def recordings_line(terminalreporter: pytest.TerminalReporter) -> str:
    """Where the recordings of a run are; "" if it has written none."""
    reports = {id(each): each for reports in terminalreporter.stats.values() for each in reports}
    written = [getattr(each, _WRITTEN, 0) for each in reports.values()]
    tests, files = sum(map(bool, written)), sum(written)
    folder = options.trace_folder(terminalreporter.config)
    if not files or folder is None:
        return ""
    [shown] = _shown([folder], terminalreporter.config)
    of = f"{tests} test{'s' if tests > 1 else ''}: {files} file{'s' if files > 1 else ''}"
    return f"AMQP recordings of {of} in {shown}"


def _timeline(item: pytest.Item, endpoint: AnyEndpoint) -> str:
    if endpoint._recorder is None:
        return "(the trace is off)"
    count = options.timeline_lines(item.config)
    text = endpoints.trace(item, endpoint).timeline(limit=count or None)
    return _LEFT_OUT.sub(r"\1; -o amqp_timeline_lines=0 shows all)", text, count=1) or "(nothing happened)"


def _races(broker: Broker, seed: int) -> str:
    """The seed of the races, and the latest late messages, confirms and acks."""
    late = [str(each) for each in broker.admin.late]
    again = f"races={seed}, or --amqp-races={seed}, repeats"
    if not late:
        return f"{again} them. Nothing was late."
    left_out = [f"({len(late) - _MOST_LATE} earlier ones left out)"] if len(late) > _MOST_LATE else []
    return "\n".join([f"{again} these delays:", *left_out, *late[-_MOST_LATE:]])


def _plans(endpoint: AnyEndpoint) -> Iterable[str]:
    """The chaos plans, with which a test can be repeated. Reading `endpoint.faults` would import that
    package.
    """
    return () if endpoint._faults is None else endpoint._faults.plans


def _shown(files: Iterable[Path], config: pytest.Config) -> Iterator[str]:
    """Paths relative to the working folder, where possible."""
    here = config.invocation_params.dir
    for path in files:
        yield str(path.relative_to(here) if path.is_relative_to(here) else path)
