"""Errors of Spark sessions. The texts say what to install or to set."""

from __future__ import annotations

from fakeamqp.spark.errors import SparkError

__all__ = ["FastModeWarning", "JavaMissing", "SessionError", "SessionRunning", "SparkMissing"]


class SessionError(SparkError):
    """A session cannot be started, or not with these settings."""


class SessionRunning(SessionError):
    """This process has a session already, and Spark allows one at a time."""


class SparkMissing(SessionError):
    """PySpark is not installed, or too old for the AMQP source."""


class JavaMissing(SessionError):
    """There is no Java that this Spark supports."""


class FastModeWarning(UserWarning):
    """Fast mode is not possible; the session starts as usual."""
