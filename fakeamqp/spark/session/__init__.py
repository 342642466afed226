"""A Spark session for tests: small, quiet, on this machine only, and gone without a trace when it ends.

>>> from fakeamqp.spark import local_session
>>> with local_session() as spark:
...     spark.range(3).count()

What it sets is a table with the reason beside each entry: `fakeamqp.spark.session.settings`. PySpark is
imported when a session is asked for, and not before.
"""

from __future__ import annotations

from fakeamqp.spark.session.errors import (
    FastModeWarning,
    JavaMissing,
    SessionError,
    SessionRunning,
    SparkMissing,
)
from fakeamqp.spark.session.local import local_session

__all__ = [
    "FastModeWarning",
    "JavaMissing",
    "SessionError",
    "SessionRunning",
    "SparkMissing",
    "local_session",
]
