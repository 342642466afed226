"""Errors of Spark sessions. The texts contain what to install or to set."""

from __future__ import annotations

from fakeamqp.spark.errors import SparkError


class SessionError(SparkError):
    """The session cannot be started, or cannot use the data source; base class of the others."""


class SessionRunning(SessionError):
    """This process already has a session; Spark allows one at a time."""


class SparkMissing(SessionError):
    """PySpark is not installed, or its version is not supported."""


class JavaMissing(SessionError):
    """Java is not installed, or too old for Spark."""


class FastModeUnavailable(SessionError):
    """Fast mode is not possible. `local_session` makes this a `FastModeWarning`."""


class FastModeWarning(UserWarning):
    """Fast mode is not possible; the session starts without it."""
