"""Errors of a replay."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = ["NoBroker", "NotTheSame", "ReplayError"]


class ReplayError(FakeAMQPError):
    """The recording cannot be replayed on this broker."""

    __module__ = "fakeamqp.replay"


class NotTheSame(FakeAMQPError, AssertionError):
    """Replayed answers differ from the recorded ones; the text is a diff."""

    __module__ = "fakeamqp.replay"


class NoBroker(ReplayError):
    """There is no broker at the URL."""

    __module__ = "fakeamqp.replay"
