"""The error of fast mode."""

from __future__ import annotations

from fakeamqp.spark.session.errors import SessionError

__all__ = ["FastModeUnavailable"]


class FastModeUnavailable(SessionError):
    """Fast mode is not possible. Sessions start without it."""
