"""What can go wrong with recordings."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = ["PyarrowMissing", "RecordingError"]


class RecordingError(FakeAMQPError):
    """A file is no recording, or not one that can be read."""


class PyarrowMissing(FakeAMQPError):
    """Parquet needs pyarrow, which is not installed."""
