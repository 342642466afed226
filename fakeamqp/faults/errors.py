"""Errors in the use of faults. They concern the test, never the peer."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError, WaitTimeout

__all__ = ["FaultError", "FaultNotSeen", "UnusedFault", "check_channel"]


class FaultError(FakeAMQPError):
    """A fault is not possible: a name is misspelled, or an action does not fit its method."""

    __module__ = "fakeamqp.faults"


class FaultNotSeen(WaitTimeout):
    """A fault has not happened as often as `wait` expected; the text lists near misses."""

    __module__ = "fakeamqp.faults"


class UnusedFault(FakeAMQPError):
    """Faults were installed and never happened, so the test has not tested them."""

    __module__ = "fakeamqp.faults"


def check_channel(number: object) -> None:
    """Check a channel number.

    Raises:
        FaultError: a frame cannot have this channel.
    """
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 0xFFFF:
        raise FaultError(f"a channel is a number from 0 to 65535, not {number!r}")
