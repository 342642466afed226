"""One run of a test on one personality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from _pytest.runner import runtestprotocol

from .. import repeated_runs
from . import chosen
from .conversation import Conversation, conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fakeamqp import Broker, Personality

__all__ = ["Run", "end", "note", "run"]

_SAID: pytest.StashKey[Conversation] = pytest.StashKey()


@dataclass(frozen=True)
class Run:
    """A run and what came of it.

    Args:
        outcome: "passed", "failed", "error" (outside the test's own code), "skipped", "xfailed" or "xpassed".
        conversation: the conversation of its clients and brokers.
        reports: those of pytest.
        reason: the first line of the failure; "" without one.
    """

    outcome: str
    conversation: Conversation
    reports: list[pytest.TestReport]
    reason: str


def run(item: pytest.Item, personality: Personality, *, repeating: bool = False) -> Run:
    """Run `item` on brokers with this personality; fixtures above the test stay set up."""
    chosen.set_for(item, personality, repeating=repeating)
    item.stash[_SAID] = {}
    repeated_runs.forget(item)
    properties = list(item.user_properties)
    reports = runtestprotocol(item, log=False, nextitem=repeated_runs.keeping_parents(item))
    item.user_properties[:] = properties
    return Run(_outcome(reports), item.stash[_SAID], reports, _reason(reports))


def note(item: pytest.Item, brokers: Sequence[Broker]) -> None:
    """Keep what these brokers of `item` have recorded, at the end of a run that is compared."""
    if _SAID in item.stash:
        item.stash[_SAID] = conversation(brokers)


def end(item: pytest.Item, nextitem: pytest.Item | None) -> pytest.TestReport:
    """Tear down the fixtures above `item` that `nextitem` does not need.

    No plugin is asked, because for plugins the test has ended.
    """
    del item.stash[_SAID]
    call = pytest.CallInfo.from_call(
        lambda: item.session._setupstate.teardown_exact(nextitem),
        when="teardown",
        reraise=(KeyboardInterrupt, pytest.exit.Exception),
    )
    return pytest.TestReport.from_item_and_call(item, call)


def _outcome(reports: Sequence[pytest.TestReport]) -> str:
    for report in reports:
        if report.failed:
            return "failed" if report.when == "call" else "error"
    for report in reports:
        if hasattr(report, "wasxfail"):
            return "xfailed" if report.skipped else "xpassed"
        if report.skipped:
            return "skipped"
    return "passed"


def _reason(reports: Sequence[pytest.TestReport]) -> str:
    for report in reports:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            text = str(report.longrepr) if crash is None else crash.message
            return next(iter(text.splitlines()), "")
    return ""
