"""What a test can get wrong about its streaming job, or find wrong with it."""

from __future__ import annotations

from fakeamqp.spark.errors import SparkError

__all__ = ["CrashNotPossible", "NotACrash", "NotStarted", "QueryTimeout", "StreamTestError"]


class StreamTestError(SparkError):
    """Base class of what `AmqpStream` raises. Failures of a query are raised as Spark does."""


class NotStarted(StreamTestError):
    """There is no query yet, or one is running already."""


class QueryTimeout(StreamTestError, AssertionError):
    """A query did not come to its end, or did not fail, in time; the text says how far it was."""


class CrashNotPossible(StreamTestError):
    """A query cannot be crashed this way now."""


class NotACrash(StreamTestError, AssertionError):
    """The crash that was asked for did not come about."""
