"""Writes recordings of the endpoints of a test to files (`--amqp-trace`).

The files of a test have the name of the test, and the number of the endpoint if there are several. The names
depend only on the collected tests, so that they are the same in all workers of pytest-xdist.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from . import endpoints, failures, options
from .file_names import file_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fakeamqp.trace import Failure, Trace

    from .endpoints import AnyEndpoint

__all__ = ["begin", "end", "expected", "warn", "write"]

_NAMES: pytest.StashKey[Counter[str]] = pytest.StashKey()
_RUNS: pytest.StashKey[int] = pytest.StashKey()
_RUNNING: pytest.StashKey[bool] = pytest.StashKey()


def begin(item: pytest.Item) -> None:
    """Note a run of `item`, before its first endpoint: a repeated run gets files of its own."""
    if not item.stash.get(_RUNNING, False):
        item.stash[_RUNNING] = True
        item.stash[_RUNS] = item.stash.get(_RUNS, 0) + 1


def end(item: pytest.Item) -> None:
    """The run of `item` has ended."""
    item.stash[_RUNNING] = False
    failures.forget(item)


def expected(item: pytest.Item) -> list[Path]:
    """The files to be written for `item`, endpoint by endpoint in the order they were started."""
    return [path for _, _, paths in _planned(item) for path in paths.values()]


def write(item: pytest.Item) -> None:
    """Write the files of `item`. An error is reported as a warning and does not fail the test."""
    problems = []
    for endpoint, title, paths in _planned(item):
        trace = endpoints.trace(item, endpoint)
        for kind, path in paths.items():
            try:
                _write(trace, kind, path, title, failures.noted(item, endpoint))
            except Exception as problem:
                problems.append(
                    f"--amqp-trace: a recording cannot be written to {path.parent}: {_said(problem)}"
                )
    # Without file names most texts are equal; pytest shows equal warnings once, with all their tests.
    for text in dict.fromkeys(problems):
        warn(item.config, text, item.nodeid)


def warn(config: pytest.Config, text: str, nodeid: str = "") -> None:
    """Add a warning to the summary, regardless of warning filters."""
    message = warnings.WarningMessage(pytest.PytestWarning(text), pytest.PytestWarning, __file__, 1, line="")
    config.hook.pytest_warning_recorded.call_historic(
        kwargs={
            "warning_message": message,
            "nodeid": nodeid,
            "when": "runtest" if nodeid else "config",
            "location": None,
        }
    )


def _planned(item: pytest.Item) -> Iterator[tuple[AnyEndpoint, str, dict[str, Path]]]:
    """The endpoints of `item`, with the titles of their recordings and their files by format."""
    folder = options.trace_folder(item.config)
    if folder is None:
        return
    name = _name(item)
    kinds = options.trace_formats(item.config)
    for number, endpoint in enumerate(endpoints.of(item), start=1):
        if endpoint._recorder is None:
            continue
        more = "" if number == 1 else f".{number}"
        yield endpoint, f"{item.nodeid}{more}", {kind: folder / f"{name}{more}.{kind}" for kind in kinds}


def _name(item: pytest.Item) -> str:
    session = item.session
    if _NAMES not in session.stash:
        session.stash[_NAMES] = Counter(file_name(each.nodeid).casefold() for each in session.items)
    shared = session.stash[_NAMES][file_name(item.nodeid).casefold()] > 1
    name = file_name(item.nodeid, distinct=shared)
    again = item.stash.get(_RUNS, 1)
    return name if again == 1 else f"{name}.again-{again - 1}"


def _write(trace: Trace, kind: str, path: Path, title: str, failure: Failure | None) -> None:
    """Write a temporary file and move it to its place, so that no file is incomplete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if kind == "html":
            trace.html(unfinished, title=title, failure=failure)
        elif kind == "pcapng":
            trace.pcapng(unfinished)
        else:
            trace.jsonl(unfinished)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _said(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    return f"{type(problem).__name__}: {problem}"
