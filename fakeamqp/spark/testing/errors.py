"""Errors of tests of streaming jobs."""

from __future__ import annotations

from fakeamqp.errors import WaitTimeout
from fakeamqp.spark.errors import SparkError


class StreamTestError(SparkError):
    """Base class of the errors of `AmqpStream`. Failures of a query are raised as Spark's errors."""


class NotStarted(StreamTestError):
    """There is no query yet, or one is running already."""


class QueryTimeout(StreamTestError, WaitTimeout):
    """A query did not end, or did not fail, in time; the text has its progress."""


class CrashNotPossible(StreamTestError):
    """The query cannot be crashed in this way now."""


class NotACrash(StreamTestError, AssertionError):
    """The requested crash did not happen."""
