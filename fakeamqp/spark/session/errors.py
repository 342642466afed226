"""Why there can be no Spark session here. The texts say what to install or to set."""

from __future__ import annotations

from fakeamqp.spark.errors import SparkError

__all__ = ["FastModeWarning", "JavaMissing", "SessionError", "SessionRunning", "SparkMissing"]


class SessionError(SparkError):
    """A session cannot be started, or not with these settings."""


class SessionRunning(SessionError):
    """This process has a session already, and Spark allows for one at a time."""


class SparkMissing(SessionError):
    """PySpark is not installed, or not in a version that has what the AMQP source needs."""


class JavaMissing(SessionError):
    """There is no Java that this Spark could run on."""


class FastModeWarning(UserWarning):
    """Fast mode was asked for and cannot be had; the session is the usual one."""
