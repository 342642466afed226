"""A Spark session for tests: small, quiet, on this machine only. It leaves nothing behind.

>>> from fakeamqp.spark import local_session
>>> with local_session() as spark:
...     spark.range(3).count()

`fakeamqp.spark.session.settings` is the table of its settings with reasons. PySpark is imported when a
session is started.
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
