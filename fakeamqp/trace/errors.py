"""Errors of recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fakeamqp.errors import FakeAMQPError

if TYPE_CHECKING:
    from fakeamqp.trace.checks.finding import Findings

__all__ = ["CheckFailed", "PyarrowMissing", "RecordingError", "TraceIncomplete"]


class RecordingError(FakeAMQPError):
    """The file is not a recording, is damaged, or has a version that cannot be read."""

    __module__ = "fakeamqp.trace"


class PyarrowMissing(FakeAMQPError):
    """Parquet needs pyarrow, which is not installed."""

    __module__ = "fakeamqp.trace"


class CheckFailed(FakeAMQPError, AssertionError):
    """The checks of a trace have found something: `findings`. The text shows what led to it."""

    __module__ = "fakeamqp.trace"

    def __init__(self, findings: Findings) -> None:
        super().__init__(f"the trace has {findings}")
        self.findings = findings


class TraceIncomplete(FakeAMQPError, AssertionError):
    """The trace no longer has all events that were to be checked."""

    __module__ = "fakeamqp.trace"
