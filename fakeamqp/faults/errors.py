"""What can be wrong with faults themselves. All of it is the test's, none of it the peer's."""

from __future__ import annotations

from fakeamqp.errors import FakeAMQPError

__all__ = ["FaultError", "FaultNotSeen", "UnusedFault", "check_channel"]


class FaultError(FakeAMQPError):
    """A fault was asked for that cannot be: a name is misspelled, or an action does not fit its method."""


class FaultNotSeen(FakeAMQPError):
    """A fault did not happen as often as somebody waited for; the text says what came instead."""


class UnusedFault(FakeAMQPError):
    """Faults were installed and never happened, so that the test has not tested what it says."""


def check_channel(number: object) -> None:
    """Whether a frame can be on such a channel.

    Raises:
        FaultError: no.
    """
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= 0xFFFF:
        raise FaultError(f"a channel is a number from 0 to 65535, not {number!r}")
