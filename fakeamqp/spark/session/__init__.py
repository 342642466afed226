"""A local Spark session for tests: small, with few log messages. It leaves no files or processes.

>>> from fakeamqp.spark import local_session
>>> with local_session() as spark:
...     spark.range(3).count()

`fakeamqp.spark.session.settings` lists its settings with reasons. The start of a session imports PySpark.
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
from fakeamqp.spark.session.registering import register

__all__ = [
    "FastModeWarning",
    "JavaMissing",
    "SessionError",
    "SessionRunning",
    "SparkMissing",
    "local_session",
    "register",
]
