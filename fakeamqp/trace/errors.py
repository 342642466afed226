"""Errors of recordings."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = ["PyarrowMissing", "RecordingError"]


class RecordingError(FakeAMQPError):
    """The file is not a recording, is damaged, or has a version that cannot be read."""

    __module__ = "fakeamqp.trace"


class PyarrowMissing(FakeAMQPError):
    """Parquet needs pyarrow, which is not installed."""

    __module__ = "fakeamqp.trace"
